"""Reductions of dimensions, and what counts along one. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from typing import Any

from tenon.onnx._build import Build, Made, Operator
from tenon.onnx._graph import Node
from tenon.onnx._shapes import axis_of
from tenon.onnx._values import Refusal


def _reduction(type: str, alone: str = "", before: str = "", after: str = "", **attributes: Any) -> Operator:
    """Returns the reader of a reduction by a layer. before, after: formulas of each element and of each result; alone: of
    an element that is reduced with no other."""

    def make(build: Build, node: Node) -> Made:
        value = build.unflattened(node, build.value(node))
        axes = build.integers(node, 1, "axes")
        empty, keep = node.flag("noop_with_empty_axes", 0), node.flag("keepdims", 1)
        if not axes and empty:
            return value.like(build.formula(node, alone, [value.layer])) if alone else value
        if before:
            value = value.like(build.formula(node, before, [value.layer], ".element"))
        if not axes:
            raise Refusal("reduces all dimensions, the samples, too")
        chosen = {axis_of(value, axis) for axis in axes}
        places = {"axes": [value.axis(axis) for axis in sorted(chosen)], "keep_dimensions": keep}
        layer = build.layer(node, type, [value.layer], {**places, **attributes})
        if after:
            layer = build.formula(node, after, [layer], ".result")
        return value.like(layer) if keep else value.without(layer, chosen)

    return make


def _place(type: str) -> Operator:
    """Returns the reader of an operator that finds the place of an element along a dimension."""

    def make(build: Build, node: Node) -> Made:
        value = build.unflattened(node, build.value(node))
        axis = axis_of(value, int(node.get("axis", 0)))
        node.require("select_last_index", 0, 0, neutral=value.dims[axis - 1] == 1)
        layer = build.layer(node, type, [value.layer], {"axis": value.axis(axis)})
        if not node.flag("keepdims", 1):
            return value.without(layer, {axis})
        sizes = [1 if i == value.axis(axis) else size for i, size in enumerate(value.sizes, 1)]
        return value.like(build.layer(node, "reshape", [layer], {"shape": sizes}, ".kept"))

    return make


def _cumsum(build: Build, node: Node) -> Made:
    value = build.unflattened(node, build.value(node))
    axis = axis_of(value, int(build.constant(node, 1, "axis").reshape(())))
    attributes = {
        "axis": value.axis(axis),
        "exclusive": node.flag("exclusive", 0),
        "reverse": node.flag("reverse", 0),
    }
    return value.like(build.layer(node, "cumsum", [value.layer], attributes))


OPERATORS: dict[str, Operator] = {
    "ArgMax": _place("argmax"), "ArgMin": _place("argmin"), "CumSum": _cumsum,
    "ReduceL1": _reduction("norm", "abs(x)", order=1), "ReduceL2": _reduction("norm", "abs(x)", order=2),
    "ReduceLogSum": _reduction("sum", "log(x)", after="log(x)"), "ReduceLogSumExp": _reduction("log_sum_exp"),
    "ReduceMax": _reduction("max"), "ReduceMean": _reduction("mean"), "ReduceMin": _reduction("min"),
    "ReduceProd": _reduction("product"), "ReduceSum": _reduction("sum"),
    "ReduceSumSquare": _reduction("sum", "x * x", before="x * x"),
}  # fmt: skip
