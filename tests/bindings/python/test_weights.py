"""Weights of PyTorch and Keras for topologies of our own. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import json
import os
import struct

import numpy as np
import pytest
import safetensors.numpy

import tenon
from others import TorchModel, close, last

layer = tenon.layer
random = np.random.default_rng(0)


def image(*sizes):
    return layer.data("image", tenon.data_type.dense_array(sizes))


def lenet():
    x = layer.pool(
        layer.conv(image(24, 24, 1), filters=4, kernel=5, padding=2, act="tanh", name="conv1"), kind="max", kernel=2
    )
    x = layer.pool(layer.conv(x, filters=6, kernel=5, act="relu", name="conv2"), kind="average", kernel=2)
    x = layer.fc(layer.fc(x, size=20, act="relu", name="fc1"), size=12, act="relu", name="fc2")
    return layer.fc(x, size=10, name="fc3")


def vgg():
    x = image(12, 16, 3)
    for number, filters in enumerate((5, 6)):
        x = layer.relu(
            layer.batch_norm(
                layer.conv(x, filters=filters, kernel=3, same=True, name=f"conv_{number}0"), name=f"norm_{number}"
            )
        )
        x = layer.pool(
            layer.conv(x, filters=filters, kernel=3, same=True, act="relu", name=f"conv_{number}1"),
            kind="max",
            kernel=2,
        )
    x = layer.relu(layer.batch_norm(layer.fc(layer.reshape(x, shape=[-1]), size=16, name="hidden"), name="norm"))
    return layer.softmax(layer.dropout(x), size=10, name="score")


def resnet():
    x = layer.conv(image(24, 32, 3), filters=4, kernel=7, stride=2, padding=3, bias=False, name="0")
    x = layer.pool(layer.relu(layer.batch_norm(x, name="1")), kind="max", kernel=3, stride=2, padding=1)
    x = layer.residual_block(x, filters=4, name="4")
    # same of a stride of 2 pads after the image, PyTorch's padding of 1 on both sides: written out.
    short = layer.batch_norm(
        layer.conv(x, filters=6, kernel=1, stride=2, bias=False, name="5.short.0"), name="5.short.1"
    )
    inner = layer.conv(x, filters=6, kernel=3, stride=2, padding=1, bias=False, name="5.conv1")
    inner = layer.conv(
        layer.relu(layer.batch_norm(inner, name="5.norm1")), filters=6, kernel=3, padding=1, bias=False, name="5.conv2"
    )
    x = layer.relu(layer.batch_norm(inner, name="5.norm2") + short)
    return layer.fc(layer.pool(x, kind="average", whole=True), size=10, name="8")


def generator():
    x = layer.data("image", tenon.data_type.dense_vector(8))
    x = layer.relu(layer.batch_norm(layer.fc(x, size=96, name="0"), name="1"))
    x = layer.conv_transpose(layer.reshape(x, shape=[4, 4, 6]), filters=4, kernel=3, stride=2, padding=1, output_padding=1,
                             groups=2, name="4")  # fmt: skip
    x = layer.resize(layer.leaky_relu(layer.batch_norm(x, name="5"), slope=0.2), times=[2], kind="linear")
    x = layer.prelu(layer.conv(x, filters=4, kernel=3, groups=4, name="8"), name="9")
    return layer.tanh(layer.conv(x, filters=2, kernel=[3, 1], dilation=2, name="10"))


BLOCK = {"4.conv_0": "4.conv1", "4.norm_0": "4.norm1", "4.conv_1": "4.conv2", "4.norm_1": "4.norm2"}


@pytest.mark.parametrize("name, build, names", [("lenet", lenet, None), ("vgg", vgg, "order"), ("generator", generator, None),
                                                ("resnet", resnet, BLOCK)])  # fmt: skip
def test_weights_of_pytorch_give_its_output(name, build, names, tmp_path):
    tenon.use(tenon.Host())
    model, output = TorchModel(name), build()
    parameters = tenon.parameters.create(output)
    pairs = tenon.weights.load_pytorch(parameters, model.state, names)
    got = tenon.infer(output, parameters, last(model.image))
    close(got, last(model.output))
    safetensors.numpy.save_file(model.state, tmp_path / "state.safetensors")
    again = tenon.parameters.create(output, seed=1)
    assert tenon.weights.load_pytorch(again, tmp_path / "state.safetensors", pairs) == pairs
    assert all((again[each] == parameters[each]).all() for each in parameters)


def test_a_list_of_modules_is_in_the_order_of_layers(tmp_path):
    model, output = TorchModel("vgg"), vgg()
    parameters = tenon.parameters.create(output)
    modules = list(dict.fromkeys(name.rpartition(".")[0] for name in model.state))
    tenon.weights.load_pytorch(parameters, model.state, modules)
    close(tenon.infer(output, parameters, last(model.image)), model.output)
    safetensors.numpy.save_file(model.state, tmp_path / "state.safetensors")
    with pytest.raises(tenon.error.InvalidError, match="sorted by name, not in the order"):
        tenon.weights.load_pytorch(parameters, tmp_path / "state.safetensors", "order")
    with pytest.raises(tenon.error.InvalidError, match="2 modules are given for 9 layers"):
        tenon.weights.load_pytorch(parameters, model.state, modules[:2])


def normal(*shape):
    return random.normal(size=shape).astype(np.float32)


def places(x, kernel, stride=1):
    """Returns the windows [n, p, q, kh, kw, c] of images that are padded as Keras does, "same": an odd pixel at the end."""
    sizes = [-(-size // stride) for size in x.shape[1:3]]
    added = [max(0, (made - 1) * stride + k - size) for made, k, size in zip(sizes, kernel, x.shape[1:3], strict=True)]
    x = np.pad(x, ((0, 0), *((each // 2, each - each // 2) for each in added), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=(1, 2))[:, ::stride, ::stride]
    return np.moveaxis(windows, 3, -1)


def test_weights_of_keras_give_what_its_layers_compute():
    """The definitions of Keras's layers in NumPy, on its layouts."""
    x = image(5, 6, 4)
    one = layer.conv(x, filters=6, kernel=[3, 2], stride=2, same=True, name="conv2d")
    two = layer.conv(one, filters=12, kernel=3, groups=6, same=True, name="depthwise", bias=False)
    three = layer.batch_norm(two, epsilon=1e-3, name="norm")
    four = layer.conv_transpose(three, filters=2, kernel=2, stride=2, name="up")
    output = layer.fc(layer.prelu(four, name="prelu"), size=3, name="dense")
    parameters = tenon.parameters.create(output)
    state = {"conv2d/kernel": normal(3, 2, 4, 6), "conv2d/bias": normal(6), "depthwise/depthwise_kernel": normal(3, 3, 6, 2),
             "norm/gamma": normal(12), "norm/beta": normal(12), "norm/moving_mean": normal(12),
             "norm/moving_variance": normal(12) ** 2 + 0.5, "up/kernel": normal(2, 2, 2, 12), "up/bias": normal(2),
             "prelu/alpha": normal(1, 1, 2), "dense/kernel:0": normal(72, 3), "dense/bias:0": normal(3)}  # fmt: skip
    pairs = tenon.weights.load_keras(parameters, state)
    assert pairs["depthwise"] == "depthwise" and len(pairs) == 6
    images = normal(2, 5, 6, 4)
    a = np.einsum("npqijc,ijcf->npqf", places(images, (3, 2), 2), state["conv2d/kernel"]) + state["conv2d/bias"]
    b = np.einsum("npqijc,ijcm->npqcm", places(a, (3, 3)), state["depthwise/depthwise_kernel"]).reshape(2, 3, 3, 12)
    c = (b - state["norm/moving_mean"]) / np.sqrt(state["norm/moving_variance"] + 1e-3) * state["norm/gamma"] + state[
        "norm/beta"
    ]
    d = np.einsum("npqc,ijoc->npiqjo", c, state["up/kernel"]).reshape(2, 6, 6, 2) + state["up/bias"]
    e = np.where(d > 0, d, d * state["prelu/alpha"])
    wanted = e.reshape(2, -1) @ state["dense/kernel:0"] + state["dense/bias:0"]
    close(tenon.infer([one, two, three, four], parameters, images)[3], d)
    close(tenon.infer(output, parameters, images), wanted)


