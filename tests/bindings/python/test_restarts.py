"""Resumes with other values, the best values of a training, models from memory. SPDX-License-Identifier: Apache-2.0"""

import io
import mmap
import pickle

import numpy as np
import pytest

import tenon
from models import classifier, labels, pixels

ARRAYS = {"pixel": pixels, "label": labels}


def trained(passes, rate=0.02, handler=None, best=None, **options):
    model = classifier()
    parameters = tenon.parameters.create([model.cost, model.accuracy])
    if best is not None:
        options["best"] = {"parameters": tenon.parameters.create([model.cost, model.accuracy]), **best}
    updater = tenon.updater.Adam(learning_rate=rate)
    tenon.train([model.cost, model.accuracy], parameters, ARRAYS, handler, passes=passes, updater=updater, **options)
    return parameters, options.get("best", {}).get("parameters")


def equal(one, two):
    return all(np.array_equal(one[name], two[name]) for name in one)


# ---- resume_with


def test_a_resume_with_another_learning_rate(tmp_path):
    def slow_down(event):
        if isinstance(event, tenon.event.EndPass) and event.pass_id == 1:
            event.set_learning_rate(0.001)

    whole = trained(4, handler=slow_down)[0]
    trained(2, checkpoint=str(tmp_path))
    with pytest.raises(tenon.error.InvalidError, match=r"learning_rate: 0\.02 in the checkpoint, 0\.001 now"):
        trained(4, 0.001, checkpoint=str(tmp_path))
    changes = []
    given = tenon.trainer.Checkpoint(str(tmp_path), resume_with=["updater.learning_rate"])

    def note(event):
        if isinstance(event, tenon.event.BeginTraining):
            changes.append(event.changes)

    assert equal(trained(4, 0.001, note, checkpoint=given)[0], whole)
    trained(4, 0.001, note, checkpoint=given)
    assert changes == ["updater.attributes.learning_rate: 0.02 in the checkpoint, 0.001 now", ""]


@pytest.mark.parametrize("batch_size", [1, 7, 50, 128, 1000])
def test_a_resume_with_another_batch(tmp_path, batch_size):
    samples = []

    def note(event):
        if isinstance(event, tenon.event.EndIteration):
            samples.append(event.samples)
            if sum(samples) == 256:
                event.stop()

    trained(1, handler=note, batch_size=128, checkpoint=str(tmp_path))
    samples.clear()
    given = tenon.trainer.Checkpoint(str(tmp_path), resume_with="reader.batch")
    trained(1, handler=note, batch_size=batch_size, checkpoint=given)
    assert sum(samples) == 400 - 256 and max(samples) <= batch_size


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"resume_with": ["seed"]}, 'resume_with is "seed", which a resume cannot change'),
        ({"resume_with": ["updater.learning_rat"]}, 'did you mean "updater.learning_rate"'),
        ({"resume_with": 3}, "resume_with is 3; expected a text or several"),
        ({"resume_with": [3]}, "resume_with is 3; expected a text"),
        ({"resume_with": ["reader.batch"], "resume": False}, "a training that does not resume changes nothing"),
    ],
)
def test_wrong_names_of_changes(tmp_path, given, words):
    with pytest.raises(tenon.error.InvalidError, match=words):
        trained(1, checkpoint=tenon.trainer.Checkpoint(str(tmp_path / "saves"), **given))


# ---- best


@pytest.mark.parametrize("highest", [False, True])
def test_the_values_of_the_best_test(tmp_path, highest):
    measured = []

    def note(event):
        if isinstance(event, tenon.event.Test):
            measured.append(event.cost)
        if isinstance(event, tenon.event.EndTraining):
            measured.append(event.best)

    _, best = trained(5, 0.2, note, {"best_is_highest": highest}, test=ARRAYS)
    value, passes, batches = measured.pop()
    assert value == (max if highest else min)(measured) and measured[passes - 1] == value and batches == 0
    model = classifier()
    assert tenon.test([model.cost, model.accuracy], best, ARRAYS).cost == value
    trained(3, 0.2, None, {"best_is_highest": highest}, test=ARRAYS, checkpoint=str(tmp_path))
    resumed = trained(5, 0.2, note, {"best_is_highest": highest}, test=ARRAYS, checkpoint=str(tmp_path))[1]
    assert equal(resumed, best) and measured[-1] == (value, passes, batches)


