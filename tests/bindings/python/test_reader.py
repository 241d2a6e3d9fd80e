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


def test_a_pass_without_samples_has_no_minibatches():
    """Nor does a reader without end wait for one."""
    empty = tenon.reader.typed(list, {"x": data_type.dense_vector(2)})
    for reader in (empty, empty.batch(2), empty.batch(2).buffered(2), tenon.reader.as_reader(counting(3)).shard(3, 4)):
        assert list(reader) == list(reader.samples()) == list(reader.read(3)) == []
        assert next(reader.read(None), "the end") == "the end"
    assert list(tenon.batch(counting(5), 2).read(0)) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.zeros(3), ("float32", (3,))), (np.zeros((2, 3)), ("float32", (2, 3))), (np.zeros(3, np.float32), ("float32", (3,))),
        (np.arange(3), ("int64", (3,))), (np.zeros(3, np.int32), ("int32", (3,))), (np.zeros(2, bool), ("bool", (2,))),
        (1.5, ("float32", ())), (np.float64(1), ("float32", ())), (2, ("int64", ())), (np.int32(2), ("int64", ())),
        (True, ("bool", ())), (np.bool_(False), ("bool", ())),
    ],
    ids=repr,
)  # fmt: skip
def test_types_are_guessed_from_the_first_sample(value, expected):
    """Numbers of Python and of NumPy are float64 where the layers compute in float32."""
    reader = tenon.reader.as_reader(lambda: iter([{"x": value}, {"x": value}]))
    found = reader.types()["x"]
    assert (found.dtype, found.shape) == expected and found.index_limit < 0
    batch = next(iter(reader.batch(2)))["x"]
    assert batch.dtype == expected[0] and batch.shape == (2, *expected[1])
    np.testing.assert_array_equal(batch, [value, value])


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
        ("rows", [[1, 2], [3]], "its lists differ in length: 2 and 1"),
        ("rows", [[1, 2, 3], [4, 5, 6]], "its rows are .3."),
        ("words", [2**70], "int 1180591620717411303424 in it"),
        ("words", [np.uint64(2**63)], "9223372036854775808"),
        ("words", ["3"], "str '3' in it"),
        ("words", [10], "10 is not below 10"),
        ("words", np.array([-1]), "-1 is not below 10, from 0 on"),
        ("rows", [["1", "2"]], "str '1' in it"),
        ("rows", np.array([["1", "2"]]), "str"),
        ("rows", [[1, 1e300]], "float32 cannot hold"),
        ("rows", np.ones((1, 2)) * 1j, "not read"),
        ("rows", [[np.complex64(1), 2]], "complex64"),
        ("rows", [b"ab"], "bytes"),
        ("rows", [[1, [2]]], "list of 1 entries in it"),
        ("rows", np.ma.masked_array(np.ones((1, 2)), mask=True), "masked"),
        ("bag", [1, 1], "column 1 twice"),
        ("bag", [3, 1, 3], "column 3 twice"),
        ("weighted", [(3, 1), (1, 1), (3, 2)], "column 3 twice"),
        ("weighted", [(9, 1), (8, 1), (7, 2), (9, 1)], "column 9 twice"),
        ("bag", [4, -1], "column -1 is outside"),
        ("weighted", {-1: 2.0}, "column -1 is outside"),
        ("bag", [-(2**63)], "column -9223372036854775808 is outside"),
        ("bag", [None], "None in it"),
        ("bag", np.array([0.5, 1]), "0.5"),
        ("weighted", [(1,)], "tuple of 1 entries in it, which is no .column, value."),
        ("weighted", {1.5: 2}, "float 1.5"),
        ("weighted", {"1": 2}, "str '1'"),
        ("weighted", {1: "a"}, "str 'a'"),
        ("nested", [1, 2], "int"),
        ("bag", [10], "column 10 is outside"),
        ("weighted", [(1, 2, 3)], "no .column, value."),
        ("words", None, "None"),
    ],
)
def test_wrong_values(slot, value, words):
    """What readers refuse, feeds refuse with the same words."""
    samples = [SAMPLES[0], {**SAMPLES[1], slot: value}]
    with pytest.raises(tenon.error.BadDataError, match=f'sample 1: slot "{slot}".*{words}') as caught:
        list(tenon.reader.typed(lambda: samples, SEQUENCES))
    assert caught.value.subject == slot
    layer = tenon.layer.data(slot, SEQUENCES[slot])
    with pytest.raises(tenon.error.BadDataError) as fed:
        tenon.infer(layer, tenon.parameters.create(layer), {slot: [sample[slot] for sample in samples]})
    assert str(fed.value) == str(caught.value)


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


