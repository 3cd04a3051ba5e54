# SPDX-License-Identifier: BSL-1.0
"""Counts the tests that were skipped for want of ../shared, and fails unless they are exactly those that may be.

    python3 tests/skips.py LOG [SHARED]     LOG: what ctest wrote, SHARED: the folder (default: beside this project)

With the folder no test may be skipped; without it those of skipped_without_shared.txt are, and no others.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main(log, shared=HERE.parents[1] / "shared"):
    skipped = set(re.findall(r"^SKIPPED: (.*): no \.\./shared/\S+$", pathlib.Path(log).read_text(errors="replace"), flags=re.M))
    if pathlib.Path(shared).is_dir():
        expected, where = set(), "../shared is there"
    else:
        lines = (HERE / "skipped_without_shared.txt").read_text().splitlines()
        expected, where = {line for line in lines if line and not line.startswith("#")}, "there is no ../shared"
    for name in sorted(skipped - expected):
        print(f"skipped, and must not be: {name}", file=sys.stderr)
    for name in sorted(expected - skipped):
        print(f"in skipped_without_shared.txt, and was not skipped: {name}", file=sys.stderr)
    print(f"{len(skipped)} tests skipped for want of data ({where})")
    return 0 if skipped == expected else 1


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
