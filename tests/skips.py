# SPDX-License-Identifier: BSL-1.0
"""Fails unless the tests that need ../shared are exactly those of skipped_without_shared.txt, and run where the folder is.

    python3 tests/skips.py [--shared FOLDER] LOG...     what ctest wrote of every test; FOLDER: beside this project if not given

Each test that needs the folder says that it USED it or was SKIPPED. With the folder the listed ones used it and none was
skipped; without it the listed ones were skipped. So a name that is missing in the list is found on either machine.
"""

import argparse
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main(logs, shared):
    lines = (HERE / "skipped_without_shared.txt").read_text().splitlines()
    listed = {line for line in lines if line and not line.startswith("#")}
    text = "".join(log.read_text(errors="replace") for log in logs)
    used = set(re.findall(r"^USED: (.*): \.\./shared/\S+$", text, flags=re.M))
    skipped = set(re.findall(r"^SKIPPED: (.*): no \.\./shared/\S+$", text, flags=re.M))
    there = shared.is_dir()
    may_skip, must_use = (set(), listed) if there else (listed, set())
    wrong = [f"skipped, and must not be: {name}" for name in sorted(skipped - may_skip)]
    wrong += [f"in skipped_without_shared.txt, and was not skipped: {name}" for name in sorted(may_skip - skipped)]
    wrong += [f"used ../shared, and is not in skipped_without_shared.txt: {name}" for name in sorted(used - listed)]
    wrong += [f"in skipped_without_shared.txt, and did not use ../shared: {name}" for name in sorted(must_use - used)]
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(skipped)} tests skipped for want of data ({'../shared is there' if there else 'there is no ../shared'})")
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=pathlib.Path, default=HERE.parents[1] / "shared")
    parser.add_argument("logs", nargs="+", type=pathlib.Path, metavar="LOG")
    asked = parser.parse_args()
    sys.exit(main(asked.logs, asked.shared))
