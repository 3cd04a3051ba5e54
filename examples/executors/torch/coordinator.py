# SPDX-License-Identifier: BSL-1.0
"""Runs a plan on workers: a common start for every iteration, commits in two steps, and a new plan when somebody is lost."""

import functools
import statistics
import sys
import tempfile
import threading
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy

from documents import Program, TaskGraph
from fabrics import Fabric
from fleet import Fleet, Lost
from problems import BadInput, CannotGoOn
from recovery import keepers, moves
from stages import train_alone
from worker import Settings, boot

HEAD_START = 0.01  # for the word that an iteration begins to reach everybody


class Files(NamedTuple):
    """What a new plan is made from."""
    program: Program
    model: str
    cluster: str
    plan: str


class Trouble(NamedTuple):
    """What is done to a run to see whether it goes on."""
    kills: List[Tuple[str, int]] = []
    cut: Optional[Tuple[float, int]] = None  # seconds, iteration


class Coordinator:
    """Trains by one plan at a time. An epoch is the life of a plan; the version of the weights is how many iterations are committed,
    and so the iteration that is trained now."""

    def __init__(self, files: Files, graph: TaskGraph, fabric: Fabric, settings: Settings):
        self.files, self.graph, self.fabric, self.settings = files, graph, fabric, settings
        self.fleet = Fleet()
        self.epoch, self.version = 0, 0
        self.losses: List[float] = []
        self.times: List[float] = []
        self.overruns = 0
        self.recoveries: List[Dict[str, Any]] = []
        self.logs: Dict[str, Any] = {}

    # --- life of the workers ---

    def start(self) -> None:
        for d in self.graph.used:
            self.fleet.start(d, lambda control, parent, d=d: boot(d, self.settings, self.fabric.make_links, control, parent))
        self.addresses = self.fleet.collect("hello", -1, self.graph.used, self.settings.patience(self.graph))
        self._adopt({}, {})

    def stop(self) -> None:
        self.fleet.stop()
        self.fabric.close()

    def _adopt(self, sends: Dict[str, Any], gets: Dict[str, Any]) -> None:
        self.epoch += 1
        kept = keepers(self.graph, self.settings.network)
        for d in self.fleet.workers:
            copies = [(s, k) for s, k in kept.items() if self.graph.stages[s].devices == [d]]
            incoming = [s for s, k in kept.items() if k == d]
            self.fleet.tell([d], "peers", {k: v for k, v in self.addresses.items() if k in self.fleet.workers})
            self.fleet.tell([d], "adopt", self.epoch, self.graph, sends.get(d, []), gets.get(d, []), copies, incoming)
        self._everybody("adopted")

    def _everybody(self, kind: str) -> Dict[str, Any]:
        # A worker that waits in vain says for what: it is given the time.
        return self.fleet.collect(kind, self.epoch, list(self.fleet.workers), 2 * self.settings.patience(self.graph) + 5)

    # --- training ---

    def train(self, iterations: int, trouble: Trouble) -> None:
        """A warm-up iteration, then as many as asked for."""
        kills = list(trouble.kills)
        while self.version <= iterations:
            now = [d for d, i in kills if i == self.version]
            kills = [(d, i) for d, i in kills if i != self.version]
            cut = trouble.cut[0] if trouble.cut and trouble.cut[1] == self.version else 0.0
            try:
                self._iterate(now, cut)
            except Lost as e:
                self._recover(e)

    def _iterate(self, kills: List[str], cut: float) -> None:
        workers = list(self.fleet.workers)
        self.fleet.tell(workers, "prepare", self.epoch, self.version)
        self._everybody("prepared")
        self.fabric.restart()
        start = time.monotonic() + HEAD_START
        self.fleet.tell(workers, "start", self.epoch, self.version, start)
        timers = [threading.Timer(HEAD_START + 0.4 * self.graph.latency, self.fleet.kill, [d]) for d in kills if d in self.fleet.workers]
        if cut > 0:
            timers.append(threading.Timer(HEAD_START + 0.2 * self.graph.latency, self.fabric.cut, [cut]))
        for t in timers:
            t.start()
        try:
            done = self._everybody("done")
        except BaseException:
            for t in timers:
                t.cancel()
            raise
        for t in timers:  # an iteration faster than predicted must not spare anybody
            t.join()
        # Committed when all have their step and its copies; until then everybody has the weights before it.
        self.fleet.tell(workers, "step", self.epoch, self.version + 1)
        self._everybody("stepped")
        self.fleet.tell(workers, "commit", self.version + 1)
        if self.version > 0:
            self.times.append(max(d["end"] for d in done.values()) - start)
            self.overruns += sum(d["overruns"] for d in done.values())
        self.losses.append(sum(d["loss"] for d in done.values()))
        self.logs = {d: answer["log"] for d, answer in done.items()}
        self.version += 1

    def _recover(self, loss: Lost) -> None:
        """Lightweight replay: a new plan for those who are left, layers from their holders, and on from the last commit."""
        begun, old, all_lost = time.monotonic(), self.graph, set(loss.devices)
        print(f"lost {loss} in iteration {self.version}", file=sys.stderr)
        self.fabric.forget(loss.devices)
        while True:
            if not self.fleet.workers:
                raise CannotGoOn(f"nobody is left after {', '.join(sorted(all_lost))}")
            self.fleet.tell(self.fleet.workers, "abort", self.epoch)
            new_plan, self.graph = self._replay(sorted(all_lost))
            planned = time.monotonic()
            plan = moves(self.settings.network, old, self.graph, all_lost, self.version)
            try:
                self._adopt(plan.sends, plan.gets)
                break
            except Lost as e:  # one more while layers move
                all_lost |= set(e.devices)
                self.fabric.forget(e.devices)
        self.files = self.files._replace(plan=new_plan)
        self.recoveries.append({"iteration": self.version, "lost": sorted(all_lost), "noticed": loss.silence, "replanned": planned - begun,
                                "moved": time.monotonic() - planned, "moved_bytes": plan.bytes, "predicted": self.graph.latency})
        print(f"goes on with {', '.join(self.graph.used)} after {time.monotonic() - begun:.2f} s", file=sys.stderr)

    @functools.cached_property
    def _folder(self) -> "tempfile.TemporaryDirectory[str]":
        """Of new plans."""
        return tempfile.TemporaryDirectory(prefix="hetplan-")

    def _replay(self, lost: List[str]) -> Tuple[str, TaskGraph]:
        program, model, cluster, plan = self.files
        new = f"{self._folder.name}/plan{self.epoch}.json"
        try:
            program.replay(model, cluster, plan, lost, new)
            return new, program.tasks(model, cluster, new)
        except BadInput as e:
            raise CannotGoOn(f"lost {', '.join(lost)}; {e}") from e

    # --- the report ---

    def report(self) -> Dict[str, Any]:
        return {"executor": "torch", "network": self.settings.network.name, "plan": self.graph.planner, "links": self.fabric.name,
                "predicted": self.graph.latency, "iterations": self.times, "measured": statistics.median(self.times) if self.times else None,
                "losses": self.losses, "paced": bool(self.settings.paces), "overruns": self.overruns, "recoveries": self.recoveries}

    def check(self) -> Dict[str, float]:
        """Against plain training on one device: the largest relative difference of losses and of each layer's weights on each
        device, and the same of what was learnt (weights less their start), which weights alone would hide."""
        workers = list(self.fleet.workers)
        self.fleet.tell(workers, "weights")
        held = self.fleet.collect("weights", -1, workers, self.settings.patience(self.graph))
        losses, end, begin = train_alone(self.settings.network, self.settings.seed, self.graph.batch, self.version)
        difference = max(abs(a - b) / abs(b) for a, b in zip(self.losses, losses))
        learnt = 0.0
        for weights in held.values():
            for n, w in weights.items():
                right, start = end[n].numpy(), begin[n].numpy()
                if right.size:
                    difference = max(difference, float(numpy.abs(w - right).max() / numpy.abs(right).max()))
                    learnt = max(learnt, float(numpy.linalg.norm(w - right) / numpy.linalg.norm(right - start)))
        return {"difference": difference, "learnt": learnt}

    def trace(self) -> List[Dict[str, Any]]:
        """Of every task of the last iteration, measured start, end and seconds of real work beside predicted start and end [s]."""
        rows: List[Optional[List[float]]] = [None] * len(self.graph.tasks)
        for log in self.logs.values():
            for t, begun, ended, worked in log:
                rows[t] = [begun, ended, worked]
        return [{"device": t.device, "phase": t.phase, "stage": t.stage, "microbatch": t.microbatch, "seconds": t.seconds, "measured": rows[i],
                 "predicted": self.graph.predicted["tasks"][i]} for i, t in enumerate(self.graph.tasks)]
