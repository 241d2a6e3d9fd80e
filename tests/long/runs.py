"""Runs that take too long for a gate, each from a seed: runs.py BUILD [--minutes M] [--seed N] [--record] [RUN...]

    kills       random jobs, killed at random times and resumed, save the model of an uninterrupted run
    threads     random jobs save the same model with 1, 2 and 8 threads
    reloads     a process that trains, saves, loads and infers again and again needs no more memory
    programs    random programs against the reference in NumPy (tests/differential)
    graphs      random graphs and pointwise programs against their interpreters
    teams       the jobs of examples/ save one file with one process, and with two and three over each communicator
    faults      trainings of three processes of which one is killed, stopped or cut off save the file of one
    files       damaged models, jobs, plugin sets, notes and data are refused, or read as what they say
    big_data    a pass over a file of 10 GB needs as much memory as over one of 1 MB, and two bytes for each line
    big_model   parameters of 2 GB are trained, saved, loaded and saved again, byte for byte

--minutes: of each of the runs but teams, faults and those of big files. --record appends a line for each run to
docs/testing.md. Fails if a run found a fault, with what reproduces it. SPDX-License-Identifier: Apache-2.0
"""
import argparse
import datetime
import itertools
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import jobs

KINDS_OF_FILES = 13
ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/testing.md"


class Fault(Exception):
    """What a run found, with what reproduces it."""


