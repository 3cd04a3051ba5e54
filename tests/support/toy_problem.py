# SPDX-License-Identifier: BSL-1.0
"""A toy model and cluster, and tests that each have a folder of their own to run the program in."""

import json
import pathlib
import tempfile
import unittest


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

    def write(self, name, document):
        (self.path / name).write_text(json.dumps(document))
