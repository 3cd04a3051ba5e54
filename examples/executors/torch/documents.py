# SPDX-License-Identifier: BSL-1.0
"""What the executor reads: models and clusters as `hetplan show` spells them out, task graphs as `hetplan export` writes them.

Seconds, bytes and bytes per second throughout. The formats: docs/reference/files.md.
"""

import json
import math
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from problems import BadInput


class Route(NamedTuple):
    latency: float
    via: Tuple[Tuple[str, float], ...]  # resource, weight


@dataclass
class Cluster:
    """A cluster file, spelled out: a resource and a route for whatever its topology says."""
    document: Dict[str, Any]
    kinds: Dict[str, str]
    capacities: Dict[str, float]
    routes: Dict[Tuple[str, str], Route]


def slowness(kind: str, device: str) -> float:
    """How many times slower than a core of this machine a device of kind core/s is: s."""
    base, slash, factor = kind.partition("/")
    try:
        value = float(factor) if slash else 1.0
    except ValueError:
        value = 0.0
    if base != "core" or not 1 <= value < math.inf:
        raise BadInput(f'device "{device}": expected kind "core" or "core/s" with s >= 1, got "{kind}"')
    return value


class Pace(NamedTuple):
    """How slow a device is beside a core, and by what means."""
    times: int = 1     # it does the work of a task so often; all but the last go to waste
    wait: float = 1.0  # a task lasts so many times the processor time of its work: the device waits until then


def paces(asked: Optional[str], kinds: Dict[str, str], cores: int) -> Tuple[str, Dict[str, Pace]]:
    """By device, what makes core/N slow: "repeat" or "wait". Not told: repeat where there is a core for every device and every N is whole."""
    slow = {d: slowness(kind, d) for d, kind in kinds.items()}
    odd = [d for d, s in slow.items() if s != int(s)]
    if asked == "repeat" and odd:
        raise BadInput(f'device "{odd[0]}": expected a whole number of times with --slow repeat, got kind "{kinds[odd[0]]}"')
    if asked == "repeat" or (asked is None and not odd and len(kinds) <= cores):
        return "repeat", {d: Pace(times=int(s)) for d, s in slow.items()}
    return "wait", {d: Pace(wait=s) for d, s in slow.items()}


class Chunk(NamedTuple):
    bytes: float
    release: float  # not before so many seconds of the iteration
    priority: int   # the smaller goes first


@dataclass
class Message:
    """A transfer of samples [first, last) with all of its chunks; a `sync` one belongs to a ring and has no tasks or samples."""
    kind: str
    source: str
    target: str
    from_stage: int
    to_stage: int
    first: int
    last: int
    producer: Optional[int]
    consumer: Optional[int]
    chunks: List[Chunk]


@dataclass
class Task:
    """Phase F, B, W (gradients of weights, where B has those of the inputs alone) or U (a step of the optimizer) of a stage on one device,
    for samples [first, last) of the batch."""
    device: str
    phase: str
    stage: int
    microbatch: int
    first: int
    last: int
    seconds: float
    needs: List[int]  # tasks of the same device whose result it takes directly


@dataclass
class Stage:
    name: str
    layers: List[str]
    devices: List[str]
    recompute: bool = False  # from its F it keeps inputs alone, and its B begins with its F, run again


@dataclass
class Reduction:
    """A ring: a stage's own, or one over the first devices of stages that share tensors."""
    devices: List[str]
    stages: List[int]   # of each device in the ring
    holders: List[int]  # all stages that hold these tensors
    layers: List[str]


@dataclass
class TaskGraph:
    file: str
    model: str
    batch: int
    network: str
    planner: str
    kinds: Dict[str, str]
    orders: Dict[str, List[int]]
    capacities: Dict[str, float]
    routes: Dict[Tuple[str, str], Route]
    stages: List[Stage]
    tasks: List[Task]
    messages: List[Message]
    reductions: List[Reduction]
    latency: float
    predicted: Dict[str, Any]

    @property
    def used(self) -> List[str]:
        """Devices with a part in the plan, in the cluster's order."""
        holding = {d for s in self.stages for d in s.devices}
        return [d for d in self.orders if d in holding]

    @property
    def has_priorities(self) -> bool:
        return self.network == "priority" and len({c.priority for m in self.messages for c in m.chunks}) > 1


