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
    with pytest.raises(tenon.error.InvalidError, match='column "s" has elements of type'):
        tenon.reader.arrays(pandas.DataFrame({"s": ["x", "y"]})).types()


def test_tables_of_arrow():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"a": [1.0, 2, 3], "y": [0, 1, 0]})
    assert sorted(tenon.reader.as_reader(table).types()) == ["a", "y"]
    assert doubled(table) == doubled({"a": table["a"]}) == [2, 4, 6]


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
    with pytest.raises(tenon.error.InvalidError, match="has 11 columns; expected 10"):
        tenon.infer(layer, parameters, {"x": sparse.random(6, 11, 0.3)})


def test_memory_is_shared_with_numpy():
    def from_dlpack(value):
        # NumPy makes all arrays of tensors without a version read-only; the memory itself may be written.
        array = np.from_dlpack(value)
        pointer = ctypes.cast(array.ctypes.data, ctypes.POINTER(ctypes.c_float))
        view = np.ctypeslib.as_array(pointer, array.shape)
        return Kept(view, array)

    check_sharing(from_dlpack)


def test_arrays_of_any_layout():
    """Steps and orders of axes need no copy by the caller."""
    wide = np.arange(24, dtype=np.float32).reshape(4, 6)
    x = tenon.layer.data("x", data_type.dense_vector(3))
    layer = x * 2
    parameters = tenon.parameters.create(layer)
    for given in (wide[:, ::2], wide[::-1, :3], np.asfortranarray(wide[:, :3]), wide[:, :3].astype(">f4"),
                  wide[:, :3].astype(np.float64), wide[:, :3].tolist()):  # fmt: skip
        np.testing.assert_array_equal(tenon.infer(layer, parameters, {"x": given}), np.asarray(given) * 2)
