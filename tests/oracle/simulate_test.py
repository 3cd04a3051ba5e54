# SPDX-License-Identifier: BSL-1.0
"""The oracle against the reference numbers, then the command line program against the oracle.

Prints its seed; HETPLAN_TEST_SEED gives another. What is not there (the data folder, the program) is
skipped aloud.
"""
import fractions
import json
import subprocess
import sys
import unittest
import unittest.mock

import generate
import semantics
from harness import CLI, SEED, WithProgram, main, reference

PER_KIND = 14


class OracleAgainstReference(unittest.TestCase):
    def test_flows_end_at_the_exact_fractions(self):
        document = reference(self, "fluid_scenarios.json")
        found = semantics.fluid(document)
        for scenario, result in zip(document["scenarios"], found):
            for flow in scenario["flows"]:
                exact = float(fractions.Fraction(flow["finish_exact"]))
                self.assertLessEqual(abs(result["finish"][flow["name"]] - exact), 1e-9 * exact,
                                     f"{scenario['scenario']} {flow['name']}")

    def check_plans(self, name, count, numbers="expected"):
        cases = reference(self, name)["cases"]
        self.assertGreaterEqual(len(cases), count)
        for i, case in enumerate(cases[:count]):
            off = semantics.deviation(semantics.simulate(case), case[numbers])
            self.assertLessEqual(off, 1e-9, f"{name}, case {i}")

    def test_plans_have_the_reference_numbers(self):
        self.check_plans("simulator_cases.json", 100)

    def test_plans_of_the_second_file_have_the_reference_numbers(self):
        self.check_plans("simulator_cases_2.json", 140)

    def test_grids_shares_and_cuts_have_the_reference_numbers(self):
        # These numbers are older than language.md: generation held a cache of the context alone and never read it.
        def held(layer, tokens):
            return layer.kv_bytes_per_token * self.context

        def simulate(case, now=semantics.simulate):
            self.context = case["plan"].get("workload", {}).get("context", 0)
            return now(case)

        with unittest.mock.patch.multiple(semantics.Layer, cache_moved=lambda layer, at: 0.0, cache_held=held):
            with unittest.mock.patch.object(semantics, "simulate", simulate):
                self.check_plans("deepcee_cases.json", 96, "values")

    def test_language_models_have_the_reference_numbers(self):
        self.check_plans("language_cases.json", 120)
        for i, case in enumerate(reference(self, "language_cases.json")["cases"]):
            found, expected = semantics.simulate(case), case["expected"]
            self.assertEqual(set(found) - {"span", "period"}, set(expected), f"case {i}")

    def test_bad_language_models_are_refused(self):
        refused = reference(self, "language_cases.json")["refused"]
        self.assertGreaterEqual(len(refused), 20)
        for case in refused:
            self.assertTrue(semantics.refusal(case), case["what"])


class ProgramAgainstOracle(WithProgram):
    def simulate(self, case, *options):
        """Exit status, standard output and standard error of `hetplan simulate` on the case's files."""
        plan = dict(case["plan"])
        names = []
        for part in ("model", "cluster", "plan"):
            path = self.folder / f"{part}.json"
            path.write_text(json.dumps(plan if part == "plan" else case[part]), encoding="utf-8")
            names.append(str(path))
        run = subprocess.run([CLI, "simulate", *names, *options], capture_output=True, text=True, timeout=120)
        return run.returncode, run.stdout, run.stderr

    def generated(self):
        command = [sys.executable, "-B", generate.__file__, "--seed", str(SEED), "--count", str(len(generate.KINDS) * PER_KIND)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["cases"]

    def test_plans_of_every_kind_have_the_oracles_numbers(self):
        worst, kinds, cases = 0.0, set(), self.generated()
        for number, case in enumerate(cases):
            name = f"seed {SEED}, case {number}, kind {case['kind']}"
            status, out, err = self.simulate(case, "--json")
            self.assertEqual(status, 0, f"{name}: {err}")
            found, expected = json.loads(out), case["expected"]
            for part in ("energy", "peak_memory", "busy"):
                self.assertEqual(set(found[part]), set(expected[part]), f"{name}: devices of {part}")
            for part in ("ttft", "time_between_tokens", "tokens_per_second", "prompt_tokens_per_second"):
                self.assertEqual(part in found, part in expected, f"{name}: {part}")
            off = semantics.deviation(found, expected)
            self.assertLessEqual(off, 1e-9, f"{name}: {found} instead of {expected}")
            # A resource that carries nothing may be left out by the oracle, too.
            for resource, amount in found["bytes"].items():
                self.assertAlmostEqual(amount, expected["bytes"].get(resource, 0.0), delta=1e-9 * max(1.0, amount), msg=name)
            self.assertGreaterEqual(found["gap"], -1e-9, name)
            self.assertGreaterEqual(found["schedule_gap"], -1e-9, name)
            self.assertLessEqual(found["bound"], found["latency"] * (1 + 1e-9), name)
            worst = max(worst, off)
            kinds.add(case["kind"])
        print(f"seed {SEED}: {len(cases)} plans of {len(kinds)} kinds, largest deviation {worst:.3g}")
        self.assertEqual(kinds, set(generate.KINDS))

    def test_the_network_option_overrides_the_plan(self):
        case = next(c for c in self.generated() if c["kind"] == "priority" and self.policies_differ(c))
        for policy in semantics.POLICIES:
            status, out, err = self.simulate(case, "--json", "--network", policy)
            self.assertEqual(status, 0, err)
            told = {**case, "plan": {**case["plan"], "network": policy}}
            self.assertLessEqual(abs(json.loads(out)["latency"] / semantics.simulate(told)["latency"] - 1), 1e-9, policy)

    @staticmethod
    def policies_differ(case):
        latencies = {round(semantics.simulate({**case, "plan": {**case["plan"], "network": p}})["latency"], 9)
                     for p in semantics.POLICIES}
        return len(latencies) == len(semantics.POLICIES)


if __name__ == "__main__":
    main()
