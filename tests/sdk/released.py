#!/usr/bin/env python3
"""Compares the headers of today with those of each release, which never change:
  released.py TODAY RELEASED [CLARIFIED]
TODAY: a folder of headers. RELEASED: a folder <version>/*.h each. What a release declares must be there with the same code:
a struct with the members of then first, constants with their values, prototypes, macros and inline functions with their
tokens. With CLARIFIED the comments, too, which are what a member means: a comment that differs, by more than the case of its
first letter and a full stop at its end, needs a line there,
  <version> <name> <digest of the comment of today> <why it means the same>
which somebody has read and answers for. A reserved member that got a use has a line, too, with its digest.
SPDX-License-Identifier: Apache-2.0"""
import hashlib
import pathlib
import sys

import declarations

PRESENT = {"TN_ABI_MINOR", "TENON_API_MINOR", "TENON_VERSION"}  # which say what version the headers have


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def same_words(then, now):
    then, now = (text[:1].lower() + text[1:].removesuffix(".") for text in (then, now))
    return then == now


def around(then, now, room=60):
    """The two texts where they differ, with some words before."""
    same = next((i for i, (a, b) in enumerate(zip(then, now, strict=False)) if a != b), min(len(then), len(now)))
    start = max(0, same - room)
    dots = "..." if start else ""
    return tuple(dots + text[start:same + 3 * room] for text in (then, now))


def pairs(old, new):
    """(name, declaration of then or one of its members, that of today or None) in order."""
    yield old.name, old, new
    members = new.members if new is not None else []
    for number, member in enumerate(old.members):
        yield member.name, member, members[number] if number < len(members) else None


def is_taken(then, now, older):
    """Whether a reserved member has become one of the same size, for older targets, too, unless they have it as it was."""
    members = {(each.name, each.code) for each in older.members} if older is not None else set()
    kept = (then.name, then.code) in members or (now.name, now.code) in members
    return "reserved" in then.name and kept and then.code.rsplit(" ", 1)[0] == now.code.rsplit(" ", 1)[0]


def compare(version, old, views, clarified, comments):
    """Complaints about the declarations of a release, against views: those of today, and those of today for older
    targets; uses up lines of `clarified`."""
    today, older = views
    for declaration in old.values():
        present = today.get(declaration.name)
        frozen = declaration.code == "struct" and declaration.members[0].code != "uint32_t size"
        if frozen and present is not None and len(present.members) != len(declaration.members):
            yield f"{version} {declaration.name}: a struct without `size` is frozen; a member was added"
        for name, then, now in pairs(declaration, present):
            if name in PRESENT:
                continue
            same = now is not None and then.code == now.code
            if now is None or not (same or is_taken(then, now, older.get(declaration.name))):
                yield f"{version} {name}: was \"{then.code}\", is {'gone' if now is None else now.code}"
            elif not comments or (same and same_words(then.comment, now.comment)):
                continue
            elif clarified.pop((version, name), None) != digest(now.comment):
                shown = around(then.comment, now.comment)
                yield (f"{version} {name}: the comment of a released declaration differs; if it means the same, add the line "
                       f"\"{version} {name} {digest(now.comment)} <reason>\"\n  then: {shown[0]}\n  now:  {shown[1]}")


def read_clarified(path):
    lines = [line.split(" ", 3) for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {(version, name): value for version, name, value, _ in lines}


def check(today, released, clarified=None):
    views = declarations.of_folder(today), declarations.of_folder(today, older=True)
    lines = read_clarified(clarified) if clarified else {}
    versions = sorted(path for path in released.iterdir() if path.is_dir() and any(path.glob("*.h")))
    if not versions:
        yield f"{released}: no release"
    for folder in versions:
        yield from compare(folder.name, declarations.of_folder(folder), views, lines, clarified is not None)
    for version, name in lines:
        yield f"{clarified.name}: {version} {name} differs no longer, or is unknown"


if __name__ == "__main__":
    sys.exit("\n".join(check(*map(pathlib.Path, sys.argv[1:]))) or 0)
