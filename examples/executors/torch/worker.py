# SPDX-License-Identifier: BSL-1.0
"""A device: a process that runs its tasks in their order, and answers the coordinator.

What it is told, and what it says to that: peers; adopt, adopted; then for every iteration prepare, prepared; start, done; step,
stepped; commit. In between abort, probe, and beats without being asked. weights, weights at the end. send, sent and take, took
from the profiler. Failed, where something does not come or goes wrong.
"""

import contextlib
import ctypes
import functools
import math
import os
import queue
import signal
import threading
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch

from documents import Pace, Task, TaskGraph
from links import Aborted, Key, Links, pieces_of
from models import Network
from problems import CannotGoOn
from reductions import Reducer
from stages import Slice, StagePart, Tensors, assemble, carried, flat, pack, unpack

BEAT_SECONDS = 0.25


class Settings(NamedTuple):
    network: Network
    seed: int
    paces: Dict[str, Pace]  # by device; empty: all are as fast as a core
    timeout: float

    def patience(self, graph: TaskGraph) -> float:
        """Seconds that what should come may take under a plan."""
        return self.timeout + 3 * graph.latency


class Store:
    """Weights by layer and version that this device can hand out: its own stages' and copies of others'."""

    def __init__(self, settings: Settings):
        self.network, self.seed = settings.network, settings.seed
        self.version = 0
        self.settled: Dict[int, StagePart] = {}  # of the last plan that everybody had adopted: more may be lost on the way to the next
        self.copies: Dict[Tuple[str, int], torch.Tensor] = {}

    def weights(self, layer: str) -> torch.Tensor:
        for p in self.settled.values():
            if layer in p.layers:
                return p.weights(layer)
        if self.version == 0:  # nothing was learnt yet: the seed says it all
            return flat([p.detach() for p in self.network.module(layer, self.seed).parameters()])
        return self.copies[layer, self.version]

    def commit(self, version: int) -> None:
        self.version = version
        self.copies = {k: v for k, v in self.copies.items() if k[1] >= version}


