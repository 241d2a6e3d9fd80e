"""Every layer type that tenon.onnx.save writes, by onnxruntime: inputs and parameters of both signs, sizes that all differ.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import onnxruntime
import pytest

import tenon
from tenon import layer
from tenon.onnx import _save

onnxruntime.set_default_logger_severity(3)
HEIGHT, WIDTH, CHANNELS, ROWS, FEATURES = 6, 7, 4, 3, 5
EACH = ["relu", "sigmoid", "tanh", "softplus", "softsign", "selu", "exp", "abs", "erf", "sin", "cos", "floor", "sign",
        "leaky_relu", "elu", "celu", "hard_swish", "hard_sigmoid", "silu", "mish", "square", "gelu", "relu6", "hard_tanh",
        "dropout", "spatial_dropout"]  # fmt: skip


def constant(like, shape):
    """Unequal numbers of both signs."""
    return layer.constant(like, value=[float(each) for each in np.linspace(-1.5, 2, int(np.prod(shape)))], shape=list(shape))


def turned(image):
    """The image with its channels before its height, which a layer of images has made."""
    return layer.transpose(image, axes=[0, 3, 1, 2])


# By type what is made of an image i, which a convolution has made, and of rows r, which are fed.
CASES = {each: [lambda i, r, each=each: getattr(layer, each)(layer.scale_shift(i, scale=3.0, shift=0.3)),
                lambda i, r, each=each: getattr(layer, each)(layer.scale_shift(r, scale=3.0))] for each in EACH}  # fmt: skip
CASES["gelu"].append(lambda i, r: layer.gelu(i, approximation="tanh"))
CASES["leaky_relu"].append(lambda i, r: layer.leaky_relu(i, slope=0.4))
CASES["elu"].append(lambda i, r: layer.elu(r, alpha=0.6))
CASES["celu"].append(lambda i, r: layer.celu(r, alpha=0.6))
CASES["hard_sigmoid"].append(lambda i, r: layer.hard_sigmoid(r, slope=0.4, shift=0.3))
for each in ("log", "sqrt", "reciprocal"):
    CASES[each] = [lambda i, r, each=each: getattr(layer, each)(layer.softplus(i))]
for each in ("add", "sub", "mul", "maximum", "minimum"):
    CASES[each] = [
        lambda i, r, each=each: getattr(layer, each)(i, layer.sin(i)),
        lambda i, r, each=each: getattr(layer, each)(turned(i), layer.transpose(layer.sin(i), axes=[0, 3, 1, 2])),
        lambda i, r, each=each: getattr(layer, each)(r, constant(r, [FEATURES])),
        lambda i, r, each=each: getattr(layer, each)(constant(i, [WIDTH, CHANNELS]), i),
        lambda i, r, each=each: getattr(layer, each)(i, layer.mean(i, axes=[1, 2], keep_dimensions=True)),
    ]
CASES.update({
    "div": [lambda i, r: layer.div(i, layer.softplus(i)), lambda i, r: layer.div(r, layer.softplus(r))],
    "pow": [lambda i, r: layer.pow(layer.softplus(i), layer.tanh(i))],
    "power": [lambda i, r: layer.power(layer.softplus(r), exponent=-1.5), lambda i, r: layer.power(i, exponent=3.0)],
    "clip": [lambda i, r: layer.clip(i, low=-0.4, high=0.7), lambda i, r: layer.clip(i, low=-0.2),
             lambda i, r: layer.clip(r, high=0.3)],
    "scale_shift": [lambda i, r: layer.scale_shift(i, scale=-2.0, shift=0.7),
                    lambda i, r: layer.scale_shift(i, learnable=True), lambda i, r: layer.scale_shift(r, learnable=True),
                    lambda i, r: layer.scale_shift(turned(i), learnable=True)],
    "prelu": [lambda i, r: layer.prelu(i), lambda i, r: layer.prelu(i, shared=True),
              lambda i, r: layer.prelu(r), lambda i, r: layer.prelu(turned(i))],
    "parameter": [lambda i, r: layer.mul(r, layer.parameter(r, shape=[FEATURES])),
                  lambda i, r: layer.add(i, layer.parameter(i))],
    "constant": [lambda i, r: layer.mul(i, constant(i, [HEIGHT, WIDTH, CHANNELS])),
                 lambda i, r: layer.sub(r, layer.constant(r, value=1.5))],
    "fc": [lambda i, r: layer.fc(i, size=3), lambda i, r: layer.fc(r, size=2, axis=-1, act="tanh"),
           lambda i, r: layer.fc(i, r, turned(i), size=3), lambda i, r: layer.fc(i, size=3, axis=-1, bias=False),
           lambda i, r: layer.fc(layer.reshape(i, shape=[-1]), size=3)],
    "softmax": [lambda i, r: layer.softmax(i), lambda i, r: layer.softmax(i, axis=1),
                lambda i, r: layer.softmax(i, size=3), lambda i, r: layer.softmax(r, axis=1),
                lambda i, r: layer.softmax(turned(i))],
    "log_softmax": [lambda i, r: layer.log_softmax(i, axis=2), lambda i, r: layer.log_softmax(r)],
    "reshape": [lambda i, r: layer.reshape(i, shape=[-1]), lambda i, r: layer.reshape(i, shape=[7, 24]),
                lambda i, r: layer.reshape(r, shape=[FEATURES, ROWS]),
                lambda i, r: layer.reshape(layer.reshape(i, shape=[-1]), shape=[WIDTH, HEIGHT, CHANNELS])],
    "transpose": [lambda i, r: turned(i), lambda i, r: layer.transpose(i, axes=[0, 2, 3, 1]),
                  lambda i, r: layer.transpose(r, axes=[0, 2, 1]), lambda i, r: layer.relu(turned(i))],
    "concat": [lambda i, r: layer.concat(i, layer.slice(i, length=2)),
               lambda i, r: layer.concat(i, layer.slice(i, axis=1, length=2), axis=1),
               lambda i, r: layer.concat(layer.slice(r, axis=1, length=2), r, axis=1),
               lambda i, r: layer.concat(i, other(i)), lambda i, r: layer.concat(other(i), i, axis=2)],
    "slice": [lambda i, r: layer.slice(i, start=1, length=2), lambda i, r: layer.slice(i, axis=1, start=2, length=3),
              lambda i, r: layer.slice(r, axis=1, start=1, length=2)],
    "pad": [lambda i, r: layer.pad(i, before=[1, 0, 2], after=[0, 3, 1], value=0.5),
            lambda i, r: layer.pad(i, before=[1], after=[2], axes=[2], mode="edge"),
            lambda i, r: layer.pad(r, before=[2], after=[1], axes=[1], mode="reflect")],
    "conv": [lambda i, r: layer.conv(i, filters=3, kernel=[3, 2], stride=[2, 1], padding=[1, 0]),
             lambda i, r: layer.conv(i, filters=8, kernel=3, groups=4, same=True, stride=2, bias=False),
             lambda i, r: layer.conv(i, filters=2, kernel=2, dilation=2, padding=[1, 0, 2, 1], act="relu"),
             lambda i, r: layer.conv(r, filters=3, kernel=2)],
    "conv_transpose": [lambda i, r: layer.conv_transpose(i, filters=3, kernel=[3, 2], stride=[2, 3], padding=[1, 0]),
                       lambda i, r: layer.conv_transpose(i, filters=6, kernel=3, stride=2, groups=2, same=True),
                       lambda i, r: layer.conv_transpose(i, filters=2, kernel=2, stride=3, output_padding=1, bias=False),
                       lambda i, r: layer.conv_transpose(i, filters=2, kernel=1, stride=2, same=True)],
    "pool": [lambda i, r: layer.pool(i, kind="max", kernel=[3, 2], stride=[1, 2], padding=[1, 1]),
             lambda i, r: layer.pool(i, kind="max", kernel=2, stride=3, ceil=True, dilation=[2, 1]),
             lambda i, r: layer.pool(i, kind="average", kernel=3, stride=2, padding=1),
             lambda i, r: layer.pool(i, kind="average", kernel=3, stride=2, padding=1, count_padding=True),
             lambda i, r: layer.pool(i, kind="average", kernel=2, same=True),
             lambda i, r: layer.pool(i, kind="max", whole=True),
             lambda i, r: layer.pool(i, kind="average", whole=True),
             lambda i, r: layer.pool(i, kind="norm", kernel=2, power=3.0),
             lambda i, r: layer.pool(i, kind="average", kernel=3, stride=2, ceil=True)],
    "resize": [lambda i, r: layer.resize(i, times=[2, 3]), lambda i, r: layer.resize(i, size=[5, 9]),
               lambda i, r: layer.resize(i, size=[9, 4], kind="linear"), lambda i, r: layer.resize(r, size=7),
               lambda i, r: layer.resize(i, size=[5, 11], kind="linear", align_corners=True)],
    "local_response_norm": [lambda i, r: layer.local_response_norm(i, size=3, alpha=0.7, beta=0.6, k=1.5)],
    "batch_norm": [lambda i, r: layer.batch_norm(i, epsilon=0.01), lambda i, r: layer.batch_norm(r, learnable=False)],
    "instance_norm": [lambda i, r: layer.instance_norm(i), lambda i, r: layer.instance_norm(r, learnable=False)],
    "layer_norm": [lambda i, r: layer.layer_norm(i, epsilon=0.01), lambda i, r: layer.layer_norm(r, learnable=False)],
    "simple_img_conv_pool": [
        lambda i, r: layer.simple_img_conv_pool(i, filters=3, kernel=[2, 3], pool_kernel=2, activation="tanh"),
        lambda i, r: layer.simple_img_conv_pool(i, filters=3, kernel=2, pool_kernel=3, pool_stride=1, pool_kind="average")],
    "img_conv_group": [
        lambda i, r: layer.img_conv_group(i, filters=[3, 5], kernel=3, pool_kernel=2, batch_norm=True),
        lambda i, r: layer.img_conv_group(i, filters=[5], pool_kernel=[2, 3], pool_stride=[1, 2], activation="")],
    "residual_block": [lambda i, r: layer.residual_block(i, filters=CHANNELS),
                       lambda i, r: layer.residual_block(i, filters=3, stride=2),
                       lambda i, r: layer.residual_block(i, filters=2, stride=2, bottleneck=True),
                       lambda i, r: layer.residual_block(i, filters=1, bottleneck=True)],
})  # fmt: skip
for each in ("mean", "sum", "max", "min"):
    CASES[each] = [
        lambda i, r, each=each: getattr(layer, each)(i, axes=[1, 2]),
        lambda i, r, each=each: getattr(layer, each)(i, axis=1, keep_dimensions=True),
        lambda i, r, each=each: getattr(layer, each)(i, axis=2),
        lambda i, r, each=each: layer.tanh(getattr(layer, each)(i, axis=-1)),
        lambda i, r, each=each: getattr(layer, each)(r, axis=1),
    ]


def other(image):
    """An image of another width that no layer of images has made: its channels are last in the file, too."""
    return layer.transpose(layer.data("other", tenon.data_type.dense_array([CHANNELS, HEIGHT, WIDTH])), axes=[0, 2, 3, 1])


def rows_of(r, size):
    """A vector of numbers of both signs for each sample."""
    return layer.fc(r, size=size, act="tanh")


def both(x):
    """The two outputs of a layer, beside each other."""
    return layer.concat(x.output(0), x.output(1), axis=1)


for each in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal"):
    CASES[each] = [lambda i, r, each=each: getattr(layer, each)(layer.round(i), layer.floor(layer.abs(i))),
                   lambda i, r, each=each: getattr(layer, each)(r, layer.constant(r, value=0.25))]  # fmt: skip
for each in ("logical_and", "logical_or", "logical_xor"):
    CASES[each] = [lambda i, r, each=each: getattr(layer, each)(layer.greater(r, layer.sin(r)), layer.less(r, layer.cos(r)))]
for each in ("argmax", "argmin", "argsort"):
    CASES[each] = [lambda i, r, each=each: getattr(layer, each)(r, axis=1), lambda i, r, each=each: getattr(layer, each)(i),
                   lambda i, r, each=each: getattr(layer, each)(turned(i), axis=2)]  # fmt: skip
for each in ("round", "hard_shrink", "soft_shrink", "expm1", "log_sigmoid", "tanh_shrink", "scaled_tanh"):
    CASES[each] = [lambda i, r, each=each: getattr(layer, each)(layer.scale_shift(i, scale=3.0)),
                   lambda i, r, each=each: getattr(layer, each)(layer.scale_shift(r, scale=2.0, shift=0.1))]  # fmt: skip
for each in ("product", "log_sum_exp"):
    CASES[each] = [lambda i, r, each=each: getattr(layer, each)(i, axes=[1, 2]),
                   lambda i, r, each=each: getattr(layer, each)(r, axis=-1, keep_dimensions=True)]  # fmt: skip
CASES.update({
    "formula": [lambda i, r: layer.formula(i, formula="a = x * tanh(log(1 + exp(x))); where(a > 0.2 and not x < 0.5, a, -a)"),
                lambda i, r: layer.formula(r, layer.sin(r), formula="max(x, y) - clip(x, -0.3, y ** 2) / (1 + square(y))"),
                lambda i, r: layer.formula(i, constant(i, [CHANNELS]), formula="x >= y", names=["x", "y"]),
                lambda i, r: layer.formula(r, formula="expm1(x) + log1p(abs(x)) - stop(x) + is_finite(x) + (x != 0.0)")],
    "where": [lambda i, r: layer.where(layer.greater(i, layer.sin(i)), i, layer.square(i)),
              lambda i, r: layer.where(layer.less(r, constant(r, [FEATURES])), r, layer.constant(r, value=-2.0))],
    "masked_fill": [lambda i, r: layer.masked_fill(r, layer.greater(r, layer.sin(r)), value=-1.5)],
    "logical_not": [lambda i, r: layer.logical_not(layer.greater(r, layer.cos(r)))],
    "threshold": [lambda i, r: layer.threshold(r, threshold=0.1, value=-0.4)],
    "log1p": [lambda i, r: layer.log1p(layer.softplus(i))],
    "norm": [lambda i, r: layer.norm(i, axes=[1, 3]), lambda i, r: layer.norm(r, axis=1, order=1, keep_dimensions=True)],
    "cumsum": [lambda i, r: layer.cumsum(i), lambda i, r: layer.cumsum(r, axis=1, exclusive=True, reverse=True)],
    "einsum": [lambda i, r: layer.einsum(r, layer.parameter(r, shape=[FEATURES, 2]), equation="ij,jk->ki"),
               lambda i, r: layer.einsum(i, layer.sin(i), equation="hwc,hwd->cd")],
    "matmul": [lambda i, r: layer.matmul(r, layer.sin(r), transpose_b=True, scale=0.5),
               lambda i, r: layer.matmul(layer.parameter(r, shape=[2, ROWS]), r),
               lambda i, r: layer.matmul(i, i, transpose_a=True)],
    "embedding": [lambda i, r: layer.embedding(layer.argmax(i), vocabulary=CHANNELS, size=3),
                  lambda i, r: layer.embedding(layer.argmax(r), vocabulary=FEATURES, size=2, reduce="mean"),
                  lambda i, r: layer.embedding(layer.argmax(r), vocabulary=FEATURES, size=2, reduce="sum"),
                  lambda i, r: layer.embedding(layer.argmax(r), vocabulary=FEATURES, size=2, reduce="concat")],
    "one_hot": [lambda i, r: layer.one_hot(layer.argmax(turned(i)), classes=WIDTH)],
    "gather": [lambda i, r: layer.gather(r, layer.argsort(r, axis=1, descending=True), axis=1),
               lambda i, r: layer.gather(i, layer.argsort(i))],
    "index_select": [lambda i, r: layer.index_select(i, indices=[2, -1, 2]),
                     lambda i, r: layer.index_select(r, indices=[1], axis=1)],
    "flip": [lambda i, r: layer.flip(i, axes=[1, 3])], "roll": [lambda i, r: layer.roll(i, axis=2, shift=3)],
    "repeat": [lambda i, r: layer.repeat(i, axis=1, times=2)],
    "tile": [lambda i, r: layer.tile(i, copies=[2, 3]), lambda i, r: layer.tile(r, copies=[2, 1])],
    "expand": [lambda i, r: layer.expand(r, shape=[2, ROWS, FEATURES]),
               lambda i, r: layer.expand(layer.mean(i, axes=[1], keep_dimensions=True), shape=[2, -1, -1])],
    "sort": [lambda i, r: layer.sort(r, axis=1), lambda i, r: layer.sort(i, descending=True)],
    "top_k": [lambda i, r: both(layer.top_k(r, k=2)), lambda i, r: both(layer.top_k(i, k=3, axis=2, smallest=True))],
    "stack": [lambda i, r: layer.stack(r, layer.sin(r), axis=2), lambda i, r: layer.stack(i, layer.constant(i, value=0.5), i),
              lambda i, r: layer.stack(r, layer.cos(r), axis=-1)],
    "unstack": [lambda i, r: both(layer.unstack(r, axis=1)), lambda i, r: both(layer.unstack(i, axis=-1))],
    "split": [lambda i, r: both(layer.split(layer.split(i, axis=1, sizes=[2, 4]).output(1), axis=1, parts=2)),
              lambda i, r: both(layer.split(i, parts=2, axis=1))],
    "squeeze": [lambda i, r: layer.squeeze(layer.mean(i, axes=[1, 2], keep_dimensions=True))],
    "unsqueeze": [lambda i, r: layer.unsqueeze(r, axis=2), lambda i, r: layer.unsqueeze(i)],
    "group_norm": [lambda i, r: layer.group_norm(i, groups=2),
                   lambda i, r: layer.group_norm(r, groups=FEATURES, learnable=False)],
    "lstm_step": [lambda i, r: both(layer.lstm_step(rows_of(r, 8), rows_of(r, 2), rows_of(r, 2), peepholes=True,
                                                       forget_bias=0.5)),
                  lambda i, r: both(layer.lstm_step(rows_of(r, 8), constant(r, [2])))],
    "gru_step": [lambda i, r: layer.gru_step(rows_of(r, 6), rows_of(r, 2))],
    "rnn_step": [lambda i, r, each=each: layer.rnn_step(rows_of(r, 2), rows_of(r, 2), activation=each)
                 for each in ("tanh", "relu", "sigmoid")],
})  # fmt: skip


def test_every_writer_has_cases():
    assert set(CASES) == set(_save.WRITERS)


def signed(parameters):
    random = np.random.default_rng(1)
    for name in parameters:
        low = 0.4 if name.endswith("variance") else -1.0
        parameters[name] = random.uniform(low, 1, parameters.shape(name))
    return parameters


def fitting(values, shape):
    """Values with their channels where a shape has them: all sizes differ."""
    turns = [values, np.moveaxis(values, -1, 1), np.moveaxis(values, 1, -1)]
    return next(each for each in turns if each.shape[1:] == tuple(shape))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("type, number", [(type, number) for type, cases in CASES.items() for number in range(len(cases))])
def test_a_layer_by_onnxruntime_and_loaded_again(type, number, first, tmp_path):
    fed = layer.data("image", tenon.data_type.dense_array([HEIGHT, WIDTH, 2]))
    rows = layer.data("rows", tenon.data_type.dense_array([ROWS, FEATURES]))
    output = CASES[type][number](layer.conv(fed, filters=CHANNELS, kernel=1), rows)
    parameters = signed(tenon.parameters.create(output))
    random = np.random.default_rng(2)
    feeds = {name: random.normal(size=(2, *kind.shape)).astype(np.float32) for name, kind in output.data_types.items()}
    wanted = tenon.infer(output, parameters, feeds)
    assert (wanted < 0).any() or type in ("relu", "sigmoid", "softplus") or wanted.min() >= 0
    file = tmp_path / "layer.onnx"
    tenon.onnx.save(output, parameters, file, channels_first=first)
    session = onnxruntime.InferenceSession(file)
    given = {each.name: fitting(feeds[each.name], each.shape[1:]) for each in session.get_inputs()}
    loaded = tenon.onnx.load(file)
    again = {name: fitting(feeds[name], kind.shape) for name, kind in loaded.outputs[0].data_types.items()}
    for found in (session.run(None, given)[0], tenon.infer(loaded.outputs[0], loaded, again)):
        np.testing.assert_allclose(fitting(found, wanted.shape[1:]), wanted, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("given", [{}, {"kind": "linear"}, {"kind": "linear", "align_corners": True}], ids=str)
def test_a_resize_of_any_size_is_written(given, tmp_path):
    """Where float32 rounds the quotient of the sizes, too: runtimes multiply and divide by it."""
    for old in (1, 5, 6, 14, 20, 21):
        image = layer.data("x", tenon.data_type.dense_array([old, 3, 2]))
        outputs = [layer.resize(image, size=[new, 22 - old], name=f"to{new}", **given) for new in range(1, 26)]
        parameters = tenon.parameters.create(outputs)
        feeds = {"x": np.random.default_rng(old).normal(size=(2, old, 3, 2)).astype(np.float32)}
        wanted = tenon.infer(outputs, parameters, feeds)
        tenon.onnx.save(outputs, parameters, tmp_path / "sizes.onnx", channels_first=False)
        got = onnxruntime.InferenceSession(tmp_path / "sizes.onnx").run(None, feeds)
        again = tenon.onnx.load(tmp_path / "sizes.onnx", channels_first=True)
        for by_others, back, each in zip(got, tenon.infer(again.outputs, again, feeds), wanted, strict=True):
            for found in (by_others, back):
                np.testing.assert_allclose(found, each, rtol=1e-4, atol=2e-5)


def test_integers_are_written(tmp_path):
    """Ids to a table, bytes with a scale, truth values, places as outputs."""
    kinds = {"ids": ("int64", [3], 5), "more": ("int32", [], 5), "pixels": ("uint8", [2, 4], 256), "flags": ("bool", [3], 2)}
    scaled = {"uint8": {"scale": 0.5, "offset": -3.0}}
    types = {name: tenon.data_type.dense_array(shape, kind, **scaled.get(kind, {})) for name, (kind, shape, _) in kinds.items()}
    data = {name: layer.data(name, type) for name, type in types.items()}
    table = layer.embedding(data["ids"], vocabulary=5, size=2)
    outputs = [layer.fc(layer.mean(table, axis=1), layer.embedding(data["more"], vocabulary=5, size=3), size=2),
               layer.fc(data["pixels"], layer.where(data["flags"], data["ids"], data["flags"]), size=2),
               layer.slice(data["ids"], axis=1, start=1, length=2), layer.argmax(layer.sin(data["pixels"]), axis=1),
               layer.top_k(layer.sin(data["pixels"]), k=2).output(1)]  # fmt: skip
    parameters = signed(tenon.parameters.create(outputs))
    random = np.random.default_rng(3)
    feeds = {name: random.integers(0, most, (2, *shape)).astype(kind) for name, (kind, shape, most) in kinds.items()}
    wanted = tenon.infer(outputs, parameters, feeds)
    tenon.onnx.save(outputs, parameters, tmp_path / "whole.onnx", channels_first=False)
    by_others = onnxruntime.InferenceSession(tmp_path / "whole.onnx").run(None, feeds)
    again = tenon.onnx.load(tmp_path / "whole.onnx", channels_first=True)
    for results in (by_others, tenon.infer(again.outputs, again, feeds)):
        for got, each in zip(results, wanted, strict=True):
            assert got.dtype == each.dtype
            np.testing.assert_allclose(got, each, rtol=1e-4, atol=1e-5)
    whole = layer.embedding(layer.slice(data["pixels"], axis=1, start=0, length=1), vocabulary=256, size=2)
    with pytest.raises(tenon.error.UnsupportedError, match="reads integers that have a scale, as they are"):
        tenon.onnx.save(whole, tenon.parameters.create(whole), tmp_path / "none.onnx")


def test_constants_are_as_many_as_the_samples(tmp_path):
    """A token before the rows, and an output that no input changes."""
    rows = layer.data("rows", tenon.data_type.dense_array([ROWS, FEATURES]))
    token = layer.parameter(rows, shape=[1, FEATURES], name="token")
    outputs = [layer.concat(token, rows, axis=1), layer.fc(layer.constant(rows, value=0.5, shape=[2]), size=3)]
    parameters = signed(tenon.parameters.create(outputs))
    feeds = {"rows": np.random.default_rng(4).normal(size=(4, ROWS, FEATURES)).astype(np.float32)}
    wanted = tenon.infer(outputs, parameters, feeds)
    tenon.onnx.save(outputs, parameters, tmp_path / "token.onnx", channels_first=False)
    for got, each in zip(onnxruntime.InferenceSession(tmp_path / "token.onnx").run(None, feeds), wanted, strict=True):
        np.testing.assert_allclose(got, each, rtol=1e-5, atol=1e-6)
