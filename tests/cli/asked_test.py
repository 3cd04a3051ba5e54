# SPDX-License-Identifier: BSL-1.0
"""What a file or an option asks is used, refused, or warned about in one line: nothing is ignored in silence."""

import json
import unittest

import toy_problem

MODEL = toy_problem.model(1, 1, 1)
CLUSTER = toy_problem.cluster(d0=2, d1=1)
JOB = {"format": "hetplan/job/1", "mode": "training", "batch": 4}


@toy_problem.unsanitized
class asked(toy_problem.folder_test):
    def setUp(self):
        super().setUp()
        self.write("m.json", MODEL)
        self.write("c.json", CLUSTER)
        self.write("j.json", JOB)
        self.write("t.json", {"format": "hetplan/timeline/1", "duration": "2 s"})
        self.plan = ("plan", "m.json", "c.json", "j.json", "--planner", "on-device")
        self.adapt = ("adapt", "m.json", "c.json", "j.json", "t.json", "--policies", "static")

    def warned(self, *arguments):
        """The warnings of a command that is done."""
        result = self.run_it(*arguments)
        self.assertEqual(result.returncode, 0, (arguments, result.stderr))
        lines = result.stderr.splitlines()
        self.assertEqual([x for x in lines if not x.startswith("hetplan: warning: ")], [])
        quiet = self.run_it(*arguments, "--quiet", "--json")
        self.assertEqual(quiet.stderr, result.stderr)  # warnings are printed in spite of --quiet
        return [x.removeprefix("hetplan: warning: ") for x in lines]

    def test_options_of_built_in_models_are_for_those_that_take_them(self):
        self.assertEqual(self.refused(*self.plan, "--tokens", "7"), "hetplan: --tokens: only a built-in language model takes it, not m.json\n")
        self.assertIn("--input: only a built-in vision model takes it, not m.json", self.refused(*self.plan, "--input", "3,64,64"))
        self.assertIn("--dtype: only a built-in model takes it, not m.json", self.refused(*self.plan, "--dtype", "bf16"))
        self.assertIn("--weights: only a built-in language model takes it, not m.json", self.refused(*self.plan, "--weights", "q4_k_m"))
        self.assertIn("expected one of f16, q8_0", self.refused("show", "gpt2", "--weights", "q4"))
        self.assertIn("not resnet50", self.refused("show", "resnet50", "--weights", "q4_0"))
        self.assertIn("not resnet50", self.refused("show", "resnet50", "--tokens", "7"))
        self.assertIn("not gpt2", self.refused("show", "gpt2", "--input", "3,64,64"))
        for command in (("show", "smart-home-1"), ("show", "c.json"), ("list",), ("init", "new")):
            for option in (("--tokens", "7"), ("--input", "3,64,64"), ("--dtype", "bf16"), ("--weights", "q4_0")):
                self.assertIn(option[0] + ": only a built-in", self.refused(*command, *option))
        self.assertFalse((self.path / "new").exists())
        for command in (("show", "qwen-omni", "--tokens", "64", "--dtype", "fp32"), ("show", "gpt2", "--weights", "q4_0"),
                        ("show", "resnet50", "--input", "3,64,64", "--dtype", "bf16")):
            self.assertEqual(self.warned(*command), [])

    def test_a_sweep_gives_them_to_the_models_that_take_them(self):
        sweep = {"format": "hetplan/sweep/1", "models": ["bert-small", "m.json"], "clusters": ["smart-home-1"], "planners": ["on-device"],
                 "jobs": ["j.json"], "tokens": 32, "dtype": "bf16"}
        self.write("s.json", sweep)
        self.assertEqual(self.warned("sweep", "s.json", "--out", "rows"), [])
        self.write("s.json", {**sweep, "models": ["m.json"]})
        # The message names the field as the user wrote it.
        self.assertEqual("hetplan: s.json: /tokens: only a built-in language model takes it, and the sweep has none\n",
                         self.refused("sweep", "s.json", "--out", "rows2"))
        del sweep["tokens"]
        self.write("s.json", {**sweep, "models": ["m.json"]})
        self.assertEqual("hetplan: s.json: /dtype: only a built-in model takes it, and the sweep has none\n",
                         self.refused("sweep", "s.json", "--out", "rows2"))
        del sweep["dtype"]
        self.write("s.json", {**sweep, "models": ["m.json"], "weights": "q8_0"})
        self.assertEqual("hetplan: s.json: /weights: only a built-in language model takes it, and the sweep has none\n",
                         self.refused("sweep", "s.json", "--out", "rows2"))
        self.write("s.json", {**sweep, "models": ["m.json"]})
        for option, value, whose in (("--tokens", "3", "language "), ("--dtype", "bf16", ""), ("--weights", "q8_0", "language ")):
            self.assertEqual(f"hetplan: {option}: only a built-in {whose}model takes it, not any of s.json\n",
                             self.refused("sweep", "s.json", "--out", "rows2", option, value))

    def test_prompts_in_chunks_need_tokens_that_see_only_what_came_before(self):
        message = 'model "toy": layer "l2" has attention "full"; expected prompt_chunk >= prompt (8), '
        self.write("g.json", {**JOB, "mode": "generation", "tokens": 4, "prompt_chunk": 4})
        self.write("causal.json", {**MODEL, "tokens_per_sample": 8})
        *others, last = MODEL["layers"]
        self.write("full.json", {**MODEL, "tokens_per_sample": 8, "layers": [*others, {**last, "attention": "full"}]})
        for one in (("plan", "full.json", "c.json", "g.json", "--out", "no.json"), ("compare", "full.json", "c.json", "g.json"),
                    ("adapt", "full.json", "c.json", "g.json", "t.json", "--policies", "static")):
            told = self.refused(*one)
            self.assertTrue(told.startswith("hetplan: " + message), told)
        self.assertFalse((self.path / "no.json").exists())
        self.assertEqual(self.warned("plan", "causal.json", "c.json", "g.json", "--planner", "on-device", "--out", "p.json"), [])
        for one in (("simulate", "full.json", "c.json", "p.json"), ("export", "full.json", "c.json", "p.json", "--to", "tasks"),
                    ("replay", "full.json", "c.json", "p.json", "--lost", "d1")):
            told = self.refused(*one)
            self.assertTrue(told.startswith("hetplan: p.json: /workload: " + message), told)
            self.assertEqual(self.run_it(one[0], "causal.json", *one[2:]).returncode, 0, one)
        self.write("s.json", {"format": "hetplan/sweep/1", "models": ["full.json"], "clusters": ["c.json"], "planners": ["on-device"],
                              "jobs": ["j.json", "g.json"]})
        told = self.refused("sweep", "s.json", "--out", "rows")  # before the first case, a training, is run
        self.assertTrue(told.startswith("hetplan: s.json: /jobs/1: " + message), told)
        self.assertFalse((self.path / "rows").exists())

    def test_an_empty_value_is_not_no_value(self):
        for command in [(*self.plan, "--out", ""), (*self.plan, "--svg="), ("plan", "m.json", "c.json", ""), (*self.plan[:-1], ""),
                        ("compare", "m.json", "c.json", "--planners", ""), ("sweep", "s.json", "--out", ""), ("list", ""), ("init", "")]:
            self.refused(*command)
        self.assertRegex(self.refused(*self.plan, "--out", ""), "^hetplan: --out: .*expected a value, got nothing")
        self.assertIn("--planners: ", self.refused("compare", "m.json", "c.json", "--planners", ""))
        self.assertIn("--planners: expected one of", self.refused("compare", "m.json", "c.json", "--planners", "gpipe,magic"))

    def test_an_empty_item_of_a_list_is_no_item(self):
        compare = ("compare", "m.json", "c.json", "--planners")
        for given in ("gpipe,,dora", ",gpipe", "gpipe,", ","):
            said = f'expected a value on both sides of each comma, got "{given}"'
            for command in ((*compare, given), (*compare[:-1], "--planners=" + given), (*compare, "gpipe", given), (*self.adapt[:-1], given),
                            (*self.plan[:-1], "dora", "--rows", given), ("--input", given, *self.plan),
                            ("replay", "m.json", "c.json", "p.json", "--lost", given), ("import", "onnx", "a.onnx", "--dim", given)):
                self.assertIn(said, self.refused(*command))
        self.assertEqual(self.warned(*compare, "gpipe,on-device"), [])
        self.write("m,,.json", MODEL)  # not a list
        self.assertEqual(self.warned("plan", "m,,.json", *self.plan[2:]), [])

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
                self.assertTrue(error.endswith("; dora does\n"), error)
            phase = "1" if option == "--transfers" else "2"
            self.assertIn(f"{option}: phase {phase} of dora chooses no ", self.refused(*dora, "--phase", phase, option, first))
            self.assertEqual(self.warned(*dora, "--phase", "21".replace(phase, ""), option, first), [])
        self.assertIn("--seed: --transfers list draws nothing; not used", self.warned(*dora, "--transfers", "list", "--seed", "3"))

    def test_a_model_by_name_is_the_one_that_searches(self):
        def latency(*options, where="edge-cluster"):
            plans = json.loads(self.run_it("plan", "qwen3-1.7b", where, "--json", *options).stdout)["plans"]
            return plans[0]["predicted"]["latency"]

        usual = latency()
        for option, name in [("--law", "pipeline"), ("--orders", "affordable"), ("--transfers", "searched")]:
            self.assertEqual(latency(option, name), usual)
        for option, name in [("--rows", "joined"), ("--rows", "serial"), ("--law", "largest-step")]:
            self.assertNotEqual(latency("--phase", "1", option, name), latency("--phase", "1"))
        home = "smart-home-2"
        self.assertNotEqual(latency("--phase", "2", "--transfers", "smallest", where=home), latency("--phase", "2", where=home))

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
                               (("compare", "m.json", "c.json", "--planners", "gpipe,on-device"), [seed]),
                               (("compare", "m.json", "c.json", "--planners", "gpipe,dora"), []),
                               (("sweep", "s.json", "--out", "rows"), unused)]:
            self.assertEqual(sorted(x for x in self.warned(*command, *options) if x in unused), lines, command)
        self.assertEqual(self.warned(*self.plan, "--budget", "9999"), [])

    def test_another_seed_changes_the_order_of_transfers_and_nothing_else(self):
        def split(seed):
            plans = json.loads(self.run_it("--json", "plan", "qwen3-1.7b", "smart-home-2", "--seed", seed).stdout)["plans"]
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
        self.assertEqual(plan(context=7), ["j.json: /context: only generation keeps a cache; not used"])
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
        # The command line's objective replaces the job's.
        self.write("j.json", {**JOB, "qoe": {"latency": 1}})
        self.assertEqual(self.warned(*self.plan, "--objective", "energy"),
                         ['j.json: /qoe/latency: objective "energy" does not ask for a latency; not used'])

    def test_wishes_that_no_planner_chooses_by(self):
        def plan(planner, *options, **fields):
            self.write("j.json", {**JOB, **fields})
            return self.warned("plan", "m.json", "c.json", "j.json", "--planner", planner, *options)

        for planner in ("on-device", "data-parallel", "pipeline", "dora"):
            self.assertEqual(plan(planner, "--top", "3", objective="energy", schedule="gpipe"), [])
        for planner in ("gpipe", "pipedream", "dapple", "hetpipe", "edgeshard", "alpa", "metis", "asteroid"):
            self.assertEqual(plan(planner, "--top", "1", objective="throughput"), [])
            expected = [f'objective "energy": planner "{planner}" looks for the least latency; not used',
                        f'schedule "gpipe": planner "{planner}" has one of its own; not used',
                        f'--top: planner "{planner}" makes one plan; not used']
            if planner == "gpipe":
                del expected[1]
            self.assertEqual(plan(planner, "--top", "3", objective="energy", schedule="gpipe"), expected)
        self.assertEqual(plan("moirai", "--objective", "energy", mode="inference"),
                         ['objective "energy": planner "moirai" looks for the least latency; not used'])
        self.write("j.json", {**JOB, "objective": "energy"})
        self.assertEqual(self.warned("compare", "m.json", "c.json", "j.json", "--planners", "alpa,dapple"),
                         ['objective "energy": planners alpa, dapple look for the least latency; not used'])
        self.assertEqual(self.warned("compare", "m.json", "c.json", "j.json", "--planners", "alpa,pipeline"), [])
        self.write("s.json", {"format": "hetplan/sweep/1", "models": ["m.json"], "clusters": ["c.json"], "jobs": ["j.json"], "planners": ["alpa"]})
        self.assertEqual(self.warned("sweep", "s.json", "--out", "rows"),
                         ['job "j.json": objective "energy": planner "alpa" looks for the least latency; not used'])

    def test_fields_of_a_job_over_time(self):
        def lives(events=(), **fields):
            self.write("j.json", {**JOB, **fields})
            self.write("t.json", {"format": "hetplan/timeline/1", "duration": "2 s", "events": list(events)})
            return self.warned(*self.adapt)

        self.assertEqual(lives(), [])
        self.assertEqual(lives(qoe={"deadline": 9, "iterations": 3}), [])
        self.assertEqual(lives(qoe={"iterations": 3}), [])
        self.assertEqual(lives(objective="latency", qoe={"latency": 3}), [])  # reported as kept or missed
        self.assertEqual(lives(qoe={"deadline": 9}), ["j.json: /qoe/deadline: without qoe.iterations a job has no end; not used"])
        self.assertEqual(lives([{"at": 1, "qoe": {"deadline": 9}}]),
                         ["t.json: /events/0/qoe/deadline: without qoe.iterations the job has no end; not used"])
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

    def test_bounds_and_gaps_that_do_not_hold(self):
        stages = [{"layers": ["l0"], "devices": [{"name": "d0", "samples": 1}]}, {"layers": ["l1", "l2"], "devices": [{"name": "d1", "samples": 1}]}]
        self.write("p.json", {"format": "hetplan/plan/1", "model": "toy", "cluster": "home", "mode": "training", "microbatch_size": 1,
                              "microbatches": 3, "stages": stages})
        plan = json.loads(self.run_it("export", "m.json", "c.json", "p.json", "--to", "plan").stdout)
        predicted = plan["predicted"]
        latency = predicted["latency"]

        def warned(predicted, **fields):
            self.write("p.json", {**plan, **fields, "predicted": predicted})
            simulated = self.warned("simulate", "m.json", "c.json", "p.json")
            self.assertEqual(self.warned("export", "m.json", "c.json", "p.json", "--to", "tasks"), simulated)
            return simulated

        def without(*keys):
            return {k: v for k, v in predicted.items() if k not in keys}

        self.assertEqual(warned(predicted), [])
        self.assertEqual(warned(without("gap", "schedule_gap")), [])
        self.assertEqual(warned(without("bound", "gap", "schedule_bound", "schedule_gap", "contention_bound")), [])
        for gap in ("gap", "schedule_gap"):
            self.assertGreater(predicted[gap], 0)
            lines = warned({**predicted, gap: 0})
            self.assertEqual(len(lines), 1, lines)
            self.assertTrue(lines[0].startswith(f"p.json: /predicted/{gap}: 0 is predicted and "), lines)
        unused = ["p.json: /predicted/gap: there is no bound that it could be to; not used",
                  "p.json: /predicted/schedule_gap: there is no schedule_bound that it could be to; not used"]
        self.assertEqual(warned({"latency": latency, "gap": 123, "schedule_gap": 123}), unused)
        self.assertEqual(warned({**predicted, "bound": 0, "schedule_bound": 0}), unused)
        self.assertEqual(warned({"latency": latency, "placement_bound": 123, "time_between_tokens": 7}),
                         ["p.json: /predicted/placement_bound: only the operators of an inference are placed; not used",
                          "p.json: /predicted/time_between_tokens: only generation makes tokens; not used"])
        # Inference has a placement bound, which a search may leave lower. It cannot exceed the latency.
        self.write("one.json", {"format": "hetplan/job/1", "mode": "inference", "batch": 1})
        self.run_it("plan", "m.json", "c.json", "one.json", "--planner", "heft", "--out", "p.json")
        plan = json.loads((self.path / "p.json").read_text())
        predicted = plan["predicted"]
        self.assertEqual(warned(predicted), [])
        self.assertEqual(warned({**predicted, "placement_bound": predicted["latency"] / 2}), [])
        lines = warned({**predicted, "placement_bound": 123})
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], "^p.json: /predicted/placement_bound: 123 is no bound of the simulated latency, [0-9.e-]+; the simulated numbers count$")

    def test_limits_that_a_plan_breaks_are_all_told(self):
        devices = [{**CLUSTER["devices"][0], "memory": "1 MB", "energy_budget": 1e-3}, {**CLUSTER["devices"][1], "max_busy": 1e-3}]
        stages = [{"layers": ["l0"], "devices": [{"name": "d0", "samples": 1}]}, {"layers": ["l1", "l2"], "devices": [{"name": "d1", "samples": 1}]}]
        self.write("p.json", {"format": "hetplan/plan/1", "model": "toy", "cluster": "home", "mode": "training", "microbatch_size": 1,
                              "microbatches": 3, "stages": stages})
        judge = ("m.json", "c.json", "p.json")
        self.assertNotIn("broken_limits", json.loads(self.run_it("--json", "simulate", *judge).stdout))
        self.assertEqual(self.warned("export", *judge, "--to", "tasks"), [])
        self.write("c.json", {**CLUSTER, "devices": devices})
        result = json.loads(self.run_it("--json", "simulate", *judge).stdout)
        self.assertEqual([(b["device"], b["kind"], b["may_use"]) for b in result["broken_limits"]],
                         [("d0", "memory", 1e6), ("d0", "energy", 1e-3), ("d1", "busy_share", 1e-3)])
        self.assertEqual([b["needs"] for b in result["broken_limits"]],
                         [result["peak_memory"]["d0"], result["energy"]["d0"], result["busy"]["d1"] / result["latency"]])
        told = [x.strip() for x in self.run_it("simulate", *judge).stdout.splitlines() if "breaks a limit" in x]
        self.assertEqual([" ".join(x.split()[:5]) for x in told],
                         ["breaks a limit: memory: d0", "breaks a limit: energy: d0", "breaks a limit: busy share:"])
        for to in ("tasks", "plan", "placement", "dot"):
            self.assertEqual(self.warned("export", *judge, "--to", to), ["p.json: " + x for x in told], to)

    def test_every_command_that_reads_a_plan_compares_what_it_predicts(self):
        self.run_it(*self.plan[:-1], "pipeline", "--out", "p.json")
        plan = json.loads((self.path / "p.json").read_text())
        commands = [("simulate", "m.json", "c.json", "p.json"), ("replay", "m.json", "c.json", "p.json", "--lost", "d1")]
        commands += [("export", "m.json", "c.json", "p.json", "--to", to) for to in ("tasks", "plan", "dot")]
        for command in commands:
            self.write("p.json", plan)
            self.assertEqual(self.warned(*command), [])
            for field, value in (("latency", 1e-3), ("schedule_bound", 1e-9), ("contention_bound", 1e-9), ("gap", 77), ("schedule_gap", 77)):
                self.assertIn(field, plan["predicted"])
                self.write("p.json", {**plan, "predicted": {**plan["predicted"], field: value}})
                warned = self.warned(*command)
                self.assertEqual(len(warned), 1, (command, warned))
                self.assertRegex(warned[0], rf"^p.json: /predicted/{field}: .* is predicted and .* simulated; the simulated numbers count$")

    def test_fields_of_a_plan_that_nobody_looks_at(self):
        def warned(*options, **fields):
            stages = [{"layers": ["l0"], "devices": [{"name": "d0", "samples": 1}]},
                      {"layers": ["l1", "l2"], "devices": [{"name": "d1", "samples": 1}]}]
            self.write("p.json", {"format": "hetplan/plan/1", "model": "toy", "cluster": "home", "mode": "training", "microbatch_size": 1,
                                  "microbatches": 3, "stages": stages, **fields})
            return self.warned("simulate", "m.json", "c.json", "p.json", *options)

        flow = {"from": "d0", "to": "d1", "microbatch": 0, "phase": "forward"}
        self.assertEqual(warned(), [])
        # Values that hold anyway are accepted without a warning.
        for mode in ("inference", "generation"):
            self.assertEqual(warned(mode=mode, schedule={"kind": "1f1b"}, sync="ring", copies="per_edge", transfers="overlap",
                                    workload={"optimizer_factor": 2, "context": 0, "tokens": 16}), [])
        self.assertEqual(warned(schedule={"kind": "gpipe"}), [])
        for network in ("priority", "exclusive", "per_link"):
            self.assertEqual(warned(network=network, flows=[{**flow, "priority": 5}]), [])
        for network in ("fair_share", "unlimited"):
            line = f'network "{network}" does not look at priorities'
            self.assertEqual(warned(network=network, flows=[{**flow, "priority": 5}]), [f"p.json: /flows/0/priority: {line}; not used"])
            flows = [flow, {**flow, "microbatch": 1, "priority": -1}, {**flow, "microbatch": 2, "priority": 2}]
            self.assertEqual(warned(network=network, schedule={"flows": flows}),
                             [f"p.json: /schedule/flows/1/priority: {line}, as those of 1 more flows; not used"])
        self.assertEqual(len(warned("--network", "fair_share", network="priority", flows=[{**flow, "priority": 5}])), 1)
        self.assertEqual(warned("--network", "priority", network="fair_share", flows=[{**flow, "priority": 5}]), [])
        self.assertEqual(warned(mode="inference", schedule={"kind": "gpipe"}),
                         ["p.json: /schedule/kind: outside training every schedule is the forwards in order; not used"])
        self.assertEqual(warned(mode="inference", schedule={"warmup": [2, 1]}),
                         ["p.json: /schedule/warmup: only training has a warm-up; not used"])
        self.assertEqual(warned(mode="generation", sync={"parameter_server": "d1"}),
                         ["p.json: /sync/parameter_server: only training reduces gradients; not used"])
        self.assertEqual(warned(sync={"parameter_server": "d1"}),
                         ["p.json: /sync/parameter_server: no two stages on different devices hold one tensor, and a stage reduces its own "
                          "in a ring; not used"])
        self.assertEqual(warned(mode="inference", workload={"optimizer_factor": 1, "context": 7, "tokens": 3}),
                         ["p.json: /workload/optimizer_factor: only training has an optimizer; not used",
                          "p.json: /workload/context: only generation keeps a cache; not used",
                          "p.json: /workload/tokens: only generation makes tokens; not used"])
        self.assertEqual(warned(mode="generation", workload={"context": 7, "tokens": 3}),
                         ["p.json: /workload/context: no layer of the model keeps a cache; not used"])
        self.assertEqual(warned(transfers="block", copies="per_device"),
                         ["p.json: /copies: transfers that block go once for each edge; not used"])
        self.assertEqual(warned(transfers="block", network="exclusive"),
                         ["p.json: /network: transfers that block share nothing, and there are no others; not used"])
        self.assertEqual(warned(stages=[{"layers": ["l0", "l1", "l2"], "devices": [{"name": "d0", "samples": 1}], "shard_state": True}]),
                         ["p.json: /stages/0/shard_state: the stage has one device; not used"])
        self.assertEqual(warned(copies="per_device"), ["p.json: /copies: no output is read by two stages of one device; not used"])
        self.assertEqual(warned(network="priority", flows=[flow]),
                         ['p.json: /network: no flow has a priority, so that all share as under "fair_share"; not used'])
        self.assertEqual(warned(schedule={"warmup": [3, 1]}), [])
        self.assertEqual(warned(schedule={"warmup": [4, 5]}),
                         [f"p.json: /schedule/warmup/{s}: {given} is as good as 3, the microbatches of the stage; not used"
                          for s, given in ((0, 4), (1, 5))])
        both = [{"name": "d0", "samples": 1}, {"name": "d1", "samples": 1}]
        replicated = {"layers": ["l0", "l1", "l2"], "devices": both, "shard_state": True}
        self.assertEqual(warned(microbatch_size=2, stages=[replicated]), [])
        self.assertEqual(warned(microbatch_size=2, stages=[replicated], transfers="block", network="exclusive"), [])
        self.assertEqual(warned(microbatch_size=2, stages=[replicated], workload={"optimizer_factor": 0}),
                         ["p.json: /stages/0/shard_state: the stage has no state of an optimizer; not used"])

    def test_copies_that_cannot_be_one(self):
        edges = [{"from": "l0", "to": x, "bytes": 10} for x in ("l1", "l2")]
        self.write("m.json", {**MODEL, "edges": edges})
        plan = {"format": "hetplan/plan/1", "model": "toy", "cluster": "home", "mode": "inference", "microbatches": 2, "copies": "per_device"}
        orders = {"d0": [["F", "a", m] for m in (0, 1)], "d1": [["F", s, m] for s in "bc" for m in (0, 1)]}

        def warned(size, a_devices):
            for d in a_devices:
                orders[d["name"]] = [x for x in orders.get(d["name"], []) if x[1] != "a"] + [["F", "a", m] for m in (0, 1)]
            order = {d: sorted(x, key=lambda e: e[1]) for d, x in orders.items()}
            stages = [{"name": "a", "layers": ["l0"], "devices": a_devices}]
            stages += [{"name": n, "layers": [l], "devices": [{"name": "d1", "samples": size}]} for n, l in (("b", "l1"), ("c", "l2"))]
            self.write("p.json", {**plan, "microbatch_size": size, "schedule": {"kind": "explicit", "orders": order}, "stages": stages})
            return self.warned("simulate", "m.json", "c.json", "p.json")

        self.assertEqual(warned(1, [{"name": "d0", "samples": 1}]), [])
        lines = warned(2, [{"name": "d0", "samples": 1}, {"name": "d1", "samples": 1}])
        self.assertEqual(len(lines), 1)
        self.assertIn('/copies: the output of stage "a" goes more than once to device "d1", because a stage has several devices', lines[0])

    def test_what_planners_write_has_no_warnings(self):
        self.write("many.json", toy_problem.model(1, 2, 3, 1, 2))
        seen = set()
        for mode, more in (("training", {}), ("training", {"schedule": "gpipe"}), ("training", {"batch": 1}), ("inference", {}),
                           ("generation", {"tokens": 3})):
            self.write("j.json", {"format": "hetplan/job/1", "mode": mode, "batch": 4, **more})
            rows = json.loads(self.run_it("compare", "many.json", "c.json", "j.json", "--json").stdout)["rows"]
            for row in rows:
                if "plan" not in row:
                    continue
                seen.add(row["planner"])
                self.write("p.json", row["plan"])
                self.assertEqual(self.warned("simulate", "many.json", "c.json", "p.json"), [], row["planner"])
        self.assertGreaterEqual(len(seen), 14)
        # A warm-up rule may ask for more microbatches than there are.
        self.write("j.json", {**JOB, "batch": 1})
        self.run_it("plan", "mobilenetv2", "edge-cluster", "j.json", "--planner", "pipedream", "--out", "p.json")
        self.assertGreater(max(json.loads((self.path / "p.json").read_text())["schedule"]["warmup"]), 1)
        self.assertEqual(self.warned("simulate", "mobilenetv2", "edge-cluster", "p.json"), [])
        self.write("j.json", {"format": "hetplan/job/1", "mode": "inference", "batch": 1})
        for contention in ("none", "per_link", "one_port", "shared"):
            for copies in ("per_edge", "per_device"):
                self.run_it("plan", "many.json", "c.json", "j.json", "--planner", "heft", "--contention", contention, "--copies", copies,
                            "--out", "p.json")
                self.assertEqual(self.warned("simulate", "many.json", "c.json", "p.json"), [], (contention, copies))

    def test_fields_of_a_timeline_and_backups_that_nobody_looks_at(self):
        def warned(*events, options=(), **job):
            self.write("j.json", {**JOB, **job})
            self.write("t.json", {"format": "hetplan/timeline/1", "duration": "20 s", "events": list(events)})
            return self.warned(*self.adapt[:-1], "static,replay", *options)

        leaves = {"at": 0.5, "device": "d1", "leaves": True}
        self.assertEqual(warned({"at": 1, "resource": "shared", "capacity": 1e6}, {"at": 1, "device": "d1", "speed": 0.5}), [])
        self.assertEqual(warned({"at": 20, "device": "d1", "speed": 0.5}, {"at": 30, "device": "d1", "speed": 1}),
                         ["t.json: /events/0: it and what follows comes when the timeline has ended; not used"])
        speed = {"at": 1, "device": "d1", "speed": 0.5}
        self.assertEqual(warned(leaves, speed), ['t.json: /events/1/speed: device "d1" has left and does not come back; not used'])
        self.assertEqual(warned(leaves, speed, {"at": 1.5, "device": "d1", "joins": True}), [])
        transfer = {"at": 1, "transfer": {"from": "d0", "to": "d1", "bytes": 1000, "priority": 3}}
        self.assertEqual(warned(transfer), ['t.json: /events/0/transfer/priority: no plan that ran has network "priority"; not used'])
        for mode in ("inference", "generation"):
            for count in ("0", "3"):
                self.assertEqual(warned(leaves, mode=mode, options=("--backups", count)),
                                 ["--backups: only training changes weights, so there is nothing to back up; not used"])
            self.assertNotIn("backups:", self.run_it(*self.adapt, "--backups", "3").stdout)
        nothing = "--backups: no plan that ran has both something to back up and another device with a way and room for it; not used"
        self.assertEqual(warned(leaves, options=("--backups", "3")), [nothing])  # all on one device
        self.assertEqual(warned(leaves), [])
        self.assertNotIn("backups:", self.run_it(*self.adapt, "--backups", "3").stdout)
        self.assertNotIn("backups:", self.run_it(*self.adapt).stdout)
        # The stages stand on two devices; each needs room for a copy of the other.
        for weight, memory, lines in (("7 MB", "80 MB", []), ("4 MB", "40 MB", [nothing])):
            self.write("c.json", {**CLUSTER, "devices": [{**d, "memory": memory} for d in CLUSTER["devices"]]})
            self.write("m.json", {**MODEL, "layers": [{**x, "weight": weight} for x in MODEL["layers"]]})
            self.assertEqual(warned(options=("--backups", "3")), lines)
            self.assertEqual("backups: after every 3" in self.run_it(*self.adapt, "--backups", "3").stdout, not lines)
            if not lines:
                self.assertEqual(warned(options=("--backups", "99999")), ["--backups: no policy comes to 99999 iterations; not used"])
                self.assertNotIn("backups:", self.run_it(*self.adapt, "--backups", "99999").stdout)

    def test_fields_of_a_cluster_that_no_plan_can_use(self):
        def warned(device=(), **fields):
            cluster = {**CLUSTER, **fields}
            devices = [dict(d) for d in CLUSTER["devices"]]
            devices[0].update(device)
            if "resources" in fields:
                cluster.pop("topology", None)
            self.write("c.json", {**cluster, "devices": devices})
            return self.warned("show", "c.json")

        self.assertEqual(warned(), [])
        self.assertEqual(warned({"accelerators": 4, "interconnect": 1e9}), [])
        self.assertEqual(warned({"accelerators": 4}), ["c.json: /devices/0/accelerators: without an interconnect a plan uses one of them; not used"])
        self.assertEqual(warned({"interconnect": 1e9}), ["c.json: /devices/0/interconnect: it joins accelerators, and the device has one; not used"])
        self.assertEqual(warned(topology={"kind": "shared", "capacity": 1e6, "duplex": "half"}),
                         ["c.json: /topology/duplex: a shared medium has no directions; not used"])
        resources = [{"name": n, "capacity": 1e6} for n in ("air", "wire")]
        everywhere = {"from": "*", "to": "*", "via": [{"resource": "air"}]}
        self.assertEqual(warned(resources=resources[:1], routes=[everywhere]), [])
        self.assertEqual(warned(resources=resources, routes=[everywhere, everywhere, {**everywhere, "from": "d0", "to": "d0"}]),
                         ['c.json: /resources/1: no route takes resource "wire"; not used',
                          "c.json: /routes/1: route 0 is between the same ends and comes before it; not used",
                          "c.json: /routes/2: a device needs no route to itself; not used"])
        ways = [{**everywhere, "from": a, "to": b} for a, b in (("d0", "*"), ("d0", "d1"), ("*", "d0"))]
        self.assertEqual(warned(resources=resources[:1], routes=ways),
                         ["c.json: /routes/0: every pair of devices that it could be for takes another route; not used"])
        self.assertEqual(warned(resources=resources[:1], routes=[everywhere], indirect="widest"),
                         ["c.json: /indirect: no pair of devices gets a route by it; not used"])
        third = {**CLUSTER, "devices": [*CLUSTER["devices"], {**CLUSTER["devices"][0], "name": "d2"}], "resources": resources[:1],
                 "routes": ways[:2] + [{**everywhere, "from": "d2", "to": "d0"}], "indirect": "widest"}
        del third["topology"]
        self.write("c.json", third)  # d2 reaches d1 over d0
        self.assertEqual(self.warned("show", "c.json"), [])
        for alone in ({"topology": CLUSTER["topology"]}, {}):
            self.write("c.json", {**{k: v for k, v in CLUSTER.items() if k != "topology"}, **alone, "devices": CLUSTER["devices"][:1]})
            self.assertEqual(self.warned("show", "c.json"), ["c.json: /topology: there is one device; not used"] if alone else [])

        def grouped(*groups):
            return warned(topology={"kind": "hierarchical", "capacity": 1e6, "groups": [
                {"name": f"g{i}", "devices": g, "capacity": 1e6} for i, g in enumerate(groups)]})

        self.assertEqual(grouped(["d0"], ["d1"]), [])  # transfers to a group of one use its inner resource
        self.assertEqual(grouped(["d0", "d1"], []),
                         ["c.json: /topology/capacity: nothing goes between groups, as all devices are in one; not used",
                          "c.json: /topology/groups/1: no device is in it; not used"])
        warned(resources=resources, routes=[everywhere])
        self.write("t.json", {"format": "hetplan/timeline/1", "duration": "2 s", "events": [{"at": 1, "resource": "wire", "capacity": 1}]})
        self.assertIn('t.json: /events/0/resource: no route takes resource "wire"; not used', self.warned(*self.adapt))

    def test_a_sweep_does_a_case_again_for_another_network_of_those_that_place_operators(self):
        self.write("j.json", {"format": "hetplan/job/1", "mode": "inference", "batch": 1})
        self.write("s.json", {"format": "hetplan/sweep/1", "models": ["m.json"], "clusters": ["c.json"], "jobs": ["j.json"],
                              "planners": ["on-device", "heft"]})

        def computed(*options):
            return json.loads(self.run_it("sweep", "s.json", "--out", "rows", "--json", *options).stdout)["computed"]

        self.assertEqual([computed(), computed(), computed("--contention", "none"), computed("--contention", "none"),
                          computed("--copies", "per_edge")], [2, 0, 1, 0, 1])

    def test_what_no_operators_of_this_job_and_model_use(self):
        placed = [f"{o}: operators are placed in inference alone; not used" for o in ("--contention", "--copies")]
        options = ("--contention", "none", "--copies", "per_edge")
        compare = ("compare", "m.json", "c.json", "j.json", "--planners", "heft,gpipe", *options)
        self.assertEqual(self.warned(*compare), placed)
        self.write("s.json", {"format": "hetplan/sweep/1", "models": ["m.json"], "clusters": ["c.json"], "jobs": ["j.json"],
                              "planners": ["heft", "gpipe"]})
        self.assertEqual(self.warned("sweep", "s.json", "--out", "rows", *options), placed)
        self.write("j.json", {**JOB, "mode": "inference", "batch": 1})
        self.assertEqual(self.warned(*compare), [])
        self.assertEqual(self.warned("sweep", "s.json", "--out", "rows", *options), [])
        self.assertEqual(self.warned("plan", "m.json", "c.json", "--planner", "heft", *options), [])
        for fusion in ("tensorrt", "onednn"):
            self.assertEqual(self.warned(*self.plan, "--fuse", fusion), [f'--fuse: no operators of model "toy" fuse as {fusion} does it'])
            self.assertEqual(self.warned("show", "resnet50", "--fuse", fusion), [])
        self.assertEqual(self.warned(*self.plan, "--fuse", "none"), [])

    def test_what_is_built_in_has_no_warnings_when_it_is_written_out(self):
        for name in json.loads(self.run_it("list", "clusters", "--json").stdout)["clusters"]:
            cluster = json.loads(self.run_it("--json", "show", name).stdout)
            self.write("c.json", cluster)
            self.assertEqual(self.warned("show", "c.json"), [], name)

    def test_whole_blocks_are_for_those_that_have_blocks(self):
        self.assertIn("--whole-blocks: onnx is cut at operators", self.refused("export", "m.json", "c.json", "p.json", "--to", "onnx", "--source",
                                                                               "a.onnx", "--out", "x", "--whole-blocks"))

    def test_numbers_beyond_64_bits_are_refused(self):
        for far in (2**63, 2**64 + 1, -(2**63) - 1):
            said = f"expected an integer from -2^63 to 2^63 - 1, or a number with a point or an exponent, got {far}"
            self.write("j.json", {**JOB, "batch": far})
            self.assertEqual(self.refused(*self.plan), f"hetplan: j.json: /batch: {said}\n")
            self.write("j.json", JOB)
            self.write("c.json", {**CLUSTER, "devices": [{**CLUSTER["devices"][0], "memory": far}]})
            self.assertEqual(self.refused(*self.plan), f"hetplan: c.json: /devices/0/memory: {said}\n")
            self.write("c.json", CLUSTER)
        for option, value in [("--budget", 2**63), ("--seed", 2**63), ("--threads", 2**64 + 1), ("--top", 2**64 + 1), ("--tokens", 2**64 + 1)]:
            self.assertIn(option, self.refused("plan", "bert-small", "smart-home-1", f"{option}={value}"))
        self.assertIn("--backups", self.refused(*self.adapt, f"--backups={2**63}"))

    def test_a_profile_for_a_kind_that_is_not_there(self):
        def with_profiles(*kinds):
            times = {"batch": [1, 4], "forward": [0.01, 0.03], "backward": [0.02, 0.06]}
            self.write("m.json", {**MODEL, "layers": [{**layer, "profile": {k: times for k in kinds}} for layer in MODEL["layers"]]})
            return self.warned(*self.plan)

        self.assertEqual(with_profiles("phone"), [])
        self.assertEqual(with_profiles("phone", "laptop"), [])
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