class Reader:
    """A value of a JSON document that knows where it stands."""

    def __init__(self, file: str, value: Any, place: str = ""):
        self.file, self.value, self.place = file, value, place

    def fail(self, expected: str) -> BadInput:
        found = json.dumps(self.value)
        return BadInput(f"{self.file}: {self.place or '/'}: expected {expected}, got {found if len(found) < 60 else found[:57] + '...'}")

    def get(self, key: str, kind: type = object, default: Any = None) -> "Reader":
        if not isinstance(self.value, dict):
            raise self.fail("an object")
        if key not in self.value and default is None:
            raise BadInput(f'{self.file}: {self.place or "/"}: expected key "{key}"')
        return Reader(self.file, self.value.get(key, default), f"{self.place}/{key}").of(kind)

    def of(self, kind: type) -> "Reader":
        right = isinstance(self.value, (int, float) if kind is float else kind) and not (kind in (int, float) and isinstance(self.value, bool))
        if not right:
            raise self.fail({float: "a number", int: "an integer", bool: "true or false", str: "a text", list: "a list", dict: "an object"}[kind])
        if kind in (int, float) and not 0 <= self.value < 1e18 and not self.place.endswith("/priority"):
            raise self.fail("a finite number >= 0")
        return self

    def each(self, kind: type = object) -> List["Reader"]:
        return [Reader(self.file, v, f"{self.place}/{i}").of(kind) for i, v in enumerate(self.of(list).value)]

    def one_of(self, known: Any, what: str) -> Any:
        if isinstance(self.value, (list, dict)) or self.value not in known:
            raise self.fail(what)
        return self.value

    def text(self, key: str) -> str:
        return self.get(key, str).value

    def number(self, key: str) -> float:
        return self.get(key, float).value


def require_writable(path: str) -> None:
    """Before work whose result is to be written there."""
    if os.path.isdir(path) or not os.access(path if os.path.exists(path) else os.path.dirname(path) or ".", os.W_OK):
        raise BadInput(f"{path}: cannot be written")


def write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as e:
        raise BadInput(f"{path}: cannot be written: {e.strerror}") from e


