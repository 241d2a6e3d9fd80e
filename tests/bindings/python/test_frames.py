"""Frames of pandas, tables of Arrow and matrices of SciPy as readers and feeds, memory shared with NumPy.

SPDX-License-Identifier: Apache-2.0
"""

import ctypes

import numpy as np
import pytest

import tenon
from sharing import Kept, check_sharing, doubled
from tenon import data_type


def test_frames_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2, 3], "y": [0, 1, 0]})
    types = tenon.reader.as_reader(frame).types()
    assert types["a"].dtype == "float32" and types["y"].dtype == "int64"
    assert [len(batch["y"]) for batch in tenon.batch(frame, 2)] == [2, 1]
    assert doubled(frame) == doubled({"a": frame["a"]}) == [2, 4, 6]
    with pytest.raises(tenon.error.InvalidError, match='column "s" has texts; expected numbers'):
        tenon.reader.arrays(pandas.DataFrame({"s": ["x", "y"]})).types()
    with pytest.raises(tenon.error.InvalidError, match='column "s" has texts; expected int64 .. below 3'):
        tenon.reader.arrays(pandas.DataFrame({"s": ["x", "y"]})).open({"s": data_type.integer_value(3)})


def test_columns_of_vectors_and_categories():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"v": [np.array([1.0, 2]), np.array([3.0, 4])], "t": [1.5, 2.5],
                              "c": pandas.Categorical(["red", "blue"], ["red", "green", "blue"])})  # fmt: skip
    reader = tenon.reader.as_reader(frame)
    types = reader.types()
    assert types["v"].shape == (2,) and types["c"].index_limit == 3
    batch = next(iter(reader.batch(2)))
    assert batch["v"].tolist() == [[1, 2], [3, 4]] and batch["c"].tolist() == [0, 2]
    assert reader.open().names() == [("c", ["red", "green", "blue"], 3)]
    y = tenon.layer.data("v", data_type.dense_vector(2)) * 2
    for fed in (frame, {"v": frame["v"]}):
        assert tenon.infer(y, tenon.parameters.create(y), fed).tolist() == [[2, 4], [6, 8]]
    target = tenon.layer.data("t", data_type.dense_vector(1)) * 2
    assert tenon.infer(target, tenon.parameters.create(target), frame[["t"]]).tolist() == [[3], [5]]
    untyped = tenon.layer.fc("t", size=1)
    tenon.parameters.create(untyped, reader=frame)
    assert tenon.infer(tenon.layer.data("t") * 2, tenon.parameters.create(target), frame[["t"]]).tolist() == [3, 5]
    with pytest.raises(tenon.error.BadDataError, match='sample 1: slot "c" has no category'):
        tenon.reader.as_reader(pandas.DataFrame({"c": pandas.Categorical(["red", None])})).types()
    with pytest.raises(tenon.error.BadDataError, match='sample 1: slot "v" is float32 .2.'):
        list(tenon.reader.as_reader(pandas.DataFrame({"v": [np.ones(2), np.ones(3)]})))


def test_categories_are_utf8():
    pandas = pytest.importorskip("pandas")

    def names(*categories):
        column = pandas.Categorical(pandas.Index(categories, dtype=object))  # pandas' own texts are checked by Arrow
        return tenon.reader.as_reader(pandas.DataFrame({"c": column})).open().names()[0][1]

    assert names(b"caf\xc3\xa9", b"tea") == ["café", "tea"]
    assert names("café", "tea") == ["café", "tea"]
    for damaged in (b"caf\xe9", "caf\udce9"):
        with pytest.raises(tenon.error.BadDataError, match='slot "c": the category .* is not UTF-8; .*latin1'):
            names(damaged)


def test_names_that_a_model_cannot_hold():
    pandas = pytest.importorskip("pandas")
    count = 65537
    frame = pandas.DataFrame({"c": pandas.Categorical([f"w{number:05}" for number in range(count)])})
    layer = tenon.layer.embedding(tenon.layer.data("c", data_type.integer_value(count)), vocabulary=count, size=1)
    cost = tenon.layer.square_error(layer, layer)
    parameters = tenon.parameters.create(cost)
    with pytest.warns(UserWarning, match='the 65537 names of "c" are not stored with the model'):
        tenon.train(cost, parameters, frame, batch_size=65537)


def test_columns_of_one_name_are_refused():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(tenon.error.InvalidError, match='2 columns are called "a"'):
        tenon.reader.as_reader(pandas.DataFrame([[1, 2]], columns=["a", "a"])).types()


def test_columns_of_integers_with_missing_ones_say_so():
    pandas = pytest.importorskip("pandas")
    layer = tenon.layer.embedding(tenon.layer.data("y", data_type.integer_value(3)), vocabulary=3, size=2)
    parameters = tenon.parameters.create(layer)
    with pytest.raises(tenon.error.InvalidError, match='slot "y" has floats, some of which are missing'):
        tenon.infer(layer, parameters, pandas.DataFrame({"y": [0, None]}))
    with pytest.raises(tenon.error.Error, match='slot "y".*(missing|NAType)'):
        tenon.infer(layer, parameters, pandas.DataFrame({"y": pandas.array([0, None], "Int64")}))


def test_tables_of_arrow():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"a": [1.0, 2, 3], "y": [0, 1, 0]})
    assert sorted(tenon.reader.as_reader(table).types()) == ["a", "y"]
    assert doubled(table) == doubled({"a": table["a"]}) == [2, 4, 6]


