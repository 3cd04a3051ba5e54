# SPDX-License-Identifier: BSL-1.0
"""Transport between workers: plain TCP, a connection for each ordered pair that needs one.

One transport for everything (activations, gradients, rings, copies), because every byte has to pass the same pacing and
because a connection whose other end dies is nobody else's business; a process group would die as a whole. What is sent
has a key; whoever needs it waits for the key. Keys begin with an epoch: what was meant for an earlier one is dropped.

A connection is that of another worker of the run (greeting.py), or nothing is read from it. Then come messages, each with a header
of fixed size: a key, as JSON, that opens a flow of so many bytes; or a piece of a flow. Sizes are checked before memory is taken
for them, and who breaks the rules is hung up on.
"""

import contextlib
import errno
import itertools
import json
import socket
import struct
import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy

from documents import Chunk
from greeting import GREETING_SECONDS, admit, greet
from pacing import PIECE_SECONDS, Medium
from problems import CannotGoOn

HEADER = struct.Struct("<BIQI")  # what follows (0: a key, 1: a piece), flow, total bytes or offset, length
MOST_KEY_BYTES = 4096
MOST_PIECE_BYTES = 1 << 30
MOST_FLOW_BYTES = 1 << 36
MOST_GREETINGS = 64         # under way at a time: of peers that have not proved anything yet
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
EXHAUSTED_SECONDS = 0.1     # before the next attempt to accept: these errors come back at once
Key = Tuple[Any, ...]  # an epoch, then numbers and texts


class Aborted(Exception):
    """The iteration is called off."""


class BadMessage(Exception):
    """No worker sends this."""


def key_text(key: Key) -> bytes:
    return json.dumps(key).encode()


def read_key(text: bytes) -> Key:
    """Throws BadMessage."""
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise BadMessage("a key that is no JSON") from e
    if not isinstance(parts, list) or not parts or type(parts[0]) is not int or any(type(p) not in (int, str) for p in parts):
        raise BadMessage("a key that is no epoch with numbers and texts")
    return tuple(parts)


class Piece(NamedTuple):
    """A part of a flow that goes out by a rule of its own: up to a byte, not before a time."""
    end: int
    release: float
    priority: int


def pieces_of(chunks: List[Chunk], total: int, start: float, first: float = 0.0, last: float = 1.0) -> List[Piece]:
    """The chunks of a transfer as bytes of what is sent, or of the part [first, last) of it."""
    whole, done, pieces = sum(c.bytes for c in chunks), 0.0, []
    for c in chunks:
        done += c.bytes
        at = done / whole if whole > 0 else 1.0
        if at > first and (not pieces or pieces[-1].end < total):
            pieces.append(Piece(min(total, round(total * (at - first) / (last - first))), start + c.release, c.priority))
    return pieces[:-1] + [pieces[-1]._replace(end=total)] if pieces else [Piece(total, 0.0, 0)]


class Flow:
    """Something that is being sent: after its latency, piece by piece."""

    def __init__(self, number: int, key: Key, data: memoryview, latency: float, pieces: List[Piece]):
        self.number, self.key, self.data, self.pieces = number, key, data, pieces
        self.sent, self.reserved = 0, 0        # bytes that are out, and of the piece that goes next
        self.rule, self.opened = 0, False      # which of `pieces` holds now; whether the other end has the key
        # When to look at it next, and since when it could have gone on: a thread that wakes up late loses nothing.
        self.due = self.ready = max(time.monotonic(), pieces[0].release) + latency

    @property
    def priority(self) -> int:
        return self.pieces[self.rule].priority


