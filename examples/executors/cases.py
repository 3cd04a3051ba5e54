# SPDX-License-Identifier: BSL-1.0
"""What validate.py runs: groups of plans, each on one network and one cluster, the same for every executor."""

import dataclasses
import itertools
import statistics
from typing import Callable, Dict, List, Optional, Sequence, Tuple

LEAST_TASK_S = 0.008  # of a stage's forward and backward on the fastest device: long beside a timer's jitter
SIZES = (4, 8, 16, 32, 64)  # of microbatches
QUICK = (1, 4, 16)    # batch sizes that tell roughly how fast a device is


class Fault(Exception):
    """Bad input, or a program that failed: one line."""


# --- what is run -----------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Plan:
    """How a case gets its plan: by a function of the group's problem, or by a planner with options of `hetplan plan`."""
    name: str
    by_hand: Optional[Callable[["Problem"], dict]] = None
    planner: Tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Group:
    """Plans that share a network and a cluster, and so can be ranked. Kind core/s: s times slower than a core."""
    name: str
    network: str
    kinds: Tuple[str, ...]
    topology: str
    load: float  # what the chain's busiest resource has to do beside what its devices have to: 2 = network-bound
    plans: Tuple[Plan, ...]
    seconds: float = 0.7  # of an iteration that only computes
    slow: Optional[str] = None  # what makes its devices slow; the executor's own rule if not given
    task: float = LEAST_TASK_S


@dataclasses.dataclass
class Problem:
    """A group's model and cluster, as measured, and how many samples an iteration takes."""
    model: dict
    cluster: dict
    microbatch: int
    batch: int

    @property
    def devices(self) -> List[dict]:
        return self.cluster["devices"]


def slowness(kind: str) -> float:
    """core: 1, core/4: 4."""
    name, _, factor = kind.partition("/")
    if name != "core":
        raise Fault(f'device kind "{kind}": expected core or core/NUMBER')
    return float(factor) if factor else 1.0


def measured(x: Sequence[float], y: Sequence[float], batch: float) -> float:
    """Linear between batch sizes and beyond the last."""
    if len(x) == 1 or batch <= x[0]:
        return y[0]
    i = next((i for i in range(1, len(x) - 1) if x[i] >= batch), len(x) - 1)
    return max(0.0, y[i - 1] + (y[i] - y[i - 1]) / (x[i] - x[i - 1]) * (batch - x[i - 1]))


def phases_of(layer: dict, kind: str, batch: float) -> Dict[str, float]:
    """Seconds of a layer's forward and of the two parts of its backward, from its measured profile: F, B, W."""
    p = layer["profile"][kind]
    forward, backward = (measured(p["batch"], p[what], batch) for what in ("forward", "backward"))
    inputs, weights = layer.get("backward_input_flops", 1), layer.get("backward_weight_flops", 1)
    return {"F": forward, "B": backward * inputs / (inputs + weights), "W": backward * weights / (inputs + weights)}


def seconds_of(layer: dict, kind: str, batch: float) -> float:
    return sum(phases_of(layer, kind, batch).values())


def stage_seconds(model: dict, kind: str, batch: float) -> float:
    return sum(seconds_of(l, kind, batch) for l in model["layers"])


# --- plans by hand ---------------------------------------------------------------------------------------------------------------


def shares(rates: Sequence[float], samples: int) -> List[int]:
    """Whole numbers > 0 that sum to `samples`, in proportion to the rates; largest remainders first, the first of equals."""
    if samples < len(rates):
        raise Fault(f"{samples} samples for {len(rates)} devices")
    free, total = samples - len(rates), sum(rates)
    exact = [free * r / total for r in rates]
    given = [int(x) for x in exact]
    order = sorted(range(len(rates)), key=lambda i: (given[i] - exact[i], i))
    for i in order[:free - sum(given)]:
        given[i] += 1
    return [1 + g for g in given]


