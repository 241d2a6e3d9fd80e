#!/usr/bin/env python3
"""Checks that each file of a room of the host includes only its room and those that the room names:
rooms.py ROOT ROOM=OTHER,... ... The include paths also contain the rooms that those name.
SPDX-License-Identifier: Apache-2.0"""
import pathlib
import re
import sys

OUTSIDE = {"cli", "include"}  # not part of the library's own sources


def wrong(root, rooms):
    """Returns a line for each include that the room of the file does not name."""
    lines = []
    for folder in sorted(path for path in (root / "host").iterdir() if path.is_dir() and path.name not in OUTSIDE):
        if folder.name not in rooms:
            lines.append(f"host/{folder.name} is not a room of host/CMakeLists.txt")
            continue
        for path in sorted(folder.glob("*.*")):
            named = {folder.name, *rooms[folder.name]}
            lines += [f"{path.relative_to(root)} includes host/{other}, which its room does not name"
                      for other in re.findall(r'#include "host/(\w+)/', path.read_text(encoding="utf-8"))
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
    # The search must find includes if no room names another.
    blind = not wrong(root, {name: [] for name in rooms})
    return 1 if found or blind else 0


if __name__ == "__main__":
    sys.exit(main())
