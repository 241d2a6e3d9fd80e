"""Random jobs of `tenon train` with data of their own, and runs of the program.
SPDX-License-Identifier: Apache-2.0"""
import hashlib
import os
import pathlib
import random
import subprocess

UPDATERS = ("type = \"sgd\"\nlearning_rate = 0.05\nmomentum = 0.9", "type = \"adam\"\nlearning_rate = 1e-3",
            "type = \"rmsprop\"\nlearning_rate = 1e-3")
DENSE = """[[layer]]
name = "hidden"
type = "fc"
inputs = "x"
size = {size}
act = "{act}"
drop_rate = {drop}
"""
NORMALISED = DENSE.replace('name = "hidden"', 'name = "linear"') + """
[[layer]]
name = "hidden"
type = "batch_norm"
inputs = "linear"
"""
JOB = """passes = {passes}
seed = {seed}
save = "model.safetensors"
outputs = ["cost"]

{body}
[[layer]]
name = "score"
type = "fc"
inputs = "hidden"
size = 3

[[layer]]
name = "cost"
type = "cross_entropy"
inputs = ["score", "label"]
from_logits = true

[updater]
{updater}

[reader.train]
type = "csv"
files = ["train.csv"]
columns = ["x = {columns}: f32", "label: i32 < 3"]
batch = {batch}
shuffle = true
"""
CHECKPOINT = '\n[checkpoint]\nfolder = "kept"\nevery_batches = {every}\nbest = "cost"\n'


def write_job(folder, seed, passes):
    """Writes job.toml and its data into the folder; a seed is a job. Returns the text without checkpoints."""
    draw = random.Random(seed)
    width, samples = draw.choice((1, 3, 4, 7, 17)), draw.randrange(40, 400)
    names = [f"c{i}" for i in range(width)]
    rows = [[f"{draw.gauss(0, 1):.4g}" for _ in names] + [str(draw.randrange(3))] for _ in range(samples)]
    lines = [",".join([*names, "label"]), *map(",".join, rows)]
    (folder / "train.csv").write_text("\n".join(lines) + "\n")
    body = draw.choice((DENSE, NORMALISED)).format(
        size=draw.choice((1, 5, 16, 33)), act=draw.choice(("relu", "tanh", "gelu")), drop=draw.choice((0, 0.3)))
    text = JOB.format(passes=passes, seed=draw.randrange(1000), body=body, updater=draw.choice(UPDATERS),
                      columns=", ".join(names), batch=draw.choice((1, 7, 32, 1000)))
    (folder / "job.toml").write_text(text)
    return text


def train(program, folder, *arguments, threads=2):
    """Starts a training of the job in the folder; the process."""
    command = [program, "train", "job.toml", "--quiet", "--threads", str(threads), *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process, limit=600):
    """Waits for a training. RuntimeError with its output unless it succeeded."""
    output, _ = process.communicate(timeout=limit)
    if process.returncode != 0:
        raise RuntimeError(f"exit code {process.returncode}: {output}")


def memory(program, folder):
    """Trains the job in the folder; the most memory of that process, in MiB. RuntimeError unless it succeeded."""
    with train(program, folder) as process:
        output = process.stdout.read()  # until it ends
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"exit code {process.returncode}: {output}")
    return usage.ru_maxrss >> 10


def digest(path):
    """SHA-256 of a file, in hexadecimal digits."""
    value = hashlib.sha256()
    with pathlib.Path(path).open("rb") as file:
        while block := file.read(1 << 20):
            value.update(block)
    return value.hexdigest()
