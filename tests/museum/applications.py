#!/usr/bin/env python3
"""Runs applications that were built for released versions, unchanged, with the library of today:
  applications.py APPLICATIONS LIBRARY WORK
APPLICATIONS: a folder <version>/<program>. LIBRARY: the folder of libtenon.so.0. WORK: emptied; each program runs in a
folder of its own below it and must end with 0.
SPDX-License-Identifier: Apache-2.0"""
import concurrent.futures
import os
import pathlib
import platform
import shutil
import subprocess
import sys

SECONDS = 60  # each takes less than one
SKIPPED = 77


def outcome(program, library, folder):
    """Returns what went wrong with `program`, "" for nothing."""
    folder.mkdir(parents=True)
    environment = dict(os.environ, LD_LIBRARY_PATH=str(library), LD_BIND_NOW="1")
    try:
        # The argument: where those that store what they trained put it.
        done = subprocess.run([program, "x.safetensors"], cwd=folder, env=environment, check=False, capture_output=True,
                              text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"ran for more than {SECONDS} s"
    return "" if done.returncode == 0 else f"ended with {done.returncode}:\n{done.stdout[-600:]}{done.stderr[-600:]}"


def main(applications, library, work):
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        print("the applications were built for Linux on x86-64")
        return SKIPPED
    work = pathlib.Path(work)
    if (work / ".git").exists():
        print(f"{work} is a repository, not a folder to empty")
        return 1
    shutil.rmtree(work, ignore_errors=True)
    applications = pathlib.Path(applications).resolve()
    programs = sorted(path for path in applications.glob("*/*") if path.is_file())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = list(pool.map(lambda path: outcome(path, pathlib.Path(library).resolve(),
                                                    work / path.relative_to(applications)), programs))
    for program, fault in zip(programs, faults, strict=True):
        if fault:
            print(f"{program.relative_to(applications)} {fault}")
    print(f"{len(programs)} applications, {sum(map(bool, faults))} no longer run")
    return 1 if any(faults) or not programs else 0


sys.exit(main(*sys.argv[1:]))
