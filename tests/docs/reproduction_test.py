# SPDX-License-Identifier: BSL-1.0
"""bench/reproduce/update.py writes what programs print into the pages, or says what does not fit and writes nothing."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("HETPLAN_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
UPDATE = SOURCE / "bench/reproduce/update.py"

PAGE = """# Title

Prose.
<!-- begin first -->
old
<!-- end first -->
![a picture](../images/new.svg)
<!-- begin second timed -->
old time
<!-- end second -->
More prose.
"""
PRINTS = """echo '<!-- begin second timed -->'; echo 'new time'; echo '<!-- end second -->'; echo
echo '<!-- begin first -->'; printf '| a |\\n|---|\\n'; echo '<!-- end first -->'
echo '<svg/>' > "$2/new.svg"
"""
UPDATED = PAGE.replace("old\n", "| a |\n|---|\n").replace("old time", "new time")


class update(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for each in ("docs/reproduction", "docs/images", "bin"):
            (self.root / each).mkdir(parents=True)
        self.page = self.root / "docs/reproduction/paper.md"
        self.picture = self.root / "docs/images/new.svg"

    def run_update(self, page=PAGE, prints=PRINTS, options=(), status=0):
        """What it says; the page is left for a look at it."""
        self.page.write_text(page)
        program = self.root / "bin/reproduce_paper"
        program.write_text("#!/bin/sh\n" + prints)
        program.chmod(0o755)
        result = subprocess.run([sys.executable, "-B", UPDATE, "--docs", self.root / "docs", "--programs", self.root / "bin", *options, "paper"],
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(result.returncode, status, result.stdout)
        return result.stdout

    def assert_refused(self, words, page=PAGE, prints=PRINTS, options=()):
        self.assertIn(words, self.run_update(page, prints, options, status=1))
        self.assertEqual(self.page.read_text(), page)
        self.assertFalse(self.picture.exists())

    def test_sections_replace_regions_and_prose_stays(self):
        self.run_update()
        self.assertEqual(self.page.read_text(), UPDATED)
        self.assertEqual(self.picture.read_text(), "<svg/>\n")

    def test_twice_is_as_once(self):
        self.run_update()
        self.assertEqual(self.run_update(page=UPDATED), "")

    def test_check_tells_what_differs_and_writes_nothing(self):
        self.assert_refused("+| a |", options=["--check"])
        self.assert_refused("new.svg: another picture", options=["--check"])

    def test_check_does_not_compare_times(self):
        self.run_update()
        self.run_update(page=UPDATED.replace("new time", "another time"), options=["--check"])
        self.assertIn("another time", self.page.read_text())

    def test_quick_compares_names_only(self):
        self.run_update(options=["--quick"])
        self.assertEqual(self.page.read_text(), PAGE)

    def test_what_does_not_fit_is_refused(self):
        third = "<!-- begin third -->\n<!-- end third -->\n"
        prints_third = PRINTS + "echo '<!-- begin third -->'; echo '<!-- end third -->'"
        for options in ([], ["--check"], ["--quick"]):
            self.assert_refused("no section for the region third", page=PAGE + third, options=options)
            self.assert_refused("no region for the section third", prints=prints_third, options=options)
            self.assert_refused("does not show the picture new.svg", page=PAGE.replace("new.svg", "other.svg"), options=options)

    def test_broken_marks_are_refused(self):
        self.assert_refused("has no end", page=PAGE + "<!-- begin third -->\n")
        self.assert_refused("unexpected <!-- end third -->", page=PAGE + "<!-- end third -->\n")
        self.assert_refused("unexpected <!-- begin third -->", page=PAGE.replace("old\n", "<!-- begin third -->\n"))
        self.assert_refused("two regions first", page=PAGE + "<!-- begin first -->\n<!-- end first -->\n")

    def test_a_program_that_fails_changes_nothing(self):
        self.assert_refused("exit status 3", prints=PRINTS + "exit 3")


if __name__ == "__main__":
    unittest.main()
