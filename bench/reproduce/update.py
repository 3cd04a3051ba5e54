#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Writes what the reproduction programs find into docs/reproduction/*.md and docs/images/*.svg.

bench/reproduce/NAME.cpp prints the sections of docs/reproduction/NAME.md; a section replaces what stands between
`<!-- begin SECTION -->` and `<!-- end SECTION -->` there. Prose outside stays. A region without a section, a section without a
region, and a picture or a CSV table (docs/reproduction/tables) that the page does not show are errors; then nothing of the page is written.

The page's last line, `<!-- made from HASH -->`, is of the program's own sources and of what it wrote: it tells in no time that
either has changed since. Whether the library finds something else by now only a run can tell.

usage: update.py [--check | --quick] [--programs FOLDER] [NAME ...]
    --check      changes nothing; fails, and shows what differs, where the pages are not current: by their hash, and by a run. In
                 sections with measured times (`<!-- begin SECTION timed -->`) and tables of them (`NAME.timed.csv`) cells such as
                 "2.5 ms" or "3 x" are not compared.
    --quick      changes nothing; asks only for the hash, and whether sections and regions fit each other
    --programs   where reproduce_NAME are; build/release/bin if not given
"""

import argparse
import difflib
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MARK = re.compile(r"<!-- (begin|end) (\S+?)( timed)? -->\n?")
MADE_FROM = re.compile(r"<!-- made from (\w+) -->\n")
MEASURED = re.compile(r"^Measured on .*$|(?<=\| )(> )?[\d.e+]+ (ns|us|ms|s|min|h|x)(?= \|)", re.M)
MEASURED_CELL = re.compile(r"(?<![^,\n])(> )?[\d.e+]+ (ns|us|ms|s|min|h|x)(?![^,\n])")


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


def sources(name, bench):
    """What the program is made of here: its file, the files that it includes from here, and the settings that it reads."""
    found, left = {}, [bench / "reproduce" / f"{name}.cpp"]
    while left:
        path = left.pop()
        if path in found or not path.exists():
            continue
        found[path] = path.read_bytes()
        text = found[path].decode(errors="replace")
        for included in re.findall(r'^#include "(.+)"', text, re.M):
            left += [folder / included for folder in (path.parent, bench, bench.parent / "tests")]
        if "bench/settings" in text:
            left += (bench / "settings").iterdir()
    if not found:
        raise fault(f"{bench / 'reproduce' / name}.cpp: no such file")
    return [found[path] for path in sorted(found)]


def made_from(name, pieces, bench):
    written_by_it = "".join(f"{section}\n{content}" for section, _, content in pieces if section is not None)
    parts = [*sources(name, bench), written_by_it.encode()]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:12]


def with_hash(name, pieces, bench):
    text = MADE_FROM.sub("", written(pieces)).rstrip("\n")
    return f"{text}\n\n<!-- made from {made_from(name, pieces, bench)} -->\n"


def run(program, images, quick):
    command = [str(program), "--images", images] + (["--quick"] if quick else [])
    try:
        result = subprocess.run(command, text=True, stdout=subprocess.PIPE)
    except OSError as e:
        raise fault(f"{program}: {e.strerror}; build the target bench, or name the programs' folder with --programs")
    if result.returncode != 0:
        raise fault(f"{program}: exit status {result.returncode}")
    return {name: (timed, content) for name, timed, content in regions(result.stdout, program.name) if name is not None}


def place_of(made):
    """Where a page finds what a program made beside its sections: pictures, and tables as CSV."""
    return f"tables/{made.name}" if made.suffix == ".csv" else f"../images/{made.name}"


def fit(page, pieces, sections, pictures):
    """The page's pieces with what the program found."""
    known = {name for name, _, _ in pieces if name is not None}
    faults = [f"{page.name}: no section for the region {name}" for name in sorted(known - sections.keys())]
    faults += [f"{page.name}: no region for the section {name}" for name in sorted(sections.keys() - known)]
    text = written(pieces)
    faults += [f"{page.name}: does not show {p.name}" for p in pictures if f"]({place_of(p)})" not in text]
    if faults:
        raise fault("\n".join(faults))
    return [(name, *sections[name]) if name is not None else (name, timed, content) for name, timed, content in pieces]


def differences(path, old, new):
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), f"{path.name} (as it is)", f"{path.name} (as it would be)", lineterm="", n=0)
    return "".join(line[:400] + "\n" for line in lines)


def bring_up_to_date(page, name, program, docs, bench, check, quick):
    """Text that says what is not current; empty if all is, or now is."""
    told = ""
    with tempfile.TemporaryDirectory() as folder:
        pieces = regions(page.read_text(), page.name)
        if check or quick:
            known = MADE_FROM.search(page.read_text())
            if known is None or known[1] != made_from(name, pieces, bench):
                told += f"{page.name}: its program or its tables changed since it was made: run bench/reproduce/update.py {name}\n"
        sections = run(program, folder, quick)
        pictures = sorted(pathlib.Path(folder).iterdir())
        fitted = fit(page, pieces, sections, pictures)
        if quick:
            return told
        if check:  # times are kept as they are
            alike = [old[0] is not None and new[1] and MEASURED.sub("", old[2]) == MEASURED.sub("", new[2]) for old, new in zip(pieces, fitted)]
            fitted = [old if same else new for old, new, same in zip(pieces, fitted, alike)]
            results = [(page, page.read_text(), written(fitted))]
        else:
            results = [(page, page.read_text(), with_hash(name, fitted, bench))]
        images = [(docs / "reproduction" / place_of(p)).resolve() for p in pictures]
        results += [(image, image.read_text() if image.exists() else "", p.read_text()) for image, p in zip(images, pictures)]
    for path, old, text in results:
        timed = check and path.name.endswith(".timed.csv")
        if old == text or timed and MEASURED_CELL.sub("", old) == MEASURED_CELL.sub("", text):
            continue
        if check:
            told += f"{path.name}: another picture\n" if path.suffix == ".svg" else differences(path, old, text)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            print(f"{path.resolve().relative_to(docs.resolve())}: updated")
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--check", action="store_true")
    how.add_argument("--quick", action="store_true")
    parser.add_argument("--programs", type=pathlib.Path, default=SOURCE / "build/release/bin")
    parser.add_argument("--docs", type=pathlib.Path, default=SOURCE / "docs", help=argparse.SUPPRESS)
    parser.add_argument("--bench", type=pathlib.Path, default=SOURCE / "bench", help=argparse.SUPPRESS)
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
            told += bring_up_to_date(page, name, asked.programs / f"reproduce_{name}", asked.docs, asked.bench, asked.check, asked.quick)
        except fault as e:
            told += f"{e}\n"
    if told:
        sys.exit(told.rstrip("\n"))


if __name__ == "__main__":
    main()
