# SPDX-License-Identifier: BSL-1.0
"""The pages of doors are those that the headers, archetypes and examples give; the comments are fit for Doxygen."""

import os
import pathlib
import shutil
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("HETPLAN_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
sys.path.insert(0, str(SOURCE / "docs/reference"))
import generate  # noqa: E402


class reference(unittest.TestCase):
    def test_pages_of_doors_are_up_to_date(self):
        written = {p.name: p.read_text() for p in (SOURCE / "docs/doors").glob("*.md")}
        made = generate.doors()
        self.assertGreater(len(made), 30)
        self.assertEqual(set(written), set(made), "python3 docs/reference/generate.py writes them")
        for name, page in made.items():
            with self.subTest(page=name):
                self.assertEqual(written[name], page, "python3 docs/reference/generate.py writes it")

    def test_concepts_lead_to_every_door(self):
        concepts = (SOURCE / "docs/concepts.md").read_text()
        for name in generate.doors():
            with self.subTest(page=name):
                self.assertIn(f"](doors/{name})", concepts)

    @unittest.skipUnless(shutil.which("doxygen"), "there is no doxygen")
    def test_doxygen_has_nothing_to_warn_of_and_every_name_has_a_header(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(generate.doxygen(pathlib.Path(folder)), "")
            names = (pathlib.Path(folder) / "names.md").read_text()
        self.assertIn("| `cost_model` | concept | hetplan/cost/cost_model.hpp |\n", names)
        self.assertIn("| `recipes::dora` | function | hetplan/recipes/dora.hpp |\n", names)


if __name__ == "__main__":
    unittest.main()
