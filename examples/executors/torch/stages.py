# SPDX-License-Identifier: BSL-1.0
"""A device's part of a stage: its layers, their forward and backward on ranges of samples, their gradients and weights."""

from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

import numpy
import torch
from torch import Tensor, nn

from documents import Message, TaskGraph
from models import Network

RATE = 0.02  # of plain gradient descent

Tensors = Dict[str, Tensor]  # by layer: what it gave, or the gradient of that


class Slice(NamedTuple):
    """Tensors of some samples of the batch."""
    first: int
    last: int
    tensors: Tensors


def carried(network: Network, graph: TaskGraph, m: Message) -> List[str]:
    """The layers whose values, or gradients of them, a message holds: those of a stage that another one reads, each once."""
    giver, reader = (m.from_stage, m.to_stage) if m.kind == "forward" else (m.to_stage, m.from_stage)
    inside, outside = graph.stages[giver].layers, graph.stages[reader].layers
    return [n for n in network.order if n in inside and any(r in outside for r in network.readers(n))]


def pack(given: Slice, layers: List[str], first: int, last: int) -> numpy.ndarray:
    """Samples [first, last) of some layers, as they are sent: floats, layer after layer."""
    chosen = [given.tensors[n][first - given.first:last - given.first] for n in layers]
    return (chosen[0].reshape(-1).contiguous() if len(chosen) == 1 else flat(chosen)).numpy()


def unpack(network: Network, message: Message, layers: List[str], data: numpy.ndarray) -> Slice:
    """The reverse of pack."""
    tensors, at, samples = {}, 0, message.last - message.first
    for n in layers:
        size = samples * network.bytes_of(n) // 4
        tensors[n] = torch.from_numpy(data[at:at + size]).view(samples, *network.shapes[n])
        at += size
    return Slice(message.first, message.last, tensors)


def assemble(slices: List[Slice], layer: str, first: int, last: int) -> Tensor:
    """Samples [first, last) of a layer from slices that cover them."""
    pieces = []
    for s in sorted((s for s in slices if layer in s.tensors), key=lambda s: s.first):
        begin, end = max(first, s.first), min(last, s.last)
        if begin < end:
            pieces.append(s.tensors[layer][begin - s.first:end - s.first])
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces)


class Use(NamedTuple):
    """A forward of a part that has weights of its own."""
    weights: List[nn.Parameter]
    given: Tensor


class Graph(NamedTuple):
    """Autograd's, of a stage and some samples."""
    leaves: Tensors
    ends: List[Tensor]  # of its outputs, then its loss
    uses: List[Use]


class StagePart:
    """What one device holds of one stage."""

    def __init__(self, network: Network, graph: TaskGraph, stage: int, seed: int, times: int = 1):
        self.network, self.batch, self.times = network, graph.batch, times
        chosen = set(graph.stages[stage].layers)
        self.layers = [n for n in network.order if n in chosen]
        self.modules = network.tied_modules(self.layers, seed)
        self._uses = watched(self.modules.values())
        self.inputs = sorted({i for n in self.layers for i in network.layers[n].inputs if i not in chosen})
        self.outputs = [n for n in self.layers if any(r not in chosen for r in network.readers(n))]
        self.recompute = graph.stages[stage].recompute
        self._kept: Dict[Tuple[int, int], Graph] = {}  # by samples
        self._read: Dict[Tuple[int, int], Tuple[Tensors, Tensors]] = {}  # by samples, of a stage that recomputes: inputs and data
        self._left: Dict[Tuple[int, int], Tuple[List[Use], List[Tensor]]] = {}  # by samples: for the gradients of weights
        self.loss = 0.0

    def forward(self, first: int, last: int, read: Tensors, data: Tensors) -> Tensors:
        """What leaves the stage. Keeps the graph for the backward of the same samples, or what that makes a graph of."""
        with torch.set_grad_enabled(not self.recompute):
            graph = self._graph(read, data)
        if len(graph.ends) > len(self.outputs):
            self.loss += graph.ends[-1].item()
        if self.recompute:
            self._read[first, last] = read, data
        else:
            self._kept[first, last] = graph
        return {n: end.detach() for n, end in zip(self.outputs, graph.ends)}

    def _graph(self, read: Tensors, data: Tensors) -> "Graph":
        for _ in range(self.times):  # all but the last go to waste
            leaves = {n: t.detach().requires_grad_() for n, t in read.items()}
            values = self.network.forward(self.modules, leaves, data)
            uses = list(self._uses)
            self._uses.clear()
        ends = [values[n] for n in self.outputs]
        if self.network.loss in values:
            ends.append(values[self.network.loss].sum() / self.batch)  # the mean over the batch, of which these are some samples
        return Graph(leaves, ends, uses)

    def input_gradients(self, first: int, last: int, gradients: Tensors) -> Tensors:
        """Of what was read. Keeps what the gradients of weights need."""
        leaves, ends, uses = self._graph(*self._read.pop((first, last))) if self.recompute else self._kept.pop((first, last))
        given = [gradients[n] for n in self.outputs] + [None] * (len(ends) - len(self.outputs))
        of_leaves, of_uses = input_gradients(ends, given, list(leaves.values()), uses, self.times)
        self._left[first, last] = uses, of_uses
        return dict(zip(leaves, of_leaves))

    def weight_gradients(self, first: int, last: int) -> None:
        weight_gradients(*self._left.pop((first, last)), self.times)

    def reset(self) -> None:
        """As before the first task of an iteration. Tied weights have one gradient."""
        self._kept.clear()
        self._read.clear()
        self._left.clear()
        self.loss = 0.0
        zeros: Dict[int, Tensor] = {}
        for n in self.layers:
            for p in self.modules[n].parameters():
                p.grad = zeros.setdefault(p.data_ptr(), torch.zeros_like(p))

    def gradients(self, layer: str) -> List[Tensor]:
        return [p.grad for p in self.modules[layer].parameters()]

    def stepped(self) -> Dict[str, Tensor]:
        """By layer, its weights after the optimizer's step, flat: the step itself waits for the commit."""
        with torch.no_grad():
            return {n: flat([p - RATE * g for p, g in zip(self.modules[n].parameters(), self.gradients(n))]) for n in self.layers}

    def load(self, layer: str, weights: Tensor) -> None:
        """Sets a layer's weights from a flat vector."""
        with torch.no_grad():
            spread(weights, list(self.modules[layer].parameters()))

    def weights(self, layer: str) -> Tensor:
        with torch.no_grad():
            return flat(list(self.modules[layer].parameters()))


