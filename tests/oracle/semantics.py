# SPDX-License-Identifier: BSL-1.0
"""The simulator specification once more, slowly: an oracle for the library.

It reads {"model": ..., "cluster": ..., "plan": ...}, runs the plan as semantics.md says and prints
latency, energy, peak memory, busy time, bytes per resource, the span of each device (from its first
start to the end of its last task), the largest of them as the period and, in generation, the time to the
first token, the time between tokens, and tokens per second. It shares no code with the library and prefers
being checkable over being fast: every part names the paragraph (§) of semantics.md that it follows, and §L1
to §L3 are those of language.md, which amends it. File formats are those of docs/reference/files.md.

    semantics.py [FILE]              one case, from FILE or standard input
    semantics.py --check FILE        a file of cases with "expected": report the largest deviation; of those
                                     under "refused", how many are bad input
    semantics.py --fluid FILE        finish times of flow scenarios: the fluid engine alone

A file {"cases": [...]} gives {"results": [...]}. Exit status: 0 done, 1 a check failed, 2 bad input.
"""
import heapq
import itertools
import json
import math
import re
import sys
from dataclasses import dataclass, field

SAME_TIME = 1e-12   # events whose times agree within this relative distance happen together
CHECK = 1e-9        # §9: relative tolerance of checks
SHARES = -1         # stands for the sender in the index of gathers and scatters: before a stage's other flows


class BadInput(Exception):
    """The case breaks a rule of §2-§5 that the simulation relies on."""


def require(condition, message):
    if not condition:
        raise BadInput(message)


# ---------------------------------------------------------------------------------------- §1 units

PREFIX = {"": 1.0, "n": 1e-9, "u": 1e-6, "\u00b5": 1e-6, "\u03bc": 1e-6, "m": 1e-3, "k": 1e3,
          "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}
UNIT = {"s": 1.0, "min": 60.0, "h": 3600.0, "B": 1.0, "bit": 1 / 8, "FLOP": 1.0, "J": 1.0,
        "Wh": 3600.0, "W": 1.0}
QUANTITY = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?) ?"
                      r"(Ki|Mi|Gi|[nu\u00b5\u03bcmkMGT])?(min|bit|FLOP|Wh|s|h|B|J|W)(/s|/B)?")


def quantity(value):
    """A number (SI) or a string with a unit; `per second` and `per byte` have factor 1."""
    if isinstance(value, str):
        match = QUANTITY.fullmatch(re.sub("bps$", "bit/s", value))
        require(match, f"not a quantity: {value!r}")
        number, prefix, unit, _ = match.groups()
        require(len(prefix or "") < 2 or unit == "B", f"binary prefix without bytes: {value!r}")
        return float(number) * PREFIX[prefix or ""] * UNIT[unit]
    require(isinstance(value, (int, float)) and not isinstance(value, bool), f"not a number: {value!r}")
    return float(value)


# ---------------------------------------------------------------------------------------- §2 model

FORWARD, BACKWARD_INPUT, BACKWARD_WEIGHT = "F", "B", "W"
# §L2: what stands for a precision that a device does not list, first the first
SUBSTITUTES = {"int4": ["int8", "bf16", "fp16", "tf32", "fp32"], "int8": ["bf16", "fp16", "tf32", "fp32"],
               "fp8": ["bf16", "fp16", "tf32", "fp32"], "bf16": ["fp16", "tf32", "fp32"],
               "fp16": ["bf16", "tf32", "fp32"], "tf32": ["fp32"], "fp32": []}


def whole_number(value, least, what):
    require(isinstance(value, int) and not isinstance(value, bool) and value >= least, f"{what}: {value!r}")
    return value


@dataclass(frozen=True)
class Round:
    """What all stages do for a group at once (§L3): a whole sample, a chunk of the prompt or a step."""
    number: int
    position: int           # 0: the prompt (or the sample), k: the k-th step; with P = 0 steps begin with 0
    new: int                # n, tokens of each sequence
    context: int            # c, tokens before them; of a step rounded up
    first: bool             # request layers run
    last: bool              # layers of the last token run
    cached: bool            # generation: earlier tokens are in a cache


@dataclass(frozen=True)
class Experts:
    total: int              # E
    active: int             # k, of each token
    weight: float           # of all of them

    def read(self, tokens):
        """Bytes of the distinct experts that so many tokens ask for, each k of E alike (§L2)."""
        return self.weight * (1 - (1 - self.active / self.total) ** tokens)


@dataclass
class Layer:
    name: str
    weight: float
    trainable: bool
    weight_traffic: float
    tensor: tuple           # what the weights are: shared by the members of a weight group
    flops: dict             # phase -> FLOP per sample
    activation: float
    forward_activation: float   # outside training
    activation_for_weights: float
    traffic: float
    backward_traffic: float     # of B
    kv_bytes_per_token: float
    largest_out: float      # largest out-edge, for tensor parallelism (§4)
    split: str              # how the columns of a grid share it: columns, rows, along or none
    units: int              # heads or experts, which a column takes whole; 0: it may take any part
    profile: dict           # device kind -> {"batch": [...], "forward": [...], "backward": [...]}
    tokens: int             # for how many tokens its amounts are given: T, of a request layer 1 (§L1)
    per_request: bool
    attention_flops: float  # a, for each pair of a token and one that it sees
    full: bool              # attention: full, else causal
    window: float           # w, tokens that one sees at most
    last_token: bool
    experts: Experts        # or None
    degrees: list           # of tensor parallelism that are allowed besides 1; none: any
    attention_traffic: float    # bytes for each pair
    calls: int
    workspace: float        # bytes per token
    forward_workspace: float    # the same outside training
    scratch: float          # bytes whatever the tokens
    block: int              # of layers that can be run again together, or None
    parameter: float        # bytes of one
    rows: float             # of its product in a sample, of a request layer in a request

    def fraction(self, part):
        """What a device of a grid has of this layer: its column's, or everything where it does not split."""
        return 1.0 if self.split == "none" else part.fraction

    def runs(self, at):
        """§L1: request layers in the first chunk of a prompt only, those of the last token in the last only,
        and in steps."""
        return at.first if self.per_request else at.last if self.last_token else True

    def new(self, at):
        """Tokens of a sequence that it computes in a round. The last token alone is a matter of generation:
        training and inference compute all T (§L2). A request layer counts as one."""
        return 1 if self.per_request or (self.last_token and at.cached) else at.new

    def share(self, at):
        """What that is of the amounts in its fields."""
        return self.new(at) / self.tokens

    def pairs(self, at):
        """Pairs of new tokens and those that they see (§L1). The last token alone comes after the others
        of its chunk (§L2)."""
        new = self.new(at)
        return self.pairs_of(new, at.context + at.new - new)

    def pairs_of(self, new, context):
        if self.full:
            return new * min(self.window, new + context)
        growing = max(0, min(new, self.window - context))   # as many see fewer than w
        return growing * context + growing * (growing + 1) / 2 + (
            (new - growing) * self.window if new > growing else 0)

    def ratio(self, phase):
        """B and W scale like the forward, their attention as well (§L1)."""
        return self.flops[phase] / self.flops[FORWARD] if self.flops[FORWARD] > 0 else 0.0

    def linear_flops(self, phase):
        """What is left without attention, for all T tokens."""
        return max(0.0, self.flops[phase] - self.attention_flops * self.ratio(phase) * self.pairs_of(self.tokens, 0))

    def weights_read(self, tokens):
        """Weights that a call for so many tokens reads (§L2)."""
        if self.experts is None:
            return self.weight_traffic
        return self.weight_traffic - self.experts.weight + self.experts.read(tokens)

    def cache_moved(self, at):
        """Bytes of a sequence's cache that are read, and the new ones that are written (§L2)."""
        if not at.cached:
            return 0.0
        return self.kv_bytes_per_token * (min(self.window, at.context + at.new) + self.new(at))

    def cache_held(self, tokens):
        return self.kv_bytes_per_token * min(self.window, tokens)


@dataclass
class Edge:
    source: str
    target: str
    bytes: float
    gradient: float


