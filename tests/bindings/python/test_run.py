"""Records of trainings, and comparisons with them (docs/rerun.md). SPDX-License-Identifier: Apache-2.0"""

import json

import numpy as np
import pytest

import tenon
from models import classifier, labels, pixels


def train(changed=None, rate=0.02, **options):
    model = classifier()
    arrays = {"pixel": pixels.copy(), "label": labels}
    if changed is not None:
        arrays["pixel"][changed] += 0.5
    parameters = tenon.parameters.create([model.cost, model.accuracy], seed=1)
    tenon.train([model.cost, model.accuracy], parameters, arrays, passes=2, batch_size=20,
                updater=tenon.updater.Adam(learning_rate=rate), **options)  # fmt: skip
    return parameters


def test_the_same_training_is_the_same(tmp_path):
    folder = str(tmp_path / "run")
    one = train(run=folder)
    two = train(rerun=folder)
    assert all(np.array_equal(one[name], two[name]) for name in one)
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    assert record["job"] is None
    assert "topology" in record["training"]


@pytest.mark.parametrize(("change", "words"), [
    ({"changed": 45}, "the samples of update 3 (pass 1, minibatch 3)"),
    ({"rate": 0.03}, "/updater/attributes/learning_rate is 0.03, in the record 0.02"),
])  # fmt: skip
def test_a_difference_is_named(tmp_path, change, words):
    folder = str(tmp_path / "run")
    train(run=folder)
    with pytest.raises(tenon.error.InvalidError, match="differs from its record") as raised:
        train(rerun=folder, **change)
    assert words in str(raised.value)


def test_every_other_digest(tmp_path):
    train(run=str(tmp_path / "run"), run_every=2)
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    assert [(each["pass"], each["batch"]) for each in record["digests"]][:3] == [(0, 0), (0, 2), (0, 4)]


def test_wrong_input(tmp_path):
    folder = str(tmp_path / "run")
    train(run=folder)
    with pytest.raises(tenon.error.Error, match="exists already"):
        train(run=folder)
    with pytest.raises(tenon.error.NotFoundError, match=r"has no record\.json"):
        train(rerun=str(tmp_path))
    with pytest.raises(tenon.error.InvalidError, match="run_every"):
        train(run=str(tmp_path / "new"), run_every=-1)
    with pytest.raises(tenon.error.Error, match="run"):
        train(run=3)
