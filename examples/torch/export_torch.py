#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Writes a PyTorch module as a model file (hetplan/model/1). Runs in your own process, with torch 1.13 or newer and nothing else.

    import export_torch
    export_torch.export(model, (torch.randn(1, 3, 224, 224),), "model.json")

or from a shell, where NAME is a module, or a function or class without arguments that gives one:

    python3 export_torch.py my_models.py:NAME --input 1x3x224x224 --out model.json
    python3 export_torch.py torchvision.models:resnet50 --input 1x3x224x224 --depth 1 --out resnet50.json

The module runs once on tensors that have shapes and no numbers (FakeTensor), so weights need not be loaded and large models need no
memory; one that decides by numbers runs on its real weights instead. Every operator that PyTorch's dispatcher runs is recorded.

A layer is a run of successive operators. By default it is what runtimes cut: an element of a ModuleList or Sequential, or a module
without such inside; `--depth N` cuts at modules called at most N deep, `--fine` at every operator. Operators between modules belong to
the layer before them, unless they have FLOP or weights of their own.

FLOP are those of products (matrices, convolutions, attention), 2 per multiply-add, as PyTorch's FlopCounterMode counts them; everything
else costs the bytes it moves (`traffic`: what each kernel reads and writes, weights apart). Backward FLOP follow `requires_grad`.
`activation` is what autograd keeps, each tensor at the first layer that keeps it; call the module in the mode (train, eval) that you
plan for. Amounts are per sample: divided by the first axis of the first input, or by `--batch`.

