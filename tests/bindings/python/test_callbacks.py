"""Handlers that many trainings need. SPDX-License-Identifier: Apache-2.0"""

import csv
import io
import struct
import time

import numpy as np
import pytest

import tenon
from models import classifier, labels, pixels
from tenon import callbacks
from tenon._run import event_file as _event_file

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


def test_handlers_show_how_they_were_made(parameters, tmp_path):
    assert repr(callbacks.EarlyStop("accuracy", patience=2)) == (
        "EarlyStop(metric='accuracy', patience=2, min_delta=0.0, highest=True)"
    )
    best = callbacks.BestModel("best.safetensors", parameters)
    assert repr(best) == f"BestModel(path='best.safetensors', parameters={parameters!r}, metric='cost', highest=False)"
    assert repr(callbacks.CSVLog(tmp_path / "log.csv", append=True)) == (
        f"CSVLog(path={str(tmp_path / 'log.csv')!r}, append=True)"
    )
    assert repr(callbacks.TensorBoard("board")) == "TensorBoard(folder='board', every_batches=0)"
    assert repr(callbacks.Progress()) == "Progress()"
    file = io.StringIO()
    assert repr(callbacks.Progress(file)) == f"Progress(file={file!r})"


def test_the_best_model_is_saved(model, parameters, tmp_path):
    path = tmp_path / "best.safetensors"
    best = callbacks.BestModel(path, parameters, model.score)
    train(model, parameters, best)
    kept = tenon.load(path)
    np.testing.assert_array_equal(kept["score.weight"], parameters["score.weight"])
    train(model, parameters, callbacks.BestModel(path, parameters, model.score, "accuracy"), passes=2, rate=0.0)
    train(model, parameters, best, passes=1, rate=0.0)  # a new training begins anew


@pytest.mark.parametrize("updater", ["plugin", "python"])
def test_the_best_values_are_restored(model, parameters, tmp_path, updater):
    """A learning rate that spoils the model from the second pass on, a test after each pass."""
    path = tmp_path / "best.safetensors"
    costs = []

    def spoil(event):
        if isinstance(event, tenon.event.Test):
            costs.append(event.cost)
            event.set_learning_rate(20.0)

    def run(restore):
        costs.clear()
        made = tenon.updater.SGD(learning_rate=0.1) if updater == "plugin" else tenon.updater.new_simple(learning_rate=0.1)
        best = callbacks.BestModel(path, parameters, restore=restore)
        tenon.train([model.cost, model.accuracy], parameters, ARRAYS, [best, spoil, callbacks.EarlyStop(patience=2)], passes=9,
                    updater=made, test=ARRAYS)  # fmt: skip
        assert len(costs) < 9 and min(costs) < costs[-1]
        return tenon.test(model.cost, parameters, ARRAYS).cost

    assert run(True) == pytest.approx(min(costs), rel=1e-6)
    kept = tenon.load(path)
    for name in parameters:
        np.testing.assert_array_equal(kept[name], parameters[name])
    assert run(False) == pytest.approx(costs[-1], rel=1e-6)
    assert "restore=True" in repr(callbacks.BestModel(path, parameters, restore=True))


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


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_written(model, parameters):
    for file, in_terminal in ((io.StringIO(), False), (Terminal(), True)):
        train(model, parameters, callbacks.Progress(file), 2, test=ARRAYS)
        text = file.getvalue()
        assert ("batch 1" in text) == in_terminal and ("\r" in text) == in_terminal
        assert "pass 2  cost " in text and "test pass 1" in text and text.endswith("\n")


def test_progress_has_a_bar_once_the_minibatches_are_known(model, parameters):
    file = Terminal()
    train(model, parameters, callbacks.Progress(file), 2, batch_size=100)
    states = [text.removeprefix("\x1b[K") for text in file.getvalue().split("\r")[1:] if "batch" in text]
    assert states[0].startswith("pass 1  cost ") and states[0].endswith("  batch 1")
    assert states[-1].startswith("[" + "#" * 5) and " pass 2  cost " in states[-1] and " of 4" in states[-1]


def test_progress_in_a_notebook(model, parameters, cell, capsys):
    handler = callbacks.Progress()
    train(model, parameters, handler, 2, test=ARRAYS, batch_size=100)
    texts = [each["data"]["text/html"] for each in cell]
    assert "<progress></progress> pass 1  cost " in texts[0]
    assert any('<progress value="1" max="4"></progress> pass 2  cost ' in text for text in texts)
    lines = texts[-1].removeprefix("<pre>").removesuffix("</pre>").split("\n")
    assert [line.split("  cost")[0] for line in lines] == ["pass 1", "test pass 1", "pass 2", "test pass 2"]
    assert [each["transient"] for each in cell] == [cell[0]["transient"]] * len(cell)  # one place of the cell
    assert capsys.readouterr() == ("", "")
    before = len(cell)
    train(model, parameters, handler, 1)  # a new training begins anew, in another place
    assert cell[before]["transient"] != cell[0]["transient"] and "test" not in cell[-1]["data"]["text/html"]


def crc32c(data):
    """The definition: the remainder of the polynomial 0x1EDC6F41, least significant bits first."""
    crc = 0xFFFFFFFF
    for bit in (byte >> i & 1 for byte in data for i in range(8)):
        crc = crc >> 1 ^ 0x82F63B78 * (crc & 1 ^ bit)
    return crc ^ 0xFFFFFFFF


