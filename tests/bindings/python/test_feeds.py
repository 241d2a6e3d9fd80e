"""What feeds refuse, ignore, and take by place: NaN, missing values, columns without a data layer, tuples.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tenon
from tenon import data_type

NAN = float("nan")


class Line:
    """A model of one number, with a cost."""

    def __init__(self):
        tenon.use(tenon.Host())
        self.x = tenon.layer.data("x", data_type.dense_vector(1))
        self.score = tenon.layer.fc(self.x, size=1, name="s")
        self.cost = tenon.layer.square_error(self.score, tenon.layer.data("t", data_type.dense_vector(1)))
        self.parameters = tenon.parameters.create(self.cost)

    def train(self, reader, **options):
        tenon.train(self.cost, self.parameters, reader, **options)


@pytest.fixture
def line():
    return Line()


def sparse_nan():
    sparse = pytest.importorskip("scipy.sparse")
    return sparse.csr_matrix(np.array([[0, 1], [NAN, 0]], np.float32))


class Tensor:
    """An array that is seen by DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def feeds_of_nan():
    ones, bad = np.ones((3, 1)), np.array([[1], [NAN], [2]])
    rows = [{"x": [float(number)], "t": [1.0]} for number in bad[:, 0]]
    yield "float64", {"x": bad, "t": ones}
    yield "float32", {"x": bad.astype(np.float32), "t": ones}
    yield "float16", {"x": bad.astype(np.float16), "t": ones}
    yield "strided", {"x": np.repeat(bad, 2, 0)[::2], "t": ones}
    yield "another column", {"x": ones, "t": bad}
    yield "list", {"x": bad.tolist(), "t": ones}
    yield "DLPack", {"x": Tensor(bad), "t": ones}
    yield "samples", rows
    yield "function", lambda: iter(rows)
    yield "tuples", lambda: ((row["x"], row["t"]) for row in rows)
    yield "typed", tenon.reader.typed(lambda: iter(rows), {"x": data_type.dense_vector(1), "t": data_type.dense_vector(1)})
    yield "map", tenon.reader.arrays({"x": ones, "t": ones}).map(lambda each: {"x": bad[1], "t": each["t"]})
    yield "minibatches", tenon.batch(lambda: iter(rows), 2)
    pandas = pytest.importorskip("pandas")
    yield "frame", pandas.DataFrame({"x": bad[:, 0], "t": 1.0})
    pyarrow = pytest.importorskip("pyarrow")
    yield "table", pyarrow.table({"x": bad[:, 0], "t": ones[:, 0]})


@pytest.mark.parametrize("reader", [pytest.param(each, id=name) for name, each in feeds_of_nan()])
def test_nan_is_refused_wherever_it_is_fed(reader):
    line = Line()
    with pytest.raises(tenon.error.BadDataError, match="nan"):
        line.train(reader)
    with pytest.raises(tenon.error.BadDataError, match="nan"):
        tenon.test(line.cost, line.parameters, reader)
    for outputs in (line.cost, [line.cost, line.score]):
        with pytest.raises(tenon.error.BadDataError, match="nan"):
            tenon.infer(outputs, line.parameters, reader)
    assert np.isfinite(line.parameters["s.weight"]).all()
    assert np.isnan(tenon.test(line.cost, line.parameters, reader, nan="allow").cost)
    assert np.isnan(tenon.infer(line.cost, line.parameters, reader, nan="allow")).sum() >= 1
    with pytest.warns(RuntimeWarning, match="since pass 0, batch 0"):
        line.train(reader, nan="allow")


def test_gradient_machines_refuse_nan(line):
    machine = tenon.gradient_machine.new(line.cost, line.parameters)
    bad = {"x": np.array([[1], [NAN]], np.float32), "t": np.ones((2, 1), np.float32)}
    for call in (machine.forward, machine.feed, lambda each: machine.feed_steps(each, tenon.updater.SGD())):
        with pytest.raises(tenon.error.BadDataError, match=r'"x" is nan at \[1, 0\]'):
            call(bad)
    with pytest.raises(tenon.error.BadDataError, match=r'"x" is nan at \[0, 0\]'):
        machine.forward({"x": tenon.input.new([NAN]), "t": bad["t"]})
    assert np.isnan(tenon.gradient_machine.new(line.cost, line.parameters, nan="allow").forward(bad)).any()
    with pytest.raises(tenon.error.InvalidError, match="nan is True"):
        tenon.gradient_machine.new(line.cost, line.parameters, nan=True)


