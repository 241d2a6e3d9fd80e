"""Operators on vectors, and normalisations. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import math

import numpy as np

from tenon._model.layer import Layer
from tenon.onnx._build import Build, Made, Operator
from tenon.onnx._graph import Node
from tenon.onnx._values import Array, Refusal, Value, channels_last, plain


def _gemm(build: Build, node: Node) -> Made:
    node.require("transA", 0, 0)
    if build.value(node).rank - build.rows > 2:
        raise Refusal(f"its input is {build.value(node).text}; a matrix is understood")
    weight = build.constant(node, 1, "matrix")
    if node.get("transB", 0):
        weight = weight.T
    beta = node.get("beta", 1.0)
    bias = build.optional(node, 2, "bias") if beta != 0 else None
    if bias is not None:
        if bias.ndim > 2 or bias.shape[-1:] not in ((), (1,), weight.shape[1:]) or bias.size > max(1, *bias.shape[-1:]):
            raise Refusal(
                f"the bias has shape {list(bias.shape)}; one for each of {weight.shape[1]} columns is understood"
            )
        bias = np.broadcast_to(bias.reshape(-1), weight.shape[1:]) * beta
    return _fc(build, node, build.value(node), weight * node.get("alpha", 1.0), bias)


def _fc(build: Build, node: Node, value: Value, weight: Array, bias: Array | None) -> Value:
    """Returns value weight + bias for a value [samples, columns], or for several such rows of a sample."""
    if value.rank > 2 or value.samples:
        value = build.unflattened(node, value)
        if value.order[-1] != value.rank - 1:
            value = build.as_plain(node, value)
        layer = build.layer(node, "fc", [value.layer], {"size": weight.shape[1], "bias": bias is not None, "axis": -1})
        build.set(layer, weight=weight, bias=bias)
        return value.like(layer)
    if value.rank != 2 or weight.ndim != 2 or value.dims[0] != weight.shape[0]:
        raise Refusal(f"its input {value.text} does not fit a matrix of shape {list(weight.shape)}")
    layer = build.layer(node, "fc", [value.layer], {"size": weight.shape[1], "bias": bias is not None})
    build.set(layer, weight=value.rows(weight), bias=bias)
    return Value(layer, plain(2))


def _matmul(build: Build, node: Node) -> Made:
    if not build.is_constant(node, 1) or build.constant(node, 1, "matrix").ndim != 2:
        return _product(build, node)
    value, weight = build.value(node), build.constant(node, 1, "matrix")
    bias = _bias_after(build, node, weight.shape[1])
    return _fc(build, node, value, weight, bias)


def _product(build: Build, node: Node) -> Value:
    """Returns the product of two values, each a matrix or several in a sample, or of one and a constant."""
    constant = 0 if build.is_constant(node, 0) else 1 if build.is_constant(node, 1) else None
    like = build.value(node, 1 if constant == 0 else 0)
    if constant is not None and like.rank - like.samples < 3:
        raise Refusal(f"its input {like.text} must be a matrix in each sample, or the second input a constant matrix")
    a, b = (build.operand(node, number, like) for number in (0, 1))
    if a.samples != b.samples or a.rank - a.samples < 3 or b.rank - b.samples < 3:
        raise Refusal(
            f"its inputs are {a.text} and {b.text}; the second must be constant, or both a matrix a sample"
        )
    if a.rank != b.rank:
        raise Refusal(f"its inputs {a.text} and {b.text} have different numbers of dimensions")
    several = np.broadcast_shapes(a.dims[:-2], b.dims[:-2])
    layers = [_several(build, node, build.plain(node, each), several) for each in (a, b)]
    return Value(build.layer(node, "matmul", layers), plain(a.rank), samples=a.samples)


def _several(build: Build, node: Node, layer: Layer, several: tuple[int, ...]) -> Layer:
    """Returns matrices as many times as the other factor has them."""
    shape = [*several, *(int(size) for size in layer.shape[-2:])]
    return layer if list(layer.shape[1:]) == shape else build.layer(node, "expand", [layer], {"shape": shape}, ".several")


def _bias_after(build: Build, node: Node, size: int) -> Array | None:
    """Returns the numbers of the addition that follows alone, which then is done."""
    if build.uses[node.outputs[0]] != 1:
        return None
    for each in build.graph.nodes:
        if node.outputs[0] not in each.inputs:
            continue
        other = 1 - each.inputs.index(node.outputs[0])
        if each.op != "Add" or not build.is_constant(each, other):
            return None
        numbers = build.constant(each, other, "bias")
        if numbers.shape != (size,):
            return None
        build.aliases[each.outputs[0]] = node.outputs[0]
        return numbers
    return None


def _batch_norm(build: Build, node: Node) -> Made:
    node.require("training_mode", 0, 0)
    node.require("spatial", 1, 1, neutral=build.value(node).rank == 2)
    if any(name and build.uses[name] for name in node.outputs[1:]):
        raise Refusal("its statistics are used as outputs")
    scale, shift, mean, variance = (
        build.constant(node, number, what) for number, what in enumerate(("scale", "shift", "mean", "variance"), 1)
    )
    attributes = {"epsilon": float(node.get("epsilon", 1e-5)), "momentum": float(node.get("momentum", 0.9))}
    value, layer = _by_channel(build, node, "batch_norm", attributes)
    build.set(layer, scale=scale, shift=shift, moving_mean=mean, moving_variance=variance)
    return value


def _by_channel(build: Build, node: Node, type: str, attributes: dict[str, float]) -> tuple[Value, Layer]:
    value = build.value(node)
    given = build.image(node) if value.rank > 2 else build.plain(node, value)
    layer = build.layer(node, type, [given], attributes)
    return Value(layer, channels_last(value.rank)), layer


def _instance_norm(build: Build, node: Node) -> Made:
    if build.value(node).rank < 3:
        raise Refusal(f"needs images; its input is {build.value(node).text}")
    value, layer = _by_channel(build, node, "instance_norm", {"epsilon": float(node.get("epsilon", 1e-5))})
    build.set(layer, scale=build.constant(node, 1, "scale"), shift=build.constant(node, 2, "shift"))
    return value


def _group_norm(build: Build, node: Node) -> Made:
    node.get("stash_type")
    attributes = {"epsilon": float(node.get("epsilon", 1e-5)), "groups": int(node.get("num_groups", 0))}
    value, layer = _by_channel(build, node, "group_norm", attributes)
    numbers = [build.constant(node, number, what) for number, what in ((1, "scale"), (2, "shift"))]
    if node.version < 21:  # one for each group
        numbers = [each.repeat(value.dims[0] // max(1, each.size)) for each in numbers]
    build.set(layer, scale=numbers[0], shift=numbers[1])
    return value


def _layer_norm(build: Build, node: Node) -> Made:
    value = build.value(node)
    node.get("stash_type")
    if any(name and build.uses[name] for name in node.outputs[1:]):
        raise Refusal("its statistics are used as outputs")
    axis = value.standard(int(node.get("axis", -1)))
    if axis < 1 or value.samples == value.rank - 1 or math.prod(value.dims[axis - 1 : -1]) != 1:
        raise Refusal(f"axis is {node.get('axis')} of {value.text}; only the last dimension is understood")
    if value.flat or value.order[-1] != value.rank - 1:
        value = build.as_plain(node, value)
    layer = build.layer(node, "layer_norm", [value.layer], {"epsilon": float(node.get("epsilon", 1e-5))})
    scale, shift = build.constant(node, 1, "scale"), build.optional(node, 2, "shift")
    shift = np.zeros_like(scale) if shift is None else shift
    build.set(layer, scale=_last(scale), shift=_last(shift))
    return value.like(layer)


def _last(numbers: Array) -> Array:
    """Returns numbers without dimensions of size 1 before the last."""
    return numbers.reshape(-1) if numbers.size == numbers.shape[-1] else numbers


def _lrn(build: Build, node: Node) -> Made:
    size = int(node.get("size"))
    if size % 2 == 0:
        raise Refusal(f"size is {size}; odd ones are understood, since the neighbours of even ones differ")
    attributes = {"size": size, "alpha": float(node.get("alpha", 1e-4)), "beta": float(node.get("beta", 0.75)),
                  "k": float(node.get("bias", 1.0))}  # fmt: skip
    image = build.image(node)
    return Value(build.layer(node, "local_response_norm", [image], attributes), channels_last(len(image.shape)))


def _softmax(type: str) -> Operator:
    def make(build: Build, node: Node) -> Made:
        value = build.value(node)
        if node.version < 13:
            return _softmax_of_rest(build, node, type, value)
        axis = value.standard(int(node.get("axis", -1)))
        if axis < 1:
            raise Refusal(f"axis is {node.get('axis', -1)} for an input {value.text}")
        value = build.unflattened(node, value)
        return value.like(build.layer(node, type, [value.layer], {"axis": value.axis(axis)}))

    return make


def _softmax_of_rest(build: Build, node: Node, type: str, value: Value) -> Value:
    """Returns what older versions compute: over all dimensions from the axis on."""
    axis = int(node.get("axis", 1))
    axis += value.rank if axis < 0 else 0
    if not 0 < axis < value.rank or value.samples:
        raise Refusal(f"axis is {axis} for an input {value.text}")
    value = build.unflattened(node, value)
    long = [number for number in range(axis, value.rank) if value.dims[number - 1] > 1] or [axis]
    if len(long) == 1:
        return value.like(build.layer(node, type, [value.layer], {"axis": value.axis(long[0])}))
    rows = [*value.dims[: axis - 1], math.prod(value.dims[axis - 1 :])]
    layer = build.layer(node, "reshape", [build.plain(node, value)], {"shape": rows}, ".rows")
    layer = build.layer(node, type, [layer], {"axis": -1})
    return Value(build.layer(node, "reshape", [layer], {"shape": list(value.dims)}, ".shape"), plain(value.rank))


OPERATORS: dict[str, Operator] = {
    "BatchNormalization": _batch_norm, "Gemm": _gemm, "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    "LRN": _lrn, "LayerNormalization": _layer_norm, "LogSoftmax": _softmax("log_softmax"), "MatMul": _matmul,
    "Softmax": _softmax("softmax"),
}  # fmt: skip
