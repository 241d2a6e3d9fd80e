"""F18: arrays as pandas and NumPy write them. Each case is a line of docs/reports.md. SPDX-License-Identifier: Apache-2.0"""

import io

import numpy as np
import pytest

RANDOM = np.random.default_rng(5)


def saved(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def read(scratch, array, **more):
    scratch.write("x.npy", saved(array))
    return np.asarray(scratch.fed({"type": "npy", "files": ["x.npy"], **more}, ["x"])["x"])


@pytest.mark.parametrize("shape", [(7, 3), (5, 2, 4), (4, 3, 2, 2), (6, 1), (1, 9)])
def test_shapes(scratch, shape):
    """Fortran order of 2 to 4 dimensions, and of dimensions of one"""
    array = np.asfortranarray(RANDOM.normal(size=shape).astype(np.float32))
    assert np.allclose(read(scratch, array).reshape(shape), array, rtol=1e-6)


@pytest.mark.parametrize("kind", [">f4", "<f8", ">i2", "u1", "?", "<f2", ">f8"])
def test_types(scratch, kind):
    """Fortran order of either byte order and every size, float16 and truth values included"""
    array = np.asfortranarray((RANDOM.normal(size=(6, 4)) * 5).astype(kind))
    assert np.allclose(read(scratch, array), array.astype(np.float64), rtol=1e-6)


def test_frames(scratch):
    """to_numpy() of frames of one type and of mixed types, a part of columns and a transposed frame"""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.5, 2, 3], "b": [4, 5, 6], "c": [True, False, True]})
    for part in (frame[["a"]], frame[["a", "b"]], frame[["b", "a"]].T, frame.astype(float)):
        values = part.to_numpy()
        assert np.allclose(read(scratch, values), values)


def test_archives(scratch):
    """Fortran order in a member of an archive, compressed, beside one in C order"""
    out = io.BytesIO()
    x, y = np.asfortranarray(RANDOM.normal(size=(5, 3))), RANDOM.normal(size=(5, 2))
    np.savez_compressed(out, x=x, y=y)
    scratch.write("both.npz", out.getvalue())
    fed = scratch.fed({"type": "npy", "files": ["both.npz"]}, ["x", "y"])
    assert np.allclose(fed["x"], x, rtol=1e-6) and np.allclose(fed["y"], y, rtol=1e-6)


def test_little_memory(scratch):
    """Samples that are gathered one by one, with most_kept_bytes = 0, shuffled or not"""
    array = np.asfortranarray(RANDOM.normal(size=(40, 3)))
    assert np.allclose(read(scratch, array, most_kept_bytes=0), array, rtol=1e-6)


def test_half_precision_is_printed(scratch):
    """tenon data show prints float16, also numbers below the normal ones"""
    scratch.write("x.npy", saved(np.array([[1.5, -2], [6e-8, 65504]], np.float16)))
    scratch.job({"type": "npy", "files": ["x.npy"]}, [("score fc x", {"size": 1}), ("cost sum_cost score", {})])
    shown = scratch.run("data", "show", "job.toml")
    assert "1.5" in shown and "-2" in shown and "65500" in shown, shown


def test_records_are_refused(scratch):
    """Records of several fields and objects are refused with their file"""
    for array in (np.zeros(3, [("a", "f4"), ("b", "i4")]), np.array([{}, 1], object)):
        out = io.BytesIO()
        np.save(out, array, allow_pickle=True)
        scratch.write("x.npy", out.getvalue())
        layers = [("score fc x", {"size": 1}), ("cost sum_cost score", {})]
        message = scratch.refusal({"type": "npy", "files": ["x.npy"]}, layers=layers, code=78)
        assert "x.npy: " in message, message
