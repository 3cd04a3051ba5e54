# SPDX-License-Identifier: BSL-1.0
"""The MPI executor: whatever the shape of the plan, ranks train what one device would; bad input ends in one line."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

EXECUTOR = pathlib.Path(os.environ["HETPLAN_CLI"]).parent / "executor_mpi"
MPIRUN = shutil.which("mpirun")
SKIPPED = 77

CLUSTER = {
    "format": "hetplan/cluster/1", "name": "four",
    "devices": [{"name": f"d{i}", "kind": kind, "memory": "1 GB"} for i, kind in enumerate(["core/4", "core/8", "core/8", "core/8"])],
    "topology": {"kind": "shared", "capacity": "800 Mbit/s", "latency": "1 ms"},
}
LAYERS = {
    "mlp": ["first", *(f"hidden{i}" for i in range(8)), "last", "loss"],
    "towers": [*(f"wide{i}" for i in range(4)), *(f"narrow{i}" for i in range(2)), "join", "last", "loss"],
    "transformer": ["embed", *(f"block{i}.{part}" for i in range(4) for part in ("attention", "feed_forward")), "loss"],
}


def stage(layers, *devices, size=None):
    s = {"layers": layers, "devices": [{"name": name, "samples": samples} for name, samples in devices]}
    return {**s, "microbatch_size": size} if size else s


def plan(model, stages, size=4, count=4, **more):
    return {"format": "hetplan/plan/1", "model": model, "cluster": "four", "mode": "training", "workload": {"optimizer_factor": 0},
            "microbatch_size": size, "microbatches": count, "stages": stages, **more}


def chain(network, *cuts):
    """The layers between the cuts, a stage for each device."""
    names, ends = LAYERS[network], [*cuts, len(LAYERS[network])]
    return [names[a:b] for a, b in zip([0, *cuts], ends)]


def plans():
    a, b, c = chain("mlp", 4, 8)
    yield "a chain", plan("mlp", [stage(a, ("d0", 4)), stage(b, ("d1", 4)), stage(c, ("d2", 4))])
    yield "gpipe", plan("mlp", [stage(a, ("d0", 4)), stage(b, ("d1", 4)), stage(c, ("d2", 4))], schedule={"kind": "gpipe"})
    works = {"d0": ("F0", "F3", "B3", "B0", "W0", "W3"), "d1": ("F1", "F2", "B2", "B1", "W2", "W1")}
    orders = {d: [[w[0], int(w[1]), m] for w in work for m in range(4)] for d, work in works.items()}
    yield "gradients of weights apart, down and up again", plan(
        "mlp", [stage(layers, (device, 4)) for layers, device in zip(chain("mlp", 2, 5, 8), ("d0", "d1", "d1", "d0"))],
        schedule={"kind": "explicit", "orders": orders})
    cuts = {"forward": [0, 2, 8, 14, 16], "backward": [0, 2, 8, 14, 16]}
    orders = {"d0": [["F", 0, 0], ["F", 0, 1], ["F", 2, 0], ["B", 2, 0], ["F", 0, 2], ["F", 2, 1], ["B", 2, 1], ["F", 0, 3], ["B", 0, 0],
                     ["F", 2, 2], ["B", 2, 2], ["B", 0, 1], ["F", 2, 3], ["B", 2, 3], ["B", 0, 2], ["B", 0, 3]],
              "d1": [["F", 1, 0], ["F", 1, 1], ["B", 1, 0], ["F", 1, 2], ["B", 1, 1], ["F", 1, 3], ["B", 1, 2], ["B", 1, 3]]}
    for network in ("exclusive", "per_link"):
        folded = [stage(layers, (device, 4)) for layers, device in zip(chain("mlp", 4, 8), ("d0", "d1", "d0"))]
        yield f"a device used twice, passes of unequal size, activations computed again, {network}", plan(
            "mlp", [{**s, "cuts": cuts, "recompute": True} for s in folded], schedule={"kind": "explicit", "orders": orders}, network=network)
    yield "uneven shares", plan("mlp", [stage(a + b, ("d0", 3), ("d1", 1)), stage(c, ("d2", 1), ("d3", 3))])
    yield "data parallel, three unequal", plan("mlp", [stage(a + b + c, ("d1", 1), ("d0", 2), ("d2", 1))])
    yield "a DAG of stages", plan("towers", [stage(LAYERS["towers"][:4], ("d0", 4)), stage(LAYERS["towers"][4:6], ("d3", 4)),
                                             stage(LAYERS["towers"][6:], ("d1", 2), ("d2", 2))])
    first, last = chain("transformer", 5)
    yield "a tensor in two stages", plan("transformer", [stage(first, ("d0", 1), ("d1", 1)), stage(last, ("d2", 2))], size=2, count=2)
    # One chunk overtakes the other; the gradient waits for its release.
    flows = [{"from": "d0", "to": "d1", "microbatch": m, "phase": "forward", "chunk": k, "of": 2, "priority": m} for m in range(4) for k in range(2)]
    flows.append({"from": "d1", "to": "d0", "microbatch": 3, "phase": "backward", "release": "60 ms", "priority": 1})
    yield "chunks and priorities", plan("mlp", [stage(a + b, ("d0", 4)), stage(c, ("d1", 4))], network="priority", flows=flows)


# Memory that MPI itself does not free is no leak of this project.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


def command(ranks, *arguments):
    return [MPIRUN, "--quiet", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), EXECUTOR, *map(str, arguments)]


def mpi(ranks, *arguments, cwd):
    return subprocess.run(command(ranks, *arguments), cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


def children(process):
    """Processes that run and whose parent this is."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:  # the process has ended
            continue
        if int(parent) == process and state != "Z":
            found.append(int(stat.parent.name))
    return sorted(found)


