#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Runs plans on an executor and compares each iteration time with what the simulator said before.

For every group of cases (a network on a cluster): profile, plan, predict; then run, one plan at a time.

usage: validate.py EXECUTOR [--sweep | --zero-bubble] [--case GROUP[/PLAN] ...] [--busy] [--slow repeat|wait] [--anyway] [--page] [--json FILE] [--out FOLDER]
    EXECUTOR     threads, mpi or torch
    --sweep      many plans in which no device waits, instead of the cases of every kind
    --zero-bubble  plans that run the gradients of weights apart, instead
    --case       only these; all of them if not given (`--list` names them, * stands for anything)
    --busy       profiles are taken with the other devices' cores busy
    --slow       what makes core/4 slow; the executor's own rule if not given
    --anyway     on a busy machine, too
    --page       puts a summary into docs/reproduction/executors.md and the tables beside it, as CSV
    --json       writes every number
    --out        where models, clusters, plans and results stay; a temporary folder if not given
Exit status: 0 done; 1 a plan could not be run (the others were); 2 bad input, an executor that is not there, or a busy machine.
"""

import argparse
import csv
import dataclasses
import fnmatch
import json
import multiprocessing
import os
import pathlib
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from cases import QUICK, Fault, Group, Plan, Problem, batch_sizes, cluster_of, groups_of, sized, slowness, sweep_of, zero_bubble_of

SOURCE = pathlib.Path(__file__).resolve().parents[2]
NEAR = 0.03  # predictions that lie closer together rank nothing
BUSY = 0.1   # of a core that others use: more, and what is measured is not the plan's
TRIES = 3    # to find a moment without them
STEADY = 0.1  # of its speed by which a machine may change that is steady; a virtual one shares cores with whom nobody sees, and halves it


# --- numbers ---------------------------------------------------------------------------------------------------------------------


def pair_signs(pairs: Sequence[Tuple[float, float]], apart: float = 0) -> List[int]:
    """For every two plans (predicted, measured): 1 if measured in the predicted order, -1 if in the other, 0 on a tie.

    Predictions that are equal, or less `apart` than that part of the smaller one, are no pair.
    """
    signs = []
    for i, (a, b) in enumerate(pairs):
        for c, d in pairs[:i]:
            if abs(a - c) <= apart * min(a, c):
                continue
            product = (a - c) * (b - d)
            signs.append((product > 0) - (product < 0))
    return signs


def kendall_tau(signs: Sequence[int]) -> Optional[float]:
    return sum(signs) / len(signs) if signs else None


def tau_text(signs: Sequence[int]) -> str:
    return f"{kendall_tau(signs):.2f}" if signs else "-"


def spread(values: Sequence[float]) -> float:
    """Half of what lies between the extremes, beside the median."""
    return (max(values) - min(values)) / 2 / statistics.median(values)


def markdown(rows: Sequence[Sequence[str]], names: int) -> str:
    """The first row holds the headings; the first `names` columns stand left, numbers right."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "".join("---|" if c < names else "---:|" for c in range(len(rows[0]))))
    return "\n".join(lines) + "\n"


def percent(x: float) -> str:
    return f"{100 * x:+.1f} %"


def bound_by(evaluation: dict, cluster: dict) -> str:
    """What the busiest device and the busiest resource have to do, beside each other."""
    capacity = {}
    for r in cluster.get("resources", []):
        capacity[r["name"]] = float(r["capacity"])
    fallback = float(cluster.get("topology", {}).get("capacity", 0) or 0)
    sending = max((b / (capacity.get(r) or fallback) for r, b in evaluation["bytes"].items() if capacity.get(r) or fallback), default=0)
    ratio = sending / max(evaluation["busy"].values())
    return "network" if ratio > 1.25 else "compute" if ratio < 0.8 else "both"


def shape(plan: dict) -> str:
    """Layers:devices of each stage, with shares where a stage has several devices, and samples of passes that are no microbatches."""
    text = []
    for s in plan["stages"]:
        if len(s["devices"]) == 1:
            devices = s["devices"][0]["name"]
        else:
            devices = "+".join(f'{d["name"]}({d["samples"]})' for d in s["devices"])
        text.append(f'{len(s["layers"])}:{devices}')
    cuts = plan["stages"][0].get("cuts", {}).get("forward", [])
    sizes = sorted({b - a for a, b in zip(cuts, cuts[1:])})
    return " ".join(text) + (f" by {sizes[0]} to {sizes[-1]}" if sizes else "") + " recomputed" * any(s.get("recompute") for s in plan["stages"])


