"""Readers of Python and of plugins. SPDX-License-Identifier: Apache-2.0"""

import numpy as np
import pytest

import tenon
from tenon import data_type


def counting(count=10):
    def samples():
        for i in range(count):
            yield {"x": float(i), "n": i}

    return samples


def values(reader, slot="n"):
    return [sample[slot] for sample in reader.samples()]


def test_wrappers():
    reader = tenon.reader.as_reader(counting())
    assert values(reader) == list(range(10))
    assert values(reader) == list(range(10))  # a recipe is read again from the beginning
    assert sorted(values(reader.shuffle())) == list(range(10)) and values(reader.shuffle()) != list(range(10))
    assert values(reader.first_n(3)) == [0, 1, 2]
    assert values(reader.shard(1, 3)) == [1, 4, 7]
    assert [len(batch["n"]) for batch in reader.batch(4)] == [4, 4, 2]
    assert [len(batch["n"]) for batch in reader.batch(4, drop_last=True)] == [4, 4]
    assert [len(batch["n"]) for batch in reader.batch(4).buffered(2)] == [4, 4, 2]
    assert list(next(iter(reader.choose(m="n")))) == ["m"]
    doubled = reader.map(lambda sample: {"n": 2 * sample["n"]}, {"n": data_type.DataType("int64")})
    assert values(doubled) == list(range(0, 20, 2))


def test_joins():
    a, b = tenon.reader.as_reader(counting(3)), tenon.reader.as_reader(counting(2))
    assert values(tenon.reader.chain(a, b)) == [0, 1, 2, 0, 1]
    assert values(tenon.reader.interleave(a, b)) == [0, 0, 1, 1, 2]
    both = tenon.reader.compose(a, a.choose(y="x"))
    with pytest.raises(tenon.Error, match="n"):
        list(tenon.reader.compose(a, a))
    assert sorted(next(iter(both))) == ["n", "x", "y"]


def test_read_tells_the_end_of_a_pass():
    reader = tenon.batch(counting(5), 2)
    assert [end for _, end in reader.read()] == [False, False, True]
    assert [end for _, end in reader.read(passes=2)] == [False, False, True] * 2


def test_an_endless_iterator_ends_passes_itself():
    def endless():
        i = 0
        while True:
            yield {"x": float(i), "end_pass": i % 3 == 2}
            i += 1

    reader = tenon.reader.typed(endless, {"x": data_type.dense_array([])})
    core = reader.batch(2).open()
    passes = []
    for _ in range(2):
        found = []
        while (batch := core.next()) is not None:
            found += batch[0].tolist()
        passes.append(found)
    assert passes == [[0, 1, 2], [3, 4, 5]]


SEQUENCES = {
    "words": data_type.integer_value_sequence(10),
    "rows": data_type.dense_vector_sequence(2),
    "nested": data_type.integer_value_sub_sequence(10),
    "bag": data_type.sparse_binary_vector(10),
    "weighted": data_type.sparse_float_vector(10),
}
SAMPLES = [
    {"words": [1, 2], "rows": [[1, 2], [3, 4], [5, 6]], "nested": [[1], [2, 3]], "bag": [3, 1], "weighted": {2: 0.5}},
    {"words": [], "rows": np.ones((1, 2)), "nested": [], "bag": [], "weighted": [(9, 2.0), (0, 1.0)]},
]


def test_sequences_and_sparse_vectors():
    batch = next(iter(tenon.reader.typed(lambda: SAMPLES, SEQUENCES).batch(2)))
    assert [each.tolist() for each in batch["words"]] == [[1, 2], []]
    assert [len(each) for each in batch["rows"]] == [3, 1]
    assert [[inner.tolist() for inner in each] for each in batch["nested"]] == [[[1], [2, 3]], []]
    assert batch["bag"].toarray()[0].nonzero()[0].tolist() == [1, 3]
    assert batch["weighted"].toarray()[1].tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 0, 2]


@pytest.mark.parametrize(
    ("slot", "value", "words"),
    [
        ("words", 3, "no list of rows"),
        ("words", [1.5], "float"),
        ("rows", np.ones((2, 3)), "the shapes differ"),
        ("rows", [[1, 2], [3]], "a row has 2"),
        ("nested", [1, 2], "int"),
        ("bag", [10], "column 10 is outside"),
        ("weighted", [(1, 2, 3)], "no .column, value."),
        ("words", None, "None"),
    ],
)
def test_wrong_values(slot, value, words):
    reader = tenon.reader.typed(lambda: [SAMPLES[0], {**SAMPLES[1], slot: value}], SEQUENCES)
    with pytest.raises(tenon.error.BadDataError, match=f'sample 1: slot "{slot}".*{words}') as caught:
        list(reader)
    assert caught.value.subject == slot


def test_types_that_cannot_be_told_are_asked_for():
    with pytest.raises(tenon.error.InvalidError, match='slot "words" cannot be told'):
        list(tenon.reader.as_reader(lambda: [{"words": [1, 2]}]))
    with pytest.raises(tenon.error.InvalidError, match="no dicts"):
        list(tenon.reader.as_reader(lambda: [(1, 2)]))


def test_an_iterator_has_one_pass():
    x = tenon.layer.data("x", data_type.dense_vector(1))
    cost = tenon.layer.sum_cost(tenon.layer.fc(x, size=1))
    parameters = tenon.parameters.create(cost)
    tenon.train(cost, parameters, iter([{"x": [1.0]}]))
    with pytest.raises(tenon.error.MisuseError, match="one pass alone"):
        tenon.train(cost, parameters, iter([{"x": [1.0]}]), passes=2)


def test_readers_of_plugins(tmp_path):
    (tmp_path / "data.csv").write_text("a,b,label\n1,2,yes\n3,4,no\n")
    reader = tenon.reader.csv(files=str(tmp_path / "data.csv"))
    assert set(reader.types()) == {"a", "b", "label"}
    assert values(reader, "a") == [1, 3]
    with pytest.raises(tenon.Error, match="missing.csv"):
        tenon.reader.csv(files="missing.csv").types()


def test_arrays_of_different_length_are_refused():
    with pytest.raises(tenon.error.InvalidError, match="'a': 2, 'b': 3"):
        list(tenon.reader.arrays({"a": [1, 2], "b": [1, 2, 3]}))
