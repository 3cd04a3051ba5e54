# SPDX-License-Identifier: BSL-1.0
"""More memory allows every plan that less memory allows; of these a search that keeps the K best by an estimate may lose one."""

import json
import unittest

import toy_problem

SHARES = [1 / 32, 1 / 16, 1 / 8]  # of the cluster's memory, so that it binds for small models


class more_memory(toy_problem.folder_test):
    def iterations(self, model, cluster):
        """Seconds with ever more memory; infinite where nothing fits."""
        whole, found = self.document("show", cluster), []
        for share in SHARES:
            devices = [{**d, **{field: share * d[field] for field in ("memory", "memory_budget") if field in d}} for d in whole["devices"]]
            self.write("c.json", {**whole, "devices": devices})
            answer = self.run_it("plan", model, "c.json", "--objective", "throughput", "--json")
            self.assertIn(answer.returncode, (0, 1), answer.stderr)
            plans = json.loads(answer.stdout)["plans"]
            found.append(plans[0]["predicted"]["latency"] if plans else float("inf"))
        return found

    def assert_never_longer(self, model, cluster, tolerance):
        found = self.iterations(model, cluster)
        for less, more in zip(found, found[1:]):
            self.assertLessEqual(more, less * (1 + tolerance), (model, cluster, found))

    def test_twice_the_memory_takes_no_longer_where_no_plan_is_lost(self):
        for cluster in ("smart-home-1", "edge-cluster"):
            self.assert_never_longer("bert-small", cluster, 1e-9)

    def test_a_lost_plan_costs_no_more_than_the_documentation_says(self):
        self.assert_never_longer("mobilenetv2", "edge-cluster", 0.1)


if __name__ == "__main__":
    unittest.main()
