"""Trainings by `tenon train --cluster` in the fake cluster.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import pathlib
import random
import re
import signal
import subprocess
import time

import fake_user

BUILD = pathlib.Path(os.environ.get("TENON_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))
TENON = str(BUILD / "bin/tenon")
IMAGE = "registry.example/tenon:test"
SAMPLES = 240
JOB = """threads = 1
shards = 6
passes = {passes}
seed = 5
save = "model.safetensors"
outputs = ["cost"]

[[layer]]
name = "hidden"
type = "fc"
inputs = "x"
size = 16
act = "tanh"

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
type = "adam"
learning_rate = 1e-3

[reader.train]
type = "csv"
files = ["{data}"]
columns = ["x = a, b, c, d: f32", "label: i32 < 3"]
batch = 16
shuffle = true
"""


def write_data(folder: pathlib.Path) -> None:
    folder.mkdir(exist_ok=True)
    draw = random.Random(1)
    rows = [",".join([*(f"{draw.gauss(0, 1):.4g}" for _ in "abcd"), str(draw.randrange(3))]) for _ in range(SAMPLES)]
    (folder / "train.csv").write_text("\n".join(["a,b,c,d,label", *rows]) + "\n")


class Laptop:
    """A folder with jobs, from which a cluster trains them."""

    def __init__(self, folder: pathlib.Path, cluster: fake_user.Client):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has programs in the background ignore it
        self.folder, self.cluster = folder, cluster
        self.data = cluster.folder.parent / "data"
        write_data(self.data)
        self.write("job.toml")

    def write(self, name: str, passes: int = 3, data: str = "/data/train.csv", more: str = "") -> None:
        (self.folder / name).write_text(JOB.format(passes=passes, data=data) + more)

    def begin(self, *options: str, context: str = "token", job: str = "job.toml", **variables: str) -> subprocess.Popen:
        words = [TENON, "train", job, f"--cluster={context}" if context else "--cluster", "--host-path", f"{self.data}:/data"]
        words += [*([] if "--image" in options else ["--image", IMAGE]), *options]
        environment = {**os.environ, "KUBECONFIG": str(self.cluster.folder / "kubeconfig"), **variables}
        return subprocess.Popen(words, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip

    def run(self, *options: str, seconds: float = 60, **others: str) -> tuple[int, str]:
        process = self.begin(*options, **others)
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            raise AssertionError(process.communicate()[0]) from None
        return process.returncode, output

    def dist(self, *words: str) -> tuple[int, str]:
        environment = {**os.environ, "KUBECONFIG": str(self.cluster.folder / "kubeconfig")}
        done = subprocess.run([TENON, "dist", *words], check=False, env=environment, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def trained_alone(self, passes: int = 3) -> bytes:
        """The model file that one process on this machine trains."""
        self.write("alone.toml", passes, data=str(self.data / "train.csv"))
        words = [TENON, "train", "alone.toml", "--save", "alone.safetensors", "--quiet"]
        subprocess.run(words, check=True, cwd=self.folder, timeout=60, stdout=subprocess.DEVNULL)
        return (self.folder / "alone.safetensors").read_bytes()

    def trained(self) -> bytes:
        return (self.folder / "model.safetensors").read_bytes()

    def left(self) -> dict[str, int]:
        """What is in the cluster besides events: objects by kind, and processes."""
        counts = self.cluster.control("counts")
        objects = {kind: number for kind, number in counts["objects"].items() if kind != "events" and number}
        return objects | ({"processes": counts["processes"]} if counts["processes"] else {})

    def pods(self, role: str = "") -> list[str]:
        """The names of the pods that run."""
        found = self.cluster("GET", f"{fake_user.ROOT}/pods")["items"]
        running = [pod["metadata"] for pod in found if pod["status"].get("phase") == "Running"]
        return [metadata["name"] for metadata in running if role in metadata["labels"].get("tenon.dev/role", "")]

    def wait_for(self, process: subprocess.Popen, words: str, seconds: float = 30) -> str:
        """Reads what the process prints until a line matches."""
        output, end = "", time.monotonic() + seconds
        assert process.stdout is not None
        while not re.search(words, output):
            line = process.stdout.readline()
            assert line and time.monotonic() < end, output
            output += line
        return output
