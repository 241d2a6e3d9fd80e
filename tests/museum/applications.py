#!/usr/bin/env python3
"""Runs applications that were built for released versions, unchanged, with the library of today:
  applications.py APPLICATIONS LIBRARY WORK
APPLICATIONS: a folder <version>/<program>. LIBRARY: the folder of libtenon.so.0. WORK: emptied; each program runs in a
folder of its own below it and must end with 0.
SPDX-License-Identifier: Apache-2.0"""
import concurrent.futures
import os
import pathlib
import sys

import programs


def main(applications, library, work):
    work = programs.work_folder(work)
    applications, library = pathlib.Path(applications).resolve(), pathlib.Path(library).resolve()

    def fault(path):
        folder = work / path.relative_to(applications)
        folder.mkdir(parents=True)
        # The argument: where those that store what they trained put it.
        return programs.run([path, "x.safetensors"], library, folder)[1]

    paths = sorted(path for path in applications.glob("*/*") if path.is_file())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = list(pool.map(fault, paths))
    for path, text in zip(paths, faults, strict=True):
        if text:
            print(f"{path.relative_to(applications)} {text}")
    print(f"{len(paths)} applications, {sum(map(bool, faults))} no longer run")
    return 1 if any(faults) or not paths else 0


sys.exit(main(*sys.argv[1:]))