def test_grouped_kernels_of_keras_are_not_those_of_depthwise_layers():
    output = layer.conv(image(4, 4, 2), filters=4, kernel=1, groups=2, bias=False, name="conv")
    parameters = tenon.parameters.create(output)
    grouped, depthwise = normal(1, 1, 1, 4), normal(1, 1, 2, 2)
    images = normal(1, 4, 4, 2)
    tenon.weights.load_keras(parameters, {"conv/kernel": grouped})
    close(tenon.infer(output, parameters, images), np.repeat(images, 2, -1) * grouped[0, 0, 0])
    tenon.weights.load_keras(parameters, {"conv/kernel": depthwise})
    close(tenon.infer(output, parameters, images), np.repeat(images, 2, -1) * depthwise[0, 0].ravel())


def test_vectors_that_were_no_images_keep_their_columns():
    rows = layer.data("rows", tenon.data_type.dense_array([3, 2]))
    output = layer.fc(rows, size=4, name="f")
    parameters = tenon.parameters.create(output)
    weight, bias = normal(4, 6), normal(4)
    tenon.weights.load_pytorch(parameters, {"f.weight": weight, "f.bias": bias})
    fed = normal(2, 3, 2)
    close(tenon.infer(output, parameters, fed), fed.reshape(2, -1) @ weight.T + bias)