def test_nan_of_sequences_and_sparse_vectors():
    tenon.use(tenon.Host())
    words = tenon.layer.data("w", data_type.dense_vector_sequence(2))
    vector = tenon.layer.data("v", data_type.sparse_float_vector(2))
    for layer, values in ((words, tenon.Ragged([[1, 2], [3, NAN]], [0, 1, 2])), (words, [[[1, 2]], [[3, NAN]]]),
                          (vector, sparse_nan()), (vector, [[(0, 1.0)], [(1, NAN)]])):  # fmt: skip
        output = layer * 2 if layer is words else tenon.layer.fc(layer, size=1)
        parameters = tenon.parameters.create(output)
        for given in ({layer.name: values}, tenon.reader.arrays({layer.name: values})):
            with pytest.raises(tenon.error.BadDataError, match="nan"):
                tenon.infer(output, parameters, given)
            tenon.infer(output, parameters, given, nan="allow")


def test_files_of_arrays_refuse_nan(line, tmp_path):
    for dtype in ("f2", "f4", "f8", ">f4"):
        files = [str(tmp_path / "x.npy"), str(tmp_path / "t.npy")]
        np.save(files[0], np.array([[1], [NAN], [-np.inf]], dtype))
        np.save(files[1], np.ones((3, 1), np.float32))
        for call in (line.train, lambda reader: tenon.infer(line.cost, line.parameters, reader)):
            with pytest.raises(tenon.error.BadDataError, match="x.npy: sample 1: number 0 is nan"):
                call(tenon.reader.npy(files=files))
    allowed = tenon.reader.npy(files=files, nan="allow")
    assert np.isnan(tenon.infer(line.cost, line.parameters, allowed)).tolist()[1]


def test_infinity_is_a_number(line):
    assert np.isinf(tenon.infer(line.x * 1, line.parameters, {"x": np.array([[np.inf]])})).all()


def test_nan_that_no_data_layer_takes_is_ignored(line):
    line.train({"x": np.ones(3), "t": np.ones(3), "z": np.full(3, NAN)})
    line.train([{"x": [1.0], "t": [1.0], "z": NAN}])


def test_nan_that_a_map_replaces_is_no_fault(line):
    columns = {"x": np.array([1, NAN, 2]), "t": np.ones(3)}
    line.train(tenon.reader.arrays(columns).map(lambda each: {"x": np.nan_to_num(each["x"]), "t": each["t"]}))
    assert next(tenon.reader.arrays(columns).batch(3).read())[0]["x"].shape == (3,)


def test_missing_values_name_column_and_sample(line):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    ones = [1.0, 1.0]
    columns = [pandas.array([1, None], "Int64"), pandas.array([1.5, None], "Float64"), pandas.array([True, None], "boolean"),
               pandas.Series([1.0, None], dtype="double[pyarrow]"), pyarrow.array([1, None]), pyarrow.array([1.5, None]),
               pyarrow.chunked_array([[1.0], [None]]), np.ma.masked_array([1.0, 2.0], [False, True])]  # fmt: skip
    for values in columns:
        given = {"x": pandas.Series(values) if isinstance(values, pandas.api.extensions.ExtensionArray) else values, "t": ones}
        for nan in ("refuse", "allow"):
            with pytest.raises(tenon.error.Error, match='sample 1: .*"x" has (a missing value|masked elements)'):
                line.train(given, nan=nan)
            with pytest.raises(tenon.error.Error, match='sample 1: .*"x" has (a missing value|masked elements)'):
                tenon.infer(line.score, line.parameters, given, nan=nan)
    frames = [pandas.DataFrame({"x": pandas.array([1, None], "Int64"), "t": ones}), pyarrow.table({"x": [1, None], "t": ones})]
    for frame in frames:
        with pytest.raises(tenon.error.BadDataError, match='sample 1: slot "x" has a missing value'):
            line.train(frame)
    for value in (None, pandas.NaT, pandas.NA, np.datetime64("NaT")):
        for reader in ([{"x": [1.0], "t": ones[:1]}, {"x": [value], "t": ones[:1]}], {"x": [1.0, value], "t": ones}):
            with pytest.raises(tenon.error.Error, match='"x"'):
                line.train(reader, nan="allow")
    times = pandas.DataFrame({"x": pandas.to_datetime(["2020-01-01", None]), "t": ones})
    with pytest.raises(tenon.error.InvalidError, match='slot "x" has times'):
        line.train(times)
    whole = tenon.layer.embedding(tenon.layer.data("y", data_type.integer_value(3)), vocabulary=3, size=2)
    for values in (pandas.array([0, None], "Int64"), pyarrow.array([0, None])):
        with pytest.raises(tenon.error.BadDataError, match='sample 1: .*"y" has a missing value'):
            tenon.infer(whole, tenon.parameters.create(whole), {"y": values})


