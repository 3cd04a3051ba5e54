# SPDX-License-Identifier: BSL-1.0
"""What the umbrella makes a compiler declare does not grow unseen: clang counts, and a count is the same on every machine."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

INCLUDE = pathlib.Path(os.environ.get("HETPLAN_SOURCE_DIR", pathlib.Path(__file__).parents[2])) / "include"
CLANG = shutil.which("clang++-16")
# Thousands of declarations, all and those of class templates' specialisations; <Eigen/Dense> has 138 and 5. Who makes them fewer
# lowers the limit; who needs more says in the change what for (930: memory tiers and pins in every planner, parts of a time).
LIMITS = {"": (930, 94), "-DHETPLAN_SEPARATE": (262, 20)}


def declarations(flag):
    """Of a source that includes hetplan.hpp: all, and specialisations of class templates."""
    command = [CLANG, "-std=c++20", *flag.split(), "-I", str(INCLUDE), "-fsyntax-only", "-Xclang", "-print-stats", "-x", "c++", "-"]
    said = subprocess.run(command, input="#include <hetplan/hetplan.hpp>\n", capture_output=True, text=True, check=True).stderr
    return tuple(int(re.search(rf"(\d+) {what}", said)[1]) for what in ("decls total", "ClassTemplateSpecialization decls"))


@unittest.skipUnless(CLANG, "there is no clang++-16")
class instantiations(unittest.TestCase):
    def test_the_umbrella_stays_as_light_as_it_is(self):
        for flag, limits in LIMITS.items():
            for found, limit in zip(declarations(flag), limits):
                with self.subTest(flags=flag or "header-only"):
                    self.assertLessEqual(found, limit * 1000)
                    self.assertGreater(found, limit * 900, "lower the limit to what is reached")


if __name__ == "__main__":
    unittest.main()
