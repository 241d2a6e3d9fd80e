"""F14: operators of models of others, beside onnxruntime. Each case is a line of docs/reports.md.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import tenon

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

RANDOM = np.random.default_rng(3)


def numbers(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def model(nodes, shape, type=TensorProto.FLOAT, version=18, outputs=("y",), **constants):
    inputs = [helper.make_tensor_value_info("x", type, ["n", *shape])]
    values = [helper.make_empty_tensor_value_info(name) for name in outputs]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "case", inputs, values, tensors)
    opsets = [helper.make_opsetid("", version), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def agrees(made, x):
    expected = runtime.InferenceSession(made.SerializeToString()).run(None, {"x": x})
    read = tenon.onnx.load(made, channels_first=True)
    for output, right in zip(read.outputs, expected, strict=True):
        answer = tenon.infer(output, read, {"x": x})
        assert np.abs(answer.reshape(right.shape) - right).max() <= 1e-5 * max(1, np.abs(right).max())


node = helper.make_node


def test_attention_by_einsum():
    """Attention of Einsum, Softmax and Where, with a mask that is a constant"""
    nodes = [node("Einsum", ["x", "x"], ["s"], equation="btd,bsd->bts"), node("Where", ["mask", "s", "low"], ["m"]),
             node("Softmax", ["m"], ["p"]), node("Einsum", ["p", "x"], ["y"], equation="bts,bsd->btd")]  # fmt: skip
    agrees(model(nodes, [5, 4], mask=np.tril(np.ones((5, 5), bool)), low=np.float32(-1e9)), numbers(3, 5, 4))


def test_two_tables_of_ids():
    """A recommender: columns of ids by Slice and Gather, two tables, their product and a bias by id"""
    nodes = [node("Gather", ["x", "zero"], ["u"], axis=1), node("Gather", ["x", "one"], ["m"], axis=1),
             node("Gather", ["users", "u"], ["a"]), node("Gather", ["movies", "m"], ["b"]), node("Mul", ["a", "b"], ["p"]),
             node("ReduceSum", ["p", "last"], ["s"], keepdims=0), node("Gather", ["bias", "m"], ["c"]),
             node("Add", ["s", "c"], ["y"])]  # fmt: skip
    made = model(nodes, [2], TensorProto.INT64, zero=np.int64(0), one=np.int64(1), users=numbers(6, 4), movies=numbers(9, 4),
                 last=np.int64([-1]), bias=numbers(9))  # fmt: skip
    agrees(made, RANDOM.integers(0, 6, (7, 2)))


def test_bytes_of_pictures():
    """Bytes of pictures, scaled inside of the model, convolved, pooled and normalised by groups"""
    nodes = [node("Cast", ["x"], ["f"], to=TensorProto.FLOAT), node("Div", ["f", "scale"], ["d"]),
             node("Conv", ["d", "w"], ["c"], pads=[1, 1, 1, 1]),
             node("GroupNormalization", ["c", "g", "b"], ["k"], num_groups=2),
             node("HardSwish", ["k"], ["h"]), node("GlobalAveragePool", ["h"], ["y"])]  # fmt: skip
    made = model(nodes, [3, 8, 8], TensorProto.UINT8, version=21, scale=np.float32(255), w=numbers(4, 3, 3, 3), g=numbers(4),
                 b=numbers(4))  # fmt: skip
    agrees(made, RANDOM.integers(0, 256, (2, 3, 8, 8)).astype(np.uint8))


def test_larger_pictures():
    """Super resolution: DepthToSpace in either order, and a linear Resize"""
    for mode in ("DCR", "CRD"):
        nodes = [node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), node("DepthToSpace", ["c"], ["d"], blocksize=2, mode=mode),
                 node("Resize", ["d", "", "s"], ["y"], mode="linear", coordinate_transformation_mode="half_pixel")]  # fmt: skip
        agrees(model(nodes, [3, 5, 6], w=numbers(8, 3, 3, 3), s=np.float32([1, 1, 2, 2])), numbers(2, 3, 5, 6))


def test_softmax_of_old_versions():
    """Softmax of version 11 over the axes from 1 on, and LogSoftmax of version 13 over one"""
    for version, axis in ((11, 1), (11, 2), (13, 1), (13, -1)):
        nodes = [node("Softmax", ["x"], ["p"], axis=axis), node("LogSoftmax", ["x"], ["y"], axis=axis)]
        agrees(model(nodes, [3, 4], version=version, outputs=("p", "y")), numbers(2, 3, 4))


def test_sizes_that_fold_away():
    """Tile, Expand and a Reshape by sizes that the graph computes of Shape"""
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "first"], ["n"]), node("Concat", ["n", "rest"], ["to"], axis=0),
             node("Expand", ["token", "to"], ["t"]), node("Concat", ["t", "x"], ["j"], axis=1),
             node("Tile", ["j", "times"], ["w"]), node("Reshape", ["w", "flat"], ["y"])]  # fmt: skip
    agrees(model(nodes, [3, 2], first=np.int64([0]), rest=np.int64([1, 2]), token=numbers(1, 1, 2), times=np.int64([1, 1, 2]),
                 flat=np.int64([0, -1])), numbers(4, 3, 2))  # fmt: skip


def test_norms_and_places():
    """ReduceL2 with a floor, ArgMax, ReduceLogSumExp, Ceil, Round and Sign"""
    nodes = [node("ReduceL2", ["x", "last"], ["l"]), node("Max", ["l", "floor"], ["f"]), node("Div", ["x", "f"], ["u"]),
             node("ArgMax", ["u"], ["place"], axis=-1), node("ReduceLogSumExp", ["x", "last"], ["e"], keepdims=0),
             node("Ceil", ["x"], ["c"]), node("Round", ["x"], ["r"]), node("Sign", ["x"], ["g"]),
             node("Add", ["c", "r"], ["a"]), node("Mul", ["a", "g"], ["y"])]  # fmt: skip
    agrees(model(nodes, [6], last=np.int64([-1]), floor=np.float32(1e-6), outputs=("place", "e", "y")), numbers(5, 6))


def test_quantized_weights():
    """Weights of 8 bits with a scale for each channel, and rounded values between"""
    nodes = [node("DequantizeLinear", ["q", "s"], ["w"], axis=1), node("MatMul", ["x", "w"], ["m"]),
             node("QuantizeLinear", ["m", "t", "z"], ["i"]), node("DequantizeLinear", ["i", "t", "z"], ["y"])]  # fmt: skip
    made = model(nodes, [4], q=RANDOM.integers(-127, 128, (4, 3)).astype(np.int8), s=np.float32([0.02, 0.01, 0.03]),
                 t=np.float32(0.1), z=np.uint8(128))  # fmt: skip
    agrees(made, numbers(6, 4))


@pytest.mark.parametrize("op, domain, words", [
    ("TreeEnsembleClassifier", "ai.onnx.ml", "onnxruntime runs it"), ("SVMClassifier", "ai.onnx.ml", "LogisticRegression"),
    ("QLinearMatMul", "", "QuantFormat.QDQ"), ("NonZero", "", "depends on values"),
    ("Attention", "com.microsoft", "optimizes")])  # fmt: skip
def test_what_is_not_read(op, domain, words):
    """Forests, SVC, products of integers, sizes that depend on values and fused operators: node, reason, what works"""
    made = model([node(op, ["x"], ["y"], name="here", domain=domain)], [4])
    with pytest.raises(tenon.error.UnsupportedError, match=rf'node "here" \({op}\): unknown operator.*: .*{words}'):
        tenon.onnx.load(made)
