"""Arrays as readers: the same samples as one by one, in every order, and what is read ahead of a training.

SPDX-License-Identifier: Apache-2.0
"""

import itertools
import re
import threading
from pathlib import Path

import numpy as np
import pytest

import tenon
from tenon import data_type

COUNT = 37
random = np.random.default_rng(0)
EXTENTS = np.concatenate([[0], np.cumsum(random.integers(0, 5, COUNT))])
INNER = np.concatenate([[0], np.cumsum(random.integers(0, 4, EXTENTS[-1]))])


def sparse(values):
    columns = [random.permutation(17)[: EXTENTS[i + 1] - EXTENTS[i]] for i in range(COUNT)]
    return tenon.Sparse(17, EXTENTS, np.concatenate(columns), values)


def numbers(dtype, *shape):
    made = random.integers(0, 2 if dtype == "bool" else 100, (COUNT, *shape))
    return made.astype(dtype) if np.dtype(dtype).kind != "f" else (made / 7).astype(dtype)


def misaligned(array):
    return np.frombuffer(b"." + array.tobytes(), array.dtype, offset=1).reshape(array.shape)


DENSE = {
    f"{given}-{wanted}-{shape}": (numbers(given, *shape), data_type.dense_array(shape, wanted))
    for shape in ((), (1,), (3,), (4,), (7,), (17,))
    for given, wanted in [("float32", "float32"), ("float64", "float32"), ("float32", "float64"), ("uint8", "float32"),
                          ("int64", "int64"), ("int64", "uint8"), ("uint8", "int64"), ("uint64", "int64"), ("bool", "bool"),
                          ("int32", "bool"), ("bool", "float32"), ("uint16", "int16"), ("int8", "int32")]
}  # fmt: skip
COLUMNS = {
    **DENSE,
    "fortran": (np.asfortranarray(numbers("float32", 3, 4)), data_type.dense_array([3, 4])),
    "strided": (numbers("float32", 14)[:, ::2], data_type.dense_vector(7)),
    "backwards": (numbers("float32", 7)[::-1], data_type.dense_vector(7)),
    "swapped": (numbers("float32", 7).astype(">f4"), data_type.dense_vector(7)),
    "half": (numbers("float16", 7), data_type.dense_vector(7)),
    "misaligned": (misaligned(numbers("float32", 7)), data_type.dense_vector(7)),
    "read only": (np.broadcast_to(numbers("float32", 7)[:1], (COUNT, 7)), data_type.dense_vector(7)),
    "limited": (numbers("int64", 3), data_type.DataType("int64", (3,), 100)),
    "objects": (np.array([[1, 2.5, 3]] * COUNT, object), data_type.dense_vector(3)),
    "sequences": (tenon.Ragged(np.arange(EXTENTS[-1] * 3.0).reshape(-1, 3), EXTENTS), data_type.dense_vector_sequence(3)),
    "words": (tenon.Ragged(np.arange(EXTENTS[-1]) % 11, EXTENTS), data_type.integer_value_sequence(11)),
    "nested": (tenon.Ragged(np.arange(INNER[-1]) % 11, EXTENTS, INNER), data_type.integer_value_sub_sequence(11)),
    "bag": (sparse(None), data_type.sparse_binary_vector(17)),
    "weighted": (sparse(random.random(EXTENTS[-1]).astype("f4")), data_type.sparse_float_vector(17)),
}  # fmt: skip
ORDERS = {
    "in order": lambda reader: reader,
    "shuffled": lambda reader: reader.shuffle(seed=5),
    "a shard": lambda reader: reader.shard(1, 3).shuffle(seed=1),
    "a part": lambda reader: reader.split(0.3, seed=2)[0].shuffle(),
    "the first": lambda reader: reader.first_n(11),
}


def one_by_one(columns):
    """The samples of columns as a list, each of them a value by itself."""
    if getattr(columns["x"], "dtype", None) == np.float16:
        columns = {**columns, "x": columns["x"].astype(np.float32)}
    return [{name: tenon.reader._sample(values, i) for name, values in columns.items()} for i in range(COUNT)]


def same(a, b):
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return a == b


