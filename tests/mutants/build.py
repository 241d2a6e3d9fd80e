"""One build with all mutants: the sources are copied to build-mutants/source, woven, and built in a subfolder with the
flags of the preset release, so that a compiler cache has the unchanged files from other builds of this checkout.
SPDX-License-Identifier: Apache-2.0"""
import os
import pathlib
import re
import subprocess

import catalogue
import tree
import weave

SOURCE = tree.FOLDER / "source"
BUILD = SOURCE / "build"


def _write(path, data, mode):
    """Writes a file only if it differs, so that other files are not compiled again."""
    if path.exists() and not path.is_symlink() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)


def copy(files, edits):
    """Copies the files, with the edits ({file: [edit]}) woven in, and removes all others from the copy."""
    for name in files:
        data = (catalogue.ROOT / name).read_bytes()
        if name in edits:
            data = weave.weave(data, edits[name])
        _write(SOURCE / name, data, (catalogue.ROOT / name).stat().st_mode & 0o777)
    wanted = set(files)
    for folder, folders, names in os.walk(SOURCE):
        if folder == str(SOURCE):
            folders[:] = [name for name in folders if name != BUILD.name]
        for name in names:
            path = pathlib.Path(folder, name)
            if str(path.relative_to(SOURCE)) not in wanted:
                path.unlink()


def configure():
    command = ["cmake", "-S", str(SOURCE), "-B", str(BUILD), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
               "-DTENON_TESTS=ON", "-DTENON_CUDA=OFF"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stdout)


def compile_all(targets, jobs, keep_going=False):
    """Builds the targets; returns the output of a build that fails, "" if it succeeds."""
    command = ["cmake", "--build", str(BUILD), "--parallel", str(jobs)]
    if targets:
        command += ["--target", *targets]
    if keep_going:
        command += ["--", "-k", "0"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout


def product_targets():
    """The library, the program and every plugin."""
    printed = subprocess.run(["ninja", "-C", str(BUILD), "-t", "targets", "all"], check=True, capture_output=True,
                             text=True).stdout
    plugins = re.findall(r"^(tenon_(?:layers|updaters|readers|devices)_[a-z0-9_]+): phony", printed, re.M)
    return ["tenon", "tenon_cli", *[name for name in plugins if not name.endswith(("_objects", "_writer"))]]


def targets_of(pattern):
    """The products, and the programs of the tests whose file matches."""
    named = re.findall(r"^tenon_test\((\S+)\)", (SOURCE / "tests/CMakeLists.txt").read_text(encoding="utf-8"), re.M)
    return product_targets() + ["test_" + name.replace("/", "_") for name in named if pattern.search(name)]


def faulty(printed):
    """({numbers of mutants that do not compile}, [errors outside of mutants]) from the output of a compiler. An error
    may be in a header, with the mutant at the place that the header's code is required from, or after the mutant, such
    as a function that must not return but does. If no error is in a mutant, the last mutants before errors count."""
    numbers, others, guessed, woven = set(), [], set(), {}
    for path, line, kind in re.findall(r"^(\S+?):(\d+):(?:\d+:)? +((?:fatal )?error:|required from)", printed, re.M):
        real = pathlib.Path(os.path.realpath(BUILD / path))
        if real not in woven:
            woven[real] = real.read_bytes() if real.is_file() and real.is_relative_to(SOURCE) else b""
        number = weave.mutant_at(woven[real], int(line))
        if number is not None:
            numbers.add(number)
        elif kind != "required from":
            others.append(f"{path}:{line}")
            guessed.add(weave.mutant_at(woven[real], int(line), before=True))
    return numbers or guessed - {None}, others