Parameters that several layers read make a weight group of layers that hold nothing else. `--tokens N` makes a model of N tokens a
sample: products in which N is both a row and a column are attention.
"""

import argparse
import collections
import contextlib
import importlib
import importlib.util
import json
import math
import os
import statistics
import sys
import tempfile
import time
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
PRECISIONS = {torch.float64: "fp32", torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.int8: "int8"}


class BadInput(ValueError):
    """What the user gave cannot be exported; the message says why."""


# FLOP by operator: of shapes of arguments and the first result. `weights` are the positions of the operands whose gradients cost as much
# as the forward; M is the number of rows of the product.


def _matrix(a: Sequence[int], b: Sequence[int]) -> Tuple[int, int]:
    rows, inner, columns = a[-2], a[-1], b[-1]
    return 2 * math.prod(a[:-2]) * rows * inner * columns, math.prod(a[:-2]) * rows


def _mm(args: List[Any], _: Any) -> Tuple[int, int]:
    return _matrix(args[0].shape, args[1].shape)


def _addmm(args: List[Any], _: Any) -> Tuple[int, int]:
    return _matrix(args[1].shape, args[2].shape)


def _mv(args: List[Any], _: Any) -> Tuple[int, int]:
    return 2 * args[0].numel(), 1


def _addmv(args: List[Any], _: Any) -> Tuple[int, int]:
    return 2 * args[1].numel(), 1


def _convolution(args: List[Any], out: Any) -> Tuple[int, int]:
    transposed = args[6]
    positions = (args[0] if transposed else out).shape
    at = positions[0] * math.prod(positions[2:])
    return 2 * at * args[1].numel(), at


def _plain_convolution(args: List[Any], out: Any) -> Tuple[int, int]:
    at = out.shape[0] * math.prod(out.shape[2:])
    return 2 * at * args[1].numel(), at


def _attention(args: List[Any], _: Any) -> Tuple[int, int]:
    query, key, value = (a.shape for a in args[:3])
    pairs = math.prod(query[:-1]) * key[-2]
    return 2 * pairs * (query[-1] + value[-1]), math.prod(query[:-1])


def _recurrent(args: List[Any], _: Any) -> Tuple[int, int]:
    steps = args[0].shape[0] * args[0].shape[1]  # steps, batch, features
    return 2 * steps * (args[1].numel() + args[2].numel()), steps


PRODUCTS = {
    "mm": (_mm, (0, 1)), "bmm": (_mm, (0, 1)), "addmm": (_addmm, (1, 2)), "baddbmm": (_addmm, (1, 2)), "addbmm": (_addmm, (1, 2)),
    "mv": (_mv, (0, 1)), "dot": (_mv, (0, 1)), "vdot": (_mv, (0, 1)), "addmv": (_addmv, (1, 2)),
    "convolution": (_convolution, (0, 1)), "_convolution": (_convolution, (0, 1)), "convolution_overrideable": (_convolution, (0, 1)),
    "mkldnn_convolution": (_plain_convolution, (0, 1)), "thnn_conv2d": (_plain_convolution, (0, 1)),
    "cudnn_convolution": (_plain_convolution, (0, 1)), "_slow_conv2d_forward": (_plain_convolution, (0, 1)),
    "_scaled_dot_product_flash_attention": (_attention, (0, 1, 2)), "_scaled_dot_product_efficient_attention": (_attention, (0, 1, 2)),
    "_scaled_dot_product_cudnn_attention": (_attention, (0, 1, 2)),
    "_scaled_dot_product_fused_attention_overrideable": (_attention, (0, 1, 2)),
    "_scaled_dot_product_flash_attention_for_cpu": (_attention, (0, 1, 2)),
    "mkldnn_rnn_layer": (_recurrent, (0, 1)),
}
LOOK_UPS = {"embedding", "index_select", "gather", "embedding_bag", "_embedding_bag", "_embedding_bag_forward_only", "index"}
NO_KERNEL = {"empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "lift_fresh"}


class Memory:
    """Memory that tensors share. `what`: input, parameter, constant or made."""

    def __init__(self, what: str, size: int, gradient: bool, name: str = ""):
        self.what, self.size, self.gradient, self.name = what, size, gradient, name
        self.trainable, self.writer = gradient, -1


class Operator:
    """One call below autograd."""

    def __init__(self, kind: str, module: Tuple[Tuple[str, int], ...]):
        self.kind, self.module = kind, module
        self.reads: List[Tuple[Memory, int, int]] = []  # memory, the operator that wrote it last, bytes
        self.weights: Dict[Memory, None] = {}
        self.looked_up: Set[Memory] = set()
        self.forward = self.backward_input = self.backward_weight = self.traffic = self.kept = self.attention = self.square = self.cache = 0
        self.rows, self.kernels, self.written = 0, 0, 0


def _bytes(t: torch.Tensor) -> int:
    return t.numel() * t.element_size()


def _storage(t: torch.Tensor) -> int:
    return (t.untyped_storage() if hasattr(t, "untyped_storage") else t.storage())._cdata


class Recorder(TorchDispatchMode):
    """Records operators in the order in which they run."""

    def __init__(self, fake: Optional[FakeTensorMode], tokens: Optional[int]):
        super().__init__()
        self.fake, self.tokens = fake, tokens
        self.operators: List[Operator] = []
        self.stack: List[Tuple[str, int]] = []  # modules that are being called, each with the number of the call
        self.calls = 0
        self.pending = 0  # bytes that autograd keeps for the next operator
        self.memory: Dict[int, Memory] = {}   # by id of the tensor, which `held` keeps alive
        self.by_storage: Dict[int, Memory] = {}
        self.held: List[torch.Tensor] = []
        self.imitations: Dict[int, torch.Tensor] = {}
        self.unknown: collections.Counter = collections.Counter()

    def enter(self, module: str) -> None:
        self.calls += 1
        self.stack.append((module, self.calls))

    def know(self, t: torch.Tensor, what: str, name: str = "") -> None:
        self.alias(t, Memory(what, _bytes(t), t.requires_grad and what == "parameter", name))

    def imitate(self, t: Any) -> Any:
        """A tensor without numbers in place of a real one, the same for the same, in one memory."""
        if self.fake is None or not isinstance(t, torch.Tensor) or isinstance(t, FakeTensor):
            return t
        if id(t) not in self.imitations:
            self.know(t, "constant")
            self.imitations[id(t)] = self.fake.from_tensor(t)
            self.alias(self.imitations[id(t)], self.memory[id(t)])
        return self.imitations[id(t)]

    def alias(self, t: torch.Tensor, memory: Memory) -> None:
        if id(t) not in self.memory:
            self.held.append(t)
            self.memory[id(t)] = memory
            self.by_storage.setdefault(_storage(t), memory)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = tree_map(self.imitate, (args, kwargs or {}))
        with self.fake or contextlib.nullcontext():
            out = func(*args, **kwargs)
        given = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, torch.Tensor)]
        results = [t for t in tree_flatten(out)[0] if isinstance(t, torch.Tensor)]
        if results:
            self.record(func, list(args), given, results)
        return out

    def record(self, func: Any, args: List[Any], given: List[torch.Tensor], results: List[torch.Tensor]) -> None:
        kind = func._schema.name.split("::")[-1]
        for t in given:
            self.know(t, "constant")
        of = {_storage(t): self.memory[id(t)] for t in reversed(given)}
        if all(id(t) not in self.memory and _storage(t) in of for t in results):  # a view, which moves nothing
            for t in results:
                self.alias(t, of[_storage(t)])
            return
        at = Operator(kind.rstrip("_") or kind, tuple(self.stack))
        self.operators.append(at)
        at.kept, self.pending = self.pending, 0
        product = PRODUCTS.get(at.kind)
        if product:
            at.forward, at.rows = product[0](args, results[0])
        gradient = False
        read: Dict[Memory, int] = {}
        for t in given:
            m = self.memory[id(t)]
            read[m] = min(m.size, max(read.get(m, 0), _bytes(t)))
            gradient = gradient or m.gradient
            at.square += min(m.size, _bytes(t)) * self.is_square(t) * (m.what != "parameter")
        for m, size in read.items():
            if m.what == "parameter" or (m.what == "constant" and product):
                at.weights[m] = None
                if at.kind in LOOK_UPS:
                    at.looked_up.add(m)
                    at.traffic += sum(_bytes(t) for t in results)  # the rows that it reads
            else:
                at.reads.append((m, m.writer, size))
                at.traffic += size
        if product:
            self.differentiate(at, args, product[1])
            self.attend(at, args, results[0])
        elif at.kind not in LOOK_UPS and any(m.what == "parameter" and m.size > 4 * _largest(results) for m in at.weights):
            self.unknown[kind] += 1
        written = {self.memory[id(t)] for t in results if id(t) in self.memory}
        for t in results:
            if id(t) in self.memory:  # in place
                m = self.memory[id(t)]
            else:
                m = Memory("made", _bytes(t), False)
                self.alias(t, m)
            m.gradient = m.gradient or (gradient and t.dtype.is_floating_point)
            m.writer = len(self.operators) - 1
            at.written += _bytes(t)
            at.square += _bytes(t) * self.is_square(t)
        at.kernels = 0 if at.kind in NO_KERNEL and not written else 1
        at.traffic += at.written
        if at.kind in NO_KERNEL:
            at.traffic = at.square = 0
        at.square = min(at.square, at.traffic)

    def is_square(self, t: torch.Tensor) -> bool:
        return self.tokens is not None and self.tokens > 1 and list(t.shape[-2:]) == [self.tokens] * 2

    def differentiate(self, at: Operator, args: List[Any], operands: Sequence[int]) -> None:
        """The gradient of each operand of a product costs as much as the product; attention is two products and computes one again."""
        memories = [self.memory[id(args[i])] for i in operands]
        if len(memories) == 3:
            at.backward_input = 5 * at.forward // 2 if any(m.gradient for m in memories) else 0
            return
        for m in memories:
            if m.what == "parameter":
                at.backward_weight += at.forward if m.gradient else 0
            elif m.gradient:
                at.backward_input += at.forward

    def attend(self, at: Operator, args: List[Any], out: torch.Tensor) -> None:
        """Products of two activations with the tokens of a sample on both sides."""
        if self.tokens is None or self.tokens < 2 or at.weights:
            return
        if "attention" in at.kind:
            if args[0].shape[-2] == args[1].shape[-2] == self.tokens:
                at.attention, at.cache = at.forward, _bytes(args[1]) + _bytes(args[2])
        elif at.kind in ("bmm", "baddbmm"):
            a, b = args[-2 if at.kind == "bmm" else 1], args[-1 if at.kind == "bmm" else 2]
            if a.shape[-2] == self.tokens and self.tokens in (a.shape[-1], b.shape[-1]):
                at.attention, at.cache = at.forward, min(self.memory[id(b)].size, _bytes(b))

    def keep(self, t: torch.Tensor) -> torch.Tensor:
        """Autograd keeps a tensor for the operator that was last, if it is of the module that runs, or comes next."""
        if id(t) not in self.memory:
            self.alias(t, self.by_storage.get(_storage(t)) or Memory("constant", _bytes(t), False))
        m = self.memory[id(t)]
        if m.what == "made" and m.name != "kept":
            m.name = "kept"
            if self.operators and self.operators[-1].module == tuple(self.stack):
                self.operators[-1].kept += m.size
            else:
                self.pending += m.size
        return t


def _largest(results: List[torch.Tensor]) -> int:
    return max(_bytes(t) for t in results)


def _run(model: nn.Module, inputs: Sequence[Any], tokens: Optional[int], fake: bool) -> Recorder:
    recorder = Recorder(FakeTensorMode() if fake else None, tokens)
    for name, p in model.named_parameters():
        recorder.know(p, "parameter", name)
    for t in tree_flatten(list(inputs))[0]:
        if isinstance(t, torch.Tensor):
            recorder.know(t, "input")
    handles = []
    for name, m in model.named_modules():
        handles.append(m.register_forward_pre_hook(lambda _m, _i, name=name: recorder.enter(name)))
        handles.append(m.register_forward_hook(lambda _m, _i, _o: recorder.stack.pop() and None))
    fast = getattr(torch.backends, "mha", None)  # one kernel without shapes inside
    before = fast.get_fastpath_enabled() if fast else None
    try:
        if fast:
            fast.set_fastpath_enabled(False)
        with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(recorder.keep, lambda t: t), recorder:
            model(*inputs)
    finally:
        if fast:
            fast.set_fastpath_enabled(before)
        for h in handles:
            h.remove()
    if recorder.operators:
        recorder.operators[-1].kept += recorder.pending
    return recorder


def _record(model: nn.Module, inputs: Sequence[Any], tokens: Optional[int]) -> Recorder:
    """On tensors without numbers; else on what the module has."""
    on_meta = any(p.device.type == "meta" for p in model.parameters())
    if on_meta:
        inputs = tree_map(lambda t: t.to("meta") if isinstance(t, torch.Tensor) else t, list(inputs))
    try:
        return _run(model, inputs, tokens, fake=not on_meta)
    except Exception as e:
        if on_meta:
            raise BadInput(f"{type(model).__name__} on the meta device: {_line(e)}") from e
        try:
            state = {n: t.clone() for n, t in model.named_buffers()}  # a run in training mode counts batches
            recorder = _run(model, inputs, tokens, fake=False)
            with torch.no_grad():
                for n, t in model.named_buffers():
                    t.copy_(state[n])
            return recorder
        except Exception as second:
            raise BadInput(f"{type(model).__name__} does not run on the example inputs: {_line(second)}") from second


def _line(e: BaseException) -> str:
    return f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:200]}"


# Layers: runs of successive operators, so that no path leaves a layer and comes back.


def _cuts(model: nn.Module, depth: Optional[int]) -> Set[str]:
    """The modules that become layers."""
    found: Set[str] = set()

    def holds_containers(m: nn.Module) -> bool:
        return any(isinstance(c, CONTAINERS) for c in m.modules() if c is not m)

    def visit(name: str, m: nn.Module, level: int, element: bool) -> None:
        if name:
            opened = isinstance(m, CONTAINERS) or (not element and holds_containers(m))
            if not opened if depth is None else level >= depth or not any(True for _ in m.children()):
                found.add(name)
                return
        for child, c in m.named_children():
            deeper = level + (0 if isinstance(m, (nn.ModuleList, nn.ModuleDict)) else 1)
            visit(f"{name}.{child}" if name else child, c, deeper, isinstance(m, CONTAINERS))

    visit("", model, 0, False)
    return found


class Layer:
    """A run of operators."""

    def __init__(self, name: str, kind: str, operators: List[Operator], call: Optional[Tuple[str, int]] = None):
        self.name, self.kind, self.operators, self.call = name, kind, operators, call  # call: of the module that it is
        self.group = ""
        self.beside: Set[Memory] = set()  # weights of a neighbour that holds a shared tensor and nothing else

    @property
    def weights(self) -> List[Memory]:
        return list(dict.fromkeys(m for o in self.operators for m in o.weights))

    def sum(self, what: str) -> int:
        return sum(getattr(o, what) for o in self.operators)


def _layers(model: nn.Module, operators: List[Operator], depth: Optional[int], fine: bool) -> List[Layer]:
    cuts, modules = _cuts(model, depth), dict(model.named_modules())
    layers: List[Layer] = []
    last: Any = None
    for i, o in enumerate(operators):
        owner = next((m for m in o.module if m[0] in cuts), None)  # a module that is called again is a layer again
        key: Any = owner
        if fine or owner is None:
            key = ("own", i) if o.forward or o.weights or (fine and o.kernels) else last
        if key != last or not layers:
            last = key
            if fine or owner is None:
                place = o.module[-1][0] if o.module else ""
                layers.append(Layer(f"{place}.{o.kind}" if place else o.kind, o.kind, []))
            else:
                layers.append(Layer(owner[0], type(modules[owner[0]]).__name__, [], owner))
        layers[-1].operators.append(o)
    return layers


def _users(layers: List[Layer]) -> Dict[Memory, Tuple[int, ...]]:
    found: Dict[Memory, List[int]] = {}
    for i, l in enumerate(layers):
        for m in l.weights:
            found.setdefault(m, []).append(i)
    return {m: tuple(u) for m, u in found.items()}


def _split(layers: List[Layer]) -> List[Layer]:
    """Layers that hold either a tensor that others have, too, or tensors that none has; and either frozen ones or trainable ones."""
    while True:
        users = _users(layers)
        result: List[Layer] = []
        for l in layers:
            kinds = {(users[m] if len(users[m]) > 1 else (), m.trainable) for m in l.weights}
            if len(kinds) < 2:
                result.append(l)
                continue
            runs: List[Tuple[Any, List[Operator]]] = []
            for o in l.operators:
                of = frozenset((users[m] if len(users[m]) > 1 else (), m.trainable) for m in o.weights)
                if runs and (not of or of == runs[-1][0] or not runs[-1][0]):
                    runs[-1] = (runs[-1][0] or of, runs[-1][1] + [o])
                else:
                    runs.append((of, [o]))
            result += [Layer(l.name, l.kind, run) for _, run in runs]
        if len(result) == len(layers):
            return layers
        layers = result


def _tie(layers: List[Layer]) -> List[Layer]:
    """Names weight groups and makes names unique."""
    layers = _split(layers)
    users = _users(layers)
    for i, l in enumerate(layers):
        shared: Dict[Tuple[int, ...], List[Memory]] = {}
        for m in l.weights:
            shared.setdefault(users[m] if len(users[m]) > 1 else (), []).append(m)
        largest = max((u for u in shared if u), key=lambda u: sum(m.size for m in shared[u]), default=())
        if not largest:
            continue
        l.group = shared[largest][0].name or f"shared by {layers[largest[0]].name}"
        others = {m for u, ms in shared.items() if u != largest for m in ms if u == () or u[0] == i}
        near = [n for n in range(len(layers)) if not any(len(users[m]) > 1 for m in layers[n].weights)]
        if others and near:  # e.g. the bias of a tied projection
            layers[min(near, key=lambda n: (abs(n - i), n))].beside |= others
        for o in l.operators:
            o.weights = {m: None for m in o.weights if m in shared[largest]}
    seen: collections.Counter = collections.Counter()
    for l in layers:
        seen[l.name] += 1
        if seen[l.name] > 1:
            l.name = f"{l.name}#{seen[l.name]}"
    return layers


def _edges(layers: List[Layer], operators: List[Operator]) -> Tuple[Dict[Tuple[int, int], Tuple[int, int]], List[int]]:
    """Bytes and gradient bytes between layers, where a tensor counts once for each layer that reads it; and what each layer gives."""
    layer_of = {id(o): i for i, l in enumerate(layers) for o in l.operators}
    crossing: Dict[Tuple[int, int], Dict[Memory, int]] = {}
    read: Set[int] = set()
    for o in operators:
        for m, writer, size in o.reads:
            if writer < 0:
                continue
            read.add(writer)
            ends = layer_of[id(operators[writer])], layer_of[id(o)]
            if ends[0] != ends[1]:
                of = crossing.setdefault(ends, {})
                of[m] = max(of.get(m, 0), size)
    given: List[Dict[Any, int]] = [{} for _ in layers]
    for (a, _), of in crossing.items():
        for m, size in of.items():
            given[a][m] = max(given[a].get(m, 0), size)
    for i, o in enumerate(operators):
        if i not in read:
            given[layer_of[id(o)]][i] = o.written
    edges = {ends: (sum(of.values()), sum(size for m, size in of.items() if m.gradient)) for ends, of in sorted(crossing.items())}
    return edges, [sum(g.values()) for g in given]


# Times on this machine.


def _samples(value: Any, of: int, wanted: int) -> Any:
    """Inputs of another number of samples: the first ones, again and again."""
    if not isinstance(value, torch.Tensor) or value.dim() == 0 or value.shape[0] != of:
        return value
    repeats = -(-wanted // of)
    return value.repeat(repeats, *[1] * (value.dim() - 1))[:wanted]


def _synchronized() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def _timed(module: nn.Module, args: Any, kwargs: Any, runs: int) -> Tuple[float, float]:
    """Median seconds of a module alone, forward and backward; the first run does not count."""
    def leaf(t: Any) -> Any:
        if not isinstance(t, torch.Tensor):
            return t
        return t.detach().requires_grad_() if t.dtype.is_floating_point else t.detach()

    args, kwargs = tree_map(leaf, (args, kwargs))
    found: List[Tuple[float, float]] = []
    for _ in range(runs + 1):
        begin = _synchronized()
        out = module(*args, **kwargs)
        middle = _synchronized()
        ends = [t for t in tree_flatten(out)[0] if isinstance(t, torch.Tensor) and t.requires_grad]
        gradients = [torch.ones_like(t) for t in ends]
        again = _synchronized()
        if ends:
            asked = [t for t in [*tree_flatten((args, kwargs))[0], *module.parameters()] if isinstance(t, torch.Tensor) and t.requires_grad]
            torch.autograd.grad(ends, asked, gradients, allow_unused=True)
        found.append((middle - begin, _synchronized() - again))
    return statistics.median(f for f, _ in found[1:]), statistics.median(b for _, b in found[1:])


def _measure(model: nn.Module, inputs: Sequence[Any], layers: List[Layer], batch: int, batches: Sequence[int],
             runs: int) -> Dict[int, Dict[str, List[float]]]:
    """Times of layers that are one call of a module, by position: alone, on the inputs that the model gives them."""
    calls: Dict[Tuple[str, int], List[int]] = {}
    for i, l in enumerate(layers):
        if l.call:
            calls.setdefault(l.call, []).append(i)
    order = sorted(calls, key=lambda c: c[1])
    wanted = {name for name, _ in order}
    modules = dict(model.named_modules())
    found: Dict[int, Dict[str, List[float]]] = {}
    with_kwargs = "with_kwargs" in nn.Module.register_forward_hook.__code__.co_varnames
    for b in batches:
        seen: List[Tuple[str, Any, Any]] = []

        def keep(name: str, args: Any, kwargs: Any) -> None:
            seen.append((name, args, kwargs))

        handles = [modules[n].register_forward_hook(lambda _m, a, k, _o, n=n: keep(n, a, k), with_kwargs=True) if with_kwargs else
                   modules[n].register_forward_hook(lambda _m, a, _o, n=n: keep(n, a, {})) for n in wanted]
        state = {n: t.clone() for n, t in model.named_buffers()}
        try:
            with torch.no_grad():
                model(*tree_map(lambda t: _samples(t, batch, b), list(inputs)))
        except Exception as e:
            raise BadInput(f"batches: {type(model).__name__} does not run on {b} samples: {_line(e)}") from e
        finally:
            for h in handles:
                h.remove()
        for (name, number), (n, args, kwargs) in zip(order, seen):
            positions = calls[name, number]
            if n != name or len(positions) > 1:  # a module in parts: which took how long is not told
                continue
            with torch.enable_grad():
                forward, backward = _timed(modules[n], args, kwargs, runs)
            times = found.setdefault(positions[0], {"batch": [], "forward": [], "backward": []})
            for key, value in (("batch", b), ("forward", forward), ("backward", backward)):
                times[key].append(value)
        with torch.no_grad():
            for n, t in model.named_buffers():
                t.copy_(state[n])
    return found


def _number(total: float, by: float) -> Any:
    exact = total / by
    return int(exact) if exact == int(exact) else exact


def _layer_document(l: Layer, given: int, batch: int, tokens: Optional[int], causal: bool) -> Dict[str, Any]:
    """`given`: bytes that other layers, or nobody, read."""
    weights = set(l.weights) | l.beside
    size = sum(m.size for m in weights)
    read = size - sum(m.size for m in {m for o in l.operators for m in o.looked_up})
    trainable = not weights or sum(m.size for m in weights if m.trainable) * 2 > size
    forward, attention, square = l.sum("forward"), l.sum("attention"), l.sum("square")
    document: Dict[str, Any] = {"name": l.name, "kind": l.kind}
    scale = 1.0  # causal attention runs for the pairs that are seen
    if tokens and attention:
        scale = (tokens + 1) / (2 * tokens) if causal else 1.0
    seen = lambda total, part: _number(total - part * (1 - scale), batch)  # noqa: E731
    document["forward_flops"] = seen(forward, attention)
    ratio = attention / forward if forward else 0
    for key, total in (("backward_input_flops", l.sum("backward_input")), ("backward_weight_flops", l.sum("backward_weight"))):
        document[key] = seen(total, total * ratio)
    document["weight"] = size
    if not trainable:
        document["trainable"] = False
    if read != size:
        document["weight_traffic"] = read
    if l.group:
        document["weight_group"] = l.group
    document["activation"] = _number(l.sum("kept"), batch)
    document["forward_activation"] = _number(given, batch)
    document["traffic"] = _number(l.sum("traffic") - square, batch)
    if not document["backward_input_flops"] and (any(m.gradient for o in l.operators for m, _, _ in o.reads) or
                                                 (size and trainable and not document["backward_weight_flops"])):
        document["backward_traffic"] = document["traffic"]  # e.g. of a norm, an embedding
    if attention:
        pairs = tokens * tokens * scale
        document["attention_flops"] = _number(attention * scale, batch * pairs)
        document["attention"] = "causal" if causal else "full"
        if causal:
            document["kv_bytes_per_token"] = _number(l.sum("cache"), batch * tokens)
    if square:
        document["attention_traffic"] = _number(square, batch * tokens * tokens * (scale if attention else 1.0))
        document.setdefault("attention", "causal" if causal else "full")
    document["calls"] = l.sum("kernels")
    most = max(l.operators, key=lambda o: o.forward if o.weights else 0)
    rows = _number(most.rows, batch) if most.weights and most.forward else 0
    if rows and rows != (tokens or 1):
        document["rows"] = rows
    return document


def export(model: nn.Module, example_inputs: Any, path: Optional[str] = None, *, depth: Optional[int] = None, fine: bool = False,
           batch: Optional[int] = None, tokens: Optional[int] = None, causal: bool = False, name: Optional[str] = None,
           measure: Optional[str] = None, batches: Sequence[int] = (1, 2, 4), runs: int = 5) -> Dict[str, Any]:
    """Returns the model file's document, and writes it to `path` if given (whole, or not at all).

    example_inputs: what `forward` takes; a tensor, or a tuple of anything. Tensors may be on the meta device if the module is.
    depth, fine: where to cut, see above. batch: samples in the inputs. tokens: of a sample; causal: attention sees what came before, and
    a generating model caches keys and values. measure: a kind of device, for which layers that are modules get the seconds that they take
    here, alone, with real weights and `batches` of samples: medians of `runs`.
    Raises BadInput: a module that does not run on the inputs, or of which nothing depends on them; options that contradict.
    """
    if not isinstance(model, nn.Module):
        raise BadInput(f"expected a torch.nn.Module, got {type(model).__name__}")
    inputs = tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    tensors = [t for t in tree_flatten(list(inputs))[0] if isinstance(t, torch.Tensor)]
    for given, what in ((depth, "depth"), (batch, "batch"), (tokens, "tokens")):
        if given is not None and (not isinstance(given, int) or given < 1):
            raise BadInput(f"{what}: expected an integer >= 1, got {given}")
    if fine and depth is not None:
        raise BadInput("fine: expected either fine or depth, got both")
    if causal and tokens is None:
        raise BadInput("causal: expected tokens, too")
    batches = sorted(set(batches))
    if measure is not None and (not batches or batches[0] < 1 or runs < 1):
        raise BadInput(f"batches, runs: expected integers >= 1, got {batches} and {runs}")
    if measure is not None and (fine or any(p.device.type == "meta" for p in model.parameters())):
        raise BadInput("measure: expected layers that are modules (not fine) with real weights (not on the meta device)")
    if batch is None:
        batch = tensors[0].shape[0] if tensors and tensors[0].dim() > 0 else 1
    if batch < 1:
        raise BadInput("example_inputs: expected at least one sample, got a first axis of 0")
    recorder = _record(model, inputs, tokens)
    if not recorder.operators:
        raise BadInput(f"{type(model).__name__} runs no operator on the example inputs")
    layers = _tie(_layers(model, recorder.operators, depth, fine))
    for kind, count in sorted(recorder.unknown.items()):
        print(f"export_torch: {kind} reads weights and counts as 0 FLOP ({count} times)", file=sys.stderr)
    used = {m for l in layers for m in set(l.weights) | l.beside}
    missing = sum(p.numel() for n, p in model.named_parameters() if recorder.memory[id(p)] not in used)
    if missing:
        print(f"export_torch: {missing} parameters are not used and belong to no layer", file=sys.stderr)
    dtypes: collections.Counter = collections.Counter()
    for p in model.parameters():
        dtypes[p.dtype] += p.numel()
    dtype = dtypes.most_common(1)[0][0] if dtypes else torch.float32
    document: Dict[str, Any] = {"format": "hetplan/model/1", "name": name or type(model).__name__}
    document["bytes_per_parameter"] = torch.empty(0, dtype=dtype).element_size()
    if dtype in PRECISIONS:
        document["precision"] = PRECISIONS[dtype]
    if tokens:
        document["tokens_per_sample"] = tokens
    edges, given = _edges(layers, recorder.operators)
    document["layers"] = [_layer_document(l, g, batch, tokens, causal) for l, g in zip(layers, given)]
    if measure is not None:
        for i, times in _measure(model, inputs, layers, batch, batches, runs).items():
            document["layers"][i]["profile"] = {measure: times}
        left = [l["name"] for l in document["layers"] if "profile" not in l]
        if left:
            print(f"export_torch: no times of layers that are no module of their own: {', '.join(left[:5])}"
                  f"{f' and {len(left) - 5} more' if len(left) > 5 else ''}", file=sys.stderr)
    document["edges"] = []
    for (a, b), (size, gradient) in edges.items():
        edge = {"from": layers[a].name, "to": layers[b].name, "bytes": _number(size, batch)}
        if gradient != size:
            edge["gradient"] = _number(gradient, batch)
        document["edges"].append(edge)
    if path is not None:
        _write(path, json.dumps(document, indent=1) + "\n")
    return document


def _write(path: str, text: str) -> None:
    try:
        with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(path) or ".", delete=False) as f:
            f.write(text)
        os.chmod(f.name, 0o644)
        os.replace(f.name, path)
    except OSError as e:
        if "f" in locals():
            os.unlink(f.name)
        raise BadInput(f"{path}: {e.strerror}") from e


# The command.


def _module(spec: str) -> nn.Module:
    place, _, attribute = spec.rpartition(":")
    if not place or not attribute:
        raise BadInput(f"MODULE: expected FILE.py:NAME or PACKAGE.MODULE:NAME, got {spec!r}")
    try:
        if place.endswith(".py"):
            sys.path.insert(0, os.path.dirname(os.path.abspath(place)))
            found = importlib.util.spec_from_file_location("_exported", place)
            module = importlib.util.module_from_spec(found)
            found.loader.exec_module(module)
        else:
            module = importlib.import_module(place)
    except Exception as e:
        raise BadInput(f"MODULE: {place}: {_line(e)}") from e
    value: Any = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise BadInput(f"MODULE: {place} has no {attribute!r}")
        value = getattr(value, part)
    if not isinstance(value, nn.Module):
        try:
            value = value()
        except Exception as e:
            raise BadInput(f"MODULE: {attribute}(): {_line(e)}") from e
    return value


def _input(spec: str) -> torch.Tensor:
    kind, _, shape = spec.rpartition(":")
    dtype = getattr(torch, kind or "float32", None)
    try:
        sizes = [int(n) for n in shape.split("x")]
    except ValueError:
        sizes = [0]
    if not isinstance(dtype, torch.dtype) or min(sizes) < 1:
        raise BadInput(f"--input: expected sizes such as 1x3x224x224 or int64:1x128, got {spec!r}")
    return torch.zeros(sizes, dtype=dtype)


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="See the text at the beginning of this file.")
    parser.add_argument("module", metavar="MODULE", help="FILE.py:NAME or PACKAGE.MODULE:NAME of a module, or of what gives one")
    parser.add_argument("--input", action="append", required=True, metavar="SHAPE",
                        help="an input, e.g. 1x3x224x224 or int64:1x128; one for each that forward takes")
    parser.add_argument("--out", required=True, metavar="FILE", help="the model file")
    parser.add_argument("--depth", type=int, metavar="N", help="cut at modules that are called at most N deep")
    parser.add_argument("--fine", action="store_true", help="a layer for each operator")
    parser.add_argument("--batch", type=int, metavar="B", help="samples in the inputs (first axis of the first one)")
    parser.add_argument("--tokens", type=int, metavar="T", help="tokens of a sample: a language model")
    parser.add_argument("--causal", action="store_true", help="a token sees those before it")
    parser.add_argument("--train", action="store_true", help="in training mode (eval)")
    parser.add_argument("--name", help="of the model (the class's)")
    parser.add_argument("--measure", metavar="KIND", help="time the layers here, for devices of this kind")
    parser.add_argument("--batches", default="1,2,4", metavar="B,...", help="samples at once, for --measure (1,2,4)")
    o = parser.parse_args(arguments)
    try:
        try:
            batches = [int(b) for b in o.batches.split(",")]
        except ValueError:
            raise BadInput(f"--batches: expected numbers with commas between them, got {o.batches!r}") from None
        model = _module(o.module)
        if isinstance(model, nn.Module):
            model.train(o.train)
        document = export(model, tuple(_input(s) for s in o.input), o.out, depth=o.depth, fine=o.fine, batch=o.batch, tokens=o.tokens,
                          causal=o.causal, name=o.name, measure=o.measure, batches=batches)
    except BadInput as e:
        print(f"export_torch: {e}", file=sys.stderr)
        return 2
    layers, groups = document["layers"], {}
    weight = sum(l["weight"] for l in layers if "weight_group" not in l)
    groups = {l["weight_group"]: l["weight"] for l in layers if "weight_group" in l}
    parameters = (weight + sum(groups.values())) / document["bytes_per_parameter"]
    print(f"{document['name']}: {len(layers)} layers, {len(document['edges'])} edges, {parameters / 1e6:.4g} M parameters, "
          f"{sum(l['forward_flops'] for l in layers) / 1e9:.4g} GFLOP")
    return 0


if __name__ == "__main__":
    sys.exit(main())
