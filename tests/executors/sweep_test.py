# SPDX-License-Identifier: BSL-1.0
"""A sweep's table: the same bytes whoever runs the cases, in whatever order, and however often it was interrupted."""

import csv
import fcntl
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import toy_problem

CLI = os.environ["HETPLAN_CLI"]
MPI = pathlib.Path(CLI).parent / "hetplan_sweep_mpi"
MPIRUN = shutil.which("mpirun")
SKIPPED = 77
SEED = int(os.environ.get("HETPLAN_TEST_SEED", "1"))

MODEL = toy_problem.model(1, 2, 3, 1, 2, 3)
CLUSTER = toy_problem.cluster(d0=4, d1=3, d2=2)
TINY = {**CLUSTER, "name": "tiny", "devices": [{**d, "memory": "1 MB"} for d in CLUSTER["devices"]]}
SWEEP = {
    "format": "hetplan/sweep/1", "models": ["toy.json"], "clusters": ["home.json", "tiny.json"],
    "jobs": [{"name": "small, \"quoted\"", "mode": "training", "batch": 4}, "job.json"],
    "latencies": ["20 ms", "80 ms"], "planners": ["on-device", "gpipe", "asteroid", "dora"],
}
CASES = 32
# Too much work for a finite energy on a slow device.
HUGE = {**MODEL, "name": "huge", "layers": [{**l, "forward_flops": 1e306} for l in MODEL["layers"]]}
# Memory that MPI itself does not free is no leak of this project.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
# Cases long enough to kill the program between two of them.
SLOW = {
    "format": "hetplan/sweep/1", "models": ["efficientnet-b1"], "clusters": ["smart-home-2"],
    "jobs": [{"name": "j", "mode": "training", "batch": 32}], "latencies": [0.1, 0.2, 0.4], "planners": ["gpipe", "dora"],
}
SLOW_CASES = 6
SERVING = {
    "format": "hetplan/serving-sweep/1", "clouds": ["cloud.json"], "services": ["services.json"], "requests": ["few.csv", "many.csv"],
    "cycles": [0, "200 ms"], "systems": ["epara", "alpaserve", "lru"],
}
SERVING_CASES = 12
CLOUD = {"format": "hetplan/cloud/1", "name": "street", "ring": {"period": "100 ms"},
         "servers": [{"name": "pole", "count": 3, "gpus": [{"kind": "P100", "memory": "16 GB"}], "uplink": "1 Gbit/s"}]}
SERVICES = {"format": "hetplan/services/1",
            "services": [{"name": "image", "latency": "200 ms",
                          "variants": [{"name": "one", "gpu": "P100", "memory": "2 GB",
                                        "pass": {"batch": [1, 8], "seconds": [0.02, 0.06]}}]}]}


def ranks(n):
    return [MPIRUN, "--quiet", "--allow-run-as-root", "--oversubscribe", "-n", str(n), MPI]


class sweep_test(toy_problem.folder_test):
    def setUp(self):
        super().setUp()
        self.write("toy.json", MODEL)
        self.write("home.json", CLUSTER)
        self.write("tiny.json", TINY)
        self.write("huge.json", HUGE)
        self.write("slow device.json", {**CLUSTER, "devices": [{**d, "compute": "1 FLOP/s"} for d in CLUSTER["devices"]]})
        self.write("job.json", {"format": "hetplan/job/1", "mode": "inference", "batch": 4})
        self.write("sweep.json", SWEEP)
        self.write("slow.json", SLOW)
        self.write("serving.json", SERVING)
        self.write("cloud.json", CLOUD)
        self.write("services.json", SERVICES)
        for name, gap in (("few", 0.01), ("many", 0.002)):
            requests = "".join(f"{gap * i},image,pole{i % 3 // 2}\n" for i in range(400))
            (self.path / f"{name}.csv").write_text("arrival,service,server\n" + requests)

    def run_sweep(self, *more, program=(CLI, "sweep"), out="table.jsonl", sweep="sweep.json"):
        return subprocess.run([*program, sweep, "--out", out, *more], cwd=self.path, env=ENVIRONMENT, capture_output=True, text=True,
                              timeout=60, stdin=subprocess.DEVNULL)

    def table(self, *more, program=(CLI, "sweep"), out="table.jsonl", sweep="sweep.json"):
        result = self.run_sweep(*more, program=program, out=out, sweep=sweep)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return (self.path / out).read_bytes()

    def refused(self, result):
        self.assertEqual(result.returncode, 2, (result.stdout, result.stderr))
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        return result.stderr


    def check_planner_that_fails(self, program):
        """One line for what failed, rows for the rest; gone on with, only what failed is run again."""
        self.write("sweep.json", {**SWEEP, "models": ["huge.json", "toy.json"], "clusters": ["slow device.json", "home.json"]})
        said = self.refused(self.run_sweep(program=program))
        self.assertRegex(said, '^hetplan(_sweep_mpi)?: huge.json on slow device.json, small, "quoted", on-device: ')
        failed = int(re.search(r"\((\d+) of 64 cases failed, the rest is in table.jsonl\)$", said)[1])
        rows = (self.path / "table.jsonl").read_text().splitlines()
        self.assertEqual(len(rows), 64 - failed)
        self.assertEqual(sum("toy.json" in row for row in rows), 32)
        self.assertEqual(self.refused(self.run_sweep(program=program)), said)
        self.write("sweep.json", {**SWEEP, "models": ["toy.json"], "clusters": ["slow device.json", "home.json"]})
        result = json.loads(self.run_sweep("--json", program=program).stdout)
        self.assertEqual((result["computed"], result["dropped"]), (0, 32 - failed))


