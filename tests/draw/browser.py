# SPDX-License-Identifier: BSL-1.0
"""Pages in a real browser, for the tests beside it; without one they are skipped aloud."""

import html.parser
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
