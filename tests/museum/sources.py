#!/usr/bin/env python3
"""Compiles sources that were written for earlier versions, unchanged, against the headers of this one:
  sources.py SOURCES WORK CC CXX RUSTC BINDING FLAG...
SOURCES: a folder <version>/{plugins,programs}. RUSTC: "" without Rust. BINDING: the crate of the SDK. FLAG: -I and the
like. Warnings are errors.
SPDX-License-Identifier: Apache-2.0"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]


def commands(sources, work, cc, cxx, rustc, binding, flags):
    """Yields (source, command that compiles it)."""
    for source in sorted(sources.glob("*/*/*.*")):
        if source.suffix == ".rs" and rustc:
            yield source, [rustc, "--edition", "2021", "-D", "warnings", "--crate-type", "cdylib", "--emit", "metadata",
                           "--extern", f"tenon_plugin={binding}", "-o", str(work / f"{source.stem}.rmeta"), str(source)]
        elif source.suffix == ".c":
            yield source, [cc, "-std=c99", *WARNINGS, *flags, "-fsyntax-only", str(source)]
        elif source.suffix == ".cpp":
            yield source, [cxx, "-std=c++17", *WARNINGS, *flags, "-fsyntax-only", str(source)]


def main(sources, work, cc, cxx, rustc, crate, *flags):
    work = pathlib.Path(work)
    work.mkdir(parents=True, exist_ok=True)
    binding = work / "libtenon_plugin.rlib"
    if rustc:
        subprocess.run([rustc, "--edition", "2021", "--crate-type", "rlib", "--crate-name", "tenon_plugin", "-o", str(binding),
                        crate], check=True)
    listed = list(commands(pathlib.Path(sources), work, cc, cxx, rustc, binding, flags))

    def compiled(entry):
        source, command = entry
        return source, subprocess.run(command, check=False, capture_output=True, text=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        broken = [(source, done) for source, done in pool.map(compiled, listed) if done.returncode != 0]
    for source, done in broken:
        print(f"{source} no longer compiles:\n{done.stderr}")
    print(f"{len(listed)} sources, {len(broken)} no longer compile")
    sys.exit(1 if broken or not listed else 0)


main(*sys.argv[1:])