class one_process(sweep_test):
    def test_the_table_has_a_row_for_every_case_in_order(self):
        rows = [json.loads(line) for line in self.table("--csv", "t.csv").splitlines()]
        self.assertEqual(len(rows), CASES)
        self.assertEqual(len({r["key"] for r in rows}), CASES)
        order = [(c, j, t, p) for c in SWEEP["clusters"] for j in ("small, \"quoted\"", "job.json") for t in (0.02, 0.08) for p in SWEEP["planners"]]
        self.assertEqual([(r["cluster"], r["job"], r["target"], r["planner"]) for r in rows], order)
        for r in rows:
            if r["cluster"] == "tiny.json":
                self.assertEqual(r["status"], "out_of_memory")
                self.assertNotIn("latency", r)
            elif r["status"] == "feasible":
                # keep_qoe: energy, and 1000 J per second beyond the target
                self.assertAlmostEqual(r["score"], r["energy"] + 1000 * max(0, r["latency"] - r["target"]), delta=1e-9 * r["score"])
        with open(self.path / "t.csv", newline="") as f:
            self.assertEqual(len(f.read().splitlines()), CASES + 1)
            f.seek(0)
            for row, line in zip(rows, csv.DictReader(f)):
                for column, text in line.items():
                    value = row.get(column, "")
                    self.assertEqual(float(text) if isinstance(value, (int, float)) else text, value)

    def test_serving_is_swept_like_plans(self):
        rows = [json.loads(line) for line in self.table("--csv", "t.csv", sweep="serving.json").splitlines()]
        order = [(r, c, s) for r in SERVING["requests"] for c in (0, 0.2) for s in SERVING["systems"]]
        self.assertEqual([(r["requests"], r["cycle"], r["system"]) for r in rows], order)
        for r in rows:
            self.assertAlmostEqual(r["score"], 1 - r["attainment"])
            self.assertEqual(r["asked_for"], 400)
            self.assertEqual(r["changes"] > 0, r["cycle"] > 0)
        said = self.run_sweep(sweep="serving.json").stdout
        self.assertIn("best system", said)
        self.assertIn("12 cases, 0 computed now", said)
        self.write("serving.json", {**SERVING, "systems": ["epare"]})
        self.assertIn("epara", self.refused(self.run_sweep(sweep="serving.json")))

    def test_serving_is_refused_before_the_first_case(self):
        def refused(*words, arguments=(), **more):
            self.write("bad.json", {**SERVING, **more})
            said = self.refused(self.run_sweep(*arguments, sweep="bad.json", out="bad.jsonl"))
            for word in words:
                self.assertIn(word, said)
            self.assertFalse((self.path / "bad.jsonl").exists())
        refused("bad.json", "/cycles/1", "100000", cycles=[0, 1e-9])
        refused("bad.json", "trace_service", trace_service="image")
        refused("bad.json", "/time_scale", time_scale=0)
        refused("--threads", "planners", arguments=("--threads", "2"))
        refused("hetplan/serving-sweep/1", format="hetplan/serving-sweep/2")
        self.write("other.json", json.loads(json.dumps(CLOUD).replace("P100", "H100")))
        refused("bad.json", "/services/0", "fits nowhere", clouds=["cloud.json", "other.json"])
        self.table(out="plans.jsonl")
        self.assertIn("another", self.refused(self.run_sweep(sweep="serving.json", out="plans.jsonl")))

    def test_a_row_says_what_plan_says(self):
        rows = [json.loads(line) for line in self.table().splitlines()]
        row = next(r for r in rows if (r["cluster"], r["job"], r["target"], r["planner"]) == ("home.json", "job.json", 0.08, "dora"))
        self.write("same.json", {"format": "hetplan/job/1", "mode": "inference", "batch": 4, "qoe": {"latency": 0.08}})
        result = subprocess.run([CLI, "plan", "toy.json", "home.json", "same.json", "--planner", "dora", "--top", "1", "--json"], cwd=self.path,
                                capture_output=True, text=True, timeout=60, check=True)
        plan = json.loads(result.stdout)["plans"][0]
        self.assertEqual((row["latency"], len(plan["stages"])), (plan["predicted"]["latency"], row["stages"]))
        self.assertAlmostEqual(row["energy"], sum(plan["predicted"]["energy"].values()))

    def test_a_row_that_the_budget_cut_short_counts(self):
        self.write("sweep.json", {**SWEEP, "clusters": ["home.json"], "planners": ["dora"]})
        result = json.loads(self.run_sweep("--json", "--budget", "1").stdout)
        rows = [json.loads(line) for line in (self.path / "table.jsonl").read_text().splitlines()]
        self.assertIn("stopped", {r["status"] for r in rows})
        self.assertEqual(result["best"], rows)

    def test_the_best_planner_is_told_for_every_job(self):
        rows = [json.loads(line) for line in self.table("--quiet").splitlines()]
        document = json.loads(self.run_sweep("--json").stdout)
        self.assertEqual((document["cases"], document["computed"], document["dropped"]), (CASES, 0, 0))
        groups = [rows[i:i + 4] for i in range(0, CASES, 4)]
        feasible = [[r for r in g if r["status"] == "feasible"] for g in groups]
        best = [min(g, key=lambda r: r["score"]) for g in feasible if g]
        self.assertEqual(document["best"], best)
        text = self.run_sweep().stdout
        self.assertIn("0 computed now", text)
        self.assertIn("none: ", text)

    def test_what_was_cut_off_anywhere_is_done_again(self):
        whole = self.table()
        draw = random.Random(SEED)
        lines = whole.splitlines(keepends=True)
        for attempt in range(2):
            some = lines[:]
            draw.shuffle(some)
            cut = b"".join(some)[:draw.randrange(len(whole))]
            (self.path / "cut.jsonl").write_bytes(cut)
            result = self.run_sweep("--json", out="cut.jsonl")
            self.assertEqual(json.loads(result.stdout)["computed"], CASES - cut.count(b"\n"), f"seed {SEED}, attempt {attempt}")
            self.assertEqual((self.path / "cut.jsonl").read_bytes(), whole, f"seed {SEED}, attempt {attempt}")

    def test_killed_again_and_again_it_goes_on(self):
        whole = self.table(sweep="slow.json")
        path = self.path / "killed.jsonl"
        for rows in (1, 3):
            p = subprocess.Popen([CLI, "sweep", "slow.json", "--out", path], cwd=self.path, stdout=subprocess.DEVNULL)
            wait_for_rows(path, rows)
            p.kill()
            p.wait()
            done = path.read_bytes()
            self.assertLess(done.count(b"\n"), SLOW_CASES)
            path.write_bytes(done + whole[:20])  # the next row, partly written
        for line in done.splitlines()[:-1]:
            self.assertIn(line, whole.splitlines())
        self.assertEqual(self.table(out="killed.jsonl", sweep="slow.json"), whole)

    def test_a_second_sweep_keeps_off_a_table_that_is_being_written(self):
        whole = self.table(sweep="slow.json")
        path = self.path / "shared.jsonl"
        p = subprocess.Popen([CLI, "sweep", "slow.json", "--out", path], cwd=self.path, stdout=subprocess.DEVNULL)
        self.addCleanup(p.kill)
        wait_for_rows(path, 1)
        p.send_signal(signal.SIGSTOP)
        done = path.read_bytes()
        for sweep in ("slow.json", "sweep.json"):
            self.assertEqual(self.refused(self.run_sweep(out="shared.jsonl", sweep=sweep)), "hetplan: shared.jsonl: another sweep is writing it\n")
        self.assertEqual(path.read_bytes(), done)
        p.send_signal(signal.SIGCONT)
        self.assertEqual(p.wait(timeout=60), 0)
        self.assertEqual(path.read_bytes(), whole)

    def test_a_planner_that_fails_ends_its_case_and_no_other(self):
        self.check_planner_that_fails((CLI, "sweep"))

    def test_the_table_for_spreadsheets_does_not_take_the_place_of_the_table(self):
        whole = self.table()
        for name in ("table.jsonl", "./table.jsonl"):
            self.assertIn("--csv: expected a file of its own", self.refused(self.run_sweep("--csv", name)))
        self.assertIn("nowhere/t.csv: cannot write", self.refused(self.run_sweep("--csv", "nowhere/t.csv")))
        self.assertEqual((self.path / "table.jsonl").read_bytes(), whole)

    def test_another_input_makes_another_case(self):
        first = self.table()
        self.write("toy.json", {**MODEL, "layers": [{**MODEL["layers"][0], "weight": "5 MB"}, *MODEL["layers"][1:]]})
        document = json.loads(self.run_sweep("--json").stdout)
        self.assertEqual((document["computed"], document["dropped"]), (CASES, CASES))
        self.write("toy.json", MODEL)
        self.write("sweep.json", {**SWEEP, "planners": SWEEP["planners"][:2]})
        self.assertEqual(json.loads(self.run_sweep("--json", "--seed", "2").stdout)["computed"], CASES // 2)
        self.assertEqual(json.loads(self.run_sweep("--json").stdout)["computed"], CASES // 2)
        half = (self.path / "table.jsonl").read_bytes()
        self.write("sweep.json", SWEEP)
        self.assertEqual(json.loads(self.run_sweep("--json").stdout)["computed"], CASES // 2)
        self.assertEqual((self.path / "table.jsonl").read_bytes(), first)
        self.assertTrue(set(half.splitlines()) < set(first.splitlines()))

    def test_bad_input_ends_in_one_line_and_no_table(self):
        for change, said in [
            ({"planners": ["dra"]}, "sweep.json: /planners/0: expected the name of a planner, got \"dra\"; did you mean \"dora\"?"),
            ({"models": ["nothing.json"]}, "sweep.json: /models/0: nothing.json: expected a model file or one of "),
            ({"clusters": ["home.json", "toy.json"]}, "sweep.json: /clusters/1: toy.json: /format: expected \"hetplan/cluster/1\""),
            ({"jobs": ["toy.json"]}, "sweep.json: /jobs/0: toy.json: /format: expected \"hetplan/job/1\""),
            ({"extra": 1}, "sweep.json: /extra: expected a known key"),
        ]:
            self.write("sweep.json", {**SWEEP, **change})
            self.assertIn(said, self.refused(self.run_sweep()))
            self.assertFalse((self.path / "table.jsonl").exists())

    def test_a_file_of_something_else_is_not_written_over(self):
        for text in ("my notes", "my notes\n", "{\"key\":1}\n", "{\"key\":\"0\"\n", "\n", json.dumps(MODEL) + "\n"):
            (self.path / "notes").write_text(text)
            self.assertIn("expected a row of a sweep's table", self.refused(self.run_sweep(out="notes")))
            self.assertEqual((self.path / "notes").read_text(), text)
        self.assertIn("cannot write", self.refused(self.run_sweep(out="nowhere/table.jsonl")))
        self.assertIn("expected a file", self.refused(self.run_sweep(out=".")))

    def test_somebody_elses_lines_are_not_dropped_and_forged_or_damaged_rows_not_believed(self):
        whole = self.table()
        rows = whole.decode().splitlines(keepends=True)
        best = next(i for i, r in enumerate(rows) if '"feasible"' in r and '"stages":1,' in r)
        number = json.loads(rows[best])["latency"]
        key = json.loads(rows[best])["key"]
        for place, text in [
            (0, json.dumps({"key": "abc", "value": 1}) + "\n"), (0, '{"key":"abc","value":1}\n'), (0, '{"key":"%s","model":"m"}\n' % key),
            (5, rows[5][:40] + "\x00" + rows[5][41:]), (5, rows[5][:-20] + "\n"), (5, "\n"), (5, rows[5].replace('"model"', '"modell"')),
            (best, rows[best].replace(str(number), str(number / 2))), (best, rows[best].replace('"stages":1,', "")),
            (best, rows[best].replace('"feasible"', '"infeasible"')), (best, rows[best].replace(',"check":"', ',"check":"0')),
            (len(rows), '{"key":"abc","value":1}'), (len(rows), '{"key":"%s","model":"m"}' % key), (len(rows), '{"key":"0","va'),
        ]:
            changed = "".join(rows[:place] + [text] + rows[place + (text.endswith("\n") and place > 0):])
            self.assertNotEqual(changed.encode(), whole)
            (self.path / "table.jsonl").write_text(changed)
            said = self.refused(self.run_sweep())
            where = "the last line" if place == len(rows) else f"line {place + 1}"
            self.assertRegex(said, f"^hetplan: table.jsonl: {where}: expected a row", text)
            self.assertEqual((self.path / "table.jsonl").read_bytes(), changed.encode())
        # Without its line, only that case is run again, as the message says.
        (self.path / "table.jsonl").write_text("".join(rows[:best] + rows[best + 1:]))
        self.assertEqual(json.loads(self.run_sweep("--json").stdout)["computed"], 1)
        self.assertEqual((self.path / "table.jsonl").read_bytes(), whole)


def wait_for_rows(path, rows):
    end = time.monotonic() + 30
    while not path.exists() or path.read_bytes().count(b"\n") < rows:
        assert time.monotonic() < end, f"no {rows} rows in {path}"
        time.sleep(0.001)


def wait_until_unlocked(path):
    end = time.monotonic() + 30
    with open(path, "rb") as f:
        while True:
            try:
                return fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                assert time.monotonic() < end, f"{path} stays locked"
                time.sleep(0.01)


@unittest.skipIf(MPIRUN is None or not MPI.exists(), "no mpirun or no hetplan_sweep_mpi")
class ranks_of_mpi(sweep_test):
    def test_any_number_of_ranks_writes_the_same_bytes(self):
        whole = self.table()
        for n in (1, 2, 3):
            self.assertEqual(self.table(program=ranks(n), out=f"ranks{n}.jsonl"), whole, n)

    def test_killed_in_the_middle_one_process_goes_on_where_ranks_began(self):
        whole = self.table(sweep="slow.json")
        path = self.path / "killed.jsonl"
        p = subprocess.Popen([*ranks(3), "slow.json", "--out", path], cwd=self.path, env=ENVIRONMENT, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
        wait_for_rows(path, 2)
        ranks_running = pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split()
        p.kill()
        for pid in ranks_running:  # otherwise they write for another second
            os.kill(int(pid), signal.SIGKILL)
        p.wait()
        wait_until_unlocked(path)
        self.assertEqual(len(ranks_running), 3)
        self.assertLess(path.read_bytes().count(b"\n"), SLOW_CASES)
        self.assertEqual(self.table(out="killed.jsonl", sweep="slow.json"), whole)

    def test_ranks_write_the_table_of_serving_that_one_process_writes(self):
        whole = self.table(sweep="serving.json")
        self.assertEqual(whole.count(b"\n"), SERVING_CASES)
        self.assertEqual(self.table(program=ranks(3), out="ranks.jsonl", sweep="serving.json"), whole)

    def test_a_rank_that_finds_other_files_ends_the_sweep(self):
        other = self.path / "other"
        other.mkdir()
        for f in self.path.glob("*.json"):
            shutil.copy(f, other)
        (other / "toy.json").write_text(json.dumps({**MODEL, "name": "another"}))
        command = [MPI, "sweep.json", "--out", self.path / "table.jsonl"]
        program = [*ranks(1)[:-1], "--wdir", self.path, *command, ":", "-n", "1", "--wdir", other, *command]
        result = subprocess.run(program, cwd=self.path, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
        self.assertEqual(self.refused(result), "hetplan_sweep_mpi: rank 1: sweep.json: this rank finds other files than rank 0\n")

    def test_a_planner_that_fails_on_a_rank_ends_its_case_and_no_other(self):
        self.check_planner_that_fails(ranks(3))

    def test_bad_input_ends_in_one_line(self):
        self.write("sweep.json", {**SWEEP, "planners": ["dra"]})
        for n in (1, 3):
            self.assertIn("hetplan_sweep_mpi: sweep.json: /planners/0: expected", self.refused(self.run_sweep(program=ranks(n))))
            result = subprocess.run([*ranks(n), "sweep.json"], cwd=self.path, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
            self.assertIn("--out", self.refused(result))


if __name__ == "__main__":
    if MPIRUN is None or not MPI.exists():
        # One process is tested in any case; without ranks the test counts as skipped.
        print("skipped: no mpirun, or hetplan_sweep_mpi is not built; only `hetplan sweep` is tested", file=sys.stderr)
        ok = unittest.main(exit=False).result.wasSuccessful()
        sys.exit(SKIPPED if ok else 1)
    unittest.main()