class Model:
    def __init__(self, document):
        self.edges = [Edge(e["from"], e["to"], quantity(e["bytes"]),
                           quantity(e.get("gradient", e["bytes"]))) for e in document.get("edges", [])]
        self.tokens = whole_number(document.get("tokens_per_sample", 1), 1, "tokens_per_sample")
        self.weight_format = document.get("weight_format")
        self.parameter = quantity(document.get("bytes_per_parameter", 4))
        wide = self.parameter >= 4
        self.precision = document.get("precision", "fp32" if wide else "bf16")     # §L2
        require(self.precision in SUBSTITUTES, f"precision {self.precision}")
        self.layers = {}
        for entry in document["layers"]:
            layer = self._layer(entry)
            require(layer.name not in self.layers, f"layer {layer.name} twice")
            self.layers[layer.name] = layer
        self._check_blocks()
        for e in self.edges:    # §L1, rules
            source, target = self.layers[e.source], self.layers[e.target]
            require(source.per_request or not target.per_request,
                    f"layer {e.target}: per request behind {e.source}, which is per token")
            require(target.last_token or not source.last_token,
                    f"layer {e.target}: all tokens behind {e.source}, which has last_token")

    def _check_blocks(self):
        """Layers of a block follow each other."""
        blocks = [l.block for l in self.layers.values()]
        for i, block in enumerate(blocks):
            require(block is None or block not in blocks[:i] or blocks[i - 1] == block, f"block {block} in parts")

    def _layer(self, entry):
        name = entry["name"]
        into = [e.bytes for e in self.edges if e.target == name]
        out = [e.bytes for e in self.edges if e.source == name]
        weight = quantity(entry.get("weight", 0))
        trainable = entry.get("trainable", True)
        forward = quantity(entry.get("forward_flops", 0))
        backward = quantity(entry.get("backward_input_flops", forward))
        traffic = quantity(entry.get("traffic", sum(into) + max(out, default=0.0)))
        activation = quantity(entry.get("activation", 0))
        for_weights = quantity(entry.get("activation_for_weights", activation))
        require(0 <= for_weights <= activation, f"layer {name}: activation_for_weights")
        weight_default = forward if weight > 0 and trainable else 0
        group = entry.get("weight_group")
        made = Layer(
            name=name, weight=weight, trainable=trainable,
            weight_traffic=quantity(entry.get("weight_traffic", weight)),
            tensor=("layer", name) if group is None else ("group", group),
            flops={FORWARD: forward,
                   BACKWARD_INPUT: backward,
                   BACKWARD_WEIGHT: quantity(entry.get("backward_weight_flops", weight_default))},
            activation=activation, forward_activation=quantity(entry.get("forward_activation", activation)),
            activation_for_weights=for_weights, parameter=self.parameter,
            traffic=traffic,
            backward_traffic=quantity(entry.get("backward_traffic", traffic if backward > 0 else 0)),
            kv_bytes_per_token=quantity(entry.get("kv_bytes_per_token", 0)),
            largest_out=max(out, default=0.0),
            split=self._split(name, entry, weight), units=entry.get("units", 0),
            profile={kind: {key: [quantity(v) for v in values] for key, values in table.items()}
                     for kind, table in (entry.get("profile") or {}).items()},
            **self._language(name, entry))
        self._check(made, entry)
        return made

    def _language(self, name, entry):
        """The fields of §L1."""
        per, attention = entry.get("per", "token"), entry.get("attention", "causal")
        require(per in ("token", "request"), f"layer {name}: per {per!r}")
        require(attention in ("causal", "full"), f"layer {name}: attention {attention!r}")
        experts, amounts = entry.get("experts"), {}
        if experts is not None:
            experts = Experts(whole_number(experts["total"], 1, f"layer {name}: experts.total"),
                              whole_number(experts["active"], 1, f"layer {name}: experts.active"),
                              quantity(experts["weight"]))
        for key in ("attention_flops", "attention_traffic", "workspace", "scratch", "forward_workspace"):
            amounts[key] = quantity(entry.get(key, 0))
            require(amounts[key] >= 0, f"layer {name}: {key}")
        rows = quantity(entry.get("rows", 1 if per == "request" else self.tokens))
        require(0 < rows < math.inf, f"layer {name}: rows")
        if entry.get("block") is not None:
            whole_number(entry["block"], 0, f"layer {name}: block")
        window, last_token = entry.get("window", math.inf), entry.get("last_token", False)
        require(isinstance(last_token, bool), f"layer {name}: last_token")
        return {"tokens": 1 if per == "request" else self.tokens, "per_request": per == "request",
                "full": attention == "full",
                "window": window if window == math.inf else whole_number(window, 1, f"layer {name}: window"),
                "last_token": last_token, "experts": experts, "rows": rows, "block": entry.get("block"),
                "degrees": [whole_number(g, 1, f"layer {name}: degrees") for g in entry.get("degrees", [])],
                "calls": whole_number(entry.get("calls", 1), 1, f"layer {name}: calls"), **amounts}

    @staticmethod
    def _check(layer, entry):
        """§L1, rules."""
        where, forward = f"layer {layer.name}", layer.flops[FORWARD]
        attention = layer.attention_flops * layer.pairs_of(layer.tokens, 0)
        require(forward - attention >= -CHECK * forward, f"{where}: attention_flops of more than forward_flops")
        if layer.per_request:
            for key in ("attention_flops", "attention_traffic", "attention", "window", "last_token", "kv_bytes_per_token"):
                require(not entry.get(key) or entry[key] == "causal", f"{where}: per request with {key}")
        if layer.experts is not None:
            require(layer.experts.active <= layer.experts.total, f"{where}: experts.active")
            require(0 <= layer.experts.weight <= min(layer.weight, layer.weight_traffic), f"{where}: experts.weight")

    @staticmethod
    def _split(name, entry, weight):
        split = entry.get("split", weight > 0)
        if isinstance(split, bool):
            split = "rows" if split else "none"
        require(split in ("columns", "rows", "along", "none"), f"layer {name}: split {split}")
        require(split != "along" or weight == 0, f"layer {name}: split along with weights")
        return split


# -------------------------------------------------------------------------------------- §3 cluster

@dataclass
class Tier:
    """Memory below a device's own, where a plan may put weights (§3)."""
    memory: float
    bandwidth: float
    resource: object        # its name, or None


@dataclass
class Device:
    index: int
    name: str
    kind: str
    compute: object         # a number, or a dict by precision (§L2)
    memory_bandwidth: float
    half: float             # half_rows or half_batch
    counts_rows: bool       # half_rows, which counts tokens; half_batch counts samples
    launch: float
    efficiency: object      # a number, or a dict by weight format
    memory_efficiency: object
    cache_efficiency: float
    overhead: float         # of each task
    send_overhead: float    # of each flow
    memory_overhead: float
    accelerators: int
    interconnect: float
    idle: float
    active: float
    memory: float           # power while memory is the limit of the work
    send: float
    receive: float
    tiers: dict             # name -> Tier (§3)

    def peak(self, model):
        """FLOP/s that the model's work attains at best (§L2)."""
        compute = self.compute
        if isinstance(compute, dict):
            known = [p for p in [model.precision, *SUBSTITUTES[model.precision]] if p in compute]
            require(known, f"device {self.name}: compute: nothing for precision {model.precision}")
            compute = compute[known[0]]
        require(not math.isnan(compute), f"device {self.name} has no compute")
        return compute * self._by_format(self.efficiency, model, "efficiency")

    def bandwidth(self, model):
        return self.memory_bandwidth * self._by_format(self.memory_efficiency, model, "memory_efficiency")

    def _by_format(self, share, model, key):
        if not isinstance(share, dict):
            return share
        found = share.get(model.weight_format, share.get("other"))
        require(found is not None, f"device {self.name}: {key}: nothing for weight_format {model.weight_format}")
        return found


def attained(value, what):
    """A share of peak in (0, 1]."""
    found = quantity(value)
    require(0 < found <= 1, f"{what}: {value!r}")
    return found


@dataclass
class Route:
    latency: float
    uses: dict              # resource name -> weight; empty: infinitely fast after the latency


class Cluster:
    def __init__(self, document):
        self.devices = [self._device(i, d) for i, d in enumerate(document["devices"])]
        self.by_name = {d.name: d for d in self.devices}
        self.capacity = {}      # resource name -> B/s
        self._listed = []       # explicit routes: (from, to, Route), in file order
        self._built = {}        # routes of a built-in topology: (device, device) -> Route
        if "topology" in document:
            self._topology(document["topology"])
        for entry in document.get("resources", []):
            self.capacity[entry["name"]] = quantity(entry["capacity"])
        for entry in document.get("routes", []):
            uses = {}
            for hop in entry["via"]:    # a resource listed twice adds its weights
                require(hop["resource"] in self.capacity, f"unknown resource {hop['resource']}")
                uses[hop["resource"]] = uses.get(hop["resource"], 0.0) + quantity(hop.get("weight", 1))
            self._listed.append((entry["from"], entry["to"],
                                 Route(quantity(entry.get("latency", 0)), uses)))
        for device in self.devices:
            for tier in device.tiers.values():
                require(tier.resource is None or tier.resource in self.capacity, f"device {device.name}: tiers: resource")

    @staticmethod
    def _device(index, entry):
        power, where = entry.get("power", {}), f"device {entry['name']}"
        idle = quantity(power.get("idle", 0))
        active = quantity(power.get("active", idle))
        memory = quantity(power.get("memory", active))
        require(active >= idle and memory >= idle, f"{where}: power")
        compute, shares, overheads = entry.get("compute", math.nan), {}, {}
        if isinstance(compute, dict):
            require(compute and all(p in SUBSTITUTES for p in compute), f"{where}: compute: unknown precision")
            compute = {p: quantity(v) for p, v in compute.items()}
        else:
            compute = quantity(compute)
        for key in ("efficiency", "memory_efficiency"):
            share = entry.get(key, 1)
            shares[key] = ({f: attained(v, f"{where}: {key}") for f, v in share.items()} if isinstance(share, dict)
                           else attained(share, f"{where}: {key}"))
        for key in ("overhead", "send_overhead", "memory_overhead"):
            overheads[key] = quantity(entry.get(key, 0))
            require(overheads[key] >= 0, f"{where}: {key}")
        require("half_rows" not in entry or "half_batch" not in entry, f"{where}: half_rows and half_batch")
        tiers = {}
        for t in entry.get("tiers", []):
            require(t["name"] and t["name"] not in tiers, f"{where}: tiers: {t['name']}")
            tiers[t["name"]] = Tier(quantity(t["memory"]), quantity(t["bandwidth"]), t.get("resource"))
            require(all(0 < v < math.inf for v in (tiers[t["name"]].memory, tiers[t["name"]].bandwidth)), f"{where}: tiers")
        return Device(index=index, name=entry["name"], kind=entry.get("kind", entry["name"]), tiers=tiers,
                      compute=compute, memory_bandwidth=quantity(entry.get("memory_bandwidth", math.inf)),
                      half=quantity(entry.get("half_rows", entry.get("half_batch", 0))),
                      counts_rows="half_rows" in entry, **shares, **overheads,
                      cache_efficiency=attained(entry.get("cache_efficiency", 1), f"{where}: cache_efficiency"),
                      launch=quantity(entry.get("launch", 0)),
                      accelerators=entry.get("accelerators", 1),
                      interconnect=quantity(entry.get("interconnect", math.nan)),
                      idle=idle, active=active, memory=memory,
                      send=quantity(power.get("send", 0)), receive=quantity(power.get("receive", 0)))

    def _topology(self, entry):
        """The built-in topologies, spelled out as one route per ordered pair (§3)."""
        kind, capacity = entry["kind"], quantity(entry["capacity"])
        latency, half = quantity(entry.get("latency", 0)), entry.get("duplex", "full") == "half"
        names = [d.name for d in self.devices]
        count = len(names)

        def wire(i, j):         # a wire of a ring or mesh, in the direction i -> j
            return (f"{names[min(i, j)]}--{names[max(i, j)]}" if half else f"{names[i]}->{names[j]}")

        def port(name, way):    # the link of a device (star) or of a group (hierarchical)
            return f"{name}.link" if half else f"{name}.{way}"

        def connect(i, j, resources, delay):
            for resource in resources:
                self.capacity.setdefault(resource, capacity)
            self._built[names[i], names[j]] = Route(delay, {r: 1.0 for r in resources})

        pairs = [(i, j) for i in range(count) for j in range(count) if i != j]
        if kind == "shared":
            self.capacity["shared"] = capacity
            for i, j in pairs:
                connect(i, j, ["shared"], latency)
        elif kind == "mesh":
            for i, j in pairs:
                connect(i, j, [wire(i, j)], latency)
        elif kind == "star":
            for i, j in pairs:
                connect(i, j, [port(names[i], "up"), port(names[j], "down")], latency)
        elif kind == "ring":
            for i, j in pairs:
                onward = (j - i) % count    # hops in device order; that way on a tie
                step, hops = (1, onward) if onward <= count - onward else (-1, count - onward)
                path = [(i + step * h) % count for h in range(hops + 1)]
                connect(i, j, [wire(a, b) for a, b in zip(path, path[1:])], latency * hops)
        elif kind == "hierarchical":
            group_of = {}
            for group in entry["groups"]:
                self.capacity[group["name"]] = quantity(group["capacity"])
                for name in group["devices"]:
                    require(name in self.by_name and name not in group_of, f"group member {name}")
                    group_of[name] = group
            require(len(group_of) == count, "a device without a group")
            for i, j in pairs:
                a, b = group_of[names[i]], group_of[names[j]]
                near = quantity(a.get("latency", 0))
                if a is b:
                    connect(i, j, [a["name"]], near)
                else:
                    connect(i, j, [a["name"], port(a["name"], "up"), port(b["name"], "down"), b["name"]],
                            near + latency + quantity(b.get("latency", 0)))
        else:
            raise BadInput(f"unknown topology {kind}")

    def route(self, source, target):
        """Both ends named wins over one end, over `*`; the first listed on a tie."""
        if (source.name, target.name) in self._built:
            return self._built[source.name, target.name]
        best, best_rank = None, -1
        for start, end, route in self._listed:
            if start in (source.name, "*") and end in (target.name, "*"):
                rank = (start != "*") + (end != "*")
                if rank > best_rank:
                    best, best_rank = route, rank
        require(best is not None, f"no route from {source.name} to {target.name}")
        return best