class Program:
    """The command line program, which reads every file and writes task graphs."""

    def __init__(self, path: Optional[str]):
        given = path or os.environ.get("HETPLAN_CLI") or "hetplan"
        self.path = shutil.which(given)
        if self.path is None:
            raise BadInput(f"{given}: no such program; expected hetplan by --hetplan or HETPLAN_CLI")

    def answer(self, *arguments: str) -> str:
        """What it prints. Throws BadInput with the last line of its complaint."""
        try:
            done = subprocess.run([self.path, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
        except (OSError, subprocess.TimeoutExpired) as e:
            raise BadInput(f"hetplan {arguments[0]}: {e}") from e
        if done.returncode != 0:
            lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or [f"hetplan {arguments[0]}: status {done.returncode}"]
            raise BadInput(lines[-1])
        return done.stdout

    def document(self, *arguments: str, place: str) -> Reader:
        text = self.answer(*arguments)
        try:
            return Reader(place, json.loads(text))
        except ValueError as e:
            raise BadInput(f"{place}: hetplan {arguments[0]} answered no JSON: {e}") from e

    def model(self, file: str) -> Dict[str, Any]:
        return self.document("show", file, "--json", place=file).of(dict).value

    def cluster(self, file: str) -> Cluster:
        d = self.document("show", file, "--json", place=file)
        kinds = {x.text("name"): x.get("kind", str, x.text("name")).value for x in d.get("devices", list).each(dict)}
        return Cluster(d.value, kinds, _capacities(d), _routes(d))

    def tasks(self, model: str, cluster: str, plan: str) -> TaskGraph:
        return read_tasks(self.document("export", model, cluster, plan, "--to", "tasks", place=f"{plan} (tasks)"))

    def replay(self, model: str, cluster: str, plan: str, lost: List[str], out: str) -> None:
        self.answer("replay", model, cluster, plan, "--lost", ",".join(lost), "--out", out)


def _capacities(d: Reader) -> Dict[str, float]:
    return {r.text("name"): r.number("capacity") for r in d.get("resources", list, []).each(dict)}


def _routes(d: Reader) -> Dict[Tuple[str, str], Route]:
    routes = {}
    for r in d.get("routes", list, []).each(dict):
        via = tuple((u.text("resource"), u.get("weight", float, 1.0).value) for u in r.get("via", list).each(dict))
        routes[r.text("from"), r.text("to")] = Route(r.get("latency", float, 0.0).value, via)
    return routes


def read_tasks(d: Reader) -> TaskGraph:
    """A hetplan/tasks/1 document, with all that the executor relies on checked."""
    d.get("format").one_of(["hetplan/tasks/1"], '"hetplan/tasks/1"')
    d.get("mode").one_of(["training"], '"training": this executor trains')
    if "parameter_server" in d.value:
        raise d.get("parameter_server").fail("no parameter server: this executor reduces in rings")
    d.get("network").one_of(["fair_share", "priority"], '"fair_share" or "priority": this executor holds no ports')
    devices = d.get("devices", list).each(dict)
    names = [x.text("name") for x in devices]
    stages = []
    for s in d.get("stages", list).each(dict):
        if s.value.get("pipeline", 0) != 0:
            raise s.get("pipeline").fail("0: this executor runs one pipeline")
        if len(s.get("devices", list).value) > 1:
            s.get("shard_state", bool, False).one_of([False], "false: this executor's devices each hold the whole optimizer's state")
        for a in s.get("devices", list).each(dict):
            a.get("tensor_parallel", int, 1).one_of([1], "1: this executor has no tensor parallelism")
        members = [a.get("name").one_of(names, "a device of the file") for a in s.get("devices", list).each(dict)]
        stages.append(Stage(s.text("name"), [x.value for x in s.get("layers", list).each(str)], members, s.get("recompute", bool, False).value))
    tasks = [_task(t, names, stages) for t in d.get("tasks", list).each(dict)]
    orders = {x.text("name"): [_task_of(x.text("name"), t, tasks) for t in x.get("order", list).each()] for x in devices}
    if sorted(t for order in orders.values() for t in order) != list(range(len(tasks))):
        raise d.get("devices").fail("every task once in the orders")
    graph = TaskGraph(d.file, d.text("model"), d.get("batch", int).value, d.text("network"), d.get("planner", str, "given").value,
                      {x.text("name"): x.text("kind") for x in devices}, orders, _capacities(d), _routes(d), stages, tasks, [], [],
                      d.get("predicted", dict).number("latency"), d.get("predicted", dict).value)
    graph.messages = _messages(d, names, graph)
    for r in d.get("reductions", list).each(dict):
        members = [m.one_of(names, "a device of the file") for m in r.get("devices", list).each(str)]
        own = [s.value for s in r.get("stages", list).each(int)]
        holders = [s.value for s in r.get("holders", list, sorted(set(own))).each(int)]
        graph.reductions.append(Reduction(members, own, holders, [x.value for x in r.get("layers", list).each(str)]))
    return graph


def _task_of(device: str, t: Reader, tasks: List[Task]) -> int:
    if not (0 <= t.of(int).value < len(tasks) and tasks[t.value].device == device):
        raise t.fail(f'the index of a task of device "{device}"')
    return t.value


def _samples(d: Reader) -> Tuple[int, int]:
    ends = [x.value for x in d.get("samples", list).each(int)]
    if len(ends) != 2 or ends[0] >= ends[1]:
        raise d.get("samples").fail("[first, last) of the batch")
    return ends[0], ends[1]


def _task(t: Reader, names: List[str], stages: List[Stage]) -> Task:
    stage = t.get("stage", int).one_of(range(len(stages)), "the index of a stage")
    device = t.get("device").one_of(names, "a device of the file")
    if device not in stages[stage].devices:
        raise t.get("device").fail(f'a device of stage "{stages[stage].name}"')
    first, last = _samples(t)
    phase = t.get("phase").one_of(["F", "B", "W", "U"], '"F", "B", "W" or "U"')
    needs = [n.value for n in t.get("needs", list, []).each(int)]
    return Task(device, phase, stage, t.get("microbatch", int).value, first, last, t.number("seconds"), needs)


def _messages(d: Reader, names: List[str], graph: TaskGraph) -> List[Message]:
    """Transfers with their chunks together; chunks stand one after another in the file."""
    messages: List[Message] = []
    for t in d.get("transfers", list).each(dict):
        kind = t.get("kind").one_of(["forward", "backward", "sync"], '"forward", "backward" or "sync"')
        chunk, of = t.get("chunk", int, 0).value, t.get("of", int, 1).value
        c = Chunk(t.number("bytes"), t.get("release", float, 0.0).value, t.get("priority", int, 0).value)
        if chunk > 0:
            if not messages or len(messages[-1].chunks) != chunk:
                raise t.get("chunk").fail("chunks of a transfer in order")
            messages[-1].chunks.append(c)
            continue
        ends = [t.get(key).one_of(names, "a device of the file") for key in ("from", "to")]
        if kind == "sync":
            messages.append(Message(kind, *ends, t.get("from_stage", int).value, t.get("to_stage", int).value, 0, 0, None, None, [c]))
        else:
            tasks = [_task_of(device, t.get(key), graph.tasks) for key, device in zip(("producer", "consumer"), ends)]
            between = [graph.tasks[task].stage for task in tasks]
            messages.append(Message(kind, *ends, *between, *_samples(t), *tasks, [c]))
        if of < 1:
            raise t.get("of").fail("a number of chunks")
        if tuple(ends) not in graph.routes:
            raise t.fail("a transfer with a route in the file")
    return messages
