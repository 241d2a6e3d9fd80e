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

import programs

# What trainer.cpp writes, from the formulas of the exhibits, and the first version that has the exhibit.
EXPECTED = {"body descent": ([2.710033, -1.918793], 2), "body momentum": ([2.985843, -1.999815], 2),
            "native descent": ([2.710033, -1.918793], 2), "native momentum": ([2.985843, -1.999815], 2),
            "images": ([60.5, 60.5, 76.5, 76.5], 3), "sums": ([1.5, 1.25, 0.75, 1], 3)}


def minor(version):
    return int(version.split(".")[1])


def judged(name, text, host, plugin):
    """(cell of the table, whether it is as promised) of one line of the trainer."""
    values, since = EXPECTED[name]
    if " error " not in f" {text}":
        numbers = [float(word) for word in text.split()]
        right = len(numbers) == len(values) and all(abs(a - b) < 1e-5 for a, b in zip(numbers, values, strict=True))
        return "works" if right else f"computes {text}", right
    if plugin < since:
        return "has none", "not found" in text
    return f"refused: {text}", plugin > host and f"needs a host of 0.{plugin} or later" in text


def lines_of(text):
    """The lines of the trainer by name."""
    return {name: line[len(name) + 1:] for line in text.splitlines() for name in EXPECTED if line.startswith(name)}


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
    pairs = [(host, plugin) for host in sorted(hosts, key=minor) for plugin in sorted(exhibits, key=minor)]

    def run(library, devices, plugins):
        return programs.run([museum / "hosts/trainer", plugins, devices], library, work)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = pool.map(lambda pair: run(*hosts[pair[0]], exhibits[pair[1]]), pairs)
    faults = 0
    for (host, plugin), (text, fault) in zip(pairs, outcomes, strict=True):
        lines = lines_of(text)
        if fault or set(lines) != set(EXPECTED):
            print(f"host {host}, plugins of {plugin}: {fault or lines}")
            faults += 1
            continue
        for name, line in lines.items():
            cell, right = judged(name, line, minor(host), minor(plugin))
            print(f"{'     ' if right else 'WRONG'} host {host}, plugins of {plugin}, {name}: {cell}")
            faults += not right
    print(f"{len(pairs)} pairs, {faults} wrong")
    return 1 if faults or len(hosts) < 2 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
