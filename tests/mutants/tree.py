"""The files of the checkout that mutants are drawn from and that results depend on.
SPDX-License-Identifier: Apache-2.0"""
import hashlib
import re
import subprocess
import sys

import catalogue

sys.path.insert(0, str(catalogue.ROOT / "scripts"))
import rooms

FOLDER = catalogue.ROOT / "build-mutants"
# Files that results depend on; after changes of others (documents, benchmarks, scripts) results stay valid.
DECIDING = (*(f"{room}/" for room in rooms.PRODUCT), "tests/", "cmake/", "CMakeLists.txt")
NOT_DECIDING = ("tests/mutants/", "tests/docs/")


def tracked():
    """The files of the checkout: those of git, and new ones that it does not ignore."""
    command = ["git", "-C", str(catalogue.ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")
    return sorted({name for name in names if name and (catalogue.ROOT / name).is_file()})


def changed_lines(commit, root=catalogue.ROOT):
    """{file: numbers of its lines} that differ from a commit; of sources of the product."""
    command = ["git", "-C", str(root), "diff", "--unified=0", "--no-color", "--no-renames", "--no-ext-diff",
               "--src-prefix=a/", "--dst-prefix=b/", commit, "--"]
    changed, name = {}, ""
    for line in subprocess.run(command, check=True, capture_output=True).stdout.decode("utf-8", "replace").split("\n"):
        if line.startswith("+++ "):
            name = line.removeprefix("+++ b/")
        found = re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)
        if found and product(name):
            first, count = int(found.group(1)), int(found.group(2) or 1)
            changed.setdefault(name, set()).update(range(first, first + count))
    return {name: lines for name, lines in changed.items() if lines}


def product(path):
    """Whether mutants are drawn from the file: a source of the product in C, C++ or Python."""
    folders = tuple("bindings/python/src/" if room == "bindings" else f"{room}/" for room in rooms.PRODUCT)
    return (path.endswith((".cpp", ".c", ".h", ".hpp")) and path.startswith(folders)) or \
        (path.endswith(".py") and path.startswith("bindings/python/tenon/"))


def digest(files):
    """A hash of the sources and of the tests, without mutants."""
    whole = hashlib.sha256()
    for name in files:
        if name.startswith(DECIDING) and not name.startswith(NOT_DECIDING):
            whole.update(f"{name}\0".encode() + hashlib.sha256((catalogue.ROOT / name).read_bytes()).digest())
    return whole.hexdigest()[:16]
