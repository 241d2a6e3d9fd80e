"""Tables by the methods of Arrow, in and out: of an exporter of the tests alone, and of packages that have them.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import gc

import numpy as np
import pytest

import tenon
from arrow_export import (
    Exported,
    ExportedOnce,
    Node,
    bools,
    categories,
    lists,
    maps,
    numbers,
    struct,
    texts,
    vectors,
    viewed,
)
from tenon import data_type
from tenon._base.arrays import of_column
from tenon._base.arrow import read, values_of

FLOATS = ["f2", "f4", "f8"]
DAY, EPOCH = (np.datetime64(day, "us").item() for day in ("2020-01-02", "1970-01-01"))
INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


def column(*chunks, type=None):
    return of_column(Exported(*chunks), type, 'slot "x"', "x")


def named(*chunks):
    return values_of(Exported(*chunks), 'slot "x"', "x")


@pytest.fixture(autouse=True)
def own_host():
    before = tenon.host()
    tenon.use(tenon.Host())
    yield
    tenon.use(before)


def doubled(type=None):
    """A model that doubles the data layer x."""
    layer = tenon.layer.data("x", type or data_type.dense_array([])) * 2
    return layer, tenon.parameters.create(layer)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_numbers_of_one_chunk_are_not_copied(dtype):
    node = numbers([0, 1, 2, 100], dtype)
    exported = Exported(node)
    found = of_column(exported, None, "it", "x")
    assert found.dtype == dtype and found.tolist() == [0, 1, 2, 100] and not found.flags.writeable
    assert found.ctypes.data == node.buffers[1].ctypes.data
    assert column(node.cut(1, 3)).ctypes.data == node.buffers[1].ctypes.data + node.buffers[1].itemsize
    assert column(node.cut(0, 2), node.cut(2, 2), node.cut(2, 4)).tolist() == [0, 1, 2, 100]
    assert exported.alive == 1
    del found
    assert exported.alive == 0 and exported.released == 1
    layer, parameters = doubled()
    assert tenon.infer(layer, parameters, Exported(struct(x=node))).tolist() == [0, 2, 4, 200]
    assert tenon.infer(layer, parameters, ExportedOnce(node)).tolist() == [0, 2, 4, 200]


@pytest.mark.parametrize("start, stop", [(0, 20), (3, 15), (8, 9), (7, 7), (16, 20)])
def test_bools_are_bits(start, stop):
    values = [number % 3 == 0 for number in range(20)]
    assert column(bools(values).cut(start, stop)).tolist() == values[start:stop]


@pytest.mark.parametrize("names", [["b", "a", "long enough for no view"], [b"b", b"a", "é".encode()]])
def test_dictionaries_are_categories(names):
    known = [each.decode() if isinstance(each, bytes) else each for each in names]
    for dictionary in (texts(names), texts(names, large=True), texts(names, binary=True)):
        for dtype in INTEGERS:
            codes, found = named(categories([2, 0, 2, 1], dictionary, dtype).cut(1, 4))
            assert codes.tolist() == [0, 2, 1] and found == known
    codes, found = named(categories([2, 0], viewed(known)))
    assert codes.tolist() == [2, 0] and found == known
    chunks = categories([0, 1], ["b", "a"]), categories([1, 0], ["c", "b"])
    assert named(*chunks)[0].tolist() == [0, 1, 0, 2] and named(*chunks)[1] == ["b", "a", "c"]
    assert named(categories([1, 0], numbers([7, -3], "i8")))[1] == ["7", "-3"]
    assert named(categories([1], Node("tdD", 2, [None, np.array([0, 18262], np.int32)])))[1] == ["1970-01-01", "2020-01-01"]
    assert named(categories([0], texts(["x", "y", "z"]).cut(1, 3)))[1] == ["y", "z"]


def test_lists_are_vectors_sequences_and_sparse_vectors():
    rows = numbers(range(12), "f4")
    assert column(vectors(3, rows).cut(1, 3)).tolist() == [[3, 4, 5], [6, 7, 8]]
    assert column(vectors(2, vectors(3, rows)).cut(1, 2)).tolist() == [[[6, 7, 8], [9, 10, 11]]]
    assert column(vectors(6, rows), type=data_type.dense_array([2, 3])).shape == (2, 2, 3)
    assert column(lists([4, 4, 4], rows).cut(1, 3), type=data_type.dense_vector(4)).tolist() == [[4, 5, 6, 7], [8, 9, 10, 11]]
    words, inner = data_type.integer_value_sequence(20), data_type.integer_value_sub_sequence(20)
    for large in (False, True):
        found = column(lists([2, 0, 3], numbers(range(5), "i8"), large).cut(1, 3), type=words)
        assert [each.tolist() for each in found] == [[], [2, 3, 4]]
        levels = lists([1, 2], lists([2, 0, 3], numbers(range(5), "i4"), large), large)
        found = column(levels, type=inner)
        assert [[row.tolist() for row in each] for each in found] == [[[0, 1]], [[], [2, 3, 4]]]
    found = column(lists([1, 2], vectors(2, numbers(range(6), "f4"))), type=data_type.dense_vector_sequence(2))
    assert [each.tolist() for each in found] == [[[0, 1]], [[2, 3], [4, 5]]]
    found = column(lists([1, 2], lists([2, 2, 2], numbers(range(6), "f4"))), type=data_type.dense_vector_sequence(2))
    assert [each.tolist() for each in found] == [[[0, 1]], [[2, 3], [4, 5]]]
    binary = column(lists([2, 0, 1], numbers([0, 3, 2], "i8")), type=data_type.sparse_binary_vector(4))
    assert binary.toarray().tolist() == [[1, 0, 0, 1], [0] * 4, [0, 0, 1, 0]]
    pairs = maps([2, 1], numbers([0, 3, 2], "i4"), numbers([5, 6, 7], "f8"))
    assert column(pairs, type=data_type.sparse_float_vector(4)).toarray().tolist() == [[5, 0, 0, 6], [0, 0, 7, 0]]
    assert column(vectors(2, numbers([1, 2, 3, 4], "i8")), type=words).offsets.tolist() == [0, 2, 4]
    split = lists([2, 1], numbers([1, 2, 3], "i8"))
    assert [each.tolist() for each in column(split, split.cut(1, 2), type=words)] == [[1, 2], [3], [3]]


def nulls():
    rows = numbers(range(6), "f4")
    yield "numbers", [rows.with_nulls(4)], 4
    yield "cut", [rows.with_nulls(4).cut(2, 6)], 2
    yield "second chunk", [rows, rows.cut(2, 4), rows.with_nulls(1, 3)], 9
    yield "bools", [bools([True] * 9).with_nulls(8)], 8
    yield "categories", [categories([0, 1, 0], ["a", "b"]).with_nulls(1)], 1
    yield "a category", [categories([0, 0, 1], texts(["a", "b"]).with_nulls(1))], 2
    yield "vectors", [vectors(2, rows).with_nulls(2)], 2
    yield "numbers of vectors", [vectors(2, rows.with_nulls(3))], 1
    yield "lists", [lists([1, 2, 3], rows).with_nulls(1)], 1
    yield "numbers of lists", [lists([1, 0, 2, 3], rows.with_nulls(4))], 3
    yield "numbers of cut lists", [lists([1, 2, 3], rows.with_nulls(4)).cut(1, 3)], 1
    yield "lists of lists", [lists([1, 2], lists([1, 2, 3], rows).with_nulls(2))], 1
    yield "nothing but", [Node("n", 2, [])], 0
    yield "numbers of maps", [maps([1, 2], numbers([0, 1, 2], "i4"), numbers([1, 2, 3], "f4").with_nulls(2))], 1


@pytest.mark.parametrize("chunks, row", [pytest.param(*each[1:], id=each[0]) for each in nulls()])
def test_missing_values_name_column_and_sample(chunks, row):
    with pytest.raises(tenon.error.BadDataError, match=f'sample {row}: slot "x" has a missing value'):
        named(*chunks)


def test_nulls_outside_of_the_rows_are_none():
    rows = numbers(range(6), "f4").with_nulls(0, 5)
    assert column(rows.cut(1, 5)).tolist() == [1, 2, 3, 4]
    assert column(vectors(2, rows).cut(1, 2)).tolist() == [[2, 3]]
    assert column(lists([1, 2, 2, 1], rows).cut(1, 3), type=data_type.dense_vector(2)).tolist() == [[1, 2], [3, 4]]


FOREIGN = [(texts(["a"]), "texts"), (viewed(["a"]), "texts"), (texts([b"\xff"], binary=True), "bytes"),
           (Node("tsu:UTC", 1, [None, np.zeros(1, "i8")]), "times"), (Node("d:9,2", 1, [None, np.zeros(2, "i8")]), "decimals"),
           (lists([1], struct(a=numbers([1], "i4"))), "structs"), (Node("w:4", 1, [None, np.zeros(4, "u1")]), "bytes"),
           (Node("+vl", 1, [None, np.zeros(1, "i4"), np.zeros(1, "i4")], [numbers([1], "i4")]), "list views"),
           (Node("+ud:0", 1, [np.zeros(1, "i1"), np.zeros(1, "i4")], [numbers([1], "i4")]), "unions"),
           (Node("+r", 1, [], [numbers([1], "i4"), numbers([1], "i4")]), "run-end encoded"),
           (maps([1], numbers([1], "i4"), numbers([1], "f4")), "maps"), (lists([1], texts(["a"])), "texts"),
           (lists([1], categories([0], ["a"])), "categories in lists"),
           (lists([1], lists([1], lists([1], numbers([1], "i4")))), "more than 2 levels"),
           (vectors(1, lists([1], numbers([1], "i4"))), "lists in lists of one size")]  # fmt: skip


@pytest.mark.parametrize("node, what", [pytest.param(*each, id=each[1] + each[0].format) for each in FOREIGN])
def test_elements_that_are_no_numbers_are_refused_where_they_are_needed(node, what):
    layer, parameters = doubled()
    used = numbers([1.5], "f4")
    good = Exported(struct(x=used, other=node))
    tenon.train(tenon.layer.square_error(*[tenon.layer.reshape(layer, shape=[1])] * 2), parameters, good)
    assert tenon.infer(layer, parameters, good).tolist() == [3]
    assert tenon.infer(layer, parameters, {"x": Exported(used), "other": Exported(node)}).tolist() == [3]
    with pytest.raises(tenon.error.InvalidError, match=f'"x" has .*{what}'):
        tenon.infer(layer, parameters, Exported(struct(x=node)))


def damaged():
    rows = numbers(range(4), "f4")
    yield "offsets that fall", lists([2, -1, 3], rows), "offsets"
    yield "offsets beyond", lists([2, 30], rows), "offsets outside"
    yield "vectors beyond", Node("+w:3", 4, [None], [rows]), "offsets outside"
    yield "category beyond", categories([0, 2], ["a", "b"]), "dictionary lacks"
    yield "category below", categories([0, -1], ["a", "b"]), "dictionary lacks"
    yield "no buffers", Node("f", 4, []), "column of 0 buffers; expected 2"
    yield "one buffer too many", Node("f", 4, [None, np.zeros(4, "f4"), None]), "column of 3 buffers; expected 2"
    yield "no values", Node("f", 4, [None, None]), "lacks a buffer"
    yield "texts that fall", categories([0], Node("u", 1, [None, np.array([3, 1], "i4"), np.zeros(9, "u1")])), "fall"
    yield "negative length", Node("f", -1, [None, None]), "not of its schema"
    yield "negative offset", Node("f", 1, [None, None], offset=-1), "not of its schema"
    views = Node("vu", 1, [None, np.array([20, 0, 3, 0], "i4"), np.zeros(1, "i8")])
    yield "views beyond", categories([0], views), "views outside"


@pytest.mark.parametrize("node, what", [pytest.param(*each[1:], id=each[0]) for each in damaged()])
def test_damaged_tables_are_refused(node, what):
    with pytest.raises(tenon.error.BadDataError, match=what):
        named(node)


def test_streams_that_fail_say_why():
    rows = struct(x=numbers([1, 2], "f4"))
    with pytest.raises(tenon.error.BadDataError, match="the disk is gone"):
        tenon.reader.as_reader(failing := Exported(rows, rows, fail_at=1))
    assert failing.alive == 0 and failing.released == 1
    other = Exported(rows, struct(x=numbers([1], "f4"), y=numbers([1], "f4")))
    with pytest.raises(tenon.error.BadDataError, match="not of its schema"):
        read(other)
    assert other.alive == 0
    with pytest.raises(tenon.error.BadDataError, match="shorter than the table"):
        read(Exported(Node("+s", 3, [None], [numbers([1], "f4").called("x")])))
    with pytest.raises(tenon.error.BadDataError, match="row 1 of the table of Arrow is missing"):
        read(Exported(rows.with_nulls(1)))
    with pytest.raises(tenon.error.InvalidError, match='2 columns are called "x"'):
        read(Exported(struct(numbers([1], "f4").called("x"), numbers([1], "f4").called("x"))))
    deep = numbers([1], "f4")
    for _ in range(40):
        deep = lists([1], deep)
    with pytest.raises(tenon.error.BadDataError, match="more than 32 levels"):
        read(Exported(deep))
    with pytest.raises(TypeError, match="not one column"):
        tenon.reader.as_reader(Exported(numbers([1], "f4")))
    exported = Exported(rows)
    taken = exported.__arrow_c_stream__()
    exported.__arrow_c_stream__ = lambda: taken
    read(exported)
    with pytest.raises(tenon.error.BadDataError, match="taken before"):
        read(exported)


class Classes:
    """A model of a category and a vector, with named classes."""

    def __init__(self):
        kind, x = tenon.layer.data("kind", data_type.integer_value(2)), tenon.layer.data("x", data_type.dense_vector(2))
        embedded = tenon.layer.embedding(kind, vocabulary=2, size=2, name="table")
        self.score = tenon.layer.fc(tenon.layer.add(x, embedded), size=3, name="score")
        self.cost = tenon.layer.cross_entropy(self.score, tenon.layer.data("y", data_type.integer_value(3)), from_logits=True)
        self.parameters = tenon.parameters.create(self.cost)


def table(kinds=("old", "new"), labels=("a", "b", "c")):
    chunks = []
    for start in (0, 2):
        codes = [list(kinds).index(each) for each in ("old", "new", "new", "old")[start : start + 2]]
        chunks.append(struct(extra=texts(["?"] * 2), kind=categories(codes, kinds, "i1"),
                             x=vectors(2, numbers(np.arange(8)[2 * start : 2 * start + 4], "f8")),
                             y=categories([labels.index("abca"[start + i]) for i in range(2)], labels)))  # fmt: skip
    return chunks


def test_a_stream_of_one_pass_trains_and_categories_keep_the_names_of_the_model():
    model = Classes()
    once = Exported(*table(), passes=1)
    tenon.train(model.cost, model.parameters, once, passes=3, batch_size=3)
    assert model.parameters.names() == {"kind": ["old", "new"], "y": ["a", "b", "c"]}
    gc.collect()
    assert once.alive == 0 and once.released == 2
    turned = Exported(*table(("new", "old"), ("c", "a", "b")))
    expected = tenon.infer(model.score, model.parameters, Exported(*table()))
    assert np.array_equal(tenon.infer(model.score, model.parameters, turned), expected)
    assert np.array_equal(tenon.infer(model.score, model.parameters, tenon.batch(turned, 3)), expected)
    costs = [tenon.test(model.cost, model.parameters, each).cost for each in (Exported(*table()), turned)]
    assert costs[0] == costs[1]
    unknown = Exported(*table(("old", "new", "used")))
    assert np.array_equal(tenon.infer(model.score, model.parameters, unknown), expected)  # no row has it
    strange = struct(kind=categories([0, 1], ["new", "used"]), x=vectors(2, numbers(range(4), "f4")))
    for given in (Exported(strange), tenon.batch(Exported(strange), 1)):
        with pytest.raises(tenon.error.BadDataError, match='sample 1: .*"kind" has the category "used".*it has old, new'):
            tenon.infer(model.score, model.parameters, given)
    text = {"kind": ["old", "new", "new", "old"], "x": np.arange(8).reshape(4, 2)}
    assert np.array_equal(tenon.infer(model.score, model.parameters, text), expected)
    as_texts = Exported(struct(kind=texts(text["kind"]), x=vectors(2, numbers(range(8), "i2"))))
    assert np.array_equal(tenon.infer(model.score, model.parameters, as_texts), expected)
    machine = tenon.gradient_machine.new(model.score, model.parameters, training=False)
    assert np.array_equal(machine.forward(Exported(struct(kind=numbers([0, 1, 1, 0], "u4"), x=as_texts.chunks[0].children[1]))),
                          expected)  # fmt: skip


def test_a_table_of_numbers_is_a_vector():
    layer, parameters = doubled(data_type.dense_vector(3))
    flags = bools([True, False, True, True]).cut(1, 4)
    parts = struct(b=numbers([5, 6, 7], "i1"), a=numbers([0.5, 1.5, 2.5], "f8"), c=flags)
    for given in (Exported(parts), Exported(parts.cut(0, 1), parts.cut(1, 3)), ExportedOnce(parts)):
        expected = [[10, 1, 0], [12, 3, 2], [14, 5, 2]]  # in the order of the table
        assert tenon.infer(layer, parameters, {"x": given}).tolist() == expected
        assert tenon.infer(layer, parameters, tenon.batch({"x": given}, 2)).tolist() == expected
    few = struct(a=numbers([1.0], "f4"), b=numbers([2], "f4"))
    for given, what in ((few, r"expected float32 \[samples, 3\], got .*\[1, 2\]"), (struct(a=texts(["a"])), '"a", has texts'),
                        (struct(a=categories([0], ["z"])), "not all of numbers"), (struct(), "not all of numbers"),
                        (struct(a=vectors(1, numbers([1], "f4"))), "not all of numbers"),
                        (struct(a=numbers([1], "f4").with_nulls(0)), 'sample 0: .*"a", has a missing value')):  # fmt: skip
        with pytest.raises(tenon.error.Error, match=what):
            tenon.infer(layer, parameters, {"x": Exported(given)})


def test_nan_is_refused_as_everywhere():
    layer, parameters = doubled()
    given = Exported(struct(x=numbers([1, np.nan], "f4")))
    for data in (given, tenon.batch(given, 2)):
        with pytest.raises(tenon.error.BadDataError, match="nan"):
            tenon.infer(layer, parameters, data)
        assert np.isnan(tenon.infer(layer, parameters, data, nan="allow")).tolist() == [False, True]


def out():
    yield "numbers", np.array([1.5, 2, 3]), [1.5, 2, 3]
    yield "half", np.array([1, 2, 3], np.float16), [1, 2, 3]
    yield "bytes swapped", np.array([1, 2, 3], ">i4"), [1, 2, 3]
    yield "strided", np.arange(6, dtype=np.uint64)[::2], [0, 2, 4]
    yield "bools", np.arange(3) == 1, [False, True, False]
    yield "vectors", np.arange(6, dtype=np.int8).reshape(3, 2), [[0, 1], [2, 3], [4, 5]]
    yield "images", np.arange(12.0).reshape(3, 2, 2), [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]
    yield "texts", ["é", "", "three"], ["é", "", "three"]
    yield "times", np.array(["2020-01-02", "NaT", "1970-01-01"], "M8[us]"), [DAY, None, EPOCH]
    yield "days", np.array(["2020-01-02"] * 3, "M8[D]"), [DAY] * 3
    yield "sequences", tenon.Ragged([1, 2, 3], [0, 2, 2, 3]), [[1, 2], [], [3]]
    yield "lists of lists", tenon.Ragged([1, 2, 3], [0, 1, 1, 2], [0, 2, 3]), [[[1, 2]], [], [[3]]]
    yield "sparse", tenon.Sparse(9, [0, 1, 1, 3], [4, 0, 8], [1.5, 2, 3]), [[(4, 1.5)], [], [(0, 2.0), (8, 3.0)]]


OUT = [pytest.param(*each[1:], id=each[0]) for each in out()]


@pytest.mark.parametrize("values, rows", OUT)
def test_tables_go_out_to_pyarrow(values, rows):
    pyarrow = pytest.importorskip("pyarrow")
    made = pyarrow.table(tenon.Table({"n": [1, 2, 3], "v": values}))
    made.validate(full=True)
    assert made.column_names == ["n", "v"] and made["v"].to_pylist() == rows
    assert made["n"].to_pylist() == [1, 2, 3]


@pytest.mark.parametrize("values, rows", OUT)
def test_tables_come_in_as_they_went_out(values, rows):
    read_again = read(tenon.Table({"v": values}))["v"]
    sparse = isinstance(values, tenon.Sparse)
    types = {1: data_type.integer_value_sequence(9), 2: data_type.integer_value_sub_sequence(9)}
    type = data_type.sparse_float_vector(9) if sparse else None
    if isinstance(values, tenon.Ragged):
        type = types[1 if values.inner is None else 2]
    if isinstance(values, list) or (isinstance(values, np.ndarray) and values.dtype.kind == "M"):
        return
    found = of_column(read_again, type, "it", "v")
    if sparse:
        assert np.array_equal(found.toarray(), values.toarray())
    elif type is not None:
        assert [np.asarray(each, object).tolist() for each in found] == [np.asarray(each, object).tolist() for each in values]
    else:
        assert found.tolist() == rows and found.dtype == values.dtype.newbyteorder("=")


def test_the_memory_of_a_table_is_lent():
    array = np.arange(4, dtype=np.float32)
    read_again = read(tenon.Table({"v": array}))["v"]
    found = of_column(read_again, None, "it", "v")
    assert found.ctypes.data == array.ctypes.data
    del read_again, array
    assert found.tolist() == [0, 1, 2, 3]
    unused = tenon.Table({"v": np.arange(3)})
    unused.__arrow_c_stream__(), unused.__arrow_c_schema__()  # capsules that nothing takes
    assert len(unused) == 3 and unused.names == ["v"] and unused["v"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("columns, what", [
    ({"a": [1, 2], "b": [1]}, "differ in length: {'a': 2, 'b': 1}"), ({"a": 1.5}, '"a" of the table is one value'),
    ({"a": np.array([1j])}, "complex128; expected numbers or texts"), ({"a": ["x", 1]}, "int 1 in row 1; expected texts"),
    ({"a": np.array([1], "m8[D]")}, "timedelta64"), ({"a": [object()]}, "object"), ({"a": [b"x"]}, "bytes|S1"),
])  # fmt: skip
def test_tables_refuse_what_has_no_form(columns, what):
    with pytest.raises(tenon.error.InvalidError, match=what):
        tenon.Table(columns)
    with pytest.raises(tenon.error.NotFoundError, match="did you mean"):
        tenon.Table({"score": [1]})["scores"]


@pytest.mark.parametrize("package", ["pyarrow", "polars", "duckdb"])
def test_packages_of_others(package):
    if package == "pyarrow":
        module = pytest.importorskip(package)
    else:
        module = pytest.importorskip(package, reason=f"no {package} on this machine")
    model = Classes()
    tenon.train(model.cost, model.parameters, Exported(*table()))
    expected = tenon.infer(model.score, model.parameters, Exported(*table()))
    columns = tenon.Table({"kind": ["old", "new", "new", "old"], "x": np.arange(8.0).reshape(4, 2), "id": [1, 2, 3, 4]})
    if package == "pyarrow":
        whole = module.table(columns)
        chunked = module.concat_tables([whole.slice(0, 1), whole.slice(1)])
        given = [whole, chunked, whole.to_reader(3), whole.to_batches()[0], whole.combine_chunks().to_struct_array(),
                 chunked.set_column(0, "kind", chunked["kind"].dictionary_encode())]  # fmt: skip
    elif package == "polars":
        whole = module.DataFrame(columns)
        strange = module.Series("o", [object()] * 4, dtype=module.Object)
        given = [whole, whole.with_columns(module.col("kind").cast(module.Categorical)), whole.with_columns(strange)]
    else:
        whole = columns
        given = [module.sql("select kind, x, id from whole order by id"), module.sql("select * from whole").to_arrow_table()]
    for each in given:
        assert np.array_equal(tenon.infer(model.score, model.parameters, each), expected)
    assert tenon.test(model.cost, model.parameters, Exported(*table())).samples == 4
