# SPDX-License-Identifier: BSL-1.0
"""Links of the right speed without the right to make them: every process asks before it sends a piece.

Each resource has a clock in memory that all processes share: when it has carried all that it was asked to carry. A piece
takes its place behind it and may be delivered when it would have come through, so that competing flows, with one piece
each, alternate. Clocks are virtual: who wakes up late reserves from when it should have woken, and loses nothing.
"""

import fcntl
import mmap
import tempfile
import threading
import time
from typing import Dict, Optional, Set, Tuple

import numpy

from documents import Cluster

PIECE_SECONDS = 0.002   # what a piece takes of its slowest resource
CREDIT_SECONDS = 0.02   # how late a process may be and still catch up: the depth of the bucket
CALM = float("inf")     # no flow is urgent


class Medium:
    """The clocks. Made before the processes are forked."""

    def __init__(self, cluster: Cluster, has_priorities: bool):
        self.devices = list(cluster.kinds)
        r, d = max(1, len(cluster.capacities)), len(self.devices)
        self._memory = mmap.mmap(-1, 8 * (r + r + d * r))
        shared = numpy.frombuffer(self._memory, dtype=numpy.float64)
        self.free_at, self.closed_until, self.urgency = shared[:r], shared[r:2 * r], shared[2 * r:].reshape(d, r)
        self.urgency[:] = CALM
        self.has_priorities = has_priorities
        # A lock on a file is given back by the system when its owner is killed; a semaphore is not.
        self._file = tempfile.TemporaryFile()
        self._threads = threading.Lock()
        self._sending: Dict[int, Tuple[Set[int], int]] = {}  # flows of this process
        index = {name: i for i, name in enumerate(cluster.capacities)}
        self.uses = {pair: [(index[name], weight / cluster.capacities[name]) for name, weight in route.via]  # seconds per byte
                     for pair, route in cluster.routes.items()}

    def piece_bytes(self, pair: Tuple[str, str]) -> int:
        """About PIECE_SECONDS of a route's slowest resource."""
        seconds_per_byte = max((cost for _, cost in self.uses[pair]), default=0)
        return max(1024, int(PIECE_SECONDS / seconds_per_byte)) if seconds_per_byte > 0 else 1 << 20

    def reserve(self, pair: Tuple[str, str], size: int, since: float, priority: int = 0) -> Optional[float]:
        """When a piece that was ready at `since` is through; None: somebody more urgent is sending."""
        now = time.monotonic()
        since = done = max(since, now - CREDIT_SECONDS)
        with self._threads:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                uses = self.uses[pair]
                if self.has_priorities:
                    for r, _ in uses:
                        # What is left over by the more urgent is a clock that has stood still for longer than they need to wake up.
                        if self.urgency[:, r].min() < priority and self.free_at[r] > now - 2 * PIECE_SECONDS:
                            return None
                for r, cost in uses:
                    self.free_at[r] = max(since, self.free_at[r], self.closed_until[r]) + size * cost
                    done = max(done, float(self.free_at[r]))
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)
        return done

    def announce(self, device: str, flow: int, pair: Tuple[str, str], priority: Optional[int]) -> None:
        """A flow of this process begins to send with a priority, or has ended (None)."""
        if not self.has_priorities:
            return
        with self._threads:
            self._sending.pop(flow, None)
            if priority is not None:
                self._sending[flow] = ({r for r, _ in self.uses[pair]}, priority)
            for r, _ in self.uses[pair]:
                mine = [p for resources, p in self._sending.values() if r in resources]
                self.urgency[self.devices.index(device), r] = min(mine, default=CALM)

    def forget(self, device: str) -> None:
        """What a dead device had announced."""
        self.urgency[self.devices.index(device)] = CALM

    def close_for(self, seconds: float) -> None:
        """Nothing gets through for a while."""
        self.closed_until[:] = time.monotonic() + seconds

    def close(self) -> None:
        self._file.close()

    def restart(self) -> None:
        self.free_at[:] = 0
