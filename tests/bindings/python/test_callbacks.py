"""Handlers that many trainings need. SPDX-License-Identifier: Apache-2.0"""

import csv
import io

import numpy as np
import pytest

import tenon
from models import classifier, labels, pixels
from tenon import callbacks

ARRAYS = {"pixel": pixels, "label": labels}


@pytest.fixture
def model():
    return classifier()


@pytest.fixture
def parameters(model):
    return tenon.parameters.create([model.cost, model.accuracy, model.score])


def train(model, parameters, handlers, passes=4, rate=0.02, **options):
    tenon.train([model.cost, model.accuracy], parameters, ARRAYS, handlers, passes=passes,
                updater=tenon.updater.Adam(learning_rate=rate), **options)  # fmt: skip


def test_training_ends_without_improvement(model, parameters):
    passes = []

    def count(event):
        if isinstance(event, tenon.event.EndPass):
            passes.append(event.cost)

    train(model, parameters, [count, callbacks.EarlyStop("accuracy", patience=2)], 50, rate=0.0)
    assert len(passes) == 3  # the first is the best, and two are no better
    train(model, parameters, [count, callbacks.EarlyStop(min_delta=1e9)], 50)
    assert len(passes) == 3 + 2
    train(model, parameters, [count, callbacks.EarlyStop(patience=3)], 4)
    assert len(passes) == 5 + 4
    with pytest.raises(tenon.error.NotFoundError, match='no metric "acuracy"; it has cost, accuracy; did you mean'):
        train(model, parameters, callbacks.EarlyStop("acuracy"))
    with pytest.raises(tenon.error.InvalidError, match="patience is 0"):
        callbacks.EarlyStop(patience=0)


def test_the_best_model_is_saved(model, parameters, tmp_path):
    path = tmp_path / "best.safetensors"
    best = callbacks.BestModel(path, parameters, model.score)
    train(model, parameters, best)
    kept = tenon.load(path)
    np.testing.assert_array_equal(kept["score.weight"], parameters["score.weight"])
    train(model, parameters, callbacks.BestModel(path, parameters, model.score, "accuracy"), passes=2, rate=0.0)
    train(model, parameters, best, passes=1, rate=0.0)  # a new training begins anew


def test_measurements_are_tests_where_there_are_some(model, parameters):
    best = callbacks.EarlyStop(patience=100)
    costs = []
    train(model, parameters, [best, lambda event: costs.append(event.cost) if isinstance(event, tenon.event.Test) else None],
          test=ARRAYS)  # fmt: skip
    assert best.best.value == min(costs) and best.best.tested


def test_a_log_is_a_table(model, parameters, tmp_path):
    path = tmp_path / "log.csv"
    for append in (False, False, True):
        train(model, parameters, callbacks.CSVLog(path, append), 2, test=ARRAYS)
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["event"] for row in rows] == ["pass", "test"] * 4
    assert all(0 < float(row["cost"]) < 2 and 0 < float(row["accuracy"]) <= 1 for row in rows)


def test_progress_is_written(model, parameters):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for file, in_terminal in ((io.StringIO(), False), (Terminal(), True)):
        train(model, parameters, callbacks.Progress(file), 2, test=ARRAYS)
        text = file.getvalue()
        assert ("batch 1" in text) == in_terminal and ("\r" in text) == in_terminal
        assert "pass 2  cost " in text and "test pass 1" in text and text.endswith("\n")
