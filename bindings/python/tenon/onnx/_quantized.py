"""Operators of quantized models: weights become floats when the file is read, and values are rounded as the file rounds
them. SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from tenon.onnx._build import Build, Made, Operator
from tenon.onnx._graph import Node
from tenon.onnx._values import Array, Refusal, Value


def _numbers(build: Build, node: Node, number: int, value: Value, what: str) -> Array | None:
    """Returns scales or zero points in the dimensions of the value: one for all, or one along an axis."""
    numbers = build.optional(node, number, what)
    if numbers is None or numbers.size == 1:
        return None if numbers is None else numbers.reshape(())
    axis = int(node.get("axis", 1))
    axis += value.rank if axis < 0 else 0
    if node.get("block_size", 0) or numbers.ndim != 1 or not 0 <= axis < value.rank:
        raise Refusal(f"the {what} has shape {list(numbers.shape)}; one for all or along an axis is understood")
    return numbers.reshape([-1] + [1] * (value.rank - 1 - axis))


def _range(node: Node, zero: Array | None) -> tuple[int, int]:
    stated = int(node.get("output_dtype", 0))
    dtype = zero.dtype if zero is not None else helper.tensor_dtype_to_np_dtype(stated or TensorProto.UINT8)
    if dtype.kind not in "iu":
        raise Refusal(f"quantizes to {dtype}; integers are understood")
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _with(build: Build, node: Node, value: Value, formula: str, scale: Array, zero: Array | None) -> Value:
    """Returns a formula of a value x, its scale y and its zero point z."""
    value = build.unflattened(node, value)
    if scale.ndim == 0 and (zero is None or zero.ndim == 0):
        text = formula.replace("y", repr(float(np.float32(scale)))).replace("z", f"({0.0 if zero is None else float(zero)})")
        return value.like(build.formula(node, text, [value.layer]))
    zero = np.zeros(()) if zero is None else zero
    layers = [build.fixed(node, value.layer, value.broadcast(np.asarray(each, np.float32))) for each in (scale, zero)]
    return value.like(build.formula(node, formula, [value.layer, *layers]))


def _quantize(build: Build, node: Node) -> Made:
    value = build.value(node)
    for name in ("saturate", "precision"):  # of floats of 8 bits
        node.get(name)
    scale, zero = _numbers(build, node, 1, value, "scale"), _numbers(build, node, 2, value, "zero point")
    if scale is None:
        raise Refusal("the scale, input 1, is missing")
    stated = build.optional(node, 2, "zero point")
    low, high = _range(node, stated)
    return _with(build, node, value, f"clip(round(x / y) + z, {low}, {high})", scale, zero)


def _dequantize(build: Build, node: Node) -> Made:
    value = build.value(node)
    node.get("output_dtype")
    scale, zero = _numbers(build, node, 1, value, "scale"), _numbers(build, node, 2, value, "zero point")
    if scale is None:
        raise Refusal("the scale, input 1, is missing")
    return _with(build, node, value, "(x - z) * y", scale, zero)


OPERATORS: dict[str, Operator] = {"DequantizeLinear": _dequantize, "QuantizeLinear": _quantize}
