"""The options of trainings, by struct. Written by host/api/spec/generate_options.py.

SPDX-License-Identifier: Apache-2.0
"""

from tenon._base.check import Option

EARLY_STOP = {
    "metric": Option("text", "cost"),
    "best_is_highest": Option("bool", False),
    "patience": Option("int64", 1, 1),
    "min_delta": Option("double", 0.0, 0),
}

CHECKPOINT = {
    "folder": Option("text", None),
    "every_batches": Option("int64", 0, 0),
    "every_passes": Option("int64", 0, 0),
    "every_seconds": Option("double", 0.0),
    "keep": Option("uint32", 3),
    "best": Option("text", ""),
    "best_is_highest": Option("bool", False),
}

AVERAGE = {
    "decay": Option("double", 1.0),
    "window": Option("int64", 0, 0),
    "begin": Option("int64", 0, 0),
}

BEST = {
    "metric": Option("text", "cost"),
    "best_is_highest": Option("bool", False),
}

TRAIN = {
    "passes": Option("int64", 1, 0),
    "seed": Option("uint64", 0),
    "pass_batches": Option("int64", 0, 0),
    "shards": Option("uint32", 0),
    "verify_every": Option("int64", 0, 0),
    "staleness": Option("int64", 0, 0),
    "run": Option("text", ""),
    "run_every": Option("int64", 0, 0),
    "rerun": Option("text", ""),
}