# ----------------------------------------------------------------------------------------- §4 cost

def interpolate(batches, seconds, batch):
    """Clamped below the first entry, extrapolated with the last slope above the last."""
    if len(batches) == 1 or batch <= batches[0]:
        return seconds[0]
    above = next((i for i, b in enumerate(batches) if batch <= b), len(batches) - 1)
    slope = (seconds[above] - seconds[above - 1]) / (batches[above] - batches[above - 1])
    found = seconds[above - 1] + slope * (batch - batches[above - 1])
    require(found >= 0, f"a falling last slope that gives {found} s at batch {batch}")
    return found


def reads_weights(layer, phase, kind):
    """Does a call read the weights of its layer? (§4)"""
    flops = layer.flops[phase]
    if phase == FORWARD:
        return True
    if kind in layer.profile:
        both = layer.flops[BACKWARD_INPUT] + layer.flops[BACKWARD_WEIGHT]
        return flops > 0 or both == 0
    return flops > 0 or (phase == BACKWARD_INPUT and layer.backward_traffic > 0)


def bytes_read(layer, batch, part, at):
    """Weights that a call with this batch reads: of experts the expected distinct ones, of a grid the column's."""
    return layer.fraction(part) * layer.weights_read(batch * layer.new(at))


def layer_seconds(model, layer, phase, batch, part, at, tier):
    """One layer, one phase (F, B: the input part, W: the weight part) of one round on one device of its stage: its
    seconds, and those of them in which memory is the limit. The weights lie in a tier below the device's memory, or
    in that (None); from a tier with a resource they have come before."""
    seconds, by_memory = layer_seconds_alone(model, layer, phase, batch, part, at, tier is None)
    if tier is not None and tier.resource is None and reads_weights(layer, phase, part.device.kind):
        reading = bytes_read(layer, batch, part, at) / tier.bandwidth
        return seconds + reading, by_memory + reading
    return seconds, by_memory


def layer_seconds_alone(model, layer, phase, batch, part, at, in_memory):
    device, degree, fraction = part.device, part.degree, layer.fraction(part)
    flops, share = layer.flops[phase], layer.share(at)
    table = layer.profile.get(device.kind)
    if table is not None:
        require(degree == 1, f"profiled layer {layer.name} with tensor parallelism")
        asked = batch * share       # §L2: b·n where T = 1; elsewhere no generation comes here, and it is b
        if phase == FORWARD:
            return interpolate(table["batch"], table["forward"], asked), 0.0
        both = layer.flops[BACKWARD_INPUT] + layer.flops[BACKWARD_WEIGHT]
        of_both = flops / both if both > 0 else 0.5
        return of_both * interpolate(table["batch"], table["backward"], asked), 0.0
    traffic = layer.backward_traffic if phase == BACKWARD_INPUT else layer.traffic
    if phase != FORWARD and flops == 0 and not (phase == BACKWARD_INPUT and traffic > 0):
        return 0.0, 0.0     # not even the launch; a forward always counts
    compute, bandwidth = device.peak(model), device.bandwidth(model)
    # §L2: b·f·n·(r + h)/r with r = b·n·rows/T, or with r = b, where the b of numerator and rows is cancelled
    half = device.half / (layer.rows * share) if device.counts_rows else device.half
    arithmetic = fraction * layer.linear_flops(phase) * share / degree * (batch + half) / compute
    weights = bytes_read(layer, batch, part, at) if in_memory else 0.0
    movement = (weights + fraction * traffic * batch * share) / degree / bandwidth
    seconds = max(arithmetic, movement) + device.launch * layer.calls
    by_memory = movement if movement > arithmetic else 0.0
    # attention is a kernel of its own
    pairs = layer.pairs(at)
    arithmetic = fraction * batch * layer.attention_flops * layer.ratio(phase) * pairs / degree / compute
    movement = fraction * batch * (layer.cache_moved(at) / device.cache_efficiency
                                   + layer.attention_traffic * pairs) / degree / bandwidth
    seconds += max(arithmetic, movement)
    by_memory += movement if movement > arithmetic else 0.0
    if degree > 1 and phase in (FORWARD, BACKWARD_INPUT) and flops > 0:
        require(not math.isnan(device.interconnect), f"device {device.name} has no interconnect")
        seconds += 2 * (degree - 1) / degree * layer.largest_out * batch * share / device.interconnect
    return seconds, by_memory


def stage_seconds(model, stage, layers, phases, batch, part, at):
    """All layers in all phases: seconds, and those in which memory is the limit."""
    each = [layer_seconds(model, layer, phase, batch, part, at, stage.tier(layer, part)) for layer in layers
            for phase in phases]
    return sum(s for s, _ in each), sum(m for _, m in each)


# ----------------------------------------------------------------------------------------- §5 plan

@dataclass
class Part:
    """One device of a stage: it owns samples [offset, offset + samples) of each microbatch, as do the
    others of its row in a grid; elsewhere every device is a row of its own."""
    device: Device
    samples: int
    degree: int
    offset: int
    row: int
    column: int
    fraction: float         # of what splits, over the columns of a grid


@dataclass
class Stage:
    index: int
    name: str
    pipeline: int
    layers: list
    parts: list
    size: int               # B_s, samples of one microbatch
    count: int              # M_s, microbatches of an iteration
    first: int              # where the range of its pipeline starts in the global batch
    recompute: object       # False, True or "blocks"
    shard_state: bool
    shard: str              # fsdp, zero2 or none
    units: list             # of layers, for fsdp and zero2
    boundaries: dict        # phase -> samples of the pipeline at which its passes begin, and the last end
    offload: dict           # layer name -> tier name

    def tier(self, layer, part):
        """The tier in which a device of the stage has a layer's weights; None: its memory."""
        return part.device.tiers[self.offload[layer.name]] if layer.name in self.offload else None

    def passes(self, phase):
        return len(self.boundaries[phase]) - 1

    def span(self, phase, m):
        """The samples of a pass over all devices, within the pipeline."""
        return self.boundaries[phase][m], self.boundaries[phase][m + 1]

    def interval(self, part, phase, m):
        """The samples of a pass that one device takes, within the global batch: shares scale with it."""
        low, high = self.span(phase, m)
        start = self.first + low + part.offset * (high - low) // self.size
        return start, start + part.samples * (high - low) // self.size

    def own_forwards(self, phase, m):
        """The forward passes whose samples a backward pass goes through."""
        low, high = self.span(phase, m)
        return [f for f in range(self.passes(FORWARD))
                if self.span(FORWARD, f)[0] < high and self.span(FORWARD, f)[1] > low]

    def rows(self):
        return [[p for p in self.parts if p.row == i] for i in range(self.parts[-1].row + 1)]

    def columns(self):
        return [[p for p in self.parts if p.column == j] for j in range(self.parts[-1].column + 1)]

    def blocks(self):
        """Its layers by block, where they keep something that can be run again (§2)."""
        found = {}
        for layer in self.layers:
            if layer.block is not None:
                found.setdefault(layer.block, []).append(layer)
        return [block for block in found.values() if any(l.activation > 0 for l in block)]

    def again(self, layers):
        """Of these layers, those whose forward a backward begins with."""
        if self.recompute == "blocks":
            return [l for l in layers if any(l in block for block in self.blocks())]
        return layers if self.recompute else []

    def tensors(self):
        """Distinct weight tensors: tensor -> layer; a weight group counts once (§2)."""
        return distinct(self.layers)

    def trainable_weight(self, part):
        """What a device of the stage has of the gradients."""
        return sum(l.weight * l.fraction(part) for l in self.tensors().values() if l.trainable)


def distinct(layers):
    return {layer.tensor: layer for layer in layers}


# Bytes of a parameter: weights, their copy in low precision, gradient and optimizer (§2); b in the model's format.
OPTIMIZERS = {
    "adamw": lambda b: (b, 0, b, 2 * b),
    "adamw-amp": lambda b: (4, 2, 4, 8),
    "adamw-8bit": lambda b: (b, 0, b, 2 + 8 / 256),
    "sgd": lambda b: (b, 0, b, 0),
    "sgd-amp": lambda b: (4, 2, 4, 0),
    "sgd-momentum": lambda b: (b, 0, b, b),
    "sgd-momentum-amp": lambda b: (4, 2, 4, 4),
}


def unit_weight(unit, trainable):
    return sum(l.weight for l in distinct(unit).values() if l.trainable or not trainable)


