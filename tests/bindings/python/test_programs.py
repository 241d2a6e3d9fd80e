"""The programs of examples/python reach their stated results. SPDX-License-Identifier: Apache-2.0"""

import runpy
from pathlib import Path

import numpy as np

import tenon

PROGRAMS = Path(__file__).parents[3] / "examples/python"


def run(name):
    """Runs a program as in a process of its own: the host numbers layers, and first values depend on their names."""
    before = tenon.host()
    tenon.use(tenon.Host())
    try:
        return runpy.run_path(str(PROGRAMS / f"{name}.py"), run_name="__main__")
    finally:
        tenon.use(before)


def is_uniform(points):
    """Whether mean and standard deviation are near those of the uniform distribution: 0.5 and 0.289."""
    return np.abs(points.mean(0) - 0.5).max() < 0.1 and np.abs(points.std(0) - 0.289).max() < 0.06


def test_ranking():
    found = run("ranking")
    assert 0.4 < found["before"] < 0.6 and found["after"] > 0.95


def test_gan_by_turns():
    found = run("gan")
    assert found["points"].shape == (5000, 2) and is_uniform(found["points"])
    assert 0.4 < found["thinks"].mean() < 0.6  # D cannot tell any more


def test_gan_by_compose():
    found = run("gan_compose")
    assert found["points"].shape == (5000, 2) and is_uniform(found["points"])


def test_simple_network():
    accuracies = run("simple_network")["accuracies"]
    assert len(accuracies) == 6 and accuracies[-1] > 0.9 > 0.7 > accuracies[0]


def test_event_handler():
    tests = run("event_handler")["tests"]
    assert len(tests) < 100 and tests[-1] < 0.005 < tests[-2]


def test_decorated():
    result = run("decorated")["result"]
    assert result.samples == 300 and result.metrics["accuracy"] > 0.95


def test_recognize_clothes():
    found = run("recognize_clothes")["accuracies"]
    assert found["softmax_regression"] > 0.82 and found["multilayer_perceptron"] > 0.86
