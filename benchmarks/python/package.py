"""The cost of the Python package: its import and first step beside PyTorch's, and a step beside the program's.

    PYTHONPATH=build/python build/venv/bin/python benchmarks/python/package.py [--torch build-peers/bin/python]

Figures are medians over rounds. A step is one of the smallest network (16-32-32-2, one sample, SGD, one thread, samples
from .npy files), so that the difference between two ways to drive it is what a step costs beside its arithmetic; or one of
784-128-10 (128 samples in a new order, Adam, one thread), so that the difference is what reading wide samples costs.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tenon

ROWS, WIDE_ROWS, FEW, MANY, ROUNDS = 20000, 60000, 1, 5, 5
FILES = ["x.npy", "y.npy"]

JOB = """
threads = 1
layer = [{ name = "a", type = "fc", inputs = ["x"], size = 32, act = "relu" },
         { name = "b", type = "fc", inputs = ["a"], size = 32, act = "relu" },
         { name = "score", type = "fc", inputs = ["b"], size = 2 },
         { name = "cost", type = "cross_entropy", inputs = ["score", "y"], from_logits = true }]
updater = { type = "sgd" }
reader.train = { type = "npy", files = ["x.npy", "y.npy"], classes = [0, 2], batch = 1 }
"""

WIDE_JOB = """
threads = 1
layer = [{ name = "a", type = "fc", inputs = ["x"], size = 128, act = "relu" },
         { name = "score", type = "fc", inputs = ["a"], size = 10 },
         { name = "cost", type = "cross_entropy", inputs = ["score", "y"], from_logits = true }]
updater = { type = "adam" }
reader.train = { type = "npy", files = ["x.npy", "y.npy"], classes = [0, 10], batch = 128, shuffle = true }
"""

FIRST = """
import numpy as np, tenon
x = tenon.layer.data("x", tenon.data_type.dense_vector(784))
y = tenon.layer.data("y", tenon.data_type.integer_value(10))
score = tenon.layer.fc(tenon.layer.fc(x, size=128, act="relu"), size=10)
cost = tenon.layer.cross_entropy(score, y, from_logits=True)
rows = {"x": np.full((128, 784), 0.5, np.float32), "y": np.full(128, 3)}
tenon.train(cost, tenon.parameters.create(cost), rows, updater="adam")
"""

FIRST_TORCH = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters())
torch.nn.functional.cross_entropy(model(torch.full((128, 784), 0.5)), torch.full((128,), 3)).backward()
optimizer.step()
"""


def seconds(work: Callable[[], object]) -> float:
    """Returns the wall-clock seconds of a call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def median(work: Callable[[], float]) -> float:
    """Returns the median of several rounds."""
    return statistics.median(work() for _ in range(ROUNDS))


def process(interpreter: str, program: str) -> float:
    """Returns the seconds of a process that runs a program, from its start to its end."""
    return seconds(lambda: subprocess.run([interpreter, "-c", program], check=True))


def step(train: Callable[[int], object], steps: int) -> float:
    """Returns the seconds of a step: train(passes) for many passes, less those for few, with so many steps in a pass."""
    return median(lambda: seconds(lambda: train(MANY)) - seconds(lambda: train(FEW))) / (steps * (MANY - FEW))


def program(passes: int) -> object:
    """Trains job.toml by the program."""
    command = [sys.executable, "-m", "tenon", "train", "job.toml", "--passes", str(passes), "--quiet"]
    return subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def trained(cost: tenon.Layer, **options: Any) -> Callable[[Any, Any], Callable[[int], None]]:
    """Returns what makes train(passes) for a reader and a handler."""
    parameters = tenon.parameters.create(cost)

    def of(reader: Any, handler: tenon.trainer.Handler | None) -> Callable[[int], None]:
        return lambda passes: tenon.train(cost, parameters, reader, handler, passes=passes, **options)

    return of


def steps() -> dict[str, float]:
    """Returns the seconds of a step of the smallest network, by what drives it. Works in the present folder."""
    random = np.random.default_rng(0)
    np.save("x.npy", random.normal(size=(ROWS, 16)).astype(np.float32))
    np.save("y.npy", random.integers(0, 2, ROWS))
    Path("job.toml").write_text(JOB)
    tenon.use(tenon.Host(threads=1))
    x = tenon.layer.data("x", tenon.data_type.dense_vector(16))
    y = tenon.layer.data("y", tenon.data_type.integer_value(2))
    hidden = tenon.layer.fc(tenon.layer.fc(x, size=32, act="relu"), size=32, act="relu")
    train = trained(tenon.layer.cross_entropy(tenon.layer.fc(hidden, size=2), y, from_logits=True),
                    batch_size=1, updater="sgd")  # fmt: skip
    files = tenon.reader.npy(files=FILES, classes=[0, 2])

    def rows() -> object:
        return zip(np.load("x.npy"), np.load("y.npy"), strict=True)

    return {
        "the program": step(program, ROWS),
        "tenon.train": step(train(files, None), ROWS),
        "tenon.train with a handler that reads the cost": step(train(files, lambda event: event.cost), ROWS),
        "tenon.train with a handler, samples of a Python generator": step(train(rows, lambda event: event.cost), ROWS),
    }


def wide_steps() -> dict[str, float]:
    """Returns the seconds of a step with samples of 784 numbers, by what drives it. Works in the present folder."""
    random = np.random.default_rng(0)
    pixels, labels = random.random((WIDE_ROWS, 784), np.float32), random.integers(0, 10, WIDE_ROWS)
    np.save("x.npy", pixels)
    np.save("y.npy", labels)
    Path("job.toml").write_text(WIDE_JOB)
    tenon.use(tenon.Host(threads=1))
    x = tenon.layer.data("x", tenon.data_type.dense_vector(784))
    y = tenon.layer.data("y", tenon.data_type.integer_value(10))
    hidden = tenon.layer.fc(x, size=128, act="relu")
    train = trained(tenon.layer.cross_entropy(tenon.layer.fc(hidden, size=10), y, from_logits=True), updater="adam")
    arrays = tenon.reader.arrays({"x": pixels, "y": labels}).shuffle()

    def samples() -> object:
        return zip(pixels, labels, strict=True)

    ways = {
        "the program, 784 numbers": program,
        "arrays of 784 numbers in Python": train(arrays, None),
        "arrays of 784 numbers in Python, with a handler": train(arrays, lambda event: event.cost),
        "generator of samples of 784 numbers": train(samples, None),
    }
    return {name: step(way, -(-WIDE_ROWS // 128)) for name, way in ways.items()}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", help="an interpreter that has PyTorch; without it PyTorch is not measured")
    torch = parser.parse_args().torch
    rows = [("python, importing nothing", sys.executable, ""), ("import numpy", sys.executable, "import numpy"),
            ("import tenon", sys.executable, "import tenon"), ("first step, tenon", sys.executable, FIRST)]  # fmt: skip
    if torch:
        rows += [("import torch", torch, "import torch"), ("first step, torch", torch, FIRST_TORCH)]
    figures = [[process(interpreter, text) for _, interpreter, text in rows] for _ in range(ROUNDS)]
    for (name, _, _), values in zip(rows, zip(*figures, strict=True), strict=True):
        print(f"{name:60}{statistics.median(values) * 1e3:8.0f} ms", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, value in {**steps(), **wide_steps()}.items():
            print(f"{name:60}{value * 1e6:8.1f} us a step", flush=True)


if __name__ == "__main__":
    main()
