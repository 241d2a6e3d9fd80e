"""Rounds in turns, the machine watched meanwhile. SPDX-License-Identifier: Apache-2.0"""
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from support import sides

TICKS = os.sysconf("SC_CLK_TCK")
LIMITS = {"flops": "flops", "bf16_flops": "bf16_flops", "bytes": "bandwidth"}  # of a step: the probe's rate
MOST_REACHED = 1.02  # no step is faster than the machine: a larger share of the limit is the fault of the probe
SPARE_TRIES = 3  # rounds run at most: this many times those that count


class NotComparable(Exception):
    pass


def machine_seconds(stat="/proc/stat"):
    """Processor seconds that this machine was busy or that its own host took from it, since its start."""
    with open(stat, encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def share_of_others(machine, own, seconds, cores):
    """Share of the machine's capacity that processes other than ours took. Counters tick in 10 ms, so a few ticks
    tell nothing."""
    return max(0.0, machine - own - 5 / TICKS) / (seconds * cores)


def run(side, outside=None, limit=float("inf")):
    """One process: what it printed, and the share of the machine that others took meanwhile. limit: of its seconds."""
    before, own, began = machine_seconds(), children_seconds(), time.perf_counter()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(list(map(str, side.command)), stdout=out, stderr=errors,
                                   env=sides.environment(side))
        ended = threading.Event()
        timer = threading.Timer(limit, lambda: (ended.set(), os.kill(process.pid, signal.SIGKILL)))
        if limit != float("inf"):
            timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if ended.is_set():
            raise NotComparable(f"{side.name} did not end in {limit:g} s")
        for file in out, errors:
            file.seek(0)
        if process.returncode != 0:
            raise NotComparable(f"{side.name} ended with {process.returncode}: {errors.read().strip()[-400:]}")
        result = json.loads(out.read().strip().splitlines()[-1])
    if outside:  # the figures of a step are not those of the process
        result = {key: result[key] for key in ("loss", "library") if key in result}
    if outside == "seconds":
        result["seconds"] = seconds
    elif outside == "memory":
        result["seconds"] = usage.ru_maxrss * 1024.0  # bytes; shown like all figures
    own = children_seconds() - own
    return result, share_of_others(machine_seconds() - before, own, seconds, os.cpu_count())


def check_losses(results, tolerance):
    """Sides that compute something else are not compared."""
    ours = results["tenon"].get("loss")
    for name, result in results.items():
        theirs = result.get("loss")
        if tolerance == 0 or name == "probe" or ours is None:
            continue
        if theirs is None or not abs(theirs - ours) <= tolerance * abs(ours):
            raise NotComparable(f"not the same mathematics: loss {ours} here, {theirs} with {name}")


def busy_beside(workload):
    """A process that keeps a core busy, where the workload asks for one."""
    if "beside" not in workload:
        return None
    return subprocess.Popen([sys.executable, "-c", "while True: pass"])


def limit_of(result, probe):
    """Seconds that the arithmetic and the bytes of a step take at the rates of the probe."""
    return sum(result[key] / probe[rate] for key, rate in LIMITS.items() if result.get(key))


def one_round(order, workload, failed, limit):
    """What each side printed, and the largest share of the machine that others took. Peers that fail are added to
    `failed`, with the reason, and are left out from then on."""
    results, noise = {}, 0.0
    for side in order:
        if side.name in failed:
            continue
        try:
            results[side.name], others = run(side, workload.get("outside") if side.name != "probe" else None,
                                             limit)
            noise = max(noise, others)
        except NotComparable as problem:
            if not side.is_peer:
                raise
            failed[side.name] = str(problem)
    check_losses(results, workload["tolerance"])
    return results, noise


def measure(taking_part, workload, given):
    kept, left_out, failed = [], 0, {}
    other = busy_beside(workload)
    limit = float("inf") if other else given.noise
    try:
        while len(kept) < given.rounds and len(kept) + left_out < SPARE_TRIES * given.rounds:
            # Every second round goes the other way, but Tenon's first run writes what the others read.
            order = taking_part if (len(kept) + left_out) % 2 == 0 else list(reversed(taking_part))
            results, noise = one_round(order, workload, failed, given.seconds)
            if noise > limit:
                left_out += 1
            else:
                kept.append(results)
    except NotComparable as problem:
        return {"sides": {}, "failed": failed, "problem": str(problem), "left_out": left_out}
    finally:
        if other:
            other.kill()
            other.wait()
    if not kept:
        return {"sides": {}, "failed": failed, "left_out": left_out,
                "problem": f"other processes disturbed all {left_out} rounds"}
    return summary(kept, left_out) | {"failed": failed}


def summary(kept, left_out):
    """Medians of each side, and of the ratios of each round."""
    def figures(name):
        seconds = sorted(result[name]["seconds"] for result in kept)
        side = {"median": statistics.median(seconds), "least": seconds[0], "most": seconds[-1],
                "ratio": statistics.median(result[name]["seconds"] / result["tenon"]["seconds"] for result in kept)}
        if "library" in kept[0][name]:
            side["library"] = kept[0][name]["library"]
        if "p99" in kept[0][name]:
            side["p99"] = statistics.median(result[name]["p99"] for result in kept)
        return side

    names = [name for name in kept[0] if name != "probe" and all(name in result for result in kept)]
    tenon = kept[0]["tenon"]
    probes = {key: statistics.median(result["probe"][key] for result in kept) for key in kept[0].get("probe", {})}
    limit = limit_of(tenon, probes) if probes else 0
    sides_measured = {name: figures(name) for name in sorted(names, key=lambda name: name != "tenon")}
    if limit > MOST_REACHED * sides_measured["tenon"]["median"]:
        return {"sides": {}, "left_out": left_out,
                "problem": f"{100 * limit / sides_measured['tenon']['median']:.0f} % of the limit: the probe gave less "
                           "than this machine can do"}
    return {"sides": sides_measured, "probe": probes, "limit": limit or None, "rounds": len(kept), "left_out": left_out,
            "loss": tenon.get("loss")}
