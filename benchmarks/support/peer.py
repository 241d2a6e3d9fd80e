"""What the peers of the benchmarks share: arguments, the files that Tenon's side wrote, the line for benchmarks/run.
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import sys
import time

THREADS, FOLDER = int(sys.argv[1]), sys.argv[2]
MODE, DEVICE = (sys.argv[3:] or [""])[0], (sys.argv[4:] or ["cpu"])[0]
WORDS = MODE.split("_")
WARM_UP_SECONDS, MEASURED_SECONDS = 0.25, 0.5  # at least, on other devices than cpu; as in bench.h
# Before any library reads them.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ[variable] = str(THREADS)


def processors(count, topology="/sys/devices/system/cpu"):
    """As many of those that this process may use, of different cores as far as there are."""
    def threads_before(number):
        try:
            with open(f"{topology}/cpu{number}/topology/thread_siblings_list", encoding="ascii") as file:
                return number - int(file.read().split(",")[0].split("-")[0])
        except OSError:
            return 0
    return sorted(os.sched_getaffinity(0), key=lambda number: (threads_before(number), number))[:count]


# XLA has no option for the size of its pool: it follows the processors that the process may use.
if DEVICE == "cpu":
    os.sched_setaffinity(0, processors(THREADS))

import numpy as np  # noqa: E402


def read(name, shape, dtype=np.float32):
    """An array that Tenon's side wrote."""
    return np.fromfile(f"{FOLDER}/{name}", dtype).reshape(shape)


def mean_seconds(count, step, wait=lambda: None):
    """wait() returns when the device has done what the steps gave it."""
    wait()
    began = time.perf_counter()
    for _ in range(count):
        step()
    wait()
    return (time.perf_counter() - began) / count


def long_mean_seconds(least, step, wait):
    """The mean over as many steps, a power of two, as take `least` seconds: long_mean_seconds of bench.h."""
    count = 1
    while (seconds := mean_seconds(count, step, wait)) * count < least:
        count *= 2
    return seconds


def single_calls(count, step):
    """Median and 99th percentile of the seconds of single calls."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    times.sort()
    return {"seconds": times[count // 2], "p99": times[count * 99 // 100]}


def report(library=None, **result):
    """library: what computes the products, in words."""
    print(json.dumps({name: float(value) for name, value in result.items()} | ({"library": library} if library else {})))
