# SPDX-License-Identifier: BSL-1.0
"""The pages of files have the tables of fields that the schemas give."""

import os
import pathlib
import sys
import unittest

REFERENCE = pathlib.Path(os.environ.get("HETPLAN_SOURCE_DIR", pathlib.Path(__file__).parents[2])) / "docs/reference"
sys.path.insert(0, str(REFERENCE))
import generate  # noqa: E402


class fields(unittest.TestCase):
    def test_tables_are_those_of_the_schemas(self):
        rows = 0
        for name, page in generate.pages_of_files().items():
            self.assertEqual((REFERENCE / name).read_text(), page, "python3 docs/reference/generate.py writes it")
            rows += page.count("\n| `")
        self.assertGreater(rows, 280)

    def test_a_row_says_what_a_field_is(self):
        amount = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": "^[0-9]"}]}
        box = {"properties": {"width": {"$ref": "#/$defs/positive", "description": "[m] Inside."}, "open": {"type": "boolean", "default": False}},
               "required": ["width"], "description": "Of wood."}
        schema = {"properties": {"boxes": {"type": "array", "items": {"$ref": "#/$defs/box"}}, "one": {"$ref": "#/$defs/box"},
                                 "kind": {"enum": ["a", "b", "c"]}}, "oneOf": [{"required": ["boxes"]}, {"required": ["one"]}],
                  "$defs": {"positive": amount, "box": box}}
        self.assertEqual(generate.field_table(schema).rows, [
            "| `boxes`¹ | [object, …] | | Of wood. |", "| `boxes[].width`! | m > 0 | | Inside. |",
            "| `boxes[].open` | `true` or `false` | `false` | |", "| `one`¹ | as `boxes[]` | | |", "| `kind` | `a`, `b` or `c` | | |"])


if __name__ == "__main__":
    unittest.main()
