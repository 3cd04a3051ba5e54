# SPDX-License-Identifier: BSL-1.0
"""What tests of the oracles share: a seed, the reference, the program, and an end that tells what was used and skipped."""
import json
import os
import pathlib
import sys
import tempfile
import unittest

SHARED = pathlib.Path(os.environ.get("HETPLAN_SHARED_DIR", pathlib.Path(__file__).resolve().parents[3] / "shared"))
CLI = os.environ.get("HETPLAN_CLI", "")
SEED = int(os.environ.get("HETPLAN_TEST_SEED", "1"))
USED = []  # (test, path): told at the end, where unittest's own lines are not in between


def reference(test, name):
    path = SHARED / "reference" / name
    if not path.exists():
        raise unittest.SkipTest(f"no ../shared/reference/{name}")
    USED.append((test, f"../shared/reference/{name}"))
    return json.loads(path.read_text(encoding="utf-8"))


class WithProgram(unittest.TestCase):
    """Has the command line program, and a folder for its files."""

    def setUp(self):
        if not CLI or not pathlib.Path(CLI).exists():
            self.skipTest(f"the command line program {CLI!r} is not built")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


def main():
    print(f"seed {SEED}")
    result = unittest.main(verbosity=2, exit=False).result
    for word, tests in ("USED", USED), ("SKIPPED", result.skipped):
        for test, what in tests:
            print(f"{word}: {test.id().removeprefix('__main__.')}: {what}")
    sys.exit(0 if result.wasSuccessful() else 1)
