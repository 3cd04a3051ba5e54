# SPDX-License-Identifier: BSL-1.0
"""Measures layers on one thread, and links by sending through them: what a planner needs to know.

Source: Asteroid sec. 3.3 (layers over batch sizes, links), DeepCEE sec. 3.2 (links).
"""

import argparse
import contextlib
import json
import os
import signal
import statistics
import sys
import time
from typing import Any, Dict, Iterator, List, Tuple

import numpy
import torch

from coordinator import HEAD_START
from documents import Cluster, Program, paces, require_writable, write
from fabrics import Fabric, make_fabric
from fleet import Fleet
from models import Network, network_named
from problems import BadInput
from stages import Use, input_gradients, watched, weight_gradients
from worker import Settings, boot, end_with, use_one_core


def profile(o: argparse.Namespace) -> int:
    """Writes the model with seconds of every layer for each kind of device, and the cluster with measured links."""
    program = Program(o.hetplan)
    network = network_named(o.network, "NETWORK")
    nominal = program.cluster(o.cluster)
    cores = len(os.sched_getaffinity(0))
    slow, by_device = paces(o.slow, nominal.kinds, cores)
    pace = {kind: by_device[d] for d, kind in nominal.kinds.items()}
    try:
        batches = sorted({int(b) for b in o.batches.split(",")})
    except ValueError:
        batches = []
    if not batches or batches[0] < 1:
        raise BadInput(f"--batches: expected numbers >= 1 with commas between them, got {o.batches}")
    for path in (o.out_model, o.out_cluster):
        require_writable(path)
    use_one_core()
    # Links first: their workers have to be forked before anything else was computed here.
    cluster = measure_links(nominal, make_fabric(o.links, nominal, None), network, o)
    busy = min(len(nominal.kinds), cores) - 1 if o.busy else 0
    print(f"profile: slower devices {slow}; {busy} other cores busy", file=sys.stderr)
    with others_busy(busy, network, batches[-1]):
        layers = {times: measure_layers(network, batches, 5 if o.quick else 15, times) for times in {p.times for p in pace.values()}}
    profiles, parts = {}, {}
    for n in network.order:
        profiles[n] = {kind: {"batch": batches, **{what: [s * p.wait for s in layers[p.times][n][what]] for what in ("forward", "backward")}}
                       for kind, p in pace.items()}
        whole, weights = (sum(sum(found[n][what]) for found in layers.values()) for what in ("backward", "weights"))
        parts[n] = weights / whole
    write(o.out_model, json.dumps(network.document(profiles, parts), indent=1))
    write(o.out_cluster, json.dumps(cluster, indent=1))
    return 0


@contextlib.contextmanager
def others_busy(count: int, network: Network, batch: int) -> Iterator[None]:
    """As many processes that train the network at the same time. Before it was trained here: what comes after cannot be forked."""
    children, parent = [], os.getpid()
    try:
        for _ in range(count):
            children.append(os.fork())
            if children[-1] == 0:
                try:
                    end_with(parent)
                    while True:
                        measure_layers(network, [batch], 5)
                finally:
                    os._exit(1)
        yield
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def measure_layers(network: Network, batches: List[int], runs: int, times: int = 1) -> Dict[str, Dict[str, List[float]]]:
    """Mean seconds of each layer's forward, whole backward and, of that, the gradients of weights by batch, done as a worker does them and
    in its order, so that layers find the caches as in training. A run adds up tasks: so means."""
    found: Dict[str, Dict[str, List[float]]] = {n: {"forward": [], "backward": [], "weights": []} for n in network.order}
    modules = {n: network.module(n, 0) for n in network.order}
    uses = {n: watched([m]) for n, m in modules.items()}
    for b in batches:
        data = network.samples(0, 0, 0, b)
        measured = [{n: _time(network, n, modules[n], uses[n], b, data, times) for n in network.order} for _ in range(runs + 2)][2:]
        for n, lists in found.items():
            for at, seconds in enumerate(lists.values()):
                seconds.append(statistics.fmean(m[n][at] for m in measured))
    return found