class Worker:
    def __init__(self, device: str, settings: Settings, links: Links, control: Connection):
        self.device, self.settings, self.links, self.control = device, settings, links, control
        self.pace = settings.paces.get(device, Pace())
        self.store = Store(settings)
        self.parts: Dict[int, StagePart] = {}
        self.commands: "queue.Queue[Tuple[Any, ...]]" = queue.Queue()
        self.speaking = threading.Lock()
        self.epoch = 0
        self.reducer: Optional[Reducer] = None
        self.stepped: Dict[int, Tensors] = {}

    def tell(self, *message: Any) -> None:
        try:
            with self.speaking:
                self.control.send(message)
        except OSError:
            os._exit(1)  # the coordinator is gone

    def listen(self) -> None:
        """Reads what the coordinator says; what cannot wait for a task to end is done at once, the rest waits in line."""
        try:
            while True:
                command, *arguments = self.control.recv()
                if command == "probe":
                    self.tell("beat")
                elif command == "peers":
                    self.links.meet(*arguments)
                elif command == "abort":
                    self.links.abort(*arguments)
                    if self.reducer:
                        self.reducer.stop(Aborted())
                else:
                    self.commands.put((command, *arguments))
        except (EOFError, OSError):
            os._exit(1)  # the coordinator is gone

    def beat(self) -> None:
        while True:
            self.tell("beat")
            time.sleep(BEAT_SECONDS)

    def run(self) -> None:
        threading.Thread(target=self.listen, daemon=True).start()
        threading.Thread(target=self.beat, daemon=True).start()
        self.tell("hello", self.links.listener.getsockname())
        handlers: Dict[str, Callable[..., None]] = {
            "adopt": self.adopt, "prepare": self.prepare, "start": self.iterate, "step": self.step, "commit": self.commit,
            "send": self.send_out, "take": self.take_in, "weights": self.give_weights}
        # Where devices share a core each gets its part. Of this thread: those that send and receive, started before, come first.
        os.nice(round(3 * math.log2(self.pace.wait)))
        while True:
            command, *arguments = self.commands.get()
            try:
                handlers[command](*arguments)
            except Aborted:
                pass  # what comes next is the coordinator's to say
            except CannotGoOn as e:
                self.tell("failed", self.epoch, str(e))
            except Exception:
                self.tell("failed", self.epoch, f"{self.device}: {traceback.format_exc().strip().splitlines()[-1]}\n{traceback.format_exc()}")

    # --- plans and weights ---

    def adopt(self, epoch: int, graph: TaskGraph, sends: List[Tuple[str, str]], gets: List[str], copies: List[Tuple[int, str]],
              incoming: List[int]) -> None:
        """Makes the parts of a plan. Weights move as told; copies are (own stage, keeper), incoming are stages kept for others."""
        self._require(epoch)
        self.epoch, self.patience = epoch, self.settings.patience(graph)
        self.links.begin(epoch)
        network, version = self.settings.network, self.store.version
        self.store.copies = {k: v for k, v in self.store.copies.items() if k[1] <= version}
        for layer, target in sends:
            self.links.send(target, (epoch, "layer", layer), self.store.weights(layer).numpy())
        mine = [s for s, stage in enumerate(graph.stages) if self.device in stage.devices]
        weights = {n: self.store.weights(n) for s in mine for n in graph.stages[s].layers if n not in gets}
        weights.update({n: torch.from_numpy(self.links.take((epoch, "layer", n), self.patience)) for n in gets})
        self.parts = {s: StagePart(network, graph, s, self.settings.seed, self.pace.times) for s in mine}
        for s, part in self.parts.items():
            for n in graph.stages[s].layers:
                part.load(n, weights[n])
        self.graph, self.copies, self.incoming = graph, copies, incoming
        self.reducer = Reducer(self.links, graph, network, self.parts, self.patience)
        self.consumed: Dict[int, List[int]] = {}
        self.produced: Dict[int, List[int]] = {}
        for i, m in enumerate(graph.messages):
            if m.kind != "sync" and m.target == self.device:
                self.consumed.setdefault(m.consumer, []).append(i)
            if m.kind != "sync" and m.source == self.device:
                self.produced.setdefault(m.producer, []).append(i)
        if version > 0:  # whoever is lost next must not take these weights along
            self._copy(version, {s: {n: p.weights(n) for n in p.layers} for s, p in self.parts.items()})
        self.tell("adopted", epoch)

    def _copy(self, version: int, weights: Dict[int, Tensors]) -> None:
        """Topology-driven replication: a stage on one device has a copy on a device of the next stage. Source: Asteroid sec. 3.4."""
        for s, keeper in self.copies:
            for n, w in weights[s].items():
                self.links.send(keeper, (self.epoch, "copy", n, version), w.numpy())
        for s in self.incoming:
            for n in self.graph.stages[s].layers:
                self.store.copies[n, version] = torch.from_numpy(self.links.take((self.epoch, "copy", n, version), self.patience))

    def step(self, epoch: int, version: int) -> None:
        """The optimizer's step, on the side: until all have it and its copies, the weights before it are still there."""
        self._require(epoch)
        self.stepped = {s: p.stepped() for s, p in self.parts.items()}
        self._copy(version, self.stepped)
        self.tell("stepped", epoch)

    def commit(self, version: int) -> None:
        for s, weights in self.stepped.items():
            for n, w in weights.items():
                self.parts[s].load(n, w)
        self.store.commit(version)

    def give_weights(self) -> None:
        self.tell("weights", {n: p.weights(n).numpy() for p in self.parts.values() for n in p.layers})

    # --- an iteration ---

    def prepare(self, epoch: int, iteration: int) -> None:
        """All that is no part of an iteration's time: data of samples, old gradients."""
        self.store.settled = self.parts  # even if it is called off: that it is asked for says that all have adopted
        self._require(epoch)
        self.data: Dict[Tuple[int, int], Tensors] = {}
        for s, part in self.parts.items():
            part.reset()
            if not any(self.settings.network.layers[n].feed for n in part.layers):
                continue
            for t in self.graph.orders[self.device]:
                task = self.graph.tasks[t]
                if task.stage == s and (task.first, task.last) not in self.data:
                    self.data[task.first, task.last] = self.settings.network.samples(self.settings.seed, iteration, task.first, task.last)
        self.tell("prepared", epoch)

    def _require(self, epoch: int) -> None:
        if self.links.called_off >= epoch:
            raise Aborted()

    def iterate(self, epoch: int, iteration: int, start: float) -> None:
        self._require(epoch)
        self.iteration, self.start = iteration, start
        self.results: Dict[int, Slice] = {}
        self.log: List[Tuple[int, float, float, float]] = []  # task, start, end, processor time of its work
        overruns = 0
        own = [self.graph.tasks[t] for t in self.graph.orders[self.device]]
        last_phase = {s: "W" if any(t.stage == s and t.phase == "W" for t in own) else "B" for s in self.parts}
        gradients_left = {s: sum(t.stage == s and t.phase == last_phase[s] for t in own) for s in self.parts}
        self.reducer.begin(epoch, iteration, start)
        try:
            time.sleep(max(0.0, start - time.monotonic()))
            free = start
            for t in self.graph.orders[self.device]:
                task = self.graph.tasks[t]
                if task.phase == "U":  # the step itself is taken when all are done
                    continue
                inputs, came = self._inputs(t)
                self._require(epoch)
                # A task starts when its device is free and its inputs are there: handling them is part of its time.
                begun, before = max(free, came), time.thread_time()
                self._compute(task, t, inputs, last_phase[task.stage])
                free, worked = time.monotonic(), time.thread_time() - before
                if self.pace.wait > 1:
                    end = begun + self.pace.wait * worked
                    overruns += free > end
                    time.sleep(max(0.0, end - free))
                    free = max(free, end)
                self.log.append((t, begun - start, free - start, worked))
                self._send(t)
                if task.phase == last_phase[task.stage]:
                    gradients_left[task.stage] -= 1
                    if gradients_left[task.stage] == 0:
                        self.reducer.done[task.stage].set()
            self.reducer.finish()
        except BaseException as e:
            self.reducer.stop(e)
            raise
        end = time.monotonic()
        self._require(epoch)
        self.tell("done", epoch, {"end": end, "loss": sum(p.loss for p in self.parts.values()), "overruns": overruns, "log": self.log})

    def _inputs(self, t: int) -> Tuple[List[Tuple[int, Slice]], float]:
        """What a task takes, with the stage that it comes from: what arrives, and what earlier tasks of this device left. And
        when the last of it came."""
        task, network = self.graph.tasks[t], self.settings.network
        found, came = [], 0.0
        for i in self.consumed.get(t, []):
            m = self.graph.messages[i]
            data, at = self.links.take_timed(self._key(i), self.patience)
            found.append((m.from_stage, unpack(network, m, carried(network, self.graph, m), data)))
            came = max(came, at)
        for n in task.needs:
            need = self.graph.tasks[n]
            if need.phase == task.phase:
                found.append((need.stage, self.results[n]))
        return found, came

    def _compute(self, task: Task, t: int, inputs: List[Tuple[int, Slice]], last_phase: str) -> None:
        part = self.parts[task.stage]
        given: Tensors = {}
        if task.phase == "F":
            slices = [s for _, s in inputs]
            read = {n: assemble(slices, n, task.first, task.last) for n in part.inputs}
            given = part.forward(task.first, task.last, read, self.data.get((task.first, task.last), {}))
        elif task.phase == "B":
            gradients = {}
            for n in part.outputs:  # each stage that read it says what it wants of it: the sum counts
                by_reader: Dict[int, List[Slice]] = {}
                for reader, s in sorted(inputs, key=lambda i: i[0]):
                    if n in s.tensors:
                        by_reader.setdefault(reader, []).append(s)
                gradients[n] = functools.reduce(torch.add, [assemble(slices, n, task.first, task.last) for slices in by_reader.values()])
            given = part.input_gradients(task.first, task.last, gradients)
        if task.phase == last_phase:  # a whole backward has both
            part.weight_gradients(task.first, task.last)
        self.results[t] = Slice(task.first, task.last, given)

    def _send(self, t: int) -> None:
        for i in self.produced.get(t, []):
            m = self.graph.messages[i]
            data = pack(self.results[t], carried(self.settings.network, self.graph, m), m.first, m.last)
            self.links.send(m.target, self._key(i), data, pieces_of(m.chunks, data.nbytes, self.start))

    def _key(self, message: int) -> Key:
        return self.epoch, "task", self.iteration, message

    # --- the profiler's questions ---

    def send_out(self, target: str, key: Tuple[Any, ...], size: int) -> None:
        begun = time.monotonic()
        self.links.send(target, key, torch.zeros(size // 4).numpy())
        self.tell("sent", begun)

    def take_in(self, key: Tuple[Any, ...]) -> None:
        self.links.take(key, self.settings.timeout)
        self.tell("took", time.monotonic())


def use_one_core() -> None:
    """One thread, and an allocator that keeps what it has: giving large tensors back to the system costs more than some layers."""
    torch.set_num_threads(1)
    with contextlib.suppress(AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(-3, 1 << 25)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD


def end_with(parent: int) -> None:
    """A process that was forked ends with its parent, however that ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def boot(device: str, settings: Settings, make_links: Callable[[str], Links], control: Connection, parent: int) -> None:
    """The life of the process."""
    end_with(parent)
    use_one_core()
    Worker(device, settings, make_links(device), control).run()

