"""Programs of earlier versions, run with a library of another one. SPDX-License-Identifier: Apache-2.0"""
import os
import pathlib
import platform
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "docs"))
import scratch

SECONDS = 60  # each takes less than one
SKIPPED = 77


def work_folder(folder):
    """The folder, empty. Ends the test as skipped on machines that the programs were not built for."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        print("the programs of the museum were built for Linux on x86-64")
        sys.exit(SKIPPED)
    return scratch.emptied(folder)


def run(command, library, folder):
    """Runs a program in a folder with libtenon.so.0 of the folder `library`, all symbols bound at the start. Returns
    (what it prints, what went wrong; "" for nothing)."""
    environment = dict(os.environ, LD_LIBRARY_PATH=str(library), LD_BIND_NOW="1")
    try:
        done = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True,
                              timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "", f"ran for more than {SECONDS} s"
    if done.returncode != 0:
        return done.stdout, f"ended with {done.returncode}:\n{done.stdout[-600:]}{done.stderr[-600:]}"
    return done.stdout, ""
