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
EACH = ["relu", "sigmoid", "tanh", "softplus", "softsign", "selu", "exp", "abs", "erf", "sin", "cos", "floor", "sign", "leaky_relu",
        "elu", "celu", "hard_swish", "hard_sigmoid", "silu", "mish", "square", "gelu", "relu6", "hard_tanh", "dropout",
        "spatial_dropout"]  # fmt: skip


def constant(like, shape):
    """Unequal numbers of both signs."""
    return layer.constant(like, value=[float(each) for each in np.linspace(-1.5, 2, int(np.prod(shape)))], shape=list(shape))


def turned(image):
    """The image with its channels before its height, which a layer of images has made."""
    return layer.transpose(image, axes=[0, 3, 1, 2])


# By type what is made of an image, which a convolution has made, and of rows, which are fed: {type: [(image, rows) -> layer]}.
CASES = {each: [lambda image, rows, each=each: getattr(layer, each)(layer.scale_shift(image, scale=3.0, shift=0.3)),
                lambda image, rows, each=each: getattr(layer, each)(layer.scale_shift(rows, scale=3.0))] for each in EACH}  # fmt: skip
CASES["gelu"].append(lambda image, rows: layer.gelu(image, approximation="tanh"))
CASES["leaky_relu"].append(lambda image, rows: layer.leaky_relu(image, slope=0.4))
CASES["elu"].append(lambda image, rows: layer.elu(rows, alpha=0.6))
CASES["celu"].append(lambda image, rows: layer.celu(rows, alpha=0.6))
CASES["hard_sigmoid"].append(lambda image, rows: layer.hard_sigmoid(rows, slope=0.4, shift=0.3))
for each in ("log", "sqrt", "reciprocal"):
    CASES[each] = [lambda image, rows, each=each: getattr(layer, each)(layer.softplus(image))]
for each in ("add", "sub", "mul", "maximum", "minimum"):
    CASES[each] = [
        lambda image, rows, each=each: getattr(layer, each)(image, layer.sin(image)),
        lambda image, rows, each=each: getattr(layer, each)(turned(image), layer.transpose(layer.sin(image), axes=[0, 3, 1, 2])),
        lambda image, rows, each=each: getattr(layer, each)(rows, constant(rows, [FEATURES])),
        lambda image, rows, each=each: getattr(layer, each)(constant(image, [WIDTH, CHANNELS]), image),
        lambda image, rows, each=each: getattr(layer, each)(image, layer.mean(image, axes=[1, 2], keep_dimensions=True)),
    ]
