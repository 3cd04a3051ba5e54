# SPDX-License-Identifier: BSL-1.0
"""The workers as the coordinator sees them: started by fork, watched by their beats, given up after a probe.

Source: Asteroid sec. 3.4 (heartbeats, and a probe before a device is declared dead).
"""

import math
import os
import signal
import socket
import struct
import time
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Callable, Dict, Iterable, List

from problems import CannotGoOn

SILENCE_SECONDS = 2.0  # without a beat before a worker is probed
PROBE_SECONDS = 1.0    # it has to answer


class Lost(Exception):
    def __init__(self, devices: List[str], silence: float):
        super().__init__(", ".join(devices))
        self.devices, self.silence = devices, silence  # seconds since the last word of any of them


class Process:
    def __init__(self, pid: int, control: Connection):
        self.pid, self.control = pid, control
        self.last_message, self.probed, self.is_gone = time.monotonic(), 0.0, False


def _limit_waits(line: Connection) -> None:
    """A process that has stopped neither reads nor ends a message that it has begun: then sending and receiving throw OSError."""
    limit = struct.pack("ll", math.ceil(SILENCE_SECONDS + PROBE_SECONDS), 0)  # struct timeval
    with socket.socket(fileno=os.dup(line.fileno())) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)


class Fleet:
    def __init__(self) -> None:
        self.workers: Dict[str, Process] = {}

    def start(self, device: str, life: Callable[[Connection, int], None]) -> None:
        """Forks a worker that lives `life(control, parent)`. Before any thread is started here."""
        here, there = Pipe()
        _limit_waits(here)
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                here.close()
                for w in self.workers.values():
                    w.control.close()
                life(there, parent)
            finally:
                os._exit(1)
        there.close()
        self.workers[device] = Process(pid, here)

    def tell(self, devices: Iterable[str], *message: Any) -> None:
        for d in devices:
            try:
                self.workers[d].control.send(message)
            except OSError:  # found out when its answer is awaited
                self.workers[d].is_gone = True

    def collect(self, kind: str, epoch: int, devices: Iterable[str], patience: float) -> Dict[str, Any]:
        """One answer of a kind from each. Throws Lost; CannotGoOn where a worker says so or an answer takes too long."""
        answers: Dict[str, Any] = {}
        missing, end = set(devices), time.monotonic() + patience
        while missing:
            for device, message in self._receive(0.05):
                if message[0] == "failed" and message[1] == epoch:
                    raise CannotGoOn(message[2])
                if message[0] == kind and device in missing and (len(message) < 2 or epoch < 0 or message[1] == epoch):
                    answers[device] = message[-1]
                    missing.discard(device)
            lost = [d for d in list(self.workers) if self._is_lost(self.workers[d])]
            if lost:
                silence = time.monotonic() - max(self.workers[d].last_message for d in lost)
                self.bury(lost)
                raise Lost(lost, silence)
            if time.monotonic() > end:
                raise CannotGoOn(f"no answer ({kind}) from {', '.join(sorted(missing))} within {patience:.0f} s")
        return answers

    def _receive(self, seconds: float) -> List[Any]:
        by_connection = {w.control: d for d, w in self.workers.items() if not w.is_gone}
        received = []
        for c in wait(list(by_connection), seconds):
            device = by_connection[c]
            try:
                while c.poll():
                    message = c.recv()
                    self.workers[device].last_message, self.workers[device].probed = time.monotonic(), 0.0
                    if message[0] != "beat":
                        received.append((device, message))
            except (EOFError, OSError):
                self.workers[device].is_gone = True
        return received

    def _is_lost(self, w: Process) -> bool:
        """A closed line needs no probe: the process has ended."""
        now = time.monotonic()
        if w.is_gone:
            return True
        if now - w.last_message < SILENCE_SECONDS:
            return False
        if w.probed == 0.0:
            w.probed = now
            try:
                w.control.send(("probe",))
            except OSError:
                return True
        return now - w.probed > PROBE_SECONDS

    def kill(self, device: str) -> None:
        os.kill(self.workers[device].pid, signal.SIGKILL)

    def bury(self, devices: List[str]) -> None:
        """A worker that was given up must not come back half-way."""
        for d in devices:
            w = self.workers.pop(d)
            w.control.close()
            try:
                os.kill(w.pid, signal.SIGKILL)
                os.waitpid(w.pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass

    def stop(self) -> None:
        self.bury(list(self.workers))