class Runs:
    """One method for each run; it returns what it did, in words, or raises Fault."""

    def __init__(self, build, minutes, seed):
        self.build, self.minutes, self.seed = build, minutes, seed
        self.program = str(build / "bin/tenon")
        self.environment = os.environ | {"PYTHONPATH": str(build / "python")}

    def seeds(self):
        """Seeds from the first on, until the time is over."""
        end = time.monotonic() + 60 * self.minutes
        return itertools.takewhile(lambda _: time.monotonic() < end, itertools.count(self.seed))

    def kills(self):
        count = kills = 0
        for seed in self.seeds():
            with tempfile.TemporaryDirectory() as name:
                folder, draw = pathlib.Path(name), random.Random(seed)
                text = jobs.write_job(folder, seed, passes=6)
                began = time.monotonic()
                jobs.finish(jobs.train(self.program, folder))
                whole, expected = time.monotonic() - began, jobs.digest(folder / "model.safetensors")
                (folder / "model.safetensors").unlink()
                (folder / "job.toml").write_text(text + jobs.CHECKPOINT.format(every=draw.choice((1, 3, 10))))
                for _ in range(draw.randrange(1, 8)):
                    process = jobs.train(self.program, folder, "--resume", threads=draw.choice((1, 2, 4)))
                    time.sleep(draw.uniform(0, whole))
                    process.kill()
                    process.communicate()
                    kills += process.returncode != 0
                jobs.finish(jobs.train(self.program, folder, "--resume"))
                if jobs.digest(folder / "model.safetensors") != expected:
                    raise Fault(f"seed {seed}: the resumed training saved another model")
                count += 1
        return f"{count} jobs, {kills} kills"

    def threads(self):
        count = 0
        for seed in self.seeds():
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                jobs.write_job(folder, seed, passes=3)
                digests = set()
                for threads in (1, 2, 8):
                    jobs.finish(jobs.train(self.program, folder, threads=threads))
                    digests.add(jobs.digest(folder / "model.safetensors"))
                if len(digests) != 1:
                    raise Fault(f"seed {seed}: 1, 2 and 8 threads save other models")
                count += 1
        return f"{count} jobs with 1, 2 and 8 threads"

    def reloads(self):
        script = pathlib.Path(__file__).with_name("reloads.py")
        command = [sys.executable, "-B", str(script), str(60 * self.minutes), str(self.seed)]
        return self.told(command).splitlines()[-1]

    def programs(self):
        script, count, size = ROOT / "tests/differential/differential.py", 0, 200
        for number in self.seeds():
            begin = self.seed + (number - self.seed) * size
            self.told([sys.executable, "-B", str(script), "--seed", str(begin), "--count", str(size)])
            count += size
        return f"{count} programs"

    def graphs(self):
        count, size = 0, 2500
        for number in self.seeds():
            begin = 1 + (self.seed + number) * size
            environment = self.environment | {"TENON_GRAPHS": str(size), "TENON_FIRST_SEED": str(begin)}
            for test in ("test_host_compile_graph_fuzz_test", "test_devices_pointwise_fuzz_test"):
                self.told([str(self.build / "tests" / test), "--gtest_brief=1"], environment)
            count += size
        return f"{count} graphs, {count * 1500 // size} pointwise programs"

    def teams(self):
        return self.told([sys.executable, "-B", str(ROOT / "tests/long/teams.py"), str(self.build)]).splitlines()[-1]

    def faults(self):
        script = ROOT / "tests/long/faults.py"
        return self.told([sys.executable, "-B", str(script), str(self.build), "--seed", str(self.seed)]).splitlines()[-1]

    def files(self):
        count, size = 0, 1000
        for number in self.seeds():
            begin = 1 + number * size
            environment = self.environment | {"TENON_FILES": str(size), "TENON_FIRST_SEED": str(begin)}
            for test in ("host_models", "host_records", "readers_files", "host_cli_jobs"):
                self.told([str(self.build / "tests" / f"test_{test}_fuzz_test"), "--gtest_brief=1"], environment)
            count += size
        return f"{count} damaged files of each of {KINDS_OF_FILES} kinds"

    def big_data(self):
        peaks, lines = [], 0
        for size in (1 << 20, 10 * 10**9):
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                jobs.write_job(folder, self.seed, passes=1)
                data = folder / "train.csv"
                header, *rows = data.read_bytes().splitlines(keepends=True)
                copies = max(1, (1 << 20) // sum(map(len, rows)))
                block = b"".join(rows) * copies
                lines = max(1, size // len(block)) * copies * len(rows)
                with data.open("wb") as file:
                    file.write(header)
                    for _ in range(max(1, size // len(block))):
                        file.write(block)
                text = (folder / "job.toml").read_text().replace("shuffle = true", "shuffle = false")
                (folder / "job.toml").write_text(text)
                peaks.append(jobs.memory(self.program, folder))
        if peaks[1] > peaks[0] + 64 + (2 * lines >> 20):
            raise Fault(f"10 GB of {lines} lines took {peaks[1]} MiB of memory, 1 MiB of them {peaks[0]}")
        return f"10 GB of {lines} lines in one pass, at most {peaks[1]} MiB of memory"

    def big_model(self):
        script = pathlib.Path(__file__).with_name("big_model.py")
        return self.told([sys.executable, "-B", str(script), str(self.seed)]).splitlines()[-1]

    def told(self, command, environment=None):
        """The output of a command. Fault if it fails."""
        done = subprocess.run(command, env=environment or self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="backslashreplace", check=False)
        if done.returncode != 0:
            raise Fault(f"{' '.join(command)} exited with {done.returncode}:\n{done.stdout}")
        return done.stdout


RUNS = [name for name in vars(Runs) if name in __doc__]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="all, if none is named")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_intermixed_args()
    if unknown := set(arguments.runs) - set(RUNS):
        parser.error(f"unknown runs: {', '.join(sorted(unknown))}")
    runs, faults = Runs(arguments.build.resolve(), arguments.minutes, arguments.seed), 0
    for name in arguments.runs or RUNS:
        began = time.monotonic()
        try:
            result = getattr(runs, name)()
        except Fault as fault:
            faults += 1
            print(f"{name}, seed {arguments.seed}: {fault}", flush=True)
            continue
        minutes = (time.monotonic() - began) / 60
        line = f"| {datetime.datetime.now(tz=datetime.UTC).date()} | `{name}` | {arguments.seed} | {result} | {minutes:.0f} |"
        print(line, flush=True)
        if arguments.record:
            with PAGE.open("a", encoding="utf-8") as page:
                page.write(line + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
