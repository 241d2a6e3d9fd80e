"""Operators that work element by element. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from tenon.onnx._build import Build, Made, Operator
from tenon.onnx._graph import Node
from tenon.onnx._values import Array, Refusal, Value, float32

_SELU = (1.67326319217681884765625, 1.05070102214813232421875)


def _unary(type: str, **renamed: tuple[str, float]) -> Operator:
    """Returns a function of one input. renamed: {attribute of the layer: (that of the operator, its default)}."""

    def make(build: Build, node: Node) -> Made:
        attributes = {name: float(node.get(*given)) for name, given in renamed.items()}
        return _of(build, node, type, attributes)

    return make


def _of(build: Build, node: Node, type: str, attributes: Mapping[str, Any] | None = None) -> Value:
    value = build.value(node)
    return value.like(build.layer(node, type, [value.layer], attributes))


def _gelu(build: Build, node: Node) -> Made:
    return _of(build, node, "gelu", {"approximation": node.get("approximate", "none")})


def _selu(build: Build, node: Node) -> Made:
    for name, number in zip(("alpha", "gamma"), _SELU, strict=True):
        if abs(node.get(name, number) - number) > 1e-4:
            raise Refusal(f"{name} is {node.get(name)}; only {number:.4f} is understood")
    return _of(build, node, "selu")


def _shrink(build: Build, node: Node) -> Made:
    bias, margin = float(node.get("bias", 0.0)), float(node.get("lambd", 0.5))
    if bias not in (0.0, margin):
        raise Refusal(f"bias is {bias}; only 0 and lambd, {margin}, are understood")
    return _of(build, node, "soft_shrink" if bias else "hard_shrink", {"margin": margin})


def _clip(build: Build, node: Node) -> Made:
    bounds = {}
    for number, (name, old) in enumerate((("low", "min"), ("high", "max")), 1):
        given = node.get(old)
        found = build.optional(node, number, old) if given is None else np.asarray(given)
        if found is not None and found.size:
            bounds[name] = float(found.reshape(()))
    bounds = {name: bound for name, bound in bounds.items() if bound != (-np.inf if name == "low" else np.inf)}
    if not bounds:
        return build.value(node)
    return _of(build, node, "clip", bounds)


def _cast(build: Build, node: Node) -> Made:
    floats = {1: "float", 10: "float16", 11: "double", 16: "bfloat16"}
    if node.get("to") not in floats:
        raise Refusal(f"casts to element type {node.get('to')}; only floats are understood")
    for name in ("saturate", "round_mode"):  # of floats of 8 bits
        node.get(name)
    return build.value(node)


def _identity(build: Build, node: Node) -> Made:
    return build.value(node)


def _dropout(build: Build, node: Node) -> Made:
    if any(name and build.uses[name] for name in node.outputs[1:]):
        raise Refusal("its mask is used")
    node.get("seed")
    given = node.get("ratio")
    ratio = build.optional(node, 1, "ratio") if given is None else np.asarray(given)
    rate = 0.5 if ratio is None else float(ratio.reshape(()))
    mode = build.optional(node, 2, "training_mode")
    if mode is not None and bool(mode) and rate != 0:
        raise Refusal("training_mode is set; the model must be one for inference")
    return _of(build, node, "dropout", {"rate": rate}) if 0 < rate < 1 else build.value(node)


def _prelu(build: Build, node: Node) -> Made:
    value, slope = build.value(node), build.constant(node, 1, "slope")
    if slope.ndim > value.rank:
        raise Refusal(f"slope has shape {list(slope.shape)} for {value.text}")
    if slope.size == 1:
        layer = build.layer(node, "prelu", [value.layer], {"shared": True})
        build.set(layer, slope=slope.reshape(1))
        return value.like(layer)
    sizes = (1,) * (value.rank - slope.ndim) + slope.shape
    axes = [axis for axis, size in enumerate(sizes) if size != 1]
    if len(axes) != 1 or axes[0] == 0:
        raise Refusal(f"slope has shape {list(slope.shape)}; one for all or along one dimension is understood")
    value, [axis] = build.unflattened(node, value), axes
    rest = [each for each in range(value.rank) if each != axis]
    order = value.order if value.order[-1] == axis else (*rest, axis)
    layer = build.layer(node, "prelu", [build.ordered(node, value, order)])
    build.set(layer, slope=slope.reshape(-1))
    return Value(layer, order)


def _scaled(build: Build, node: Node, value: Value, scale: float, shift: float) -> Value:
    return value.like(build.layer(node, "scale_shift", [value.layer], {"scale": scale, "shift": shift}))


def _neg(build: Build, node: Node) -> Made:
    return _scaled(build, node, build.value(node), -1.0, 0.0)


def _with_number(build: Build, node: Node, type: str, value: Value, number: float, first: bool) -> Value:
    """Returns value op number, or number op value where the value is not the first."""
    if type == "add":
        return _scaled(build, node, value, 1.0, number)
    if type == "mul":
        return _scaled(build, node, value, number, 0.0)
    if type == "sub":
        return _scaled(build, node, value, 1.0, -number) if first else _scaled(build, node, value, -1.0, number)
    if type == "div" and first:
        return _scaled(build, node, value, 1 / number, 0.0)
    if type == "div":
        inverse = value.like(build.layer(node, "reciprocal", [value.layer], suffix=".reciprocal"))
        return inverse if number == 1 else _scaled(build, node, inverse, number, 0.0)
    if type == "pow" and first:
        return value.like(build.layer(node, "power", [value.layer], {"exponent": number}))
    return _with_numbers(build, node, type, value, np.full((1,) * value.rank, number), first)


def _with_numbers(build: Build, node: Node, type: str, value: Value, numbers: Array, first: bool) -> Value:
    shaped = float32(value.broadcast(numbers))
    names = [name for name in node.inputs if name in build.constants]
    if len(names) == 1 and names[0] in build.graph.learned:
        name = names[0].strip("/").replace("/", ".")
        other = build.named(name, "parameter", [value.layer], {"shape": list(shaped.shape)})
        build.set(other, value=shaped)
    else:
        given = {"shape": list(shaped.shape), "value": shaped.ravel().tolist()}
        other = build.layer(node, "constant", [value.layer], given, ".constant")
    return value.like(build.layer(node, type, [value.layer, other] if first else [other, value.layer]))


def _joined(build: Build, node: Node, type: str, a: Value, b: Value) -> Value:
    if a.rank != b.rank:
        raise Refusal(f"its inputs {a.text} and {b.text} have different numbers of dimensions")
    if a.flat != b.flat or (a.flat and a.inner != b.inner):
        a, b = build.unflattened(node, a), build.unflattened(node, b)
    other = build.ordered(node, b, a.order)
    return a.like(build.layer(node, type, [a.layer, other]))


def _with_constant(build: Build, node: Node, type: str, value: Value, numbers: Array, first: bool) -> Value:
    """Returns value op numbers, or numbers op value where the value is not the first."""
    if numbers.size == 1 and numbers.ndim <= value.rank:
        return _with_number(build, node, type, value, float(numbers.reshape(())), first)
    return _with_numbers(build, node, type, value, numbers, first)


def _binary(type: str) -> Operator:
    def make(build: Build, node: Node) -> Made:
        for number in (0, 1):
            if build.is_constant(node, number):
                value, numbers = build.value(node, 1 - number), build.constant(node, number, "operand")
                return _with_constant(build, node, type, value, numbers, number == 1)
        return _joined(build, node, type, build.value(node, 0), build.value(node, 1))

    return make


def _variadic(type: str, function: Callable[[Array, Array], Array]) -> Operator:
    """Returns the reader of an operator of any number of operands, of which some may be constants."""

    def make(build: Build, node: Node) -> Made:
        places = range(len(node.inputs))
        constants = [build.constant(node, place, "operand") for place in places if build.is_constant(node, place)]
        first, *others = [build.value(node, place) for place in places if not build.is_constant(node, place)]
        for each in others:
            first = _joined(build, node, type, first, each)
        return _with_constant(build, node, type, first, reduce(function, constants), True) if constants else first

    return make


OPERATORS: dict[str, Operator] = {
    **{op: _unary(op.lower()) for op in ("Relu", "Sigmoid", "Tanh", "Softplus", "Softsign", "Mish", "Exp", "Log", "Sqrt",
                                         "Abs", "Reciprocal", "Erf", "Sin", "Cos", "Floor", "Sign")},
    **{op: _binary(op.lower()) for op in ("Add", "Sub", "Mul", "Div", "Pow")},
    "Sum": _variadic("add", np.add), "Max": _variadic("maximum", np.maximum), "Min": _variadic("minimum", np.minimum),
    "LeakyRelu": _unary("leaky_relu", slope=("alpha", 0.01)),
    "Elu": _unary("elu", alpha=("alpha", 1.0)),
    "Celu": _unary("celu", alpha=("alpha", 1.0)),
    "HardSigmoid": _unary("hard_sigmoid", slope=("alpha", 0.2), shift=("beta", 0.5)),
    "HardSwish": _unary("hard_swish"),
    "ThresholdedRelu": _unary("threshold", threshold=("alpha", 1.0)),
    "Gelu": _gelu, "Selu": _selu, "Shrink": _shrink, "Clip": _clip, "PRelu": _prelu, "Neg": _neg,
    "Cast": _cast, "Dropout": _dropout, "Identity": _identity,
}  # fmt: skip
