"""docs/reports.md lists the cases of this folder, in their order. SPDX-License-Identifier: Apache-2.0"""

import ast
import pathlib

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parent.parent / "docs/reports.md"


def cases(path):
    """The first sentences of the cases of a file."""
    tree = ast.parse(path.read_text())
    return [ast.get_docstring(each).replace("\n", " ") for each in tree.body
            if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")]  # fmt: skip


def test_the_page_lists_the_cases():
    sections = {}
    for line in PAGE.read_text().splitlines():
        if line.startswith("## F"):
            kind = line.split()[1].rstrip(":").lower()
            sections[kind] = []
        elif line.startswith("- ") and sections:
            sections[kind].append(line[2:])
        elif line.startswith("  ") and sections and sections[kind]:
            sections[kind][-1] += " " + line.strip()
    files = {path.stem.split("_")[1]: cases(path) for path in sorted(HERE.glob("test_f*.py"))}
    assert {kind: sections.get(kind) for kind in files} == files
    assert all(len(listed) >= 5 for listed in files.values())