def test_joined_images_are_flattened_one_by_one():
    x = image(2, 3, 4)
    a, b = layer.reshape(layer.relu(x), shape=[-1]), layer.fc(layer.tanh(x), size=5, name="g")
    output = layer.fc(layer.concat(a, b), size=2, name="f", bias=False)
    parameters = tenon.parameters.create(output)
    state = {"g.weight": normal(5, 24), "g.bias": normal(5), "f.weight": normal(2, 29)}
    tenon.weights.load_pytorch(parameters, state)
    fed = normal(2, 4, 2, 3)  # of PyTorch, channels first
    g = np.tanh(fed).reshape(2, -1) @ state["g.weight"].T + state["g.bias"]
    wanted = np.concatenate([np.maximum(fed, 0).reshape(2, -1), g], 1) @ state["f.weight"].T
    close(tenon.infer(output, parameters, last(fed)), wanted)


def test_everything_that_does_not_fit_is_listed_and_nothing_is_loaded():
    output = layer.fc(
        layer.batch_norm(layer.conv(image(6, 6, 3), filters=4, kernel=3, name="conv"), name="norm"), size=2, name="f"
    )
    parameters = tenon.parameters.create(output)
    before = {name: parameters.read(name) for name in parameters}
    state = {"conv.weight": normal(4, 3, 3, 2), "conv.bias": normal(4), "conv.extra": normal(1), "nrm.weight": normal(4),
             "f.weight": normal(2, 64), "left.weight": normal(7)}  # fmt: skip
    with pytest.raises(tenon.error.InvalidError) as raised:
        tenon.weights.load_pytorch(parameters, state, {"fc": "f"})
    text = str(raised.value)
    for words in ('names: unknown layer "fc"', 'layer "norm" (batch_norm): missing module "norm"; did you mean "nrm"?',
                  'unused module "nrm": weight [4]', 'unused module "left": weight [7]',
                  "conv.weight [4, 3, 3, 2] becomes [4, 3, 2, 3]; conv.weight is [4, 3, 3, 3]", "unused tensor conv.extra [1]",
                  'module "f" lacks f.bias'):  # fmt: skip
        assert words in text, text
    assert all((parameters[name] == values).all() for name, values in before.items())
    with pytest.raises(tenon.error.InvalidError, match="names"):
        tenon.weights.load_pytorch(parameters, state, "sorted")


def test_layers_of_other_layouts_are_refused():
    output = layer.factorization_machine(layer.data("x", tenon.data_type.dense_vector(4)), factors=2, name="pairs")
    parameters = tenon.parameters.create(output)
    with pytest.raises(tenon.error.InvalidError, match="unknown layout of PyTorch for the type"):
        tenon.weights.load_pytorch(parameters, {"pairs.weight": normal(2)})
    with pytest.raises(tenon.error.InvalidError, match='layer "pairs" .factorization_machine.: unknown layout of PyTorch'):
        tenon.weights.save_pytorch(parameters)


def test_attention_has_four_matrices():
    x = layer.data("x", tenon.data_type.dense_array([3, 4]))
    parameters = tenon.parameters.create(layer.multi_head_attention(x, heads=2, name="attention"))
    state = {f"attention.self.{name}.{last}": normal(4, 4) if last == "weight" else normal(4)
             for name in ("query", "key", "value", "output") for last in ("weight", "bias")}  # fmt: skip
    names = {f"attention.{name}": f"attention.self.{name}" for name in ("query", "key", "value", "output")}
    assert tenon.weights.load_pytorch(parameters, state, names) == names
    assert (parameters["attention.key.weight"] == state["attention.self.key.weight"].T).all()


