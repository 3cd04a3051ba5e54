# SPDX-License-Identifier: BSL-1.0
"""What a file or an option asks is used, refused, or warned about in one line: nothing is ignored in silence."""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["HETPLAN_SOURCE_DIR"], "tests", "support"))
import toy_problem  # noqa: E402

CLI = os.environ["HETPLAN_CLI"]
MODEL = toy_problem.model(1, 1, 1)
CLUSTER = toy_problem.cluster(d0=2, d1=1)
JOB = {"format": "hetplan/job/1", "mode": "training", "batch": 4}


class asked(toy_problem.folder_test):
    def setUp(self):
        super().setUp()
        self.write("m.json", MODEL)
        self.write("c.json", CLUSTER)
        self.write("j.json", JOB)
        self.write("t.json", {"format": "hetplan/timeline/1", "duration": "2 s"})
        self.plan = ("plan", "m.json", "c.json", "j.json", "--planner", "on-device")
        self.adapt = ("adapt", "m.json", "c.json", "j.json", "t.json", "--policies", "static")

    def run_it(self, *arguments):
        return subprocess.run([CLI, *map(str, arguments)], cwd=self.path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    def refused(self, *arguments):
        result = self.run_it(*arguments)
        self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1), (arguments, result))
        return result.stderr

    def warned(self, *arguments):
        """The warnings of a command that is done."""
        result = self.run_it(*arguments)
        self.assertEqual(result.returncode, 0, (arguments, result.stderr))
        lines = result.stderr.splitlines()
        self.assertEqual([x for x in lines if not x.startswith("hetplan: warning: ")], [])
        quiet = self.run_it(*arguments, "--quiet", "--json")
        self.assertEqual(quiet.stderr, result.stderr)  # a warning is no progress
        return [x.removeprefix("hetplan: warning: ") for x in lines]

    def test_options_of_built_in_models_are_for_those_that_take_them(self):
        self.assertEqual(self.refused(*self.plan, "--tokens", "7"), "hetplan: --tokens: only a built-in language model takes it, not m.json\n")
        self.assertIn("--input: only a built-in vision model takes it, not m.json", self.refused(*self.plan, "--input", "3,64,64"))
        self.assertIn("--dtype: only a built-in model takes it, not m.json", self.refused(*self.plan, "--dtype", "bf16"))
        self.assertIn("not resnet50", self.refused("show", "resnet50", "--tokens", "7"))
        self.assertIn("not gpt2", self.refused("show", "gpt2", "--input", "3,64,64"))
        for command in (("show", "smart-home-1"), ("show", "c.json"), ("list",), ("init", "new")):
            for option in (("--tokens", "7"), ("--input", "3,64,64"), ("--dtype", "bf16")):
                self.assertIn(option[0] + ": only a built-in", self.refused(*command, *option))
        self.assertFalse((self.path / "new").exists())
        for command in (("show", "qwen-omni", "--tokens", "64", "--dtype", "fp32"), ("show", "resnet50", "--input", "3,64,64", "--dtype", "bf16")):
            self.assertEqual(self.warned(*command), [])

    def test_a_sweep_gives_them_to_the_models_that_take_them(self):
        sweep = {"format": "hetplan/sweep/1", "models": ["bert-small", "m.json"], "clusters": ["smart-home-1"], "planners": ["on-device"],
                 "jobs": ["j.json"], "tokens": 32, "dtype": "bf16"}
        self.write("s.json", sweep)
        self.assertEqual(self.warned("sweep", "s.json", "--out", "rows"), [])
        self.write("s.json", {**sweep, "models": ["m.json"]})
        self.assertIn("--tokens: only a built-in language model takes it, not any of s.json", self.refused("sweep", "s.json", "--out", "rows2"))

    def test_generation_takes_models_of_one_token_per_sample(self):
        def said(name, tokens):
            return f'model "{name}": tokens_per_sample = {tokens}; expected 1 in mode generation, '

        job = {**JOB, "mode": "generation", "tokens": 4}
        self.write("g.json", job)
        self.write("m8.json", {**MODEL, "tokens_per_sample": 8})
        for model, message, right in (("m8.json", said("toy", 8), ("m.json",)),
                                      ("bert-small", said("bert-small", 512), ("bert-small", "--tokens", "1"))):
            plan = (*right, "c.json", "g.json", "--planner", "on-device", "--out", "p.json")
            for one in (("plan", model, "c.json", "g.json", "--out", "no.json"), ("compare", model, "c.json", "g.json"),
                        ("adapt", model, "c.json", "g.json", "t.json", "--policies", "static")):
                told = self.refused(*one)
                self.assertTrue(told.startswith("hetplan: " + message), told)
                self.assertIn("--tokens 1", told)
            self.assertFalse((self.path / "no.json").exists())
            self.assertEqual(self.warned("plan", *plan), [])
            for one in (("simulate", model, "c.json", "p.json"), ("export", model, "c.json", "p.json", "--to", "tasks"),
                        ("replay", model, "c.json", "p.json", "--lost", "d1")):
                told = self.refused(*one)
                self.assertTrue(told.startswith("hetplan: p.json: /mode: " + message), told)
                self.assertEqual(self.run_it(*one[:1], *right, *one[2:]).returncode, 0, one)
            sweep = {"format": "hetplan/sweep/1", "models": [model], "clusters": ["c.json"], "planners": ["on-device"],
                     "jobs": ["j.json", "g.json"]}
            self.write("s.json", sweep)
            told = self.refused("sweep", "s.json", "--out", "rows")  # before the first case, which is training, is run
            self.assertTrue(told.startswith("hetplan: s.json: /jobs/1: " + message), told)
            self.assertFalse((self.path / "rows").exists())

    def test_an_empty_value_is_not_no_value(self):
        for command in [(*self.plan, "--out", ""), (*self.plan, "--svg="), ("plan", "m.json", "c.json", ""), (*self.plan[:-1], ""),
                        ("compare", "m.json", "c.json", "--planners", ""), ("sweep", "s.json", "--out", ""), ("list", ""), ("init", "")]:
            self.refused(*command)
        self.assertRegex(self.refused(*self.plan, "--out", ""), "^hetplan: --out: .*expected a value, got nothing")
        self.assertIn("--planners: ", self.refused("compare", "m.json", "c.json", "--planners", ""))
        self.assertIn("--planners: expected one of", self.refused("compare", "m.json", "c.json", "--planners", "gpipe,magic"))

    def test_a_name_stands_once_in_a_list(self):
        self.assertIn('--planners: expected every name once, got "gpipe" again', self.refused("compare", "m.json", "c.json", "--planners", "gpipe,gpipe"))
        self.assertIn('--policies: expected every name once, got "static" again', self.refused(*self.adapt[:-1], "static,static"))
        self.run_it(*self.plan, "--out", "p.json")
        self.assertIn('--lost: expected every name once, got "d1" again',
                      self.refused("replay", "m.json", "c.json", "p.json", "--lost", "d1", "--lost", "d1"))

    def test_a_row_stands_once_and_an_option_is_given_once(self):
        twice = self.refused(*self.plan[:-1], "dora", "--rows", "light,joined,light")
        self.assertIn('--rows: expected every name once, got "light" again', twice)
        self.assertIn("--objective: expected one value, got 2", self.refused(*self.plan, "--objective", "energy", "--objective", "qoe"))
        self.assertIn("--input: expected 3 values, got 4", self.refused("plan", "resnet50", "smart-home-1", "--input", "3,64,64,1"))

    def test_models_of_doras_search_by_name(self):
        dora = (*self.plan[:-1], "dora")
        names = json.loads(self.run_it("list", "--json").stdout)
        options = {"--rows": "rows", "--law": "laws", "--orders": "orders", "--transfers": "transfers"}
        for option, kind in options.items():
            self.assertGreaterEqual(len(names[kind]), 2)
            for name in names[kind]:
                self.assertIn(name, self.run_it("plan", "--help").stdout)
                for command in (dora, ("compare", "m.json", "c.json", "--planners", "gpipe,dora"), self.adapt):
                    self.assertEqual(self.warned(*command, option, name), [])
            first = names[kind][0]
            slip = first[:-1]
            self.assertIn(f'{option}: expected one of {", ".join(names[kind])}, got "{slip}"; did you mean "{first}"?',
                          self.refused(*dora, option, slip))
            self.write("s.json", {"format": "hetplan/sweep/1", "models": ["m.json"], "clusters": ["c.json"], "jobs": ["j.json"],
                                  "planners": ["gpipe", "on-device"]})
            for command, who in [(self.plan, 'planner "on-device" chooses no '), (("sweep", "s.json", "--out", "rows"),
                                                                                      "planners gpipe, on-device choose no "),
                                 (("compare", "m.json", "c.json", "--planners", "gpipe"), 'planner "gpipe" chooses no ')]:
                error = self.refused(*command, option, first)
                self.assertTrue(error.startswith(f"hetplan: {option}: {who}"), error)
                self.assertTrue(error.endswith("; dora and dora-with-baselines do\n"), error)
            phase = "1" if option == "--transfers" else "2"
            self.assertIn(f"{option}: phase {phase} of dora chooses no ", self.refused(*dora, "--phase", phase, option, first))
            self.assertEqual(self.warned(*dora, "--phase", "21".replace(phase, ""), option, first), [])
        self.assertIn("--seed: --transfers list draws nothing; not used", self.warned(*dora, "--transfers", "list", "--seed", "3"))

    def test_a_model_by_name_is_the_one_that_searches(self):
        def latency(*options):
            plans = json.loads(self.run_it("plan", "qwen3-1.7b", "smart-home-1", "--json", *options).stdout)["plans"]
            return plans[0]["predicted"]["latency"]

        usual = latency()
        for option, name in [("--law", "pipeline"), ("--orders", "affordable"), ("--transfers", "searched")]:
            self.assertEqual(latency(option, name), usual)
        for option, name in [("--rows", "joined"), ("--rows", "serial"), ("--law", "largest-step")]:
            self.assertNotEqual(latency(option, name), usual)
        self.assertNotEqual(latency("--phase", "2", "--transfers", "smallest"), latency("--phase", "2"))

    def test_a_sweep_does_a_case_again_for_another_model_of_dora_and_none_of_the_others(self):
        self.write("s.json", {"format": "hetplan/sweep/1", "models": ["m.json"], "clusters": ["c.json"], "jobs": ["j.json"],
                              "planners": ["gpipe", "dora"]})

        def computed(*options):
            return json.loads(self.run_it("sweep", "s.json", "--out", "rows", "--json", *options).stdout)["computed"]

        self.assertEqual([computed(), computed(), computed("--rows", "light"), computed("--rows", "light"),
                          computed("--law", "largest-step")],
                         [2, 0, 1, 0, 1])

    def test_options_of_searches_are_for_commands_that_search(self):
        self.run_it(*self.plan, "--out", "p.json")
        judge = ("m.json", "c.json", "p.json")
        for command in [("simulate", *judge), ("export", *judge, "--to", "tasks"), ("replay", *judge, "--lost", "d1"), ("show", "m.json"),
                        ("list",), ("import", "pipedream", "g.txt"), ("init", "new")]:
            for option in ("--seed", "--threads", "--budget"):
                self.assertIn(option, self.refused(*command, f"{option}=3"), command)
                self.assertNotIn(option, self.run_it(*command[:1], "--help").stdout, command)
        self.assertFalse((self.path / "new").exists())
        for command in ("plan", "compare", "sweep", "adapt"):
            for option in ("--seed", "--threads", "--budget"):
                self.assertIn(option, self.run_it(command, "--help").stdout, command)
        self.assertEqual(self.warned("compare", "m.json", "c.json", "j.json", "--seed", "3", "--threads", "2", "--budget", "9999"), [])
        self.assertEqual(self.warned(*self.adapt, "--seed", "3", "--threads", "2", "--budget", "9999"), [])

    def test_a_seed_and_threads_that_no_planner_takes(self):
        seed = "--seed: only dora's search for schedules of transfers takes it; not used"
        unused = [seed, "--threads: only dora's searches take it; not used"]
        options = ("--seed", "3", "--threads", "2")
        self.write("s.json", {"format": "hetplan/sweep/1", "models": ["m.json"], "clusters": ["c.json"], "jobs": ["j.json"],
                              "planners": ["gpipe"]})
        dora = (*self.plan[:-1], "dora")
        for command, lines in [(self.plan, unused), ((*dora, "--phase", "1"), [seed]), (dora, []), ((*dora, "--phase", "2"), []),
                               (("compare", "m.json", "c.json", "--planners", "gpipe,on-device"), unused),
                               (("compare", "m.json", "c.json", "--planners", "gpipe,dora"), []),
                               (("sweep", "s.json", "--out", "rows"), unused)]:
            self.assertEqual(sorted(x for x in self.warned(*command, *options) if x in unused), lines, command)
        self.assertEqual(self.warned(*self.plan, "--budget", "9999"), [])

    def test_another_seed_changes_the_order_of_transfers_and_nothing_else(self):
        def split(seed):
            plans = json.loads(self.run_it("--json", "plan", "qwen3-1.7b", "smart-home-1", "--seed", seed).stdout)["plans"]
            return [{**p, "schedule": {**p["schedule"], "flows": []}, "predicted": None} for p in plans], plans[0]["predicted"]["latency"]

        (first, latency), (other, other_latency) = split("1"), split("2")
        self.assertEqual(first[0], other[0])
        self.assertAlmostEqual(latency, other_latency, delta=1e-9 * latency)

    def test_threads_that_no_machine_has_are_refused(self):
        self.assertIn("--threads", self.refused(*self.plan, "--threads", "100000"))
        self.assertIn("--threads", self.refused(*self.plan, "--threads", "0"))

    def test_a_command_that_is_none_is_named(self):
        self.assertRegex(self.refused("pln"), r'^hetplan: expected one of plan, .*, got "pln"; did you mean "plan"\?')
        self.assertRegex(self.refused("import", "pipdream"), r'expected one of pipedream, .*, got "pipdream"; did you mean "pipedream"\?')
        self.assertIn("--planner: expected one of", self.refused(*self.plan[:-1], "dra"))
        self.assertIn('did you mean "dora"?', self.refused(*self.plan[:-1], "dra"))

    def test_a_built_in_name_that_is_none_is_named(self):
        self.assertIn('there is neither; did you mean "resnet50"?', self.refused("plan", "resnet5O", "smart-home-1"))
        self.assertIn('there is neither; did you mean "smart-home-1"?', self.refused("plan", "resnet50", "smarthome-1"))

    def test_fields_of_a_job_that_nobody_looks_at(self):
        def plan(**fields):
            self.write("j.json", {**JOB, **fields})
            return self.warned(*self.plan)

        self.assertEqual(plan(), [])
        self.assertEqual(plan(optimizer_factor=2, schedule="gpipe", objective="energy", microbatch_sizes=[1, 2]), [])
        self.assertEqual(plan(tokens=16), ["j.json: /tokens: only generation makes tokens; not used"])
        self.assertEqual(plan(mode="inference", optimizer_factor=2), ["j.json: /optimizer_factor: only training has an optimizer; not used"])
        self.assertEqual(plan(mode="generation", tokens=4, schedule="1f1b"), ["j.json: /schedule: only training has a backward to schedule; not used"])
        self.assertEqual(plan(microbatch_sizes=[2, 3]), ["j.json: /microbatch_sizes/1: 3 does not divide the batch 4; not used"])
        self.assertEqual(plan(qoe={"latency": 1, "lambda": 5}), [])
        self.assertEqual(plan(qoe={"lambda": 5}), ['j.json: /qoe/lambda: objective "latency" has no latency that could be missed; not used'])
        self.assertEqual(plan(objective="latency", qoe={"latency": 1}),
                         ['j.json: /qoe/latency: objective "latency" does not ask for a latency; not used'])
        for field in ("deadline", "iterations"):
            self.assertEqual(plan(qoe={field: 9}), [f"j.json: /qoe/{field}: the end of a job matters to `hetplan adapt` alone; not used"])
        # The command line's objective takes the place of the job's.
        self.write("j.json", {**JOB, "qoe": {"latency": 1}})
        self.assertEqual(self.warned(*self.plan, "--objective", "energy"),
                         ['j.json: /qoe/latency: objective "energy" does not ask for a latency; not used'])

    def test_fields_of_a_job_over_time(self):
        def lives(events=(), **fields):
            self.write("j.json", {**JOB, **fields})
            self.write("t.json", {"format": "hetplan/timeline/1", "duration": "2 s", "events": list(events)})
            return self.warned(*self.adapt)

        self.assertEqual(lives(), [])
        self.assertEqual(lives(qoe={"deadline": 9, "iterations": 3}), [])
        self.assertEqual(lives(qoe={"iterations": 3}), [])
        self.assertEqual(lives(objective="latency", qoe={"latency": 3}), [])  # counts as kept or not
        self.assertEqual(lives(qoe={"deadline": 9}), ["j.json: /qoe/deadline: without qoe.iterations a job has no end; not used"])
        self.assertEqual(lives([{"at": 1, "qoe": {"deadline": 9}}]),
                         ["t.json: a deadline is asked for, and without qoe.iterations the job has no end; not used"])
        self.assertEqual(lives(objective="energy", qoe={"deadline": 9, "iterations": 3}),
                         ["j.json: /objective: a job with a deadline is to end in time, then with the least energy; not used"])
        self.assertEqual(lives([{"at": 1, "qoe": {"latency": 1}}], qoe={"lambda": 5}), [])
        self.assertEqual(len(lives(qoe={"lambda": 5})), 1)

    def test_jobs_of_a_sweep(self):
        self.write("j.json", {**JOB, "tokens": 3})
        sweep = {"format": "hetplan/sweep/1", "models": ["m.json"], "clusters": ["c.json"], "planners": ["on-device"],
                 "jobs": ["j.json", {"name": "x", "mode": "inference", "batch": 4, "optimizer_factor": 1, "objective": "energy"}], "latencies": [1]}
        self.write("s.json", sweep)
        self.assertEqual(self.warned("sweep", "s.json", "--out", "rows"),
                         [f"{self.path_of('j.json')}: /tokens: only generation makes tokens; not used",
                          "s.json: /jobs/1/optimizer_factor: only training has an optimizer; not used",
                          's.json: /latencies: the objective of job "x", "energy", does not ask for a latency; not used'])

    @staticmethod
    def path_of(name):
        return name

    def test_a_plan_for_something_else_and_one_that_predicts_what_is_not_so(self):
        self.run_it(*self.plan, "--out", "p.json")
        judge = ("simulate", "m.json", "c.json", "p.json")
        self.assertEqual(self.warned(*judge), [])
        plan = json.loads((self.path / "p.json").read_text())
        self.write("p.json", {**plan, "model": "another", "cluster": "elsewhere"})
        self.assertEqual(self.warned(*judge), ['p.json: /model: the plan was made for "another" and is used for "toy"',
                                               'p.json: /cluster: the plan was made for "elsewhere" and is used for "home"'])
        self.assertEqual(len(self.warned("replay", "m.json", "c.json", "p.json", "--lost", "d1")), 2)
        self.assertEqual(len(self.warned("export", "m.json", "c.json", "p.json", "--to", "tasks")), 2)
        for field, value in (("latency", 1e-3), ("energy", {"d0": 1e-3}), ("peak_memory", {"d0": 5}), ("bound", 1e-9)):
            self.write("p.json", {**plan, "predicted": {**plan["predicted"], field: value}})
            for command in (judge, ("export", "m.json", "c.json", "p.json", "--to", "plan", "--out", "q.json")):
                warned = self.warned(*command)
                self.assertEqual(len(warned), 1, warned)
                self.assertRegex(warned[0], rf"^p.json: /predicted/{field}.*: .* is predicted and .* simulated; the simulated numbers count$")
        self.write("p.json", {**plan, "predicted": {"latency": plan["predicted"]["latency"]}})
        self.assertEqual(self.warned(*judge), [])
        self.assertEqual(self.warned(*judge, "--network", "exclusive"), [])

    def test_a_profile_for_a_kind_that_is_not_there(self):
        def with_profiles(*kinds):
            times = {"batch": [1, 4], "forward": [0.01, 0.03], "backward": [0.02, 0.06]}
            self.write("m.json", {**MODEL, "layers": [{**layer, "profile": {k: times for k in kinds}} for layer in MODEL["layers"]]})
            return self.warned(*self.plan)

        self.assertEqual(with_profiles("phone"), [])
        self.assertEqual(with_profiles("phone", "laptop"), [])  # every device is measured
        self.assertEqual(with_profiles("phnoe"), [
            'model "toy": layer "l0" has a profile for kind "phnoe", which no device of cluster "home" is, and none for kind "phone" of "d0", '
            'which is timed by FLOP; did you mean "phone"?'])

    def test_what_is_built_in_and_written_by_init_has_no_warnings(self):
        self.run_it("init", "start")
        files = [f"start/{name}.json" for name in ("model", "cluster", "job", "timeline")]
        self.assertEqual(self.warned("plan", *files[:3], "--planner", "pipeline"), [])
        self.assertEqual(self.warned("adapt", *files, "--policies", "static"), [])
        self.assertEqual(self.warned("plan", "bert-small", "smart-home-1", "--planner", "pipeline"), [])


if __name__ == "__main__":
    unittest.main()
