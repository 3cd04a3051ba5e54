# SPDX-License-Identifier: BSL-1.0
"""tests/skips.py finds a test that was skipped and must not be, one that should have been, and one that the list does not know."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("HETPLAN_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
LISTED = [line for line in (SOURCE / "tests/skipped_without_shared.txt").read_text().splitlines() if not line.startswith("#")]


class skips(unittest.TestCase):
    def count(self, skipped, shared, used=()):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "LastTest.log"
            log.write_text("".join(f"SKIPPED: {name}: no ../shared/data/x\n" for name in skipped) +
                           "".join(f"USED: {name}: ../shared/data/x\n" for name in used) + "All tests passed\n")
            result = subprocess.run([sys.executable, "-B", SOURCE / "tests/skips.py", "--shared", folder if shared else folder + "/none", log],
                                    capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr

    def test_with_the_data_nothing_may_be_skipped(self):
        self.assertEqual(self.count([], shared=True, used=LISTED)[0], 0)
        status, said = self.count(LISTED[:1], shared=True, used=LISTED)
        self.assertEqual(status, 1)
        self.assertIn(f"must not be: {LISTED[0]}\n", said)

    def test_with_the_data_exactly_the_listed_use_it(self):
        status, said = self.count([], shared=True, used=LISTED[1:] + ["another"])
        self.assertEqual(status, 1)
        self.assertIn("is not in skipped_without_shared.txt: another\n", said)
        self.assertIn(f"did not use ../shared: {LISTED[0]}\n", said)

    def test_without_the_data_exactly_the_listed_are_skipped(self):
        self.assertEqual(self.count(LISTED + LISTED[:1], shared=False)[0], 0)
        status, said = self.count(LISTED[1:] + ["another"], shared=False)
        self.assertEqual(status, 1)
        self.assertIn("must not be: another\n", said)
        self.assertIn(f"was not skipped: {LISTED[0]}\n", said)


if __name__ == "__main__":
    unittest.main()