def balanced_cuts(costs: Sequence[Sequence[float]]) -> List[int]:
    """Layers per stage so that the slowest stage is fastest: costs[stage][layer], layers in order, each stage at least one."""
    stages, layers = len(costs), len(costs[0])
    if layers < stages:
        raise Fault(f"{layers} layers for {stages} stages")
    best = {0: (0.0, [])}  # by layers taken so far: the slowest stage, layers per stage
    for s, cost in enumerate(costs):
        longer = {}
        for end in range(s + 1, layers - (stages - s - 1) + 1):
            if s == stages - 1 and end != layers:
                continue
            tries = ((max(worst, sum(cost[begin:end])), cuts + [end - begin]) for begin, (worst, cuts) in best.items() if begin < end)
            longer[end] = min(tries, key=lambda t: t[0])
        best = longer
    return best[layers][1]


def document(p: Problem, stages: Sequence[Tuple[List[str], Dict[str, int]]], schedule: str = "1f1b") -> dict:
    return {"format": "hetplan/plan/1", "model": p.model["name"], "cluster": p.cluster["name"], "planner": "by hand", "mode": "training",
            "workload": {"optimizer_factor": 0}, "microbatch_size": p.microbatch, "microbatches": p.batch // p.microbatch,
            "schedule": {"kind": schedule},
            "stages": [{"layers": layers, "devices": [{"name": d, "samples": n} for d, n in devices.items()]} for layers, devices in stages]}


def split(p: Problem, devices: Sequence[dict]) -> Dict[str, int]:
    """A microbatch over devices, by their speeds."""
    return {d["name"]: n for d, n in zip(devices, shares([1 / slowness(d["kind"]) for d in devices], p.microbatch))}


def in_line(*sizes: int, even: bool = False, schedule: str = "1f1b", dearer: float = 1) -> Callable[[Problem], dict]:
    """A chain of stages of so many devices each, in cluster order. even: as many layers everywhere, whatever they cost. dearer: balanced
    as if the first stage took so many times its time."""
    def make(p: Problem) -> dict:
        names, groups, first = [l["name"] for l in p.model["layers"]], [], 0
        for n in sizes:
            groups.append(p.devices[first:first + n])
            first += n
        costs = []
        for group in groups:
            part = split(p, group)
            costs.append([1.0 if even else max(seconds_of(l, d["kind"], part[d["name"]]) for d in group) for l in p.model["layers"]])
        costs[0] = [dearer * c for c in costs[0]]
        stages, first = [], 0
        for group, n in zip(groups, balanced_cuts(costs)):
            stages.append((names[first:first + n], split(p, group)))
            first += n
        return document(p, stages, schedule)
    return make


def data_parallel(p: Problem) -> dict:
    return document(p, [([l["name"] for l in p.model["layers"]], split(p, p.devices))])


def orders_of(on: Sequence[str], seconds: Sequence[Dict[str, float]], sent: Sequence[float], passes: Sequence[float], first: str,
              ahead: int) -> Dict[str, list]:
    """What devices do, one task after another: a free one takes what it can, of several the phase that stands first. on[stage] is its device,
    sent[stage] what a microbatch takes to the next one or back, passes the sizes of what goes through, in microbatches; at most `ahead` of
    them are between F and the last phase, W or a whole B, of a device's first stage."""
    microbatches, last = len(passes), "W" if "W" in first else "B"
    ended: Dict[Tuple[str, int, int], float] = {}
    done = {(what, s): 0 for what in first for s in range(len(on))}
    free, orders = dict.fromkeys(on, 0.0), {d: [] for d in on}
    while len(ended) < len(done) * microbatches:
        ready = []
        for (what, s), m in done.items():
            needs = {"F": [("F", s - 1, m)] * (s > 0), "B": [("F", s, m)] + [("B", s + 1, m)] * (s + 1 < len(on)), "W": [("B", s, m)]}[what]
            waits = what == "F" and s == on.index(on[s]) and m - done[last, s] >= ahead
            if m < microbatches and not waits and all(n in ended for n in needs):
                there = [ended[n] + (passes[m] * sent[min(s, n[1])] if n[1] != s else 0) for n in needs]
                ready.append((max([free[on[s]]] + there), first.index(what), m, s, what))
        start, _, m, s, what = min(ready)
        free[on[s]] = ended[what, s, m] = start + passes[m] * seconds[s][what]
        done[what, s] += 1
        orders[on[s]].append([what, s, m])
    return orders


