# SPDX-License-Identifier: BSL-1.0
"""Names that a terminal, a shell or a spreadsheet would obey reach none of them as they are."""

import csv
import json
import os
import subprocess
import unittest

import toy_problem

CLI = os.environ["HETPLAN_CLI"]
# Clears the screen, sets the title, forges a line, deletes a character, and clears the screen by a C1 control character.
EVIL = "\x1b[2J\x1b]0;owned\x07\nfake: 1 device\r\x7f\u009b2J\t"
FORBIDDEN = [chr(c) for c in (*range(0x20), 0x7F, *range(0x80, 0xA0)) if chr(c) != "\n"]


def named(text):
    model = {"format": "hetplan/model/1", "name": "m" + text,
             "layers": [{"name": f"l{i}{text}", "kind": "k" + text, "forward_flops": "1 GFLOP", "weight": "4 MB", "activation": "600 kB"}
                        for i in range(3)],
             "edges": [{"from": f"l{i}{text}", "to": f"l{i + 1}{text}", "bytes": "300 kB"} for i in range(2)]}
    cluster = {"format": "hetplan/cluster/1", "name": "c" + text,
               "devices": [{"name": f"d{i}{text}", "kind": "k" + text, "memory": "2 GB", "compute": f"{2 - i} TFLOP/s"} for i in range(2)],
               "topology": {"kind": "ring", "capacity": "600 Mbit/s"}}
    return model, cluster


