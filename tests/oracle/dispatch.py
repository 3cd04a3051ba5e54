# SPDX-License-Identifier: BSL-1.0
"""Dispatch policies once more, slowly: an oracle for the schedules that the simulator finds by itself.

A pipeline has stages in a chain, the device of each, the times of their three phases and delays
between neighbours; nothing shares a network. Whenever a device is free it takes the first ready task by the
policy: `compact` F before B before W, `eager` B before F before W; within a class the least microbatch,
then the least stage. It shares no code with the library.

    dispatch.py [FILE]      {"F", "B", "W", "c", "m", "memory"} or {"cases": [...]}, from FILE or standard input:
                            what both policies do, and the lower bound of each stage's span
"""
import heapq
import json
import math
import sys
from dataclasses import dataclass, field

CLASSES = {"compact": "FBW", "eager": "BFW"}
INSTANT = 1e-9      # events that are no farther apart than this part of their time are one instant


@dataclass
class Pipeline:
    forward: list           # seconds of F, B and W for each stage
    backward: list
    weight: list
    delay: list             # between stage s and s + 1, both ways
    microbatches: int
    memory: list            # of each device, in what F keeps of a microbatch of one stage; inf: no limit
    device: list = None     # of each stage; left out: its own number
    keeps: list = None      # activations of one microbatch that F takes, B halves and W gives back; left out: 1
    inputs: dict = field(default_factory=dict)      # recomputing stage -> what its F takes instead

    def __post_init__(self):
        self.device = self.device or list(range(len(self.forward)))
        self.keeps = self.keeps or [1.0] * len(self.forward)

    def stages(self):
        return range(len(self.forward))

    def seconds(self, phase, stage):
        again = self.forward[stage] if phase == "B" and stage in self.inputs else 0
        return {"F": self.forward, "B": self.backward, "W": self.weight}[phase][stage] + again

    def taken(self, phase, stage):
        """At the start of a task; a recomputing stage takes its inputs first and activations at its B."""
        if stage in self.inputs:
            return {"F": self.inputs[stage], "B": self.keeps[stage], "W": 0}[phase]
        return self.keeps[stage] if phase == "F" else 0

    def released(self, phase, stage):
        """At the end of a task: half of the activations are the weights'."""
        half = self.keeps[stage] / 2
        return {"F": 0, "B": half, "W": half + self.inputs.get(stage, 0)}[phase]

    def room(self, phase, stage):
        """What must be free for a task to be ready: an F leaves room for a microbatch of every later stage of its
        device, and for the largest activations that are computed anew there."""
        room = self.taken(phase, stage)
        if phase == "F":
            here = [s for s in self.stages() if self.device[s] == self.device[stage]]
            room += sum(self.taken("F", s) for s in here if s > stage)
            room += max((self.keeps[s] for s in here if s in self.inputs), default=0)
        return room

    def needs(self, phase, stage, m):
        """[(task, delay of what it sends)] that a task waits for."""
        last = len(self.forward) - 1
        if phase == "F":
            return [(("F", stage - 1, m), self.delay[stage - 1])] if stage > 0 else []
        if phase == "W":
            return [(("B", stage, m), 0)]
        own = [(("F", stage, m), 0)]
        return own if stage == last else own + [(("B", stage + 1, m), self.delay[stage])]


@dataclass
class Run:
    start: dict     # (phase, stage, m) -> seconds
    end: dict
    orders: dict    # device -> tasks in their order

    def makespan(self):
        return max(self.end.values())

    def span(self, device):
        return self.end[self.orders[device][-1]] - self.start[self.orders[device][0]]


