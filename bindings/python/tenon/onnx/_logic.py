"""Comparisons, truth values, and choices by them. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from tenon.onnx._build import Build, Made, Operator
from tenon.onnx._graph import Node
from tenon.onnx._pointwise import aligned
from tenon.onnx._values import Refusal, Value

_COMPARISONS = {"Equal": "equal", "Greater": "greater", "GreaterOrEqual": "greater_equal", "Less": "less",
                "LessOrEqual": "less_equal"}  # fmt: skip
_JOINS = {"And": "logical_and", "Or": "logical_or", "Xor": "logical_xor"}
TRUTHS = (*_COMPARISONS, *_JOINS, "IsInf", "IsNaN", "Not")


def _of_two(type: str) -> Operator:
    """Returns the reader of an operator of two operands by a layer that has no parameters for a constant one."""

    def make(build: Build, node: Node) -> Made:
        like = build.value(node, 1 if build.is_constant(node, 0) else 0)
        a, b = aligned(build, node, build.operand(node, 0, like), build.operand(node, 1, like))
        return a.like(build.layer(node, type, [a.layer, b.layer]))

    return make


def _not(build: Build, node: Node) -> Made:
    value = build.value(node)
    return value.like(build.layer(node, "logical_not", [value.layer]))


def _is_nan(build: Build, node: Node) -> Made:
    value = build.value(node)
    return value.like(build.formula(node, "x != x", [value.layer]))


def _is_inf(build: Build, node: Node) -> Made:
    value = build.value(node)
    signs = [
        sign for sign, name in (("x > 3.5e38", "detect_positive"), ("x < -3.5e38", "detect_negative")) if node.get(name, 1)
    ]
    if not signs:
        raise Refusal("detect_positive and detect_negative are 0; one of them must be 1")
    # No number of 32 bits is above the largest finite one but infinity.
    bounds = [sign.replace("3.5e38", "3.4028234e38") for sign in signs]
    return value.like(build.formula(node, " or ".join(f"({bound})" for bound in bounds), [value.layer]))


def _where(build: Build, node: Node) -> Made:
    places = [number for number in range(3) if not build.is_constant(node, number)]
    like = max((build.value(node, number) for number in places), key=lambda value: value.rank)
    values = [build.operand(node, number, like) for number in range(3)]
    first, *rest = values
    for _ in range(2):  # so that each has as many dimensions as the one that has most
        for number, other in enumerate(rest):
            first, rest[number] = aligned(build, node, first, other)
    rest = [aligned(build, node, first, each)[1] for each in rest]
    kinds = {each.kind for each in values[1:]}
    layer = build.layer(node, "where", [first.layer, *(each.layer for each in rest)])
    return Value(layer, first.order, first.flat, first.samples, kinds.pop() if len(kinds) == 1 else "float")


OPERATORS: dict[str, Operator] = {
    **{op: _of_two(type) for op, type in (_COMPARISONS | _JOINS).items()},
    "IsInf": _is_inf, "IsNaN": _is_nan, "Not": _not, "Where": _where,
}  # fmt: skip
