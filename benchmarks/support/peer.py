"""What the peers of the benchmarks share: arguments, the files that Tenon's side wrote, the line for benchmarks/run.
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import sys
import time

THREADS, FOLDER, MODE = int(sys.argv[1]), sys.argv[2], (sys.argv[3:] or [""])[0]
# Before any library reads them.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ[variable] = str(THREADS)
if THREADS == 1:  # XLA has no option for the size of its pool: it follows the processors that the process may use
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])

import numpy as np  # noqa: E402


def read(name, shape, dtype=np.float32):
    """An array that Tenon's side wrote."""
    return np.fromfile(f"{FOLDER}/{name}", dtype).reshape(shape)


def mean_seconds(count, step):
    began = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - began) / count


def single_calls(count, step):
    """Median and 99th percentile of the seconds of single calls."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    times.sort()
    return {"seconds": times[count // 2], "p99": times[count * 99 // 100]}


def report(**result):
    print(json.dumps({name: float(value) for name, value in result.items()}))
