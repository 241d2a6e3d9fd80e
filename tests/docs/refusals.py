#!/usr/bin/env python3
"""Tests the checks of the documents: each wrong document or source below must cause its own complaint.
  refusals.py FOLDER     works in FOLDER
SPDX-License-Identifier: Apache-2.0"""
import pathlib
import shutil
import sys

import documents
import scratch
import snippets

FENCE = "```"
WRONG = {  # document: part of the complaint
    f"{FENCE}cpp\nint i;\n{FENCE}\n": "README.md:1: a block of cpp without",
    f"{FENCE}toml\npasses = 1\n{FENCE}\n": "a block of toml without",
    f"<!-- snippet: toml -->\n\n{FENCE}toml\npasses = 1\n{FENCE}\n": "a block of toml without",
    f"<!-- snippet: haskell -->\n{FENCE}c\nint i;\n{FENCE}\n": "unknown kind of snippet \"haskell\"",
    f"<!-- snippet: cpp app -->\n{FENCE}c\nint i;\n{FENCE}\n": "a snippet \"cpp\" in a block of c",
    f"<!-- snippet: cpp tool -->\n{FENCE}cpp\nint i;\n{FENCE}\n": "must be followed by plugin or app",
    f"<!-- snippet: file core/a.h -->\n{FENCE}c\nint b;\n{FENCE}\n": "differs from core/a.h",
    f"<!-- snippet: file core/a.h part -->\n{FENCE}c\nint a;\nint a2;\n{FENCE}\n": "differs from core/a.h part",
    f"<!-- snippet: file core/a.h other -->\n{FENCE}c\nint a;\n{FENCE}\n": "has 0 lines \"docs: other\"",
    f"<!-- snippet: file core/b.h -->\n{FENCE}c\nint a;\n{FENCE}\n": "core/b.h",
    "[there](docs/none.md)\n": "the link docs/none.md leads nowhere",
    "[there](#nowhere)\n": "has no heading for #nowhere",
    "`core/b.h`\n": "there is no core/... `core/b.h`",
    "`core/{a,b}.h`\n": "`core/b.h`",
    "`build/bin/tool`\n": "`bin/tool`",
    "`tests/<name>/a_test.cpp`\n": "`tests/*/a_test.cpp`",
    "`tenon/none.h`\n": "`tenon/none.h`",
}
RIGHT = f"""# A title: `code`
[here](#a-title-code) [there](docs/page.md#heading) `core/{{a,a}}.h` `core/*.h` `bin/x` `<core/b.h>`
<!-- snippet: file core/a.h part -->
{FENCE}c
int a;
{FENCE}
{FENCE}sh
anything
{FENCE}
"""
# document with other output, a failing command, or an absent plugin: part of the complaint
BROKEN = {
    f"<!-- snippet: output echo one two -->\n{FENCE}text\none  three\n{FENCE}\n": "prints\none two",
    f"<!-- snippet: sh run -->\n{FENCE}sh\nfalse\ntrue\n{FENCE}\n": "ended with 1",
    f"<!-- snippet: manifest layers/none -->\n{FENCE}json\n{{}}\n{FENCE}\n": "no plugin layers/none was built",
}
# source: part of the complaint after its name
LICENCE = "SPDX-License-Identifier:"
WRONG_SOURCES = {
    f"// What it holds. {LICENCE}\n// Apache-2.0\nint a;\n": f"no line ends with \"{LICENCE} Apache-2.0\"",
    f"// {LICENCE} MIT\n": "Apache-2.0",
    f"// {LICENCE} Apache-2.0, more or less\n": "Apache-2.0",
    "int a;\n": "Apache-2.0",
}
RIGHT_SOURCES = (f"// What it holds. {LICENCE} Apache-2.0\n", f"/* {LICENCE} Apache-2.0 */\n",
                 f"\"\"\"{LICENCE} Apache-2.0\"\"\"\n", "")
TABLE = "| term | meaning | PyTorch | TensorFlow |\n|---|---|---|---|\n"
WRONG_GLOSSARIES = {
    "| layer | x | x | x |\n| cost | x | x | x |\n": "docs/glossary.md:4: \"cost\" stands after \"layer\"",
    "| cost | x | x | x |\n| Cost | x | x | x |\n": "\"Cost\" stands after \"cost\"",
    "| cost | x | x |\n": "\"cost\" has 3 columns with text",
    "| cost | x | x | |\n": "expected 4",
    "| price (of all) | x | x | x |\n": "no page and no public header uses \"price\"",
}
RIGHT_GLOSSARY = "| Cost (of one) | x | x | x |\n| data layer | x | x | x |\n| layer | x | - | - |\n"
LIST = "**A cost: 2 files**\n\n1. one\n"
WRONG_LISTS = {
    LIST: "docs/contributing.md:1: \"A cost\" states 2 files and lists 1",
    LIST + "2. two\n3. three\n": "states 2 files and lists 3",
    "**A unary opcode: 0 files**\n\n`core/a.h`\n": "\"A unary opcode\" lacks core/erf.h, which names TN_OP_ERF",
}
RIGHT_LISTS = [LIST + "2. two\n\n**Another: 0 files**\n", "**A unary opcode: 1 files**\n\n1. `core/erf.h`\n"]


def make_tree(root):
    scratch.emptied(root)
    for folder in ("docs", "core", "build", "tests"):
        (root / folder).mkdir(parents=True)
    (root / "docs/page.md").write_text("## Heading\n")
    (root / "core/a.h").write_text(f"// {LICENCE} Apache-2.0\n// docs: part\n  int a;\n// docs: end\n")


def refusals(root, path, wrong, right):
    """Failures of the checks: each text of `wrong` must cause its complaint, those of `right` none."""
    for text, expected in wrong.items():
        path.write_text(text)
        complaints = documents.check(root, root / "build")
        if len(complaints) != 1 or expected not in complaints[0]:
            yield f"expected one complaint with: {expected}\ngot: {complaints}\nof: {text}"
    for text in right:
        path.write_text(text)
        yield from documents.check(root, root / "build")


def main(root):
    make_tree(root)
    failures = list(refusals(root, root / "README.md", WRONG, [RIGHT]))
    failures += refusals(root, root / "core/wrong.h", WRONG_SOURCES, RIGHT_SOURCES)
    (root / "docs/page.md").write_text("## Heading\ncosts of a data layer\n")
    glossaries = {TABLE + text: expected for text, expected in WRONG_GLOSSARIES.items()}
    failures += refusals(root, root / "docs/glossary.md", glossaries, [TABLE + RIGHT_GLOSSARY])
    (root / "core/erf.h").write_text(f"// TN_OP_ERF\n// {LICENCE} Apache-2.0\n")
    failures += refusals(root, root / "docs/contributing.md", WRONG_LISTS, RIGHT_LISTS)
    (root / "data").mkdir()
    for text, expected in BROKEN.items():
        (root / "README.md").write_text(text)
        shutil.rmtree(root / "walks", ignore_errors=True)
        try:
            snippets.Walkthrough(root, "README.md").check(documents.all_blocks(root)[0])
            failures.append(f"no complaint about: {text}")
        except snippets.Broken as broken:
            if expected not in str(broken):
                failures.append(f"expected: {expected}\ngot: {broken}")
    if failures:
        sys.exit("\n".join(failures))
    wrong = len(WRONG) + len(WRONG_SOURCES) + len(WRONG_GLOSSARIES) + len(WRONG_LISTS) + len(BROKEN)
    print(f"{wrong} wrong documents and sources were found out")


main(pathlib.Path(sys.argv[1]).resolve())
