# SPDX-License-Identifier: BSL-1.0
"""Planning that would take long ends with its best so far, and says in every output which limit ended it."""

import json
import unittest

import toy_problem

REASON = "the budget of 1000 steps ended the search after "


class Budget(toy_problem.folder_test):
    def setUp(self):
        super().setUp()
        self.done("init", ".", "--quiet")
        self.problem = ["model.json", "cluster.json", "job.json"]

    def job(self, **fields):
        self.write("job.json", {"format": "hetplan/job/1", "mode": "training", "batch": 32, **fields})

    def test_a_spent_budget_is_told_in_text_json_and_html(self):
        page = self.path / "report.html"
        text = self.run_it("plan", *self.problem, "--budget", 1000, "--html", page)
        self.assertEqual(text.returncode, 0)
        self.assertIn("stopped: " + REASON, text.stdout)
        self.assertIn(REASON, page.read_text())
        answer = json.loads(self.run_it("plan", *self.problem, "--budget", 1000, "--json").stdout)
        self.assertEqual(answer["status"], "stopped")
        self.assertTrue(answer["reason"].startswith(REASON))
        self.assertGreater(answer["plans"][0]["predicted"]["bound"], 0)
        row = json.loads(self.run_it("compare", *self.problem, "--planners", "dora", "--budget", 1000, "--json").stdout)["rows"][0]
        self.assertEqual((row["status"], row["reason"][: len(REASON)]), ("stopped", REASON))

    def test_the_same_budget_gives_the_same_answer_for_any_number_of_threads(self):
        answers = []
        for threads in (1, 3):
            answer = json.loads(self.run_it("plan", *self.problem, "--budget", 30000, "--threads", threads, "--json").stdout)
            del answer["elapsed"]
            answers.append(answer)
        self.assertEqual(*answers)

    def test_large_batches_and_many_tokens_end(self):
        for fields in ({"batch": 9973}, {"batch": 100000}, {"mode": "generation", "batch": 8, "tokens": 10000}):
            with self.subTest(fields):
                self.job(**fields)
                answer = self.run_it("plan", *self.problem, "--json", "--budget", 300000)
                self.assertEqual(answer.returncode, 0, answer.stderr)
                self.assertTrue(json.loads(answer.stdout)["plans"])

    def test_a_batch_that_cannot_be_simulated_is_named(self):
        self.job(batch=1000000000, microbatch_sizes=[1, 2])
        refused = self.run_it("plan", *self.problem)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("batch = 1000000000", refused.stderr)
        self.assertNotIn("/microbatches", refused.stderr)

    def test_a_budget_is_a_number_above_zero(self):
        self.assertEqual(self.run_it("plan", *self.problem, "--budget", 0).returncode, 2)


if __name__ == "__main__":
    unittest.main()