# --- programs --------------------------------------------------------------------------------------------------------------------


def call(command: Sequence[str], timeout: float) -> str:
    """Its standard output. On a timeout or an interrupt it ends with everything that it started."""
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                               start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout)
    except BaseException as e:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        if isinstance(e, subprocess.TimeoutExpired):
            raise Fault(f"{shlex.join(map(str, command))}: no end after {timeout:.0f} s") from None
        raise
    if process.returncode != 0:
        told = err.strip().splitlines() or ["nothing on standard error"]
        raise Fault(f"{shlex.join(map(str, command))}: exit status {process.returncode}: {told[-1]}")
    return out


def parsed(text: str, command: Sequence[str]) -> dict:
    try:
        return json.loads(text)
    except json.JSONDecodeError as e:
        raise Fault(f"{shlex.join(map(str, command))}: expected one JSON document on standard output, {e}") from None


def watch() -> Callable[[], float]:
    """Asked later: how many of the cores that this program may use others have used since, the machine's host among them. Not this program,
    nor what it started and saw end."""
    mine = {f"cpu{core}" for core in os.sched_getaffinity(0)}

    def seconds() -> float:
        ticks = 0
        for name, *rest in map(str.split, pathlib.Path("/proc/stat").read_text().splitlines()):
            if name in mine:
                user, nice, system, _, _, _, _, stolen = map(int, rest[:8])
                ticks += user + nice + system + stolen
        return ticks / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])

    begun, before = time.monotonic(), seconds()
    return lambda: max(0.0, seconds() - before) / (time.monotonic() - begun)


