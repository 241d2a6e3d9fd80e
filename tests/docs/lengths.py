"""The lengths that docs/contributing.md states: of files and of functions, checked without a compiler.
SPDX-License-Identifier: Apache-2.0"""
import ast
import collections
import json
import pathlib
import re
import subprocess

import rules

MOST_LINES = {"file": 500, "function": 60}
MOST_SOURCES = 35  # of a folder of the product, but the folders of public headers, which do not move
PUBLIC = {"sdk/include/tenon", "host/include/tenon"}
C_SOURCES = {".c", ".cpp", ".cu", ".h", ".hpp"}
FUNCTIONS = ("--languages=C,C++,CUDA", "--kinds-C=f", "--kinds-C++=f", "--kinds-CUDA=f", "--fields=+ne")


# What the lines of a table begin with: one row a line, so that its length is that of what it lists.
ROW = re.compile(r"\s*(case |default:|return |\{|\"|\.def)")
SHARE_OF_ROWS = 0.7


def is_table(lines):
    """Whether a function is a switch or a list of rows, which no division would make easier to read."""
    return sum(ROW.match(line) is not None for line in lines) >= SHARE_OF_ROWS * len(lines)


def of_python(path):
    """(line number, name, lines) of each function of a Python file, without its docstring."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0]
            docstring = ast.get_docstring(node, clean=False) is not None
            text = first.end_lineno - first.lineno + 1 if docstring else 0
            yield node.lineno, node.name, node.end_lineno - node.lineno + 1 - text


def of_c(paths):
    """(path, line number, name, lines) of each function of the C and C++ files, as Universal Ctags finds them."""
    names = "\n".join(map(str, paths))
    tags = subprocess.run(["ctags", *FUNCTIONS, "--output-format=json", "-f", "-", "-L", "-"], input=names, text=True,
                          capture_output=True, check=True).stdout
    for tag in map(json.loads, tags.splitlines()):
        # An inner function is a part of the lines around it; ctags calls a lambda anonymous.
        if "end" in tag and not tag["name"].startswith("__anon"):
            yield tag["path"], tag["line"], tag["name"], tag["end"] - tag["line"] + 1


def check_folders(root, paths):
    folders = collections.Counter(path.relative_to(root).parent.as_posix() for path in paths
                                  if path.suffix in C_SOURCES or rules.is_python(path))
    for folder, sources in sorted(folders.items()):
        if sources > MOST_SOURCES and folder not in PUBLIC and not folder.startswith("tests"):
            yield f"{folder}: {sources} sources; expected at most {MOST_SOURCES}"


def check(root):
    """Complaints about all sources below root but the released headers, which stay as they are."""
    released = root / "tests/sdk/released"
    paths = [path for path in rules.sources(root) if released not in path.parents]
    for path in paths:
        name, most = path.relative_to(root), MOST_LINES["file"]
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > most:
            yield f"{name}: {lines} lines; expected at most {most}"
    yield from check_folders(root, paths)
    functions = list(of_c(path for path in paths if path.suffix in C_SOURCES))
    for path in paths:
        if rules.is_python(path):
            functions += [(path, *function) for function in of_python(path)]
    for path, line, name, lines in functions:
        text = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
        if lines > MOST_LINES["function"] and not is_table(text[line - 1:line - 1 + lines]):
            where = f"{pathlib.Path(path).relative_to(root)}:{line}"
            yield f"{where}: {name} has {lines} lines; expected at most {MOST_LINES['function']}"
