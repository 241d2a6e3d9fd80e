"""Quantized models: weights that are folded, and values that are rounded, beside onnxruntime.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

import tenon
from test_onnx_operators import IMAGE, check, graph, numbers

make = helper.make_node
ROUGH = {"s": np.float32(0.05)}


def rounded(zero, **more):
    nodes = [make("QuantizeLinear", ["x", "s", "z"][: 2 if zero is None else 3], ["q"], **more),
             make("DequantizeLinear", ["q", "s", "z"][: 2 if zero is None else 3], ["y"], **more)]  # fmt: skip
    return nodes, {} if zero is None else {"z": zero}


@pytest.mark.parametrize("zero", [None, np.uint8(120), np.int8(-3), np.int8(0)])
def test_values_are_rounded(zero):
    nodes, given = rounded(zero)
    check(graph(nodes, **ROUGH, **given), {"x": 6 * numbers(3, *IMAGE)})
    halves = np.float32([[0.025, 0.075, -0.025, -0.075, 0.125, 100, -100]])
    check(graph(nodes, [(7,)], s=np.float32(0.05), **given), {"x": halves})


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_values_are_rounded_along_an_axis(axis):
    size = [0, *IMAGE][axis]
    nodes, given = rounded(np.arange(size).astype(np.uint8) + 100, axis=axis)
    check(graph(nodes, s=abs(numbers(size)) + 0.01, **given))


def test_weights_are_folded():
    """By one scale and by one for each channel, in a convolution and a matrix, with rounded values between."""
    random = np.random.default_rng(2)
    kernel, matrix = random.integers(-127, 128, (3, 4, 2, 2)).astype(np.int8), random.integers(0, 256, (60, 2)).astype(np.uint8)
    quantize, same = rounded(np.uint8(128))
    nodes = [*quantize, make("DequantizeLinear", ["k", "ks", "kz"], ["kf"], axis=0),
             make("Conv", ["y", "kf"], ["c"]),
             make("Flatten", ["c"], ["f"]), make("DequantizeLinear", ["m", "ms", "mz"], ["mf"]),
             make("Gemm", ["f", "mf"], ["g"])]  # fmt: skip
    made = graph(nodes, outputs=("g",), k=kernel, ks=np.float32([0.01, 0.02, 0.03]), kz=np.int8([0, 0, 0]), m=matrix,
                 ms=np.float32(0.004), mz=np.uint8(119), s=np.float32(0.05), **same)  # fmt: skip
    parameters = check(made)
    assert parameters.shape("Conv_0.weight") == (3, 2, 2, 4)
    scales = {"q": random.integers(-8, 8, (6, 3)).astype(np.int8), "s": abs(numbers(3, 3)), "z": np.int8(np.ones((3, 3)))}
    blocks = make("DequantizeLinear", ["q", "s", "z"], ["d"], axis=0, block_size=2)
    check(graph([blocks, make("MatMul", ["x", "d"], ["y"])], [(6,)], version=21, **scales))
    floats = numbers(5, 3)
    folded = [make("QuantizeLinear", ["w", "s", "z"], ["q"]), make("DequantizeLinear", ["q", "s", "z"], ["d"]),
              make("MatMul", ["x", "d"], ["y"])]  # fmt: skip
    check(graph(folded, [(5,)], w=floats, s=np.float32(0.02), z=np.int8(1)))


def test_what_is_refused():
    blocks = graph([make("DequantizeLinear", ["q", "s"], ["d"], block_size=3), make("MatMul", ["x", "d"], ["y"])], [(4,)],
                   version=21, q=np.ones((4, 4), np.int8), s=np.ones((4, 3), np.float32))  # fmt: skip
    with pytest.raises(tenon.error.UnsupportedError, match="block_size is 3 for scales of shape"):
        tenon.onnx.load(blocks)
    floats = graph([make("QuantizeLinear", ["x", "s"], ["y"], output_dtype=onnx.TensorProto.FLOAT8E4M3FN)], [(4,)], version=21,
                   s=np.float32(1))  # fmt: skip
    with pytest.raises(tenon.error.UnsupportedError, match="quantizes to float8_e4m3fn; integers are understood"):
        tenon.onnx.load(floats)


@pytest.mark.parametrize("op", ["QLinearMatMul", "QLinearConv", "MatMulInteger", "ConvInteger", "DynamicQuantizeLinear"])
def test_operators_that_compute_in_integers_name_what_works(op):
    model = graph([make(op, ["x", "w"], ["y"], name="product")], [(4,)], version=21, w=np.ones((4, 4), np.int8))
    with pytest.raises(tenon.error.UnsupportedError, match=rf'node "product" \({op}\): unknown operator: .*QuantFormat.QDQ'):
        tenon.onnx.load(model)
