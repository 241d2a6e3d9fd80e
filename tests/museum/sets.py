#!/usr/bin/env python3
"""Trains with the locked plugin set of each earlier version, on the program of today: sets.py MUSEUM PROGRAM WORK
MUSEUM: the folder of this file. WORK: emptied. A set of a version was written by its program and admits exhibits and the
device of that version alone, by their SHA-256; the model must have the tensors and the topology that its host wrote. Its
metadata may have more.
SPDX-License-Identifier: Apache-2.0"""
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile

import programs


def parts_of(model):
    """The metadata and the tensors of a model file, with the places and the bytes of these."""
    size = int.from_bytes(model[:8], "little")
    tensors = json.loads(model[8 : 8 + size])
    return tensors.pop("__metadata__"), tensors, model[8 + size :]


def is_same(model, expected):
    """Whether a model has all that another one has, but for the digest of the file."""
    (metadata, *content), (known, *known_content) = parts_of(model), parts_of(expected)
    known.pop("tenon.xxh3_128")
    return content == known_content and known.items() <= metadata.items()


def fault_of(museum, program, folder):
    """What goes wrong with the set of a version, in its folder of the work; "" for nothing."""
    version = folder.name
    shutil.copytree(museum / "files" / version / "set", folder)
    for exhibit in (museum / version).glob("*.so"):
        shutil.copy(exhibit, folder)
    with tarfile.open(museum / "hosts" / f"{version}.tar.xz") as files:
        files.extractall(folder, [each for each in files if "devices/" in each.name], filter="data")
    expected = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").unlink()
    done = subprocess.run([program, "train", "job.toml", "--plugin-set", "set.toml"], cwd=folder, check=False,
                          capture_output=True, text=True, timeout=programs.SECONDS)
    if done.returncode != 0:
        return f"ended with {done.returncode}: {done.stderr}"
    if not is_same((folder / "model.safetensors").read_bytes(), expected):
        return "another model"
    with (folder / "museum_c.so").open("ab") as file:
        file.write(b"\0")
    done = subprocess.run([program, "train", "job.toml", "--plugin-set", "set.toml"], cwd=folder, check=False,
                          capture_output=True, text=True, timeout=programs.SECONDS)
    return "" if done.returncode != 0 and "museum_c.so" in done.stderr else f"took a changed plugin: {done.stderr}"


def main(museum, program, work):
    museum, program = pathlib.Path(museum).resolve(), pathlib.Path(program).resolve()
    work, faults = programs.work_folder(work), 0
    versions = sorted(path.parent.name for path in (museum / "files").glob("*/set"))
    for version in versions:
        if fault := fault_of(museum, program, work / version):
            faults += 1
            print(f"the set of {version}: {fault}")
    print(f"{len(versions)} sets, {faults} wrong")
    return 1 if faults or not versions else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
