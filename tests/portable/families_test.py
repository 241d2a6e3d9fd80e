"""Checks that each layer, reader, updater and schedule that Tenon has is in a job, and prints in which.
SPDX-License-Identifier: Apache-2.0
    families_test.py TENON [--table]
"""

from __future__ import annotations

import collections
import json
import pathlib
import subprocess
import sys
import tomllib

LEFT_OUT = {
    "attention_step": "a step of sequence_attention, which `tenon generate` makes of it: transformer",
    "choose_rows": "the rows of a cond, which the host makes of it: shards",
    "choose_sequences": "the rows of a cond over sequences, as choose_rows",
}
KEYS = ("type", "act", "activation", "gate")
SCHEDULES = ["chained", "constant", "cosine", "cosine_restarts", "cyclic", "exponential", "inverse", "linear", "multi_step",
             "one_cycle", "polynomial", "product", "step"]  # fmt: skip


def registered(program):
    """Returns the names of Tenon's types of layers, readers and updaters; those of others have a dot."""
    ended = subprocess.run([program, "plugins", "list", "--json"], capture_output=True, text=True, check=True)
    manifests = [plugin["manifest"] for plugin in json.loads(ended.stdout)]
    types = {kind["type"] for each in manifests for group in ("layers", "readers", "updaters") for kind in each.get(group, [])}
    return {name for name in types if "." not in name}


def named(table):
    """Yields the names of types in a table of a job, and in the tables and lists in it."""
    for key, value in table.items():
        if key in KEYS and isinstance(value, str):
            yield value
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                yield from named(inner)


def main():
    places = collections.defaultdict(list)
    for file in sorted((pathlib.Path(__file__).parent / "jobs").glob("*.toml")):
        for name in sorted(set(named(tomllib.loads(file.read_text())))):
            places[name].append(file.stem)
    types = registered(sys.argv[1]) | set(SCHEDULES)
    if sys.argv[2:] == ["--table"]:
        print("\n".join(f"| `{name}` | {', '.join(places[name]) or LEFT_OUT.get(name, '-')} |" for name in sorted(types)))
    missing = sorted(types - places.keys() - LEFT_OUT.keys())
    needless = sorted(name for name in LEFT_OUT if name in places or name not in types)
    if missing:
        print(f"in no job of tests/portable/jobs, nor left out for a reason: {', '.join(missing)}")
    if needless:
        print(f"left out, though in a job or unknown: {', '.join(needless)}")
    return 1 if missing or needless else 0


if __name__ == "__main__":
    sys.exit(main())
