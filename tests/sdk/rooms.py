#!/usr/bin/env python3
"""Checks that each file of a room includes only its room and those that the room names:
rooms.py ROOT TREE/ROOM=OTHER,... ... The include paths also contain the rooms that those name.
SPDX-License-Identifier: Apache-2.0"""
import pathlib
import re
import sys

OUTSIDE = {"host/cli", "host/include", "check/include", "check/program"}  # not part of a library's own sources


def wrong(root, rooms):
    """Returns a line for each include that the room of the file does not name, and for each folder that is no room."""
    lines = []
    for tree in sorted({room.split("/")[0] for room in rooms}):
        for folder in sorted(path for path in (root / tree).iterdir() if path.is_dir()):
            room = f"{tree}/{folder.name}"
            if room in OUTSIDE:
                continue
            if room not in rooms:
                lines.append(f"{room} is not a room of {tree}/CMakeLists.txt")
                continue
            named = {folder.name, *rooms[room]}
            for path in sorted(folder.glob("*.*")):
                lines += [f"{path.relative_to(root)} includes {tree}/{other}, which its room does not name"
                          for other in re.findall(rf'#include "{tree}/(\w+)/', path.read_text(encoding="utf-8"))
                          if other not in named]
    return lines


def main():
    rooms = {}
    for argument in sys.argv[2:]:
        name, _, others = argument.partition("=")
        rooms[name] = others.split(",")
    root = pathlib.Path(sys.argv[1])
    found = wrong(root, rooms)
    print("\n".join(found))
    # The search must find includes of each tree if no room names another.
    unnamed = wrong(root, {name: [] for name in rooms})
    trees = {name.split("/")[0] for name in rooms}
    blind = trees - {line.split("/")[0] for line in unnamed}
    return 1 if found or blind else 0


if __name__ == "__main__":
    sys.exit(main())
