#!/usr/bin/env python3
"""Trains with the exhibits of every version of the interface on a host of every version:
  hosts.py MUSEUM BUILT LIBRARIES WORK
MUSEUM: the folder of this file. BUILT: the folder of today's exhibits. LIBRARIES: the folder of today's libtenon.so.0.
WORK: emptied. A host runs what was built for it or for an earlier version, with the same results; a newer plugin works or is
refused by a sentence that says which host it needs. SPDX-License-Identifier: Apache-2.0"""
import concurrent.futures
import os
import pathlib
import sys
import tarfile

import kinds
import programs

HOSTS = 3  # at least


# What the programs in hosts/ write, from the formulas of the exhibits. Exhibits since a later version than the first:
PROGRAMS = {"trainer": {"body descent": [2.710033, -1.918793], "body momentum": [2.985843, -1.999815],
                        "native descent": [2.710033, -1.918793], "native momentum": [2.985843, -1.999815],
                        "images": [60.5, 60.5, 76.5, 76.5], "sums": [1.5, 1.25, 0.75, 1]},
            "kinds": kinds.expected(), "steps": kinds.expected_since_3()}
SINCE = dict.fromkeys(["images", "sums", "whole", "generation", "exempt",
                       *(name for name in PROGRAMS["steps"] if "museum.wide" in name)], 3)
# Programs that use what an older library lacks.
LIBRARY_SINCE = {"steps": 3}
# What a released host could not do, and says: (end of the name of a line, host, words of its message).
UNABLE = [("museum.far", 2, "which this version does not make"), ("inner", 2, "map::at"),
          ("inner on museum.near", 2, "map::at")]


def minor(version):
    return int(version.split(".")[1])


def judged(name, text, values, host, plugin):
    """(cell of the table, whether it is as promised) of one line of a program."""
    if " error " not in f" {text}":
        numbers = [float(word) for word in text.split()]
        right = len(numbers) == len(values) and all(
            abs(a - b) <= 1e-5 * (1 + abs(b)) for a, b in zip(numbers, values, strict=True))
        return "works" if right else f"computes {text}", right
    if plugin < SINCE.get(name, 0):
        return "has none", "not found" in text
    if any(name.endswith(end) and host == unable and words in text for end, unable, words in UNABLE):
        return f"cannot: {text}", True
    return f"refused: {text}", plugin > host and f"needs a host of 0.{plugin} or later" in text


def lines_of(text, expected):
    """The lines of a program by name."""
    names = sorted(expected, key=len, reverse=True)
    return {next((name for name in names if line.startswith(f"{name} ")), line): line for line in text.splitlines()}


def unpacked(archive, work):
    folder = work / archive.name.removesuffix(".tar.xz")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    return folder


def main(museum, built, libraries, work):
    museum, built, libraries = (pathlib.Path(folder).resolve() for folder in (museum, built, libraries))
    work = programs.work_folder(work)
    today = max((path.name for path in museum.glob("0.*")), key=minor)
    hosts = {folder.name: (folder, folder / "devices")
             for folder in (unpacked(archive, work) for archive in sorted((museum / "hosts").glob("*.tar.xz")))}
    hosts[today] = (libraries, libraries / "tenon/plugins/devices")
    exhibits = {path.name: path for path in museum.glob("0.*") if minor(path.name) > 1 and any(path.glob("*.so"))}
    exhibits.setdefault(today, built / today)
    runs = [(host, plugin, program) for host in sorted(hosts, key=minor) for plugin in sorted(exhibits, key=minor)
            for program in PROGRAMS]

    def run(host, plugin, program):
        library, devices = hosts[host]
        return programs.run([museum / "hosts" / program, exhibits[plugin], devices], library, work)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = pool.map(lambda each: run(*each), runs)
    faults = 0
    for (host, plugin, program), (text, fault) in zip(runs, outcomes, strict=True):
        expected = PROGRAMS[program]
        if minor(host) < LIBRARY_SINCE.get(program, 0):
            right = "undefined symbol" in fault
            print(f"{'     ' if right else 'WRONG'} host {host}, {program}: {fault.splitlines()[-1] if fault else 'runs'}")
            faults += not right
            continue
        lines = lines_of(text, expected)
        if fault or set(lines) != set(expected):
            print(f"WRONG host {host}, plugins of {plugin}: {fault or set(lines) ^ set(expected)}")
            faults += 1
            continue
        for name, line in lines.items():
            cell, right = judged(name, line[len(name) + 1:], expected[name], minor(host), minor(plugin))
            print(f"{'     ' if right else 'WRONG'} host {host}, plugins of {plugin}, {name}: {cell}")
            faults += not right
    print(f"{len(hosts)} hosts, {len(exhibits)} versions of plugins, {faults} wrong")
    return 1 if faults or len(hosts) < HOSTS else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
