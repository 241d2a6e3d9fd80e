"""One build with all mutants: the sources are copied to build-mutants/source, woven, and built in a subfolder with the
flags of the preset release, so that a compiler cache has the unchanged files from other builds of this checkout.
SPDX-License-Identifier: Apache-2.0"""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess

import catalogue
import tree
import weave

SOURCE = tree.FOLDER / "source"
BUILD = SOURCE / "build"
SCRIPTS = {"sdk/projects": (), "sdk/manifest/refusals": ("test_sdk_bad_manifests",)}  # tests that are scripts: targets


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
        if name in edits and not name.endswith(".py"):
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


@contextlib.contextmanager
def package(edit):
    """The path of a folder with the Python package of the build, of which one module is changed."""
    folder = BUILD / f"python-{edit.mutant.id}"  # beside "python": the package finds libraries relative to its place
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(BUILD / "python", folder, symlinks=True)
    try:
        module = folder / "tenon" / edit.mutant.file.removeprefix("bindings/python/tenon/")
        module.unlink()
        module.write_bytes(catalogue.changed(edit))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def configure():
    """Configures the build; with the Python package, and with the device cuda where its headers are."""
    python = subprocess.run([str(catalogue.ROOT / "scripts" / "venv")], check=True, capture_output=True, text=True)
    BUILD.mkdir(parents=True, exist_ok=True)
    subprocess.run([str(catalogue.ROOT / "scripts" / "venv"), "cluster"], check=True, stdout=subprocess.DEVNULL)
    for name in ("cuda", "venv-cluster"):  # of scripts/install-cuda, and of the tests of clusters
        if (catalogue.ROOT / "build" / name).exists() and not (BUILD / name).exists():
            (BUILD / name).symlink_to(catalogue.ROOT / "build" / name)
    command = ["cmake", "-S", str(SOURCE), "-B", str(BUILD), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
               "-DTENON_TESTS=ON", "-DTENON_PYTHON=ON", f"-DPython_EXECUTABLE={python.stdout.strip()}"]
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


def _targets():
    command = ["ninja", "-C", str(BUILD), "-t", "targets", "all"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return re.findall(r"^(\w+): phony", printed, re.MULTILINE)


def product_targets():
    """The library, the programs, the Python module, the conformance kit and every plugin."""
    plugins = [name for name in _targets() if re.match("tenon_((layers|updaters|readers|devices|comms)_|launch$|dist$)", name)]
    return ["tenon", "tenon_cli", "tenon_check", "tenon_check_program", "tenon_convert_program",
            "tenon_python", *[name for name in plugins if not name.endswith(("_objects", "_writer"))]]


def test_files():
    """The path of each file of tests without its suffix, as it begins the names of its tests."""
    tests = catalogue.ROOT / "tests"
    lists = [tests / "CMakeLists.txt", *sorted(tests.rglob("tests.cmake"))]
    named = [name for file in lists for name in re.findall(r"^ *tenon_test\((\S+)\)", file.read_text("utf-8"), re.MULTILINE)]
    python = sorted([*tests.glob("bindings/python/test_*.py"), *tests.glob("cluster/test_*.py")])
    return [*named, *(str(path.relative_to(tests).with_suffix("")) for path in python), *SCRIPTS]


def targets_of(files):
    """What must be built beside the products for these files of tests."""
    wanted = {"test_" + name.replace("/", "_") for name in files} & set(_targets())
    wanted.update(*(SCRIPTS.get(name, ()) for name in files))
    return sorted(wanted | ({"tenon_nonconforming"} if any(name.startswith("check/") for name in files) else set()))


def faulty(printed):
    """({numbers of mutants that do not compile}, [errors outside of mutants]) from the output of a compiler. An error
    may be in a header, with the mutant at the place that the header's code is required from, or after the mutant, such
    as a function that must not return but does. If no error is in a mutant, the last mutants before errors count."""
    numbers, others, guessed, woven = set(), [], set(), {}
    error = re.compile(r"^(\S+?):(\d+):(?:\d+:)? +((?:fatal )?error:|required from)", re.MULTILINE)
    for path, line, kind in error.findall(printed):
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
