#!/usr/bin/env python3
"""Counts, by room, what docs/contributing.md asks new code not to have: values named by a participle or a pronoun, classes
called Run, and lines with two conditional expressions. naming.txt has the counts that may not rise.
  naming.py ROOT            fails for a room with more, or with fewer than its row says
  naming.py ROOT --record   writes naming.txt; refuses a higher count
SPDX-License-Identifier: Apache-2.0"""
import collections
import pathlib
import re
import sys

import rules

RECORD = pathlib.Path(__file__).with_name("naming.txt")
WORDS = "made|found|given|of|known|it|whole|wanted|told"
NAMED = re.compile(r"\b(?!return|else|case|throw|delete|new|using|goto)[A-Za-z_][\w:]*(?:<[^;()]*>)?(?:\s*[*&]+|\s)\s*"
                   rf"(?:const\s+)?(?:{WORDS})\s*(?=[=;{{(,):\[])")
RUN = re.compile(r"\b(?:class|struct) Run\b")
CODE = re.compile(r"\"(?:\\.|[^\"\\])*\"|//.*")
SUFFIXES = {".c", ".cpp", ".cu", ".h", ".hpp"}


def count(text):
    """The findings in a source of C or C++."""
    lines = [CODE.sub("", line) for line in re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).splitlines()]
    return sum(len(NAMED.findall(line)) + len(RUN.findall(line)) + (len(re.findall(r"\?\s", line)) > 1) for line in lines)


def counts(root):
    result = collections.Counter()
    for path in rules.sources(root):
        name = path.relative_to(root)
        if path.suffix in SUFFIXES and name.parts[0] not in ("tests", "examples", "benchmarks"):
            room = "/".join(name.parts[:-1][:3])
            result[room] += count(path.read_text(encoding="utf-8"))
    return {room: number for room, number in sorted(result.items()) if number > 0}


def recorded(path=RECORD):
    rows = (line.split() for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
    return {room: int(number) for number, room in rows}


def check(now, before):
    for room in sorted({*now, *before}):
        has, may = now.get(room, 0), before.get(room, 0)
        if has > may:
            yield f"{room}: {has} names that are no nouns, classes called Run and lines with two ?:; expected at most {may}"
        elif has < may:
            yield f"{room}: {has} are left of {may}: run tests/docs/naming.py . --record"


def main(root, record=False):
    now = counts(pathlib.Path(root).resolve())
    before = recorded() if RECORD.exists() else {}
    if record:
        worse = [line for line in check(now, before) if "expected at most" in line] if before else []
        if worse:
            sys.exit("\n".join(worse))
        rows = "".join(f"{number} {room}\n" for room, number in now.items())
        head = "# What naming.py counts, by room. The numbers only fall. SPDX-License-Identifier: Apache-2.0\n"
        RECORD.write_text(head + rows, encoding="utf-8")
        return
    sys.exit("\n".join(check(now, before)) or 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] == ["--record"])
