# SPDX-License-Identifier: BSL-1.0
"""Sums of gradients at the end of an iteration: rings among the devices of a stage, then across stages that share a tensor."""

import threading
from typing import Dict, List, NamedTuple, Optional, Set

import numpy
import torch

from documents import Chunk, Reduction, TaskGraph
from links import Key, Links, pieces_of
from models import Network
from stages import StagePart, flat, spread


class Step(NamedTuple):
    """One sum, for a device that has a part in it or only receives its result."""
    number: int
    members: List[str]
    holders: List[int]
    layers: List[str]
    chunks: Dict[str, List[Chunk]]  # by sender: how its transfers in the ring are cut
    receivers: Dict[str, str]       # devices that hold a tensor but are not in the ring, and who sends it to them


def steps_of(graph: TaskGraph, network: Network) -> List[Step]:
    """The reductions of the file, each replicated stage's own first; then tensors whose sharers all are on one device, which
    the file leaves out because nothing has to be sent."""
    ring_chunks = {}
    for m in graph.messages:
        if m.kind == "sync":
            ring_chunks.setdefault((m.source, m.target, m.from_stage), m.chunks)
    steps = []
    for r in sorted(graph.reductions + _local(graph, network), key=lambda r: len(r.holders) > 1):
        after = dict(zip(r.devices, r.devices[1:] + r.devices[:1]))
        chunks = {d: ring_chunks.get((d, after[d], s), []) for d, s in zip(r.devices, r.stages)}
        receivers = {d: graph.stages[s].devices[0] for s in r.holders for d in graph.stages[s].devices if d not in r.devices}
        steps.append(Step(len(steps), r.devices, r.holders, r.layers, chunks, receivers))
    return steps


def _local(graph: TaskGraph, network: Network) -> List[Reduction]:
    groups: Dict[str, Set[int]] = {}
    for s, stage in enumerate(graph.stages):
        for n in stage.layers:
            if network.layers[n].tied_to:
                groups.setdefault(network.layers[n].tied_to, set()).add(s)
    found = []
    for group, holders in sorted(groups.items()):
        firsts = {graph.stages[s].devices[0] for s in holders}
        if len(holders) > 1 and len(firsts) == 1:
            layer = next(n for n in graph.stages[min(holders)].layers if network.layers[n].tied_to == group)
            found.append(Reduction(list(firsts), [min(holders)], sorted(holders), [layer]))
    return found


class Reducer:
    """A device's part in the sums of an iteration, each on a thread of its own as soon as what it waits for is done."""

    def __init__(self, links: Links, graph: TaskGraph, network: Network, parts: Dict[int, StagePart], patience: float):
        self.links, self.network, self.parts, self.patience, self.graph = links, network, parts, patience, graph
        me = links.device
        self.failure: Optional[BaseException] = None
        self.done: Dict[int, threading.Event] = {}  # by stage: its backwards
        self.steps = [s for s in steps_of(graph, network) if me in s.members or me in s.receivers]

    def begin(self, epoch: int, iteration: int, start: float) -> None:
        self.at, self.start, self.failure = (epoch, "ring", iteration), start, None
        self.threads: List[threading.Thread] = []
        self.done = {s: threading.Event() for s in self.parts}
        own = {s.holders[0]: threading.Event() for s in self.steps if len(s.holders) == 1}
        for step in self.steps:
            waits = [self.done[s] for s in step.holders if s in self.parts]
            if len(step.holders) > 1:
                waits += [own[s] for s in step.holders if s in own]
            ends = own.get(step.holders[0]) if len(step.holders) == 1 else None
            self.threads.append(threading.Thread(target=self._run, args=(step, waits, ends), daemon=True))
            self.threads[-1].start()

    def finish(self) -> None:
        for t in self.threads:
            t.join()
        if self.failure:
            raise self.failure

    def _run(self, step: Step, waits: List[threading.Event], ends: threading.Event) -> None:
        try:
            for w in waits:
                w.wait()
            if not self.failure:
                self._reduce(step)
        except Exception as e:  # told to the thread that waits for all
            self.failure = self.failure or e
        finally:
            if ends:
                ends.set()

    def stop(self, why: BaseException) -> None:
        """Lets go of threads that still wait for a stage."""
        self.failure = self.failure or why
        for e in self.done.values():
            e.set()

    def _layer_in(self, stage: int, layer: str) -> str:
        """The stage's own layer of a shared tensor."""
        group, own = self.network.layers[layer].tied_to, self.parts[stage].layers
        return layer if layer in own else next(n for n in own if group and self.network.layers[n].tied_to == group)

    def _gradients(self, step: Step, stage: int) -> List[torch.Tensor]:
        return [g for n in step.layers for g in self.parts[stage].gradients(self._layer_in(stage, n))]

    def _reduce(self, step: Step) -> None:
        me, at = self.links.device, (*self.at, step.number)
        mine = [s for s in step.holders if s in self.parts]
        if me in step.members:
            # A stage whose ring is done has one sum on all of its devices: its first device brings it along.
            brings = mine if len(step.holders) == 1 else [s for s in mine if self.graph.stages[s].devices[0] == me]
            total = sum(flat(self._gradients(step, s)) for s in brings)
            if len(step.members) > 1:
                # All begin when all are ready: the task graph says so, though a ring could begin sooner.
                others = [d for d in step.members if d != me]
                for d in others:
                    self.links.send(d, (*at, "ready", me), numpy.empty(0), latency=False)
                for d in others:
                    self.links.take((*at, "ready", d), self.patience)
                ring(self.links, step.members, total, at, self.patience, step.chunks[me], self.start)
            for receiver in (d for d, sender in step.receivers.items() if sender == me):
                self.links.send(receiver, (*at, "sum"), total.numpy())
        else:
            total = torch.from_numpy(self.links.take((*at, "sum"), self.patience))
        for s in mine:
            spread(total, self._gradients(step, s))


def ring(links: Links, members: List[str], vector: torch.Tensor, at: Key, patience: float, chunks: List[Chunk], start: float) -> None:
    """Sums a vector over the members, in place: n - 1 rounds of adding up, n - 1 of handing on, each of an n-th of it."""
    n, me = len(members), members.index(links.device)
    ends = [len(vector) * i // n for i in range(n + 1)]
    after, rounds = members[(me + 1) % n], 2 * (n - 1)

    def segment(i: int) -> torch.Tensor:
        return vector[ends[i % n]:ends[i % n + 1]]

    for r in range(rounds):
        give, get = me - r, me - r - 1
        # What leaves must not change while it leaves: a segment that is added to later is sent as it is now.
        data: numpy.ndarray = segment(give).clone().numpy()
        pieces = pieces_of(chunks, data.nbytes, start, r / rounds, (r + 1) / rounds) if chunks else None
        links.send(after, (*at, r), data, pieces, latency=r == 0)
        came = torch.from_numpy(links.take((*at, r), patience))
        if r < n - 1:
            segment(get).add_(came)
        else:
            segment(get).copy_(came)
