#!/usr/bin/env python3
"""Builds and runs the code of the documents with an installed Tenon, as a reader would:
  snippets.py CMAKE ROOT BUILD WORK CC CXX [LAUNCHER]
Installs into WORK/home/tenon, puts every plugin and program of the documents there, then runs each document's jobs,
commands and programs, in order, in a folder of its own, with small data in place of Fashion-MNIST.
SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import data
import documents
import scratch

WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
DATASET = "/usr/share/datasets/fashion-mnist"


class Broken(Exception):
    pass


def run(command, where, timeout=120, **settings):
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, **settings)
    if done.returncode != 0:
        shown = command if isinstance(command, str) else " ".join(map(str, command))
        raise Broken(f"{where}: \"{shown}\" ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


class Project:
    """One CMake project with all code of the documents that is compiled."""

    def __init__(self, folder):
        self.folder, self.lines, self.plugins, self.programs = folder, [], [], []

    def write(self, blocks):
        scratch.emptied(self.folder)
        for document in dict.fromkeys(block.document for block in blocks):
            self.add_document([block for block in blocks if block.document == document])
        text = ["cmake_minimum_required(VERSION 3.25)", "project(documents LANGUAGES C CXX)", "set(CMAKE_CXX_STANDARD 17)",
                "set(CMAKE_C_STANDARD 99)", "find_package(Tenon REQUIRED)", "find_package(TenonSDK REQUIRED)", *self.lines]
        (self.folder / "CMakeLists.txt").write_text("\n".join(text) + "\n")

    def add_document(self, blocks):
        stem = pathlib.Path(blocks[0].document).stem
        folder = self.folder / stem
        folder.mkdir()
        sources, programs, given = {}, {}, ""  # plugin: files in order; program: file
        for block in blocks:
            if block.kind == "cmake":
                given += block.text
            if block.kind not in ("c", "cpp"):
                continue
            what, names = block.snippet[1], block.snippet[2:]
            file = names[1] if len(names) > 1 else (names[0].split("/")[-1] if names else f"line{block.line}")
            file += "" if "." in file else f".{block.kind}"
            with open(folder / file, "a", encoding="utf-8") as out:
                out.write(f'#line {block.line + 1} "{block.document}"\n{block.text}')
            if not names:
                target = f"{stem}_{block.line}"
                self.lines.append(f"add_library({target} OBJECT {stem}/{file})")
                self.lines.append(f"target_link_libraries({target} PRIVATE "
                                  f"{'TenonSDK::sdk' if what == 'plugin' else 'Tenon::tenon'})")
            elif what == "plugin":
                sources.setdefault(names[0], [])
                if file not in sources[names[0]]:
                    sources[names[0]].append(file)
            else:
                programs[names[0]] = file
        self.add_plugins(stem, folder, sources, given)
        for name, file in programs.items():
            self.programs.append(name)
            self.lines.append(f"add_executable({name} {stem}/{file})")
            self.lines.append(f"target_link_libraries({name} PRIVATE Tenon::check Tenon::arrow TenonSDK::sdk)")

    def add_plugins(self, stem, folder, sources, given):
        if not sources:
            return
        made = "\n".join(f"tenon_add_plugin({plugin.replace('/', ' ')} {' '.join(files)})"
                         for plugin, files in sources.items())
        for plugin in sources:
            if given and not re.search(rf"tenon_add_plugin\({plugin.replace('/', ' ')}\s", given):
                raise Broken(f"{stem}: no block \"cmake plugins\" adds the plugin {plugin}")
        (folder / "CMakeLists.txt").write_text(given or made)
        self.lines.append(f"add_subdirectory({stem})")
        self.plugins += sources


class Walkthrough:
    """Runs the blocks of one document in a folder that looks like the reader's."""

    def __init__(self, work, document):
        self.home, self.built = work / "home", work / "build"
        self.folder = work / "walks" / pathlib.Path(document).stem
        (self.folder / "build/bin").mkdir(parents=True)
        (self.folder / "build/bin/tenon").symlink_to(self.home / "tenon/bin/tenon")
        self.data = work / "data"
        for file, name in (("train-images.gz", "train-images-idx3"), ("train-labels.gz", "train-labels-idx1")):
            (self.folder / file).symlink_to(self.data / f"{name}-ubyte.gz")
        # Debian's rustc: a newer one of a user may need the HOME of that user.
        self.environment = {**os.environ, "HOME": str(self.home), "NO_COLOR": "1", "RUSTC": "/usr/bin/rustc",
                            "PATH": f"{self.home}/tenon/bin:{os.environ['PATH']}"}

    def shell(self, script, where):
        script = script.replace(DATASET, str(self.data))
        return run(["bash", "-euo", "pipefail", "-c", script], where, cwd=self.folder, env=self.environment)

    def check(self, block):
        if block.kind == "toml":
            name = block.snippet[1] if len(block.snippet) > 1 else f"line{block.line}.toml"
            (self.folder / name).write_text(block.text.replace(DATASET, str(self.data)))
            self.shell(f"tenon plan '{name}'", block.where)
        elif block.kind == "sh":
            self.shell(block.text, block.where)
        elif block.kind == "output":
            self.compare(block, self.shell(" ".join(block.snippet[1:]), block.where))
        elif block.kind in ("c", "cpp") and block.snippet[1] == "app" and len(block.snippet) > 2:
            run([self.built / block.snippet[2]], block.where, cwd=self.folder, env=self.environment)
        elif block.kind == "manifest":
            kind, name = block.snippet[1].split("/")
            written = next(self.built.rglob(f"{kind}_{name}.manifest.json"), None)
            if written is None:
                raise Broken(f"{block.where}: no plugin {block.snippet[1]} was built")
            if json.loads(block.text) != json.loads(written.read_text()):
                raise Broken(f"{block.where}: the manifest is\n{json.dumps(json.loads(written.read_text()), indent=2)}")

    @staticmethod
    def compare(block, printed):
        pattern = re.escape(block.text.rstrip("\n")).replace(re.escape("..."), ".*")
        pattern = re.sub(r"(?:\\ )+", r" +", pattern)  # the width of columns does not matter
        if not re.fullmatch(pattern, printed.rstrip("\n"), re.DOTALL):
            raise Broken(f"{block.where}: \"{' '.join(block.snippet[1:])}\" prints\n{printed}")


