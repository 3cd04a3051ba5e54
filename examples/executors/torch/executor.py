# SPDX-License-Identifier: BSL-1.0
"""Trains a small real network across processes by a plan file, and says how long it took beside how long it should have taken.

    executor.py profile NETWORK CLUSTER --out-model M.json --out-cluster C.json
    executor.py run MODEL CLUSTER PLAN [--nominal CLUSTER] [--check] [--json]

Exit status: 0 done; 1 a worker was lost and training could not go on; 2 bad input.
"""

import argparse
import json
import os
import signal
import sys
from typing import Any, Dict, List, Optional, Tuple

# A device is one core. The libraries below torch have threads of their own, which are told before they are loaded.
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

try:
    import torch  # noqa: F401
except ImportError:
    print(f"executor.py: {sys.executable} has no torch; expected a Python that has it (Debian: /usr/bin/python3 with python3-torch)", file=sys.stderr)
    sys.exit(2)

from coordinator import Coordinator, Files, Trouble
from documents import Nominal, Program, TaskGraph, load_json, read_tasks
from fabrics import Fabric, Paced
from fleet import Lost
from models import network_named
from netns import Namespaces, why_not
from problems import BadInput, CannotGoOn
from worker import use_one_core


def slowness(kind: str, device: str) -> float:
    """How many times slower than a core of this machine a device kind is."""
    base, slash, factor = kind.partition("/")
    try:
        value = float(factor) if slash else 1.0
    except ValueError:
        value = 0.0
    if base != "core" or value < 1:
        raise BadInput(f'device "{device}": expected kind "core" or "core/s" with s >= 1, got "{kind}"')
    return value


def paced(graph: TaskGraph) -> Dict[str, float]:
    """How much slower than a core each device is. Their real work together has to fit on this machine."""
    slow, cores = {d: slowness(graph.kinds[d], d) for d in graph.used}, len(os.sched_getaffinity(0))
    busy = sum(1 / s for s in slow.values())
    if busy > cores + 1e-9:
        raise BadInput(f"{graph.file}: /devices: need {busy:.2f} cores at once, this machine has {cores}; expected slower kinds, or --pace none")
    return slow


def count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number >= 1, got {text}")
    return int(text)


def at_iteration(text: str) -> Tuple[str, int]:
    what, _, iteration = text.rpartition("@")
    if not what or not iteration.isdigit():
        raise argparse.ArgumentTypeError(f"expected WHAT@ITERATION, got {text}")
    return what, int(iteration)


def make_fabric(links: str, nominal: Nominal, graph: Optional[TaskGraph]) -> Fabric:
    """Namespaces where they can be had and can do what the plan asks for: a wire knows no priorities."""
    has_priorities = graph is not None and graph.has_priorities
    why = "priorities between senders" if has_priorities else why_not(nominal.capacities, nominal.routes)
    if links == "namespaces" and why:
        raise BadInput(f"--links namespaces: cannot be had: {why}; expected --links paced")
    if links != "paced" and not why:
        try:
            return Namespaces(nominal.capacities, nominal.routes, list(nominal.kinds))
        except OSError as e:
            if links == "namespaces":
                raise BadInput(f"--links namespaces: {e}".splitlines()[0]) from e
            print(f"links are paced: {e}".splitlines()[0], file=sys.stderr)
    # Where wires would be taken but for the priorities, the senders imitate them: at the capacities that were measured on them.
    imitate = links == "auto" and has_priorities and graph.capacities.keys() == nominal.capacities.keys() \
        and not why_not(nominal.capacities, nominal.routes)
    return Paced(graph.capacities if imitate else nominal.capacities, nominal.routes, list(nominal.kinds), has_priorities)