def dispatch(pipeline, policy):
    """Runs the policy; what has arrived decides, and where several events are one instant they all have."""
    classes = CLASSES[policy]
    tasks = [(phase, s, m) for phase in "FBW" for s in pipeline.stages() for m in range(pipeline.microbatches)]
    run = Run({}, {}, {d: [] for d in pipeline.device})
    free_at = {d: 0.0 for d in pipeline.device}     # a device that is in no `free` set is busy
    free, held = set(pipeline.device), {d: 0.0 for d in pipeline.device}
    missing = {t: len(pipeline.needs(*t)) for t in tasks}
    arrived = {t: 0.0 for t in tasks}               # when the last input came
    waiting = {d: set() for d in pipeline.device}   # tasks with all their inputs
    after = {t: [] for t in tasks}
    for task in tasks:
        for before, delay in pipeline.needs(*task):
            after[before].append((task, delay))
        if missing[task] == 0:
            waiting[pipeline.device[task[1]]].add(task)
    events, number = [], 0                          # (time, number, what, task)

    def at(time, what, task):
        nonlocal number
        number += 1
        heapq.heappush(events, (time, number, what, task))

    def process(time, what, task):
        device = pipeline.device[task[1]]
        if what == "end":
            held[device] -= pipeline.released(*task[:2])
            free.add(device)
            free_at[device] = time
            for later, delay in after[task]:
                at(time + delay, "arrival", later)
            return
        missing[task] -= 1
        arrived[task] = max(arrived[task], time)
        if missing[task] == 0:
            waiting[device].add(task)

    def fits(task):
        device = pipeline.device[task[1]]
        limit = pipeline.memory[device]
        return held[device] + pipeline.room(*task[:2]) <= limit * (1 + INSTANT)

    instant = 0.0
    while True:
        while events and events[0][0] - instant <= INSTANT * instant:
            time, _, what, task = heapq.heappop(events)
            process(time, what, task)
        for device in sorted(free):
            ready = [t for t in waiting[device] if fits(t)]
            if not ready:
                continue
            task = min(ready, key=lambda t: (classes.index(t[0]), t[2], t[1]))
            waiting[device].remove(task)
            free.remove(device)
            held[device] += pipeline.taken(*task[:2])
            run.orders[device].append(task)
            run.start[task] = max(free_at[device], arrived[task])
            run.end[task] = run.start[task] + pipeline.seconds(*task[:2])
            at(run.end[task], "end", task)
        if not events:
            break
        instant = max(instant, events[0][0])
    if len(run.end) < len(tasks):
        raise RuntimeError(f"{len(tasks) - len(run.end)} of {len(tasks)} tasks never run")
    return run


def replay(pipeline, orders):
    """The same orders without a policy and without memory: each task as soon as its device and inputs are there."""
    run = Run({}, {}, orders)
    place = {d: 0 for d in orders}
    free_at = {d: 0.0 for d in orders}
    going = True
    while going:
        going = False
        for device, tasks in orders.items():
            while place[device] < len(tasks):
                task = tasks[place[device]]
                needs = pipeline.needs(*task)
                if any(before not in run.end for before, _ in needs):
                    break
                inputs = [run.end[before] + delay for before, delay in needs]
                run.start[task] = max([free_at[device], *inputs])
                run.end[task] = free_at[device] = run.start[task] + pipeline.seconds(*task[:2])
                place[device] += 1
                going = True
    if any(place[d] < len(tasks) for d, tasks in orders.items()):
        raise RuntimeError("cyclic orders")
    return run


def peak(pipeline, run, device):
    """The most activations that a device holds, in its order."""
    held = most = 0.0
    for task in run.orders[device]:
        held += pipeline.taken(*task[:2])
        most = max(most, held)
        held -= pipeline.released(*task[:2])
    return most


def lower_bound(pipeline, stage):
    """Of the span of a stage that has its device to itself: its work, and what its first microbatch waits for
    where memory admits too few forwards meanwhile."""
    window = pipeline.forward[-1]
    for s in reversed(range(stage, len(pipeline.forward) - 1)):
        window += pipeline.forward[s] + pipeline.backward[s + 1] + 2 * pipeline.delay[s]
    m, memory = pipeline.microbatches, pipeline.memory[pipeline.device[stage]]
    admitted = m if memory >= m else math.floor(memory)
    work = sum(pipeline.seconds(phase, stage) for phase in "FBW")
    return m * work + max(0, window - admitted * pipeline.forward[stage])


def chain(case):
    """A pipeline of one stage a device, as the reference writes it down: no memory is no limit."""
    limits = case.get("memory") or [None] * len(case["F"])
    return Pipeline(case["F"], case["B"], case["W"], case["c"], case["m"], [math.inf if x is None else x for x in limits])


def told(case):
    pipeline, values = chain(case), {}
    for policy in CLASSES:
        run = dispatch(pipeline, policy)
        devices = sorted(run.orders)
        values[policy] = {"makespan": run.makespan(), "spans": [run.span(d) for d in devices],
                          "peak": [peak(pipeline, run, d) for d in devices],
                          "orders": [[f"{phase}{m}" for phase, _, m in run.orders[d]] for d in devices]}
    return {"values": values, "lower_bound_of_span": [lower_bound(pipeline, s) for s in pipeline.stages()]}


def main(arguments):
    if len(arguments) > 1 or any(a.startswith("-") for a in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    if arguments:
        with open(arguments[0], encoding="utf-8") as stream:
            document = json.load(stream)
    else:
        document = json.load(sys.stdin)
    found = {"results": [told(c) for c in document["cases"]]} if "cases" in document else told(document)
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
