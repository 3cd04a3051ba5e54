# SPDX-License-Identifier: BSL-1.0
"""Pages in a real browser, for the tests beside it; without one they are skipped aloud."""

import html.parser
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SKIPPED = 77


def browse(page, *arguments):
    with tempfile.TemporaryDirectory() as profile:
        command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1500,2000",
                   f"--user-data-dir={profile}", *arguments, page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL, check=True).stdout


class document(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.root = set(), {}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "html":
            self.root = attributes
        if "id" in attributes:
            self.ids.add(attributes["id"])


class page_test(unittest.TestCase):
    """Tests of the page that `make_page` writes, in a folder of their own."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = pathlib.Path(folder.name)
        cls.page = cls.path / "page.html"
        cls.make_page()

    @classmethod
    def make_page(cls):
        pass

    @staticmethod
    def run_cli(*arguments):
        return subprocess.run([os.environ["HETPLAN_CLI"], *arguments], check=True, capture_output=True, text=True, timeout=120).stdout

    def with_script(self, script, page=None):
        """A copy of a page with a script behind its own."""
        text = (page or self.page).read_text(encoding="utf-8")
        self.assertEqual(text.count("</body>"), 1)
        changed = self.path / "changed.html"
        changed.write_text(text.replace("</body>", script + "</body>"), encoding="utf-8")
        return changed

    def found_by(self, driver, page=None):
        """What a script finds once the page's own have run without an error."""
        root = document(browse(self.with_script(driver, page), "--dump-dom")).root
        self.assertEqual((root.get("data-ready"), root.get("data-error")), ("1", None))
        return json.loads(root["data-found"])

    def check_drawn(self, *arguments):
        """-> the rows of a screenshot, in many colours."""
        picture = self.path / "page.png"
        browse(self.page, *arguments, f"--screenshot={picture}")
        width, rows = pixels(picture)
        self.assertEqual(width, 1500)
        self.assertGreater(len(set(rows[i:i + 3] for i in range(0, len(rows), 997))), 50)
        return rows


def pixels(png):
    """The rows of a screenshot as they are stored; enough to see that something was drawn."""
    data, at, packed, width = png.read_bytes(), 8, b"", 0
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, = struct.unpack(">I", data[at + 8:at + 12])
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += 12 + length
    return width, zlib.decompress(packed)


def main():
    if BROWSER is None:
        print("skipped: no chromium, chromium-browser or google-chrome on the PATH", file=sys.stderr)
        sys.exit(SKIPPED)
    unittest.main()
