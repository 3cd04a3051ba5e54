# SPDX-License-Identifier: BSL-1.0
"""Writes the reference from the headers, tests/archetypes, the examples and the schemas.

    generate.py            docs/doors/X.md for each concept X that has a check_X; in pages of files, tables of fields below a line
                           "<!-- fields of KIND -->". They are committed, so nobody needs to build them
    generate.py FOLDER     by Doxygen: FOLDER/html, and FOLDER/names.md, every public name with its header

The example of a door X stands between two lines "// [X]".
"""

import collections
import json
import pathlib
import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ET

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONCEPT = re.compile(r"((?:^///.*\n)*)^template <.*>\nconcept (\w+) =", re.M)
WRITTEN = "<!-- Written by docs/reference/generate.py from the header's comments, tests/archetypes and the examples. -->"


def statement(text, start):
    """From `start` to the end of the line of its semicolon, the first outside of braces."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if text[i] == ";" and depth == 0:
            return text[start:text.index("\n", i)]
    raise ValueError(f"no end: {text[start:start + 80]}")


def door_of(header, door, check):
    """Its comment, and the concepts that it and its check are made of, as the header states them."""
    found = {m[2]: (m[1], statement(header, m.end(1))) for m in CONCEPT.finditer(header)}
    wanted, asked = set(), [door, *re.findall(r"static_assert\(\s*(\w+)<", check)]
    while asked:
        name = asked.pop()
        if name in found and name not in wanted:
            wanted.add(name)
            asked += re.findall(r"\w+", re.sub(r"//.*", "", found[name][1]))
    code = [("" if name == door else doc) + text for name, (doc, text) in found.items() if name in wanted]
    return re.sub(r"^/// ?", "", found[door][0], flags=re.M).strip(), "\n".join(code)


def minimal_type(archetypes, door):
    names = re.search(rf"check_{door}<([\w, ]+_archetype)\b", archetypes)[1].split(", ")
    found = [re.search(rf"((?:^///.*\n)*)^struct {name}\b", archetypes, flags=re.M) for name in names]
    code = "\n".join(m[1] + statement(archetypes, m.end(1)) for m in found)
    what_it_lacks = r" : bare\w*(?= {)|\[\[nodiscard\]\] |^.*(?:using bare|_archetype\(int\)|\) = default;|= delete;).*\n"
    return re.sub(what_it_lacks, "", code, flags=re.M)


def examples(door):
    """[(path, code)]"""
    found = []
    for path in [*sorted((ROOT / "examples").glob("*.cpp")), ROOT / "tests/docs/snippets.cpp"]:
        parts = re.findall(rf"^ *// \[{door}\]\n(.*?)^ *// \[{door}\]$", path.read_text(), flags=re.S | re.M)
        if parts:
            found.append((path.relative_to(ROOT), "\n".join(map(textwrap.dedent, parts)).rstrip()))
    return found


def doors():
    """{name of a file in docs/doors: page}"""
    archetypes = (ROOT / "tests/archetypes/archetypes.cpp").read_text()
    checks = []
    for path in sorted((ROOT / "include").rglob("*.hpp")):
        text = path.read_text()
        checks += [(m[1], path.relative_to(ROOT), text, m.start()) for m in re.finditer(r"consteval bool check_(\w+)\(\)", text)]
    names = {door for door, *_ in checks}

    def linked(text):
        text = re.sub(r"`(\w+)`", lambda m: f"[{m[0]}]({m[1]}.md)" if m[1] in names else m[0], text)
        return re.sub(r"\bdocs/([\w/-]+\.md(?:#[\w-]+)?)", r"[\1](../\1)", text)

    made = {}
    for door, path, header, start in checks:
        check = header[start:header.index("\n}\n", start)]
        space = re.findall(r"^namespace (hetplan[\w:]*) {", header[:start], flags=re.M)[-1]
        meaning, concepts = door_of(header, door, check)
        said = ["".join(re.findall(r'"(.*?)"', s)) for s in re.findall(r"static_assert\((.*?)\);\n", check, flags=re.S)]
        page = [f"# `{space}::{door}`", WRITTEN, linked(meaning.replace(f"`{door}`", door)),
                f"**Concept**, in [`<{path.relative_to('include')}>`](../../{path})", f"```cpp\n{concepts}\n```",
                f"`{space}::check_{door}` says which member a type lacks:",
                "\n".join(f"* `{s}`" for s in said if re.search(r" (?:needs|is|are): ", s)),
                "**Minimal type**", f"```cpp\n{minimal_type(archetypes, door)}\n```"]
        for source, code in examples(door)[:1]:
            page += [f"**Example**, from [`{source.name}`](../../{source})", f"```cpp\n{code}\n```"]
        page += [f"Another: [`{source.name}`](../../{source})" for source, _ in examples(door)[1:]]
        made[f"{door}.md"] = "\n\n".join(page) + "\n"
    return made


def listed(values):
    return " or ".join([", ".join(values[:-1]), values[-1]]) if len(values) > 1 else values[0]


def shown(value):
    return value if isinstance(value, str) and value else json.dumps(value)


def range_of(schema, unit):
    """What a number may be."""
    signs = {"minimum": "≥", "exclusiveMinimum": ">"}
    least = "".join(f" {sign} {schema[key]}" for key, sign in signs.items() if key in schema)
    return unit + least + (f", ≤ {schema['maximum']}" if schema.get("maximum", 2**31 - 1) < 2**31 - 1 else "")


class field_table:
    """A row for every field of a schema; the fields of an object follow the field that has it first."""

    def __init__(self, schema):
        self.defined, self.rows, self.seen = schema.get("$defs", {}), [], {}
        self.object(schema, "")

    def object(self, schema, prefix):
        required = schema.get("required", [])
        one_of = {key for part in schema.get("oneOf", []) for key in part.get("required", [])}
        for key, value in schema["properties"].items():
            same = self.defined.get(value.get("$ref", "").removeprefix("#/$defs/"), {})
            said = value.get("description", "" if "properties" in same or "pattern" in str(same) else same.get("description", ""))
            unit, meaning = re.fullmatch(r"(?:\[(.*?)\] ?)?(.*)", said).groups()
            self.inner = []
            what, inner = self.what(value, unit, prefix + key), self.inner
            mark = "!" if key in required else "¹" if key in one_of else ""
            default = f"`{shown(value['default'])}`" if "default" in value else ""
            cells = [f"`{prefix}{key}`{mark}", what, default, meaning or (inner[0][0].get("description", "") if inner else "")]
            self.rows.append("".join(f"| {cell} ".replace("  ", " ") for cell in cells) + "|")
            for each, way in inner:
                self.object(each, f"{way}.")

    def what(self, schema, unit, way):
        if "$ref" in schema:
            name = schema["$ref"].removeprefix("#/$defs/")
            if name in self.seen:
                return f"as `{self.seen[name]}`"
            if "properties" in self.defined[name]:
                self.seen[name] = way
            return self.what(self.defined[name], unit, way)
        if "const" in schema or "enum" in schema:
            return listed([f"`{shown(v)}`" for v in schema.get("enum", [schema.get("const")])])
        if "properties" in schema:
            if "](#" in schema.get("description", ""):  # its fields stand there
                return schema["description"]
            self.inner.append((schema, way))
            return "object"
        for several in ("anyOf", "oneOf"):
            if several in schema:
                one, *others = schema[several]
                if "pattern" in others[0]:  # an amount
                    return range_of(one, unit)
                if [part.get("items") for part in others] == [one]:
                    return f"{self.what(one, unit, way)}, or a list of them"
                return listed([self.what(part, unit, way) for part in schema[several]])
        kind = schema["type"]
        if "prefixItems" in schema:
            return "[" + ", ".join(self.what(part, unit, way) for part in schema["prefixItems"]) + "]"
        if kind == "array":
            each = self.what(schema["items"], unit, way + "[]")
            return f"[{each}, {each if schema.get('maxItems') == 2 else '…'}]"
        if kind == "object":
            return f"{{name: {self.what(schema['additionalProperties'], unit, way + '.NAME')}, …}}"
        if kind == "string":
            return "name" if schema.get("minLength") else "text"
        return "`true` or `false`" if kind == "boolean" else range_of(schema, unit or kind)


def pages_of_files():
    """{name of a page in docs/reference: it, with tables of today's schemas}"""
    def table(found):
        schema = json.loads((ROOT / f"docs/reference/{found[2]}.schema.json").read_text())
        return "\n".join([f"{found[1]}\n| field | is | default | meaning |", "|---|---|---|---|", *field_table(schema).rows, ""])

    pages = [ROOT / "docs/reference" / name for name in ("files.md", "serving-files.md")]
    return {page.name: re.sub(r"^(<!-- fields of ([\w-]+) -->\n)(?:\n(?:\|.*\n)+)?", table, page.read_text(), flags=re.M) for page in pages}


def doxygen(folder):
    """Writes FOLDER/html and FOLDER/names.md; what Doxygen warns of."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = (ROOT / "docs/reference/Doxyfile").read_text() + f'OUTPUT_DIRECTORY = "{folder.resolve()}"\n'
    run = subprocess.run(["doxygen", "-"], input=settings, cwd=ROOT, text=True, check=True, stderr=subprocess.PIPE)
    kinds, headers = collections.defaultdict(set), collections.defaultdict(set)
    for file in (folder / "xml").glob("*.xml"):
        for compound in ET.parse(file).iter("compounddef"):
            name = compound.findtext("compoundname")
            entries = [(compound.get("kind"), name, compound)] if compound.get("kind") in ("class", "struct", "concept") else []
            if compound.get("kind") == "namespace":
                entries = [(m.get("kind"), f"{name}::{m.findtext('name')}", m) for m in compound.iter("memberdef")]
            for kind, full, node in entries:
                if full.startswith("hetplan::") and not re.search(r"\bdetail\b|<|operator", full):
                    place = node.find("location")
                    kinds[full].add(kind)
                    headers[full].add((place.get("declfile") or place.get("file")).removeprefix("include/"))
    rows = [f"| `{full.removeprefix('hetplan::')}` | {', '.join(sorted(kinds[full]))} | {', '.join(sorted(headers[full]))} |"
            for full in sorted(kinds)]
    (folder / "names.md").write_text("\n".join(["# Public names", "", "| `hetplan::` | is a | header |", "|---|---|---|", *rows, ""]))
    return run.stderr


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(doxygen(pathlib.Path(sys.argv[1])) or None)
    for old in (ROOT / "docs/doors").glob("*.md"):
        old.unlink()
    (ROOT / "docs/doors").mkdir(exist_ok=True)
    for name, text in doors().items():
        (ROOT / "docs/doors" / name).write_text(text)
    for name, text in pages_of_files().items():
        (ROOT / "docs/reference" / name).write_text(text)
