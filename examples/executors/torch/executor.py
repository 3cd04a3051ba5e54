# SPDX-License-Identifier: BSL-1.0
"""Trains a small real network across processes by a plan file, and says how long it took beside how long it should have taken.

    executor.py profile NETWORK CLUSTER --out-model M.json --out-cluster C.json
    executor.py run MODEL CLUSTER PLAN [--nominal CLUSTER] [--check] [--json]

Exit status: 0 done; 1 a worker was lost and training could not go on; 2 bad input.
"""

import argparse
import itertools
import json
import math
import os
import signal
import sys
from typing import Any, Dict, List, Tuple

# A device is one core. The libraries below torch have threads of their own, which are told before they are loaded.
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # devices are cores, and a forked process cannot use a GPU that its parent has looked at
signal.signal(signal.SIGINT, signal.SIG_DFL)  # while they are: they take their time, and nothing has to be cleaned up yet

try:
    import torch  # noqa: F401
except ImportError:
    print(f"executor.py: {sys.executable} has no torch; expected a Python that has it (Debian: /usr/bin/python3 with python3-torch)", file=sys.stderr)
    sys.exit(2)

from coordinator import Coordinator, Files, Trouble
from documents import Cluster, Pace, Program, TaskGraph, paces, require_writable, write
from fabrics import make_fabric
from fleet import Lost
from models import network_named
from problems import BadInput, CannotGoOn
from picture import svg
from profiler import profile
from worker import Settings, use_one_core


def require_cores(graph: TaskGraph, pace: Dict[str, Pace], cores: int) -> None:
    """The devices' real work together has to fit on this machine."""
    busy = sum(1 / pace[d].wait for d in graph.used)
    if busy > cores + 1e-9:
        raise BadInput(f"{graph.file}: /devices: need {busy:.2f} cores at once, this machine has {cores}; "
                       "expected slower kinds with --slow wait, or --pace none")


def count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number >= 1, got {text}")
    return int(text)


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of seconds > 0, got {text}")
    return value


def at_iteration(text: str) -> Tuple[str, int]:
    what, _, iteration = text.rpartition("@")
    if not what or not iteration.isdigit():
        raise argparse.ArgumentTypeError(f"expected WHAT@ITERATION, got {text}")
    return what, int(iteration)


def seconds_at_iteration(text: str) -> Tuple[float, int]:
    what, iteration = at_iteration(text)
    return seconds(what), iteration


def shaping(program: Program, file: str, graph: TaskGraph) -> Cluster:
    """The cluster whose links are imitated. It needs the devices of the plan, and routes between any two: weights may have to move."""
    nominal = program.cluster(file)
    for d in graph.used:
        if d not in nominal.kinds:
            raise BadInput(f'{file}: /devices: no device "{d}", which the plan uses')
    for a, b in itertools.permutations(graph.used, 2):
        if (a, b) not in nominal.routes:
            raise BadInput(f'{file}: /routes: expected a route between any two devices of the plan, got no route from "{a}" to "{b}"')
    return nominal


def run(o: argparse.Namespace) -> int:
    for path in filter(None, (o.trace, o.svg)):
        require_writable(path)
    program = Program(o.hetplan)
    graph = program.tasks(o.model, o.cluster, o.plan)
    network = network_named(graph.model, f"{o.model}: /name")
    network.require_same(o.model, program.model(o.model))
    layers = [n for s in graph.stages for n in s.layers]
    if sorted(layers) != sorted(network.order):
        raise BadInput(f"{graph.file}: /stages: expected every layer of {network.name} once, got {', '.join(layers)}")
    nominal = shaping(program, o.nominal or o.cluster, graph)
    for device, _ in o.kill:
        if device not in graph.used:
            raise BadInput(f'--kill: expected a device of the plan ({", ".join(graph.used)}), got "{device}"')
    cores = len(os.sched_getaffinity(0))
    slow, pace = paces(o.slow, graph.kinds, cores) if o.pace == "measured" else ("", {})
    if pace:
        require_cores(graph, pace, cores)
    use_one_core()
    fabric = make_fabric(o.links, nominal, graph)
    job = Coordinator(Files(program, o.model, o.cluster, o.plan), graph, fabric, Settings(network, o.seed, pace, o.timeout))
    try:
        job.start()
        job.train(o.iterations, Trouble(o.kill, o.cut))
        report = {**job.report(), "slow": slow}
        if o.check:
            report.update(job.check())
        if o.trace:
            write(o.trace, json.dumps({"tasks": job.trace()}))
        if o.svg:
            write(o.svg, svg(": ".join(text_of(report).splitlines()[:2]) + "; the last iteration", job.trace()))
    finally:
        job.stop()
    tell(json.dumps(report) if o.json else text_of(report))
    return 0


def text_of(report: Dict[str, Any]) -> str:
    measured, predicted = report["measured"], report["predicted"]
    lines = [f"{report['network']}, plan of {report['plan']}, links {report['links']}",
             f"predicted {predicted:.4f} s" + (f", measured {measured:.4f} s ({measured / predicted - 1:+.1%})" if measured else ""),
             "iterations " + " ".join(f"{t:.4f}" for t in report["iterations"]) + f" s, overruns {report['overruns']}" + (f", slower devices {report['slow']}" if report["slow"] else ""),
             "losses " + " ".join(f"{loss:.6f}" for loss in report["losses"])]
    lines += [f"lost {', '.join(r['lost'])} in iteration {r['iteration']}: noticed after {r['noticed']:.2f} s, "
              f"re-planned in {r['replanned']:.2f} s, {r['moved_bytes']} B moved in {r['moved']:.2f} s" for r in report["recoveries"]]
    if "difference" in report:
        lines.append(f"difference: {report['difference']:.3g} (of what was learnt {report['learnt']:.3g})")
    return "\n".join(lines)


def tell(text: str) -> None:
    try:
        print(text, flush=True)
    except OSError as e:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what it still holds must not fail once more at the end
        raise BadInput(f"standard output: cannot be written: {e.strerror}") from e


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
    p.add_argument("--busy", action="store_true", help="with the other devices' cores busy: they train the same network at the same time")
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
    r.add_argument("--cut", type=seconds_at_iteration, metavar="SECONDS@ITERATION", help="no link carries anything for a while")
    r.add_argument("--trace", help="write measured and predicted times of the last iteration's tasks")
    r.add_argument("--svg", help="draw them")
    for each in (p, r):
        each.add_argument("--slow", choices=["repeat", "wait"],
                          help="how core/N gets N times slower: repeat the work of each task N times, or wait until N times its processor "
                               "time has passed (default: repeat where there is a core for every device)")
        each.add_argument("--hetplan", help="the program (default: HETPLAN_CLI)")
        each.add_argument("--seed", type=int, default=1)
        each.add_argument("--timeout", type=seconds, default=30.0, help="seconds, of every wait")
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
            return profile(o)
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