def ramp(microbatch: int, count: int) -> List[int]:
    """As many samples in passes of which the first two and the last two are half a microbatch: a pipeline fills and drains sooner."""
    half = [microbatch // 2, microbatch - microbatch // 2]
    return half + [microbatch] * (count - 2) + half[::-1]


def in_order(first: str, path: str = "down", ahead: Optional[int] = None, ramped: bool = False, recompute: bool = False) -> Callable[[Problem], dict]:
    """Stages on single devices, in orders of tasks. path: a stage for each device ("down"), back up again behind them ("v"), or once more from
    the first device on ("twice"). first, ahead: orders_of; with "W" gradients of weights are apart."""
    def make(p: Problem) -> dict:
        devices = p.devices + {"down": [], "v": p.devices[::-1], "twice": p.devices}[path]
        cuts = balanced_cuts([[seconds_of(l, d["kind"], p.microbatch) for l in p.model["layers"]] for d in devices])
        capacity = min([r["capacity"] for r in p.cluster.get("resources", [])] or [p.cluster["topology"]["capacity"]])
        stages, seconds, sent, at, before = [], [], [], 0, set()
        for d, n in zip(devices, cuts):
            layers = p.model["layers"][at:at + n]
            stages.append(([l["name"] for l in layers], {d["name"]: p.microbatch}))
            parts = [phases_of(l, d["kind"], p.microbatch) for l in layers]
            seconds.append({what: sum(part[what] for part in parts) for what in "FBW"})
            seconds[-1]["B"] += ("W" not in first) * seconds[-1]["W"] + recompute * seconds[-1]["F"]
            at += n
            before |= {l["name"] for l in layers}
            cut = sum(e["bytes"] for e in p.model["edges"] if e["from"] in before and e["to"] not in before)
            to_itself = devices[len(stages) % len(devices)] is d
            sent.append(0 if to_itself else p.microbatch * cut / capacity)
        made = document(p, stages, "explicit")
        passes = ramp(p.microbatch, made["microbatches"]) if ramped else [p.microbatch] * made["microbatches"]
        made["schedule"]["orders"] = orders_of([d["name"] for d in devices], seconds, sent, [n / p.microbatch for n in passes], first, ahead or len(passes))
        ends = [0, *itertools.accumulate(passes)]
        for s in made["stages"]:
            if ramped:
                s["cuts"] = {"forward": ends, "backward": ends}
            if recompute:
                s["recompute"] = True
        return made
    return make


def branches(model: dict) -> Tuple[List[List[str]], List[str]]:
    """The parts of a model that lie side by side in front of the first layer that joins all of them, and the layers from there on."""
    before = {l["name"]: set() for l in model["layers"]}
    for l in before:
        todo = [e["from"] for e in model["edges"] if e["to"] == l]
        while todo:
            one = todo.pop()
            if one not in before[l]:
                before[l].add(one)
                todo += [e["from"] for e in model["edges"] if e["to"] == one]
    for l in before:
        ends = [e["from"] for e in model["edges"] if e["to"] == l]
        parts = [before[end] | {end} for end in ends]
        if len(parts) > 1 and all(not a & b for i, a in enumerate(parts) for b in parts[:i]):
            taken = set().union(*parts)
            return [[n for n in before if n in part] for part in parts], [n for n in before if n not in taken]
    raise Fault(f'model "{model["name"]}" has no layer that joins branches')


def side_by_side(*sizes: int) -> Callable[[Problem], dict]:
    """A DAG of stages: a stage per branch, of so many devices each, and one for what follows."""
    def make(p: Problem) -> dict:
        parts, rest = branches(p.model)
        if len(sizes) != len(parts) + 1:
            raise Fault(f'model "{p.model["name"]}" has {len(parts)} branches; the case is made for {len(sizes) - 1}')
        stages, first = [], 0
        for layers, n in zip(parts + [rest], sizes):
            stages.append((layers, split(p, p.devices[first:first + n])))
            first += n
        return document(p, stages)
    return make


def planned(name: str, *options: str) -> Plan:
    return Plan(" ".join((name,) + options).replace("--", ""), planner=("--planner", name) + options)


def groups_of(executor: str) -> List[Group]:
    """The same cases for every executor, on the networks that it has."""
    chain, other = ("transformer", "cnn" if executor == "torch" else "mlp")
    dora, even = planned("dora"), planned("dora", "--phase", "2")
    return [
        Group("two", chain, ("core", "core"), "shared", 0.1,
              (Plan("chain", in_line(1, 1)), Plan("chain, even layers", in_line(1, 1, even=True)),
               Plan("chain, gpipe", in_line(1, 1, schedule="gpipe")), Plan("data parallel", data_parallel), dora)),
        Group("three", other, ("core/2", "core/4", "core/4"), "star", 1,
              (Plan("chain", in_line(1, 1, 1)), Plan("replicated, then one", in_line(2, 1)), Plan("data parallel", data_parallel),
               dora, planned("asteroid"))),
        Group("four", chain, ("core/2", "core/4", "core/4", "core/4"), "ring", 0.7,
              (Plan("chain", in_line(1, 1, 1, 1)), Plan("replicated twice", in_line(2, 2)), Plan("data parallel", data_parallel),
               planned("pipedream"))),
        Group("five", "towers", ("core/4",) * 5, "shared", 1,
              (Plan("branches", side_by_side(2, 1, 2)), Plan("chain", in_line(1, 1, 1, 1, 1)), Plan("data parallel", data_parallel), dora, even)),
        Group("air", chain, ("core/2", "core/4", "core/4", "core/4"), "shared", 1.5,
              (Plan("chain", in_line(1, 1, 1, 1)), Plan("replicated twice", in_line(2, 2)), dora, even)),
        Group("drafts", chain, ("core/2", "core/4", "core/4"), "star", 0.5,
              (Plan("in order", in_order("BF")), Plan("folded", in_order("BF", "v")), Plan("ramped", in_order("BF", ramped=True)),
               Plan("recomputing", in_order("BF", recompute=True)), Plan("all three", in_order("BF", "v", ramped=True, recompute=True)), dora)),
    ]


def sweep_of(executor: str, cores: int) -> List[Group]:
    """Plans in which no device waits: on five cores, or on two where there are fewer. Every other load then has a device that does its
    work twice."""
    networks = ("transformer", "cnn" if executor == "torch" else "mlp", "towers")
    groups = []
    for network, topology, (i, load) in itertools.product(networks, ("shared", "star", "ring"), enumerate((0.1, 0.5, 1, 2))):
        plans = [Plan("data parallel", data_parallel), planned("dora"), planned("dora", "--phase", "2"), planned("asteroid")]
        if cores >= 5:
            kinds, ones = ("core",) * 5, (1,) * 5
            plans += [Plan("replicated, then one", in_line(2, 2, 1)),
                      Plan("branches", side_by_side(2, 1, 2)) if network == "towers" else Plan("three, then two", in_line(3, 2))]
        else:
            kinds, ones = ("core", "core/2" if i % 2 else "core"), (1, 1)
            plans += [Plan("chain, cut early", in_line(1, 1, dearer=2)), Plan("chain, cut late", in_line(1, 1, dearer=0.5))]
        plans += [Plan("chain", in_line(*ones)), Plan("chain, even layers", in_line(*ones, even=True)),
                  Plan("chain, gpipe", in_line(*ones, schedule="gpipe"))]
        groups.append(Group(f"{network}-{topology}-{load:g}", network, kinds, topology, load, tuple(plans), 0.3))
    return groups


def zero_bubble_of(executor: str, cores: int) -> List[Group]:
    """Gradients of weights as tasks of their own, beside the same chain with whole backwards. Two devices at full speed, four where there are
    so many cores; slower ones that wait."""
    chain, other = ("transformer", "cnn" if executor == "torch" else "mlp")
    plans = (Plan("1F1B", in_line(1, 1)), Plan("compact", in_order("FBW")), Plan("eager", in_order("BFW")),
             Plan("eager, two ahead", in_order("BFW", ahead=2)), Plan("eager, down and up", in_order("BFW", "v")),
             Plan("eager, twice", in_order("BFW", "twice")))
    more = (Plan("1F1B", in_line(1, 1, 1, 1)), Plan("compact", in_order("FBW")), Plan("eager", in_order("BFW")),
            Plan("eager, six ahead", in_order("BFW", ahead=6)),
            Plan("eager, down and up", in_order("BFW", "v")))
    few = 0.04  # seconds of a task: so few microbatches that there are bubbles
    slower = {"kinds": ("core/8", "core/16", "core/16", "core/16"), "plans": more, "seconds": 2, "slow": "wait", "task": 0.1}
    full = [Group("two", chain, ("core",) * 2, "shared", 0.1, plans, task=few), Group("pair", other, ("core",) * 2, "star", 0.5, plans, task=few)]
    if cores >= 4:
        full.append(Group("row", chain, ("core",) * 4, "star", 0.5, more, task=few))
    return full + [Group(name, chain, topology=topology, load=load, **slower) for name, topology, load in (("four", "ring", 0.7), ("air", "shared", 1.5))]


# --- clusters --------------------------------------------------------------------------------------------------------------------


def cluster_of(group: Group, capacity: float) -> dict:
    """The nominal cluster: its topology shapes the links. Devices are named d0, d1, ..."""
    devices = [{"name": f"d{i}", "kind": kind, "memory": "8 GB", "compute": 5e9 / slowness(kind)} for i, kind in enumerate(group.kinds)]
    return {"format": "hetplan/cluster/1", "name": group.name, "devices": devices,
            "topology": {"kind": group.topology, "capacity": capacity, "latency": "1 ms"}}


def sized(group: Group, model: dict) -> Tuple[int, int, float]:
    """Microbatch size, batch and capacity with which the group's iterations take about as long as they should.

    The microbatch is the smallest whose tasks are long enough; the capacity is such that a chain of all devices has `load` times as
    much to send over its busiest resource as its devices have to compute, but no less than what lets the gradients of the whole
    network go round in twice that time.
    """
    n = len(group.kinds)
    fastest = min(group.kinds, key=slowness)
    fits = (b for b in SIZES if b >= 2 * n and stage_seconds(model, fastest, b) / n >= group.task)
    microbatch = next(fits, SIZES[-1])
    rate = sum(1 / stage_seconds(model, kind, microbatch) for kind in group.kinds)
    microbatches = min(max(round(group.seconds * rate), 4), 48)
    work_s = microbatches / rate
    tensor = statistics.median_low([e["bytes"] for e in model["edges"]])
    crossings = {"shared": 2 * (n - 1), "star": min(n - 1, 2)}.get(group.topology, 1)  # of a star's wire, a device in the middle sends both ways
    sent = microbatch * microbatches * tensor * crossings / group.load
    reduced = 2 * (n - 1) * sum(l.get("weight", 0) for l in model["layers"]) / (1 if group.topology == "shared" else n)
    return microbatch, microbatch * microbatches, max(sent / work_s, reduced / (2 * group.seconds))


def batch_sizes(group: Group, microbatch: int) -> List[int]:
    """Where layers are profiled: at what any devices in a row get of a microbatch, and a few sizes between."""
    rates = [1 / slowness(kind) for kind in group.kinds]
    parts = {n for i, j in itertools.combinations(range(len(rates) + 1), 2) if j - i <= microbatch for n in shares(rates[i:j], microbatch)}
    return sorted(parts | {1, microbatch // 4, microbatch // 2})