def is_running(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


class executor_test(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.write("four.json", CLUSTER)
        for network in LAYERS:
            result = mpi(4, "profile", network, "four.json", "--out-model", f"{network}.json", "--out-cluster", "measured.json", "--quick",
                         "--batches", "1,8", "--slow", "wait", "--busy", cwd=cls.path)
            if result.returncode != 0:
                raise AssertionError(result.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def write(cls, name, document):
        (cls.path / name).write_text(document if isinstance(document, str) else json.dumps(document))

    def run_plan(self, p, *more, ranks=None, cluster="measured.json"):
        self.write("plan.json", p)
        used = {d["name"] for s in p["stages"] for d in s["devices"]}
        result = mpi(ranks or len(used), "run", f"{p['model']}.json", cluster, "plan.json", "--json", *more, cwd=self.path)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def refused(self, ranks, *arguments):
        result = mpi(ranks, *arguments, cwd=self.path)
        self.assertEqual(result.returncode, 2, (arguments, result.stdout, result.stderr))
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("executor_mpi: "), result.stderr)
        return result.stderr

    def test_ranks_train_what_one_device_would(self):
        for name, p in plans():
            with self.subTest(name):
                report = self.run_plan(p, "--check", "--iterations", 2, "--pace", "none")
                self.assertLessEqual(report["difference"], 1e-6)
                self.assertEqual((len(report["iterations"]), len(report["losses"]), report["paced"]), (2, 3, False))
                self.assertEqual(len(set(report["losses"])), 3)  # parameters change

    def test_slower_devices_and_shaped_links_take_the_time_that_they_have(self):
        for name, p in plans():
            if name in ("a chain", "chunks and priorities"):
                with self.subTest(name):
                    report = self.run_plan(p, "--check", "--iterations", 2, "--slow", "wait", cluster="four.json")
                    self.assertLessEqual(report["difference"], 1e-6)
                    self.assertEqual((report["paced"], report["slow"]), (True, "wait"))
                    # At full speed an iteration takes an eighth. The excess over the prediction depends on the machine's load.
                    self.assertGreater(min(report["iterations"]), 0.5 * report["predicted"])

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one core")
    def test_work_that_is_repeated_has_the_results_of_one_time(self):
        p = plan("transformer", [stage(layers, (device, 2)) for layers, device in zip(chain("transformer", 5), ("d0", "d1"))], size=2, count=2)
        report = self.run_plan(p, "--check", "--iterations", 1, "--slow", "repeat")
        self.assertEqual((report["paced"], report["slow"]), (True, "repeat"))
        self.assertLessEqual(report["difference"], 1e-6)

    def test_ranks_of_idle_devices_do_nothing(self):
        a, b = chain("mlp", 5)
        p = plan("mlp", [stage(a, ("d1", 4)), stage(b, ("d3", 4))])
        losses = [self.run_plan(p, "--pace", "none", "--iterations", 1, ranks=n)["losses"] for n in (2, 4)]
        self.assertEqual(losses[0], losses[1])

    def test_the_seed_decides(self):
        p = dict(plans())["a chain"]
        losses = [self.run_plan(p, "--pace", "none", "--iterations", 1, "--seed", seed)["losses"] for seed in (1, 2)]
        self.assertNotEqual(*losses)

    def test_a_lost_rank_ends_all_of_them(self):
        self.write("long.json", dict(plans())["a chain"])
        for fault, status in ((signal.SIGKILL, None), (signal.SIGSTOP, 1)):
            with self.subTest(fault.name):
                long = command(3, "run", "mlp.json", "measured.json", "long.json", "--iterations", 100000, "--timeout", 2)
                p = subprocess.Popen(long, cwd=self.path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                wait_until(lambda: len(children(p.pid)) == 3, "no three ranks")
                time.sleep(1)
                ranks = children(p.pid)
                os.kill(ranks[1], fault)
                out, err = p.communicate(timeout=30)
                self.assertEqual(out, "")
                self.assertNotEqual(p.returncode, 0)
                if status is not None:
                    self.assertEqual(p.returncode, status, err)
                    self.assertIn("has waited 2 s for", err)
                wait_until(lambda: not any(map(is_running, ranks)), "a rank is left")

    def test_profiles_hold_what_was_measured(self):
        model = json.loads((self.path / "mlp.json").read_text())
        self.assertEqual([layer["name"] for layer in model["layers"]], LAYERS["mlp"])
        for layer in model["layers"]:
            fast, slow = layer["profile"]["core/4"], layer["profile"]["core/8"]
            self.assertEqual(fast["batch"], [1, 8])
            for key in ("forward", "backward"):
                for x, y in zip(fast[key], slow[key]):
                    self.assertGreater(x, 0)
                    self.assertAlmostEqual(y / x, 2)
        measured = json.loads((self.path / "measured.json").read_text())
        capacity = measured["resources"][0]["capacity"]
        self.assertTrue(0 < capacity < 1.05 * 1e8, capacity)  # shaped, and slower on a busy machine
        for route in measured["routes"]:
            self.assertTrue(route.get("latency", 0) < 0.05, route)

    def test_bad_input_ends_in_one_line(self):
        good = dict(plans())["a chain"]
        run_it = ("run", "mlp.json", "measured.json", "bad.json")
        self.write("bad.json", good)
        self.assertIn("mpirun -n: got 2 ranks; expected 3, one for each device of the plan, or 4, one for each of the cluster",
                      self.refused(2, *run_it))
        self.assertIn("model", self.refused(3, "run", "towers.json", "measured.json", "bad.json"))
        self.assertIn("nothing.json", self.refused(3, "run", "mlp.json", "measured.json", "nothing.json"))
        self.assertIn("--pase", self.refused(3, *run_it, "--pase", "none"))
        self.write("bad.json", json.dumps(good)[:200])
        self.assertIn("bad.json: line 1", self.refused(3, *run_it))
        self.write("bad.json", {**good, "stages": [{**good["stages"][0], "devices": [{"name": "d9", "samples": 4}]}, *good["stages"][1:]]})
        self.assertIn("\"d9\"", self.refused(3, *run_it))
        self.write("bad.json", {**good, "network": "unlimited"})
        self.assertIn("bad.json: plan: /network: got \"unlimited\"", self.refused(3, *run_it))
        self.write("bad.json", {**good, "network": "exclusive"})
        self.assertIn("--links: got real and a plan whose network is \"exclusive\"", self.refused(3, *run_it, "--links", "real"))
        self.write("fast.json", {**CLUSTER, "devices": [{**d, "kind": "core"} for d in CLUSTER["devices"]]})
        model = json.loads((self.path / "mlp.json").read_text())
        for layer in model["layers"]:
            layer["profile"]["core"] = layer["profile"]["core/4"]
        self.write("fast_mlp.json", model)
        self.write("bad.json", {**good, "stages": [stage(LAYERS["mlp"], *((f"d{i}", 1) for i in range(4)))]})
        if (os.cpu_count() or 1) < 4:
            self.assertIn("cores", self.refused(4, "run", "fast_mlp.json", "fast.json", "bad.json"))
        self.write("odd.json", {**CLUSTER, "devices": [{**d, "kind": "phone"} for d in CLUSTER["devices"]]})
        self.assertIn("odd.json: /devices/0/kind: got \"phone\"",
                      self.refused(4, "profile", "mlp", "odd.json", "--out-model", "x.json", "--out-cluster", "y.json"))
        self.assertFalse((self.path / "x.json").exists())


if __name__ == "__main__":
    if MPIRUN is None or not EXECUTOR.exists():
        print("skipped: no mpirun, or executor_mpi is not built", file=sys.stderr)
        sys.exit(SKIPPED)
    unittest.main()