class Outgoing(threading.Thread):
    """Sends to one peer: of the flows that wait, the one whose next piece is due first."""

    def __init__(self, links: "Links", target: str):
        super().__init__(daemon=True)
        self.links, self.pair, self.target = links, (links.device, target), target
        self.flows: List[Flow] = []
        self.changed = threading.Condition()
        self.connection: Optional[socket.socket] = None
        self.start()

    def add(self, flow: Flow) -> None:
        with self.changed:
            self.flows.append(flow)
            self.changed.notify()

    def clear(self) -> None:
        with self.changed:
            for f in self.flows:
                self._ended(f)
            self.flows.clear()
            self.changed.notify()

    def close(self) -> None:
        if self.connection is not None:
            try:
                self.connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _ended(self, flow: Flow) -> None:
        if self.links.medium:
            self.links.medium.announce(self.links.device, flow.number, self.pair, None)

    def _next(self) -> Flow:
        with self.changed:
            while True:
                now = time.monotonic()
                ready = [f for f in self.flows if f.due <= now]
                if ready:
                    return min(ready, key=lambda f: (f.due, f.number) if self.links.medium else (f.priority, f.due, f.number))
                soonest = min((f.due for f in self.flows), default=None)
                self.changed.wait(None if soonest is None else soonest - now)

    def run(self) -> None:
        while True:
            flow = self._next()
            try:
                self._deliver(flow)
            except OSError:  # the peer is gone; the coordinator will say what to do
                self.clear()
                continue
            if flow.sent == len(flow.data) and flow.opened:
                with self.changed:
                    if flow in self.flows:
                        self.flows.remove(flow)
                self._ended(flow)
            else:
                self._reserve(flow)

    def _deliver(self, flow: Flow) -> None:
        if self.connection is None:
            self.connection = self.links.connect(self.target)
        if not flow.opened:
            if len(flow.data) == 0 or flow.reserved:
                key = key_text(flow.key)
                self.connection.sendall(HEADER.pack(0, flow.number, len(flow.data), len(key)) + key)
                flow.opened = True
            elif self.links.medium:
                self.links.medium.announce(self.links.device, flow.number, self.pair, flow.priority)
        if flow.reserved:
            piece = flow.data[flow.sent:flow.sent + flow.reserved]
            self.connection.sendall(HEADER.pack(1, flow.number, flow.sent, len(piece)))
            self.connection.sendall(piece)
            flow.sent += len(piece)
            flow.reserved = 0

    def _reserve(self, flow: Flow) -> None:
        """Sets when which piece goes out next."""
        with self.changed:
            if flow not in self.flows:  # cleared meanwhile
                self._ended(flow)
                return
        now = time.monotonic()
        while flow.pieces[flow.rule].end <= flow.sent and flow.rule + 1 < len(flow.pieces):
            flow.rule += 1
            if self.links.medium:
                self.links.medium.announce(self.links.device, flow.number, self.pair, flow.priority)
        rule = flow.pieces[flow.rule]
        if rule.release > now:
            flow.due = flow.ready = rule.release
            return
        size = min(self.links.piece_bytes(self.pair), rule.end - flow.sent)
        if self.links.medium is None:
            flow.due, flow.reserved = now, size  # the wire is slow enough
            return
        due = self.links.medium.reserve(self.pair, size, max(flow.ready, rule.release), rule.priority)
        if due is None:  # asks again soon, and then takes what nobody used meanwhile
            flow.due, flow.reserved = now + PIECE_SECONDS / 2, 0
        else:
            flow.due, flow.ready, flow.reserved = due, due, size