def test_the_best_averages():
    model = classifier()
    outputs = [model.cost, model.accuracy]
    sets = [tenon.parameters.create(outputs) for _ in range(4)]
    given = {"parameters": sets[2], "averages": sets[3], "metric": "accuracy", "best_is_highest": True}
    results = []

    def note(event):
        if isinstance(event, tenon.event.Test):
            results.append((event.metrics["accuracy"], sets[1]["score.bias"].copy(), sets[0]["score.bias"].copy()))

    tenon.train(outputs, sets[0], ARRAYS, note, passes=3, test=ARRAYS, best=given, updater="adam",
                average={"parameters": sets[1], "decay": 0.9})  # fmt: skip
    _, averages, values = max(results, key=lambda each: each[0])
    assert np.array_equal(sets[3]["score.bias"], averages) and np.array_equal(sets[2]["score.bias"], values)


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({}, tenon.error.InvalidError, "parameters is None; expected a set"),
        ({"parameters": 3}, tenon.error.InvalidError, "parameters is 3; expected a set"),
        ({"parameter": None}, tenon.error.InvalidError, "has no key 'parameter'.*did you mean"),
        ({"averages": None}, tenon.error.InvalidError, "expected a set"),
        ({"metric": "acuracy"}, tenon.error.InvalidError, 'did you mean "accuracy"'),
        ("cost", tenon.error.InvalidError, "expected a dict"),
    ],
)
def test_wrong_best_options(given, kind, words):
    model = classifier()
    outputs = [model.cost, model.accuracy]
    parameters = tenon.parameters.create(outputs)
    if isinstance(given, dict) and given and "parameters" not in given and "parameter" not in given:
        given = {"parameters": tenon.parameters.create(outputs), **given}
    with pytest.raises(kind, match=words):
        tenon.train(outputs, parameters, ARRAYS, best=given)


# ---- models from memory


@pytest.fixture
def saved(tmp_path):
    parameters, _ = trained(1)
    parameters.save(tmp_path / "model.safetensors")
    return parameters, tmp_path / "model.safetensors"


def test_a_model_from_memory(saved):
    parameters, path = saved
    data = path.read_bytes()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        sources = [data, bytearray(data), memoryview(data), memoryview(b"x" + data)[1:], np.frombuffer(data, np.uint8),
                   io.BytesIO(data), file, mapped]  # fmt: skip
        for source in sources:
            loaded = tenon.load(source)
            assert equal(loaded, parameters) and [each.name for each in loaded.outputs], type(source)
            assert tenon.test(loaded.outputs, loaded, ARRAYS).samples == 400
            del loaded


def test_an_unpickled_set(saved):
    parameters = saved[0]
    assert equal(pickle.loads(pickle.dumps(parameters)), parameters)


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (lambda data: b"", tenon.error.BadDataError, "the model in memory.*0 bytes"),
        (lambda data: data[:-1], tenon.error.BadDataError, "the model in memory"),
        (lambda data: data[:40], tenon.error.BadDataError, "the model in memory"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), tenon.error.BadDataError, "the model in memory.*damaged"),
        (lambda data: b"\x02" + bytes(7) + b"{}", tenon.error.BadDataError, "it holds no topology"),
        (lambda data: b"PK\x03\x04" + data, tenon.error.BadDataError, "not a model file"),
        (lambda data: memoryview(data)[::2], tenon.error.InvalidError, "expected bytes without gaps"),
        (lambda data: 3, tenon.error.InvalidError, "expected a path, bytes or an open binary file"),
        (lambda data: [1, 2], tenon.error.InvalidError, "expected a path, bytes or an open binary file"),
        (lambda data: io.StringIO("text"), tenon.error.InvalidError, "an open binary file"),
    ],
)
def test_wrong_bytes(saved, change, kind, words):
    with pytest.raises(kind, match=words):
        tenon.load(change(saved[1].read_bytes()))
