"""Random programs, trained by Tenon and by a reference in NumPy.

    differential.py --seed N --count N    programs of the seeds from N on; of "day" from one that is another every day
    differential.py --program FILE        a program that a failure has printed

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import argparse
import datetime
import sys
import time
import warnings

import numpy as np

import check
import draw
import graphs
import program
import shrink


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=_seed, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--profile")
    parser.add_argument("--program")
    options = parser.parse_args()
    np.seterr(all="ignore")
    warnings.simplefilter("ignore")  # of trainings that leave all bounds
    if options.program:
        check.Check(program.read(options.program)).all()
        print("the program passes")
        return 0
    begin, failed, blunt, refused = time.process_time(), 0, 0, 0
    for seed in range(options.seed, options.seed + options.count):
        if options.profile == "graphs" or (options.profile is None and seed % 8 == 0):
            fault, was_refused, text = graphs.fault_of(seed)
            refused += was_refused
            failed += bool(fault)
            if fault:
                print(f"seed {seed}: a graph of ONNX: {fault}\n{text}", flush=True)
            continue
        drawn = draw.program_of(seed, options.profile)
        fault, was_blunt = shrink.fault_of(drawn)
        blunt += was_blunt
        if fault:
            failed += 1
            _report(seed, drawn, fault)
            if failed == 10:
                break
    seconds = time.process_time() - begin
    print(
        f"{options.count} programs from seed {options.seed}: {failed} differ, {blunt} compared in part, "
        f"{refused} graphs refused, {seconds:.0f} s"
    )
    return 1 if failed else 0


def _seed(text):
    """Returns a number, or for "day" one that is another every day."""
    return datetime.datetime.now(datetime.UTC).toordinal() * 100_000 if text == "day" else int(text)


def _report(seed, drawn, fault):
    print(f"seed {seed}: {fault}")
    smaller, fault = shrink.smallest(drawn, fault)
    print(f"# {fault}\n# save this text, and run it with --program FILE\n{smaller}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
