# SPDX-License-Identifier: BSL-1.0
"""The program that compares executors with the simulator: its numbers against brute force, its plans, and a run with a made-up executor."""

import csv
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

SOURCE = pathlib.Path(os.environ.get("HETPLAN_SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[2])
CLI = os.environ.get("HETPLAN_CLI", "")
FOLDER = SOURCE / "examples/executors"
sys.path.insert(0, str(FOLDER))
import cases  # noqa: E402
import validate  # noqa: E402


def result(group, plan, predicted, measured, paced=True, **more):
    return validate.Result(group, plan, "net", "core; shared", "1:d0", "both", paced, predicted, measured, [measured], 0, **more)


class numbers(unittest.TestCase):
    def test_tau_of_a_permutation_is_one_minus_twice_the_share_of_inversions(self):
        for n in range(2, 6):
            for order in itertools.permutations(range(n)):
                inversions, swapped = 0, list(order)  # counted by swaps of neighbours
                while any(a > b for a, b in zip(swapped, swapped[1:])):
                    i = next(i for i in range(n - 1) if swapped[i] > swapped[i + 1])
                    swapped[i], swapped[i + 1] = swapped[i + 1], swapped[i]
                    inversions += 1
                tau = validate.kendall_tau(validate.pair_signs([(float(i), float(x)) for i, x in enumerate(order)]))
                self.assertAlmostEqual(tau, 1 - 2 * inversions / (n * (n - 1) / 2))

    def test_equal_predictions_are_no_pair_and_equal_measurements_a_tie(self):
        self.assertEqual(validate.pair_signs([(1.0, 1.0), (1.0, 2.0)]), [])
        self.assertEqual(validate.pair_signs([(1.0, 1.0), (2.0, 1.0)]), [0])
        self.assertEqual(validate.pair_signs([(1.0, 1.0), (1.02, 0.5), (1.2, 0.4)], 0.03), [-1, -1])  # the first two are too close
        self.assertIsNone(validate.kendall_tau([]))

    def test_tau_counts_pairs_within_groups_only(self):
        text = validate.summary([result("a", "p", 1, 1), result("a", "q", 2, 2), result("b", "p", 5, 0.5), result("b", "q", 6, 0.4)])
        self.assertIn("over the 2 pairs of plans that share network and cluster: 0.00 (a 1.00, b -1.00)", text)

    def test_summary_has_the_median_and_names_the_worst(self):
        text = validate.summary([result("a", "p", 1.1, 1), result("a", "q", 2.6, 2), result("a", "r", 2.94, 3)])
        self.assertIn("Paced: 3 plans, median |error| 10.0 %, worst 30.0 % (a: q), 1 slower than predicted", text)

    def test_summaries_of_unpaced_and_paced_plans_are_apart_and_no_pair_has_one_of_each(self):
        text = validate.summary([result("a", "p", 1.1, 1), result("a", "q", 2, 1, paced=False), result("a", "r", 1.2, 1, paced=False, drift=0.9)])
        unpaced, steady, paced = text.split("\n\n")
        self.assertIn("Of these, at the speed of their profile within 10 %: 1 plans, median |error| 100.0 %, worst 100.0 % (a: q)", steady)
        self.assertIn("Unpaced: 2 plans, median |error| 60.0 %, worst 100.0 % (a: q)", unpaced)
        self.assertIn("over the 1 pairs", unpaced)
        self.assertIn("Paced: 1 plans, median |error| 10.0 %, worst 10.0 % (a: p)", paced)
        self.assertIn("over the 0 pairs", paced)
        self.assertTrue(validate.summary([result("a", "p", 1, 1)]).startswith("Unpaced: no plan.\n"))

    def test_a_sweep_has_a_row_for_each_group_and_the_worst_ten_in_full(self):
        rows = [result(g, str(i), 1 + i / 100, 1, paced=False) for g in "ab" for i in range(8)]
        text = validate.report(rows, validate.tables_of(rows, sweep=True), [])
        self.assertIn("| a | core; shared | 8 | 3.5 % | 7.0 % | 0.00 |", text)
        self.assertEqual(sum(line.startswith(("| a: ", "| b: ")) for line in text.splitlines()), 10)
        self.assertIn("| b: 7 |", text)
        self.assertNotIn("| b: 1 |", text)

    def test_table(self):
        text = validate.markdown(validate.case_rows([result("a", "p", 1.1, 1)]), 5)
        lines = text.splitlines()
        self.assertEqual(len(lines), 3)
        self.assertTrue(all(line.count("|") == lines[0].count("|") for line in lines))
        self.assertIn("| 1.100 s | 1.000 s ± 0.0 % | +10.0 % |", lines[2])

    def test_gains_pair_a_schedule_with_the_same_stages_without(self):
        rows = [result("a", "dora", 1, 1.1), result("a", "dora, uncontrolled", 1.2, 1.21, pair="dora"), result("b", "dora", 9, 9)]
        self.assertIn(["a: dora", "1.200 s", "1.000 s", "+20.0 %", "1.210 s", "1.100 s", "+10.0 %"], validate.gain_rows(rows))
        self.assertIn(".gains", validate.tables_of(rows, sweep=False))
        self.assertNotIn(".gains", validate.tables_of(rows[:1], sweep=False))

    def test_the_page_has_a_row_for_each_kind_of_which_there_is_a_plan(self):
        rows = validate.short_rows([result("a", "p", 1.1, 1), result("a", "q", 2.6, 2), result("a", "r", 2.94, 3)])
        self.assertEqual(rows[1:], [["paced", "3", "10.0 %", "30.0 %", "1", "1.00", "1.00"]])

    def test_bound_by_the_busier_of_device_and_resource(self):
        cluster = {"topology": {"kind": "star", "capacity": 10}}
        for sent, expected in ((5, "compute"), (10, "both"), (20, "network")):
            self.assertEqual(validate.bound_by({"busy": {"d0": 1, "d1": 0.5}, "bytes": {"d0.up": sent, "d1.up": 1}}, cluster), expected)
        measured = {"resources": [{"name": "air", "capacity": 4}]}
        self.assertEqual(validate.bound_by({"busy": {"d0": 1}, "bytes": {"air": 8}}, measured), "network")

    def test_region(self):
        page = "a\n<!-- begin measured mpi -->\nold\n<!-- end measured mpi -->\nb\n"
        self.assertEqual(validate.with_region(page, "mpi", "new\n"), page.replace("old", "new"))
        with self.assertRaisesRegex(cases.Fault, "no single region"):
            validate.with_region(page, "torch", "new\n")
        with self.assertRaisesRegex(cases.Fault, "no single region"):
            validate.with_region(page + page, "mpi", "new\n")

    def test_the_page_has_the_region_of_every_executor(self):
        page = (SOURCE / "docs/reproduction/executors.md").read_text()
        for region in ("threads", "mpi", "torch", "threads sweep", "threads zero bubble", "mpi zero bubble", "torch zero bubble"):
            validate.with_region(page, region, "")


class plans(unittest.TestCase):
    def setUp(self):
        self.seed = int(os.environ.get("HETPLAN_TEST_SEED", "1"))
        self.random = random.Random(self.seed)

    def test_balanced_cuts_are_as_good_as_the_best_of_all(self):
        for _ in range(100):
            layers, stages = self.random.randint(1, 7), self.random.randint(1, 4)
            if layers < stages:
                continue
            costs = [[self.random.randint(0, 9) for _ in range(layers)] for _ in range(stages)]

            def slowest(cuts):
                first = 0
                worst = 0
                for cost, n in zip(costs, cuts):
                    worst = max(worst, sum(cost[first:first + n]))
                    first += n
                return worst
            every = [c for c in itertools.product(range(1, layers + 1), repeat=stages) if sum(c) == layers]
            cuts = cases.balanced_cuts(costs)
            self.assertIn(tuple(cuts), every, f"seed {self.seed}")
            self.assertEqual(slowest(cuts), min(map(slowest, every)), f"seed {self.seed}")
        with self.assertRaises(cases.Fault):
            cases.balanced_cuts([[1], [1]])

    def test_shares_are_whole_positive_and_proportional(self):
        self.assertEqual(cases.shares([1, 0.5, 0.5], 16), [8, 4, 4])
        for _ in range(200):
            rates = [self.random.choice([1, 0.5, 0.25]) for _ in range(self.random.randint(1, 5))]
            samples = self.random.randint(len(rates), 64)
            given = cases.shares(rates, samples)
            self.assertEqual(sum(given), samples)
            for r, g in zip(rates, given):
                self.assertLess(abs(g - 1 - (samples - len(rates)) * r / sum(rates)), 1, f"seed {self.seed}")
        with self.assertRaises(cases.Fault):
            cases.shares([1, 1], 1)

    def test_branches_of_two_towers(self):
        names = ["a0", "b0", "a1", "join", "head"]
        edges = [("a0", "a1"), ("a1", "join"), ("b0", "join"), ("join", "head")]
        model = {"name": "m", "layers": [{"name": n} for n in names], "edges": [{"from": a, "to": b} for a, b in edges]}
        self.assertEqual(cases.branches(model), ([["a0", "a1"], ["b0"]], ["join", "head"]))
        with self.assertRaises(cases.Fault):  # both branches begin at a0
            cases.branches({**model, "edges": model["edges"] + [{"from": "a0", "to": "b0"}]})

    def test_profiles_are_read_between_and_beyond_batch_sizes(self):
        layer = {"profile": {"core": {"batch": [1, 3, 5], "forward": [1, 2, 6], "backward": [1, 2, 6]}}}
        for batch, expected in ((0.5, 2), (1, 2), (2, 3), (3, 4), (4, 8), (5, 12), (6, 16)):
            self.assertAlmostEqual(cases.seconds_of(layer, "core", batch), expected)

        self.assertEqual(cases.phases_of({**layer, "backward_input_flops": 1, "backward_weight_flops": 3}, "core", 2), {"F": 1.5, "B": 0.375, "W": 1.125})

    def test_a_ramp_has_the_samples_of_the_microbatches(self):
        for microbatch, count in itertools.product((2, 5, 8), (4, 5, 9)):
            sizes = cases.ramp(microbatch, count)
            self.assertEqual((sum(sizes), len(sizes), max(sizes)), (microbatch * count, count + 2, microbatch))

    def test_orders_have_every_task_once_behind_what_it_needs_and_no_more_ahead_than_asked(self):
        for _ in range(200):
            count, microbatches, ahead = self.random.randint(1, 4), self.random.randint(1, 8), self.random.randint(1, 8)
            on = [f"d{i}" for i in range(count)]
            on += self.random.choice([[], on, on[::-1]])
            seconds = [{what: self.random.randint(0, 5) for what in "FBW"} for _ in on]
            sent = [self.random.randint(0, 3) for _ in on]
            first = self.random.choice(["FBW", "BFW", "BF"])
            passes = [self.random.choice([0.5, 1]) for _ in range(microbatches)]
            orders = cases.orders_of(on, seconds, sent, passes, first, ahead)
            self.assertEqual(sorted((d, *t) for d in orders for t in orders[d]),
                             sorted((on[s], what, s, m) for s in range(len(on)) for what in first for m in range(microbatches)), f"seed {self.seed}")
            for d, order in orders.items():
                place = {tuple(t): i for i, t in enumerate(order)}
                for s in (s for s in range(len(on)) if on[s] == d):
                    for m in range(microbatches):
                        self.assertLess(place["F", s, m], place["B", s, m], f"seed {self.seed}")
                        if "W" in first:
                            self.assertLess(place["B", s, m], place["W", s, m], f"seed {self.seed}")
                        if s == on.index(d) and m >= ahead:
                            self.assertLess(place["W" if "W" in first else "B", s, m - ahead], place["F", s, m], f"seed {self.seed}")

    def test_every_executor_has_eight_plans_with_gradients_of_weights_apart_unpaced_and_paced(self):
        for executor in ("threads", "mpi", "torch"):
            groups = cases.zero_bubble_of(executor, 2)
            self.assertEqual({len(g.kinds) for g in cases.zero_bubble_of(executor, 4) if set(g.kinds) == {"core"}}, {2, 4})
            for full in (True, False):
                apart = [p for g in groups if (set(g.kinds) == {"core"}) == full for p in g.plans if p.name != "1F1B"]
                self.assertGreaterEqual(len(apart), 6)
            for g in groups:
                self.assertLessEqual(sum(1 / cases.slowness(k) for k in g.kinds), 2)

    def test_every_executor_has_a_dozen_cases_of_every_shape_and_no_more_work_than_two_cores(self):
        for executor in ("threads", "mpi", "torch"):
            groups = cases.groups_of(executor)
            self.assertGreaterEqual(sum(len(g.plans) for g in groups), 12)
            self.assertEqual({g.topology for g in groups}, {"shared", "star", "ring"})
            self.assertTrue(any(len(g.kinds) == 2 and set(g.kinds) == {"core"} for g in groups))
            self.assertTrue({3, 4, 5} <= {len(g.kinds) for g in groups})
            for g in groups:
                self.assertLessEqual(sum(1 / cases.slowness(k) for k in g.kinds), 2)


    def test_a_sweep_has_every_network_topology_and_load_and_a_core_for_each_device(self):
        for executor, cores in itertools.product(("threads", "mpi", "torch"), (2, 4, 5, 16)):
            groups = cases.sweep_of(executor, cores)
            self.assertEqual(len({g.name for g in groups}), 36)
            self.assertEqual(len({(g.network, g.topology, g.load) for g in groups}), 3 * 3 * 4)
            for g in groups:
                self.assertEqual(len(g.kinds), 5 if cores >= 5 else 2)
                self.assertEqual(len({p.name for p in g.plans}), len(g.plans))
            self.assertEqual({k for g in groups for k in g.kinds}, {"core"} if cores >= 5 else {"core", "core/2"})

    def test_layers_are_profiled_at_the_batch_sizes_of_plans_by_hand(self):
        for kinds, microbatch, expected in ((("core",) * 2, 8, [1, 2, 4, 8]), (("core",) * 5, 16, [1, 3, 4, 5, 6, 8, 16]),
                                            (("core", "core/2"), 9, [1, 2, 3, 4, 6, 9])):
            group = cases.Group("g", "mlp", kinds, "star", 1, ())
            self.assertEqual(cases.batch_sizes(group, microbatch), expected)


class a_busy_machine(unittest.TestCase):
    def run_beside(self, *others):
        """What a run answers while others use so many cores, in the first try, the second ..."""
        used = iter(others)
        work = validate.Validation(None, pathlib.Path(), 1, False, lambda text: None)
        with unittest.mock.patch.object(validate, "watch", lambda: lambda: next(used)):
            return work.quietly(lambda: {"done": True}), work.others

    def test_a_run_is_done_again_where_others_used_the_machine_and_given_up_in_the_end(self):
        self.assertEqual(self.run_beside(0.02), ({"done": True}, 0.02))
        self.assertEqual(self.run_beside(0.5, 0.01), ({"done": True}, 0.01))
        with self.assertRaisesRegex(cases.Fault, "the machine is busy: others used 0.30 cores"):
            self.run_beside(0.5, 0.4, 0.3)

    def test_a_process_that_is_not_its_own_is_seen(self):
        burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            used = validate.watch()
            time.sleep(1)
            self.assertGreater(used(), 0.2)
            done = subprocess.run([sys.executable, "-B", FOLDER / "validate.py", "threads", "--cli", "/bin/true", "--command", "/bin/true"],
                                  capture_output=True, text=True, timeout=60)
        finally:
            burner.kill()
            burner.wait()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"^validate.py: the machine is busy: others use [0-9.]+ cores; expected at most 0.1, or --anyway\n$")


class turns(unittest.TestCase):
    def test_pytorch_runs_a_plan_that_takes_turns_under_fair_sharing(self):
        made = {"stages": [], "microbatch_size": 1, "schedule": {"kind": "gpipe"}, "network": "exclusive", "predicted": {"latency": 1}}
        for executor, expected in (("torch", ("by hand, fair_share", "fair_share")), ("threads", ("by hand", "exclusive"))):
            ran = []
            with tempfile.TemporaryDirectory() as folder:
                work = validate.Validation(types.SimpleNamespace(executor=executor), pathlib.Path(folder), 1, True, lambda text: None)
                work.compare = lambda group, name, path, folder: ran.append((name, validate.read(path)["network"]))
                work.case(None, cases.Plan("by hand", lambda problem: made), None, pathlib.Path(folder), {})
            self.assertEqual(ran, [expected])


class programs(unittest.TestCase):
    def test_a_program_that_hangs_is_ended_with_what_it_started(self):
        with tempfile.TemporaryDirectory() as folder:
            mark = pathlib.Path(folder) / "alive"
            script = f"(while :; do touch {mark}; sleep 0.1; done) & wait"
            with self.assertRaisesRegex(cases.Fault, "no end after 1 s"):
                validate.call(["sh", "-c", script], 1)
            mark.unlink(missing_ok=True)
            time.sleep(0.5)
            self.assertFalse(mark.exists())

    def test_the_program_takes_along_what_it_runs(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                self.ends_with_what_it_runs(number)

    def ends_with_what_it_runs(self, number):
        with tempfile.TemporaryDirectory() as folder:
            mark = pathlib.Path(folder) / "alive"
            fake = pathlib.Path(folder) / "hangs"
            fake.write_text(f"#!/bin/sh\nwhile :; do touch {mark}; sleep 0.1; done\n")
            fake.chmod(0o755)
            process = subprocess.Popen([sys.executable, "-B", FOLDER / "validate.py", "threads", "--anyway", "--cli", "/bin/true", "--command", str(fake)],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + 30
            while not mark.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertTrue(mark.exists())
            process.send_signal(number)
            self.assertEqual(process.wait(30), 128 + number)
            mark.unlink()
            time.sleep(0.5)
            self.assertFalse(mark.exists())

    def test_a_program_that_fails_is_quoted_in_one_line(self):
        with self.assertRaisesRegex(cases.Fault, "exit status 2: what is wrong"):
            validate.call(["sh", "-c", "echo noise >&2; echo what is wrong >&2; exit 2"], 10)

    def refused(self, *arguments):
        done = subprocess.run([sys.executable, "-B", FOLDER / "validate.py", *arguments], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def test_bad_arguments_are_refused_in_one_line(self):
        self.assertIn('--case: expected one of two, ', self.refused("threads", "--case", "none"))
        self.assertIn("--iterations: expected an integer >= 1, got 0", self.refused("threads", "--iterations", "0"))
        self.assertIn("build the target hetplan_cli", self.refused("threads", "--programs", "/nowhere"))
        self.assertEqual("validate.py: /nowhere/r.json: cannot be written\n", self.refused("threads", "--json", "/nowhere/r.json"))


@unittest.skipUnless(CLI, "the command line program is not built")
class a_run(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def run_with(self, factor, *arguments):
        fake = f"{sys.executable} -B {pathlib.Path(__file__).parent / 'fake_executor.py'} {CLI} {factor}"
        command = [sys.executable, "-B", FOLDER / "validate.py", "threads", "--cli", CLI, "--command", fake, "--json", self.path / "r.json",
                   "--out", self.path / "out", "--anyway", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=300)

    def test_a_made_up_executor_that_is_five_percent_slow(self):
        (self.path / "reproduction/tables").mkdir(parents=True)
        shutil.copy(SOURCE / "docs/reproduction/executors.md", self.path / "reproduction")
        done = self.run_with(1.05, "--page", "--docs", self.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        written = json.loads((self.path / "r.json").read_text())
        results, same = written["results"], written["same"]
        self.assertGreaterEqual(len(results), 12)
        for r in results:
            self.assertAlmostEqual(r["error"], 1 / 1.05 - 1)
            self.assertGreater(r["predicted"], 0.1)
            self.assertLess(r["predicted"], 10)
        self.assertEqual({r["bound"] for r in results}, {"network", "compute", "both"})
        self.assertTrue(any("+" in r["shape"] for r in results))
        self.assertEqual({r["group"] for r in results if not r["paced"]}, {"two"})
        self.assertIn("Unpaced: 3 plans, median |error| 4.8 %, worst 4.8 %", done.stdout)
        self.assertIn(f"Paced: {len(results) - 3} plans, median |error| 4.8 %, worst 4.8 %", done.stdout)
        self.assertIn("(--anyway); profiles were taken with one core busy.", done.stdout)
        self.assertIn("share network and cluster: 1.00", done.stdout)
        self.assertIn("apart: 1.00", done.stdout)
        page = (self.path / "reproduction/executors.md").read_text()
        self.assertIn("| unpaced | 3 | 4.8 % | 4.8 % | 3 | 1.00 | ", page)
        self.assertIn(f"| paced | {len(results) - 3} | 4.8 % | 4.8 % | {len(results) - 3} | 1.00 | 1.00 |", page)
        with open(self.path / "reproduction/tables/executors.threads.csv", newline="") as file:
            self.assertEqual([row["case"] for row in csv.DictReader(file)], [f'{r["group"]}: {r["plan"]}' for r in results])
        self.assertTrue((self.path / "reproduction/tables/executors.threads.gains.csv").exists())
        for group in cases.groups_of("threads"):  # exactly the requested cases ran
            for plan in group.plans:
                ran = any(r["group"] == group.name and r["plan"] == plan.name for r in results)
                self.assertNotEqual(ran, any(s.startswith(f"{group.name}: {plan.name} = ") for s in same), plan.name)

    def test_a_plan_that_cannot_be_run_is_told_and_the_others_go_on(self):
        done = self.run_with("1 fails", "--case", "two/chain", "--case", "two/data parallel")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Not run: two/data parallel: ", done.stdout)
        self.assertIn("exit status 1: fake: out of order", done.stdout)
        self.assertIn("1 plans, ", done.stdout)

    def test_where_slower_devices_repeat_their_work_nothing_is_paced(self):
        done = self.run_with(1.0, "--slow", "repeat", "--busy", "--case", "four/chain")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Unpaced: 1 plans", done.stdout)
        self.assertIn("Paced: no plan.", done.stdout)
        self.assertIn("with the cores of the other devices busy.", done.stdout)

    def test_a_sweep(self):
        done = self.run_with(1.05, "--sweep", "--case", "towers-*-2", "--case", "mlp-star-0.1/chain")
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads((self.path / "r.json").read_text())["results"]
        self.assertEqual({r["group"] for r in results}, {"towers-shared-2", "towers-star-2", "towers-ring-2", "mlp-star-0.1"})
        self.assertGreaterEqual(len(results), 3 * 4 + 1)
        self.assertIn("| mlp-star-0.1 |", done.stdout)

    def test_gradients_of_weights_apart(self):
        done = self.run_with(1.05, "--zero-bubble")
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads((self.path / "r.json").read_text())["results"]
        self.assertEqual(len(results), sum(len(g.plans) for g in cases.zero_bubble_of("threads", len(os.sched_getaffinity(0)))))
        for r in results:
            self.assertAlmostEqual(r["error"], 1 / 1.05 - 1)
        made = json.loads((self.path / "out/two/eager-down-and-up.plan.json").read_text())
        self.assertEqual([s["devices"][0]["name"] for s in made["stages"]], ["d0", "d1", "d1", "d0"])
        self.assertEqual({what for what, _, _ in made["schedule"]["orders"]["d0"]}, set("FBW"))


if __name__ == "__main__":
    unittest.main()
