# SPDX-License-Identifier: BSL-1.0
"""Compiles a source, whose comments say what must happen. Usage: run.py SOURCE COMPILER [FLAG ...]

// expect: words    each paragraph (lines without an empty one between them) from here to the next such comment fails, and the words
                    appear in its first error or the 15 lines after it; of several such lines in a row, all must appear
// expect-ok        from here on, all compiles: what the rest uses, or the twins that show that errors come from the faults alone

An error at any other line of the source fails the test. What names no line of it follows from another error."""

import pathlib
import re
import subprocess
import sys

LINES_ALLOWED = 15

source, *command = sys.argv[1:]
cases = []  # numbers of lines, words
words, in_comment, in_case = [], False, False
for number, line in enumerate(pathlib.Path(source).read_text().splitlines(), 1):
    if line.startswith("// expect"):
        words = (words if in_comment else []) + [line.removeprefix("// expect: ")] if ": " in line else []
        in_comment, in_case = True, False
    elif in_comment and words and line.startswith("// "):  # a long sentence goes on
        words[-1] += " " + line.removeprefix("// ")
    else:
        if line and words and not in_case:
            cases.append((set(), words))
        in_comment, in_case = False, bool(line and words)
        if in_case:
            cases[-1][0].add(number)

done = subprocess.run(command + [source], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

# Errors, each with what stands before it to say where it comes from, and with the notes behind it.
before_error = re.compile(r"(In file included|\s+) from |.*: (In|At) .*:$|.*required (from|by)")
errors, before = [], []
for line in done.stdout.splitlines():
    if before_error.match(line) or (before and re.match(r"\s*\d*\s*\|", line)):
        before.append(line)
        continue
    if re.search(r": (fatal )?error: ", line):
        errors.append((before, [line]))
    elif errors:
        errors[-1][1].extend(before + [line])
    before = []

place = re.compile("(?<!from )" + re.escape(source) + r":(\d+):")
told = [[] for _ in cases]
failures = [] if errors or done.returncode == 0 else [done.stdout]
for before, rest in errors:
    lines = [int(n) for n in place.findall("\n".join(before + rest))]
    of_cases = [i for n in lines for i, (numbers, _) in enumerate(cases) if n in numbers]
    if of_cases:
        told[of_cases[0]] += (before if told[of_cases[0]] else []) + rest
    elif lines:
        failures.append("\n".join(rest) + f"\n{source}:{lines[0]}: must compile")
for (numbers, words), lines in zip(cases, told):
    seen = "\n".join(lines[:LINES_ALLOWED + 1])
    failures += [f"{seen}\n{source}:{min(numbers)}: not in the first error or the {LINES_ALLOWED} lines after it: {each}"
                 for each in words if each not in seen]
print("\n\n".join(failures))
sys.exit(bool(failures))
