"""Rules of the repository, checked without a compiler: the licence of each source file, calls of functions whose results
depend on the C library, the terms of the glossary, and the lists of files that a new component touches.
SPDX-License-Identifier: Apache-2.0"""
import itertools
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
import rooms

SOURCES = ("*.c", "*.cpp", "*.cu", "*.h", "*.hpp", "*.py", "*.rs", "*.sh", "*.cmake", "CMakeLists.txt", "Makefile")
ROOMS = (*rooms.PRODUCT, "extras", "tests", "examples", "scripts", "cmake", "benchmarks")
IDENTIFIER = "SPDX-License-" + "Identifier:"  # in two parts, so that this line is not found as the identifier
HEADER_FOLDERS = ("sdk/include/tenon", "host/include/tenon", "bindings/arrow/include/tenon")


def sources(root):
    """The source files below root, including scripts without a suffix."""
    found = [*root.glob("*.cmake"), *root.glob("CMakeLists.txt")]
    for room in ROOMS:
        for pattern in SOURCES:
            found += (root / room).rglob(pattern)
        found += [path for path in (root / room).rglob("*") if not path.suffix and interpreter(path)]
    exhibits = root / "tests/museum/sources"  # which stay as they were written
    return sorted({path for path in found if path.stat().st_size > 0 and exhibits not in path.parents})


def interpreter(path):
    """Returns what runs a script, such as "/usr/bin/env python3"; "" of any other file."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        line = file.readline(80) if file.read(2) == b"#!" else b""
    return line.decode("utf-8", "replace").strip()


def is_python(path):
    return path.suffix == ".py" or (not path.suffix and "python" in interpreter(path))


def check_licences(root):
    """Checks that each source file has its whole identifier on one line, since licence scanners read line by line."""
    for path in sources(root):
        name = path.relative_to(root)
        licence = "MIT" if name.parts[0] == "sdk" or name.parts[:3] == ("tests", "sdk", "released") else "Apache-2.0"
        whole = rf"{IDENTIFIER} {re.escape(licence)}( \*/|\"\"\")?$"
        lines = [line for line in path.read_text(encoding="utf-8").splitlines()[:60] if IDENTIFIER in line]
        if not any(re.search(whole, line) for line in lines):
            yield f"{name}: no line ends with \"{IDENTIFIER} {licence}\""


# Sums, products, quotients, square roots and fused multiply-adds are the same everywhere; these are not.
ELEMENTARY = (r"(?:exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|sin|cos|tan|sinh|cosh|tanh|asin|acos|atan|atan2|erf|erfc|cbrt|"
              r"hypot|lgamma|tgamma)[fl]?\b")
OF_LIBRARY = {"C++": re.compile(rf"\bstd::{ELEMENTARY}"), "C": re.compile(rf"(?<![\w.>])(?:std::)?{ELEMENTARY}(?=\()")}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
COMPUTING_ROOMS = ("base", "core", "host", "plugins", "sdk")
LIBRARY_CALLERS = {
    "sdk/include/tenon/op_value.h",  # the definition that tests compare with: independent of tenon/elementary.h
}


def library_calls(path, text):
    """(line number, name) of each elementary function of the C library that a source calls or names."""
    code = COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    pattern = OF_LIBRARY["C" if path.suffix == ".c" or (path.suffix == ".h" and path.parts[0] == "sdk") else "C++"]
    for match in pattern.finditer(code):
        yield code.count("\n", 0, match.start()) + 1, match[0]


def check_elementary(root):
    """Checks that what computes results calls the elementary functions of the SDK, not those of the C library."""
    for path in sources(root):
        name = path.relative_to(root)
        if (path.suffix not in (".c", ".cpp", ".h", ".hpp") or name.parts[0] not in COMPUTING_ROOMS
                or name.parts[:2] == ("host", "cli") or name.as_posix() in LIBRARY_CALLERS):
            continue
        for line, function in library_calls(name, path.read_text(encoding="utf-8")):
            yield f"{name}:{line}: {function} depends on the C library and the processor; expected that of tenon/elementary.h"


def terms(rows):
    """(line number, term, cells) of each row of the glossary's table."""
    for number, line in rows[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        yield number, cells[0].strip("`"), cells


def check_glossary(root, document, prose, texts):
    """Checks that terms are sorted, complete, and used in a page or a public header. texts: the other pages."""
    rows = [(number, line) for number, line in prose if line.startswith("|")]
    for folder in HEADER_FOLDERS:
        texts = texts + [path.read_text(encoding="utf-8") for path in sorted((root / folder).glob("*.h*"))]
    text, before = "\n".join(texts), ""
    for number, term, cells in terms(rows):
        where = f"{document}:{number}"
        if len(cells) != 4 or not all(cells):
            yield f"{where}: \"{term}\" has {len(cells)} columns with text; expected 4"
        if term.casefold() <= before.casefold():
            yield f"{where}: \"{term}\" stands after \"{before}\""
        before = term
        word = re.sub(r" \(.*\)$", "", term)
        if not re.search(r"\b" + r"\s+".join(map(re.escape, word.split())) + r"s?\b", text, re.IGNORECASE):
            yield f"{where}: no page and no public header uses \"{word}\""


PROBE = "TN_OP_ERF"  # a unary opcode, to find the files that name each of them


def numbered_lists(prose):
    """(line number, heading, items, text) of each "**heading: N files**" and what follows up to the next one."""
    starts = [k for k, (_, line) in enumerate(prose) if line.startswith(("**", "## "))] + [len(prose)]
    for start, end in itertools.pairwise(starts):
        match = re.match(r"\*\*(.*): (\d+) files\*\*", prose[start][1])
        if match:
            lines = [line for _, line in prose[start:end]]
            items = sum(bool(re.match(r"\d+\. ", line)) for line in lines)
            yield prose[start][0], match[1], int(match[2]), items, "\n".join(lines)


def check_lists(root, document, prose):
    """Checks that headings state the number of files of the list below, and that no file of an opcode is left out."""
    for number, heading, stated, items, text in numbered_lists(prose):
        if stated != items:
            yield f"{document}:{number}: \"{heading}\" states {stated} files and lists {items}"
        if heading != "A unary opcode":
            continue
        for room in rooms.PRODUCT:
            for path in sorted((root / room).rglob("*.*")):
                name = str(path.relative_to(root))
                if path.suffix in (".h", ".hpp", ".c", ".cpp", ".rs") and PROBE in path.read_text(encoding="utf-8") \
                        and f"`{name}`" not in text:
                    yield f"{document}:{number}: \"{heading}\" lacks {name}, which names {PROBE}"
