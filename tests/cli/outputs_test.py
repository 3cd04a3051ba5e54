# SPDX-License-Identifier: BSL-1.0
"""What a command leaves behind: standard output and files, all of it or nothing."""

import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

import toy_problem

CLI = os.environ["HETPLAN_CLI"]
FULL = pathlib.Path("/dev/full")
SWEEP = {"format": "hetplan/sweep/1", "models": ["m.json"], "clusters": ["c.json"], "jobs": ["j.json"], "planners": ["on-device"]}
PIPEDREAM = """node1 -- Input -- forward_compute_time=0.0, backward_compute_time=0.0, activation_size=8.0, parameter_size=0.0
node2 -- Linear(8, 2) -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=8.0, parameter_size=128.0
\tnode1 -- node2
"""


class outputs(toy_problem.folder_test):
    def setUp(self):
        super().setUp()
        self.write("m.json", toy_problem.model(1, 1, 1))
        self.write("c.json", toy_problem.cluster(d0=2, d1=1))
        self.write("j.json", {"format": "hetplan/job/1", "mode": "training", "batch": 4})
        self.write("t.json", {"format": "hetplan/timeline/1", "duration": "10 s", "traces": [{"resource": "shared", "file": "wifi.txt"}]})
        self.write("s.json", SWEEP)
        (self.path / "wifi.txt").write_text("0 600\n5 300\n")
        (self.path / "g.txt").write_text(PIPEDREAM)
        self.plan = ("plan", "m.json", "c.json", "j.json", "--planner", "on-device")
        self.done(*self.plan, "--out", "p.json")

    def run_with(self, stdout, *arguments, before=None):
        return subprocess.run([CLI, *arguments], cwd=self.path, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True,
                              timeout=60, preexec_fn=before)

    COMMANDS = [
        ("plan", "m.json", "c.json", "--planner", "on-device", "--out", "new"), ("simulate", "m.json", "c.json", "p.json", "--svg", "new"),
        ("compare", "m.json", "c.json", "--planners", "on-device"), ("export", "m.json", "c.json", "p.json", "--to", "tasks"),
        ("export", "m.json", "c.json", "p.json", "--to", "plan", "--out", "new", "--json"),
        ("replay", "m.json", "c.json", "p.json", "--lost", "d1", "--out", "new"),
        ("adapt", "m.json", "c.json", "j.json", "t.json", "--policies", "static", "--svg", "new"),
        ("groups", "c.json", "--html", "new"),
        ("show", "m.json", "--dot", "new"), ("show", "c.json", "--json"), ("list", "planners"), ("import", "pipedream", "g.txt"),
        ("import", "pipedream", "g.txt", "--out", "new"), ("init", "folder"), ("--help",), ("plan", "--help"), ("--version",)]

    @unittest.skipUnless(FULL.exists(), "no /dev/full here")
    def test_a_full_standard_output_is_an_error_of_every_command_and_leaves_no_file(self):
        before = self.contents()
        for command in self.COMMANDS:
            with open(FULL, "wb") as full:
                result = self.run_with(full, *command)
            self.assertEqual(result.returncode, 2, command)
            # Output longer than a buffer fails before the end, where the reason is known.
            self.assertRegex(result.stderr, "^hetplan: standard output: cannot write(: No space left on device| all of it)\n$", command)
            self.assertEqual(self.contents(), before, command)
        with open(FULL, "wb") as full:
            result = self.run_with(full, "sweep", "s.json", "--out", "rows")
        self.assertEqual(result.returncode, 2)
        self.assertIn("0 computed now", self.done("sweep", "s.json", "--out", "rows"))  # computed rows are kept

    def test_a_closed_standard_output_is_an_error_and_no_file_takes_its_place(self):
        before = self.contents()
        result = self.run_with(None, *self.COMMANDS[0], before=lambda: os.close(1))
        self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 1), result.stderr)
        self.assertEqual(self.contents(), before)

    def test_an_output_is_not_an_input(self):
        os.link(self.path / "m.json", self.path / "same model")
        (self.path / "link").symlink_to("c.json")
        for command in [
            (*self.plan, "--out", "m.json"), (*self.plan, "--out", "./m.json"), (*self.plan, "--svg", "same model"), (*self.plan, "--html", "link"),
            (*self.plan, "--trace", "j.json"), ("simulate", "m.json", "c.json", "p.json", "--svg", "p.json"),
            ("export", "m.json", "c.json", "p.json", "--to", "plan", "--out", "p.json"),
            ("replay", "m.json", "c.json", "p.json", "--lost", "d1", "--out", "p.json"),
            ("adapt", "m.json", "c.json", "j.json", "t.json", "--svg", "t.json"), ("adapt", "m.json", "c.json", "j.json", "t.json", "--html", "wifi.txt"),
            ("show", "m.json", "--dot", "m.json"), ("import", "pipedream", "g.txt", "--out", "g.txt"),
            ("sweep", "s.json", "--out", "s.json"), ("sweep", "s.json", "--out", "rows", "--csv", "m.json"),
            ("sweep", "s.json", "--out", "rows", "--csv", "s.json"), ("sweep", "s.json", "--out", "rows", "--csv", "j.json"),
        ]:
            self.assertRegex(self.refused(*command), r'^hetplan: --\w+: expected a file of its own, got ".*", which is read\n$')

    def test_an_output_is_not_another_output(self):
        (self.path / "folder").mkdir()
        (self.path / "old").write_text("old")
        for first, second in (("x", "x"), ("x", "./x"), ("folder/../x", "x"), ("old", "folder/../old")):
            self.assertRegex(self.refused(*self.plan, "--out", first, "--svg", second), r'^hetplan: --svg: .*, which is that of --out\n$')
        self.assertIn("--csv: expected a file of its own", self.refused("sweep", "s.json", "--out", "x", "--csv", "x"))
        with open(self.path / "said", "wb") as said:
            result = self.run_with(said, *self.plan, "--out", "/dev/stdout")
        self.assertEqual((result.returncode, (self.path / "said").read_bytes()), (2, b""))
        self.assertIn("where standard output goes", result.stderr)
        self.done(*self.plan, "--out", "/dev/null", "--svg", "/dev/null")

    def test_where_one_output_fails_none_is_written(self):
        self.refused(*self.plan, "--out", "new.json", "--svg", "no/such/folder")
        self.refused(*self.plan, "--out", "new.json", "--html", ".")
        self.refused("adapt", "m.json", "c.json", "j.json", "t.json", "--policies", "static", "--svg", "new.svg", "--html", "no/such/folder")
        self.refused("sweep", "s.json", "--out", "no/such/folder", "--csv", "new.csv")
        if FULL.exists():
            self.assertIn("/dev/full: cannot write", self.run_with(subprocess.PIPE, *self.plan, "--out", "new.json", "--svg", "/dev/full").stderr)
            self.assertFalse((self.path / "new.json").exists())

    def test_an_interrupted_command_leaves_no_temporary_file(self):
        # A large document fills a pipe that nobody reads: the command waits, with its file written but not yet renamed.
        before = self.contents()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            p = subprocess.Popen([CLI, "show", "qwen-omni", "--json", "--dot", "graph"], cwd=self.path, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
            end = time.monotonic() + 30
            while not any(".tmp" in f.name for f in self.path.iterdir()):
                self.assertIsNone(p.poll())
                self.assertLess(time.monotonic(), end, "no temporary file")
                time.sleep(0.001)
            time.sleep(0.01)
            p.send_signal(number)
            self.assertEqual(p.wait(timeout=30), -number)
            p.stdout.close()
            p.stderr.close()
            self.assertEqual(self.contents(), before)

    def test_where_the_system_refuses_a_name_the_files_before_it_have_theirs(self):
        # A large document fills a pipe: the command waits with both files written, while a folder takes the second name.
        wordy = toy_problem.model(1, 1, 1)
        wordy["edges"] = []
        for layer in wordy["layers"]:
            layer["name"] += 50000 * "x"
        self.write("wordy.json", wordy)
        p = subprocess.Popen([CLI, "plan", "wordy.json", *self.plan[2:], "--json", "--out", "first", "--svg", "second"], cwd=self.path,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        before = self.contents()
        end = time.monotonic() + 30
        while len([f for f in self.path.iterdir() if ".tmp" in f.name]) < 2:
            self.assertIsNone(p.poll())
            self.assertLess(time.monotonic(), end, "no temporary files")
            time.sleep(0.001)
        (self.path / "second").mkdir()
        out, err = p.communicate(timeout=30)
        self.assertEqual((p.returncode, err), (2, b"hetplan: second: cannot write: Is a directory\n"))
        self.assertEqual(json.loads(out)["plans"][0], json.loads((self.path / "first").read_text()))
        self.assertEqual(set(self.contents()) - set(before), {"first"})

    def test_a_long_name(self):
        long_name = "y" * 255
        self.done(*self.plan, "--out", long_name)
        self.assertTrue((self.path / long_name).exists())


if __name__ == "__main__":
    unittest.main()
