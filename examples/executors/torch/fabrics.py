# SPDX-License-Identifier: BSL-1.0
"""What gives links their speed: pacing by the senders themselves, or namespaces with shaped wires."""

import sys
from dataclasses import replace
from typing import List, Optional, Protocol

from documents import Cluster, TaskGraph
from greeting import new_key
from links import Links
from netns import Namespaces, why_not
from pacing import Medium
from problems import BadInput


class Fabric(Protocol):
    name: str

    def make_links(self, device: str) -> Links:
        """Called in the worker's own process."""

    def restart(self) -> None:
        """Before an iteration."""

    def cut(self, seconds: float) -> None:
        """Nothing gets through for a while."""

    def forget(self, devices: List[str]) -> None:
        """They are dead."""

    def close(self) -> None: ...


class Paced:
    """Senders share clocks; the wires are those of the local machine."""

    name = "paced"

    def __init__(self, cluster: Cluster, has_priorities: bool):
        self.medium, self.secret = Medium(cluster, has_priorities), new_key()
        self.latencies = {pair: r.latency for pair, r in cluster.routes.items()}

    def make_links(self, device: str) -> Links:
        return Links(device, self.secret, self.medium, self.latencies, self.medium.piece_bytes)

    def restart(self) -> None:
        self.medium.restart()

    def cut(self, seconds: float) -> None:
        self.medium.close_for(seconds)

    def forget(self, devices: List[str]) -> None:
        for d in devices:
            self.medium.forget(d)

    def close(self) -> None:
        self.medium.close()


def make_fabric(links: str, nominal: Cluster, graph: Optional[TaskGraph]) -> Fabric:
    """Namespaces where they can be had and can do what the plan asks for: a wire knows no priorities."""
    has_priorities = graph is not None and graph.has_priorities
    why = "priorities between senders" if has_priorities else why_not(nominal)
    if links == "namespaces" and why:
        raise BadInput(f"--links namespaces: cannot be had: {why}; expected --links paced")
    if links != "paced" and not why:
        try:
            return Namespaces(nominal)
        except OSError as e:
            if links == "namespaces":
                raise BadInput(f"--links namespaces: {e}".splitlines()[0]) from e
            print(f"links are paced: {e}".splitlines()[0], file=sys.stderr)
    # Where wires would be taken but for the priorities, the senders imitate them: at the capacities that were measured on them.
    if links == "auto" and has_priorities and graph.capacities.keys() == nominal.capacities.keys() and not why_not(nominal):
        nominal = replace(nominal, capacities=graph.capacities)
    return Paced(nominal, has_priorities)