def test_nulls_in_lists_of_arrow_are_missing_values(line):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    for kind in (pyarrow.list_(pyarrow.float32()), pyarrow.large_list(pyarrow.int64()), pyarrow.list_(pyarrow.float64(), 1)):
        values = pyarrow.array([[1], [None], [None]], kind)
        series = pandas.Series(values, dtype=pandas.ArrowDtype(kind))
        for column in (values, pyarrow.chunked_array([values[:1], values[1:]]), series):
            for nan in ("refuse", "allow"):
                with pytest.raises(tenon.error.BadDataError, match='sample 1: .*"x" has a missing value'):
                    tenon.infer(line.score, line.parameters, {"x": column, "t": [1.0] * 3}, nan=nan)


def test_columns_without_a_data_layer_are_ignored(line):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    rest = {"name": ["x", "y", "z"], "when": pandas.to_datetime(["2020-01-01"] * 3), "what": [object(), {}, None],
            "missing": pandas.array([1, None, 2], "Int64"), "short": ["long", NAN, 3]}  # fmt: skip
    used = {"x": [1.0, 2.0, 3.0], "t": [1.0, 0.0, 1.0]}
    frame = pandas.DataFrame({**rest, **used})
    table = pyarrow.table({"name": rest["name"], "when": pyarrow.array(rest["when"]), **used})
    for given in (frame, table, {**rest, **used, "few": [1]}):
        for reader in (given, tenon.batch(given, 2), tenon.reader.shuffle(given), tenon.reader.first_n(given, 2)):
            line.train(reader)
            tenon.test(line.cost, line.parameters, reader)
            line.train(reader, test=reader, updater=tenon.updater.new_simple() if reader is given else None)
        assert tenon.infer(line.score, line.parameters, given).shape == (3, 1)
    renamed = tenon.reader.arrays(frame.rename(columns={"x": "old"})).choose("t", x="old")
    assert tenon.test(line.cost, line.parameters, renamed).samples == 3
    assert tenon.test(line.cost, line.parameters, frame.rename(columns={"x": "old"}), feeding={"old": "x"}).samples == 3
    untyped = tenon.layer.fc("x", size=1)
    assert tenon.infer(untyped, tenon.parameters.create(untyped, reader=frame), frame).shape == (3, 1)
    with pytest.raises(tenon.error.InvalidError, match='column "x" has texts'):
        line.train(pandas.DataFrame({"x": ["a"], "t": [1.0]}))
    with pytest.raises(tenon.error.Error, match='"x"'):
        line.train(pandas.DataFrame({"X": [1.0], "t": [1.0], "name": ["a"]}))


def test_a_slot_to_sort_by_needs_no_data_layer():
    tenon.use(tenon.Host())
    words = tenon.layer.data("w", data_type.integer_value_sequence(9))
    score = tenon.layer.sequence_pool(tenon.layer.embedding(words, vocabulary=9, size=2), kind="sum")
    lists = tenon.Ragged.of([[1], [1, 2], [3]], np.int64)
    reader = tenon.reader.arrays({"w": lists, "key": lists, "name": ["a", "b", "c"]}).bucket("key", 3, size=2)
    assert len(tenon.infer(score, tenon.parameters.create(score), reader)) == 3


def test_costs_that_are_not_finite_warn_once_and_parameters_are_not_saved(line, tmp_path):
    for updater in (tenon.updater.SGD, tenon.updater.new_simple):
        line = Line()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            line.train({"x": np.ones(8), "t": np.zeros(8)}, batch_size=2, passes=3, updater=updater(learning_rate=1e30))
        told = [each for each in caught if each.category is RuntimeWarning]
        assert len(told) == 1 and told[0].filename == __file__
        assert "since pass 0, batch" in str(told[0].message) and "check_finite" in str(told[0].message)
        for path in (tmp_path / "m.safetensors", tmp_path / "m.onnx"):
            with pytest.raises(tenon.error.InvalidError,
                               match='"s.(weight|bias)" has values that are not finite.*check_finite'):
                line.parameters.save(path, line.score) if path.suffix != ".onnx" else tenon.onnx.save(
                    line.score, line.parameters, path)  # fmt: skip
            assert not path.exists()
        line.parameters.save(tmp_path / "m.safetensors", line.score, nan="allow")
        assert not np.isfinite(tenon.load(tmp_path / "m.safetensors")["s.weight"]).all()
        tenon.onnx.save(line.score, line.parameters, tmp_path / "m.onnx", nan="allow")
        for path in (tmp_path / "m.safetensors", tmp_path / "m.onnx"):
            path.unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            line = Line()
            line.train({"x": np.ones(8), "t": np.zeros(8)}, batch_size=2, updater=tenon.updater.SGD(learning_rate=1e30))


