# SPDX-License-Identifier: BSL-1.0
"""Links as wires: a network namespace for each worker, and for each resource of the cluster a shaped wire between two more.

    worker --> in | resource |===shaped===> out --> worker      (or --> in of the next resource on the route)

Whatever uses a resource, in either direction, crosses its wire. On the wire `htb` gives every ordered pair of devices its own
queue and all of them the resource's capacity, so that pairs share it evenly and use what others leave.

Namespaces have no names: they are held open by this process and its workers, and what they contain goes with the last of
them, however it ends. Nothing is ever made in the machine's own namespace.
"""

import contextlib
import ctypes
import os
import shutil
import subprocess
import threading
from typing import Dict, Iterator, List, Optional, Set, Tuple

from documents import Cluster
from greeting import new_key
from links import Links
from pacing import PIECE_SECONDS

CLONE_NEWNET = 0x40000000
MOST_WIRES = 24
SYSCTLS = {"ip_forward": "1", "conf/all/rp_filter": "0", "conf/default/rp_filter": "0", "conf/all/send_redirects": "0",
           "conf/default/send_redirects": "0", "tcp_slow_start_after_idle": "0"}


def _enter(fd: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(fd, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def _inside(fd: int) -> Iterator[None]:
    """This thread, and what it starts, in another namespace for a while."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _enter(fd)
        yield
    finally:
        _enter(home)
        os.close(home)


def _set(name: str, value: str) -> None:
    with contextlib.suppress(FileNotFoundError), open(f"/proc/sys/net/ipv4/{name}", "w", encoding="ascii") as stream:
        stream.write(value)


def _make() -> int:
    """A new namespace, by a descriptor that holds it."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        for name, value in SYSCTLS.items():
            _set(name, value)
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        _enter(home)
        os.close(home)


def why_not(cluster: Cluster) -> Optional[str]:
    """Why a cluster's network cannot be wired here; None if it can."""
    if os.geteuid() != 0:
        return "namespaces need root"
    if not (shutil.which("ip") and shutil.which("tc")):
        return "no ip or tc"
    if len(cluster.capacities) > MOST_WIRES:
        return f"{len(cluster.capacities)} resources; at most {MOST_WIRES} are wired"
    following: Dict[Tuple[str, str], str] = {}
    for (a, b), route in cluster.routes.items():
        names = [r for r, _ in route.via]
        if not names or any(w != 1 for _, w in route.via):
            return f"route from {a} to {b} takes nothing or a multiple of a resource"
        for here, after in zip(names, [*names[1:], b]):
            if following.setdefault((here, b), after) != after:
                return f"the way from {here} to {b} depends on the sender"
    try:
        os.close(_make())
    except OSError as e:
        return f"no namespace can be made: {e.strerror}"
    return None


class Namespaces:
    name = "namespaces"

    def __init__(self, cluster: Cluster):
        self.capacities, self.routes, self.secret = cluster.capacities, cluster.routes, new_key()
        self.address = {d: f"10.77.{i >> 8}.{(i & 255) + 1}" for i, d in enumerate(cluster.kinds)}
        self.latencies = {pair: r.latency for pair, r in self.routes.items()}
        self.ends: Dict[Tuple[str, str], int] = {}  # ("device", name), ("in", resource), ("out", resource): descriptors
        self.commands: Dict[int, List[str]] = {}    # for `ip`, by namespace
        self.joints: Dict[Tuple[int, int], str] = {}  # the next hop's address, by the two namespaces
        # A packet goes through a shaper as a whole and is paid for afterwards: large ones would not be slowed at all.
        self.at_once = min(65536, max(3200, int(min(self.capacities.values(), default=0) * PIECE_SECONDS / 16)))
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def _build(self) -> None:
        for d in self.address:
            self._add("device", d)
        for r in self.capacities:
            self._add("in", r)
            self._add("out", r)
        wires = {r: self._join(self.ends["in", r], self.ends["out", r]) for r in self.capacities}
        told: Set[Tuple[int, str]] = set()
        for (a, b), route in self.routes.items():
            hops = [self.ends["device", a]]
            for r, _ in route.via:
                hops += [self.ends["in", r], self.ends["out", r]]
            for here, after in zip(hops, [*hops[1:], self.ends["device", b]]):
                if (here, b) not in told:
                    told.add((here, b))
                    self._join(here, after)
                    self.commands[here].append(f"route add {self.address[b]}/32 via {self.joints[here, after]}")
        for d, address in self.address.items():
            # A connection's source address has to be the device's, whichever wire it leaves by.
            fd = self.ends["device", d]
            self.commands[fd] = [f"addr add {address}/32 dev lo"] + [c + f" src {address}" if c.startswith("route") else c for c in self.commands[fd]]
        for only_links in (True, False):  # all interfaces before any route
            for fd in self.ends.values():
                lines = [c for c in self.commands[fd] if c.startswith("link add") == only_links]
                if lines:
                    self._run(["ip", "-batch", "-"], fd, "\n".join(lines) + "\n")
        for r, wire in wires.items():
            self._shape(r, wire)

    def _add(self, what: str, name: str) -> None:
        fd = self.ends[what, name] = _make()
        self.commands[fd] = ["link set lo up"]

    def _join(self, here: int, after: int) -> str:
        """A wire from one namespace to another, and its name at the near end; none where there is one already."""
        if (here, after) in self.joints:
            return ""
        number = len(self.joints)
        name = f"hp{os.getpid() % 100000}x{number}"
        near, far = f"10.78.{number >> 6}.{(number & 63) * 4 + 1}", f"10.78.{number >> 6}.{(number & 63) * 4 + 2}"
        self.joints[here, after] = far
        self.commands[here] += [f"link add {name}a type veth peer name {name}b netns /proc/{os.getpid()}/fd/{after}",
                                f"addr add {near}/30 dev {name}a", f"link set {name}a gso_max_size {self.at_once} up"]
        self.commands[after] += [f"addr add {far}/30 dev {name}b", f"link set {name}b up"]
        return name + "a"

    def _shape(self, resource: str, wire: str) -> None:
        pairs = [p for p, route in self.routes.items() if any(r == resource for r, _ in route.via)]
        capacity = self.capacities[resource]
        rate, share = f"{int(8 * capacity)}bit", f"{max(1000, int(8 * capacity / max(1, len(pairs))))}bit"
        burst = max(self.at_once, int(capacity * PIECE_SECONDS / 16))
        lines = [f"qdisc add dev {wire} root handle 1: htb default 2", f"class add dev {wire} parent 1: classid 1:1 htb rate {rate} burst {burst}"]
        for i, (a, b) in enumerate(pairs):
            lines.append(f"class add dev {wire} parent 1:1 classid 1:{i + 2:x} htb rate {share} ceil {rate} burst {burst} cburst {burst} "
                         "quantum 3000")
            lines.append(f"filter add dev {wire} parent 1: protocol ip prio 1 u32 match ip src {self.address[a]}/32 "
                         f"match ip dst {self.address[b]}/32 flowid 1:{i + 2:x}")
        fd = self.ends["in", resource]
        self._run(["tc", "-batch", "-"], fd, "\n".join(lines) + "\n")

    def _run(self, command: List[str], fd: int, text: str) -> None:
        with _inside(fd):
            done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=30)
        if done.returncode != 0:
            raise OSError(f"{' '.join(command)}: {done.stderr.strip().splitlines()[0] if done.stderr else done.returncode}\n{text}")

    def make_links(self, device: str) -> Links:
        _enter(self.ends["device", device])
        slowest = max((max(self.capacities[r] for r, _ in route.via) for (a, _), route in self.routes.items() if a == device), default=1e9)
        # Small buffers: what is in them can no longer be overtaken.
        return Links(device, self.secret, None, self.latencies, self.piece_bytes, max(32768, int(2 * PIECE_SECONDS * slowest)),
                     self.address[device])

    def piece_bytes(self, pair: Tuple[str, str]) -> int:
        return max(1024, int(PIECE_SECONDS * min(self.capacities[r] for r, _ in self.routes[pair].via)))

    def restart(self) -> None:
        pass

    def cut(self, seconds: float) -> None:
        """Packets are dropped at every wire."""
        self._forward("0")
        again = threading.Timer(seconds, self._forward, ["1"])
        again.daemon = True
        again.start()

    def _forward(self, value: str) -> None:
        for (what, _), fd in list(self.ends.items()):
            if what == "in":
                with _inside(fd):
                    _set("ip_forward", value)

    def forget(self, devices: List[str]) -> None:
        pass

    def close(self) -> None:
        for fd in self.ends.values():
            os.close(fd)
        self.ends.clear()
