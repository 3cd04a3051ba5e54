# SPDX-License-Identifier: BSL-1.0
"""The pages say what is true: quoted code is in its file, sessions print what is shown, links lead somewhere.

    <!-- from PATH -->      before a block: its lines stand together in that file, at any indentation
    <!-- to PATH -->        before a block: it is that file in the page's folder, for the commands below it
    ```cpp                  always has such a line: no code that nobody compiles
    ```console              commands after "$ " are run in one empty folder per page; a line "..." skips lines; where the data
                            folder is absent, those that name ../shared/ are not

    quotes_test.py --update     writes what the commands print now into the pages
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("HETPLAN_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
CLI = os.environ.get("HETPLAN_CLI", "")
SHARED = pathlib.Path(os.environ.get("HETPLAN_SHARED_DIR", SOURCE.parent / "shared"))
DOCS = SOURCE / "docs"
PAGES = sorted([SOURCE / "README.md", *DOCS.glob("*.md"), *DOCS.glob("how-to/*.md"), *DOCS.glob("reproduction/*.md")])
BLOCK = re.compile(r"^(?:<!-- (?:from (?P<origin>\S+)|to (?P<target>\S+)) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


def stands_in(quote, text):
    """Are the lines of the quote consecutive lines of the text, all moved by the same indentation?"""
    lines, quoted = text.split("\n"), quote.rstrip("\n").split("\n")
    for start, line in enumerate(lines):
        if not line.endswith(quoted[0]):
            continue
        indent = line[: len(line) - len(quoted[0])]
        if not indent.strip() and lines[start : start + len(quoted)] == [(indent + q) if q else q for q in quoted]:
            return True
    return False


def shows(shown, printed):
    parts = [re.escape(p) for p in re.split(r"^\.\.\.\n", shown, flags=re.M)]
    return re.fullmatch("(?:.*\n)*".join(parts), printed) is not None


def session(text):
    """[(command, shown output)]"""
    found = []
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:-1], ""))
        else:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def replay(page, text):
    """The page with what its commands print, and the commands that print something else than shown."""
    programs = str(pathlib.Path(CLI).parent)
    environment = {**os.environ, "PATH": programs + os.pathsep + os.environ["PATH"], "LC_ALL": "C"}
    differing = []
    with tempfile.TemporaryDirectory() as outer:
        folder = pathlib.Path(outer) / "page"
        folder.mkdir()
        (pathlib.Path(outer) / "shared").symlink_to(SHARED)

        def rewrite(match):
            if match["target"]:
                (folder / match["target"]).write_text(match["text"])
            if match["kind"] != "console":
                return match[0]
            lines = []
            for command, shown in session(match["text"]):
                if "../shared/" in command and not SHARED.exists():
                    lines.append(f"$ {command}\n{shown}")
                    continue
                result = subprocess.run(["sh", "-c", command], cwd=folder, env=environment, text=True, timeout=300,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                same = result.returncode not in (126, 127) and shows(shown, result.stdout)
                if not same:
                    differing.append(f"{page.name}: $ {command}\n--- shown\n{shown}--- printed\n{result.stdout}")
                lines.append(f"$ {command}\n{shown if same else result.stdout}")
            return f"```console\n{''.join(lines)}```"

        return BLOCK.sub(rewrite, text), differing


def anchors(text):
    """The names that a page's headings get: lower case, without punctuation, spaces as hyphens."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


NAMES_DATA = "pages.test_sessions_print_what_is_shown"  # read by tests/skips.py
print(f"USED: {NAMES_DATA}: ../shared/data" if SHARED.exists() else f"SKIPPED: {NAMES_DATA}: no ../shared/data", flush=True)


class pages(unittest.TestCase):
    def test_quoted_code_is_in_its_file(self):
        for page in PAGES:
            for block in BLOCK.finditer(page.read_text()):
                with self.subTest(page=page.name, block=block["text"][:60]):
                    if block["kind"] == "cpp":
                        self.assertIsNotNone(block["origin"], "which file is this code from?")
                    if block["origin"]:
                        self.assertTrue(stands_in(block["text"], (SOURCE / block["origin"]).read_text()), block["origin"])

    def test_sessions_print_what_is_shown(self):
        if not CLI:
            self.skipTest("the command line program is not built")
        for page in PAGES:
            _, differing = replay(page, page.read_text())
            self.assertEqual(differing, [], "\n".join(differing))

    def test_links_lead_somewhere(self):
        for page in sorted(DOCS.rglob("*.md")):
            text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.M | re.S)
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                with self.subTest(page=page.name, target=target):
                    if re.match(r"https?:", target):
                        continue
                    path, _, anchor = target.partition("#")
                    there = (page.parent / path).resolve() if path else page
                    self.assertTrue(there.exists(), target)
                    if anchor:
                        self.assertIn(anchor, anchors(there.read_text()))


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        for each in PAGES:
            each.write_text(replay(each, each.read_text())[0])
    else:
        unittest.main()