class Rating:
    """A rating of a user and a movie, whose tables are used in another order than they are defined."""

    def __init__(self, turned=True):
        tenon.use(tenon.Host())
        self.user, self.movie = (tenon.layer.data(name, data_type.integer_value(50)) for name in ("user", "movie"))
        self.rating = tenon.layer.data("rating", data_type.dense_vector(1))
        tables = [tenon.layer.embedding(each, vocabulary=50, size=4, name=f"{each.name}s") for each in (self.user, self.movie)]
        if turned:
            tables.reverse()
        self.cost = tenon.layer.square_error(tenon.layer.sum(tables[0] * tables[1], axes=[1], keep_dimensions=True),
                                             self.rating)
        self.parameters = tenon.parameters.create(self.cost)

    def changed(self, reader, **options):
        """Returns the rows of users and of movies that a training changed."""
        before = [self.parameters.read(f"{name}.weight") for name in ("users", "movies")]
        tenon.train(self.cost, self.parameters, reader, updater=tenon.updater.SGD(learning_rate=0.1), **options)
        after = [self.parameters.read(f"{name}.weight") for name in ("users", "movies")]
        return [set(np.flatnonzero((a != b).any(1)).tolist()) for a, b in zip(before, after, strict=True)]


TRIPLES = [(row, 40 + row, [1.0]) for row in range(10)]
USERS, MOVIES = set(range(10)), set(range(40, 50))


def test_tuples_are_in_the_order_of_definition():
    assert Rating(False).changed(TRIPLES) == [USERS, MOVIES]
    assert list(Rating().cost.data_types) == ["user", "movie", "rating"]


@pytest.mark.parametrize("reader", [TRIPLES, lambda: iter(TRIPLES), tenon.batch(TRIPLES, 2)], ids=["list", "function", "batch"])
def test_tuples_that_might_be_swapped_are_refused(reader):
    model = Rating()
    for call in (lambda: model.changed(reader), lambda: tenon.test(model.cost, model.parameters, reader),
                 lambda: tenon.infer(model.cost, model.parameters, reader)):  # fmt: skip
        with pytest.raises(tenon.error.InvalidError, match='"user" and "movie" take values of one form.*feeding='):
            call()
    places = {"user": 0, "movie": 1, "rating": 2}
    assert model.changed(reader, feeding=places) == [USERS, MOVIES]
    assert model.changed(reader, feeding={"user": 1, "movie": 0, "rating": 2}) == [MOVIES, USERS]
    assert tenon.infer(model.cost, model.parameters, reader, feeding=places).shape[0] == 10
    named = [dict(zip(("user", "movie", "rating"), each, strict=True)) for each in TRIPLES]
    assert model.changed(named) == [USERS, MOVIES]
    types = {"user": data_type.integer_value(50), "movie": data_type.integer_value(50), "rating": data_type.dense_vector(1)}
    assert model.changed(tenon.reader.typed(lambda: iter(TRIPLES), types)) == [USERS, MOVIES]


def test_lists_of_arrays_follow_the_same_rule():
    arrays = [np.arange(10), np.arange(40, 50), np.ones((10, 1))]
    machine = tenon.gradient_machine.new(Rating().cost)
    with pytest.raises(tenon.error.InvalidError, match="take values of one form"):
        machine.feed(arrays)
    machine = tenon.gradient_machine.new(Rating(False).cost)
    machine.feed(arrays)
    assert list(machine.types) == ["user", "movie", "rating"]


