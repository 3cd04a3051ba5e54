#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Writes what the reproduction programs find into docs/reproduction/*.md and docs/images/*.svg.

bench/reproduce/NAME.cpp prints the sections of docs/reproduction/NAME.md; a section replaces what stands between
`<!-- begin SECTION -->` and `<!-- end SECTION -->` there. Prose outside stays. A region without a section, a section without a
region, and a picture that the page does not show are errors; then nothing of the page is written.

usage: update.py [--check | --quick] [--programs FOLDER] [NAME ...]
    --check      changes nothing; fails, and shows what differs, where the pages are not current. Sections with measured times
                 (`<!-- begin SECTION timed -->`) are not compared.
    --quick      changes nothing; asks only whether sections and regions fit each other
    --programs   where reproduce_NAME are; build/release/bin if not given
"""

import argparse
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MARK = re.compile(r"<!-- (begin|end) (\S+?)( timed)? -->\n?")


class fault(Exception):
    pass


def regions(text, where):
    """[(name or None, timed, text)]: the text in pieces, the marks' lines not among them."""
    pieces, open_name, timed, current = [], None, False, []
    for line in text.splitlines(keepends=True):
        mark = MARK.fullmatch(line)
        if not mark:
            current.append(line)
            continue
        kind, name = mark[1], mark[2]
        if (kind == "end") != (open_name is not None) or (kind == "end" and name != open_name):
            raise fault(f"{where}: unexpected {line.strip()}")
        if kind == "begin" and any(name == piece[0] for piece in pieces):
            raise fault(f"{where}: two regions {name}")
        pieces.append((open_name, timed, "".join(current)))
        open_name, timed, current = (name, bool(mark[3]), []) if kind == "begin" else (None, False, [])
    if open_name is not None:
        raise fault(f"{where}: <!-- begin {open_name} --> has no end")
    pieces.append((None, False, "".join(current)))
    return pieces


def written(pieces):
    text = ""
    for name, timed, content in pieces:
        text += content if name is None else f"<!-- begin {name}{' timed' if timed else ''} -->\n{content}<!-- end {name} -->\n"
    return text


def run(program, images, quick):
    command = [str(program), "--images", images] + (["--quick"] if quick else [])
    try:
        result = subprocess.run(command, text=True, stdout=subprocess.PIPE)
    except OSError as e:
        raise fault(f"{program}: {e.strerror}; build the target bench, or name the programs' folder with --programs")
    if result.returncode != 0:
        raise fault(f"{program}: exit status {result.returncode}")
    return {name: (timed, content) for name, timed, content in regions(result.stdout, program.name) if name is not None}


def fit(page, pieces, sections, pictures):
    """The page's pieces with what the program found."""
    known = {name for name, _, _ in pieces if name is not None}
    faults = [f"{page.name}: no section for the region {name}" for name in sorted(known - sections.keys())]
    faults += [f"{page.name}: no region for the section {name}" for name in sorted(sections.keys() - known)]
    text = written(pieces)
    faults += [f"{page.name}: does not show the picture {p.name}" for p in pictures if f"](../images/{p.name})" not in text]
    if faults:
        raise fault("\n".join(faults))
    return [(name, *sections[name]) if name is not None else (name, timed, content) for name, timed, content in pieces]


def differences(path, old, new):
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), f"{path.name} (as it is)", f"{path.name} (as it would be)", lineterm="", n=0)
    return "".join(line[:400] + "\n" for line in lines)


def bring_up_to_date(page, program, docs, check, quick):
    """Text that says what is not current; empty if all is, or now is."""
    with tempfile.TemporaryDirectory() as folder:
        pieces = regions(page.read_text(), page.name)
        sections = run(program, folder, quick)
        pictures = sorted(pathlib.Path(folder).iterdir())
        fitted = fit(page, pieces, sections, pictures)
        if quick:
            return ""
        if check:  # times are kept as they are
            fitted = [old if new[0] is not None and new[1] and old[1] else new for old, new in zip(pieces, fitted)]
        results = [(page, written(fitted))] + [(docs / "images" / p.name, p.read_text()) for p in pictures]
    told = ""
    for path, text in results:
        old = path.read_text() if path.exists() else ""
        if old == text:
            continue
        if check:
            told += differences(path, old, text) if path == page else f"{path.name}: another picture\n"
        else:
            path.write_text(text)
            print(f"{path.relative_to(docs)}: updated")
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--check", action="store_true")
    how.add_argument("--quick", action="store_true")
    parser.add_argument("--programs", type=pathlib.Path, default=SOURCE / "build/release/bin")
    parser.add_argument("--docs", type=pathlib.Path, default=SOURCE / "docs", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="NAME")
    asked = parser.parse_args()
    names = asked.names or sorted(p.stem for p in (SOURCE / "bench/reproduce").glob("*.cpp"))
    told = ""
    if not asked.names:
        for page in sorted((asked.docs / "reproduction").glob("*.md")):
            if page.stem not in names and any(MARK.fullmatch(line) for line in page.read_text().splitlines(keepends=True)):
                told += f"{page.name}: has regions, but there is no bench/reproduce/{page.stem}.cpp\n"
    for name in names:
        page = asked.docs / "reproduction" / f"{name}.md"
        try:
            if not page.exists():
                raise fault(f"{page}: no such page")
            told += bring_up_to_date(page, asked.programs / f"reproduce_{name}", asked.docs, asked.check, asked.quick)
        except fault as e:
            told += f"{e}\n"
    if told:
        sys.exit(told.rstrip("\n"))


if __name__ == "__main__":
    main()