CASES.update({
    "div": [lambda image, rows: layer.div(image, layer.softplus(image)), lambda image, rows: layer.div(rows, layer.softplus(rows))],
    "pow": [lambda image, rows: layer.pow(layer.softplus(image), layer.tanh(image))],
    "power": [lambda image, rows: layer.power(layer.softplus(rows), exponent=-1.5), lambda image, rows: layer.power(image, exponent=3.0)],
    "clip": [lambda image, rows: layer.clip(image, low=-0.4, high=0.7), lambda image, rows: layer.clip(image, low=-0.2),
             lambda image, rows: layer.clip(rows, high=0.3)],
    "scale_shift": [lambda image, rows: layer.scale_shift(image, scale=-2.0, shift=0.7),
                    lambda image, rows: layer.scale_shift(image, learnable=True), lambda image, rows: layer.scale_shift(rows, learnable=True),
                    lambda image, rows: layer.scale_shift(turned(image), learnable=True)],
    "prelu": [lambda image, rows: layer.prelu(image), lambda image, rows: layer.prelu(image, shared=True),
              lambda image, rows: layer.prelu(rows), lambda image, rows: layer.prelu(turned(image))],
    "parameter": [lambda image, rows: layer.mul(rows, layer.parameter(rows, shape=[FEATURES])),
                  lambda image, rows: layer.add(image, layer.parameter(image))],
    "constant": [lambda image, rows: layer.mul(image, constant(image, [HEIGHT, WIDTH, CHANNELS])),
                 lambda image, rows: layer.sub(rows, layer.constant(rows, value=1.5))],
    "fc": [lambda image, rows: layer.fc(image, size=3), lambda image, rows: layer.fc(rows, size=2, axis=-1, act="tanh"),
           lambda image, rows: layer.fc(image, rows, turned(image), size=3), lambda image, rows: layer.fc(image, size=3, axis=-1, bias=False),
           lambda image, rows: layer.fc(layer.reshape(image, shape=[-1]), size=3)],
    "softmax": [lambda image, rows: layer.softmax(image), lambda image, rows: layer.softmax(image, axis=1),
                lambda image, rows: layer.softmax(image, size=3), lambda image, rows: layer.softmax(rows, axis=1),
                lambda image, rows: layer.softmax(turned(image))],
    "log_softmax": [lambda image, rows: layer.log_softmax(image, axis=2), lambda image, rows: layer.log_softmax(rows)],
    "reshape": [lambda image, rows: layer.reshape(image, shape=[-1]), lambda image, rows: layer.reshape(image, shape=[7, 24]),
                lambda image, rows: layer.reshape(rows, shape=[FEATURES, ROWS]),
                lambda image, rows: layer.reshape(layer.reshape(image, shape=[-1]), shape=[WIDTH, HEIGHT, CHANNELS])],
    "transpose": [lambda image, rows: turned(image), lambda image, rows: layer.transpose(image, axes=[0, 2, 3, 1]),
                  lambda image, rows: layer.transpose(rows, axes=[0, 2, 1]), lambda image, rows: layer.relu(turned(image))],
    "concat": [lambda image, rows: layer.concat(image, layer.slice(image, length=2)),
               lambda image, rows: layer.concat(image, layer.slice(image, axis=1, length=2), axis=1),
               lambda image, rows: layer.concat(layer.slice(rows, axis=1, length=2), rows, axis=1),
               lambda image, rows: layer.concat(image, other(image)), lambda image, rows: layer.concat(other(image), image, axis=2)],
    "slice": [lambda image, rows: layer.slice(image, start=1, length=2), lambda image, rows: layer.slice(image, axis=1, start=2, length=3),
              lambda image, rows: layer.slice(rows, axis=1, start=1, length=2)],
    "pad": [lambda image, rows: layer.pad(image, before=[1, 0, 2], after=[0, 3, 1], value=0.5),
            lambda image, rows: layer.pad(image, before=[1], after=[2], axes=[2], mode="edge"),
            lambda image, rows: layer.pad(rows, before=[2], after=[1], axes=[1], mode="reflect")],
    "conv": [lambda image, rows: layer.conv(image, filters=3, kernel=[3, 2], stride=[2, 1], padding=[1, 0]),
             lambda image, rows: layer.conv(image, filters=8, kernel=3, groups=4, same=True, stride=2, bias=False),
             lambda image, rows: layer.conv(image, filters=2, kernel=2, dilation=2, padding=[1, 0, 2, 1], act="relu"),
             lambda image, rows: layer.conv(rows, filters=3, kernel=2)],
    "conv_transpose": [lambda image, rows: layer.conv_transpose(image, filters=3, kernel=[3, 2], stride=[2, 3], padding=[1, 0]),
                       lambda image, rows: layer.conv_transpose(image, filters=6, kernel=3, stride=2, groups=2, same=True),
                       lambda image, rows: layer.conv_transpose(image, filters=2, kernel=2, stride=3, output_padding=1, bias=False),
                       lambda image, rows: layer.conv_transpose(image, filters=2, kernel=1, stride=2, same=True)],
    "pool": [lambda image, rows: layer.pool(image, kind="max", kernel=[3, 2], stride=[1, 2], padding=[1, 1]),
             lambda image, rows: layer.pool(image, kind="max", kernel=2, stride=3, ceil=True, dilation=[2, 1]),
             lambda image, rows: layer.pool(image, kind="average", kernel=3, stride=2, padding=1),
             lambda image, rows: layer.pool(image, kind="average", kernel=3, stride=2, padding=1, count_padding=True),
             lambda image, rows: layer.pool(image, kind="average", kernel=2, same=True), lambda image, rows: layer.pool(image, kind="max", whole=True),
             lambda image, rows: layer.pool(image, kind="average", whole=True), lambda image, rows: layer.pool(image, kind="norm", kernel=2, power=3.0),
             lambda image, rows: layer.pool(image, kind="average", kernel=3, stride=2, ceil=True)],
    "resize": [lambda image, rows: layer.resize(image, times=[2, 3]), lambda image, rows: layer.resize(image, size=[5, 9]),
               lambda image, rows: layer.resize(image, size=[9, 4], kind="linear"), lambda image, rows: layer.resize(rows, size=7),
               lambda image, rows: layer.resize(image, size=[5, 11], kind="linear", align_corners=True)],
    "local_response_norm": [lambda image, rows: layer.local_response_norm(image, size=3, alpha=0.7, beta=0.6, k=1.5)],
    "batch_norm": [lambda image, rows: layer.batch_norm(image, epsilon=0.01), lambda image, rows: layer.batch_norm(rows, learnable=False)],
    "instance_norm": [lambda image, rows: layer.instance_norm(image), lambda image, rows: layer.instance_norm(rows, learnable=False)],
    "layer_norm": [lambda image, rows: layer.layer_norm(image, epsilon=0.01), lambda image, rows: layer.layer_norm(rows, learnable=False)],
    "simple_img_conv_pool": [lambda image, rows: layer.simple_img_conv_pool(image, filters=3, kernel=[2, 3], pool_kernel=2, activation="tanh"),
                             lambda image, rows: layer.simple_img_conv_pool(image, filters=3, kernel=2, pool_kernel=[3, 2], pool_stride=1, pool_kind="average")],
    "img_conv_group": [lambda image, rows: layer.img_conv_group(image, filters=[3, 5], kernel=3, pool_kernel=2, batch_norm=True),
                       lambda image, rows: layer.img_conv_group(image, filters=[5], pool_kernel=[2, 3], pool_stride=[1, 2], activation="")],
    "residual_block": [lambda image, rows: layer.residual_block(image, filters=CHANNELS), lambda image, rows: layer.residual_block(image, filters=3, stride=2),
                       lambda image, rows: layer.residual_block(image, filters=2, stride=2, bottleneck=True),
                       lambda image, rows: layer.residual_block(image, filters=1, bottleneck=True)],
})  # fmt: skip
for each in ("mean", "sum", "max", "min"):
    CASES[each] = [
        lambda image, rows, each=each: getattr(layer, each)(image, axes=[1, 2]),
        lambda image, rows, each=each: getattr(layer, each)(image, axis=1, keep_dimensions=True),
        lambda image, rows, each=each: getattr(layer, each)(image, axis=2),
        lambda image, rows, each=each: layer.tanh(getattr(layer, each)(image, axis=-1)),
        lambda image, rows, each=each: getattr(layer, each)(rows, axis=1),
    ]


def other(image):
    """An image of another width that no layer of images has made: its channels are last in the file, too."""
    return layer.transpose(layer.data("other", tenon.data_type.dense_array([CHANNELS, HEIGHT, WIDTH])), axes=[0, 2, 3, 1])


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
