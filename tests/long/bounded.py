"""Trainings in the bounded mode, of which processes are killed and stopped at random moments:
bounded.py BUILD [--runs N] [--faults N] [--seed N]

Trains N times undisturbed, which gives the band of the cost of the last pass: four standard deviations about the mean. Then
each training that is disturbed must end well, within the band, with all samples in each pass, and with no more repeated
minibatches than lost trainers. Prints a table by role and fault.
SPDX-License-Identifier: Apache-2.0"""
import argparse
import collections
import os
import pathlib
import random
import signal
import statistics
import sys
import tempfile
import time

import jobs
from faults import ITEMS, PATIENCE, TABLE, Launch, Wrong

TRAINERS, SERVERS, SAMPLES = 3, 2, 240
ROLES = {"trainer": (1, 2), "process 0": (0,), "server": (3, 4)}


def write_job(folder, seed, passes):
    draw = random.Random(seed)
    rows = [",".join([*(f"{draw.gauss(0, 1):.4g}" for _ in "abcd"), str(draw.randrange(ITEMS)), str(draw.randrange(3))])
            for _ in range(SAMPLES)]
    (folder / "train.csv").write_text("\n".join(["a,b,c,d,item,label", *rows]) + "\n")
    text = jobs.JOB.format(passes=passes, seed=seed, body=jobs.NORMALISED.format(size=16, act="tanh", drop=0),
                           updater=jobs.UPDATERS[1], columns="a, b, c, d", batch=16)
    text = text.replace('"label: i32', f'"item: i32 < {ITEMS}", "label: i32')
    text = text.replace('[[layer]]\nname = "score"', TABLE + '[[layer]]\nname = "score"')
    text = text.replace('inputs = "hidden"\nsize = 3', 'inputs = ["hidden", "item_vector"]\nsize = 3')
    head = 'threads = 1\nstaleness = 3\ntables = ["items.weight"]\n'
    (folder / "job.toml").write_text(head + text + jobs.CHECKPOINT.format(every=40))


class Training:
    """One training in a folder of its own."""

    def __init__(self, program, folder, seed, passes):
        write_job(folder, seed, passes)
        self.passes, self.costs, self.lost, self.repeated, self.torn = passes, {}, 0, 0, 0
        command = [program, "train", "job.toml", "--processes", str(TRAINERS), "--servers", str(SERVERS),
                   "--restarts", "100000", "--log-format", "json"]
        self.launch = Launch(command, folder, None)

    def take(self, kind, what):
        """Keeps what the training says. Whether it has ended."""
        if kind == "end" and what != 0:
            raise Wrong(f"exit code {what}: {''.join(self.launch.said)}")
        if kind == "event" and what["event"] == "begin_training":
            self.lost = self.repeated = self.torn = 0  # of this start
        if kind == "event":
            self.repeated, self.torn = what.get("repeated", self.repeated), what.get("torn", self.torn)
        if kind == "event" and what["event"] == "end_pass":
            if what["samples"] != SAMPLES:
                raise Wrong(f"pass {what['pass']} has {what['samples']} samples of {SAMPLES}")
            self.costs[what["pass"]] = what["cost"]
        return kind == "end"

    def go_on(self, seconds):
        """Trains so long, or to the end. Whether it goes on."""
        end = time.monotonic() + seconds
        while True:
            moment, kind, what = self.launch.next()
            if self.take(kind, what):
                return False
            if moment >= end:
                return True

    def hurt(self, rank, number):
        """Sends a signal to a process. The seconds until the launcher says so; None if the training has ended before."""
        pid = self.launch.pids().get(rank)
        if pid is None:
            return None
        began = time.monotonic()
        os.kill(pid, number)
        while True:
            moment, kind, what = self.launch.next()
            if kind == "said" and ("starts it again" in what or "starts again" in what):
                self.lost += "starts it again" in what
                return moment - began
            if self.take(kind, what):
                return None

    def check(self):
        if len(self.costs) != self.passes:
            raise Wrong(f"{len(self.costs)} passes of {self.passes}")
        if self.torn > self.repeated or self.repeated > self.lost:
            raise Wrong(f"{self.lost} trainers lost, {self.repeated} minibatches repeated, {self.torn} torn")
        return self.costs[self.passes]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--faults", type=int, default=120)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--passes", type=int, default=60)
    arguments = parser.parse_args()
    program, draw = str(arguments.build.resolve() / "bin/tenon"), random.Random(arguments.seed)
    plan = [(role, fault) for role in ROLES for fault in (signal.SIGKILL, signal.SIGSTOP)]
    plan = [plan[i % len(plan)] for i in range(arguments.faults)]
    draw.shuffle(plan)
    times, costs, repeated, torn = collections.defaultdict(list), [], 0, 0

    def train(faults):
        nonlocal repeated, torn
        with tempfile.TemporaryDirectory() as name:
            training = Training(program, pathlib.Path(name).resolve(), 1, arguments.passes)
            try:
                while faults and training.go_on(draw.uniform(0, 0.8)):
                    role, number = faults[-1]
                    seconds = training.hurt(draw.choice(ROLES[role]), number)
                    if seconds is not None:
                        times[faults.pop()].append(seconds)
                training.go_on(PATIENCE * 10)
            finally:
                training.launch.process.kill()
            cost = training.check()
            repeated, torn = repeated + training.repeated, torn + training.torn
            return cost

    try:
        costs = [train([]) for _ in range(arguments.runs)]
        middle, width = statistics.mean(costs), max(4 * statistics.pstdev(costs), 0.01 * statistics.mean(costs))
        print(f"{len(costs)} undisturbed trainings: cost {min(costs):.5f} to {max(costs):.5f}; "
              f"band {middle:.5f} +- {width:.5f}")
        disturbed = []
        while plan:
            disturbed.append(train(plan))
            if abs(disturbed[-1] - middle) > width:
                raise Wrong(f"cost {disturbed[-1]:.5f}, which is outside of the band")
        print(f"{len(disturbed)} disturbed trainings: cost {min(disturbed):.5f} to {max(disturbed):.5f}; "
              f"{repeated} minibatches repeated in their last starts, {torn} torn")
    except Wrong as wrong:
        print(f"seed {arguments.seed}: {wrong}")
        return 1
    finally:
        print("| role | fault | number | noticed after s: median, longest |\n|---|---|---:|---:|")
        for (role, number), seconds in sorted(times.items(), key=str):
            fault = "killed" if number == signal.SIGKILL else "stopped"
            print(f"| {role} | {fault} | {len(seconds)} | {statistics.median(seconds):.1f}, {max(seconds):.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
