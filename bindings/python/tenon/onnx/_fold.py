"""Nodes whose inputs are constant: what exporters write to compute shapes and to lay out weights.

A file decides what is computed while it is read, so operators come from a list, and the elements of a result are counted
before it is computed. SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from tenon.onnx import _samples
from tenon.onnx._graph import Node
from tenon.onnx._values import Array, Refusal

_ELEMENTS, _TIMES = 2**23, 8  # that may be computed: a number, and so many times those that the file has
_PRODUCTS = 1024  # multiplications that count as an element
_STEPS = 64  # elements that a step of an operator counts whose reference is a loop of Python
Count = Callable[[Node, Sequence[Array]], int]


class Budget:
    """How many elements the constants of a graph may have in all: results are as large as the file, not larger."""

    def __init__(self, stored: int) -> None:
        self._most = self._left = _ELEMENTS + _TIMES * stored

    def add(self, stored: int) -> None:
        """Adds what more elements of the file allow."""
        self._most, self._left = self._most + _TIMES * stored, self._left + _TIMES * stored

    def take(self, elements: int) -> None:
        """Refuses a result that is too large, before it is computed."""
        if elements > self._left:
            raise Refusal(
                f"its inputs are constant, and its result of {elements} elements is too large to be computed: at most "
                f"{self._most} are, by all nodes together"
            )
        self._left -= elements


def _first(node: Node, given: Sequence[Array]) -> int:
    return given[0].size


def _scatter(node: Node, given: Sequence[Array]) -> int:
    return given[0].size + given[2].size + _STEPS * given[1].size


def _places(node: Node, given: Sequence[Array]) -> int:
    return given[0].size * max(1, given[0].ndim)


def _quantized(node: Node, given: Sequence[Array]) -> int:
    return 4 * given[0].size


def _along(node: Node, numbers: Array, like: Array) -> Array:
    """Returns scales or zero points for each element: one for all, one along an axis, or one for each block of it."""
    axis, block = int(node.get("axis", 1)), int(node.get("block_size", 0))
    if numbers.size == 1:
        return numbers.reshape(())
    if block:
        if not 0 < block <= like.shape[axis] or numbers.shape[axis] != -(-like.shape[axis] // block):
            raise Refusal(f"block_size is {block} for scales of shape {list(numbers.shape)}, numbers of {list(like.shape)}")
        return numbers.repeat(block, axis).take(np.arange(like.shape[axis]), axis)
    return numbers.reshape([-1 if place == axis % like.ndim else 1 for place in range(like.ndim)])


def _dequantize(node: Node, given: Sequence[Array]) -> Array:
    numbers, scale, *zero = given
    shift = _along(node, zero[0].astype(np.float32), numbers) if zero else np.float32(0)
    return (numbers.astype(np.float32) - shift) * _along(node, scale.astype(np.float32), numbers)


def _quantize(node: Node, given: Sequence[Array]) -> Array:
    numbers, scale, *zero = given
    stated = onnx.helper.tensor_dtype_to_np_dtype(int(node.get("output_dtype", 0)) or onnx.TensorProto.UINT8)
    dtype = zero[0].dtype if zero else stated
    if dtype.kind not in "iu":
        raise Refusal(f"quantizes to {dtype}; integers are understood")
    shift = _along(node, zero[0].astype(np.float32), numbers) if zero else np.float32(0)
    rounded = np.round(numbers.astype(np.float32) / _along(node, scale.astype(np.float32), numbers)) + shift
    return np.clip(rounded, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)


# Operators that the reference computes in some of their versions only.
_OWN = {"DequantizeLinear": _dequantize, "QuantizeLinear": _quantize}


def _split(node: Node, given: Sequence[Array]) -> int:
    if node.get("num_outputs", len(node.outputs)) != len(node.outputs):
        raise Refusal(f"num_outputs is {node.get('num_outputs')}; the node has {len(node.outputs)}")
    return given[0].size


def _broadcast(node: Node, given: Sequence[Array]) -> int:
    return math.prod(np.broadcast_shapes(*(each.shape for each in given))) * max(1, len(given) - 1)


def _concat(node: Node, given: Sequence[Array]) -> int:
    return sum(each.size for each in given)


def _gather(node: Node, given: Sequence[Array]) -> int:
    data, places = given[:2]
    return int(data.size // max(1, data.shape[int(node.get("axis", 0))]) * places.size)


def _of_shape(node: Node, given: Sequence[Array]) -> int:
    return math.prod(_sizes(given[0]))


def _expand(node: Node, given: Sequence[Array]) -> int:
    return math.prod(np.broadcast_shapes(given[0].shape, tuple(_sizes(given[1]))))


def _tile(node: Node, given: Sequence[Array]) -> int:
    return given[0].size * math.prod(_sizes(given[1]))


def _range(node: Node, given: Sequence[Array]) -> int:
    start, limit, step = (each.reshape(()).item() for each in given)
    return int(max(0, math.ceil((limit - start) / step)))


def _product(node: Node, given: Sequence[Array]) -> int:
    a, b = given
    outer = math.prod(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    rows, columns = (a.shape[-2] if a.ndim > 1 else 1), (b.shape[-1] if b.ndim > 1 else 1)
    return int(outer * rows * columns * (1 + a.shape[-1] // _PRODUCTS))


def _gemm(node: Node, given: Sequence[Array]) -> int:
    a, b = given[:2]
    inner = a.shape[0] if node.get("transA", 0) else a.shape[-1]
    return int(a.size // max(1, inner) * (b.size // max(1, inner)) * (1 + inner // _PRODUCTS))


def _sizes(shape: Array) -> list[int]:
    sizes = [int(each) for each in shape.ravel()]
    if min(sizes, default=0) < 0:
        raise Refusal(f"its inputs are constant, and its sizes are {sizes}")
    return sizes


# The operators that are computed, and the elements that their results and their work count.
_COUNTS: dict[str, Count] = {
    **dict.fromkeys((
        "Abs", "ArgMax", "ArgMin", "Cast", "Ceil", "Cos", "CumSum", "Erf", "Exp", "Flatten", "Floor", "Identity",
        "IsInf", "IsNaN", "Log", "Neg", "Not", "ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin",
        "ReduceLogSum", "ReduceLogSumExp", "ReduceProd", "ReduceSum", "ReduceSumSquare",
        "Relu", "Reciprocal", "Reshape", "Round", "Sigmoid", "Sign", "Sin",
        "Size", "Slice", "Softmax", "Sqrt", "Squeeze", "Tanh", "Transpose", "Trilu", "Unsqueeze"), _first),
    **dict.fromkeys((
        "Add", "And", "Clip", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod",
        "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor"), _broadcast),
    "Concat": _concat, "ConstantOfShape": _of_shape, "DequantizeLinear": _quantized, "Expand": _expand, "EyeLike": _first,
    "GatherElements": lambda node, given: given[1].size, "QuantizeLinear": _quantized,
    "Gather": _gather, "Gemm": _gemm, "MatMul": _product, "NonZero": _places, "Range": _range, "ScatterND": _scatter,
    "Shape": lambda node, given: given[0].ndim, "Split": _split, "Tile": _tile,
}  # fmt: skip


def fold(node: Node, constants: Sequence[Array | None], budget: Budget, spread: dict[str, int]) -> list[Array]:
    """Computes a node whose inputs are constants. Refuses operators that are not in the list, and large results. spread:
    constants that stand for one sample; a result that does is added."""
    given = {name: value for name, value in zip(node.inputs, constants, strict=True) if name and value is not None}
    if node.op != "Constant" and (node.op not in _COUNTS or node.domain):
        raise Refusal("its inputs are constant, and the operator is none of those that are computed")
    if any(each.type in (each.GRAPH, each.GRAPHS) for each in node.proto.attribute):
        raise Refusal("graphs inside of operators are not understood")
    if "sparse_value" in node.attributes:
        raise Refusal("sparse constants are not understood")
    texts = any(value.dtype.kind in "OSTU" for value in given.values()) or node.attributes.get("to") == 8
    if texts and node.op != "Constant":
        raise Refusal("its inputs are constant, and its texts are not understood")
    if node.op == "Cast" and any(_samples.holds(value) for value in given.values()):
        return list(given.values())  # a size is a size, also where the file has it as another type
    if _samples.depends(node, given, spread):
        return _samples.compute(node, given, spread, lambda values: _computed(node, values, budget))
    return _computed(node, given, budget)


def _computed(node: Node, given: dict[str, Array], budget: Budget) -> list[Array]:
    if node.op != "Constant":
        budget.take(_COUNTS[node.op](node, [given[name] for name in node.inputs if name in given]))
    inputs = [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in given]
    outputs = [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in node.outputs if name]
    graph = onnx.helper.make_graph([node.proto], "constant", inputs, outputs)
    opsets = [onnx.helper.make_opsetid("", node.version)]
    try:
        with np.errstate(all="ignore"):
            if node.op in _OWN:
                return [_OWN[node.op](node, [given[name] for name in node.inputs if name in given])]
            results = ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=opsets)).run(None, given)
    except Refusal:
        raise
    except Exception as failure:
        raise Refusal(f"its inputs are constant, but it cannot be computed: {failure}") from failure
    made = iter(results)
    found = [np.asarray(next(made)) if name else np.zeros(0) for name in node.outputs]
    if node.op == "Constant":
        budget.add(sum(each.size for each in found))
    return found
