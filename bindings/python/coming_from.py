"""Writes the tables of docs/coming-from.md as a dict of Python: coming_from.py PAGE FILE.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import pprint
import re
import sys
from pathlib import Path


def spoken(cell: str) -> list[str]:
    """Returns the names of a cell: BatchNorm1d, BatchNorm2d, NLLLoss and so on of "BatchNorm1d, 2d, NLLLoss(weight), +"."""
    names: list[str] = []
    for each in re.sub(r"\([^()]*\)", "", cell.replace("`", "")).split(","):
        word = each.strip().rpartition(".")[2]
        if re.fullmatch(r"\dd", word) and names and names[-1][-2:-1].isdigit():
            word = names[-1][:-2] + word
        if re.fullmatch(r"[A-Za-z_]\w*", word):
            names.append(word)
    return names


def tables(page: str) -> dict[str, str]:
    """Returns what the first column's names are here: of rows whose second column is code, in the order of the page."""
    found: dict[str, str] = {}
    section = ""
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("## "):
            section = line[3:]
        refused = section == "Not offered"
        if len(cells) < 2 or section in ("Data", "First values", "Schedules") or not (refused or cells[1].startswith("`")):
            continue
        names, texts = spoken(cells[0]), re.findall(r"`([^`]*)`", cells[1])
        if refused:  # why, and what to use
            texts = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cells[1]).replace("`", "").strip(" |")]
        paired = texts if len(texts) == len(names) and section != "Made of several layers" else [", ".join(texts)] * len(names)
        for name, text in zip(names, paired, strict=True):
            for key in (name, name.lower()):
                found.setdefault(key, text)
    return found


def main() -> None:
    page, file = map(Path, sys.argv[1:3])
    names = pprint.pformat(tables(page.read_text(encoding="utf-8")), width=120, sort_dicts=False)
    file.write_text(f'"""Written by coming_from.py from docs/{page.name}."""\n\nNAMES = {names}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