def test_forms_that_differ_need_no_places():
    """The order of use is label, x here; tuples in that order are refused by their types."""
    tenon.use(tenon.Host())
    x, label = tenon.layer.data("x", data_type.dense_vector(2)), tenon.layer.data("label", data_type.integer_value(3))
    hidden = tenon.layer.embedding(label, vocabulary=3, size=2)
    cost = tenon.layer.square_error(hidden, x)
    parameters = tenon.parameters.create(cost)
    tenon.train(cost, parameters, [([0.5, 1.5], 2)])
    with pytest.raises(tenon.error.BadDataError, match='slot "x"'):
        tenon.train(cost, parameters, [(2, [0.5, 1.5])])


def test_places_need_not_be_all_of_the_tuple():
    model = Rating()
    wide = [("a text", None, *each) for each in TRIPLES]
    assert model.changed(wide, feeding={"user": 2, "movie": 3, "rating": 4}) == [USERS, MOVIES]
    with pytest.raises(tenon.error.BadDataError, match="sample 0 has 5 values; expected at least 8"):
        model.changed(wide, feeding={"user": 2, "movie": 3, "rating": 7})
    for feeding, words in (({"user": 0}, 'no place for data layer "movie"'), ({"user": -1}, "feeding"), ({"users": 0}, "users"),
                           ({"user": 0, "b": "movie"}, "both slots and places")):  # fmt: skip
        with pytest.raises(tenon.error.InvalidError, match=words):
            model.changed(wide, feeding=feeding)
    columns = {"user": np.arange(10), "movie": np.arange(40, 50), "rating": np.ones((10, 1))}
    with pytest.raises(tenon.error.InvalidError, match="the slots of the reader have names"):
        model.changed(columns, feeding={"user": 0, "movie": 1, "rating": 2})
    one = tenon.layer.data("one", data_type.dense_vector(1))
    assert tenon.infer(one * 2, tenon.parameters.create(one * 2), [("a", [1.0])], feeding={"one": 1}).tolist() == [[2.0]]


def test_another_network_of_the_same_names_changes_no_order():
    """Each network has the order of its own definitions, also where data layers are equal, and are one."""
    model = Rating(False)
    movie, user = (tenon.layer.data(name, data_type.integer_value(50)) for name in ("movie", "user"))
    tables = [tenon.layer.embedding(each, vocabulary=50, size=4, name=f"{each.name}_again") for each in (movie, user)]
    again = tenon.layer.sum(tables[0] * tables[1], axes=[1])
    assert list(again.data_types) == ["movie", "user"] and list(model.cost.data_types) == ["user", "movie", "rating"]
    assert model.changed(TRIPLES) == [USERS, MOVIES]
    pairs = [(each[1], each[0]) for each in TRIPLES]
    by_name = [{"movie": each[1], "user": each[0]} for each in TRIPLES]
    parameters = tenon.parameters.create(again)
    assert (tenon.infer(again, parameters, pairs) == tenon.infer(again, parameters, by_name)).all()


def test_layers_behind_a_scan_keep_the_rule():
    tenon.use(tenon.Host())
    rows = data_type.sequence(data_type.dense_vector(2), lengths_of="s")
    first, second = (tenon.layer.data(name, rows) for name in ("first", "second"))
    for turned in (False, True):
        steps = tenon.scan(lambda a, b: a - b, [second, first] if turned else [first, second]).results
        output = tenon.layer.sequence_pool(steps, kind="sum")
        samples = [([[1.0, 2]], [[3.0, 5]])]
        if turned:
            with pytest.raises(tenon.error.InvalidError, match="take values of one form"):
                tenon.infer(output, tenon.parameters.create(output), samples)
        else:
            assert tenon.infer(output, tenon.parameters.create(output), samples).tolist() == [[-2, -3]]


def test_a_loaded_model_has_the_order_of_use(tmp_path):
    model = Rating()
    model.parameters.save(tmp_path / "m.safetensors", model.cost)
    tenon.use(tenon.Host())
    loaded = tenon.load(tmp_path / "m.safetensors")
    assert list(loaded.outputs[0].data_types) == ["movie", "user", "rating"]


def test_equal_data_layers_are_one():
    tenon.use(tenon.Host())
    z = [tenon.layer.data("z", data_type.dense_vector(3)) for _ in range(2)]
    both = tenon.layer.add(*z)
    assert tenon.infer(both, tenon.parameters.create(both), {"z": np.ones((1, 3))}).tolist() == [[2, 2, 2]]
    other = tenon.layer.add(z[0], tenon.layer.data("z", data_type.dense_vector(1)))
    with pytest.raises(tenon.error.InvalidError, match='"z"'):
        tenon.parameters.create(other)