def fields(message):
    """The fields of a protobuf message: (number, value)."""
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value

    at = 0
    while at < len(message):
        key = varint()
        size = {0: None, 1: 8, 5: 4}.get(key & 7, 0)
        if size is None:
            yield key >> 3, varint()
            continue
        size = size or varint()
        value, at = message[at : at + size], at + size
        yield key >> 3, struct.unpack({1: "<d", 5: "<f"}[key & 7], value)[0] if key & 7 != 2 else value


def read_events(folder):
    """The events of the only file of a folder: {"version"}, then (wall time, step, {tag: number})."""
    [path] = folder.iterdir()
    data, events, at = path.read_bytes(), [], 0
    while at < len(data):
        length = struct.unpack_from("<Q", data, at)[0]
        parts = [data[at : at + 8], data[at + 12 : at + 12 + length]]
        for part, end in zip(parts, (at + 8, at + 12 + length), strict=True):
            crc = crc32c(part)
            assert struct.unpack_from("<I", data, end)[0] == ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32
        at += length + 16
        event = dict(fields(parts[1]))
        summary = [dict(fields(value)) for _, value in fields(event.get(5, b""))]
        events.append(event[3] if 3 in event else (event[1], event[2], {each[1].decode(): each[2] for each in summary}))
    return events


def test_the_checksum_is_crc32c():
    assert crc32c(b"123456789") == 0xE3069283  # the check value of the catalogue of CRCs
    rotated = (0xE3069283 >> 15 | 0xE3069283 << 17) % 2**32
    assert _event_file.masked_crc(b"123456789") == (rotated + 0xA282EAD8) % 2**32


def test_tensorboard_files_have_all_measurements(model, parameters, tmp_path):
    seen = {"train": [], "test": []}

    def note(event):
        values = {"cost": event.cost, **event.metrics}
        if isinstance(event, (tenon.event.EndPass, tenon.event.Test)):
            seen["test" if isinstance(event, tenon.event.Test) else "train"].append((event.pass_id + 1, values))
        elif isinstance(event, tenon.event.EndIteration) and event.batch_id % 2 == 1:
            values = {f"minibatch/{name}": value for name, value in values.items()}
            seen["train"].append((event.pass_id * 4 + event.batch_id + 1,
                                  {**values, "minibatch/learning_rate": event.scheduled_rate}))  # fmt: skip

    before = time.time()
    handlers = [note, callbacks.TensorBoard(tmp_path / "runs", every_batches=2)]
    train(model, parameters, handlers, 100, test=ARRAYS, batch_size=100)
    for kind, expected in seen.items():
        version, *events = read_events(tmp_path / "runs" / kind)
        assert version == b"brain.Event:2" and len(events) == len(expected) >= 100
        for (wall, step, values), (wanted, numbers) in zip(events, expected, strict=True):
            assert before <= wall <= time.time() and step == wanted
            assert values == {name: np.float32(number) for name, number in numbers.items()}
    train(model, parameters, callbacks.TensorBoard(tmp_path / "passes"), 1)
    assert [list(each[2]) for each in read_events(tmp_path / "passes/train")[1:]] == [["cost", "accuracy"]]
    with pytest.raises(tenon.error.InvalidError, match="every_batches is -1"):
        callbacks.TensorBoard(tmp_path, every_batches=-1)


def test_a_second_training_writes_files_of_its_own(model, parameters, tmp_path):
    handler = callbacks.TensorBoard(tmp_path, every_batches=1)
    for _ in range(2):
        train(model, parameters, handler, 1)
    assert len(list((tmp_path / "train").iterdir())) == 2


def test_tensorboard_reads_the_files(model, parameters, tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    costs = []
    note = lambda event: costs.append(event.cost) if isinstance(event, tenon.event.EndPass) else None  # noqa: E731
    train(model, parameters, [note, callbacks.TensorBoard(tmp_path)], 3)
    found = accumulator.EventAccumulator(str(tmp_path / "train"))
    found.Reload()
    assert sorted(found.Tags()["scalars"]) == ["accuracy", "cost"]
    read = found.Scalars("cost")
    assert [each.step for each in read] == [1, 2, 3] and [each.value for each in read] == [np.float32(c) for c in costs]


@pytest.mark.parametrize("updater", [tenon.updater.Sgd(), "python"], ids=["plugin", "python"])
def test_costs_that_are_nan_or_of_no_samples_are_no_improvement(model, parameters, updater, tmp_path):
    class Sgd(tenon.updater.Base):
        def update_parameter(self, name, parameter, gradient, state):
            parameter -= self.learning_rate * gradient

    used = Sgd() if updater == "python" else updater
    for data in ({"pixel": pixels * np.nan, "label": labels}, lambda: iter([])):
        passes = []

        def count(event, passes=passes):
            if isinstance(event, tenon.event.EndPass):
                passes.append(event.cost)

        best = callbacks.BestModel(tmp_path / "best", parameters)
        tenon.train([model.cost, model.accuracy], parameters, data, [count, best, callbacks.EarlyStop(patience=2)],
                    passes=6, updater=used, nan="allow")  # fmt: skip
        assert len(passes) == 2 and np.isnan(passes).all() and not list(tmp_path.iterdir())


def test_a_test_of_no_samples_is_nan(model, parameters):
    result = tenon.test([model.cost, model.accuracy], parameters, lambda: iter([]))
    assert result.samples == 0 and np.isnan(result.cost) and np.isnan(result.metrics["accuracy"])


def test_a_training_tells_why_it_ended(model, parameters):
    events = []
    train(model, parameters, [events.append, callbacks.EarlyStop("accuracy", patience=1)], 9, rate=0.0)
    assert events[-1].reason is tenon.event.Reason.HANDLER and repr(events[-1].reason) == "<Reason.HANDLER: 2>"
