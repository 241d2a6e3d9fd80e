"""Values whose samples are one dimension with others, as [samples * heads, steps, features] or the rows of all samples: they
are read with these dimensions apart, by operators to which that makes no difference. SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tenon.onnx import _logic, _pointwise, _quantized
from tenon.onnx._build import Build, Operator
from tenon.onnx._graph import Node
from tenon.onnx._values import Refusal, Value

_BY_ELEMENT = {*_pointwise.OPERATORS, *_logic.OPERATORS, *_quantized.OPERATORS}
_ALONG_AN_AXIS = {"Concat": 0, "LayerNormalization": -1, "LogSoftmax": -1, "Softmax": -1, "Split": 0}
_OPERATORS = {*_BY_ELEMENT, *_ALONG_AN_AXIS, "Gemm", "MatMul", "Transpose"} - {"PRelu"}
OF_ROWS = {"Flatten", "Reshape"}  # these understand such values themselves


def apart(build: Build, node: Node, operator: Operator) -> list[Value]:
    """Returns the results of a node of such values."""
    names = [name for name in node.inputs if name in build.values]
    first = build.values[names[0]]
    more, place = sum(first.merged), first.samples - first.merged[0]
    if node.op not in _OPERATORS or (node.version < 13 and "Softmax" in node.op):
        raise Refusal(f"reads {first.text}; the samples must be a dimension of their own")
    for name in names:
        value = build.values[name]
        if (value.merged, value.fused, value.rank - value.samples) != (first.merged, first.fused, first.rank - first.samples):
            raise Refusal(f"its inputs are {first.text} and {value.text}")
    inputs = [
        _constant(build, name, first) if name in build.constants and node.op in _BY_ELEMENT else name for name in node.inputs
    ]
    shown = replace(node, inputs=inputs, attributes=_attributes(node, first.rank - more, more, place), read=node.read)
    before = {name: build.values[name] for name in names}
    build.values.update({name: replace(value, merged=(0, 0)) for name, value in before.items()})
    build.rows = more
    try:
        results = operator(build, shown)
    finally:
        build.values.update(before)
        build.rows = 0
    return [replace(value, merged=first.merged) for value in (results if isinstance(results, list) else [results])]


def _constant(build: Build, name: str, value: Value) -> str:
    """Returns the name of a constant that has the dimensions of the rows, too."""
    numbers = build.constants[name]
    more = sum(value.merged)
    place = numbers.ndim - value.rank + more + value.samples - value.merged[0]
    if place < 0:
        return name
    if numbers.shape[place] != 1:
        raise Refusal(f"numbers of shape {list(numbers.shape)} differ between samples, {value.text}")
    shown = f"{name}.rows"
    shape = (*numbers.shape[: place + 1], *(1,) * more, *numbers.shape[place + 1 :])
    build.constants[shown] = numbers.reshape(shape)
    return shown


def _attributes(node: Node, rank: int, more: int, place: int) -> dict[str, Any]:
    """Returns the attributes with dimensions counted as those of the value whose rows, `more` dimensions, are apart."""

    def shifted(axis: int) -> int:
        axis = axis + rank if axis < 0 else axis
        return axis + more if axis > place else axis

    attributes = dict(node.attributes)
    if node.op in _ALONG_AN_AXIS:
        attributes["axis"] = shifted(int(attributes.get("axis", _ALONG_AN_AXIS[node.op])))
    if node.op == "Transpose":
        perm = [int(axis) for axis in attributes.get("perm") or reversed(range(rank))]
        rows = range(place, place + more + 1)
        attributes["perm"] = [each for axis in perm for each in (rows if axis == place else [shifted(axis)])]
    return attributes