def test_columns_of_vectors_and_categories_of_arrow():
    pyarrow = pytest.importorskip("pyarrow")
    vectors = pyarrow.array([[1.0, 2], [3.0, 4]], pyarrow.list_(pyarrow.float32(), 2))
    table = pyarrow.table({"v": vectors, "c": pyarrow.array(["a", "b"]).dictionary_encode()})
    batch = next(iter(tenon.reader.as_reader(table).batch(2)))
    assert batch["v"].tolist() == [[1, 2], [3, 4]] and batch["c"].tolist() == [0, 1]
    with pytest.raises(tenon.error.InvalidError, match='2 columns are called "a"'):
        tenon.reader.as_reader(pyarrow.table([vectors, vectors], names=["a", "a"])).types()


def test_damaged_sparse_matrices_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    x = tenon.layer.data("x", data_type.sparse_float_vector(4))
    layer = tenon.layer.fc(x, size=2)
    parameters = tenon.parameters.create(layer)
    for place, value in ((1, 10**6), (1, -5), (0, 1), (2, 3)):
        matrix = sparse.csr_matrix(np.ones((2, 4), np.float32))
        matrix.indptr[place] = value
        for given in (matrix, {"x": matrix}, tenon.reader.arrays({"x": matrix})):
            with pytest.raises(tenon.error.InvalidError, match='"x"'):
                tenon.infer(layer, parameters, given)
        with pytest.raises(tenon.error.InvalidError):
            tenon.infer(layer, parameters, {"x": tenon.Sparse(4, matrix.indptr, matrix.indices, matrix.data)})
    for form in ("csr", "csc", "coo"):
        matrix = sparse.csr_matrix(np.ones((2, 4), np.float32)).asformat(form)
        (matrix.col if form == "coo" else matrix.indices)[0] = 9
        with pytest.raises(tenon.error.InvalidError, match='"x"'):
            tenon.infer(layer, parameters, matrix)


def test_sparse_vectors_alone_and_twice():
    """infer takes Sparse as the only input, and the caller's matrix stays as it is."""
    sparse = pytest.importorskip("scipy.sparse")
    x = tenon.layer.data("x", data_type.sparse_float_vector(4))
    layer = tenon.layer.fc(x, size=2, name="alone")
    parameters = tenon.parameters.create(layer)
    twice = sparse.csr_matrix((np.ones(2, np.float32), [1, 1], [0, 2]), (1, 4))
    expected = 2 * parameters["alone.weight"][1:2] + parameters["alone.bias"]
    np.testing.assert_allclose(tenon.infer(layer, parameters, twice), expected, rtol=1e-6)
    assert twice.nnz == 2
    given = tenon.Sparse(4, [0, 1], [1], [2.0])
    np.testing.assert_allclose(tenon.infer(layer, parameters, given), expected, rtol=1e-6)


def test_matrices_of_scipy():
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.random(6, 10, 0.3, format="coo", random_state=0)
    x = tenon.layer.data("x", data_type.sparse_float_vector(10))
    layer = tenon.layer.fc(x, size=2, name="f")
    parameters = tenon.parameters.create(layer)
    expected = matrix.toarray() @ parameters["f.weight"] + parameters["f.bias"]
    np.testing.assert_allclose(tenon.infer(layer, parameters, {"x": matrix}), expected, atol=1e-6)
    reader = tenon.reader.arrays({"x": matrix})
    np.testing.assert_allclose(tenon.infer(layer, parameters, reader), expected, atol=1e-6)
    with pytest.raises(tenon.error.InvalidError, match="has vectors of 11 numbers; expected 10"):
        tenon.infer(layer, parameters, {"x": sparse.random(6, 11, 0.3)})


def capsule_name(capsule):
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return name(capsule).decode()


def test_capsules_have_the_version_that_is_asked_for():
    layer = tenon.layer.fc(tenon.layer.data("x", data_type.dense_vector(2)), size=1, name="f")
    shared = tenon.parameters.create(layer).dlpack("f.bias")
    assert capsule_name(shared.__dlpack__()) == capsule_name(shared.__dlpack__(max_version=(0, 1))) == "dltensor"
    assert capsule_name(shared.__dlpack__(max_version=(1, 0), dl_device=(1, 0))) == "dltensor_versioned"
    with pytest.raises(BufferError, match="CPU"):
        shared.__dlpack__(dl_device=(2, 0))


def test_memory_is_shared_with_numpy():
    def from_dlpack(value):
        array = np.from_dlpack(value)
        if array.flags.writeable or np.lib.NumpyVersion(np.__version__) >= "2.1.0":
            return Kept(array, array)
        # Older ones make all arrays of tensors read-only; the memory itself may be written.
        pointer = ctypes.cast(array.ctypes.data, ctypes.POINTER(ctypes.c_float))
        return Kept(np.ctypeslib.as_array(pointer, array.shape), array)

    check_sharing(from_dlpack)
    layer = tenon.layer.fc(tenon.layer.data("x", data_type.dense_vector(2)), size=1, name="f")
    parameters = tenon.parameters.create(layer)
    assert not np.from_dlpack(parameters.dlpack("f.bias")).flags.writeable


def test_arrays_of_any_layout():
    """Steps and orders of axes need no copy by the caller."""
    wide = np.arange(24, dtype=np.float32).reshape(4, 6)
    x = tenon.layer.data("x", data_type.dense_vector(3))
    layer = x * 2
    parameters = tenon.parameters.create(layer)
    for given in (wide[:, ::2], wide[::-1, :3], np.asfortranarray(wide[:, :3]), wide[:, :3].astype(">f4"),
                  wide[:, :3].astype(np.float64), wide[:, :3].tolist()):  # fmt: skip
        np.testing.assert_array_equal(tenon.infer(layer, parameters, {"x": given}), np.asarray(given) * 2)
