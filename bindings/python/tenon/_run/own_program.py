"""The program that runs, as what other processes may run again. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

from tenon import error

LONGEST = 900 << 10  # bytes of the program and its modules


def command(call: str) -> list[str]:
    """Returns the command that runs this program again. call: for errors."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    ipython = sys.modules.get("IPython")
    reason = ""
    if hasattr(sys, "ps1") or (ipython is not None and ipython.get_ipython() is not None):
        reason = "an interactive session or a notebook is not a program"
    elif multiprocessing.parent_process() is not None:
        reason = "this process was started by multiprocessing, and is not the program"
    elif not sys.executable or (file is None and sys.argv[:1] != ["-c"]):
        reason = "the program is not in a file"
    if reason:
        raise error.UnsupportedError(
            f"{call} runs the program again in other processes, but {reason}: write it into a file, in a notebook by "
            "%%writefile train.py, and run that by python train.py or python -m train",
            call,
            "processes",
        )
    arguments = sys.orig_argv[1:]
    if file is not None and getattr(main, "__spec__", None) is None and sys.argv[0] in arguments:
        arguments[arguments.index(sys.argv[0])] = file  # absolute: the program may have changed its working folder
    return [sys.executable, *arguments]


def files(call: str) -> list[Path]:
    """Returns the program's file and those beside it that it has imported; none of `python -c`. call: for errors."""
    name = getattr(sys.modules["__main__"], "__file__", None)
    if name is None:
        return []
    file = Path(name).resolve()
    found = set()
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if path and path.endswith(".py") and Path(path).resolve().is_relative_to(file.parent) and Path(path).resolve() != file:
            found.add(Path(path).resolve())
    result = [file, *sorted(found)]
    if sum(os.path.getsize(path) for path in result) > LONGEST:
        raise error.InvalidError(
            f"{call}: the program and what it imports from its folder, {len(result) - 1} files, have more than {LONGEST} "
            "bytes: install modules, or put them into the image",
            call,
            "image",
        )
    return result