def watched(modules: Iterable[nn.Module]) -> List[Use]:
    """A list to which each forward adds what parts that have weights of their own gave."""
    uses: List[Use] = []
    for part in (p for m in modules for p in m.modules()):
        weights = list(part.parameters(recurse=False))
        if weights:
            part.register_forward_hook(lambda _, __, given, weights=weights: uses.append(Use(weights, given)))
    return uses


def input_gradients(ends: List[Tensor], gradients: List[Optional[Tensor]], leaves: List[Tensor], uses: List[Use],
                    times: int) -> Tuple[List[Tensor], List[Tensor]]:
    """Of the leaves and of what parts with weights gave, from those of the ends: autograd leaves out the weights, for which nobody asks.
    Does the work so many times."""
    for _ in range(times):
        found = torch.autograd.grad(ends, [*leaves, *(u.given for u in uses)], gradients, retain_graph=True)
    return list(found[:len(leaves)]), list(found[len(leaves):])


def weight_gradients(uses: List[Use], gradients: List[Tensor], times: int) -> None:
    """Adds to the gradients of the weights once, from those of what their parts gave, and does the work of that so many times."""
    for use, gradient in zip(uses, gradients):
        for _ in range(times - 1):
            torch.autograd.grad(use.given, use.weights, gradient, retain_graph=True)
        torch.autograd.backward(use.given, gradient, inputs=use.weights)


def flat(tensors: List[Tensor]) -> Tensor:
    return torch.cat([t.reshape(-1) for t in tensors]) if tensors else torch.zeros(0)


def spread(vector: Tensor, tensors: List[Tensor]) -> None:
    """The reverse of flat, into tensors that are there."""
    for t, part in zip(tensors, vector.split([t.numel() for t in tensors])):
        t.copy_(part.view_as(t))


def train_alone(network: Network, seed: int, batch: int, iterations: int, at_once: int = 8) -> Tuple[List[float], Tensors, Tensors]:
    """Plain training on one device, for comparison: losses, and each layer's weights at the end and at the start."""
    whole = nn.ModuleDict(network.tied_modules(network.order, seed))
    start = {n: flat([p.detach().clone() for p in whole[n].parameters()]) for n in network.order}
    optimizer, losses = torch.optim.SGD(whole.parameters(), RATE), []
    for iteration in range(iterations):
        optimizer.zero_grad()
        losses.append(0.0)
        for first in range(0, batch, at_once):
            data = network.samples(seed, iteration, first, min(batch, first + at_once))
            loss = network.forward(whole, {}, data)[network.loss].sum() / batch
            loss.backward()
            losses[-1] += loss.item()
        optimizer.step()
    return losses, {n: flat([p.detach() for p in whole[n].parameters()]) for n in network.order}, start