def test_files_in_shards(tmp_path):
    output = layer.fc(layer.data("x", tenon.data_type.dense_vector(3)), size=2, name="f")
    parameters = tenon.parameters.create(output)
    weight, bias = normal(2, 3), normal(2)
    safetensors.numpy.save_file({"f.weight": weight}, tmp_path / "model-00001-of-00002.safetensors")
    safetensors.numpy.save_file({"f.bias": bias}, tmp_path / "model-00002-of-00002.safetensors")
    shards = {"f.weight": "model-00001-of-00002.safetensors", "f.bias": "model-00002-of-00002.safetensors"}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 32}, "weight_map": shards}))
    for source in (index, tmp_path):
        fresh = tenon.parameters.create(output, seed=5)
        tenon.weights.load_pytorch(fresh, source)
        assert (fresh["f.weight"] == weight.T).all() and (fresh["f.bias"] == bias).all()
    before = parameters.read("f.weight")
    (tmp_path / shards["f.bias"]).unlink()
    with pytest.raises(tenon.error.NotFoundError, match=shards["f.bias"]):
        tenon.weights.load_pytorch(parameters, index)
    assert (parameters["f.weight"] == before).all()


def words_model():
    ids = layer.data("ids", tenon.data_type.integer_value_sequence(4))
    return layer.sequence_pool(layer.embedding(ids, vocabulary=4, size=2, name="words"), kind="mean")


def test_vectors_of_words(tmp_path):
    parameters = tenon.parameters.create(words_model())
    file = tmp_path / "glove.txt"
    file.write_text("dog 1 2\nthe 3 4\ncat 5 6\n")
    before = parameters.read("words.weight")
    assert tenon.weights.load_vectors(parameters, "words", file, ["<unk>", "cat", "dog"]) == ["<unk>"]
    assert parameters["words.weight"][1:3].tolist() == [[5, 6], [1, 2]]
    assert (parameters["words.weight"][[0, 3]] == before[[0, 3]]).all()
    file.write_text("dog 7 7\n")
    parameters.core.set_names([("ids", ["dog"])])
    assert tenon.weights.load_vectors(parameters, "words.weight", str(file)) == []
    assert parameters["words.weight"][:2].tolist() == [[7, 7], [5, 6]]


@pytest.mark.parametrize("name, words, text, match", [
    ("word", ["dog"], "dog 1 2\n", "expected one parameter"),
    ("words", [], "dog 1 2\n", "expected 1 to 4, got 0"),
    ("words", list("abcde"), "dog 1 2\n", "expected 1 to 4, got 5"),
    ("words", None, "dog 1 2\n", "of ids, have no names: give words"),
    ("words", ["dog"], "dog 1 2 3\n", "has vectors of 3 numbers, expected 2"),
    ("words", ["dog"], "cat 1 2\n", "has none of the 1 words"),
    ("words", [3], "dog 1 2\n", "words"),
])  # fmt: skip
def test_vectors_that_do_not_fit(name, words, text, match, tmp_path):
    parameters = tenon.parameters.create(words_model())
    before = parameters.read("words.weight")
    (tmp_path / "v.txt").write_text(text)
    with pytest.raises(tenon.error.InvalidError, match=match):
        tenon.weights.load_vectors(parameters, name, tmp_path / "v.txt", words)
    assert (parameters["words.weight"] == before).all()


def test_damaged_vectors_change_nothing(tmp_path):
    parameters = tenon.parameters.create(words_model())
    before = parameters.read("words.weight")
    (tmp_path / "v.txt").write_text("dog 1 2\ncat 1 x\n")
    with pytest.raises(tenon.error.BadDataError, match='line 2: "x" is not a finite number'):
        tenon.weights.load_vectors(parameters, "words", tmp_path / "v.txt", ["dog", "cat"])
    with pytest.raises(tenon.error.NotFoundError, match="none.txt"):
        tenon.weights.load_vectors(parameters, "words", tmp_path / "none.txt", ["dog", "cat"])
    assert (parameters["words.weight"] == before).all()