def check_plugins(root, work, plugins):
    """Every plugin passes the conformance kit, and its readers read in a locale with a decimal comma."""
    tenon, files = work / "home/tenon/bin/tenon", root / "tests/docs/plugins"
    for plugin in plugins:
        run([tenon, "plugins", "check", work / f"home/tenon/lib/tenon/plugins/{plugin}.so", "--cases", files / "cases.toml"],
            f"the conformance kit on {plugin}", timeout=280)
    (work / "locale").mkdir()
    run(["localedef", "-i", "de_DE", "-f", "UTF-8", work / "locale/de_DE.UTF-8"], "making a locale")
    run([work / "build/decimal_comma", "de_DE.UTF-8", work / "home/tenon/lib/tenon/plugins",
         "example.csv", "file", files / "points.csv", "0", "0,5",
         "example.visitors", "files", files / "visitors.txt", "3", "0,25"],
        "readers in a locale with a decimal comma", env={**os.environ, "LOCPATH": str(work / "locale")})


def check(cmake, root, build, work, cc, cxx, launcher=""):
    root, build, work = (pathlib.Path(path).resolve() for path in (root, build, work))
    scratch.emptied(work)
    home = work / "home"
    run([cmake, "--install", build, "--prefix", home / "tenon"], "installing Tenon")
    data.write_fashion(work / "data")

    blocks = documents.all_blocks(root)
    project = Project(work / "source")
    project.write(blocks)
    run([home / "tenon/bin/tenon", "plugins", "new", "example.swish", "--kind", "layer", "--language", "c++", "--folder",
         work / "source/template"], "making the tutorial's first plugin")
    shutil.copy(root / "tests/docs/gradients.cpp", work / "source")
    shutil.copy(root / "tests/sdk/decimal_comma.cpp", work / "source")
    with open(work / "source/CMakeLists.txt", "a", encoding="utf-8") as out:
        out.write("add_subdirectory(template)\nadd_executable(gradients gradients.cpp)\n"
                  "target_link_libraries(gradients PRIVATE Tenon::tenon)\n"
                  "add_executable(decimal_comma decimal_comma.cpp)\n"
                  "target_link_libraries(decimal_comma PRIVATE Tenon::tenon)\n")
    run([cmake, "-S", work / "source", "-B", work / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={home}/tenon",
         f"-DCMAKE_C_COMPILER={cc}", f"-DCMAKE_CXX_COMPILER={cxx}", f"-DCMAKE_C_FLAGS={WARNINGS}",
         f"-DCMAKE_CXX_FLAGS={WARNINGS}", f"-DCMAKE_C_COMPILER_LAUNCHER={launcher}",
         f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"], "configuring the documents' sources")
    run([cmake, "--build", work / "build"], "building the documents' sources", timeout=280)
    run([cmake, "--install", work / "build", "--prefix", home / "tenon"], "installing the documents' plugins")

    for plugin in project.plugins:
        entry = ctypes.CDLL(str(work / f"build/lib/tenon/plugins/{plugin}.so")).tenon_plugin
        entry.restype = ctypes.c_void_p
        if not entry():
            raise Broken(f"the plugin {plugin} gives no descriptor")
    run([work / "build/gradients"], "the gradients of the documents' layers")
    check_plugins(root, work, project.plugins)
    checked = 0
    for document in dict.fromkeys(block.document for block in blocks):
        walk, done = Walkthrough(work, document), set()
        for block in blocks:
            program = tuple(block.snippet[:3]) if block.kind in ("c", "cpp") else None
            if block.document != document or program in done:
                continue  # a program in several blocks is run at its first one
            done.add(program) if program else None
            walk.check(block)
            checked += 1
    return f"{len(blocks)} snippets: {len(project.plugins)} plugins, {len(project.programs)} programs, {checked} checked"


if __name__ == "__main__":
    try:
        print(check(*sys.argv[1:]))
    except Broken as broken:
        sys.exit(str(broken))