class names(toy_problem.folder_test):
    def setUp(self):
        super().setUp()
        for kind, document in zip("mc", named(EVIL)):
            self.write(f"{kind}.json", document)
        for kind, document in zip("mc", named("")):
            self.write(f"plain-{kind}.json", document)
        self.write("j.json", {"format": "hetplan/job/1", "mode": "training", "batch": 4})
        self.write("t.json", {"format": "hetplan/timeline/1", "duration": "1 s"})

    def run_it(self, *arguments):
        result = subprocess.run([CLI, *arguments], cwd=self.path, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        return result.returncode, result.stdout.decode(), result.stderr.decode()

    def printed(self, status, *arguments):
        """What a command prints, which has as many lines as with plain names and nothing that a terminal obeys."""
        got, out, err = self.run_it(*arguments)
        self.assertEqual(got, status, (arguments, out, err))
        for text in (out, err):
            self.assertEqual([c for c in FORBIDDEN if c in text], [], (arguments, text))
        return out, err

    def test_results_and_pictures_of_them_in_text(self):
        self.printed(0, "plan", "m.json", "c.json", "j.json", "--out", "p.json", "--planner", "pipeline")
        self.run_it("plan", "plain-m.json", "plain-c.json", "j.json", "--out", "plain-p.json", "--planner", "pipeline")
        plan = json.loads((self.path / "p.json").read_text())
        plan["planner"] = plan["stages"][0]["name"] = EVIL
        self.write("p.json", plan)
        self.assertEqual(plan["model"], "m" + EVIL)
        for command in [("simulate", "m.json", "c.json", "p.json"), ("compare", "m.json", "c.json", "j.json", "--planners", "on-device"),
                        ("show", "m.json"), ("show", "c.json"), ("groups", "c.json"), ("replay", "m.json", "c.json", "p.json", "--lost", "d1" + EVIL),
                        ("adapt", "m.json", "c.json", "j.json", "t.json", "--policies", "static"),
                        ("export", "m.json", "c.json", "p.json", "--to", "tasks")]:
            out, _ = self.printed(0, *command)
            if "--to" in command:
                continue
            plain = [a if not a.endswith(".json") or a in ("j.json", "t.json") else "plain-" + a for a in command]
            status, wanted, err = self.run_it(*(a.replace(EVIL, "") for a in plain))
            self.assertEqual((status, out.count("\n")), (0, wanted.count("\n")), (command, out, err))
            self.assertNotIn("\nfake", out)
            self.assertEqual(json.loads(self.printed(0, *command, "--json")[0]).keys(), json.loads(self.run_it(*plain_of(command), "--json")[1]).keys())

    def test_reasons_why_there_is_no_plan(self):
        model, cluster = named(EVIL)
        for d in cluster["devices"]:
            d["memory"] = "1 kB"
        self.write("tiny.json", cluster)
        out, _ = self.printed(1, "plan", "m.json", "tiny.json", "j.json")
        self.assertEqual(out.count("\n"), 3)  # reason, subject of the proof, binding row
        self.printed(1, "compare", "m.json", "tiny.json", "j.json")
        self.printed(1, "adapt", "m.json", "tiny.json", "j.json", "t.json", "--policies", "static")

    def test_errors_and_warnings(self):
        for command in [("plan", "m.json" + EVIL, "c.json"), ("plan", "m.json", "c.json", "j" + EVIL), ("plan", "m.json", "c.json", "--" + EVIL),
                        ("plan", "m.json", "c.json", "--planner", EVIL), ("replay", "m.json", "c.json", "p.json", "--lost", EVIL), (EVIL,),
                        ("show", "m.json", "--dot", f"no/{EVIL}"), ("plan", "m.json", "c.json", "--objective", EVIL),
                        ("plan", "m.json", "c.json", "--seed", EVIL), ("init", "m.json/" + EVIL)]:
            out, err = self.printed(2, *command)
            self.assertEqual((out, err.count("\n")), ("", 1), (command, err))
        self.write("training.json", {"format": "hetplan/job/1", "mode": "training", "batch": 4, "tokens": 3})
        os.rename(self.path / "training.json", self.path / ("j" + EVIL))
        _, err = self.printed(0, "plan", "m.json", "c.json", "j" + EVIL, "--planner", "on-device")
        self.assertEqual((err.startswith("hetplan: warning: j\\u001B"), err.count("\n")), (True, 1))

    def test_a_sweep_and_its_tables(self):
        job = {"name": "=1+cmd|' /C calc'!A1" + EVIL, "mode": "training", "batch": 4}
        self.write("s.json", {"format": "hetplan/sweep/1", "models": ["m.json"], "clusters": ["c.json"], "planners": ["on-device"],
                              "jobs": [job, *({**job, "name": c + "x"} for c in "+-@\t\r"), {**job, "name": "plain"}]})
        out, _ = self.printed(0, "sweep", "s.json", "--out", "rows", "--csv", "rows.csv")
        self.assertEqual(out.count("\n"), 1 + 7 + 1)
        with open(self.path / "rows.csv", newline="") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual([r["job"][0] for r in rows], ["'"] * 6 + ["p"])
        self.assertGreater(float(rows[0]["latency"]), 0)

    def test_names_in_command_lines_of_others(self):
        layers = ["embed", "l0.a", "l1.a", "head"]
        model = {"format": "hetplan/model/1", "name": "m", "layers": [{"name": n, "forward_flops": 1} for n in layers],
                 "edges": [{"from": a, "to": b, "bytes": 1} for a, b in zip(layers, layers[1:])]}
        self.write("m.json", model)
        for name in ("-rf d1", "-rf", "a,b", "$(reboot)", "a b", EVIL):
            cluster = {"format": "hetplan/cluster/1", "name": "c", "topology": {"kind": "shared", "capacity": 1},
                       "devices": [{"name": n, "memory": "2 GB", "compute": 1} for n in (name, "d1")]}
            self.write("c.json", cluster)
            self.write("p.json", {"format": "hetplan/plan/1", "model": "m", "cluster": "c", "mode": "inference", "microbatch_size": 1,
                                  "microbatches": 1, "stages": [{"layers": layers[:2], "devices": [{"name": name, "samples": 1}]},
                                                                {"layers": layers[2:], "devices": [{"name": "d1", "samples": 1}]}]})
            for runtime in ("llama.cpp", "prima.cpp"):
                _, err = self.printed(2, "export", "m.json", "c.json", "p.json", "--to", runtime)
                self.assertIn("a device's name stands for its address", err)
            for runtime in ("vllm", "torch", "tasks"):
                self.printed(0, "export", "m.json", "c.json", "p.json", "--to", runtime)


def plain_of(command):
    return [(a if not a.endswith(".json") or a in ("j.json", "t.json") else "plain-" + a).replace(EVIL, "") for a in command]


if __name__ == "__main__":
    unittest.main()