def test_files_of_safetensors(tmp_path):
    output = layer.fc(layer.data("x", tenon.data_type.dense_vector(3)), size=2, bias=False, name="f")
    parameters = tenon.parameters.create(output)
    file = tmp_path / "state.safetensors"
    weight = normal(2, 3)
    half = weight.view(np.uint32) >> 16
    header = {"__metadata__": {"format": "pt"}, "f.weight": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}
    written = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(written)) + written + half.astype("<u2").tobytes())
    tenon.weights.load_pytorch(parameters, file)
    assert (parameters["f.weight"] == (half << 16).view(np.float32).T).all()
    good = file.read_bytes()
    for wrong in (b"", good[:-1], struct.pack("<Q", 2**40) + good[8:], good.replace(b"BF16", b"BF99"),
                  good[:8] + b"[" + good[9:],
                  good.replace(b'"shape": [2, 3]', b'"shape": [3, 3]')):  # fmt: skip
        file.write_bytes(wrong)
        with pytest.raises(tenon.error.BadDataError, match="state.safetensors"):
            tenon.weights.load_pytorch(parameters, file)
    with pytest.raises(tenon.error.NotFoundError):
        tenon.weights.load_pytorch(parameters, tmp_path / "none.safetensors")
    for wrong in (3, {"f.weight": "none"}, {3: weight}):
        with pytest.raises(tenon.error.InvalidError):
            tenon.weights.load_pytorch(parameters, wrong)


def entry(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def file_of(header, data=b""):
    written = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(written)) + written + data


TWICE = b"{%(one)b,%(one)b}" % {b"one": b'"f.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}'}
DAMAGED = {
    "duplicate names": file_of(TWICE, bytes(24)),
    "overlapping tensors": file_of({"f.weight": entry([2, 3], 0, 24), "other": entry([3], 0, 12)}, bytes(24)),
    "a gap": file_of({"f.weight": entry([2, 3], 4, 28)}, bytes(28)),
    "trailing bytes": file_of({"f.weight": entry([2, 3], 0, 24)}, bytes(25)),
    "brackets": file_of(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "a huge shape": file_of({"f.weight": entry([2**70], 0, 24)}, bytes(24)),
    "a shape that wraps": file_of({"f.weight": entry([2**32, 2**32], 0, 0)}),
    "a negative shape": file_of({"f.weight": entry([-2, -3], 0, 24)}, bytes(24)),
    "a negative offset": file_of({"f.weight": entry([2, 3], -24, 0)}, bytes(24)),
    "an offset of floats": file_of({"f.weight": entry([2, 3], 0.0, 24.0)}, bytes(24)),
    "a shape of texts": file_of({"f.weight": entry("23", 0, 24)}, bytes(24)),
    "a nested shape": file_of({"f.weight": entry([[2, 3]], 0, 24)}, bytes(24)),
    "a type that is a list": file_of({"f.weight": entry([2, 3], 0, 24, ["F32"])}, bytes(24)),
    "an entry that is a number": file_of({"f.weight": 5}),
    "many digits": file_of(b'{"a":' + b"1" * 5000 + b"}"),
    "null": file_of(b"null"),
    "an endless header": struct.pack("<Q", 2**62) + b"{}",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_of_safetensors(name, tmp_path):
    output = layer.fc(layer.data("x", tenon.data_type.dense_vector(3)), size=2, bias=False, name="f")
    parameters = tenon.parameters.create(output)
    before = parameters.read("f.weight")
    (tmp_path / "w.safetensors").write_bytes(DAMAGED[name])
    with pytest.raises(tenon.error.BadDataError, match="w.safetensors"):
        tenon.weights.load_pytorch(parameters, tmp_path / "w.safetensors")
    assert (parameters["f.weight"] == before).all()


def test_devices_and_pipes_are_no_files_of_safetensors(tmp_path):
    output = layer.fc(layer.data("x", tenon.data_type.dense_vector(3)), size=2, bias=False, name="f")
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", "/dev/urandom", "/dev/stdin", tmp_path, tmp_path / "pipe"):
        with pytest.raises(tenon.error.Error):
            tenon.weights.load_pytorch(tenon.parameters.create(output), path)


def test_every_element_type_of_weights(tmp_path):
    output = layer.fc(layer.data("x", tenon.data_type.dense_vector(3)), size=2, bias=False, name="f")
    parameters = tenon.parameters.create(output)
    for dtype in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"):
        weight = np.arange(6).reshape(2, 3).astype(dtype)
        safetensors.numpy.save_file({"f.weight": weight, "f.num_batches_tracked": np.int64([3])}, tmp_path / "w.safetensors")
        tenon.weights.load_pytorch(parameters, tmp_path / "w.safetensors")
        assert (parameters["f.weight"] == weight.T).all()
    (tmp_path / "w.safetensors").write_bytes(file_of({"f.weight": entry([2, 3], 0, 6, "F8_E4M3")}, bytes(6)))
    with pytest.raises(tenon.error.BadDataError, match='tensor "f.weight" has the type F8_E4M3'):
        tenon.weights.load_pytorch(parameters, tmp_path / "w.safetensors")
