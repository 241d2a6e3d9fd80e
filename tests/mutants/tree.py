"""The files of the checkout that mutants are drawn from and that results depend on.
SPDX-License-Identifier: Apache-2.0"""
import hashlib
import subprocess

import catalogue

FOLDER = catalogue.ROOT / "build-mutants"
# Files that results depend on; after changes of others (documents, benchmarks, scripts) results stay valid.
DECIDING = ("core/", "host/", "sdk/", "plugins/", "tests/", "cmake/", "CMakeLists.txt")
NOT_DECIDING = ("tests/mutants/", "tests/docs/")


def tracked():
    """The files of the checkout: those of git, and new ones that it does not ignore."""
    command = ["git", "-C", str(catalogue.ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")
    return sorted({name for name in names if name and (catalogue.ROOT / name).is_file()})


def product(path):
    """Whether mutants are drawn from the file. The test machines cannot run the device cuda, and the templates are
    plugins to copy."""
    return path.endswith((".cpp", ".c", ".h", ".hpp")) and path.startswith(("core/", "host/", "sdk/", "plugins/")) and \
        not path.startswith(("plugins/devices/cuda/", "sdk/template"))


def digest(files):
    """A hash of the sources and of the tests, without mutants."""
    whole = hashlib.sha256()
    for name in files:
        if name.startswith(DECIDING) and not name.startswith(NOT_DECIDING):
            whole.update(f"{name}\0".encode() + hashlib.sha256((catalogue.ROOT / name).read_bytes()).digest())
    return whole.hexdigest()[:16]
