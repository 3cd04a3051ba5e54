# SPDX-License-Identifier: BSL-1.0
"""On a terminal the progress line neither falls back nor passes its end, however many parts a planner has."""
import os
import pty
import re
import subprocess
import unittest


def drawn(*arguments):
    """(filled, width, judged) of every line that was drawn."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([os.environ["HETPLAN_CLI"], *arguments], stdout=subprocess.DEVNULL, stderr=theirs) as program:
        os.close(theirs)
        text = b""
        try:
            while part := os.read(ours, 65536):
                text += part
        except OSError:  # raised by Linux once the last writer is gone
            pass
    os.close(ours)
    assert program.returncode == 0
    return [(line[1].count("#"), len(line[1]), int(line[2])) for line in re.finditer(r"\[([#.]+)\] (\d+) judged", text.decode())]


class Progress(unittest.TestCase):
    def test_it_never_falls_and_never_passes_the_end(self):
        for planner in ("dora", "pipeline"):
            with self.subTest(planner=planner):
                lines = drawn("plan", "bert-small", "smart-home-1", "--planner", planner)
                self.assertGreater(len(lines), 5)
                self.assertTrue(all(width == 30 for _, width, _ in lines))
                filled, judged = [x for x, _, _ in lines], [n for _, _, n in lines]
                self.assertEqual(filled, sorted(filled))
                self.assertEqual(judged, list(range(1, len(lines) + 1)))
                self.assertGreater(filled[-1], 20)


if __name__ == "__main__":
    unittest.main()
