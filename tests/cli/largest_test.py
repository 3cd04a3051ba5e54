# SPDX-License-Identifier: BSL-1.0
"""`plan --largest` against a linear scan by `plan`, and what `plan` says of a run of generation."""

import itertools
import json
import unittest

import toy_problem

FITS, DOES_NOT = 0, 1


def chat(**more):
    return {"format": "hetplan/job/1", "mode": "generation", "batch": 1, "prompt": 6, "tokens": 4, **more}


@toy_problem.unsanitized
class largest(toy_problem.folder_test):
    def setUp(self):
        super().setUp()
        model = toy_problem.model(1, 1, 2, 1)
        for layer in model["layers"]:
            layer.update(kv_bytes_per_token="30 kB", forward_activation="100 kB", weight_traffic="4 MB")
        self.write("m.json", model)
        cluster = toy_problem.cluster(a=1, b=2)
        for device, memory in zip(cluster["devices"], ("14 MB", "11 MB")):
            device.update(memory=memory, memory_bandwidth="1 GB/s")
        self.write("c.json", cluster)

    def fits(self, job):
        """Does `plan` find a plan that keeps the job's limits?"""
        self.write("scan.json", job)
        answer = self.run_it("plan", "m.json", "c.json", "scan.json", "--json", "--objective", "latency")
        self.assertIn(answer.returncode, (FITS, DOES_NOT), answer.stderr)
        if answer.returncode == DOES_NOT:
            return False
        run, limits = json.loads(answer.stdout)["run"], job.get("qoe", {})
        return all(run[name] <= float(limits[name].split()[0]) * 1e-3 for name in limits)

    def scanned(self, what, job, most):
        least = 1 if what == "batch" else 0
        return max((v for v in range(least, most + 1) if self.fits({**job, what: v})), default=None)

    def largest(self, what, job, *more):
        self.write("j.json", job)
        return self.document("plan", "m.json", "c.json", "j.json", "--largest", what, *more)

    def test_the_largest_is_that_of_a_linear_scan(self):
        for what, qoe in itertools.product(("batch", "context"), ({}, {"ttft": "200 ms"}, {"time_between_tokens": "25 ms"})):
            job = chat(**({"qoe": qoe} if qoe else {}))
            with self.subTest(what=what, qoe=qoe):
                answer = self.largest(what, job, "--most", 12 if what == "batch" else 60)
                found = answer["largest"]
                self.assertTrue(found["all_tried"])
                self.assertEqual(found["value"], self.scanned(what, job, 12 if what == "batch" else 60))
                best = answer["plans"][0]
                given = best["microbatch_size"] * best["microbatches"] if what == "batch" else best["workload"]["context"]
                self.assertEqual(given, found["value"])

    def test_the_answer_says_what_limits(self):
        self.write("j.json", chat())
        text = self.done("plan", "m.json", "c.json", "j.json", "--largest", "batch", "--out", "p.json")
        first, second = text.splitlines()[:2]
        self.assertRegex(first, r"^largest batch: \d+$")
        self.assertRegex(second, r"^  \d+ does not fit: memory: ")
        self.assertRegex(text, r"(?m)^  [ab] +memory  weights .*cache ")
        value = int(first.split()[-1])
        self.assertEqual(self.read("p.json")["microbatch_size"] * self.read("p.json")["microbatches"], value)
        self.done("simulate", "m.json", "c.json", "p.json")

    def test_nothing_fits(self):
        cluster = toy_problem.cluster(a=1)
        cluster["devices"][0]["memory"] = "5 MB"
        self.write("c.json", cluster)
        self.write("j.json", chat())
        answer = self.run_it("plan", "m.json", "c.json", "j.json", "--largest", "context", "--out", "p.json")
        self.assertEqual(answer.returncode, DOES_NOT)
        self.assertTrue(answer.stdout.startswith("none found: it does not even fit without a context: memory: "), answer.stdout)
        self.assertNotIn("p.json", self.contents())
        found = json.loads(self.run_it("plan", "m.json", "c.json", "j.json", "--largest", "batch", "--json").stdout)
        self.assertNotIn("value", found["largest"])
        self.assertEqual(found["plans"], [])

    def test_nothing_limits(self):
        model = toy_problem.model(1, 1)
        for layer in model["layers"]:
            layer.update(kv_bytes_per_token=0, forward_activation=0)
        self.write("m.json", model)
        self.write("j.json", chat())
        text = self.done("plan", "m.json", "c.json", "j.json", "--largest", "context", "--most", "1000")
        self.assertEqual(text.splitlines()[:2], ["largest context: 1000", "  nothing limits it up to there"])

    def test_bad_input(self):
        self.write("j.json", {"format": "hetplan/job/1", "mode": "training", "batch": 4})
        for arguments, said in ((("--largest", "context"), 'expected a job in mode "generation"'), (("--largest", "prompt"), "not in"),
                                (("--most", "3"), "requires --largest"), (("--largest", "batch", "--most", "0"), "whole number")):
            answer = self.run_it("plan", "m.json", "c.json", "j.json", *arguments)
            self.assertEqual(answer.returncode, 2, arguments)
            self.assertIn(said, answer.stderr)

    def test_a_large_model_on_eight_devices(self):
        cards = [{"name": f"a{i}", "like": "rtx3090"} for i in range(4)] + [{"name": f"b{i}", "like": "rtx3060"} for i in range(4)]
        self.write("c.json", {"format": "hetplan/cluster/1", "name": "eight", "devices": cards,
                              "topology": {"kind": "shared", "capacity": "10 Gbit/s", "latency": "50 us"}})
        pins = {"tokens": "b0", "lm_head": "b0"}
        for what, more, least in (("context", {}, 300_000), ("batch", {}, 900), ("batch", {"qoe": {"time_between_tokens": "800 ms"}}, 300),
                                  ("context", {"pins": pins}, 300_000)):
            with self.subTest(what=what, more=more):
                self.write("j.json", chat(prompt=256, tokens=64, **more))
                answer = self.document("plan", "llama3-70b", "c.json", "j.json", "--weights", "q4_k_m", "--largest", what, "--out", "p.json")
                self.assertTrue(least <= answer["largest"]["value"] <= answer["largest"]["bound"], answer["largest"])
                if "pins" in more:
                    at = {layer: stage["devices"][0]["name"] for stage in self.read("p.json")["stages"] for layer in stage["layers"]}
                    self.assertEqual({name: at[name] for name in pins}, pins)
                run = self.document("simulate", "llama3-70b", "c.json", "p.json", "--weights", "q4_k_m")
                if "qoe" in more:
                    self.assertLessEqual(run["time_between_tokens"], 0.8)

    def test_a_run_of_generation_is_explained(self):
        self.write("j.json", chat(batch=2))
        run = self.document("plan", "m.json", "c.json", "j.json")["run"]
        self.assertEqual(set(run["limits"]), {"prompt", "tokens"})
        self.assertAlmostEqual(run["limits"]["prompt"]["seconds"], run["ttft"])
        self.assertAlmostEqual(sum(s["seconds"] for s in run["limits"].values()), run["latency"])
        for stretch in run["limits"].values():
            for shares in stretch["devices"].values():
                self.assertAlmostEqual(sum(shares.values()), 1)
        self.assertAlmostEqual(run["tokens_per_second"], 2 * 4 / run["latency"])
        self.assertAlmostEqual(run["prompt_tokens_per_second"], 2 * 6 / run["ttft"])
        self.done("plan", "m.json", "c.json", "j.json", "--out", "p.json")
        simulated = self.document("simulate", "m.json", "c.json", "p.json")
        for key in ("memory", "limits"):
            self.assertEqual(simulated[key], run[key])
        for device, parts in run["memory"].items():
            self.assertAlmostEqual(sum(parts.values()), simulated["peak_memory"][device], places=3)


if __name__ == "__main__":
    unittest.main()
