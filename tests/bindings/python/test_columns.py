"""Which columns of data are converted, how places of tuples feed, and categories by the names that a model knows.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import numpy as np
import pytest

import tenon
from tenon import data_type
from test_feeds import NAN, Line


@pytest.fixture
def line():
    return Line()


class Untouchable:
    """A column of four values that any conversion fails of."""

    def __len__(self):
        return 4

    def _touched(self, *_, **__):
        raise RuntimeError("a column that nothing needs was converted")

    __array__ = __iter__ = __getitem__ = to_numpy = __float__ = __dlpack__ = __arrow_c_stream__ = _touched


class Frame:
    """Columns by name, as a frame has them; a column that nothing needs cannot even be read."""

    def __init__(self, columns):
        self.columns, self._values = list(columns), columns
        self.to_numpy = None

    def __getitem__(self, name):
        return self._values[name]


def data_with_columns_that_nothing_needs():
    used = {"x": np.arange(4.0), "t": np.ones(4)}
    yield "dict", {"when": Untouchable(), **used, "name": Untouchable()}
    yield "frame", Frame({"when": Untouchable(), **used, "name": Untouchable()})
    fields = [("o", object), ("x", np.float64), ("s", "U9"), ("t", np.int16), ("d", "M8[s]"), ("c", complex)]
    structured = np.zeros(4, fields)
    structured["x"], structured["t"] = used["x"], 1
    for number in range(4):
        structured["o"][number] = Untouchable()
    yield "structured array", structured
    yield "records", structured.view(np.recarray)
    yield "samples", [{"x": [number], "t": [1.0], "o": Untouchable()} for number in used["x"]]
    yield "tuples by place", [(Untouchable(), [number], "text", [1.0]) for number in used["x"]]


UNTOUCHED = [pytest.param(each, id=name) for name, each in data_with_columns_that_nothing_needs()]


@pytest.mark.parametrize("data", UNTOUCHED)
def test_columns_that_nothing_needs_are_not_converted(line, data):
    feeding = {"x": 1, "t": 3} if isinstance(data, list) and isinstance(data[0], tuple) else None
    for reader in (data, tenon.batch(data, 2), tenon.reader.shuffle(data), tenon.reader.first_n(data, 4)):
        line.train(reader, feeding=feeding)
        assert tenon.test(line.cost, line.parameters, reader, feeding=feeding).samples == 4
        assert tenon.infer(line.score, line.parameters, reader, feeding=feeding).shape == (4, 1)
    if feeding is None:
        assert tenon.Predictor(line.score, line.parameters)(data).shape == (4, 1)
    if isinstance(data, list):
        return
    assert tenon.gradient_machine.new(line.cost, line.parameters).forward(data).shape == (4,)
    both = tenon.reader.compose(data, {"y": np.zeros(4)})
    assert tenon.infer(line.score, line.parameters, both).shape == (4, 1)
    untyped = tenon.layer.fc(tenon.layer.reshape("x", shape=[1]), size=1)
    assert tenon.infer(untyped, tenon.parameters.create(untyped, reader=data), data).shape == (4, 1)
    renamed = {"pic": data["x"], "z": Untouchable()}
    assert tenon.infer(line.score, line.parameters, renamed, feeding={"pic": "x"}).shape == (4, 1)


def test_a_column_that_is_missing_is_named_beside_those_that_are_there(line):
    ones = np.ones(4)
    for data in ({"X": ones, "t": ones, "o": Untouchable()}, {"X": Untouchable(), "t": ones, "o": ones}):
        for reader in (data, Frame(data)):
            with pytest.raises(tenon.error.InvalidError, match='"x": no slot of the reader feeds it; known: X, t, o'):
                line.train(reader)
    with pytest.raises(tenon.error.InvalidError, match='"x": no slot of the reader feeds it; known: o, a'):
        line.train({"o": Untouchable(), "a": np.ones(4)})


def test_places_of_tuples_serve_every_call(line):
    rows = [(number, "text", [float(number)], None, [1.0]) for number in range(4)]
    places = {"x": 2, "t": 4}
    expected = tenon.infer(line.score, line.parameters, {"x": np.arange(4.0)})
    for data in (rows, [list(row) for row in rows], lambda: iter(rows), tenon.batch(rows, 3)):
        line.train(data, feeding=places, updater=tenon.updater.SGD(learning_rate=0.0))
        # Those of the label stay, where the outputs need none.
        assert np.array_equal(tenon.infer(line.score, line.parameters, data, feeding=places), expected)
        assert np.array_equal(tenon.infer(line.score, line.parameters, data, feeding={"x": 2}), expected)
        assert np.array_equal(tenon.Predictor(line.score, line.parameters).predict(data, feeding=places), expected)
    line.train([(number, target) for _, _, number, _, target in rows], feeding=["x", "t"])
    line.train([(target, number) for _, _, number, _, target in rows], feeding=["t", "x"])
    assert tenon.infer(line.score, line.parameters, {"old": np.arange(4.0)}, feeding={"old": "x"}).shape == (4, 1)


@pytest.mark.parametrize("rows, feeding, what", [
    ([([1.0], [1.0])], {"x": 0, "t": 2}, 'sample 0 has 2 values; expected at least 3: "t" takes place 2'),
    ([([1.0], [1.0]), ()], {"x": 0, "t": 1}, 'sample 1 has 0 values; expected at least 2: "t" takes place 1'),
    ([([1.0], "a", [1.0])], {"x": 1, "t": 2}, 'sample 0: slot "x", place 1 of the tuple, is float32 .1., but its value is str'),
    ([([1.0], [1.0, 2.0])], {"x": 0, "t": 1}, 'slot "t", place 1 of the tuple, is float32 .1..*2 numbers; expected 1'),
    ([([1.0], [1.0])], {"x": 0, "tt": 1}, 'the data layer "tt", which the topology does not have; did you mean "t"'),
    ([([1.0], [1.0])], ["x", "tt"], 'the data layer "tt"'), ([([1.0], [1.0])], ["x"], 'no place for data layer "t"'),
    ([([1.0], [1.0])], {"x": 0, "t": 1.0}, "feeding"), ([([1.0], [1.0])], {"x": 0, "t": -1}, "feeding is -1"),
    ([1.0], {"x": 0, "t": 1}, "sample 0 is float 1.0; expected a dict, or a tuple"), ([([1.0], [1.0])], 5, "feeding is 5"),
    ([([1.0], [1.0])], [0, 1], "feeding"),
])  # fmt: skip
def test_wrong_places_name_slot_and_place(line, rows, feeding, what):
    with pytest.raises(tenon.error.Error, match=what):
        line.train(rows, feeding=feeding)


def test_categories_of_a_frame_are_those_of_the_model():
    pandas = pytest.importorskip("pandas")
    tenon.use(tenon.Host())
    kind = tenon.layer.data("kind", data_type.integer_value(3))
    score = tenon.layer.fc(tenon.layer.embedding(kind, vocabulary=3, size=2, name="e"), size=1, name="s")
    cost = tenon.layer.square_error(score, tenon.layer.data("t", data_type.dense_vector(1)))
    parameters = tenon.parameters.create(cost)
    frame = pandas.DataFrame({"kind": pandas.Categorical(["a", "b", "c"]), "t": 1.0})
    tenon.train(cost, parameters, frame)
    expected = tenon.infer(score, parameters, frame)
    measured = tenon.test(cost, parameters, frame).cost
    texts = ["a", "b", "c"]
    for column in (pandas.Categorical(texts, ["c", "a", "b"]), texts, pandas.array(texts, "string"), np.array(texts, object)):
        other = pandas.DataFrame({"kind": column, "t": 1.0})
        for given in (other, {"kind": other["kind"], "t": np.ones(3)}, tenon.batch(other, 2)):
            assert np.array_equal(tenon.infer(score, parameters, given), expected)
            assert abs(tenon.test(cost, parameters, given).cost - measured) < 1e-6
    machine = tenon.gradient_machine.new(score, parameters, training=False)
    for column in (pandas.Categorical(texts, ["c", "a", "b"]), texts):
        series = pandas.Series(column)
        for given in (pandas.DataFrame({"kind": column, "other": "z"}), {"kind": series}, [series]):
            assert np.array_equal(machine.forward(given), expected)
    few = pandas.DataFrame({"kind": pandas.Categorical(["c", "b"])})
    assert np.array_equal(tenon.infer(score, parameters, few), expected[:0:-1])
    for column in (pandas.Categorical(["a", "d"]), ["a", "d"]):
        for given in (pandas.DataFrame({"kind": column}), {"kind": pandas.Series(column)}):
            with pytest.raises(tenon.error.BadDataError, match='sample 1: .*"kind" has the category "d".*it has a, b, c'):
                tenon.infer(score, parameters, given)


def columns_of_sequences():
    random = np.random.default_rng(3)
    lengths = random.integers(0, 4, 30)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    outer = np.array([0, 0, 5, 6, 20, 30])
    for dtype in ("i1", "u2", "i4", "i8", "u8"):
        words = random.integers(0, 9, offsets[-1]).astype(dtype)
        yield dtype, data_type.integer_value_sequence(9), tenon.Ragged(words, offsets)
        yield f"{dtype} of two levels", data_type.integer_value_sub_sequence(9), tenon.Ragged(words, outer, offsets)
    for dtype in ("f2", "f4", "f8"):
        rows = random.normal(size=(offsets[-1], 2)).astype(dtype)
        yield dtype, data_type.dense_vector_sequence(2), tenon.Ragged(rows, offsets)
    entries = np.concatenate([random.permutation(9)[:length] for length in lengths]).astype(np.int64)
    yield "binary", data_type.sparse_binary_vector(9), tenon.Sparse(9, offsets, entries)
    yield "sparse", data_type.sparse_float_vector(9), tenon.Sparse(9, offsets, entries, random.normal(size=offsets[-1]))


@pytest.mark.parametrize("type, values", [pytest.param(*each[1:], id=each[0]) for each in columns_of_sequences()])
def test_columns_of_sequences_and_sparse_vectors_are_their_samples(type, values):
    def listed(number):
        if isinstance(values, tenon.Sparse):
            places = range(values.offsets[number], values.offsets[number + 1])
            return [(int(values.columns[i]), 1.0 if values.values is None else float(values.values[i])) for i in places]
        return [np.asarray(each).tolist() for each in values[number]]

    samples = [{"v": listed(number), "n": number} for number in range(len(values))]
    types = {"v": type, "n": data_type.integer_value(99)}
    readers = [tenon.reader.arrays({"v": values, "n": np.arange(len(values))}), tenon.reader.as_reader(samples)]
    for size, seed in ((7, None), (3, 1)):
        batches = []
        for reader in readers:
            opened = reader.open(types)
            core = (opened if seed is None else opened.shuffle(seed, 1000)).batch(size, False)
            batches.append([])
            while (minibatch := core.next()) is not None:
                batches[-1].append(dict(zip([slot["name"] for slot in core.slots()], minibatch, strict=True)))
        for a, b in zip(*batches, strict=True):
            for x, y in zip(a["v"], b["v"], strict=True):
                np.testing.assert_array_equal(x, y)
            np.testing.assert_array_equal(a["n"], b["n"])


@pytest.mark.parametrize("type, values, what", [
    (data_type.integer_value_sequence(3), tenon.Ragged([0, 1, 3], [0, 1, 3]), 'sample 1: slot "v".*3 is not below 3'),
    (data_type.integer_value_sequence(3), tenon.Ragged([0, -1], [0, 0, 2]), 'sample 1: slot "v".*-1 is not below 3'),
    (data_type.integer_value_sub_sequence(3), tenon.Ragged([0, 1, 5], [0, 1, 2], [0, 2, 3]), 'sample 1: .*5 is not below 3'),
    (data_type.dense_vector_sequence(1), tenon.Ragged([[0.0], [NAN]], [0, 1, 2]), 'sample 1: slot "v".*nan'),
    (data_type.dense_vector_sequence(1), tenon.Ragged([[0.0], [1e300]], [0, 1, 2]), 'sample 1: slot "v".*cannot hold'),
    (data_type.sparse_float_vector(9), tenon.Sparse(9, [0, 1, 3], [1, 4, 4]), 'sample 1: slot "v".*column 4 twice'),
    (data_type.sparse_float_vector(9), tenon.Sparse(9, [0, 1, 2], [1, 4], [1, NAN]), 'sample 1: slot "v".*nan'),
    (data_type.integer_value_sequence(3), tenon.Ragged([0.5], [0, 1]), '"v"'),
])  # fmt: skip
def test_columns_of_sequences_name_the_sample_at_fault(type, values, what):
    layer = tenon.layer.data("v", type)
    ragged = isinstance(values, tenon.Ragged)
    if ragged and type.dtype == "int64":
        layer = tenon.layer.embedding(layer, vocabulary=3, size=2)
    output = layer * 2 if ragged else tenon.layer.fc(layer, size=2)
    with pytest.raises(tenon.error.Error, match=what):
        tenon.infer(output, tenon.parameters.create(output), tenon.reader.arrays({"v": values}))


def test_metrics_find_categories_by_the_names_of_the_model():
    pandas = pytest.importorskip("pandas")
    tenon.use(tenon.Host())
    kind, label = (tenon.layer.data(name, data_type.integer_value(2)) for name in ("kind", "label"))
    score = tenon.layer.fc(tenon.layer.embedding(kind, vocabulary=2, size=2, name="e"), size=2, name="s")
    cost = tenon.layer.cross_entropy(score, label, from_logits=True)
    parameters = tenon.parameters.create(cost)
    frame = pandas.DataFrame({"kind": pandas.Categorical(["a", "b", "b"]), "label": pandas.Categorical(["n", "y", "y"])})
    tenon.train(cost, parameters, frame, passes=60, updater=tenon.updater.SGD(learning_rate=1.0))
    turned = pandas.Categorical(["n", "y", "y"], ["y", "n"])
    for column in (frame["label"], pandas.Series(turned), pandas.Series(["n", "y", "y"])):
        machine = tenon.gradient_machine.new([score, cost], parameters, training=False)
        machine.forward({"kind": frame["kind"], "label": column})
        metric = tenon.metric.accuracy(score, "label")
        metric.append(machine, {"label": column})
        assert metric.read() == 1
