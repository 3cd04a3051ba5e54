# SPDX-License-Identifier: BSL-1.0
"""A toy model and cluster, and tests that each have a folder of their own to run the program in."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

CLI = os.environ["HETPLAN_CLI"]

# Marks tests that plan again and again: with sanitizers they take minutes, and others run the same code.
unsanitized = unittest.skipIf(os.environ.get("HETPLAN_LEAN") == "1", "not with sanitizers")


def model(*gflop):
    """A chain with a layer of so many GFLOP each."""
    return {
        "format": "hetplan/model/1", "name": "toy",
        "layers": [{"name": f"l{i}", "forward_flops": f"{x} GFLOP", "weight": "4 MB", "activation": "600 kB"} for i, x in enumerate(gflop)],
        "edges": [{"from": f"l{i}", "to": f"l{i + 1}", "bytes": "300 kB"} for i in range(len(gflop) - 1)],
    }


def cluster(**tflop_per_s):
    """Phones of so many TFLOP/s each, on one medium."""
    return {
        "format": "hetplan/cluster/1", "name": "home",
        "devices": [{"name": name, "kind": "phone", "memory": "2 GB", "compute": f"{x} TFLOP/s", "power": {"active": "9 W"}}
                    for name, x in tflop_per_s.items()],
        "topology": {"kind": "shared", "capacity": "600 Mbit/s"},
    }


class folder_test(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def write(self, name, content):
        """Bytes, text or a document."""
        content = content if isinstance(content, (bytes, str)) else json.dumps(content)
        (self.path / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    def read(self, name):
        return json.loads((self.path / name).read_text())

    def contents(self):
        return {str(p.relative_to(self.path)): p.read_bytes() for p in self.path.rglob("*") if p.is_file()}

    def run_it(self, *arguments):
        return subprocess.run([CLI, *map(str, arguments)], cwd=self.path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)

    def done(self, *arguments, warned=0):
        result = self.run_it(*arguments)
        self.assertEqual((result.returncode, len(result.stderr.splitlines())), (0, warned), (arguments, result.stderr))
        return result.stdout

    def document(self, *arguments):
        return json.loads(self.done(*arguments, "--json"), parse_constant=self.fail)

    def refused(self, *arguments):
        """The one line that says why; no file has changed."""
        before = self.contents()
        result = self.run_it(*arguments)
        self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1), (arguments, result))
        self.assertEqual(self.contents(), before, arguments)
        return result.stderr
