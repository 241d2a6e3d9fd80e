"""The programs of examples/python reach their stated results. SPDX-License-Identifier: Apache-2.0"""

import ast
import re
import runpy
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import tenon

PROGRAMS = Path(__file__).parents[3] / "examples/python"


def run(name, *arguments):
    """Runs a program as in a process of its own: the host numbers layers, and first values depend on their names."""
    before, path = tenon.host(), str(PROGRAMS / f"{name}.py")
    tenon.use(tenon.Host())
    try:
        with patch("sys.argv", [path, *arguments]):
            return runpy.run_path(path, run_name="__main__")
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
    found = run("recognize_images", "clothes")
    assert found["softmax_accuracy"] > 0.82 and found["multilayer_accuracy"] > 0.86


def least_squares():
    """Returns the squared error on the test part of the line that fits the training part best."""
    data = tenon.dataset.housing()
    train, test = (
        [np.array([sample[slot] for sample in part.samples()]) for slot in ("features", "price")]
        for part in (data.train, data.test)
    )
    (features, price), (test_features, test_price) = train, test
    weight = np.linalg.lstsq(features, price - price.mean(), rcond=None)[0]
    return float(np.mean((test_features @ weight + price.mean() - test_price) ** 2))


def test_fit_a_line():
    error, least = run("fit_a_line")["error"], least_squares()
    assert abs(error / least - 1) < 0.03 and error < 26  # the mean price has 75


def test_recognize_digits():
    found = run("recognize_images")
    assert found["softmax_accuracy"] > 0.95 and found["multilayer_accuracy"] > 0.965
    assert found["convolutional_accuracy"] > 0.975
    with pytest.raises(SystemExit, match=r"\[digits\|clothes\], got \['shoes'\]"):
        run("recognize_images", "shoes")


def test_image_classification():
    found = run("image_classification")["accuracies"]
    assert found["vgg"] > 0.7 and found["residual"] > 0.6


def test_word2vec():
    found = run("word2vec")
    assert found["test_cost"] < 2.7 and found["entropy"] > 5
    assert len({"can", "must", "shall", "will", "would"}.intersection(found["near"]["may"])) >= 2


def test_sentiment():
    accuracies = run("sentiment")["accuracies"]
    assert accuracies["stacked"] >= 0.97 and accuracies["convolution"] >= 0.9 and accuracies["bag"] <= 0.6


def test_semantic_roles():
    assert run("semantic_roles")["found"]["f1"] >= 0.95


def test_machine_translation():
    found = run("machine_translation")
    assert found["exact"] >= 0.95 and found["measured"]["bleu"] > 0.98


def statements(path):
    """Returns the number of statements of a program, docstrings left out."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.stmt)]
    texts = [node for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    return len(nodes) - len(texts)


def test_chapters_have_no_more_statements_than_those_of_the_book():
    page = (PROGRAMS.parents[1] / "docs/book.md").read_text()
    rows = re.findall(r"`examples/python/(\w+\.py)` \| (\d+) \| (\d+) \|", page)
    assert len(rows) == 3
    for program, ours, theirs in rows:
        assert statements(PROGRAMS / program) == int(ours) <= int(theirs), program


def test_recommender():
    found = run("recommender")
    assert found["error"] < 0.8 and found["given"].var() > 3 and -5 <= found["rating"][0] <= 5