def refusal(type, values, read):
    """The message about values of a data layer "x": of a reader of arrays, or of infer."""
    x = tenon.layer.data("x", type)
    parameters = tenon.parameters.create(x)
    with pytest.raises(tenon.error.Error) as caught:
        tenon.infer(x, parameters, tenon.reader.arrays({"x": values}) if read else {"x": values})
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize(
    ("type", "values", "words"),
    [
        (data_type.integer_value(3), np.array([0.0, 1.0]), "has floats; expected int64 [] below 3"),
        (data_type.integer_value(3), np.array([0, np.nan]), "missing or NaN"),
        (data_type.integer_value(3), np.array([0, 7]), "sample 1"),
        (data_type.dense_vector(4, dtype="uint8"), np.array([[300, 1, 1, 1]]), "cannot hold"),
        (data_type.dense_vector(4, dtype="uint8"), [[-1, 1, 1, 1]], "cannot hold -1"),
        (data_type.dense_vector(4), [[1, 2, [3], 4]], "list of 1 entries in it"),
        (data_type.dense_vector(2), [["1", "2"]], "text"),
        (data_type.dense_vector(2), np.array([["1", "2"]]), "text"),
        (data_type.dense_vector(2), np.array([[1, 2j]]), "complex"),
        (data_type.dense_vector(2), np.array([[1, 1e300]]), "cannot hold"),
        (data_type.dense_vector(2), np.ma.masked_array([[1.0, 2]], [[0, 1]]), "masked"),
        (data_type.sparse_float_vector(4), np.array([[0.5, 1, 2, 3]]), "dense array float64 [1, 4]"),
        (data_type.sparse_binary_vector(4), np.array([[0, 0, 1, 1]]), "dense array int64 [1, 4]"),
    ],
)  # fmt: skip
def test_wrong_arrays(type, values, words, read, recwarn):
    found = refusal(type, values, read)
    assert words in found or (words == "text" and "str" in found) or (words == "complex" and "complex128" in found)
    assert not recwarn.list


@pytest.mark.parametrize("type", [bool, np.uint64, np.uint8, np.int32])
def test_labels_of_every_type_of_integers(type):
    """Feeds and readers take whole numbers in any type that has no floats."""
    label = tenon.layer.data("label", data_type.integer_value(3))
    vector = tenon.layer.embedding(label, vocabulary=3, size=2)
    parameters = tenon.parameters.create(vector)
    given = np.array([0, 1, 1], type)
    expected = tenon.infer(vector, parameters, [0, 1, 1])
    for each in ({"label": given}, tenon.reader.arrays({"label": given}), list(given)):
        np.testing.assert_array_equal(tenon.infer(vector, parameters, each), expected)


def test_wrong_numbers_are_told_by_their_sample_of_the_pass():
    labels = np.zeros(1001, np.int64)
    labels[1000] = 7
    label = tenon.layer.data("label", data_type.integer_value(3))
    vector = tenon.layer.embedding(label, vocabulary=3, size=2)
    parameters = tenon.parameters.create(vector)
    for reader in (tenon.reader.arrays({"label": labels}), lambda: ({"label": each} for each in labels)):
        with pytest.raises(tenon.error.BadDataError, match='sample 1000: slot "label".*7 is not below 3'):
            tenon.infer(vector, parameters, reader=reader)


def test_a_column_of_numbers_is_one_of_vectors_of_one_number():
    x = tenon.layer.data("x", data_type.dense_vector(1))
    layer = x * 2
    parameters = tenon.parameters.create(layer)
    column = np.arange(3, dtype=np.float32)
    for each in ({"x": column}, tenon.reader.arrays({"x": column}), tenon.reader.arrays({"x": np.arange(3)})):
        np.testing.assert_array_equal(tenon.infer(layer, parameters, each), [[0], [2], [4]])
    pair = tenon.layer.data("y", data_type.dense_vector(2)) * 2
    with pytest.raises(tenon.error.InvalidError, match="expected float32 .samples, 2."):
        tenon.infer(pair, tenon.parameters.create(pair), {"y": column})


def test_sequences_and_sparse_vectors_as_columns():
    rows = data_type.dense_vector_sequence(2)
    q = tenon.layer.data("q", rows)
    parameters = tenon.parameters.create(q)
    given = tenon.Ragged(np.arange(6.0).reshape(3, 2), [0, 2, 3])  # float64
    for each in ({"q": given}, tenon.reader.arrays({"q": given}), {"q": list(given)}):
        assert [row.tolist() for row in tenon.infer(q, parameters, each)] == [[[0, 1], [2, 3]], [[4, 5]]]
    for each in (tenon.reader.arrays({"q": tenon.Ragged(np.ones((2, 2)), [0, 5])}),
                 {"q": tenon.Ragged(np.ones((2, 2)), [0, 5])}, {"q": tenon.Ragged(np.ones((2, 3)), [0, 2])},
                 tenon.reader.arrays({"q": tenon.Sparse(4, [0, 9], [1])})):  # fmt: skip
        with pytest.raises(tenon.error.InvalidError, match='"q"'):
            tenon.infer(q, parameters, each)
    for wrong in (lambda: tenon.Sparse(4, [0, 1], [1.5]), lambda: tenon.Sparse(4, [0, 1], [1], ["a"]),
                  lambda: tenon.Ragged(np.ones(2), [0, 0.5])):  # fmt: skip
        with pytest.raises(tenon.error.InvalidError, match="the array .* of tenon"):
            wrong()