class Plan:
    def __init__(self, document, model, cluster):
        self.mode, self.model = document["mode"], model
        require(self.mode in ("training", "inference", "generation"), f"mode {self.mode}")
        workload = document.get("workload", {})
        self.optimizer_factor = quantity(workload.get("optimizer_factor", 2))
        self.optimizer = workload.get("optimizer")
        require(self.optimizer is None or (self.optimizer in OPTIMIZERS and "optimizer_factor" not in workload), "optimizer")
        self._rounds(workload, model)
        self.size, self.count = document["microbatch_size"], document["microbatches"]
        self.schedule = document.get("schedule", {}).get("kind", "1f1b")
        self.warmup = document.get("schedule", {}).get("warmup")
        self.orders = document.get("schedule", {}).get("orders", {})
        self.network = document.get("network", "fair_share")
        self.transfers = document.get("transfers", "overlap")
        require(self.transfers in ("overlap", "block"), f"transfers {self.transfers}")
        self.copies = document.get("copies", "per_edge")
        require(self.copies in ("per_edge", "per_device"), f"copies {self.copies}")
        self.flow_entries = document.get("flows", [])
        sync = document.get("sync", "ring")
        self.server = cluster.by_name[sync["parameter_server"]] if isinstance(sync, dict) else None

        pipelines = document.get("pipelines") or [
            {"samples": self.size * self.count, "stages": document["stages"]}]
        require(sum(p["samples"] for p in pipelines) == self.size * self.count, "samples of pipelines")
        self.stages, first = [], 0
        for number, pipeline in enumerate(pipelines):
            for entry in pipeline["stages"]:
                self.stages.append(self._stage(entry, number, pipeline["samples"], first, model, cluster))
            held = [l.name for s in self.stages if s.pipeline == number for l in s.layers]
            require(sorted(held) == sorted(model.layers), f"pipeline {number}: each layer in one stage")
            first += pipeline["samples"]
        for s in self.stages:
            held = {tensor for tensor, layer in s.tensors().items() if layer.weight > 0}
            alone = not any(held & t.tensors().keys() for t in self.stages if t is not s)
            require(alone or (s.shard == "none" and len(s.columns()) == 1),
                    f"stage {s.index}: a grid, fsdp or zero2 with a tensor of another stage")
        if self.mode == "generation":
            self._check_generation(model)
        self._check_offload()
        self._cuts(model)

    def _check_offload(self):
        """§5: frozen weights of the stage's own layers, in tiers that each of its devices has and where they fit."""
        held = {}       # (device, tier) -> tensor -> bytes
        for s in self.stages:
            for layer in s.layers:
                if layer.name not in s.offload:
                    continue
                require(self.mode != "training" or not layer.trainable or layer.weight == 0, f"stage {s.index}: offload: trained")
                require(s.shard == "none", f"stage {s.index}: offload under {s.shard}")
                for p in s.parts:
                    tier = s.offload[layer.name]
                    require(tier in p.device.tiers, f"stage {s.index}: offload: tier {tier}")
                    require(self.transfers == "overlap" or p.device.tiers[tier].resource is None,
                            f"stage {s.index}: offload: reads over a resource beside transfers that block")
                    here = held.setdefault((p.device.name, tier), {})
                    here[layer.tensor] = max(here.get(layer.tensor, 0.0), layer.weight * layer.fraction(p))
            require(not set(s.offload) - {l.name for l in s.layers}, f"stage {s.index}: offload: no layer of the stage")
            for p in s.parts:
                for name, tier in p.device.tiers.items():
                    full = sum(held.get((p.device.name, name), {}).values())
                    require(full <= tier.memory * (1 + CHECK), f"stage {s.index}: offload: tier {name} is too full")

    def _rounds(self, workload, model):
        """§L3: chunks of the prompt, then steps. Training and inference ask for a whole sample once (§L2)."""
        self.whole = Round(0, 0, model.tokens, 0, True, True, False)
        self.rounds = [self.whole]
        if self.mode != "generation":
            return
        self.prompt = whole_number(workload.get("prompt", model.tokens if model.tokens > 1 else 0), 0, "prompt")
        self.tokens = whole_number(workload.get("tokens", 16), 1, "tokens")
        self.context = whole_number(workload.get("context", 0), 0, "context")
        chunk = whole_number(workload.get("prompt_chunk", max(1, self.prompt)), 1, "prompt_chunk")
        self.in_flight = workload.get("chunks_in_flight")
        require(self.in_flight is None or whole_number(self.in_flight, 1, "chunks_in_flight"), "chunks_in_flight")
        starts = range(0, self.prompt, chunk)
        self.rounds = [Round(j, 0, min(chunk, self.prompt - start), self.context + start, j == 0, j == len(starts) - 1,
                             True) for j, start in enumerate(starts)]
        self.chunks = len(self.rounds)
        before, coarse = self.context + self.prompt, max(1, -(-self.tokens // 16))
        for i in range(self.tokens - (1 if self.prompt else 0)):
            self.rounds.append(Round(self.chunks + i, i + (1 if self.prompt else 0), 1,
                                     before + -(-i // coarse) * coarse, False, True, True))
        full = [l.name for l in model.layers.values() if l.full]
        require(not full or self.chunks <= 1, f"prompt_chunk: layer {full[:1]} of full attention in chunks")

    def _check_generation(self, model):
        require(not all(l.per_request for l in model.layers.values()), "per: generation needs a layer per token")
        for s in self.stages:
            sizes = {t.size for t in self.stages if t.pipeline == s.pipeline}
            require(len(sizes) == 1, f"stage {s.index}: microbatch_size: pipelines have one in generation")
            for layer in s.layers:      # §L2
                require(model.tokens == 1 or not any(p.device.kind in layer.profile for p in s.parts),
                        f"layer {layer.name}: profile of several tokens in generation")

    def _stage(self, entry, pipeline, samples, first, model, cluster):
        index = len(self.stages)
        layers = [model.layers[name] for name in entry["layers"]]
        size = entry.get("microbatch_size", self.size)
        require(samples % size == 0, f"stage {index}: microbatch size")
        parts = (self._grid if "grid" in entry else self._replicas)(index, entry, layers, cluster)
        require(sum(p.samples for p in parts if p.column == 0) == size, f"stage {index}: shares")
        require(len({p.device.name for p in parts}) == len(parts), f"stage {index}: a device twice")
        shard, units = self._shard(index, entry, layers, parts)
        return Stage(index, entry.get("name", f"s{index}"), pipeline, layers, parts, size, samples // size, first,
                     self._saver(entry, "recompute", "blocks"), self._saver(entry, "shard_state"), shard, units,
                     self._boundaries(index, entry, size, samples, parts), entry.get("offload", {}))

    @staticmethod
    def _replicas(index, entry, layers, cluster):
        parts, offset = [], 0
        for row, share in enumerate(entry["devices"]):
            part = Part(cluster.by_name[share["name"]], share["samples"],
                        share.get("tensor_parallel", 1), offset, row, 0, 1.0)
            require(part.samples > 0 and 1 <= part.degree <= part.device.accelerators, f"stage {index} share")
            for layer in layers:    # §L1
                require(part.degree == 1 or not layer.degrees or part.degree in layer.degrees,
                        f"stage {index}: tensor_parallel {part.degree}: degrees of layer {layer.name}")
            parts.append(part)
            offset += part.samples
        return parts

    @staticmethod
    def _grid(index, entry, layers, cluster):
        """Rows share the samples, columns the tensors; devices are listed row by row."""
        rows, columns, devices = entry["grid"]["rows"], entry["grid"]["columns"], entry["devices"]
        where = f"grid of stage {index}"
        require(all(isinstance(n, int) and n > 0 for n in rows + columns), f"{where}: not positive integers")
        require(rows and columns and len(rows) * len(columns) == len(devices), f"{where}: devices")
        parts, offset = [], 0
        for i, samples in enumerate(rows):
            for j, weight in enumerate(columns):
                share = devices[i * len(columns) + j]
                require(share.get("tensor_parallel", 1) == 1, f"{where}: tensor_parallel")
                require("samples" not in share, f"{where}: samples of a device")
                parts.append(Part(cluster.by_name[share["name"]], samples, 1, offset, i, j,
                                  weight / sum(columns)))
            offset += samples
        for layer in layers:
            if layer.split != "none" and len(columns) > 1:
                require(not any(p.device.kind in layer.profile for p in parts), f"{where}: {layer.name} is profiled")
                require(all(layer.units * w % sum(columns) == 0 for w in columns), f"{where}: units of {layer.name}")
            agree = {l.split == "none" for l in layers if l.tensor == layer.tensor}
            require(len(agree) == 1, f"{where}: one tensor, split and whole")
        return parts

    def _shard(self, index, entry, layers, parts):
        """Weights (fsdp) or only gradients (zero2) in n shares, by units; one device has no shares."""
        shard = entry.get("shard", "none")
        if shard == "none":
            require("units" not in entry, f"stage {index}: units without shard")
            return "none", []
        require(shard in ("fsdp", "zero2") and self.mode == "training", f"stage {index}: shard {shard}")
        require("grid" not in entry and not entry.get("shard_state"), f"stage {index}: shard beside another")
        named = entry.get("units", [[l.name] for l in layers])
        require(all(named) and [n for u in named for n in u] == [l.name for l in layers], f"stage {index}: units")
        by_name = {l.name: l for l in layers}
        return ("none", []) if len(parts) == 1 else (shard, [[by_name[n] for n in u] for u in named])

    def _boundaries(self, index, entry, size, samples, parts):
        cuts = entry.get("cuts")
        if cuts is None:
            regular = list(range(0, samples + 1, size))
            return {phase: regular for phase in "FBW"}
        training = self.mode == "training"
        require(self.mode != "generation", f"stage {index}: cuts in generation")
        require(not training or self.schedule != "1f1b", f"stage {index}: cuts with 1f1b")
        require(set(cuts) == ({"forward", "backward"} if training else {"forward"}), f"stage {index}: cuts")
        for listed in cuts.values():
            steps = [b - a for a, b in zip(listed, listed[1:])]
            require(all(isinstance(n, int) for n in listed), f"stage {index}: cuts")
            require(listed[:1] == [0] and listed[-1] == samples and all(n > 0 for n in steps), f"stage {index}: cuts")
            require(all(p.samples * n % size == 0 for p in parts for n in steps), f"stage {index}: shares of a pass")
        return {"F": cuts["forward"], **({"B": cuts["backward"], "W": cuts["backward"]} if training else {})}

    def _saver(self, entry, name, *others):
        asked = entry.get(name, False)
        require(asked in (False, True, *others) and (self.mode == "training" or not asked), f"{name} outside training")
        return asked

    def trained(self, layer):
        """Bytes of a layer's weights, with copies, of their gradients and of the optimizer (§2)."""
        if not layer.trainable:
            return layer.weight, 0.0, 0.0
        if self.optimizer is None:
            return layer.weight, layer.weight, layer.weight * self.optimizer_factor
        weight, copy, gradient, state = OPTIMIZERS[self.optimizer](layer.parameter)
        parameters = layer.weight / layer.parameter
        return (weight + copy) * parameters, gradient * parameters, state * parameters

    def _cuts(self, model):
        """Stage edges with what crosses them per sample, in all and in each round."""
        self.cuts = self._cuts_of(model, self.whole)
        self.cuts_of_round = [self._cuts_of(model, at) for at in self.rounds]
        self.after = {s.index: [t for (u, t) in self.cuts if u == s.index] for s in self.stages}
        self.before = {t.index: [s for (s, u) in self.cuts if u == t.index] for t in self.stages}
        self.from_sinks = []                            # stages, every successor before its stage
        waiting = [s.index for s in self.stages]
        while waiting:
            free = [s for s in waiting if all(t in self.from_sinks for t in self.after[s])]
            require(free, "the stages of a pipeline form a cycle")
            self.from_sinks += free
            waiting = [s for s in waiting if s not in free]

    def _cuts_of(self, model, at):
        """(s, t) -> (forward bytes, backward bytes) per sample (§6). A tensor that several layers of the
        consumer read crosses once: the largest edge of each producing layer counts. An edge carries what
        both its ends compute, of a request layer all; where one end does not run there is no edge (§L1)."""
        cuts = {}
        stage_of = {(s.pipeline, l.name): s for s in self.stages for l in s.layers}
        for pipeline in {s.pipeline for s in self.stages}:
            for e in model.edges:
                s, t = stage_of[pipeline, e.source], stage_of[pipeline, e.target]
                source, target = model.layers[e.source], model.layers[e.target]
                if s is t or not (source.runs(at) and target.runs(at)):
                    continue
                share = source.share(at)
                if not source.per_request:
                    share = min(share, target.share(at))
                largest = cuts.setdefault((s.index, t.index), {})
                f, b = largest.get(e.source, (0.0, 0.0))
                largest[e.source] = max(f, e.bytes * share), max(b, e.gradient * share)
        return {edge: (sum(f for f, _ in largest.values()), sum(b for _, b in largest.values()))
                for edge, largest in sorted(cuts.items())}

    def runs(self, stage, number):
        """Without a layer that runs a stage has no task in a round (§L1)."""
        return any(l.runs(self.rounds[number]) for l in stage.layers)

    def sources(self, number):
        """Stages that run in a round and get nothing from another in it."""
        fed = {t for _, t in self.cuts_of_round[number]}
        return [s for s in self.stages if self.runs(s, number) and s.index not in fed]

    def sinks(self, number):
        """Stages that run in a round and give nothing to another in it."""
        feeding = {s for s, _ in self.cuts_of_round[number]}
        return [s for s in self.stages if self.runs(s, number) and s.index not in feeding]

    def find_stage(self, label):
        if isinstance(label, int):
            require(0 <= label < len(self.stages), f"stage {label}")
            return self.stages[label]
        found = [s for s in self.stages if s.name == label]
        require(len(found) == 1, f"stage name {label}")
        return found[0]

    def warmup_suffices(self, s, t, k_s, k_t):
        """The 1F1B rule of §5 for one stage edge s -> t."""
        return all(min(s.count, k_s + i) * s.size
                   >= min(t.count, k_t + -(-(i + 1) * s.size // t.size) - 1) * t.size
                   for i in range(s.count))

    def warmups(self):
        """§7: given, or 2·depth − 1, raised from the sinks backwards until the rule of §5 holds."""
        if self.warmup is not None:
            require(len(self.warmup) == len(self.stages), "one warm-up per stage")
            return list(self.warmup)
        depth, k = {}, {}
        for index in self.from_sinks:
            depth[index] = 1 + max((depth[t] for t in self.after[index]), default=0)
            k[index] = 2 * depth[index] - 1
            for t in self.after[index]:
                while self.cuts[index, t][1] > 0 and not self.warmup_suffices(
                        self.stages[index], self.stages[t], k[index], k[t]):
                    k[index] += 1
        return [k[s.index] for s in self.stages]

    def device_orders(self):
        """§7: device index -> [(phase, stage index, m)] of one iteration or one generation step."""
        held = {}
        for stage in self.stages:
            for part in stage.parts:
                held.setdefault(part.device.index, []).append((stage, part.device.name))
        orders, warmups = {}, self.warmups()
        for device, holdings in held.items():
            if self.schedule == "explicit":
                listed = self.orders.get(holdings[0][1], [])
                orders[device] = [(phase, self.find_stage(label).index, m) for phase, label, m in listed]
                continue
            require(len(holdings) == 1, f"device {holdings[0][1]} holds several stages without an order")
            stage = holdings[0][0]
            forwards = [(FORWARD, stage.index, m) for m in range(stage.passes(FORWARD))]
            if self.mode != "training":
                orders[device] = forwards
                continue
            backwards = [(BACKWARD_INPUT, stage.index, m) for m in range(stage.passes(BACKWARD_INPUT))]
            if self.schedule == "gpipe":
                orders[device] = forwards + backwards
            else:
                k = min(warmups[stage.index], stage.count)
                alternating = [task for pair in zip(backwards, forwards[k:]) for task in pair]
                orders[device] = forwards[:k] + alternating + backwards[stage.count - k:]
        for device, order in orders.items():
            self._check_order(device, order, [stage for stage, _ in held[device]])
        return orders

    def _check_order(self, device, order, stages):
        """Each task exactly once, F before B before W (files.md, `explicit`); a B comes after every F
        that has a sample of it, and the devices of fsdp keep one order."""
        position = {task: i for i, task in enumerate(order)}
        expected = 0
        for stage in stages:
            split = any(phase == BACKWARD_WEIGHT and s == stage.index for phase, s, _ in order)
            phases = FORWARD if self.mode != "training" else "FBW" if split else "FB"
            for phase in phases:
                for m in range(stage.passes(phase)):
                    before = ([] if phase == FORWARD else [(BACKWARD_INPUT, m)] if phase == BACKWARD_WEIGHT
                              else [(FORWARD, f) for f in stage.own_forwards(phase, m)])
                    place = position.get((phase, stage.index, m), -1)
                    require(place >= 0 and all(position.get((p, stage.index, n), place) < place for p, n in before),
                            f"order of device {device}: stage {stage.index} microbatch {m}")
                expected += stage.passes(phase)
        require(len(order) == len(position) == expected, f"order of device {device}: tasks")

    def order_of(self, stage, orders):
        """[(phase, m)] of an fsdp stage, which all its devices keep."""
        found = [[(phase, m) for phase, s, m in orders[p.device.index] if s == stage.index] for p in stage.parts]
        require(all(f == found[0] for f in found), f"stage {stage.index}: fsdp in several orders")
        return found[0]


# -------------------------------------------------------------------- §6 the task graph of an iteration

@dataclass(eq=False)
class Node:
    """Something with a start and an end, and what waits for its end."""
    waits: int = field(default=0, init=False)
    then: list = field(default_factory=list, init=False)
    at_start: list = field(default_factory=list, init=False)    # what waits for its start
    start: float = field(default=None, init=False)
    end: float = field(default=None, init=False)


@dataclass(eq=False)
class Task(Node):
    stage: int
    phase: str
    device: int
    microbatch: int
    step: int               # the number of its round
    low: int                # sample interval of the global batch
    high: int
    seconds: float
    by_memory: float        # of the seconds, those in which memory is the limit
    part: Part
    is_first: bool = True   # of the parts of its pass: only fsdp has more than one
    is_last: bool = True
    reads: tuple = ((), 0.0)    # flows that it waits for once the device is free for it, and their least seconds
    unread: int = field(default=0, init=False)  # of these, and of the least time, what has not ended


@dataclass(eq=False)
class Flow(Node):
    sender: int
    receiver: int
    volume: float
    latency: float
    uses: dict
    release: float = 0.0
    priority: float = 0
    index: tuple = ()       # (microbatch, stage, device, round), then whatever makes it unique
    names: tuple = ()       # (kind, sender, receiver, from_stage, to_stage, microbatch): what entries of `flows` ask for
    sender_place: int = 0   # of the sender in the list of its stage
    is_read: bool = False   # from a tier: nobody sends it, and it waits for no port
    # while draining:
    left: float = field(default=0.0, init=False)
    rate: float = field(default=0.0, init=False)
    since: float = field(default=0.0, init=False)
    due: float = field(default=math.inf, init=False)


@dataclass
class Reader:
    """What waits for a read: a task that its device has taken up."""
    task: Task
    simulation: object


def link(before, after):
    before.then.append(after)
    after.waits += 1


class TaskGraph:
    """Expands a plan into tasks, flows and their dependencies."""

    def __init__(self, model, cluster, plan):
        self.model, self.cluster, self.plan = model, cluster, plan
        self.tasks, self.flows = {}, []
        self.carried = []               # flows that are part of their devices' tasks (§6 rule 3, grids)
        self.order = {}                 # device index -> tasks in their fixed order
        self.entries, self.matched = [self._flow_entry(e) for e in plan.flow_entries], set()
        self.sent_once = {}             # copies per device: what one stage has sent to one device
        self._compute()
        for step in range(len(plan.rounds)):
            for (s, t), (forward, backward) in plan.cuts_of_round[step].items():
                s, t = plan.stages[s], plan.stages[t]
                self._connect("forward", s, t, FORWARD, step, step, forward)
                if plan.mode == "training" and backward > 0:    # 0: no flow and no dependency
                    self._connect("backward", t, s, BACKWARD_INPUT, 0, 0, backward)
        if plan.mode == "generation":
            self._token_loops()
            self._chunks_in_flight()
        if plan.mode == "training":
            self._await_forwards()
            self._reductions()
        unmatched = [e for number, (_, e) in enumerate(self.entries) if number not in self.matched]
        require(not unmatched, f"entries that match no flow: {unmatched}")

    # -- tasks

    def _compute(self):
        orders = self.plan.device_orders()
        for device, listed in orders.items():
            split = {s for phase, s, _ in listed if phase == BACKWARD_WEIGHT}
            self.order[device] = []
            for phase, s, m, at in self._by_position(listed):
                stage = self.plan.stages[s]
                part = next(p for p in stage.parts if p.device.index == device)
                phases = "BW" if phase == BACKWARD_INPUT and s not in split else phase
                self.tasks[s, phase, device, m, at.number] = self._pass(stage, part, phase, m, at, phases)
                self.order[device] += self.tasks[s, phase, device, m, at.number]
        for stage in self.plan.stages:
            if stage.shard == "fsdp":
                self._gathers(stage, self.plan.order_of(stage, orders))

    def _by_position(self, listed):
        """§L3: (position, group, chunk): an entry stands for all chunks of its group's prompt."""
        for position in sorted({at.position for at in self.plan.rounds}):
            for phase, s, m in listed:
                for at in self.plan.rounds:
                    if at.position == position and self.plan.runs(self.plan.stages[s], at.number):
                        yield phase, s, m, at

    def _pass(self, stage, part, phase, m, at, phases):
        """The tasks of one pass on one device: one, or one for each unit of fsdp, whose W is one. Each has
        the device's overhead (§L2)."""
        low, high = stage.interval(part, phase, m)
        units = [stage.layers] if stage.shard == "none" else stage.units
        tasks = []
        for layers in (units if phase == FORWARD else reversed(units)):
            layers = [l for l in layers if l.runs(at)]
            seconds, by_memory = part.device.overhead, 0
            again = stage.again(layers) if phase == BACKWARD_INPUT else []      # §2: their F once more
            for those, what in ((again, FORWARD), (layers, phases)):
                more, of_memory = stage_seconds(self.model, stage, those, what, high - low, part, at)
                seconds += more + self._all_reduces(stage, part, those, what, high - low, at)
                by_memory += of_memory
            tasks.append(Task(stage.index, phase, part.device.index, m, at.number, low, high, seconds, by_memory, part,
                              is_first=not tasks, is_last=len(tasks) == len(units) - 1))
            tasks[-1].reads = self._reads(stage, part, ((again, FORWARD), (layers, phases)), high - low, at)
        return tasks

    def _reads(self, stage, part, work, batch, at):
        """§6: what a task waits for from tiers with a resource: flows [(bytes, uses)] that begin when the device would
        begin the task, and the least seconds that its own tiers take for them."""
        wanted = {}
        for layers, phases in work:
            for layer in layers:
                tier = stage.tier(layer, part)
                if tier is None or tier.resource is None:
                    continue
                for phase in phases:
                    if reads_weights(layer, phase, part.device.kind):
                        name = stage.offload[layer.name]
                        wanted[name] = wanted.get(name, 0.0) + bytes_read(layer, batch, part, at)
        flows, least = [], 0.0
        for name, volume in wanted.items():
            if volume > 0:
                tier = part.device.tiers[name]
                flows.append(Flow(part.device.index, part.device.index, volume, 0.0, {tier.resource: 1.0}, is_read=True))
                least = max(least, volume / tier.bandwidth)
        return flows, least

    def _all_reduces(self, stage, part, layers, phases, samples, at):
        """The seconds that a device of a grid spends in the all-reduces of its row, once for every F and
        B of a layer that is split by rows. What it sends meanwhile counts, as in `transfers: block`."""
        row = [p.device for p in stage.parts if p.row == part.row]
        c, seconds = len(row), 0.0
        if c == 1:
            return seconds
        routes = [self.cluster.route(a, b) for a, b in zip(row, row[1:] + row[:1])]
        for layer in layers:
            for phase in phases:
                volume = 2 * (c - 1) / c * layer.largest_out * samples * layer.share(at)
                if (layer.split == "rows" and phase in (FORWARD, BACKWARD_INPUT) and layer.flops[phase] > 0
                        and volume > 0):
                    seconds += max(2 * (c - 1) * r.latency + volume / self._peak(r) for r in routes)
                    self.carried.append(Flow(part.device.index, row[(part.column + 1) % c].index, volume, 0.0,
                                             routes[part.column].uses))
        return seconds

    def _peak(self, route):
        return min((self.cluster.capacity[r] / weight for r, weight in route.uses.items()), default=math.inf)

    def _of(self, stage, phase, step=0):
        """[[the parts of one pass] for every pass and device]"""
        return [self.tasks[stage.index, phase, part.device.index, m, step]
                for m in range(stage.passes(phase)) for part in stage.parts]

    def _rows_of(self, stage, phase, step=0):
        """[[the last part of one pass on every device of a row] for every pass and row]"""
        return [[self.tasks[stage.index, phase, part.device.index, m, step][-1] for part in row]
                for m in range(stage.passes(phase)) for row in stage.rows()]

    def _last_backwards(self, stage, m):
        """[[the parts of the last backward phase of a microbatch] for every device of the stage]"""
        found = []
        for part in stage.parts:
            backward = self.tasks[stage.index, BACKWARD_INPUT, part.device.index, m, 0]
            found.append(self.tasks.get((stage.index, BACKWARD_WEIGHT, part.device.index, m, 0), backward))
        return found

    def _await_forwards(self):
        """A B starts when every F of its stage that has a sample of it has ended, also those of its row
        in a grid."""
        for stage in self.plan.stages:
            for forward in (parts[-1] for parts in self._of(stage, FORWARD)):
                for backward in (parts[0] for parts in self._of(stage, BACKWARD_INPUT)):
                    if forward.low < backward.high and backward.low < forward.high:
                        link(forward, backward)

    # -- transfers between stages

    def _connect(self, kind, producer, consumer, phase, step, next_step, bytes_per_sample):
        """A consumer needs every producer interval that overlaps its own: one flow per overlap, from the
        first device of the row that has it."""
        for row in self._rows_of(producer, phase, step):
            before = row[0]
            for after in (parts[0] for parts in self._of(consumer, phase, next_step)):
                overlap = min(before.high, after.high) - max(before.low, after.low)
                if overlap <= 0:
                    continue
                if any(task.device == after.device for task in row):
                    for task in row:
                        link(task, after)
                elif kind == "forward" and self._sends_once(producer, consumer):
                    self._send_once(before, after, producer, consumer)
                elif self.plan.transfers == "block" and kind != "token":
                    self._carry(kind, row, after, overlap * bytes_per_sample, producer.index, consumer.index)
                else:
                    self._transfer(kind, row, [after], before.device, after.device,
                                   overlap * bytes_per_sample, producer.index, consumer.index,
                                   before.microbatch, step, (self._place(consumer, after), after.microbatch))

    def _sends_once(self, producer, consumer):
        """§6, copies: an output crosses once to each device that reads it."""
        return (self.plan.copies == "per_device" and self.plan.transfers == "overlap"
                and len(producer.parts) == len(consumer.parts) == 1 and producer.size == consumer.size
                and producer.boundaries[FORWARD] == consumer.boundaries[FORWARD])

    def _send_once(self, before, after, producer, consumer):
        """The largest of the stage's cuts in this round; the first reader by stage names the transfer."""
        key = producer.index, after.device, before.microbatch, before.step
        if key not in self.sent_once:
            largest = max(f for (s, _), (f, _) in self.plan.cuts_of_round[before.step].items() if s == producer.index)
            self.sent_once[key] = self._transfer(
                "forward", [before], [], before.device, after.device, (before.high - before.low) * largest,
                producer.index, consumer.index, before.microbatch, before.step, (0, after.microbatch))
        link(self.sent_once[key][0], after)

    @staticmethod
    def _place(stage, task):
        """Where the device stands in the list of its stage: the order of a stage's samples."""
        return [part.device.index for part in stage.parts].index(task.device)

    def _token_loops(self):
        """§L3: behind the last chunk and each step, where a step follows, every sink stage sends 4 bytes per
        sample to every source stage of its pipeline; both are those that run, the sources in the next step."""
        for step in range(len(self.plan.rounds) - 1):
            if self.plan.rounds[step].last:
                for sink in self.plan.sinks(step):
                    for source in self.plan.sources(step + 1):
                        if sink.pipeline == source.pipeline:
                            self._connect("token", sink, source, FORWARD, step, step + 1, 4)

    def _chunks_in_flight(self):
        """§L3: a source stage starts chunk j when chunk j − k has left the sinks. No device has two stages of a pipeline that run in
        every chunk then."""
        if self.plan.in_flight and self.plan.in_flight < self.plan.chunks:
            busy = [s for s in self.plan.stages if any(not l.per_request and not l.last_token for l in s.layers)]
            for one, other in itertools.combinations(busy, 2):
                shared = {p.device.index for p in one.parts} & {p.device.index for p in other.parts}
                require(one.pipeline != other.pipeline or not shared, f"cyclic order at devices {sorted(shared)}")
        for j in range(self.plan.in_flight or self.plan.chunks, self.plan.chunks):
            for sink in self.plan.sinks(j - self.plan.in_flight):
                for source in self.plan.sources(j):
                    if sink.pipeline != source.pipeline:
                        continue
                    for row in self._rows_of(sink, FORWARD, j - self.plan.in_flight):
                        for after in (parts[0] for parts in self._of(source, FORWARD, j)):
                            if row[0].low < after.high and after.low < row[0].high:
                                for task in row:
                                    link(task, after)

    def _carry(self, kind, row, after, volume, from_stage, to_stage):
        """`transfers: block` (§6 rule 3): latency + bytes / peak bandwidth prolongs the sender's task
        behind its work and the receiver's before its own. The flow starts and ends with the
        sender's task and shares nothing; its bytes count."""
        before = row[0]
        for task in row:
            link(task, after)
        for wanted, entry in self.entries:
            actual = kind, before.device, after.device, from_stage, to_stage, before.microbatch
            require(not all(w in (None, a) for w, a in zip(wanted, actual)), f"entry for a blocked flow: {entry}")
        devices = self.cluster.devices
        route = self.cluster.route(devices[before.device], devices[after.device])
        for task in (before, after):
            task.seconds += route.latency + volume / self._peak(route)
        before.seconds += devices[before.device].send_overhead      # §L2
        self.carried.append(Flow(before.device, after.device, volume, route.latency, route.uses))

    def _transfer(self, kind, producers, consumers, sender, receiver, volume, from_stage, to_stage,
                  microbatch, step, unique):
        """One transfer, in one or several chunks; returns what ends it. Same device: no flow. Its index is
        the key of `exclusive`: (microbatch, sending stage, sending device, round, receiving stage, place of
        the receiving device in that stage) (§6, §L3)."""
        if sender == receiver:
            for before in producers:
                for after in consumers:
                    link(before, after)
            return producers
        devices = self.cluster.devices
        route = self.cluster.route(devices[sender], devices[receiver])
        chunks = self._chunks_of(kind, sender, receiver, from_stage, to_stage, microbatch)
        ends, wait = producers, route.latency
        if kind == "sync":          # §L2: the overhead of sending, here not busy
            wait += devices[sender].send_overhead
        else:
            producers[0].seconds += devices[sender].send_overhead
        for number, (release, priority) in enumerate(chunks):
            # chunks of volume/w in sequence, latency once, on the first
            flow = Flow(sender, receiver, volume / len(chunks), wait if number == 0 else 0.0,
                        route.uses, release, priority,
                        (microbatch, from_stage, sender, step, to_stage, *unique, receiver, kind, number),
                        (kind, sender, receiver, from_stage, to_stage, microbatch),
                        producers[0].part.row if kind != "sync" else 0)
            for before in ends:
                link(before, flow)
            self.flows.append(flow)
            ends = [flow]
        for after in consumers:
            link(ends[0], after)
        return ends

    # -- gradient reductions at the end of an iteration

    def _reductions(self):
        plan, reduced = self.plan, {}
        for stage in plan.stages:
            last = [parts[-1] for m in range(stage.passes(BACKWARD_INPUT))
                    for parts in self._last_backwards(stage, m)]
            reduced[stage.index] = last
            if stage.shard != "none":
                self._scatters(stage, last)
                continue
            for column in stage.columns():      # one column, but for a grid
                weight = stage.trainable_weight(column[0])
                members = [(part.device.index, stage.index) for part in column]
                if len(members) > 1 and weight > 0:
                    reduced[stage.index] = self._ring(members, weight, last, "own")
        # Stages that share trainable tensors: one reduction for each set of stages, of the summed
        # weights that exactly these stages share, when all of them have finished their own.
        holders, weights, sets = {}, {}, {}
        for stage in plan.stages:
            for tensor, layer in stage.tensors().items():
                if layer.trainable and layer.weight > 0:
                    holders.setdefault(tensor, []).append(stage.index)
                    weights[tensor] = layer.weight
        for tensor, stages in holders.items():
            sets[tuple(stages)] = sets.get(tuple(stages), 0.0) + weights[tensor]
        for stages, weight in sorted(sets.items()):
            firsts = {}     # distinct first devices in stage order -> the stage that brought them
            for s in stages:
                firsts.setdefault(plan.stages[s].parts[0].device.index, s)
            if len(firsts) < 2:
                continue
            done = [node for s in stages for node in reduced[s]]
            if plan.server is None:
                self._ring(list(firsts.items()), weight, done, "shared", stages)
            else:
                self._by_server(list(firsts.items()), weight, done, stages)

    def _ring(self, members, weight, producers, *unique):
        """n flows from device i to i + 1 (cyclic), each 2(n−1)/n · W bytes, started together."""
        n, ends = len(members), []
        for (sender, s), (receiver, t) in zip(members, members[1:] + members[:1]):
            ends += self._transfer("sync", producers, [], sender, receiver, 2 * (n - 1) / n * weight,
                                   s, t, math.inf, 0, unique)
        return ends

    def _by_server(self, members, weight, producers, stages):
        server, arrived = self.plan.server.index, []
        members = [(device, s) for device, s in members if device != server]    # its own copy: no flow
        for device, s in members:
            arrived += self._transfer("sync", producers, [], device, server, weight,
                                      s, stages[0], math.inf, 0, ("up", stages))
        for device, s in members:
            self._transfer("sync", arrived, [], server, device, weight,
                           stages[0], s, math.inf, 0, ("down", stages))

    # -- shares of weights and gradients: fsdp and zero2

    def _exchange(self, stage, weight, before, microbatch, unit, *unique):
        """An all-gather or a reduce-scatter: n flows from device i to i + 1 (cyclic), each (n−1)/n · W
        bytes, started together; none where there is nothing to move. The index orders a stage's by
        microbatch, unit, and gathers first."""
        n, flows = len(stage.parts), []
        if weight == 0:
            return flows
        devices = [part.device for part in stage.parts]
        for number, (sender, receiver) in enumerate(zip(devices, devices[1:] + devices[:1])):
            route = self.cluster.route(sender, receiver)
            wait = sender.send_overhead + route.latency     # §L2, as a reduction
            flows.append(Flow(sender.index, receiver.index, (n - 1) / n * weight, wait, route.uses,
                              index=(microbatch, stage.index, SHARES, unit, *unique, number)))
            for task in before:
                link(task, flows[-1])
        self.flows += flows
        return flows

    def _gathers(self, stage, order):
        """fsdp: the weights of a part are gathered while the part before it runs on all n devices."""
        started, units = [], list(enumerate(stage.units))
        for phase, m in order:
            if phase == BACKWARD_WEIGHT:
                continue
            passes = [self.tasks[stage.index, phase, part.device.index, m, 0] for part in stage.parts]
            for place, (number, unit) in enumerate(units if phase == FORWARD else reversed(units)):
                parts = [tasks[place] for tasks in passes]
                flows = self._exchange(stage, unit_weight(unit, False), [], m, number, 0, phase != FORWARD)
                for after in flows or parts:    # without weights: no flow, but the same wait
                    for task in started:
                        task.at_start.append(after)
                        after.waits += 1
                for flow in flows:
                    for task in parts:
                        link(flow, task)
                started = parts

    def _scatters(self, stage, last):
        """The gradients of a unit are scattered as soon as a microbatch has them on all n devices; zero2
        gathers the weights once, at the end."""
        done = list(last)
        for m in range(stage.passes(BACKWARD_INPUT)):
            for place, (number, unit) in enumerate(reversed(list(enumerate(stage.units)))):
                before = [parts[place] for parts in self._last_backwards(stage, m)]
                done += self._exchange(stage, unit_weight(unit, True), before, m, number, 1)
        if stage.shard == "zero2":
            self._exchange(stage, unit_weight(stage.layers, True), done, math.inf, 0, 0)

    # -- `flows` of the plan file: chunks, releases, priorities

    def _chunks_of(self, *actual):
        """[(release, priority)] per chunk of the transfer (kind, sender, receiver, from_stage,
        to_stage, microbatch). What an entry leaves out matches everything; a reduction has no
        microbatch; an entry holds for every step of a generation."""
        found, of = {}, 1
        for number, (wanted, e) in enumerate(self.entries):
            if all(w in (None, a) for w, a in zip(wanted, actual)):
                self.matched.add(number)
                require(e.get("chunk", 0) not in found, f"chunk twice: {e}")
                found[e.get("chunk", 0)] = quantity(e.get("release", 0)), e.get("priority", 0)
                of = e.get("of", 1)
        require(not found or sorted(found) == list(range(of)), f"chunks of the flow {actual}")
        return [found[k] for k in sorted(found)] or [(0.0, 0)]

    def _flow_entry(self, e):
        ends = [self.cluster.by_name[e[key]].index for key in ("from", "to")]
        stages = [self.plan.find_stage(e[key]).index if key in e else None
                  for key in ("from_stage", "to_stage")]
        return (e["phase"], *ends, *stages, None if e["phase"] == "sync" else e.get("microbatch")), e


# ------------------------------------------------------------------------------- §6 rule 2: bandwidth

POLICIES = ("fair_share", "priority", "exclusive", "per_link", "unlimited")

def max_min(flows, free):
    """Progressive filling over Σ weight·rate <= c: all rates grow together; a flow stops growing
    when one of its resources is full. `free` (resource -> B/s) is what is left, and is updated."""
    rates, growing, level = {}, list(flows), 0.0
    while growing:
        demand = {}
        for flow in growing:
            for resource, weight in flow.uses.items():
                demand[resource] = demand.get(resource, 0.0) + weight
        growth = min(free[r] / d for r, d in demand.items())
        full = {r for r, d in demand.items() if free[r] / d <= growth * (1 + SAME_TIME)}
        level += growth
        for resource, d in demand.items():
            free[resource] = 0.0 if resource in full else max(0.0, free[resource] - growth * d)
        for flow in growing:
            if any(r in full for r in flow.uses):
                rates[flow] = level
        growing = [flow for flow in growing if flow not in rates]
    return rates


def bandwidth(flows, capacity, policy):
    """Flow -> rate. Only under `priority` does a class get no more than what the classes before it
    leave; `exclusive` and `per_link` decide who may start, and those share fairly; `unlimited` gives
    everybody the peak bandwidth of its route (§3)."""
    if policy == "unlimited":
        return {f: min(capacity[r] / weight for r, weight in f.uses.items()) for f in flows}
    free, rates = dict(capacity), {}
    classes = sorted({f.priority for f in flows}) if policy == "priority" else [None]
    for level in classes:
        rates.update(max_min([f for f in flows if level is None or f.priority == level], free))
    return rates


def turns(flows):
    """The order in which `exclusive` and `per_link` consider waiting flows (rule 2)."""
    return sorted(flows, key=lambda f: (f.priority, f.index))


# ----------------------------------------------------------------------------------- §6 the simulation

class Simulation:
    """Runs tasks (in fixed order per device) and flows until everything has ended.

    At one instant (§6 rule 4): first everything that ends, then tasks start, and what has no
    length ends at once and is followed up; only when nothing more ends and no task can start are
    waiting flows considered. Rates are settled last, before time moves on.
    """

    def __init__(self, order, flows, capacity, policy):
        require(policy in POLICIES, f"network policy {policy}")
        self.order, self.flows, self.capacity, self.policy = order, flows, capacity, policy
        self.now = 0.0
        self.timers = []                        # heap of (time, number, action, node)
        self.position = {device: 0 for device in order}
        self.running = {device: False for device in order}
        self.waiting = []                       # flows that are ready and not yet granted
        self.draining = []
        self.held = set()                       # ports or resources that granted flows hold
        self.number = 0

    def run(self):
        for flow in self.flows:
            if flow.waits == 0:
                self._flow_ready(flow)
        while True:
            if self._ends() or self._start_tasks() or self._start_flows():
                continue
            self._set_rates()
            times = [f.due for f in self.draining] + [t[0] for t in self.timers[:1]]
            if not times or min(times) == math.inf:
                break
            self.now = max(self.now, min(times))
        nodes = [t for tasks in self.order.values() for t in tasks] + self.flows
        if any(node.end is None for node in nodes):
            stuck = [d for d, tasks in self.order.items() if self.position[d] < len(tasks)]
            raise BadInput(f"cyclic order at device {stuck[0] if stuck else '?'}")
        return max((node.end for node in nodes), default=0.0)

    def _at(self, time, action, node):
        self.number += 1
        heapq.heappush(self.timers, (time, self.number, action, node))

    def _is_now(self, time):
        return time < math.inf and time - self.now <= SAME_TIME * abs(time)

    # -- ends

    def _ends(self):
        happened = False
        done = [f for f in self.draining if self._is_now(f.due)]
        if done:
            self.draining = [f for f in self.draining if not self._is_now(f.due)]
        for flow in done:
            self._end_flow(flow)
        while self.timers and self._is_now(self.timers[0][0]):
            _, _, action, node = heapq.heappop(self.timers)
            action(node)
            happened = True
        return happened or bool(done)

    def _end(self, node):
        node.end = self.now
        for after in node.then:
            if isinstance(after, Reader):
                after.simulation._read(after.task)
                continue
            after.waits -= 1
            if after.waits == 0 and isinstance(after, Flow):
                self._flow_ready(after)

    def _start(self, task):
        task.start = self.now
        for after in task.at_start:
            after.waits -= 1
            if after.waits == 0 and isinstance(after, Flow):
                self._flow_ready(after)

    def _end_task(self, task):
        self.running[task.device] = False
        self._end(task)

    def _end_flow(self, flow):
        self.held.difference_update(self._holds(flow))
        self._end(flow)

    # -- tasks

    def _start_tasks(self):
        """Rule 1: device free, inputs arrived, tasks before it in the order done."""
        started = False
        for device, tasks in self.order.items():
            place = self.position[device]
            if not self.running[device] and place < len(tasks) and tasks[place].waits == 0:
                self.position[device] += 1
                self.running[device] = started = True
                self._begin(tasks[place])
        return started

    def _begin(self, task):
        """§6: first the reads from tiers; the device takes no other task, but is not busy yet."""
        flows, least = task.reads
        if not flows:
            self._run_task(task)
            return
        task.unread = len(flows) + 1
        for flow in flows:
            flow.then = [Reader(task, self)]
            self._drain(flow)
        self._at(self.now + least, self._read, task)

    def _read(self, task):
        task.unread -= 1
        if task.unread == 0:
            self._run_task(task)

    def _run_task(self, task):
        self._start(task)
        self._at(self.now + task.seconds, self._end_task, task)

    # -- flows: ready -> (granted) -> latency -> draining -> end

    def _flow_ready(self, flow):
        if flow.release > self.now and not self._is_now(flow.release):
            self._at(flow.release, self._flow_ready, flow)
        else:
            self.waiting.append(flow)

    def _holds(self, flow):
        """What a flow has to itself from grant to end."""
        if flow.is_read:
            return set()
        if self.policy == "exclusive":
            return {("out", flow.sender), ("in", flow.receiver)}
        return set(flow.uses) if self.policy == "per_link" else set()

    def _start_flows(self):
        """Rule 2. Without grants every ready flow starts; `exclusive` and `per_link` grant in index
        order those that find all that they hold free, later ones may pass."""
        granted = []
        for flow in turns(self.waiting):
            if not self.held & self._holds(flow):
                self.held |= self._holds(flow)
                granted.append(flow)
        self.waiting = [f for f in self.waiting if f not in granted]
        for flow in granted:
            self._at(self.now + flow.latency, self._drain, flow)
        return bool(granted)

    def _drain(self, flow):
        if flow.volume == 0 or not flow.uses:       # an empty `via` is infinitely fast
            self._end_flow(flow)
        else:
            flow.left, flow.rate, flow.since, flow.due = flow.volume, 0.0, self.now, math.inf
            self.draining.append(flow)

    def _set_rates(self):
        """Rates hold between two instants; a flow whose rate stays keeps its end time."""
        rates = bandwidth(self.draining, self.capacity, self.policy)
        for flow in self.draining:
            if rates[flow] != flow.rate:
                flow.left = max(0.0, flow.left - flow.rate * (self.now - flow.since))
                flow.rate, flow.since = rates[flow], self.now
                flow.due = self.now + flow.left / flow.rate if flow.rate > 0 else math.inf


# ------------------------------------------------------------------------------ §2, §6, §8: the outputs

def activations(plan, stage, part, split, at):
    """What one sample takes when a phase of a round starts and releases when it ends (§2): phase ->
    (taken, released), bytes. Of a chunk or a step it is what its tokens take (§L1, §L3)."""
    if plan.mode != "training":
        everything = sum(l.forward_activation * l.fraction(part) * l.share(at) for l in stage.layers if l.runs(at))
        return {FORWARD: (everything, everything)}

    def kept(layers):
        return sum(l.activation * l.fraction(part) for l in layers)

    everything = kept(stage.layers)
    for_weights = sum(l.activation_for_weights * l.fraction(part) for l in stage.layers)
    forward, backward, inputs = everything, 0.0, 0.0
    if stage.recompute is True:
        inputs = sum(plan.cuts[s, stage.index][0] for s in plan.before[stage.index])
        forward, backward = inputs, everything
    elif stage.recompute:       # blocks: all of them stay for a separate W
        blocks = [kept(block) for block in stage.blocks()]
        inputs = block_inputs(plan, stage)
        forward = everything - sum(blocks) + inputs
        backward = sum(blocks) if split else max(blocks, default=0.0)
        everything = forward - inputs + backward
    if not split:
        return {FORWARD: (forward, 0.0), BACKWARD_INPUT: (backward, everything + inputs)}
    return {FORWARD: (forward, 0.0), BACKWARD_INPUT: (backward, everything - for_weights),
            BACKWARD_WEIGHT: (0.0, for_weights + inputs)}


def block_inputs(plan, stage):
    """Tensors that blocks that are run again read from other stages, and those that they give to layers of
    the stage outside; each once (§2)."""
    place = {l.name: None for l in stage.layers}
    for number, block in enumerate(stage.blocks()):
        place.update({l.name: number for l in block})
    tensors = {}
    for e in plan.model.edges:
        if e.target not in place:
            continue
        inside, there = place.get(e.source), place[e.target]
        leaves = e.source in place and inside is not None and inside != there
        enters = e.source not in place and there is not None
        if leaves or enters:
            tensors[e.source] = max(tensors.get(e.source, 0.0), e.bytes)
    return sum(tensors.values())


def holding(plan, stage, part, layer):
    """Weights, gradients and optimizer state of one tensor on one device of a stage."""
    if plan.mode != "training":
        return layer.weight * layer.fraction(part)
    weight, gradient, state = (amount * layer.fraction(part) for amount in plan.trained(layer))
    n = len(stage.parts)
    if stage.shard == "fsdp":
        return (weight + gradient + state) / n
    if stage.shard == "zero2":
        return weight + (gradient + state) / n
    return weight + gradient + state / (len(stage.rows()) if stage.shard_state else 1)


def peak_memory(graph, device):
    """Every distinct tensor of the device's stages, each once and at its largest holding, plus the units
    that fsdp and zero2 keep whole for a while, plus caches, workspace and activations, in the order of the
    device's tasks."""
    plan, moves, tensors, held, workspace, sharing = graph.plan, {}, {}, 0.0, 0.0, {}
    splits = {t.stage for t in graph.order[device] if t.phase == BACKWARD_WEIGHT}
    for stage in plan.stages:
        for part in stage.parts:
            if part.device.index != device:
                continue
            for at in plan.rounds:
                moves[stage.index, at.number] = activations(plan, stage, part, stage.index in splits, at)
            for layer in stage.layers:
                if layer.name not in stage.offload:     # what is offloaded lies elsewhere (§2)
                    tensors[layer.tensor] = max(tensors.get(layer.tensor, 0.0), holding(plan, stage, part, layer))
            if stage.shard != "none":
                whole = {"fsdp": lambda l: 2 * l.weight, "zero2": lambda l: plan.trained(l)[1]}[stage.shard]
                held += max(sum(map(whole, distinct(unit).values())) for unit in stage.units)
            if plan.mode == "generation":       # §L3: the cache of every sequence, for the whole run
                tokens = plan.context + plan.prompt + plan.tokens
                held += part.samples * stage.count * sum(l.cache_held(tokens) * l.fraction(part) for l in stage.layers)
            rows = max((task.high - task.low for task in graph.order[device] if task.stage == stage.index), default=0)
            if plan.mode != "training":         # of the tokens that a layer computes in its largest pass
                workspace = max([workspace, *(l.forward_workspace * rows * l.new(at) * l.fraction(part)
                                              for l in stage.layers for at in plan.rounds if l.runs(at))])
            else:                               # §L2: rows are those of the largest pass
                workspace = max([workspace, *((l.workspace * rows * l.new(plan.whole) + l.scratch) * l.fraction(part)
                                              for l in stage.layers)])
                for l in stage.layers:
                    sharing.setdefault(l.tensor, {})[l.name] = l.scratch * l.fraction(part)
    for of_layers in sharing.values():      # gradients of one tensor wait for each other, and become a sum
        if len(of_layers) > 1:
            workspace = max(workspace, (len(of_layers) + 1) * min(of_layers.values()))
    held += sum(tensors.values()) + workspace + graph.cluster.devices[device].memory_overhead
    peak = held
    for task in graph.order[device]:
        taken, released = moves[task.stage, task.step][task.phase]
        held += (task.high - task.low) * taken if task.is_first else 0.0
        peak = max(peak, held)
        held -= (task.high - task.low) * released if task.is_last else 0.0
    return peak


def pace(graph, latency):
    """§L3: how soon the first tokens come, and the others. A group is a microbatch of a pipeline; its round
    ends with its last sink task."""
    plan, first, between = graph.plan, [], []
    begin, last = max(0, plan.chunks - 1), len(plan.rounds) - 1

    def end(number, pipeline, m):
        return max(parts[-1].end for (s, _, _, group, step), parts in graph.tasks.items()
                   if (step, group) == (number, m) and plan.stages[s].pipeline == pipeline
                   and plan.stages[s] in plan.sinks(number))

    for pipeline, m in sorted({(s.pipeline, m) for s in plan.stages for m in range(s.count)}):
        first.append(end(begin, pipeline, m))
        between.append((end(last, pipeline, m) - first[-1]) / (plan.tokens - 1) if plan.tokens > 1 else 0.0)
    sequences = plan.size * plan.count
    found = {"ttft": max(first), "tokens_per_second": sequences * plan.tokens / latency if latency > 0 else math.inf}
    if plan.tokens > 1:
        found["time_between_tokens"] = max(between)
    if plan.prompt > 0:
        found["prompt_tokens_per_second"] = sequences * plan.prompt / max(first) if max(first) > 0 else math.inf
    return found


def simulate(case):
    model, cluster = Model(case["model"]), Cluster(case["cluster"])
    plan = Plan(case["plan"], model, cluster)
    graph = TaskGraph(model, cluster, plan)
    latency = Simulation(graph.order, graph.flows, cluster.capacity, plan.network).run()

    sent, received, carried = {}, {}, {name: 0.0 for name in cluster.capacity}
    reads = [flow for tasks in graph.order.values() for task in tasks for flow in task.reads[0]]
    for flow in graph.flows + graph.carried + reads:
        if not flow.is_read:
            sent[flow.sender] = sent.get(flow.sender, 0.0) + flow.volume
            received[flow.receiver] = received.get(flow.receiver, 0.0) + flow.volume
        for resource, weight in flow.uses.items():
            carried[resource] += flow.volume * weight
    result = {"latency": latency, "energy": {}, "peak_memory": {}, "busy": {}, "bytes": carried, "span": {}}
    for device in cluster.devices:
        is_server = plan.server is device and plan.mode == "training"
        if device.index not in graph.order and not is_server:
            continue        # §8: only devices that the plan uses
        tasks = graph.order.get(device.index, [])
        busy = sum(task.seconds for task in tasks)
        result["busy"][device.name] = busy
        result["peak_memory"][device.name] = (
            peak_memory(graph, device.index) if device.index in graph.order else 0.0)
        result["span"][device.name] = tasks[-1].end - tasks[0].start if tasks else 0.0
        by_memory = sum(task.by_memory for task in tasks)
        result["energy"][device.name] = (
            device.idle * latency + (device.active - device.idle) * (busy - by_memory)
            + (device.memory - device.idle) * by_memory
            + device.send * sent.get(device.index, 0.0) + device.receive * received.get(device.index, 0.0))
    result["period"] = max(result["span"].values(), default=0.0)
    if plan.mode == "generation":
        result.update(pace(graph, latency))
    return result


# ------------------------------------------------------------------------------------ command line

def deviation(found, expected):
    """Largest relative difference; a resource that carries nothing may be left out."""
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            return math.inf
        return max((deviation(found.get(key, 0.0), value) for key, value in expected.items()), default=0.0)
    return abs(found - expected) / max(abs(found), abs(expected), 1e-30)


def refusal(case):
    """The message of bad input, or nothing."""
    try:
        simulate(case)
    except BadInput as error:
        return str(error)
    return ""


def fluid(document):
    """Flow scenarios: absolute start times, uses per resource, a rate cap as a private resource."""
    results = []
    for scenario in document["scenarios"]:
        require(not scenario.get("capacity_changes"), "capacities that vary are not covered (§10)")
        capacity, flows = dict(scenario["resources"]), []
        for i, entry in enumerate(scenario["flows"]):
            uses = dict(entry["uses"])
            if entry.get("rate_cap_Bps") is not None:
                capacity["cap", i] = entry["rate_cap_Bps"]
                uses["cap", i] = 1.0
            flows.append(Flow(2 * i, 2 * i + 1, entry["bytes"], 0.0, uses, entry["start_s"], 0, (i,)))
        Simulation({}, flows, capacity, "fair_share").run()
        results.append({"scenario": scenario["scenario"], "finish":
                        {e["name"]: f.end for e, f in zip(scenario["flows"], flows)}})
    return results


def main(arguments):
    options = [a for a in arguments if a.startswith("--")]
    files = [a for a in arguments if not a.startswith("--")]
    if len(files) > 1 or len(options) > 1 or any(o not in ("--check", "--fluid") for o in options):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        if files:
            with open(files[0], encoding="utf-8") as stream:
                document = json.load(stream)
        else:
            document = json.load(sys.stdin)
        if options == ["--fluid"]:
            print(json.dumps({"results": fluid(document)}, indent=1))
        elif options == ["--check"]:
            worst = [deviation(simulate(c), c["expected"]) for c in document["cases"]]
            wrong = [i for i, d in enumerate(worst) if not d <= CHECK]
            print(f"{len(worst)} cases, largest deviation {max(worst, default=0):.3g}, wrong: {wrong}")
            taken = [i for i, c in enumerate(document.get("refused", [])) if not refusal(c)]
            if "refused" in document:
                print(f"{len(document['refused'])} inputs to be refused, taken: {taken}")
            return 1 if wrong or taken else 0
        elif "cases" in document:
            print(json.dumps({"results": [simulate(c) for c in document["cases"]]}))
        else:
            print(json.dumps(simulate(document), indent=1))
    except (BadInput, OSError, ValueError, KeyError) as error:
        print(f"error: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
