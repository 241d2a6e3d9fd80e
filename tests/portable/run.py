"""Trains small jobs on several kinds of processor and with several numbers of threads, and compares the bits of what they
save and print. SPDX-License-Identifier: Apache-2.0
    run.py [--tenon [PROCESSOR=]PATH] [--processors LIST] [--threads LIST] [--jobs LIST] [--kills N] [--parallel N]
Prints a row for each job: by processor and threads a digest of its model files and answers, and which of the models, the
events of the training (without their times) and the answers are not the same everywhere.
Ends with 0 if all are equal, 1 if any differ, 77 if an emulator is missing.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import hashlib
import itertools
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import data  # noqa: E402

X86 = "qemu-x86_64-static"
PROCESSORS = {  # the command before that of tenon
    "native": [],
    "clang": [],  # natively, with a program that clang compiled
    "haswell": [X86, "-cpu", "Haswell"],
    "epyc": [X86, "-cpu", "EPYC"],
    "nehalem": [X86, "-cpu", "Nehalem"],
    "arm64": ["qemu-aarch64-static", "-L", str(HERE.parents[1] / "build-arm64/sysroot")],
}
PARTS = ("model", "events", "answers")
UPDATES = 31  # of a training that is killed, at least: three between two kills


@dataclasses.dataclass(frozen=True)
class Case:
    """One job on one processor with so many threads; kills counts the times that it is killed and goes on."""

    job: str
    processor: str
    threads: int
    kills: int = 0

    def name(self):
        return f"{self.job} {self.column()}"

    def column(self):
        return f"{self.processor}/{self.threads}" + (f"/kills{self.kills}" if self.kills else "")


@dataclasses.dataclass
class Outcome:
    digests: dict  # of each part
    seconds: float
    kills: int = 0


class Failed(Exception):
    pass


class Training:
    """Runs a case in an empty folder, which links the data."""

    def __init__(self, case, options, folder, inputs):
        self.case, self.folder = case, folder
        self.program = [*PROCESSORS[case.processor], options.tenon[case.processor]]
        self.draws = random.Random(f"{options.seed} {case}")
        self.thread_counts, self.kills_any = options.threads, options.kills > 0
        (folder / "data").symlink_to(inputs)
        source = HERE / "jobs" / f"{case.job}.toml"
        shutil.copy(source, folder / "job.toml")
        self.generates = "\n[generate]\n" in source.read_text()

    def command(self, verb, *arguments, threads=None):
        return [*self.program, verb, "job.toml", "--threads", str(threads or self.case.threads), *arguments]

    def output(self, verb, *arguments):
        """Returns standard output; of an emulator without what it says of features."""
        ended = subprocess.run(self.command(verb, *arguments), cwd=self.folder, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            errors = [line for line in ended.stderr.splitlines() if not line.startswith("qemu-")]
            raise Failed(f"{self.case.name()}: {verb} ended with {ended.returncode}: {' '.join(errors)[-600:]}")
        return ended.stdout

    def train(self, *arguments):
        return self.output("train", "--log-format", "json", "--save", "model.safetensors", *arguments)

    def train_and_kill(self, *arguments):
        """Kills the training after one to three checkpoints, again and again, and ends it. Returns the kills."""
        kills = 0
        while kills < self.case.kills:
            left, threads = self.draws.randint(1, 3), self.draws.choice(self.thread_counts)
            command = self.command("train", "--log-format", "json", "--no-save", "--resume", *arguments, threads=threads)
            streams = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
            with subprocess.Popen(command, cwd=self.folder, **streams) as training:
                for line in training.stdout:
                    left -= json.loads(line)["event"] == "checkpoint"
                    if left == 0:
                        training.kill()
                        break
            if left > 0:
                break  # it came to its end
            kills += 1
        self.train("--resume", *arguments)
        return kills

    def answers(self):
        texts = [self.output("infer", "--model", "model.safetensors", "--reader", "train")]
        if self.generates:
            prompts = ["--model", "model.safetensors", "--format", "json", "--prompt", "the cat", "--prompt", "a"]
            texts.append(self.output("generate", *prompts, "--method", "sample", "--seed", "3", "--results", "2"))
            texts.append(self.output("generate", *prompts, "--method", "beam", "--beam-size", "3"))
        return "".join(texts)

    def run(self):
        began = time.monotonic()
        passes = ["--passes", str(self.passes())] if self.kills_any else []
        kills, texts = 0, {}
        if self.case.kills:  # it prints the events of some minibatches twice
            kills = self.train_and_kill("--set", "checkpoint.folder=kept", "--set", "checkpoint.every_batches=1", *passes)
        else:
            texts["events"] = stable(self.train(*passes)).encode()
        texts["model"] = b"".join(file.read_bytes() for file in sorted(self.folder.glob("*.safetensors")))
        texts["answers"] = self.answers().encode()
        digests = {part: hashlib.sha256(text).hexdigest()[:8] for part, text in texts.items()}
        return Outcome(digests, time.monotonic() - began, kills)

    def passes(self):
        """Returns the passes that have enough updates to be killed so often."""
        stated = int(re.search(r"^passes = (\d+)$", (self.folder / "job.toml").read_text(), re.MULTILINE).group(1))
        events = self.output("train", "--log-format", "json", "--no-save", "--passes", "1")
        updates = sum('"event":"end_iteration"' in line for line in events.splitlines())
        return max(stated, -(-UPDATES // updates))


def stable(events):
    """Returns the events without their times."""
    lines = []
    for line in events.splitlines():
        event = json.loads(line)
        event.pop("seconds", None)
        lines.append(json.dumps(event))
    return "\n".join(lines)


def run_cases(cases, options):
    """Yields each case with its outcome, or with the exception that ended it, in their order."""
    def outcome(case):
        with tempfile.TemporaryDirectory(prefix="portable-") as folder:
            try:
                return Training(case, options, pathlib.Path(folder), options.data).run()
            except Failed as failure:
                return failure

    with concurrent.futures.ThreadPoolExecutor(options.parallel) as pool:
        yield from zip(cases, pool.map(outcome, cases), strict=True)


def different(outcomes):
    """Returns the parts in which the outcomes of a job differ."""
    values = [o.digests for o in outcomes if isinstance(o, Outcome)]
    return [part for part in PARTS if len({digests[part] for digests in values if part in digests}) > 1]


def report(outcomes, columns):
    """Prints the table, a row as soon as its job is done, and returns how many jobs differ or failed."""
    print(f"{'job':20}", *(f"{column:>15}" for column in columns), " differs in")
    jobs, bad, kills, seconds, slowest = 0, 0, 0, 0.0, (0.0, "none")
    for job, group in itertools.groupby(outcomes, lambda pair: pair[0].job):
        row = dict(group)
        failures = [outcome for outcome in row.values() if isinstance(outcome, Failed)]
        parts = different(row.values())
        print(f"{job:20}", *(f"{_cell(outcome):>15}" for outcome in row.values()), " " + ", ".join(parts), flush=True)
        for failure in failures:
            print(f"  {failure}")
        jobs, bad = jobs + 1, bad + bool(failures or parts)
        for case, outcome in row.items():
            if isinstance(outcome, Outcome):
                kills, seconds = kills + outcome.kills, seconds + outcome.seconds
                slowest = max(slowest, (outcome.seconds, case.name()))
    print(f"{kills} kills, {seconds:.0f} s, the longest {slowest[1]}: {slowest[0]:.1f} s")
    print(f"{jobs} jobs, {bad} of them differ")
    return bad


def _cell(outcome):
    if isinstance(outcome, Failed):
        return "failed"
    whole = hashlib.sha256((outcome.digests["model"] + outcome.digests["answers"]).encode()).hexdigest()[:8]
    return f"{whole}{f' ({outcome.kills})' if outcome.kills else ''}"


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tenon", action="append", default=[], metavar="[PROCESSOR=]PATH", help="default: build/bin/tenon")
    parser.add_argument("--processors", default="native", help=f"of {', '.join(PROCESSORS)}; with commas between them")
    parser.add_argument("--threads", default="1", help="numbers with commas between them")
    parser.add_argument("--jobs", default="", help="names with commas between them; all")
    parser.add_argument("--kills", type=int, default=0, help="also kill each training so often, and resume it")
    parser.add_argument("--seed", type=int, default=1, help="of the kills")
    parser.add_argument("--parallel", type=int, default=2, help="trainings at a time")
    options = parser.parse_args(arguments)
    options.processors = options.processors.split(",")
    options.threads = [int(number) for number in options.threads.split(",")]
    options.jobs = options.jobs.split(",") if options.jobs else sorted(file.stem for file in (HERE / "jobs").glob("*.toml"))
    programs = {"": str(HERE.parents[1] / "build/bin/tenon")}
    programs.update(text.split("=", 1) if "=" in text else ("", text) for text in options.tenon)
    options.tenon = {name: str(pathlib.Path(programs.get(name, programs[""])).absolute()) for name in options.processors}
    unknown = set(options.processors) - set(PROCESSORS)
    if unknown:
        parser.error(f"unknown processor {', '.join(sorted(unknown))}; known: {', '.join(PROCESSORS)}")
    return options


def main():
    options = parse(sys.argv[1:])
    for name in options.processors:
        if PROCESSORS[name] and not shutil.which(PROCESSORS[name][0]):
            print(f"{PROCESSORS[name][0]} is not installed (scripts/install-packages portable)")
            return 77
    with tempfile.TemporaryDirectory(prefix="portable-") as folder:
        options.data = pathlib.Path(folder) / "data"
        data.write(options.data)
        counts = [0, options.kills] if options.kills else [0]
        cases = [Case(job, processor, threads, kills) for job in options.jobs for kills in counts
                 for processor in options.processors for threads in options.threads]  # fmt: skip
        columns = dict.fromkeys(case.column() for case in cases)
        return 1 if report(run_cases(cases, options), columns) else 0


if __name__ == "__main__":
    sys.exit(main())
