# SPDX-License-Identifier: BSL-1.0
"""What gives links their speed: pacing by the senders themselves, or namespaces with shaped wires."""

from typing import Dict, List, Protocol, Tuple

from documents import Route
from links import Links
from pacing import Medium


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

    def __init__(self, capacities: Dict[str, float], routes: Dict[Tuple[str, str], Route], devices: List[str], has_priorities: bool):
        self.medium = Medium(capacities, routes, devices, has_priorities)
        self.latencies = {pair: r.latency for pair, r in routes.items()}

    def make_links(self, device: str) -> Links:
        return Links(device, "127.0.0.1", self.medium, self.latencies, self.medium.piece_bytes)

    def restart(self) -> None:
        self.medium.restart()

    def cut(self, seconds: float) -> None:
        self.medium.close_for(seconds)

    def forget(self, devices: List[str]) -> None:
        for d in devices:
            self.medium.forget(d)

    def close(self) -> None:
        self.medium.close()