def _time(network: Network, name: str, module: torch.nn.Module, uses: List[Use], batch: int, data: Dict[str, torch.Tensor],
          times: int) -> Tuple[float, float, float]:
    read = [torch.randn(batch, *network.shapes[i]).requires_grad_() for i in network.layers[name].inputs]
    begun = time.thread_time()  # of this thread alone: what else runs on the machine is no part of a layer
    for _ in range(times):
        uses.clear()
        given = network.run(name, module, read, data)
    end = given.sum() / batch if name == network.loss else given
    middle = time.thread_time()
    gradient = None if name == network.loss else torch.randn_like(given)
    again = time.thread_time()
    _, left = input_gradients([end], [gradient], read, uses, times)
    between = time.thread_time()
    weight_gradients(uses, left, times)
    last = time.thread_time()
    return middle - begun, last - again, last - between


def measure_links(nominal: Cluster, fabric: Fabric, network: Network, o: argparse.Namespace) -> Dict[str, Any]:
    """The cluster with measured capacities and latencies: time = latency + bytes / bandwidth by least squares over sizes, on a
    route for every resource. A route's bandwidth is a lower bound for each resource on it; the best one counts."""
    chosen: Dict[Tuple[str, str], None] = {}
    for r in nominal.capacities:
        through = [p for p, route in nominal.routes.items() if any(u == r for u, _ in route.via)]
        if through and not any(p in chosen for p in through):
            chosen[min(through, key=lambda p: len(nominal.routes[p].via))] = None
    fleet, settings = Fleet(), Settings(network, 0, {}, o.timeout)
    measured: Dict[Tuple[str, str], Tuple[float, float]] = {}
    try:
        used = sorted({d for p in chosen for d in p})
        for d in used:
            fleet.start(d, lambda control, parent, d=d: boot(d, settings, fabric.make_links, control, parent))
        addresses = fleet.collect("hello", -1, used, o.timeout) if used else {}
        fleet.tell(used, "peers", addresses)
        for pair in chosen:
            measured[pair] = _measure(fleet, pair, nominal, fabric, o)
    finally:
        fleet.stop()
        fabric.close()
    capacities = {}
    for r, capacity in nominal.capacities.items():
        seen = [measured[p][1] * w for p in chosen for u, w in nominal.routes[p].via if u == r]
        capacities[r] = max(seen, default=capacity)
        print(f"profile {r}: {capacities[r] / 1e6:.3f} MB/s (nominal {capacity / 1e6:.3f})", file=sys.stderr)
    # What a message costs beyond the nominal latency is the same everywhere: system calls and waking up.
    extra = statistics.median([measured[p][0] - nominal.routes[p].latency for p in chosen]) if chosen else 0.0
    print(f"profile latency: nominal {extra * 1e3:+.3f} ms", file=sys.stderr)
    document = {k: v for k, v in nominal.document.items() if k not in ("topology", "resources", "routes")}
    document["resources"] = [{"name": r, "capacity": c} for r, c in capacities.items()]
    document["routes"] = [{"from": a, "to": b, "via": [{"resource": u, "weight": w} for u, w in route.via],
                           "latency": max(0.0, route.latency + extra)} for (a, b), route in nominal.routes.items()]
    return document


def _measure(fleet: Fleet, pair: Tuple[str, str], nominal: Cluster, fabric: Fabric, o: argparse.Namespace) -> Tuple[float, float]:
    """Latency and bandwidth of a route."""
    bandwidth = min(nominal.capacities[r] / w for r, w in nominal.routes[pair].via)
    sizes = [max(4096, int(bandwidth * seconds)) // 4 * 4 for seconds in ((0.004, 0.02, 0.06) if o.quick else (0.004, 0.01, 0.03, 0.08, 0.2))]
    points = []
    for repeat in range(3 if o.quick else 5):
        for size in sizes:
            key = (0, "link", *pair, repeat, size)
            fabric.restart()
            fleet.tell([pair[1]], "take", key)
            time.sleep(HEAD_START)
            fleet.tell([pair[0]], "send", pair[1], key, size)
            begun = fleet.collect("sent", -1, [pair[0]], o.timeout)[pair[0]]
            took = fleet.collect("took", -1, [pair[1]], o.timeout)[pair[1]] - begun
            if repeat > 0:  # the first opens the connection
                points.append((size, took))
    medians = [statistics.median(t for s, t in points if s == size) for size in sizes]
    # Relative errors count: a short message's latency would drown in a long one's jitter.
    rows = numpy.array([[1 / t, s / t] for s, t in zip(sizes, medians)])
    latency, per_byte = numpy.linalg.lstsq(rows, numpy.ones(len(rows)), rcond=None)[0]
    return max(0.0, float(latency)), 1 / max(float(per_byte), 1e-12)
