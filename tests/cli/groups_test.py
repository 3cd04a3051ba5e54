# SPDX-License-Identifier: BSL-1.0
"""`hetplan groups`: what it prints and writes, and that bad input ends in one sentence, status 2 and no file."""

import json
import os
import pathlib
import unittest

import toy_problem

SETTINGS = pathlib.Path(os.environ["HETPLAN_SOURCE_DIR"]) / "bench/settings"


class groups(toy_problem.folder_test):
    def setUp(self):
        super().setUp()
        self.write("m.json", toy_problem.model(1, 1, 1))
        self.write("c.json", toy_problem.cluster(fast0=2, slow=1, fast1=2.1))

    def done(self, *arguments):
        return super().done("groups", *arguments)

    def refused(self, *arguments):
        return super().refused("groups", *arguments, "--html", "page.html")

    def test_the_papers_settings(self):
        for name, sizes in (("deepcee-1", [12, 10]), ("deepcee-2", [22]), ("deepcee-four", [12, 6, 2, 2])):
            found = json.loads(self.done(SETTINGS / f"{name}.json", "--json"))
            self.assertEqual([len(r["devices"]) for r in found["regions"]], sizes)
            self.assertEqual([len(row) for row in found["distances"]], [22] * 22)
            self.assertEqual(len(found["merges"]), 21)
            self.assertEqual(sum(m["inside"] for m in found["merges"]), 22 - len(sizes))

    def test_text(self):
        self.assertEqual(self.done("c.json", "--bytes", "75kB"),
                         "home: 3 devices, 1 region by messages of 75 kB\n"
                         "region 1: 3 devices, 1 ms apart\n"
                         "  1a      2.05 TFLOP/s  fast0 fast1\n"
                         "  1b         1 TFLOP/s  slow\n")
        self.assertEqual(self.done("c.json", "--bytes", "75e3"), self.done("c.json", "--bytes", "75kB"))
        self.assertIn("messages of 0 kB", self.done("c.json", "--bytes", "0"))

    def test_json_names_devices_and_a_model_times_them(self):
        found = json.loads(self.done("c.json", "--json"))
        self.assertEqual(found["regions"], [{"devices": ["fast0", "slow", "fast1"], "distance": found["distances"][0][1],
                                             "classes": [["fast0", "fast1"], ["slow"]]}])
        self.assertEqual(found["devices"], ["fast0", "slow", "fast1"])
        self.assertEqual(found["scores"], [2e12, 1e12, 2.1e12])
        timed = json.loads(self.done("c.json", "--json", "--model", "m.json"))["scores"]
        for score, tflop in zip(timed, (2, 1, 2.1)):
            self.assertAlmostEqual(score, tflop * 1e12 / 9e9)  # 3 layers, forward and two parts of a backward

    def test_the_page(self):
        self.done("c.json", "--html", "page.html")
        page = (self.path / "page.html").read_text()
        self.assertIn("3 devices · 1 region · 2 classes", page)
        self.done("c.json", "--html", "again.html")
        self.assertEqual(page, (self.path / "again.html").read_text())

    def test_bad_input(self):
        self.assertIn('--bytes: expected bytes >= 0, such as "1 MB", got "x"', self.refused("c.json", "--bytes", "x"))
        self.assertIn('did you mean "3 Mbit"', self.refused("c.json", "--bytes", "3 mb"))
        self.assertIn("--bytes: expected bytes >= 0", self.refused("c.json", "--bytes", "-1 MB"))
        self.assertIn("--tokens: only a built-in language model takes it, not a cluster", self.refused("c.json", "--tokens", "7"))
        self.assertIn("expected a cluster file or one of", self.refused("nowhere.json"))
        self.assertIn("expected a model file or one of", self.refused("c.json", "--model", "nowhere.json"))
        cut = {**toy_problem.cluster(a=1, b=1, c=1), "resources": [{"name": "wire", "capacity": "1 Gbit/s"}],
               "routes": [{"from": x, "to": y, "via": [{"resource": "wire"}]} for x, y in (("a", "b"), ("b", "a"), ("a", "c"))]}
        del cut["topology"]
        self.write("cut.json", cut)
        self.assertIn('joins the region of device 2 "c" to another device; expected a link between regions', self.refused("cut.json"))
        unknown = toy_problem.cluster(a=1, b=1)
        del unknown["devices"][1]["compute"]
        self.write("unknown.json", unknown)
        self.assertIn('compute of device 1 "b" is not known', self.refused("unknown.json"))


if __name__ == "__main__":
    unittest.main()