def minibatches(core, passes=1):
    return [list(iter(core.next, None)) for _ in range(passes)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", COLUMNS)
def test_the_samples_are_those_of_a_list(name, order):
    values, type = COLUMNS[name]
    columns = {"x": values, "number": np.arange(COUNT)}
    types = {"x": type, "number": data_type.DataType("int64")}
    samples = tenon.reader.as_reader(one_by_one(columns))
    for batch in (1, 4, 16):
        rows = ORDERS[order](tenon.reader.arrays(columns)).batch(batch).open(types)
        listed = ORDERS[order](samples).batch(batch).open(types)
        for mine, expected in zip(minibatches(rows, 2), minibatches(listed, 2), strict=True):
            assert len(mine) > 0 and same(tuple(map(tuple, mine)), tuple(map(tuple, expected)))
        for core in (rows, listed):  # resumed in the middle
            core.seek(1, 3)
        assert same(tuple(rows.next()), tuple(listed.next()))


def test_no_samples():
    core = tenon.reader.arrays({"x": np.zeros((0, 3), np.float32)}).shuffle().batch(2).open()
    assert core.next() is None and core.next() is None


REFUSED = {
    "NaN": (np.float32, data_type.dense_vector(3), np.nan, 'number 1 is nan; nan="allow" feeds such numbers'),
    "NaN of float64": (np.float64, data_type.dense_vector(3), np.nan, "number 1 is nan"),
    "beyond float32": (np.float64, data_type.dense_vector(3), -1e300, "float32 cannot hold -1e+300"),
    "the limit": (np.int64, data_type.DataType("int64", (3,), 10), 10, "10 is not below 10"),
    "the limit of another type": (np.int32, data_type.DataType("int64", (3,), 10), 10, "10 is not below 10"),
    "negative": (np.int8, data_type.DataType("int64", (3,), 10), -1, "-1 is not below 10, from 0 on"),
    "beyond uint8": (np.int64, data_type.dense_vector(3, "uint8"), 256, 'slot "x" cannot hold 256'),
    "below uint8": (np.int16, data_type.dense_vector(3, "uint8"), -1, 'slot "x" cannot hold -1'),
    "beyond int64": (np.uint64, data_type.dense_vector(3, "int64"), 2**63, 'slot "x" cannot hold 9223372036854775808'),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("batch", [1, 4, 16])
def test_a_wrong_number_is_that_of_its_sample_and_is_skipped(name, batch):
    """In every order, while all other samples are read."""
    dtype, type, value, why = REFUSED[name]
    array = np.ones((COUNT, 3), dtype)
    array[[20, 30], 1] = value
    wanted = tenon._base.columns.Wanted({"x": type, "n": data_type.DataType("int64")}, True, False)
    core = tenon.reader.arrays({"x": array, "n": np.arange(COUNT)}).shuffle(seed=3).batch(batch).open(wanted)
    met, failures = [], []
    while True:
        try:
            if (minibatch := core.next()) is None:
                break
            met += minibatch[1].tolist()
        except tenon.error.BadDataError as error:
            failures.append(error)
    assert sorted(met) == sorted(set(range(COUNT)) - {20, 30})
    found = [re.search(r'sample (\d+): slot "x": (.*)', str(each)).groups() for each in failures]
    assert {number for number, _ in found} == {"20", "30"} and all(words.startswith(why) for _, words in found)
    assert {each.subject for each in failures} == {"x"} and {each.component for each in failures} == {"reader"}


def test_the_first_wrong_sample_is_named_and_its_first_slot():
    a, b = np.ones((COUNT, 2), np.float32), np.ones((COUNT, 2), np.float32)
    a[9] = b[7] = b[9] = np.nan
    wanted = tenon._base.columns.Wanted({"a": data_type.dense_vector(2), "b": data_type.dense_vector(2)}, True, False)
    core = tenon.reader.arrays({"a": a, "b": b}).batch(COUNT).open(wanted)
    for sample, slot, mended in ((7, "b", b), (9, "a", a), (9, "b", b)):
        with pytest.raises(tenon.error.BadDataError, match=f'sample {sample}: slot "{slot}": number 0 is nan'):
            core.next()
        mended[sample] = 0
    assert len(core.next()[0]) == COUNT


def test_wrong_sequences_and_sparse_vectors():
    rows = np.arange(12.0, dtype=np.float32).reshape(6, 2)
    rows[4, 1] = np.nan
    for reader, words in (
        ({"x": tenon.Ragged(rows, [0, 2, 2, 5, 6])}, 'sample 2: slot "x": number 5 is nan'),
        ({"x": tenon.Ragged(rows, [0, 1, 3], [0, 2, 3, 6])}, 'sample 1: slot "x": number 3 is nan'),
        ({"x": tenon.Sparse(9, [0, 2, 5], [1, 0, 3, 8, 3])}, 'sample 1: slot "x": it has column 3 twice'),
        ({"x": tenon.Sparse(9, [0, 2, 4, 5], [1, 0, 3, 3, 1], [1, 2, 3, 4, np.nan])}, "sample 1: .* column 3 twice"),
        ({"x": tenon.Sparse(9, [0, 2, 3], [1, 0, 3], [1, 2, np.nan])}, 'sample 1: slot "x": number 0 is nan'),
    ):
        wanted = tenon._base.columns.Wanted({"x": None}, True, False)
        with pytest.raises(tenon.error.BadDataError, match=words):
            minibatches(tenon.reader.arrays(reader).batch(4).open(wanted))


def test_arrays_are_read_when_their_samples_are():
    """Not copied: the next samples are those that the array has by then, and are checked."""
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    wanted = tenon._base.columns.Wanted({"x": data_type.dense_vector(2)}, True, False)
    core = tenon.reader.arrays({"x": x}).batch(2).open(wanted)
    assert core.next()[0].tolist() == [[0, 1], [2, 3]]
    x[2:] = -1
    assert core.next()[0].tolist() == [[-1, -1], [-1, -1]] and core.next() is None
    x[0, 1] = np.nan
    with pytest.raises(tenon.error.BadDataError, match='sample 0: slot "x": number 1 is nan'):
        core.next()


WIDE = 4000  # a minibatch of such samples takes long enough to be read ahead


def created():
    tenon.use(tenon.Host(threads=1))
    x, y = tenon.layer.data("x", data_type.dense_vector(WIDE)), tenon.layer.data("y", data_type.integer_value(3))
    cost = tenon.layer.cross_entropy(tenon.layer.fc(x, size=3, name="score"), y, from_logits=True)
    return cost, tenon.parameters.create(cost)


def data(samples=300):
    return {"x": np.random.default_rng(1).random((samples, WIDE), np.float32) / WIDE, "y": np.arange(samples) % 3}


def trained(reader, handler=None, **options):
    cost, parameters = created()
    tenon.train(cost, parameters, reader, handler, passes=3, batch_size=32, **options)
    return parameters["score.weight"].tobytes()


def reading_threads():
    return sum((task / "comm").read_text() == "tenon-reader\n" for task in Path("/proc/self/task").iterdir())


def test_results_do_not_depend_on_what_is_read_ahead(tmp_path):
    reader = tenon.reader.arrays(data()).shuffle(seed=4)
    expected = trained(reader.batch(32).buffered(0))
    assert trained(reader) == trained(reader.batch(32).buffered(3)) == trained(reader, lambda event: None) == expected
    cost, parameters = created()
    for passes in (1, 2, 3):  # stopped and resumed
        tenon.train(cost, parameters, reader, passes=passes, batch_size=32, checkpoint=str(tmp_path / "checkpoints"))
        cost, parameters = (cost, parameters) if passes == 3 else created()
    assert parameters["score.weight"].tobytes() == expected
    cost, parameters = created()
    assert tenon.test(cost, parameters, reader).cost == tenon.test(cost, parameters, reader.batch(128).buffered(0)).cost


def test_a_handler_that_changes_arrays_sees_to_the_next_minibatch():
    def run(given):
        columns = data()

        def change(event):
            if isinstance(event, tenon.event.EndIteration):
                columns["x"] *= 0.5

        return trained(given(columns), change)

    def one_at_a_time(columns):
        return lambda: zip(columns["x"], columns["y"], strict=True)

    assert run(tenon.reader.arrays) == run(one_at_a_time)


@pytest.mark.parametrize("kind", ["files", "arrays", "files, buffered(0)"])
def test_what_is_read_ahead_while_a_handler_runs(kind, tmp_path):
    columns = data()
    for name, values in columns.items():
        np.save(tmp_path / f"{name}.npy", values)
    reader = tenon.reader.arrays(columns)
    if kind != "arrays":
        reader = tenon.reader.npy(files=[str(tmp_path / "x.npy"), str(tmp_path / "y.npy")], classes=[0, 3])
    if kind.endswith("buffered(0)"):
        reader = reader.batch(32).buffered(0)
    most = 0

    def count(event):
        nonlocal most
        most = max(most, reading_threads())

    trained(reader, count)
    assert most == (1 if kind == "files" else 0) and reading_threads() == 0


def test_functions_of_the_application_are_called_on_its_thread():
    """No sample is asked for before it is needed, however long they take."""
    threads, asked, seen = set(), itertools.count(), []
    x = data(64)["x"]

    def samples():
        for i in range(64):
            threads.add(threading.get_ident())
            next(asked)
            yield x[i], i % 3

    def note(event):
        if isinstance(event, tenon.event.EndIteration):
            seen.append(next(asked))

    trained(samples, note)
    assert threads == {threading.get_ident()}
    assert seen[:2] == [32, 65]
    threads.clear()
    trained(samples)
    assert threads == {threading.get_ident()}


def test_a_damaged_sample_is_met_at_its_minibatch():
    columns = data()
    columns["x"][100, 7] = np.nan
    for given in (None, lambda event: None):
        cost, parameters = created()
        before = parameters["score.weight"].copy()
        with pytest.raises(tenon.error.BadDataError, match='sample 100: slot "x": number 7 is nan'):
            tenon.train(cost, parameters, columns, given, batch_size=32)
        if given is None:
            expected = parameters["score.weight"].copy()
            assert not np.array_equal(before, expected)
        np.testing.assert_array_equal(parameters["score.weight"], expected)