def stay_on(core: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.sched_setaffinity(0, {core})


def work_a_little() -> float:
    """Seconds of a piece of work that is always the same."""
    seconds = []
    for _ in range(9):
        begun, x = time.perf_counter(), 0
        for i in range(100_000):
            x += i * i
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


class Speed:
    """How fast the machine is at the moment, all cores at work. A virtual machine may have half of it in the next second."""

    def __init__(self) -> None:
        self.workers = [multiprocessing.Pool(1, stay_on, (core,)) for core in sorted(os.sched_getaffinity(0))]

    def now(self) -> List[float]:
        return [asked.get() for asked in [worker.apply_async(work_a_little) for worker in self.workers]]

    @staticmethod
    def apart(a: Sequence[float], b: Sequence[float]) -> float:
        return max(abs(x / y - 1) for x, y in zip(a, b))


class Programs:
    def __init__(self, executor: str, programs: pathlib.Path, cli: str, command: Optional[str], busy: bool = False, slow: Optional[str] = None):
        self.cli, self.executor, self.programs, self.given = cli, executor, programs, command
        self.slow, self.busy = slow, busy

    def slowing(self, group: Group) -> Tuple[str, ...]:
        slow = self.slow or group.slow
        return ("--slow", slow) if slow else ()

    def command(self, devices: int) -> List[str]:
        if self.given:
            return shlex.split(self.given)
        if self.executor == "torch":
            return ["/usr/bin/python3", str(SOURCE / "examples/executors/torch/executor.py")]
        program = self.programs / f"executor_{self.executor}"
        if not program.exists():
            raise Fault(f"{program}: not there; build the target executor_{self.executor}, or name the folder with --programs")
        if self.executor == "mpi":
            root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
            return ["mpirun", "--oversubscribe", "--bind-to", "none", *root, "-n", str(devices), str(program)]
        return [str(program)]

    def hetplan(self, *arguments) -> dict:
        command = [self.cli, *map(str, arguments), "--json"]
        return parsed(call(command, 300), command)

    def profile(self, group: Group, nominal, model, cluster, batches: Sequence[int], *options: str) -> None:
        options = ("--batches", ",".join(map(str, batches))) + options + self.slowing(group) + ("--busy",) * self.busy
        call(self.command(len(group.kinds)) + ["profile", group.network, nominal, "--out-model", model, "--out-cluster", cluster, *options], 900)

    def run(self, group: Group, model, cluster, plan, nominal, iterations: int) -> dict:
        command = self.command(len(group.kinds)) + ["run", model, cluster, plan, "--nominal", nominal, "--iterations", iterations, "--json", *self.slowing(group)]
        return parsed(call(command, 300), command)


def write(path: pathlib.Path, value: dict) -> pathlib.Path:
    path.write_text(json.dumps(value, indent=1) + "\n")
    return path


def read(path: pathlib.Path) -> dict:
    return json.loads(path.read_text())


# --- the work --------------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Result:
    group: str
    plan: str
    network: str
    cluster: str
    shape: str
    bound: str
    paced: bool
    predicted: float
    measured: float
    iterations: List[float]
    overruns: int
    drift: float = 0.0  # part by which the machine was faster or slower, before or after, than around the profile
    pair: str = ""      # "uncontrolled": the same stages without schedule, of the plan named so

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1


def uncontrolled(plan: dict) -> dict:
    """The same stages and passes, the same explicit orders or 1F1B, and transfers that share the network as they come."""
    other = {k: v for k, v in plan.items() if k not in ("predicted", "flows")}
    schedule = {k: v for k, v in plan["schedule"].items() if k != "flows"} if plan["schedule"]["kind"] == "explicit" else {"kind": "1f1b"}
    return {**other, "schedule": schedule, "network": "fair_share", "planner": "uncontrolled"}


def is_slowed(plan: dict, group: Group) -> bool:
    """Whether the plan uses a device that is slower than a core."""
    used = {d["name"] for s in plan["stages"] for d in s["devices"]}
    return any(slowness(kind) > 1 and f"d{i}" in used for i, kind in enumerate(group.kinds))


def is_scheduled(plan: dict) -> bool:
    return plan.get("network") == "priority" or bool(plan.get("flows") or plan.get("schedule", {}).get("flows"))


class Validation:
    def __init__(self, programs: Programs, folder: pathlib.Path, iterations: int, anyway: bool, tell: Callable[[str], None]):
        self.programs, self.folder, self.iterations, self.anyway, self.tell = programs, folder, iterations, anyway, tell
        self.results: List[Result] = []
        self.others = 0.0          # cores that others used, at most
        self.speed = Speed()
        self.profiled: List[float] = []  # how fast the machine was around the profile of the group
        self.drift = 0.0
        self.quick: Dict[Tuple[str, Tuple[str, ...]], dict] = {}  # models by network and kinds: they size jobs and links
        self.faults: List[str] = []
        self.same: List[str] = []  # plans that another case had run already

    def group(self, group: Group, plans: Sequence[Plan]) -> None:
        folder = self.folder / group.name
        try:
            problem = self.prepare(group, folder)
        except Fault as e:
            self.fail(group.name, e)
            return
        ran: Dict[str, str] = {}
        for plan in plans:
            try:
                self.case(group, plan, problem, folder, ran)
            except Fault as e:
                self.fail(f"{group.name}/{plan.name}", e)

    def fail(self, what: str, why: Fault) -> None:
        self.faults.append(f"{what}: {why}")
        self.tell(self.faults[-1])

    def quietly(self, work: Callable[[], Optional[dict]], profiles: bool = False) -> Optional[dict]:
        """Again, where others used the machine meanwhile."""
        for _ in range(1 if self.anyway else TRIES):
            before, used = self.speed.now(), watch()
            answer = work()
            others, after = used(), self.speed.now()
            if self.anyway or others <= BUSY:
                self.others = max(self.others, others)
                if profiles or not self.profiled:
                    self.profiled = [(x + y) / 2 for x, y in zip(before, after)]
                self.drift = max(Speed.apart(x, self.profiled) for x in (before, after))
                return answer
        raise Fault(f"the machine is busy: others used {others:.2f} cores meanwhile, more than {BUSY} in each of {TRIES} tries")

    def prepare(self, group: Group, folder: pathlib.Path) -> Problem:
        """Profiles twice: quickly, to size the job and the links, and then on those links."""
        folder.mkdir(parents=True, exist_ok=True)
        nominal, model, cluster = folder / "nominal.json", folder / "model.json", folder / "cluster.json"
        self.tell(f"{group.name}: {group.network} on {', '.join(group.kinds)}, {group.topology}: profiling")
        alike = group.network, group.kinds
        if alike not in self.quick:
            write(nominal, cluster_of(group, 1e8))
            self.programs.profile(group, nominal, model, cluster, QUICK, "--quick")
            self.quick[alike] = read(model)
        microbatch, batch, capacity = sized(group, self.quick[alike])
        write(nominal, cluster_of(group, capacity))
        self.quietly(lambda: self.programs.profile(group, nominal, model, cluster, batch_sizes(group, microbatch)), profiles=True)
        problem = Problem(read(model), read(cluster), microbatch, batch)
        self.tell(f"{group.name}: {batch} samples per iteration in microbatches of {microbatch}, {capacity / 1e6:.3g} MB/s")
        write(folder / "job.json", {"format": "hetplan/job/1", "mode": "training", "batch": batch, "microbatch_sizes": [microbatch],
                                    "optimizer_factor": 0, "objective": "latency"})
        return problem

    def case(self, group: Group, plan: Plan, problem: Problem, folder: pathlib.Path, ran: Dict[str, str]) -> None:
        name = re.sub(r"\W+", "-", plan.name)
        path = folder / f"{name}.plan.json"
        if plan.by_hand:
            write(path, plan.by_hand(problem))
        else:
            self.programs.hetplan("plan", folder / "model.json", folder / "cluster.json", folder / "job.json", *plan.planner, "--out", path)
        made = read(path)
        if "stages" not in made:
            self.same.append(f"{group.name}: {plan.name} has several pipelines, which executors do not run")
            self.tell(self.same[-1])
            return
        what = json.dumps([[(s["layers"], s["devices"], s.get("cuts"), s.get("recompute")) for s in made["stages"]], made["microbatch_size"], made["schedule"],
                           made.get("network", "fair_share"), made.get("flows")], sort_keys=True)
        if what in ran:
            self.same.append(f"{group.name}: {plan.name} = {ran[what]}")
            self.tell(self.same[-1])
            return
        ran[what] = plan.name
        if self.programs.executor == "torch" and made.get("network") in ("exclusive", "per_link"):  # its links hold no ports
            shared = write(folder / f"{name}.shared.plan.json", {**{k: v for k, v in made.items() if k != "predicted"}, "network": "fair_share"})
            self.compare(group, f"{plan.name}, fair_share", shared, folder)
            return
        self.compare(group, plan.name, path, folder)
        if plan.planner and is_scheduled(made):
            other = write(folder / f"{name}.uncontrolled.plan.json", uncontrolled(made))
            self.compare(group, f"{plan.name}, uncontrolled", other, folder, pair=plan.name)

    def compare(self, group: Group, name: str, path: pathlib.Path, folder: pathlib.Path, pair: str = "") -> None:
        model, cluster, nominal = folder / "model.json", folder / "cluster.json", folder / "nominal.json"
        said = self.programs.hetplan("simulate", model, cluster, path)
        self.tell(f"{group.name}/{name}: predicted {said['latency']:.3f} s, running")
        ran = self.quietly(lambda: self.programs.run(group, model, cluster, path, nominal, self.iterations))
        one = Result(group.name, name, group.network, f"{', '.join(group.kinds)}; {group.topology}", shape(read(path)),
                     bound_by(said, read(cluster)), ran["slow"] == "wait" and is_slowed(read(path), group), said["latency"],
                     statistics.median(ran["iterations"]), ran["iterations"], ran.get("overruns", 0), self.drift, pair)
        self.results.append(one)
        self.tell(f"{group.name}/{name}: measured {one.measured:.3f} s, the prediction is off by {percent(one.error)}")


# --- what is told ----------------------------------------------------------------------------------------------------------------


Rows = List[List[str]]


def case_rows(results: Sequence[Result]) -> Rows:
    rows = [["case", "network, devices, links", "plan: layers:devices of each stage", "bound by", "paced", "speed", "predicted", "measured", "error"]]
    for r in results:
        rows.append([f"{r.group}: {r.plan}", f"{r.network}; {r.cluster}", r.shape, r.bound,
                     ("yes" if r.paced else "no") + (f", {r.overruns} overruns" if r.overruns else ""), f"± {100 * r.drift:.0f} %", f"{r.predicted:.3f} s",
                     f"{r.measured:.3f} s ± {100 * spread(r.iterations):.1f} %", percent(r.error)])
    return rows


def kinds_of(results: Sequence[Result]) -> List[Tuple[str, List[Result]]]:
    """Apart: where no device waits, and where some do; of the first, those during which the machine was as fast as when it was profiled."""
    unpaced, paced = [r for r in results if not r.paced], [r for r in results if r.paced]
    steady = [r for r in unpaced if r.drift <= STEADY]
    return [("Unpaced", unpaced), (f"Of these, at the speed of their profile within {100 * STEADY:.0f} %", steady), ("Paced", paced)]


def summary(results: Sequence[Result]) -> str:
    return "\n".join(summary_of(some, kind) for kind, some in kinds_of(results))


def short_rows(results: Sequence[Result]) -> Rows:
    """A row for each kind of which there is a plan."""
    rows = [["plans", "how many", "median abs. error", "worst", "slower than predicted", "tau", f"tau, > {100 * NEAR:.0f} % apart"]]
    for kind, some in kinds_of(results):
        if some:
            errors = [abs(r.error) for r in some]
            signs, clear = all_signs(some), all_signs(some, NEAR)
            rows.append([kind.lower().replace("of these, ", ""), str(len(some)), f"{100 * statistics.median(errors):.1f} %", f"{100 * max(errors):.1f} %",
                         str(sum(r.error < 0 for r in some)), tau_text(signs), tau_text(clear)])
    return rows


def all_signs(results: Sequence[Result], apart: float = 0) -> List[int]:
    """Of the pairs that share network and cluster."""
    return [sign for g in dict.fromkeys(r.group for r in results)
            for sign in pair_signs([(r.predicted, r.measured) for r in results if r.group == g], apart)]


def summary_of(results: Sequence[Result], kind: str) -> str:
    if not results:
        return f"{kind}: no plan.\n"
    slower = sum(r.error < 0 for r in results)
    errors = [abs(r.error) for r in results]
    worst = max(results, key=lambda r: abs(r.error))
    signs, clear = all_signs(results), all_signs(results, NEAR)
    by_group = [f"{g} {tau_text(all_signs([r for r in results if r.group == g]))}" for g in dict.fromkeys(r.group for r in results)]
    listed = f" ({', '.join(by_group)})" if len(by_group) <= 5 else ""
    return (f"{kind}: {len(results)} plans, median |error| {100 * statistics.median(errors):.1f} %, worst {100 * max(errors):.1f} % "
            f"({worst.group}: {worst.plan}), {slower} slower than predicted. Kendall's tau over the {len(signs)} pairs of plans that share network and cluster: "
            f"{tau_text(signs)}{listed}; over the {len(clear)} whose predictions are more than {100 * NEAR:.0f} % apart: "
            f"{tau_text(clear)}.\n")


def gain_rows(results: Sequence[Result]) -> Rows:
    """The scheduled plans beside the same stages without schedule."""
    rows = [["stages of", "predicted: uncontrolled", "scheduled", "gain", "measured: uncontrolled", "scheduled", "gain"]]
    for r in results:
        for with_schedule in results:
            if r.pair and with_schedule.group == r.group and with_schedule.plan == r.pair and not with_schedule.pair:
                both = ((r.predicted, with_schedule.predicted), (r.measured, with_schedule.measured))
                cells = [cell for a, b in both for cell in (f"{a:.3f} s", f"{b:.3f} s", percent(a / b - 1))]
                rows.append([f"{r.group}: {r.pair}", *cells])
    return rows


def group_rows(results: Sequence[Result]) -> Rows:
    rows = [["group", "devices, links", "plans", "median abs. error", "worst", "Kendall's tau"]]
    for g in dict.fromkeys(r.group for r in results):
        of_group = [r for r in results if r.group == g]
        errors = [abs(r.error) for r in of_group]
        rows.append([g, of_group[0].cluster, str(len(errors)), f"{100 * statistics.median(errors):.1f} %", f"{100 * max(errors):.1f} %",
                     tau_text(pair_signs([(r.predicted, r.measured) for r in of_group]))])
    return rows


def tables_of(results: Sequence[Result], sweep: bool) -> Dict[str, Rows]:
    """By what a file's name ends in: of a sweep a row for each group, and in full only the plans that are furthest off."""
    if sweep:
        return {"": group_rows(results), ".worst": case_rows(sorted(results, key=lambda r: -abs(r.error))[:10])}
    gains = gain_rows(results)
    return {"": case_rows(results), **({".gains": gains} if len(gains) > 1 else {})}


def report(results: Sequence[Result], tables: Dict[str, Rows], same: Sequence[str]) -> str:
    text = summary(results) + "".join("\n" + markdown(rows, 1) for rows in tables.values())
    return text + (f"\nThe same plan, run once: {'; '.join(same)}.\n" if same else "")


def with_region(page: str, name: str, text: str) -> str:
    """The page with what stands between `<!-- begin measured NAME -->` and `<!-- end measured NAME -->` replaced."""
    begin, end = f"<!-- begin measured {name} -->\n", f"<!-- end measured {name} -->"
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise Fault(f"the page has no single region {begin.strip()} ... {end}")
    return page[:page.index(begin) + len(begin)] + text + page[page.index(end):]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("executor", choices=("threads", "mpi", "torch"))
    parser.add_argument("--case", action="append", default=[], metavar="GROUP[/PLAN]")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--sweep", action="store_true")
    which.add_argument("--zero-bubble", action="store_true")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--slow", choices=("repeat", "wait"))
    parser.add_argument("--anyway", action="store_true")
    parser.add_argument("--list", action="store_true", help="name the cases and run nothing")
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--programs", type=pathlib.Path, default=SOURCE / "build/release/bin", help="where hetplan and the executors are")
    parser.add_argument("--cli", help="hetplan, if not there")
    parser.add_argument("--command", help="the executor, if not there")
    parser.add_argument("--docs", type=pathlib.Path, default=SOURCE / "docs", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, _: sys.exit(128 + n))  # an exception: what runs is ended, too
    cores = len(os.sched_getaffinity(0))
    groups = groups_of(asked.executor)
    if asked.sweep or asked.zero_bubble:
        groups = (sweep_of if asked.sweep else zero_bubble_of)(asked.executor, cores)
    region = asked.executor + " sweep" * asked.sweep + " zero bubble" * asked.zero_bubble
    names = [g.name for g in groups] + [f"{g.name}/{p.name}" for g in groups for p in g.plans]
    try:
        for case in asked.case:
            if not fnmatch.filter(names, case):
                raise Fault(f'--case: expected one of {", ".join(names)}; got "{case}"')
        if asked.iterations < 1:
            raise Fault(f"--iterations: expected an integer >= 1, got {asked.iterations}")
        page = asked.docs / "reproduction/executors.md"
        for path in [asked.json] * bool(asked.json) + [page] * asked.page:  # not after hours of work
            if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
                raise Fault(f"{path}: cannot be written")
        if asked.list:
            print("\n".join(n for n in names if "/" in n))
            return 0
        cli = asked.cli or str(asked.programs / "hetplan")
        if not pathlib.Path(cli).exists():
            raise Fault(f"{cli}: not there; build the target hetplan_cli, or name it with --cli")
        os.environ["HETPLAN_CLI"] = cli  # for executors that ask it for the task graph
        programs = Programs(asked.executor, asked.programs, cli, asked.command, asked.busy, asked.slow)
        programs.command(1)
        with tempfile.TemporaryDirectory() as scratch:
            folder = asked.out or pathlib.Path(scratch)
            used = watch()
            time.sleep(1)
            others = used()
            if others > BUSY and not asked.anyway:
                raise Fault(f"the machine is busy: others use {others:.2f} cores; expected at most {BUSY}, or --anyway")
            work = Validation(programs, folder, asked.iterations, asked.anyway, lambda text: print(text, file=sys.stderr, flush=True))
            for g in groups:
                wanted = [p for p in g.plans if not asked.case or any(fnmatch.fnmatchcase(n, c) for c in asked.case for n in (g.name, f"{g.name}/{p.name}"))]
                if wanted:
                    work.group(g, wanted)
        text = (f"{cores} cores, of which others used at most {work.others:.2f}{' (--anyway)' * asked.anyway}; profiles were taken with "
                f"{'the cores of the other devices busy' if asked.busy else 'one core busy'}.\n\n")
        tables = tables_of(work.results, asked.sweep)
        faults = "".join(f"\nNot run: {f}\n" for f in work.faults)
        print(text + report(work.results, tables, work.same) + faults, end="")
        if asked.json:
            results = [{**dataclasses.asdict(r), "error": r.error} for r in work.results]
            write(asked.json, {"executor": asked.executor, "cores": cores, "others": work.others, "busy": asked.busy, "results": results, "same": work.same, "faults": work.faults})
        if asked.page:
            page.write_text(with_region(page.read_text(), region, text + markdown(short_rows(work.results), 1) + faults))
            for suffix, rows in tables.items():
                with open(page.parent / f"tables/executors.{region.replace(' ', '-')}{suffix}.csv", "w", newline="") as file:
                    csv.writer(file, lineterminator="\n").writerows(rows)
        return 1 if work.faults else 0
    except Fault as e:
        print(f"validate.py: {e}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
