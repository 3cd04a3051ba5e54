# SPDX-License-Identifier: BSL-1.0
"""The pages of files name every key that the schemas have, each where its object is described."""

import json
import os
import pathlib
import re
import sys
import unittest

SOURCE = pathlib.Path(os.environ.get("HETPLAN_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
REFERENCE = SOURCE / "docs/reference"
sys.path.insert(0, str(REFERENCE))
import generate  # noqa: E402

KINDS = {"files.md": ("model", "plan", "timeline", "tasks"),
         "serving-files.md": ("cloud", "services", "deployment", "faults", "serving-sweep")}
# Objects that are described inside the row of another one, as `field` {...}: by the name of that field.
FIELD = {"workload": "workload", "assignment": "devices", "pipeline": "pipelines",
         "sync": "sync", "instance": "instances", "change": "changes", "event": "events"}


def section(page, kind):
    """What stands under the heading of a format, without what other headings begin."""
    start = page.index(f"\n## `hetplan/{kind}/1`\n")
    return page[start:page.find("\n## ", start + 1)]


def row(text, title):
    """The fields of the object in the section's table; None without such a row."""
    found = re.search(rf"^\| {title}(?:,[^|]*)? \|(.*)\|$", text, flags=re.M)
    return found[1] if found else None


def braced(text, field):
    """Every {...} that follows `field`, with the braces inside."""
    parts = []
    for start in re.finditer(rf"`{field}`[^{{`]*(?:`[^`]*`[^{{`]*)?{{", text):
        depth, end = 1, start.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        parts.append(text[start.end():end])
    return " ".join(parts)


def shown(text, title):
    """Keys of the object in the section's example."""
    example = json.loads(re.search(r"```json\n(.*?)```", text, flags=re.S)[1])

    def inside(value, name):
        """Objects that stand under the name, however deep."""
        if isinstance(value, list):
            return [found for each in value for found in inside(each, name)]
        if not isinstance(value, dict):
            return []
        here = value.get(name, [])
        return [each for each in (here if isinstance(here, list) else [here]) if isinstance(each, dict)] + inside(list(value.values()), name)

    names = [FIELD.get(title, title + "s"), title]
    return set(example) if title == "top" else {key for name in names for each in inside(example, name) for key in each}


def named(page, kind, title):
    """The keys that the page names for an object, and words in backticks beside them."""
    text = section(page, kind)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    fields = row(prose, title)
    if fields is None and title in FIELD:
        fields = braced(prose, FIELD[title])
    if fields is None:  # a format of one object is described in a paragraph
        fields = prose
    if title in FIELD and row(prose, title) is None:
        keys = set(re.findall(r"`(\w+)`", fields))
    else:  # what stands in braces belongs to another object
        keys = set(re.findall(r"`(\w+)`", re.sub(r"{[^{}]*}", "", fields)))
    if kind == "tasks":  # its rows explain what the example shows
        keys |= shown(text, title)
    for other in re.findall(r"\(#hetplan(\w+)1\)", fields):
        keys |= named(page, other, "top")
    return keys


class keys(unittest.TestCase):
    def test_tables_of_fields_are_those_of_the_schemas(self):
        for name, page in generate.pages_of_files().items():
            self.assertEqual((REFERENCE / name).read_text(), page, "python3 docs/reference/generate.py writes it")

    def test_every_key_is_named_where_its_object_is_described(self):
        counted = 0
        for page, kind in [(page, kind) for page, kinds in KINDS.items() for kind in kinds]:
            page = (REFERENCE / page).read_text() + "\n## "
            schema = json.loads((REFERENCE / f"{kind}.schema.json").read_text())
            for title, described in {"top": schema, **schema.get("$defs", {})}.items():
                if "properties" not in described:
                    continue
                for key in described["properties"]:
                    with self.subTest(kind=kind, object=title, key=key):
                        self.assertIn(key, named(page, kind, title))
                    counted += 1
        self.assertGreater(counted, 200)

    def test_a_key_of_another_object_does_not_count(self):
        page = "\n## `hetplan/model/1`\n\n| top | `format`!, `box` {`width` 0} |\n| edge, of two | `from`! |\n\n## "
        self.assertEqual(named(page, "model", "top"), {"format", "box"})
        self.assertEqual(named(page, "model", "edge"), {"from"})
        self.assertEqual(braced("`power` {`idle` 0, `more` {`x` 1}}, `width`", "power").count("`"), 6)


if __name__ == "__main__":
    unittest.main()
