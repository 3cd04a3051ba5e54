# SPDX-License-Identifier: BSL-1.0
"""The built-in networks: layers as modules, the graph of edges between them, data drawn per sample, and what a model file says of them."""

import copy
import hashlib
import math
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from problems import BadInput

FLOAT_BYTES = 4


class Block(nn.Module):
    """A decoder block: causal self-attention and a feed-forward part, normalised before, added after."""

    def __init__(self, width: int, heads: int, length: int):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_forward = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("future", torch.full((length, length), float("-inf")).triu(1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        parts = self.query_key_value(self.before_attention(x)).view(n, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2) / math.sqrt(width // self.heads) + self.future
        x = x + self.output((scores.softmax(-1) @ value).transpose(1, 2).reshape(n, length, width))
        return x + self.narrow(functional.gelu(self.widen(self.before_forward(x))))


def _table(vocabulary: int, width: int) -> Tensor:
    return torch.randn(vocabulary, width) / math.sqrt(width)


class Embedding(nn.Module):
    """Tokens to vectors, plus fixed positions: its only parameter is the table, which a tied head shares."""

    def __init__(self, vocabulary: int, width: int, length: int):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width, _weight=_table(vocabulary, width))
        angle = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
        self.register_buffer("positions", torch.stack([angle.sin(), angle.cos()], 2).view(length, width), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.table(tokens) + self.positions


class LanguageHead(nn.Module):
    """Vectors to the loss of each sample, the mean over its tokens."""

    def __init__(self, vocabulary: int, width: int):
        super().__init__()
        weight = _table(vocabulary, width)
        self.table = nn.Linear(width, vocabulary, bias=False)
        self.table.weight = nn.Parameter(weight)

    def forward(self, x: Tensor, following: Tensor) -> Tensor:
        scores = self.table(functional.layer_norm(x, x.shape[-1:]))
        losses = functional.cross_entropy(scores.flatten(0, 1), following.flatten(), reduction="none")
        return losses.view(following.shape).mean(1)


class Residual(nn.Module):
    """Two convolutions beside a way straight through. Normalised per sample: a microbatch must not change what is learnt."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.after_first, self.after_second = nn.GroupNorm(4, outputs), nn.GroupNorm(4, outputs)
        self.straight = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if (inputs, stride) != (outputs, 1) else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = self.after_second(self.second(self.after_first(self.first(x)).relu()))
        return (y + self.straight(x)).relu()


class Stem(nn.Module):
    def __init__(self, outputs: int):
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(3, outputs, 3, 1, 1, bias=False), nn.GroupNorm(4, outputs)

    def forward(self, image: Tensor) -> Tensor:
        return self.norm(self.convolution(image)).relu()


class ClassHead(nn.Module):
    """A vector, or a picture's mean, to the loss of each sample."""

    def __init__(self, inputs: int, classes: int):
        super().__init__()
        self.linear = nn.Linear(inputs, classes)

    def forward(self, x: Tensor, label: Tensor) -> Tensor:
        pooled = x.mean((2, 3)) if x.dim() == 4 else x
        return functional.cross_entropy(self.linear(functional.layer_norm(pooled, pooled.shape[-1:])), label, reduction="none")


class Join(nn.Module):
    """What the picture's tower and the text's tower say, side by side."""

    def __init__(self, channels: int, width: int, outputs: int):
        super().__init__()
        self.linear = nn.Linear(channels + width, outputs)

    def forward(self, picture: Tensor, text: Tensor) -> Tensor:
        return self.linear(torch.cat([picture.mean((2, 3)), text.mean(1)], 1)).relu()


class Layer(NamedTuple):
    name: str
    kind: str
    make: Callable[[], nn.Module]
    inputs: Tuple[str, ...]       # the layers it reads
    feed: Optional[str] = None    # what it reads of a sample's data besides
    tied_to: Optional[str] = None  # weight group


class Network:
    """Layers in topological order; the last one gives the loss of each sample."""

    def __init__(self, name: str, layers: List[Layer], draw: Callable[[torch.Generator], Dict[str, Tensor]]):
        self.name, self.layers, self._draw = name, {l.name: l for l in layers}, draw
        self.order = [l.name for l in layers]
        self.loss = layers[-1].name
        self.modules = {l.name: self.module(l.name, 0) for l in layers}  # for shapes and sizes, and for profiling
        self.shapes = self._shapes()

    def module(self, name: str, seed: int) -> nn.Module:
        """A layer's own module. Its parameters depend on seed and name (or weight group) alone, not on who else is there."""
        layer = self.layers[name]
        with torch.random.fork_rng():
            torch.manual_seed(_number(seed, layer.tied_to or name))
            return layer.make()

    def tied_modules(self, names: List[str], seed: int) -> Dict[str, nn.Module]:
        """The modules of some layers, where those of a weight group have the same numbers: parameters of their own, so that autograd can
        be asked for the gradient of one use alone."""
        modules = {n: self.module(n, seed) for n in names}
        owners: Dict[str, nn.Module] = {}
        for n in names:
            group = self.layers[n].tied_to
            if group:
                modules[n].table.weight = nn.Parameter(owners.setdefault(group, modules[n]).table.weight.detach())
        return modules

    def samples(self, seed: int, iteration: int, first: int, last: int) -> Dict[str, Tensor]:
        """The data of samples [first, last) of an iteration's batch, each drawn by its own generator."""
        drawn = [self._draw(torch.Generator().manual_seed(_number(seed, f"{iteration}/{i}"))) for i in range(first, last)]
        return {feed: torch.stack([d[feed] for d in drawn]) for feed in drawn[0]}

    def run(self, name: str, module: nn.Module, read: List[Tensor], data: Dict[str, Tensor]) -> Tensor:
        feed = self.layers[name].feed
        return module(*read, *([data[feed]] if feed else []))

    def forward(self, modules: Mapping[str, nn.Module], read: Dict[str, Tensor], data: Dict[str, Tensor]) -> Dict[str, Tensor]:
        """What layers give, by name, from what they read of others: `modules` in topological order."""
        values = dict(read)
        for name, module in modules.items():
            values[name] = self.run(name, module, [values[i] for i in self.layers[name].inputs], data)
        return values

    def readers(self, name: str) -> List[str]:
        return [n for n in self.order if name in self.layers[n].inputs]

    def _shapes(self) -> Dict[str, Tuple[int, ...]]:
        """Of what a layer gives for a sample; the loss has none."""
        with torch.no_grad():
            given = self.forward(self.modules, {}, self.samples(0, 0, 0, 1))
        return {name: tuple(t.shape[1:]) for name, t in given.items()}

    def bytes_of(self, name: str) -> int:
        """What a layer gives for a sample, as it is sent."""
        return FLOAT_BYTES * math.prod(self.shapes[name])

    def weight_of(self, name: str) -> int:
        return FLOAT_BYTES * sum(p.numel() for p in self.modules[name].parameters())

    def edges(self) -> List[Tuple[str, str, int]]:
        return [(i, name, self.bytes_of(i)) for name in self.order for i in self.layers[name].inputs]

    def document(self, profiles: Dict[str, Dict[str, object]], weight_parts: Dict[str, float]) -> Dict[str, object]:
        """hetplan/model/1 with a profile per layer and device kind. A backward's FLOP are shared out by the part of its time that the
        gradients of weights took: by them the profile's backward is shared out again."""
        layers = []
        for name in self.order:
            flops, kept = _amounts(self, name)
            layer = {"name": name, "kind": self.layers[name].kind, "forward_flops": flops, "weight": self.weight_of(name), "activation": kept}
            both = max(2 * flops, 1)  # an embedding multiplies nothing
            layer["backward_weight_flops"] = both * weight_parts[name]
            layer["backward_input_flops"] = both - layer["backward_weight_flops"]
            if self.layers[name].tied_to:
                layer["weight_group"] = self.layers[name].tied_to
            layers.append({**layer, "profile": profiles[name]})
        edges = [{"from": a, "to": b, "bytes": size} for a, b, size in self.edges()]
        return {"format": "hetplan/model/1", "name": self.name, "layers": layers, "edges": edges}

    def require_same(self, file: str, document: Dict[str, object]) -> None:
        """That a model file is of this network: its layers, their weights, and the edges."""
        layers = {l["name"]: l for l in document["layers"]}
        for name in list(layers) + self.order:
            if name not in self.layers or name not in layers:
                where = "no layer of network" if name in layers else "missing layer of network"
                raise BadInput(f'{file}: /layers: layer "{name}": {where} "{self.name}"; expected {", ".join(self.order)}')
            weight = layers[name].get("weight", 0)
            if weight != self.weight_of(name):
                raise BadInput(f'{file}: /layers: layer "{name}": expected weight {self.weight_of(name)} B, got {weight}')
            group = layers[name].get("weight_group")
            if group != self.layers[name].tied_to:
                raise BadInput(f'{file}: /layers: layer "{name}": expected weight group {self.layers[name].tied_to}, got {group}')
        given = {(e["from"], e["to"]): e["bytes"] for e in document.get("edges", [])}
        for a, b, size in self.edges():
            if given.pop((a, b), None) != size:
                raise BadInput(f'{file}: /edges: layer "{a}": expected an edge of {size} B to layer "{b}"')
        for a, b in given:
            raise BadInput(f'{file}: /edges: layer "{a}": network "{self.name}" has no edge to layer "{b}"')


def _number(seed: int, name: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=6).digest(), "big")


def _amounts(network: Network, name: str) -> Tuple[int, int]:
    """FLOP of a sample's forward in linear layers and convolutions, and the bytes that autograd keeps of it (weights left out)."""
    module, data = copy.deepcopy(network.modules[name]), network.samples(0, 0, 0, 1)
    flops, kept = 0, {}

    def count(part: nn.Module, _: object, out: Tensor) -> None:
        nonlocal flops
        flops += 2 * part.weight.numel() * out.numel() // (out.shape[1] if isinstance(part, nn.Conv2d) else out.shape[-1])

    def keep(saved: Tensor) -> Tensor:
        kept[saved.data_ptr()] = saved.numel() * saved.element_size()
        return saved

    for part in module.modules():
        if isinstance(part, (nn.Linear, nn.Conv2d)):
            part.register_forward_hook(count)
    read = [torch.zeros(1, *network.shapes[i]).requires_grad_() for i in network.layers[name].inputs]
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda saved: saved):
        network.run(name, module, read, data)
    weights = {p.data_ptr() for p in module.parameters()} | {b.data_ptr() for b in module.buffers()}
    return flops, sum(size for at, size in kept.items() if at not in weights)


def _tokens(draw: torch.Generator, vocabulary: int, length: int) -> Tensor:
    """Steps of one width through the vocabulary: something that can be learnt."""
    start, step = torch.randint(vocabulary, (1,), generator=draw), torch.randint(1, 5, (1,), generator=draw)
    return (start + step * torch.arange(length)) % vocabulary


def _picture(draw: torch.Generator, label: Tensor, side: int) -> Tensor:
    return torch.randn(3, side, side, generator=draw) + label / 5 - 1


def _transformer(name: str, tied: bool, blocks: int, width: int, heads: int, length: int, vocabulary: int) -> Network:
    group = "tokens" if tied else None
    layers = [Layer("embed", "embedding", lambda: Embedding(vocabulary, width, length), (), "tokens", group)]
    for i in range(blocks):
        layers.append(Layer(f"block{i}", "decoder", lambda: Block(width, heads, length), (layers[-1].name,)))
    layers.append(Layer("head", "head", lambda: LanguageHead(vocabulary, width), (layers[-1].name,), "following", group))

    def draw(generator: torch.Generator) -> Dict[str, Tensor]:
        tokens = _tokens(generator, vocabulary, length + 1)
        return {"tokens": tokens[:-1], "following": tokens[1:]}

    return Network(name, layers, draw)


def _residuals(prefix: str, before: str, widths: List[int]) -> List[Layer]:
    layers = []
    for i, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
        stride = 1 if inputs == outputs else 2
        make = lambda inputs=inputs, outputs=outputs, stride=stride: Residual(inputs, outputs, stride)  # noqa: E731
        layers.append(Layer(f"{prefix}{i}", "residual", make, (layers[-1].name if layers else before,)))
    return layers


def _cnn(name: str, widths: List[int], side: int, classes: int = 10) -> Network:
    layers = [Layer("stem", "convolution", lambda: Stem(widths[0]), (), "picture")] + _residuals("residual", "stem", widths)
    layers.append(Layer("head", "head", lambda: ClassHead(widths[-1], classes), (layers[-1].name,), "label"))

    def draw(generator: torch.Generator) -> Dict[str, Tensor]:
        label = torch.randint(classes, (), generator=generator)
        return {"picture": _picture(generator, label, side), "label": label}

    return Network(name, layers, draw)


def _towers(name: str, widths: List[int], side: int, blocks: int, width: int, heads: int, length: int, vocabulary: int,
            classes: int = 10) -> Network:
    layers = [Layer("stem", "convolution", lambda: Stem(widths[0]), (), "picture")] + _residuals("residual", "stem", widths)
    picture = layers[-1].name
    layers.append(Layer("embed", "embedding", lambda: Embedding(vocabulary, width, length), (), "tokens"))
    for i in range(blocks):
        layers.append(Layer(f"block{i}", "decoder", lambda: Block(width, heads, length), (layers[-1].name,)))
    layers.append(Layer("join", "linear", lambda: Join(widths[-1], width, width), (picture, layers[-1].name)))
    layers.append(Layer("head", "head", lambda: ClassHead(width, classes), ("join",), "label"))

    def draw(generator: torch.Generator) -> Dict[str, Tensor]:
        label = torch.randint(classes, (), generator=generator)
        return {"picture": _picture(generator, label, side), "tokens": (_tokens(generator, vocabulary, length) + label) % vocabulary, "label": label}

    return Network(name, layers, draw)


NETWORKS: Dict[str, Callable[[], Network]] = {
    "transformer": lambda: _transformer("transformer", False, 6, 256, 4, 128, 1024),
    "transformer-tied": lambda: _transformer("transformer-tied", True, 6, 256, 4, 128, 1024),
    "cnn": lambda: _cnn("cnn", [32, 32, 32, 64, 64, 128, 128], 32),
    "towers": lambda: _towers("towers", [32, 32, 64, 64], 32, 3, 128, 4, 64, 512),
    # The same shapes, small enough for tests.
    "transformer-small": lambda: _transformer("transformer-small", False, 3, 32, 2, 16, 64),
    "transformer-tied-small": lambda: _transformer("transformer-tied-small", True, 3, 32, 2, 16, 64),
    "cnn-small": lambda: _cnn("cnn-small", [8, 8, 16, 16], 16),
    "towers-small": lambda: _towers("towers-small", [8, 8, 16], 16, 2, 32, 2, 16, 64),
}


def network_named(name: str, where: str) -> Network:
    if name not in NETWORKS:
        raise BadInput(f'{where}: expected a built-in network ({", ".join(NETWORKS)}), got "{name}"')
    return NETWORKS[name]()
