"""F15: models from memory. Each case is a line of docs/reports.md. SPDX-License-Identifier: Apache-2.0"""

import gzip
import io
import mmap
import zipfile

import numpy as np
import pytest

import tenon

layer, data_type = tenon.layer, tenon.data_type


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.safetensors"
    score = layer.fc(layer.data("x", data_type.dense_vector(3)), size=2, name="score")
    parameters = tenon.parameters.create(score)
    parameters.save(str(path), score)
    return path, tenon.infer(score, parameters, {"x": np.eye(3)})


def same(source, answers):
    read = tenon.load(source)
    assert np.array_equal(tenon.infer(read.outputs[0], read, {"x": np.eye(3)}), answers)


def test_bytes_of_an_archive(model):
    """The bytes of a member of a ZIP archive, or of a gzip stream, inflated by the application"""
    path, answers = model
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        out.write(path, "inner/m.safetensors")
    with zipfile.ZipFile(archive) as again:
        same(again.read("inner/m.safetensors"), answers)
    same(gzip.decompress(gzip.compress(path.read_bytes())), answers)


def test_buffers(model):
    """A bytearray, a part of a memoryview, an array of NumPy and a mapped file"""
    path, answers = model
    data = path.read_bytes()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for source in (bytearray(data), memoryview(b"xx" + data + b"y")[2:-1], np.frombuffer(data, np.uint8), mapped):
            same(source, answers)


def test_open_files(model):
    """An open file, from where it is"""
    path, answers = model
    with path.open("rb") as file:
        same(file, answers)
    stream = io.BytesIO(b"header" + path.read_bytes())
    stream.seek(6)
    same(stream, answers)


def test_bytes_that_change_afterwards(model):
    """Bytes that the application overwrites once the model is loaded: the model keeps its own"""
    path, answers = model
    data = bytearray(path.read_bytes())
    read = tenon.load(data)
    data[:] = bytes(len(data))
    assert np.array_equal(tenon.infer(read.outputs[0], read, {"x": np.eye(3)}), answers)


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-1], lambda data: data + b"\0",
                                    lambda data: data[:-1] + bytes([data[-1] ^ 1]), lambda data: b"PK\3\4" + data])  # fmt: skip
def test_damaged_bytes(model, damage):
    """Bytes that are empty, cut off, longer, changed or another format are refused as a file would be"""
    path, _ = model
    with pytest.raises(tenon.error.BadDataError, match="the model in memory"):
        tenon.load(damage(path.read_bytes()))


def test_the_wrong_object():
    """A list, or bytes with gaps, is refused by what is expected"""
    with pytest.raises(tenon.Error, match="a path, bytes or an open binary file"):
        tenon.load([1, 2])
    with pytest.raises(tenon.Error, match="bytes without gaps"):
        tenon.load(memoryview(bytes(64))[::2])
