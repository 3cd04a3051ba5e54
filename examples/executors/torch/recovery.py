# SPDX-License-Identifier: BSL-1.0
"""Who keeps copies of whose weights, and who sends which layer to whom when a plan changes.

Source: Asteroid sec. 3.4 (topology-driven replication, lightweight re-planning: `hetplan replay` makes the plan).
"""

from typing import Dict, List, NamedTuple, Set, Tuple

from documents import TaskGraph
from models import Network
from problems import CannotGoOn


def keepers(graph: TaskGraph, network: Network) -> Dict[int, str]:
    """A stage on one device is copied to a device of the next stage, the last to the first; a replicated one needs no copy.

    The next stage is the reader with the smallest index; where it has no other device, those behind it, then all from the
    first. A plan on one device has nobody to keep anything.
    """
    found = {}
    for s, stage in enumerate(graph.stages):
        if len(stage.devices) > 1:
            continue
        readers = [t for t, other in enumerate(graph.stages)
                   if t != s and any(i in stage.layers for n in other.layers for i in network.layers[n].inputs)]
        behind = [*readers[:1], *range(s + 1, len(graph.stages))] if readers else []
        others = [d for t in [*behind, *range(len(graph.stages))] for d in graph.stages[t].devices if d != stage.devices[0]]
        if others:
            found[s] = others[0]
    return found


class Moves(NamedTuple):
    """Weights that change devices with a plan."""
    sends: Dict[str, List[Tuple[str, str]]]  # by device: layer and who gets it
    gets: Dict[str, List[str]]
    bytes: int


def moves(network: Network, old: TaskGraph, new: TaskGraph, lost: Set[str], version: int) -> Moves:
    """What each device of the new plan lacks, from somebody who has it: a stage's device, or the keeper of a copy.

    Before anything was learnt nobody needs anything: the seed gives every layer. Of several holders, the one that sends least so
    far, the first of equals. Throws CannotGoOn where nobody holds a layer any more.
    """
    holders: Dict[str, List[str]] = {n: [] for n in network.order}
    kept = keepers(old, network)
    for s, stage in enumerate(old.stages):
        for n in stage.layers:
            holders[n] += [d for d in [*stage.devices, kept.get(s)] if d is not None and d not in lost]
    plan = Moves({d: [] for d in new.used}, {d: [] for d in new.used}, 0)
    if version == 0:
        return plan
    total = 0
    for stage in new.stages:
        for n in stage.layers:
            for d in stage.devices:
                if d in holders[n]:
                    continue
                if not holders[n]:
                    raise CannotGoOn(f'layer "{n}" is lost with {", ".join(sorted(lost))}: nobody else holds it')
                sender = min(holders[n], key=lambda h: len(plan.sends.setdefault(h, [])))
                plan.sends[sender].append((n, d))
                plan.gets[d].append(n)
                total += network.weight_of(n)
    return plan._replace(bytes=total)
