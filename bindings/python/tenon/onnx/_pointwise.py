"""Operators that work element by element. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from onnx import TensorProto

from tenon.onnx._build import Build, Made, Operator
from tenon.onnx._graph import Node
from tenon.onnx._values import Array, Refusal, Value

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


_FORMULAS = {
    "Ceil": "-floor(-x)", "Cosh": "0.5 * (exp(x) + exp(-x))", "Sinh": "0.5 * (expm1(x) - expm1(-x))",
    "Tan": "sin(x) / cos(x)",
}  # fmt: skip


def _of_formula(formula: str) -> Operator:
    """Returns the reader of a function that no layer is: of a formula of x."""

    def make(build: Build, node: Node) -> Made:
        value = build.value(node)
        return value.like(build.formula(node, formula, [value.layer]))

    return make


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


_TRUNCATED = "where({0} < 0, -floor(-{0}), floor({0}))"


def _cast(build: Build, node: Node) -> Made:
    to = TensorProto.DataType.Name(int(node.get("to", 0))) if node.get("to") in TensorProto.DataType.values() else "?"
    for name in ("saturate", "round_mode"):  # of floats of 8 bits
        node.get(name)
    value = build.value(node)
    if to in ("FLOAT", "FLOAT16", "DOUBLE", "BFLOAT16"):
        integers = value.layer.dtype.kind in "iub"
        return replace(_scaled(build, node, value, 1.0, 0.0) if integers else value, kind="float")
    if to == "BOOL":
        kept = value.kind == "bool"
        return replace(value.like(value.layer if kept else build.formula(node, "x != 0", [value.layer])), kind="bool")
    if to.lstrip("U") not in ("INT8", "INT16", "INT32", "INT64"):
        raise Refusal(f"casts to element type {node.get('to')}, {to}; floats, integers and truth values are understood")
    if value.kind == "float":
        value = value.like(build.formula(node, _TRUNCATED.format("x"), [value.layer]))
    return replace(value, kind="int")


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
    shaped = value.broadcast(numbers)
    names = [name for name in node.inputs if name in build.constants]
    other = build.fixed(node, value.layer, shaped, names[0] if len(names) == 1 else "")
    return value.like(build.layer(node, type, [value.layer, other] if first else [other, value.layer]))


def aligned(build: Build, node: Node, a: Value, b: Value) -> tuple[Value, Value]:
    """Returns two values with as many dimensions and the samples at the same place, by NumPy's rules of broadcasting."""
    rank = max(a.rank, b.rank)
    if rank - a.rank + a.samples != rank - b.rank + b.samples:
        raise Refusal(f"its inputs {a.text} and {b.text} have the samples in different dimensions")
    if a.flat != b.flat or (a.flat and a.inner != b.inner) or a.rank != b.rank:
        a, b = raised(build, node, a, rank), raised(build, node, b, rank)
    return a, Value(build.ordered(node, b, a.order), a.order, b.flat, b.samples, b.kind)


def raised(build: Build, node: Node, value: Value, rank: int) -> Value:
    """Returns a value that is not flat with more dimensions before its own."""
    value, before = build.unflattened(node, value), rank - value.rank
    if before <= 0:
        return value
    reshaped = build.layer(node, "reshape", [value.layer], {"shape": [1] * before + list(value.sizes)}, ".rank")
    order = (0, *range(1, before + 1), *(axis + before for axis in value.order[1:]))
    return Value(reshaped, order, samples=value.samples + before, kind=value.kind)


def _joined(build: Build, node: Node, type: str, a: Value, b: Value) -> Value:
    a, b = aligned(build, node, a, b)
    return a.like(build.layer(node, type, [a.layer, b.layer]))


def with_constant(build: Build, node: Node, type: str, value: Value, numbers: Array, first: bool) -> Value:
    """Returns value op numbers, or numbers op value where the value is not the first."""
    if numbers.size == 1 and numbers.ndim <= value.rank:
        return _with_number(build, node, type, value, float(numbers.reshape(())), first)
    if numbers.ndim > value.rank:
        value = raised(build, node, value, numbers.ndim)
    fits = value.flat and numbers.size > 1 and numbers.shape[-1] not in (1, value.dims[-1])
    return _with_numbers(build, node, type, build.unflattened(node, value) if fits else value, numbers, first)


def binary(type: str) -> Operator:
    """Returns the reader of an operator of two operands, one of which may be constant."""

    def make(build: Build, node: Node) -> Made:
        for number in (0, 1):
            if build.is_constant(node, number):
                value = build.value(node, 1 - number)
                return with_constant(build, node, type, value, build.numbers(node, number, value), number == 1)
        return _joined(build, node, type, build.value(node, 0), build.value(node, 1))

    return make


def _div(build: Build, node: Node) -> Made:
    quotient = _DIVIDE(build, node)
    value = quotient[0] if isinstance(quotient, list) else quotient
    if all(_is_whole(build, name) for name in node.inputs):
        return value.like(build.formula(node, _TRUNCATED.format("x"), [value.layer], ".whole"))
    return value


def _is_whole(build: Build, name: str) -> bool:
    return build.constants[name].dtype.kind in "iu" if name in build.constants else build.values[name].kind == "int"


def _mod(build: Build, node: Node) -> Made:
    part = "x - y * where(x / y < 0, -floor(-x / y), floor(x / y))" if node.get("fmod", 0) else "x - y * floor(x / y)"
    like = build.value(node, 1 if build.is_constant(node, 0) else 0)
    a, b = aligned(build, node, build.operand(node, 0, like), build.operand(node, 1, like))
    return a.like(build.formula(node, part, [a.layer, b.layer]))


_DIVIDE = binary("div")


def _variadic(type: str, function: Callable[[Array, Array], Array]) -> Operator:
    """Returns the reader of an operator of any number of operands, of which some may be constants."""

    def make(build: Build, node: Node) -> Made:
        places = range(len(node.inputs))
        constants = [place for place in places if build.is_constant(node, place)]
        first, *others = [build.value(node, place) for place in places if not build.is_constant(node, place)]
        for each in others:
            first = _joined(build, node, type, first, each)
        numbers = [build.numbers(node, place, first) for place in constants]
        return with_constant(build, node, type, first, reduce(function, numbers), True) if numbers else first

    return make


OPERATORS: dict[str, Operator] = {
    **{op: _unary(op.lower()) for op in ("Relu", "Sigmoid", "Tanh", "Softplus", "Softsign", "Mish", "Exp", "Log", "Sqrt",
                                         "Abs", "Reciprocal", "Erf", "Sin", "Cos", "Floor", "Round", "Sign")},
    **{op: binary(op.lower()) for op in ("Add", "Sub", "Mul", "Pow")},
    **{op: _of_formula(formula) for op, formula in _FORMULAS.items()},
    "Div": _div, "Mod": _mod,
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