def run(o: argparse.Namespace) -> int:
    program = Program(o.hetplan)
    graph = read_tasks(load_json(o.tasks)) if o.tasks else program.tasks(o.model, o.cluster, o.plan)
    network = network_named(graph.model, f"{o.model}: /name")
    network.require_same(o.model, program.model(o.model))
    layers = [n for s in graph.stages for n in s.layers]
    if sorted(layers) != sorted(network.order):
        raise BadInput(f"{graph.file}: /stages: expected every layer of {network.name} once, got {', '.join(layers)}")
    nominal = program.cluster(o.nominal or o.cluster)
    for d in graph.used:
        if d not in nominal.kinds:
            raise BadInput(f'{o.nominal or o.cluster}: /devices: no device "{d}", which the plan uses')
    for device, _ in o.kill:
        if device not in graph.used:
            raise BadInput(f'--kill: expected a device of the plan ({", ".join(graph.used)}), got "{device}"')
    slow = paced(graph) if o.pace == "measured" else {}
    use_one_core()
    fabric = make_fabric(o.links, nominal, graph)
    job = Coordinator(Files(program, o.model, o.cluster, o.plan), graph, network, fabric, o.seed, slow, o.timeout)
    trouble = Trouble(o.kill, (float(o.cut[0]), o.cut[1]) if o.cut else None)
    try:
        job.start()
        job.train(o.iterations, trouble)
        report = job.report()
        if o.check:
            report.update(job.check())
        if o.trace:
            job.write_trace(o.trace)
    finally:
        job.stop()
    print_report(report, o.json)
    return 0


def print_report(report: Dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(report))
        return
    measured, predicted = report["measured"], report["predicted"]
    print(f"{report['network']}, plan of {report['plan']}, links {report['links']}")
    print(f"predicted {predicted:.4f} s" + (f", measured {measured:.4f} s ({measured / predicted - 1:+.1%})" if measured else ""))
    print("iterations " + " ".join(f"{t:.4f}" for t in report["iterations"]) + f" s, overruns {report['overruns']}")
    print("losses " + " ".join(f"{loss:.6f}" for loss in report["losses"]))
    for r in report["recoveries"]:
        print(f"lost {', '.join(r['lost'])} in iteration {r['iteration']}: noticed after {r['noticed']:.2f} s, "
              f"re-planned in {r['replanned']:.2f} s, {r['moved_bytes']} B moved in {r['moved']:.2f} s")
    if "difference" in report:
        print(f"difference: {report['difference']:.3g} (of what was learnt {report['learnt']:.3g})")


def parsed(arguments: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="executor.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    p = commands.add_parser("profile", help="measure layers and links")
    p.add_argument("network")
    p.add_argument("cluster")
    p.add_argument("--out-model", required=True)
    p.add_argument("--out-cluster", required=True)
    p.add_argument("--batches", default="1,2,4,8")
    p.add_argument("--quick", action="store_true", help="fewer repetitions")
    r = commands.add_parser("run", help="train by a plan")
    r.add_argument("model")
    r.add_argument("cluster")
    r.add_argument("plan")
    r.add_argument("--nominal", help="the cluster whose links are imitated (default: CLUSTER)")
    r.add_argument("--iterations", type=count, default=5)
    r.add_argument("--json", action="store_true")
    r.add_argument("--check", action="store_true", help="compare with training on one device")
    r.add_argument("--pace", choices=["measured", "none"], default="measured")
    r.add_argument("--kill", type=at_iteration, action="append", default=[], metavar="DEVICE@ITERATION")
    r.add_argument("--cut", type=at_iteration, metavar="SECONDS@ITERATION", help="no link carries anything for a while")
    r.add_argument("--tasks", help="a hetplan/tasks/1 file instead of asking hetplan for PLAN's")
    r.add_argument("--trace", help="write measured and predicted times of the last iteration's tasks")
    for each in (p, r):
        each.add_argument("--hetplan", help="the program (default: HETPLAN_CLI)")
        each.add_argument("--seed", type=int, default=1)
        each.add_argument("--timeout", type=float, default=30.0, help="seconds, of every wait")
        each.add_argument("--links", choices=["auto", "namespaces", "paced"], default="auto")
    return parser.parse_args(arguments)


def main(arguments: List[str]) -> int:
    o = parsed(arguments)

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    try:
        if o.command == "profile":
            from profiler import profile
            return profile(o, make_fabric)
        return run(o)
    except BadInput as e:
        print(e, file=sys.stderr)
        return 2
    except CannotGoOn as e:
        print(e, file=sys.stderr)
        return 1
    except Lost as e:
        print(f"lost {e}, and not while training: nothing to go on from", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