def test_arguments_out_of_range():
    assert data_type.dense_vector(1, dtype=np.float32) == data_type.dense_vector(1)
    x = tenon.layer.data("x", data_type.dense_vector(1))
    with pytest.raises(tenon.error.InvalidError, match="batch_size is 0"):
        tenon.infer(x * 2, tenon.parameters.create(x * 2), [[1.0]], batch_size=0)
    with pytest.raises(tenon.error.InvalidError, match="passes is -1"):
        tenon.reader.arrays({"x": [1.0]}).read(passes=-1)
    for wrong in (lambda: data_type.dense_vector(-1), lambda: data_type.dense_vector(2.5),
                  lambda: data_type.dense_vector(2, dtype="float128"), lambda: data_type.dense_vector(2, dtype="text"),
                  lambda: data_type.integer_value(0), lambda: data_type.integer_value(-1)):  # fmt: skip
        with pytest.raises(tenon.error.InvalidError):
            wrong()
    with pytest.raises(tenon.error.InvalidError, match='column "x" is one number'):
        tenon.reader.arrays({"x": 5}).types()
    with pytest.raises(tenon.error.InvalidError, match='column "x" has texts; expected numbers'):
        tenon.reader.arrays({"x": ["a"]}).types()


def test_arrays_of_different_length_are_refused():
    with pytest.raises(tenon.error.InvalidError, match="'a': 2, 'b': 3"):
        list(tenon.reader.arrays({"a": [1, 2], "b": [1, 2, 3]}))


def test_a_split_divides_the_samples():
    reader = tenon.reader.arrays({"n": np.arange(20)})
    train, test = reader.split(0.25, seed=3)
    assert len(values(test)) == 5
    assert sorted(values(train) + values(test)) == list(range(20))
    assert values(reader.split(0.25, seed=3)[1]) == values(test) != values(reader.split(0.25, seed=4)[1])
    with pytest.raises(tenon.error.InvalidError, match="fraction is 1.5; expected a number between 0 and 1"):
        values(reader.split(1.5)[0])


def test_images_are_augmented():
    pixels = np.arange(1, 1 + 6 * 2 * 4 * 3, dtype=np.uint8).reshape(6, 2, 4, 3)
    reader = tenon.reader.arrays({"image": pixels, "n": np.arange(6)})
    flipped = [sample["image"] for sample in reader.augment("image", flip=True, seed=2).samples()]
    mirrored = [bool((after == before[:, ::-1]).all()) for after, before in zip(flipped, pixels, strict=True)]
    assert set(mirrored) == {False, True}
    assert all(kept or (after == before).all() for kept, after, before in zip(mirrored, flipped, pixels, strict=True))
    centre = reader.augment("image", crop=(2, 2), centre=True)
    assert centre.types()["image"].shape == (2, 2, 3)
    assert all((s["image"] == pixels[s["n"]][:, 1:3]).all() for s in centre.samples())
    with pytest.raises(tenon.error.InvalidError, match="a crop of 9 x 4 pixels"):
        reader.augment("image", crop=(9, 4)).types()
    with pytest.raises(tenon.error.InvalidError, match="layout 'nchw'; expected one of channels_last, channels_first"):
        reader.augment("image", layout="nchw")


def test_a_data_layer_with_channels_first():
    image = tenon.layer.data("image", data_type.dense_array((3, 2, 4), layout="channels_first"))
    out = image * 1.0
    parameters = tenon.parameters.create(out)
    given = np.arange(2 * 3 * 2 * 4, dtype=np.float32).reshape(2, 3, 2, 4)
    expected = np.moveaxis(given, 1, 3)
    for feeds in (given, np.asfortranarray(given)):
        np.testing.assert_array_equal(tenon.infer(out, parameters, {"image": feeds}), expected)
    np.testing.assert_array_equal(tenon.infer(out, parameters, tenon.reader.arrays({"image": given})), expected)
    with pytest.raises(tenon.error.InvalidError, match="image"):
        tenon.infer(out, parameters, {"image": expected})
