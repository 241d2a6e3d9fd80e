#!/usr/bin/env python3
"""Compares the declarations of the plugin interface with their digest in abi_history.txt: abi_history.py [--update]

A digest is the SHA-256 of all tokens of sdk/include/tenon/*.h, without comments and white space, so that every change
of a declaration is seen and no change of its layout. --update writes the line of the present minor version, unless that
version is released. Each header of draft/ states the digest of its own declarations, which --update writes, too.
SPDX-License-Identifier: Apache-2.0"""
import argparse
import hashlib
import itertools
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
TOKEN = re.compile(r"""(?P<skip>/\*.*?\*/|//[^\n]*|[ \t\r\f\v]+|\\\n)|(?P<newline>\n)
                       |(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(?P<word>[A-Za-z_0-9][A-Za-z_0-9.]*)
                       |(?P<sign>.)""", re.DOTALL | re.VERBOSE)


class Changed(Exception):
    """What is wrong, for the author of the change."""


def normalised(source):
    """The tokens of a header, separated by spaces; a directive has a line of its own."""
    lines, line = [], []

    def end_line(directive):
        # Declarations flow over the ends of lines; a directive ends with its line.
        if line and (directive or line[0] == "#"):
            lines.append(" ".join(line))
            line.clear()

    for match in TOKEN.finditer(source):
        if match.lastgroup == "newline":
            end_line(False)
        elif match.lastgroup != "skip":
            if match.group() == "#" and at_line_start(source, match.start()):
                end_line(True)
            line.append(match.group())
    end_line(True)
    return "\n".join(lines)


def at_line_start(source, place):
    return not source[source.rfind("\n", 0, place) + 1:place].strip()


def digest(headers):
    """Of all headers of a folder, in the order of their names."""
    text = "".join(f"{path.name}\n{normalised(path.read_text(encoding='utf-8'))}\n" for path in sorted(headers.glob("*.h")))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


DRAFT = re.compile(r"(#define TN_\w+_DRAFT )0x([0-9a-f]{8})u\n")


def drafts(headers):
    """[(header of draft/, its text, the digest that it states, that of its declarations)], digests of 8 digits."""
    result = []
    for path in sorted((headers / "draft").glob("*.h")):
        text = path.read_text(encoding="utf-8")
        stated = DRAFT.findall(text)
        if len(stated) != 1:
            raise Changed(f"draft/{path.name} has {len(stated)} lines \"#define TN_NAME_DRAFT 0x01234567u\"; expected one")
        value = hashlib.sha256(normalised(DRAFT.sub("", text)).encode()).hexdigest()[:8]
        result.append((path, text, stated[0][1], value))
    return result


def version(headers):
    text = (headers / "base.h").read_text(encoding="utf-8")
    found = [re.search(rf"#define TN_ABI_{part} (\d+)\n", text) for part in ("MAJOR", "MINOR")]
    if None in found:
        raise Changed("base.h does not define TN_ABI_MAJOR and TN_ABI_MINOR")
    return tuple(int(match[1]) for match in found)


def read_history(path):
    """The comment lines, and {version: [digest or "refused", "released" or ""]} in order."""
    comments, entries = [], {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            comments.append(line)
            continue
        match = re.fullmatch(r"(\d+)\.(\d+) (refused|[0-9a-f]{16})( released)?", line)
        if not match:
            raise Changed(f"{path.name}: \"{line}\" is not \"0.2 DIGEST\", \"0.2 DIGEST released\" or \"0.1 refused\"")
        entries[int(match[1]), int(match[2])] = [match[3], (match[4] or "").strip()]
    minors = list(entries)
    for before, after in itertools.pairwise(minors):
        if after not in ((before[0], before[1] + 1), (before[0] + 1, 0)):
            raise Changed(f"{path.name}: {shown(after)} does not follow {shown(before)}")
        if entries[before][0] != "refused" and not entries[before][1]:
            raise Changed(f"{path.name}: {shown(before)} is not marked as released, but {shown(after)} follows it")
    return comments, entries


def shown(number):
    return f"{number[0]}.{number[1]}"


def check(headers, history):
    for path, _, stated, value in drafts(headers):
        if stated != value:
            raise Changed(f"the declarations of draft/{path.name} changed: it states the digest {stated}, and theirs is "
                          f"{value}; tests/sdk/abi_history.py --update writes it")
    now, found = version(headers), digest(headers)
    _, entries = read_history(history)
    if now not in entries or now != list(entries)[-1]:
        raise Changed(f"the headers have version {shown(now)}, which is not the last line of {history.name}: add a line")
    recorded, released = entries[now]
    if recorded == found:
        return
    text = (f"the declarations changed: raise TN_ABI_MINOR and add a line to {history.name} (its digest of "
            f"{shown(now)} is {recorded}, that of the headers {found})")
    if not released:
        text += f"; {shown(now)} is not released: tests/sdk/abi_history.py --update writes its line anew"
    raise Changed(text)


def update(headers, history):
    for path, text, _, value in drafts(headers):
        path.write_text(DRAFT.sub(rf"\g<1>0x{value}u\n", text), encoding="utf-8")
    now, found = version(headers), digest(headers)
    comments, entries = read_history(history)
    last = list(entries)[-1]
    if entries[last][1] and last == now and entries[last][0] != found:
        raise Changed(f"{shown(now)} is released, and its declarations changed: raise TN_ABI_MINOR")
    if last != now and entries[last][0] != "refused" and not entries[last][1]:
        raise Changed(f"{shown(last)} is not marked as released: add the word to its line before that of {shown(now)}")
    entries[now] = [found, entries[now][1] if now in entries else ""]
    lines = [" ".join(filter(None, [shown(number), *entry])) for number, entry in entries.items()]
    history.write_text("\n".join(comments + lines) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the line of the present minor version")
    parser.add_argument("--headers", type=pathlib.Path, default=HERE.parents[1] / "sdk/include/tenon")
    parser.add_argument("--history", type=pathlib.Path, default=HERE / "abi_history.txt")
    options = parser.parse_args()
    try:
        (update if options.update else check)(options.headers, options.history)
    except Changed as changed:
        sys.exit(str(changed))


if __name__ == "__main__":
    main()
