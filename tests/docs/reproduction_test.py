# SPDX-License-Identifier: BSL-1.0
"""bench/reproduce/update.py writes what programs print into the pages, or says what does not fit and writes nothing."""

import csv
import os
import pathlib
import re
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

<!-- made from 0 -->
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
        for each in ("docs/reproduction", "docs/images", "bin", "bench/reproduce"):
            (self.root / each).mkdir(parents=True)
        self.source, self.setting = self.root / "bench/reproduce/paper.cpp", self.root / "bench/reproduce/setting.hpp"
        self.source.write_text('#include "reproduce/setting.hpp"\n#include <library.hpp>\n')
        self.setting.write_text("int batch = 1;\n")
        self.page = self.root / "docs/reproduction/paper.md"
        self.picture = self.root / "docs/images/new.svg"

    def run_update(self, page=PAGE, prints=PRINTS, options=(), status=0):
        """What it says; the page is left for a look at it."""
        self.page.write_text(page)
        program = self.root / "bin/reproduce_paper"
        program.write_text("#!/bin/sh\n" + prints)
        program.chmod(0o755)
        result = subprocess.run([sys.executable, "-B", UPDATE, "--docs", self.root / "docs", "--programs", self.root / "bin", "--bench", self.root / "bench", *options, "paper"],
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(result.returncode, status, result.stdout)
        return result.stdout

    def assert_refused(self, words, page=PAGE, prints=PRINTS, options=()):
        self.assertIn(words, self.run_update(page, prints, options, status=1))
        self.assertEqual(self.page.read_text(), page)
        self.assertFalse(self.picture.exists())

    def test_sections_replace_regions_and_prose_stays(self):
        self.run_update()
        self.assertRegex(self.page.read_text(), re.escape(UPDATED).replace("made\\ from\\ 0", "made\\ from\\ [0-9a-f]{12}"))
        self.assertEqual(self.picture.read_text(), "<svg/>\n")

    def test_twice_is_as_once(self):
        self.run_update()
        self.assertEqual(self.run_update(page=self.page.read_text()), "")

    def test_check_tells_what_differs_and_writes_nothing(self):
        self.assert_refused("+| a |", options=["--check"])
        self.assert_refused("new.svg: another picture", options=["--check"])

    def test_a_page_is_not_current_when_its_program_changed_since(self):
        self.run_update()
        current = self.page.read_text()
        for changed in (self.source, self.setting):
            text = changed.read_text()
            changed.write_text(text + "int another;\n")
            for option in ("--check", "--quick"):
                self.assertIn("changed since it was made", self.run_update(page=current, options=[option], status=1))
            changed.write_text(text)
        self.assertEqual(self.run_update(page=current, options=["--check"]), "")
        self.assertEqual(self.run_update(page=current, options=["--quick"]), "")

    def test_a_page_is_not_current_when_its_program_prints_something_else_though_it_is_the_same(self):
        self.run_update()
        self.assertIn("+| b |", self.run_update(page=self.page.read_text(), prints=PRINTS.replace("| a |", "| b |"), options=["--check"], status=1))

    def test_a_table_that_was_edited_by_hand_is_not_current(self):
        self.run_update()
        edited = self.page.read_text().replace("new time", "better time")
        self.assertIn("changed since it was made", self.run_update(page=edited, options=["--quick"], status=1))

    def test_check_does_not_compare_times_and_compares_what_stands_beside_them(self):
        timed = PRINTS.replace("new time", "Measured on Monday.\\n| model | 5 layers | 2.5 ms | 3.1 x |")
        self.run_update(prints=timed)
        current = self.page.read_text()
        self.assertEqual(self.run_update(page=current, prints=timed.replace("2.5 ms", "31 us").replace("Monday", "Tuesday").replace("3.1", "9"), options=["--check"]), "")
        self.assertIn("2.5 ms", self.page.read_text())
        self.assertIn("+| model | 6 layers", self.run_update(page=current, prints=timed.replace("5 layers", "6 layers"), options=["--check"], status=1))

    def test_check_does_not_compare_times_in_tables_of_them(self):
        page = PAGE.replace("More prose", "[A table](tables/new.timed.csv)")
        csv = PRINTS + """printf 'model,took,by\\nsmall,2.5 ms,3.1 x\\n' > "$2/new.timed.csv"\n"""
        self.run_update(page=page, prints=csv)
        current = self.page.read_text()
        self.assertEqual(self.run_update(page=current, prints=csv.replace("2.5 ms", "31 us").replace("3.1", "9"), options=["--check"]), "")
        self.assertIn("+large,2.5 ms", self.run_update(page=current, prints=csv.replace("small", "large"), options=["--check"], status=1))

    def test_quick_runs_little_and_compares_no_content(self):
        self.run_update()
        current = self.page.read_text()
        self.run_update(page=current, prints=PRINTS.replace("| a |", "| b |"), options=["--quick"])
        self.assertEqual(self.page.read_text(), current)

    def test_what_does_not_fit_is_refused(self):
        third = "<!-- begin third -->\n<!-- end third -->\n"
        prints_third = PRINTS + "echo '<!-- begin third -->'; echo '<!-- end third -->'"
        for options in ([], ["--check"], ["--quick"]):
            self.assert_refused("no section for the region third", page=PAGE + third, options=options)
            self.assert_refused("no region for the section third", prints=prints_third, options=options)
            self.assert_refused("does not show new.svg", page=PAGE.replace("new.svg", "other.svg"), options=options)

    def test_broken_marks_are_refused(self):
        self.assert_refused("has no end", page=PAGE + "<!-- begin third -->\n")
        self.assert_refused("unexpected <!-- end third -->", page=PAGE + "<!-- end third -->\n")
        self.assert_refused("unexpected <!-- begin third -->", page=PAGE.replace("old\n", "<!-- begin third -->\n"))
        self.assert_refused("two regions first", page=PAGE + "<!-- begin first -->\n<!-- end first -->\n")

    def test_a_program_that_fails_changes_nothing(self):
        self.assert_refused("exit status 3", prints=PRINTS + "exit 3")


class pages(unittest.TestCase):
    def test_a_page_can_be_read_in_a_quarter_of_an_hour(self):
        # Of words and numbers, not of the borders of tables.
        for page in sorted((SOURCE / "docs/reproduction").glob("*.md")):
            with self.subTest(page=page.name):
                self.assertLessEqual(len(re.findall(r"\w\S*", page.read_text())), 1500)

    def test_rows_of_a_table_are_of_one_length(self):
        for table in sorted((SOURCE / "docs/reproduction/tables").glob("*.csv")):
            with self.subTest(table=table.name), open(table, newline="") as file:
                self.assertEqual(len({len(row) for row in csv.reader(file)}), 1)


if __name__ == "__main__":
    unittest.main()
