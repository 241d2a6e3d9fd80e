"""Trains jobs with one process, and with two and three over each communicator of the build, and compares the files and the
events: teams.py BUILD [--short] [--comm TYPE...] [--processes N...]

Without --short the jobs are those of examples/, one pass each; with it two small ones with a normalised layer, and with
an LSTM over texts. SPDX-License-Identifier: Apache-2.0"""
import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import jobs

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMS = ("mpich", "openmpi", "zmq")
EXAMPLES = {  # folder, job, and what is changed in it
    "mlp": ("fashion_mnist", "mlp.toml", []),
    "mlp in bfloat16": ("fashion_mnist", "mlp.toml", ["compute=\"bf16\""]),
    "lenet": ("fashion_mnist", "lenet.toml", []),
    "transformer": ("transformer", "transformer.toml", ["updater.clip_norm=1.0"]),
    "lstm": ("sentiment", "lstm.toml", []),
    "recommender": ("recommender", "recommender.toml", []),
}
LSTM = """passes = 1
seed = 3
save = "model.safetensors"
outputs = ["cost", "accuracy"]
layer = [{ name = "word", type = "embedding", inputs = "words", vocabulary = 16, size = 8 },
         { name = "read", type = "lstm", inputs = "word", size = 6 },
         { name = "text", type = "sequence_pool", inputs = "read", kind = "max" },
         { name = "score", type = "fc", inputs = "text", size = 2 },
         { name = "cost", type = "cross_entropy", inputs = ["score", "label"], from_logits = true },
         { name = "accuracy", type = "accuracy", inputs = ["score", "label"] }]
updater = { type = "adam", learning_rate = 0.01, clip_norm = 0.5 }

[reader.train]
type = "text"
files = ["train.txt"]
labelled = true
batch = 16
shuffle = true
"""


class Differs(Exception):
    """Two trainings that should be equal are not."""


def small_jobs(folder):
    """Writes two jobs with their data. Their names, files and changes."""
    draw = random.Random(5)
    rows = [",".join([*(f"{draw.gauss(0, 1):.4g}" for _ in "abcd"), str(draw.randrange(3))]) for _ in range(200)]
    (folder / "train.csv").write_text("\n".join(["a,b,c,d,label", *rows]) + "\n")
    body = jobs.NORMALISED.format(size=12, act="relu", drop=0.2)
    (folder / "normalised.toml").write_text(
        jobs.JOB.format(passes=2, seed=5, body=body, updater=jobs.UPDATERS[1], columns="a, b, c, d", batch=16))
    texts = (f"{draw.choice('+-')}\t{' '.join(draw.choices('abcdefghijkl', k=draw.randrange(1, 9)))}\n" for _ in range(200))
    (folder / "train.txt").write_text("".join(texts))
    (folder / "lstm.toml").write_text(LSTM)
    yield "normalised", folder / "normalised.toml", []
    yield "lstm", folder / "lstm.toml", []


def example_jobs(folder):
    """Copies the examples and makes their data, likewise."""
    for name, (kind, job, changes) in EXAMPLES.items():
        copy = folder / kind
        if not copy.exists():
            shutil.copytree(ROOT / "examples" / kind, copy)
            if (copy / "generate").exists():
                subprocess.run([sys.executable, "-B", str(copy / "generate"), str(copy / "data")], check=True,
                               stdout=subprocess.DEVNULL)
        yield name, copy / job, [*changes, "passes=1"]


def without_times(event):
    """What an event says, but for durations and files."""
    if isinstance(event, dict):
        return {key: without_times(value) for key, value in event.items() if key not in ("seconds", "path")}
    return event


class Engine:
    """Trains with so many processes over a communicator."""

    def __init__(self, program, comm, processes):
        self.program, self.comm, self.processes = program, comm, processes

    def command(self):
        if self.comm == "zmq":
            return [self.program, "train", "--processes", str(self.processes)]
        words = ["--allow-run-as-root", "--oversubscribe"] if self.comm == "openmpi" else []
        return [f"mpiexec.{self.comm}", *words, "-n", str(self.processes), self.program, "train"]

    def missing(self):
        """Why it cannot be used here, None if it can."""
        if self.comm != "zmq" and shutil.which(f"mpiexec.{self.comm}") is None:
            return f"no launcher mpiexec.{self.comm} on this machine"
        plugin = pathlib.Path(self.program).parents[1] / f"lib/tenon/plugins/comms/{self.comm}.so"
        return None if plugin.exists() else f"no communicator {self.comm} in this build"


def trained(command, job, changes):
    """The digest of the file that a training saves, and its events."""
    file = job.with_name("team.safetensors")
    file.unlink(missing_ok=True)
    options = [word for change in [*changes, "shards=6"] for word in ("--set", change)]
    # The ranks share the cores: they yield them while they wait.
    environment = os.environ | {"OMPI_MCA_mpi_yield_when_idle": "1"}
    done = subprocess.run([*command, str(job), *options, "--threads", "1", "--save", str(file), "--log-format", "json"],
                          env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Differs(f"exit code {done.returncode}: {done.stderr}")
    events = [without_times(json.loads(line)) for line in done.stdout.splitlines()]
    return jobs.digest(file), events


def compare(program, job, changes, engines):
    digest, events = trained([program, "train"], job, changes)
    for engine in engines:
        other, others = trained(engine.command(), job, changes)
        where = f"{engine.processes} processes over {engine.comm}"
        if other != digest:
            raise Differs(f"{where} save another file")
        if others != events:
            place = next((pair for pair in zip(events, others, strict=False) if pair[0] != pair[1]), "their number")
            raise Differs(f"{where} have other events: {place}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--comm", nargs="+", default=COMMS, choices=COMMS)
    parser.add_argument("--processes", nargs="+", type=int, default=[2, 3])
    arguments = parser.parse_args()
    program = str(arguments.build.resolve() / "bin/tenon")
    engines = [Engine(program, comm, count) for comm in arguments.comm for count in arguments.processes]
    for reason in dict.fromkeys(filter(None, (engine.missing() for engine in engines))):
        print(reason)
    engines = [engine for engine in engines if engine.missing() is None]
    if not engines:
        return 77
    names = []
    with tempfile.TemporaryDirectory() as name:
        make = small_jobs if arguments.short else example_jobs
        for job, file, changes in make(pathlib.Path(name)):
            try:
                compare(program, file, changes, engines)
            except Differs as fault:
                print(f"{job}: {fault}")
                return 1
            names.append(job)
    print(f"{', '.join(names)}: one file each, over " + ", ".join(f"{each.comm} with {each.processes}" for each in engines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