class Links:
    """All that a worker sends and receives."""

    def __init__(self, device: str, secret: bytes, medium: Optional[Medium], latencies: Dict[Tuple[str, str], float],
                 piece_bytes: Callable[[Tuple[str, str]], int], buffer_bytes: int = 0, address: str = "127.0.0.1"):
        self.secret = secret
        self.device, self.medium, self.latencies, self.piece_bytes, self.buffer_bytes = device, medium, latencies, piece_bytes, buffer_bytes
        self.listener = socket.create_server((address, 0), backlog=64)
        self.peers: Dict[str, Tuple[str, int]] = {}
        self.outgoing: Dict[str, Outgoing] = {}
        self.greeting: List[socket.socket] = []  # oldest first; guarded by greeting_changes
        self.greeting_changes = threading.Lock()
        self.numbers = itertools.count(1)
        self.arrived: Dict[Key, Tuple[numpy.ndarray, float]] = {}
        self.changed = threading.Condition()
        self.epoch, self.called_off = 0, -1  # what is sent now, and the last epoch that was ended
        threading.Thread(target=self._accept, daemon=True).start()

    def connect(self, target: str) -> socket.socket:
        if target not in self.peers:
            raise ConnectionError(target)
        connection = socket.create_connection(self.peers[target], timeout=GREETING_SECONDS)
        try:
            greet(connection, self.secret)
        except OSError:
            connection.close()
            raise
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.buffer_bytes:  # a shaped wire: fill it at once, whatever the machine's habit is
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.buffer_bytes)
        return connection

    def send(self, target: str, key: Key, data: numpy.ndarray, pieces: Optional[List[Piece]] = None, latency: bool = True) -> None:
        """Hands over what is to be sent; the array must not change until it is."""
        view = memoryview(data.view(numpy.uint8)) if data.size else memoryview(b"")
        if target not in self.outgoing:  # it is lost, as the coordinator is about to say or said
            return
        wait = self.latencies.get((self.device, target), 0.0) if latency else 0.0
        self.outgoing[target].add(Flow(next(self.numbers), key, view, wait, pieces or [Piece(len(view), 0.0, 0)]))

    def take(self, key: Key, patience: float) -> numpy.ndarray:
        """What has come or comes for a key, as floats. Throws Aborted; CannotGoOn if it does not come."""
        return self.take_timed(key, patience)[0]

    def take_timed(self, key: Key, patience: float) -> Tuple[numpy.ndarray, float]:
        """The same, and when it came."""
        end = time.monotonic() + patience
        with self.changed:
            while key not in self.arrived:
                if key[0] <= self.called_off or key[0] < self.epoch:
                    raise Aborted()
                left = end - time.monotonic()
                if left <= 0:
                    raise CannotGoOn(f"{self.device}: waited {patience:.0f} s for {key[1:]}")
                self.changed.wait(left)
            data, at = self.arrived.pop(key)
            return data.view(numpy.float32), at

    def abort(self, epoch: int) -> None:
        """Wakes up everybody who waits for something of this epoch or an earlier one."""
        with self.changed:
            self.called_off = max(self.called_off, epoch)
            self.changed.notify_all()

    def begin(self, epoch: int) -> None:
        """Forgets what belonged to earlier epochs."""
        for o in list(self.outgoing.values()):
            o.clear()
        with self.changed:
            self.epoch = epoch
            self.changed.notify_all()
            self.arrived = {k: v for k, v in self.arrived.items() if k[0] >= epoch}

    def meet(self, peers: Dict[str, Tuple[str, int]]) -> None:
        """These are there, and nobody else is any more."""
        self.peers = dict(peers)
        for p in list(self.outgoing):
            if p not in peers:
                self.outgoing.pop(p).close()
        for p in peers:
            if p not in self.outgoing and p != self.device:
                self.outgoing[p] = Outgoing(self, p)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError as e:
                if self.listener.fileno() == -1:  # closed
                    return
                if e.errno in EXHAUSTED:
                    self._end_oldest_greeting()
                    time.sleep(EXHAUSTED_SECONDS)
                continue
            if len(self.greeting) >= MOST_GREETINGS:
                self._end_oldest_greeting()
            with self.greeting_changes:
                self.greeting.append(connection)
            try:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._receive, args=(connection,), daemon=True).start()
            except (OSError, RuntimeError):  # it is gone already; no more threads
                self._forget_greeting(connection)
                connection.close()

    def _end_oldest_greeting(self) -> None:
        """Of a peer that had more time than any other: a worker needs but an instant."""
        with self.greeting_changes:
            if self.greeting:
                with contextlib.suppress(OSError):
                    self.greeting.pop(0).shutdown(socket.SHUT_RDWR)  # its thread closes it

    def _forget_greeting(self, connection: socket.socket) -> None:
        with self.greeting_changes:
            if connection in self.greeting:
                self.greeting.remove(connection)

    def _receive(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, BadMessage):
            try:
                admit(connection, self.secret)
            finally:
                self._forget_greeting(connection)
            connection.settimeout(None)
            self._read(connection)

    def _read(self, connection: socket.socket) -> None:
        """Until the other end is gone. Throws BadMessage."""
        header, open_flows = bytearray(HEADER.size), {}
        while _fill(connection, memoryview(header)):
            what, number, position, length = HEADER.unpack(header)
            if what == 0:
                if length > MOST_KEY_BYTES or position > MOST_FLOW_BYTES:
                    raise BadMessage("a flow that is too large")
                text = bytearray(length)
                if not _fill(connection, memoryview(text)):
                    return
                key, data, left = read_key(bytes(text)), numpy.empty(position, numpy.uint8), position
                open_flows = {n: f for n, f in open_flows.items() if f[0][0] >= self.epoch}
            elif what == 1 and length <= MOST_PIECE_BYTES:
                # Of a flow that is forgotten the rest is read and dropped.
                key, data, left = open_flows.get(number) or ((-1,), None, 1 << 62)
                if data is not None and position + length > len(data):
                    raise BadMessage("a piece beyond its flow")
                piece = numpy.empty(length, numpy.uint8) if data is None else data[position:position + length]
                if not _fill(connection, memoryview(piece)):
                    return
                left -= length
            else:
                raise BadMessage("no key and no piece")
            if data is None:
                continue
            open_flows[number] = (key, data, left)
            if left <= 0:
                del open_flows[number]
                with self.changed:
                    if key[0] >= self.epoch:
                        self.arrived[key] = (data, time.monotonic())
                        self.changed.notify_all()


def _fill(connection: socket.socket, view: memoryview) -> bool:
    """False where the other end is gone."""
    while len(view):
        try:
            n = connection.recv_into(view)
        except OSError:
            return False
        if n == 0:
            return False
        view = view[n:]
    return True
