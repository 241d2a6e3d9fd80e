"""Trains, saves, loads and infers until the time is over, and fails if the memory of the process grows:
reloads.py SECONDS SEED. SPDX-License-Identifier: Apache-2.0"""
import os
import pathlib
import random
import sys
import tempfile
import time

import numpy as np

import tenon

BEFORE = 50  # rounds until all that is kept for later is there
GROWTH = 16 << 20  # bytes; what the allocator keeps back varies


def resident():
    """Bytes of memory that the process has."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def round_of(draw, folder):
    """One training with its whole life."""
    width, size = draw.choice((3, 17)), draw.choice((4, 33))
    x = tenon.layer.data("x", tenon.data_type.dense_vector(width))
    label = tenon.layer.data("label", tenon.data_type.integer_value(3))
    hidden = tenon.layer.fc(x, size=size, act="relu", name="hidden")
    score = tenon.layer.fc(hidden, size=3, name="score")
    cost = tenon.layer.cross_entropy(score, label, from_logits=True, name="cost")
    numbers = np.random.default_rng(draw.randrange(1 << 30))
    samples = {"x": numbers.normal(size=(64, width)).astype(np.float32), "label": numbers.integers(3, size=64)}
    parameters = tenon.parameters.create(cost, seed=draw.randrange(100))
    tenon.train(cost, parameters, samples, batch_size=16, updater=tenon.updater.Adam())
    file = str(folder / "model.safetensors")
    parameters.save(file, score)
    loaded = tenon.parameters.load(file)
    tenon.infer(loaded.outputs, loaded, samples["x"][:5])
    if draw.random() < 0.1:
        tenon.use(tenon.Host())  # the old one ends


def main():
    draw, end, rounds, first = random.Random(int(sys.argv[2])), time.monotonic() + float(sys.argv[1]), 0, 0
    with tempfile.TemporaryDirectory() as name:
        while time.monotonic() < end or rounds < 2 * BEFORE:
            round_of(draw, pathlib.Path(name))
            rounds += 1
            if rounds == BEFORE:
                first = resident()
    growth = resident() - first
    if growth > GROWTH:
        sys.exit(f"{rounds} rounds: the process has {growth >> 20} MiB more than after {BEFORE}")
    print(f"{rounds} rounds, {growth / (1 << 20):+.1f} MiB after the first {BEFORE}")


if __name__ == "__main__":
    main()
