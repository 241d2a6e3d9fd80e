"""Operators of ONNX as layers, beside onnxruntime, and those that are refused. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import tenon
from others import close

onnxruntime.set_default_logger_severity(3)
random = np.random.default_rng(0)
IMAGE = (4, 6, 5)


def numbers(*shape):
    return random.normal(size=shape).astype(np.float32)


def graph(nodes, given=(IMAGE,), outputs=("y",), version=18, samples="n", type=TensorProto.FLOAT, **constants):
    """Returns a model of nodes on inputs x, x1, ... and constants."""
    inputs = [helper.make_tensor_value_info(f"x{i or ''}", type, [samples, *each]) for i, each in enumerate(given)]
    made = [helper.make_empty_tensor_value_info(name) for name in outputs]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    opsets = [helper.make_opsetid("", version), helper.make_opsetid("mine", 1)]
    return helper.make_model(
        helper.make_graph(nodes, "test", inputs, made, tensors), opset_imports=opsets, ir_version=8
    )


def check(model, feeds=None, **options):
    """Compares a model with onnxruntime, fed as the file has it."""
    feeds = feeds or {
        each.name: numbers(2, *(dim.dim_value for dim in each.type.tensor_type.shape.dim[1:]))
        for each in model.graph.input
    }
    settings = onnxruntime.SessionOptions()  # its optimizations compute quantized products in integers
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    wanted = onnxruntime.InferenceSession(model.SerializeToString(), settings).run(None, feeds)
    parameters = tenon.onnx.load(model, channels_first=True, **options)
    for got, each in zip(tenon.infer(parameters.outputs, parameters, feeds), wanted, strict=True):
        close(got, each)
    return parameters


def node(op, *inputs, outputs=("y",), **attributes):
    return helper.make_node(op, ["x", *inputs], list(outputs), **attributes)


def ints(*values):
    return np.array(values, np.int64)


def of_channels():
    return {name: abs(numbers(4)) + 0.1 for name in ("scale", "shift", "mean", "variance")}


ONE = [
    (node("Conv", "w", "b", pads=[1, 0, 2, 1], strides=[2, 1]), {"w": numbers(6, 4, 3, 2), "b": numbers(6)}),
    (node("Conv", "w", group=2, dilations=[2, 1]), {"w": numbers(6, 2, 3, 2)}),
    (node("Conv", "w", group=4, auto_pad="SAME_UPPER", strides=[2, 2]), {"w": numbers(8, 1, 3, 2)}),
    (node("Conv", "w", auto_pad="SAME_LOWER", strides=[2, 3]), {"w": numbers(2, 4, 3, 2)}),
    (node("Conv", "w", auto_pad="VALID"), {"w": numbers(2, 4, 3, 2)}),
    (node("ConvTranspose", "w", "b", strides=[2, 3], pads=[1, 0, 0, 1], output_padding=[1, 2], group=2),
     {"w": numbers(4, 3, 3, 2), "b": numbers(6)}),
    (node("ConvTranspose", "w", strides=[2, 2], dilations=[2, 1], output_shape=[13, 10]), {"w": numbers(4, 3, 3, 3)}),
    (node("ConvTranspose", "w", strides=[2, 2], auto_pad="SAME_UPPER"), {"w": numbers(4, 3, 3, 3)}),
    (node("MaxPool", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 1, 0, 0]), {}),
    (node("MaxPool", kernel_shape=[2, 2], strides=[3, 3], ceil_mode=1, dilations=[2, 1]), {}),
    (node("AveragePool", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 1, 0, 0]), {}),
    (node("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1), {}),
    (node("LpPool", kernel_shape=[2, 2], p=3), {}),
    (node("GlobalAveragePool"), {}),
    (node("GlobalMaxPool"), {}),
    (node("BatchNormalization", "scale", "shift", "mean", "variance", epsilon=1e-3), of_channels()),
    (node("InstanceNormalization", "scale", "shift"), {name: of_channels()[name] for name in ("scale", "shift")}),
    (node("LayerNormalization", "scale", "shift", axis=-1), {"scale": numbers(5), "shift": numbers(5)}),
    (node("LRN", size=3, alpha=0.5, beta=0.6, bias=2.0), {}),
    (node("Resize", "", "scales", mode="nearest"), {"scales": np.float32([1, 1, 2, 3])}),
    (node("Resize", "", "", "sizes", mode="linear"), {"sizes": ints(2, 4, 9, 4)}),
    (node("Resize", "", "", "sizes", mode="linear", coordinate_transformation_mode="align_corners"),
     {"sizes": ints(2, 4, 9, 4)}),
    (node("Resize", "", "", "sizes", mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
     {"sizes": ints(2, 4, 4, 7)}),
    (node("Pad", "pads", "value"), {"pads": ints(0, 0, 1, 2, 0, 1, 0, 1), "value": np.float32(3)}),
    (node("Pad", "pads", "", "axes", mode="reflect"), {"pads": ints(1, 2, 3, 0), "axes": ints(2, -1)}),
    (node("Softmax", axis=1), {}),
    (node("LogSoftmax"), {}),
    (node("ReduceMean", "axes"), {"axes": ints(2, 3)}),
    (node("ReduceMax", "axes", keepdims=0), {"axes": ints(1)}),
    (node("ReduceSum", "axes", keepdims=0), {"axes": ints(-1, -2)}),
    (node("ReduceMean", "axes", keepdims=0), {"axes": ints(2)}),
    (node("ReduceMin", "axes", keepdims=0), {"axes": ints(3)}),
    (node("ReduceMax", "axes"), {"axes": ints(2)}),
    (node("ReduceSum", noop_with_empty_axes=1), {}),
    (node("ReduceSum", "axes", noop_with_empty_axes=1, keepdims=0), {"axes": ints(2)}),
    (node("Reshape", "shape"), {"shape": ints(0, 8, -1)}),
    (node("Squeeze", "axes"), {"axes": ints(1)}),
    (node("Unsqueeze", "axes"), {"axes": ints(2, -1)}),
    (node("Transpose", perm=[0, 2, 3, 1]), {}),
    (node("Slice", "starts", "ends", "axes"), {"starts": ints(1, -3), "ends": ints(9, -1), "axes": ints(1, 3)}),
    (node("Split", "parts", outputs=("y", "z"), axis=1), {"parts": ints(1, 3)}),
    (node("PRelu", "slope"), {"slope": numbers(4, 1, 1)}),
    (node("PRelu", "slope"), {"slope": numbers(1)}),
    (node("PRelu", "slope"), {"slope": numbers(6, 1)}),
    (node("PRelu", "slope"), {"slope": numbers(5)}),
    (node("Clip", "low", "high"), {"low": np.float32(-0.5), "high": np.float32(0.7)}),
    (node("Clip", "", "high"), {"high": np.float32(0.7)}),
    (node("Add", "c"), {"c": numbers(4, 1, 1)}),
    (node("Mul", "c"), {"c": numbers(1, 4, 6, 5)}),
    (helper.make_node("Sub", ["c", "x"], ["y"]), {"c": numbers(5)}),
    (helper.make_node("Div", ["c", "x"], ["y"]), {"c": np.float32(2)}),
    (node("Div", "c"), {"c": np.float32([[4]])}),
    (helper.make_node("Pow", ["c", "x"], ["y"]), {"c": np.float32(2)}),
    (node("Pow", "c"), {"c": np.float32(2)}),
    (node("Mul", "x"), {}),
    *((node(op, "c"), {"c": numbers(4, 1, 1)}) for op in ("Max", "Min", "Sum")),
    *((node(op, "c"), {"c": np.float32(0.3)}) for op in ("Max", "Min", "Sum")),
    *((helper.make_node(op, ["c", "x", "d", "x"], ["y"]), {"c": numbers(5), "d": np.float32(0.1)})
      for op in ("Max", "Min", "Sum")),
    (node("Dropout", "rate"), {"rate": np.float32(0.3)}),
    (node("MatMul", "w"), {"w": numbers(5, 3)}),
    (node("Flatten"), {}),
    (node("Concat", "x", axis=3), {}),
    (node("Max", "x", "x"), {}),
    (node("LeakyRelu", alpha=0.2), {}),
    (node("Elu", alpha=0.5), {}),
    (node("HardSigmoid", alpha=0.3, beta=0.4), {}),
    (node("ThresholdedRelu", alpha=0.4), {}),
    (node("Shrink", lambd=0.4, bias=0.4), {}),
    (node("Shrink", lambd=0.4), {}),
    (node("Celu", alpha=0.7), {}),
    *((node(op), {}) for op in ("Relu", "Sigmoid", "Tanh", "Softplus", "Softsign", "Selu", "HardSwish", "Mish", "Exp", "Abs",
                                "Neg", "Reciprocal", "Erf", "Sin", "Cos", "Floor", "Sign", "Identity")),
]  # fmt: skip


@pytest.mark.parametrize("each, constants", ONE, ids=[f"{i}-{each.op_type}" for i, (each, _) in enumerate(ONE)])
def test_one_operator(each, constants):
    sizes = (1, 6, 5) if each.op_type == "Squeeze" else IMAGE
    check(graph([each], [sizes], outputs=list(each.output), samples=2, **constants))


LAYOUTS = {  # of the layer whose value an operator reads: nodes before it, and the sizes that they are fed with
    "channels_last": ([node("MaxPool", kernel_shape=[1, 1], outputs=["v"])], lambda a, b, c: (a, b, c)),
    "transposed": ([node("Transpose", perm=[0, 3, 1, 2], outputs=["v"])], lambda a, b, c: (b, c, a)),
    "reversed": ([node("Transpose", perm=[0, 3, 2, 1], outputs=["v"])], lambda a, b, c: (c, b, a)),
    "unflattened": ([node("MaxPool", kernel_shape=[1, 1], outputs=["p"]), helper.make_node("Flatten", ["p"], ["f"]),
                     helper.make_node("Reshape", ["f", "inner"], ["v"])], lambda a, b, c: (a, b, c)),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("each, constants", ONE, ids=[f"{i}-{each.op_type}" for i, (each, _) in enumerate(ONE)])
def test_one_operator_of_a_value_in_another_layout(each, constants, layout):
    before, fed = LAYOUTS[layout]
    sizes = (1, 6, 5) if each.op_type == "Squeeze" else IMAGE
    reads = onnx.NodeProto()
    reads.CopyFrom(each)
    reads.input[:] = ["v" if name == "x" else name for name in each.input]
    inner = ints(0, *sizes)
    check(graph([*before, reads], [fed(*sizes)], outputs=list(each.output), samples=2, inner=inner, **constants))


def test_operators_of_older_versions():
    check(graph([node("Upsample", "scales")], version=9, scales=np.float32([1, 1, 2, 2])))
    check(graph([node("Clip", min=-0.5, max=0.5)], version=7))
    check(graph([node("Pad", pads=[0, 0, 1, 0, 0, 0, 0, 2], value=1.0)], version=7))
    check(graph([node("Dropout", ratio=0.3)], version=7))
    check(graph([node("Softmax")], [(7,)], version=7))
    check(graph([node("ReduceMean", axes=[2, 3])], version=13))


def test_vectors():
    for attributes in ({}, {"transB": 1, "alpha": 0.5, "beta": 2.0}):
        weight = numbers(3, 7) if attributes else numbers(7, 3)
        check(graph([node("Gemm", "w", "b", **attributes)], [(7,)], w=weight, b=numbers(3)))
    check(graph([node("Gemm", "w")], [(7,)], w=numbers(7, 3)))
    check(
        graph(
            [node("MatMul", "w", outputs=["h"]), helper.make_node("Add", ["b", "h"], ["y"])],
            [(7,)],
            w=numbers(7, 3),
            b=numbers(3),
        )
    )
    check(graph([helper.make_node("MatMul", ["x", "x1"], ["y"])], [(3, 4), (4, 2)]))
    bias = tenon.onnx.load(graph([node("MatMul", "w", outputs=["h"]), helper.make_node("Add", ["h", "b"], ["y"])], [(7,)],
                                 w=numbers(7, 3), b=numbers(3)))  # fmt: skip
    assert [each.type for each in tenon._model.layer.in_order(bias.outputs)] == ["data", "fc"]


def test_values_are_joined():
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum"):
        check(graph([node(op, "x1")], [IMAGE, (4, 1, 1) if op != "Sum" else IMAGE]))
    check(graph([node("Concat", "x1", axis=1)], [IMAGE, (2, 6, 5)]))
    check(graph([node("Concat", "x1", axis=-2)], [IMAGE, (4, 2, 5)]))
    flat = [node("Flatten", outputs=["a"]), helper.make_node("Flatten", ["x1"], ["b"])]
    check(graph([*flat, helper.make_node("Concat", ["a", "b"], ["y"], axis=1)], [IMAGE, IMAGE]))


@pytest.mark.parametrize("after", [
    [helper.make_node("Gemm", ["f", "w"], ["y"])],
    [helper.make_node("Relu", ["f"], ["r"]), helper.make_node("MatMul", ["r", "w"], ["y"])],
    [helper.make_node("BatchNormalization", ["f", "s", "s", "s", "s"], ["r"]), helper.make_node("Gemm", ["r", "w"], ["y"])],
    [helper.make_node("Mul", ["f", "s"], ["r"]), helper.make_node("Gemm", ["r", "w"], ["y"])],
    [helper.make_node("Softmax", ["f"], ["y"])],
    [helper.make_node("Reshape", ["f", "back"], ["r"]), helper.make_node("Relu", ["r"], ["y"])],
])  # fmt: skip
def test_after_a_flatten_columns_are_those_of_the_file(after):
    conv, flatten = node("Conv", "k", outputs=["c"]), helper.make_node("Flatten", ["c"], ["f"])
    check(
        graph(
            [conv, flatten, *after], k=numbers(3, 4, 2, 2), w=numbers(60, 4), s=abs(numbers(60)), back=ints(0, 3, 5, 4)
        )
    )


def test_shapes_that_the_graph_computes():
    """As PyTorch writes x.view(x.size(0), -1), and a resize to twice the size."""
    nodes = [node("Shape", outputs=["s"]), helper.make_node("Gather", ["s", "zero"], ["n"]),
             helper.make_node("Unsqueeze", ["n", "axis"], ["n1"]),
             helper.make_node("Concat", ["n1", "rest"], ["shape"], axis=0),
             node("Conv", "k", outputs=["c"]), helper.make_node("Reshape", ["c", "shape"], ["y"])]  # fmt: skip
    zero = {"zero": np.int64(0), "axis": ints(0), "rest": ints(-1), "k": numbers(3, 4, 2, 2)}
    check(graph(nodes, **zero))
    twice = [node("Shape", outputs=["s"], start=2), helper.make_node("Mul", ["s", "two"], ["space"]),
             node("Shape", outputs=["lead"], end=2), helper.make_node("Concat", ["lead", "space"], ["sizes"], axis=0),
             node("Resize", "", "", "sizes", mode="nearest")]  # fmt: skip
    check(graph(twice, two=ints(2)))
    folded = [helper.make_node("Transpose", ["w"], ["wt"]), node("MatMul", "wt")]
    check(graph(folded, [(7,)], w=numbers(3, 7)))


def test_images_of_one_and_three_dimensions():
    check(graph([node("Conv", "w", pads=[1, 2])], [(4, 9)], w=numbers(2, 4, 3)))
    check(graph([node("MaxPool", kernel_shape=[2, 2, 2])], [(2, 4, 5, 3)]))
    check(graph([node("Conv", "w")], [(2, 4, 5, 3)], w=numbers(2, 2, 3, 2, 1)))


def test_images_are_fed_with_their_channels_last():
    made = tenon.onnx.load(
        graph([node("Conv", "w", outputs=["c"]), helper.make_node("Relu", ["c"], ["y"])], w=numbers(2, 4, 3, 3))
    )
    assert made.outputs[0].data_types["x"].shape == (6, 5, 4)
    # As TensorFlow's exporter writes it: the file takes channels last, and a transposition that moves nothing follows.
    moved = [node("Transpose", outputs=["t"], perm=[0, 3, 1, 2]), helper.make_node("Conv", ["t", "w"], ["y"])]
    kept = tenon.onnx.load(graph(moved, [(6, 5, 4)], w=numbers(2, 4, 3, 3)))
    assert kept.outputs[0].data_types["x"].shape == (6, 5, 4)
    assert [each.type for each in tenon._model.layer.in_order(kept.outputs)] == ["data", "conv"]


def test_everything_that_has_no_counterpart_is_listed():
    nodes = [
        node("Conv", "w", outputs=["c"], name="wide"),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("NonZero", ["r"], ["z"], name="which"),
        helper.make_node("Special", ["r"], ["m"], domain="mine", name="own"),
        helper.make_node("Softmax", ["r"], ["p"], axis=0, name="samples"),
        helper.make_node("MaxPool", ["r"], ["q"], kernel_shape=[9, 9], name="large"),
        helper.make_node("Add", ["q", "z"], ["y"]),
    ]
    with pytest.raises(tenon.error.UnsupportedError) as raised:
        tenon.onnx.load(graph(nodes, outputs=("y", "m", "p"), w=numbers(2, 3, 3, 3)))
    text = str(raised.value)
    assert "unsupported nodes, inputs or outputs: 5; nothing was loaded" in text
    for words in ('"wide" (Conv)', '"which" (NonZero): unknown operator: the size of its result',
                  '"own" (Special): unknown operator of the domain "mine"',
                  '"samples" (Softmax): axis is 0', '"large" (MaxPool)'):  # fmt: skip
        assert words in text


REFUSED = [
    (node("Conv", "x1"), "must be constant|only constants", {}),
    (node("Gemm", "w", transA=1), "transA is 1", {"w": numbers(6, 2)}),
    (node("MaxPool", kernel_shape=[2, 2], outputs=["y", "z"]), "indices", {}),
    (node("Resize", "", "scales", mode="cubic"), "cubic", {"scales": np.float32([1, 1, 2, 2])}),
    (node("Resize", "", "scales", mode="linear", coordinate_transformation_mode="asymmetric"), "asymmetric",
     {"scales": np.float32([1, 1, 2, 2])}),
    *((node("Resize", "", "", "sizes", mode="linear", coordinate_transformation_mode="pytorch_half_pixel", axes=[2, 3]),
       "'pytorch_half_pixel' of the mode linear", {"sizes": ints(*sizes)}) for sizes in ((1, 10), (12, 1), (1, 1), (1, 5))),
    (node("Resize", "", "scales", mode="nearest", nearest_mode="ceil"), "of the mode nearest",
     {"scales": np.float32([1, 1, 0.5, 1])}),
    (node("Reshape", "s"), "the samples must stay a dimension", {"s": ints(4, -1)}),
    (node("Flatten", axis=2), r"is \[4 samples, 30\]; the samples must be a dimension of", {}),
    (node("Concat", "x1", axis=0), "axis 0", {}),
    (node("ReduceMean"), "the samples, too", {}),
    (node("LRN", size=4), "size is 4", {}),
    (node("BatchNormalization", "s", "s", "s", "s", training_mode=1), "training_mode", {"s": numbers(4)}),
    (node("BatchNormalization", "s", "s", "s", "s"), "scale of shape", {"s": numbers(3)}),
    (node("Add", "c"), "do not fit", {"c": numbers(3, 1, 1)}),
    (node("Add", "c"), "differ between samples", {"c": numbers(2, 4, 6, 5)}),
    (node("Relu", alpha=1.0), "attributes that are not understood: alpha", {}),
    (node("Cast", to=TensorProto.STRING), "casts to element type 8, STRING", {}),
]  # fmt: skip


@pytest.mark.parametrize("each, words, constants", REFUSED, ids=[f"{i}-{words}" for i, (_, words, _) in enumerate(REFUSED)])
def test_what_is_refused(each, words, constants):
    model = graph([each], [IMAGE, IMAGE], outputs=list(each.output), **constants)
    with pytest.raises(tenon.error.UnsupportedError, match=words):
        tenon.onnx.load(model)


def test_inputs_and_versions_that_are_refused():
    with pytest.raises(tenon.error.UnsupportedError, match='input "x": has the type object'):
        tenon.onnx.load(graph([node("Identity")], type=TensorProto.STRING))
    with pytest.raises(tenon.error.UnsupportedError, match=r"must be known, and its shape is \[n, height, 3\]"):
        tenon.onnx.load(graph([node("Relu")], [("height", 3)]))
    with pytest.raises(tenon.error.UnsupportedError, match="operators are of version 6"):
        tenon.onnx.load(graph([node("Relu")], version=6))
    with pytest.raises(tenon.error.UnsupportedError, match='output "y": does not depend'):
        tenon.onnx.load(graph([helper.make_node("Relu", ["c"], ["y"])], c=numbers(2)))
