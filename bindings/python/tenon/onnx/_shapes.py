"""Operators that move elements or reduce dimensions. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenon.onnx._build import Build, Made, Operator
from tenon.onnx._graph import SAMPLES, Node
from tenon.onnx._values import Refusal, Value, plain


def _axis(number: int, rank: int, value: Value) -> int:
    axis = number + rank if number < 0 else number
    if not 0 < axis < rank:
        raise Refusal(f"axis {number} of {value.text}; the dimensions of a sample begin with 1")
    return axis


def _flatten(build: Build, node: Node) -> Made:
    value = build.value(node)
    axis = int(node.get("axis", 1))
    axis += value.rank if axis < 0 else 0
    if not 0 < axis <= value.rank or math.prod(value.dims[: axis - 1]) != 1:
        raise Refusal(f"axis is {node.get('axis')} of {value.text}; only 1 is understood")
    if axis == value.rank:  # of samples of one number
        return reshaped(build, node, value, (1,))
    return value if value.rank == 2 else Value(value.layer, value.order, True)


def _reshape(build: Build, node: Node) -> Made:
    value = build.value(node)
    target = build.integers(node, 1, "shape")
    if target is None:
        raise Refusal("the shape is missing")
    node.require("allowzero", 0, 0, neutral=0 not in target)
    return reshaped(build, node, value, _target(build, value, target))


def _target(build: Build, value: Value, target: list[int]) -> tuple[int, ...]:
    """Returns the sizes of a sample after Reshape. The first size must be that of the samples."""
    elements = math.prod(value.dims)
    if not target or (target[0] not in (0, -1, SAMPLES) and target[0] != build.graph.batch):
        shown = ["samples" if size == SAMPLES else size for size in target]
        raise Refusal(f"reshapes {value.text} to {shown}; the first dimension must stay that of the samples")
    rest = [value.dims[i] if size == 0 and i < len(value.dims) else size for i, size in enumerate(target[1:])]
    known = math.prod(size for size in rest if size != -1)
    if -1 in rest and known:
        rest[rest.index(-1)] = elements // known
    if any(size < 1 for size in rest) or math.prod(rest) != elements:
        raise Refusal(f"reshapes {value.text} to {target}, of another number of elements in a sample")
    return tuple(rest)


def reshaped(build: Build, node: Node, value: Value, sizes: tuple[int, ...]) -> Value:
    """Returns a value with other sizes of a sample."""
    if sizes == value.dims:
        return value
    if len(sizes) == 1:
        return Value(value.layer, value.order, True)
    if value.flat and sizes == value.inner:
        return Value(value.layer, value.order)
    layer = build.layer(node, "reshape", [build.plain(node, value)], {"shape": list(sizes)})
    return Value(layer, plain(1 + len(sizes)))


def _squeeze(build: Build, node: Node) -> Made:
    value = build.value(node)
    axes = build.integers(node, 1, "axes")
    if axes is None and (build.graph.batch or 1) > 1:
        axes = [axis for axis, size in enumerate(value.dims, 1) if size == 1]
    if axes is None:
        raise Refusal("the axes are missing; all dimensions of size 1 might be the samples, too")
    chosen = {_axis(axis, value.rank, value) for axis in axes}
    if any(value.dims[axis - 1] != 1 for axis in chosen):
        raise Refusal(f"removes axes {axes} of {value.text}, which are not all of size 1")
    return _without(build, node, build.unflattened(node, value), chosen)


def _without(build: Build, node: Node, value: Value, chosen: set[int]) -> Value:
    """Returns a value without dimensions of size 1."""
    if not chosen:
        return value
    kept = [axis for axis in value.order if axis not in chosen]
    sizes = [value.sizes[i - 1] for i, axis in enumerate(value.order) if i > 0 and axis not in chosen]
    if not sizes:
        raise Refusal("leaves no dimension of a sample")
    numbers = {axis: number for number, axis in enumerate(sorted(kept))}
    layer = build.layer(node, "reshape", [value.layer], {"shape": sizes})
    return Value(layer, tuple(numbers[axis] for axis in kept))


def _unsqueeze(build: Build, node: Node) -> Made:
    value = build.value(node)
    axes = build.integers(node, 1, "axes")
    if axes is None:
        raise Refusal("the axes are missing")
    rank = value.rank + len(axes)
    chosen = {_axis(axis, rank, value) for axis in axes}
    rest = iter(value.dims)
    return reshaped(build, node, value, tuple(1 if axis in chosen else next(rest) for axis in range(1, rank)))


def _transpose(build: Build, node: Node) -> Made:
    value = build.value(node)
    axes = list(node.get("perm") or reversed(range(value.rank)))
    if sorted(axes) != list(range(value.rank)) or axes[0] != 0:
        raise Refusal(f"perm is {axes} of {value.text}; the samples must stay the first dimension")
    value = build.unflattened(node, value)
    return Value(value.layer, tuple(axes.index(axis) for axis in value.order))


def _concat(build: Build, node: Node) -> Made:
    values = [build.unflattened(node, build.value(node, number)) for number in range(len(node.inputs))]
    first = values[0]
    if any(each.rank != first.rank for each in values):
        raise Refusal(f"its inputs are {', '.join(each.text for each in values)}")
    axis = _axis(int(node.get("axis")), first.rank, first)
    layers = [build.ordered(node, each, first.order) for each in values]
    return first.like(build.layer(node, "concat", layers, {"axis": first.axis(axis)}))


def _pad(build: Build, node: Node) -> Made:
    value = build.unflattened(node, build.value(node))
    pads = build.integers(node, 1, "pads") or []
    axes = build.integers(node, 3, "axes") if node.has(3) else list(range(value.rank))
    if axes is None or len(pads) != 2 * len(axes) or min(pads, default=0) < 0:
        raise Refusal(f"pads are {pads}; needed are numbers from 0 on, two for each dimension")
    axes = [axis + value.rank if axis < 0 else axis for axis in axes]
    chosen = [(axis, *pair) for axis, *pair in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True) if any(pair)]
    if any(axis == 0 for axis, *_ in chosen):
        raise Refusal("adds samples")
    mode, fill = node.get("mode", "constant"), node.get("value")
    if not chosen:
        return value
    attributes: dict[str, Any] = {"axes": [value.axis(axis) for axis, *_ in chosen],
                                  "before": [each[1] for each in chosen], "after": [each[2] for each in chosen],
                                  "mode": mode}  # fmt: skip
    if mode == "constant":
        found = build.optional(node, 2, "value") if fill is None else np.asarray(fill)
        attributes["value"] = 0.0 if found is None or not found.size else float(found.reshape(()))
    return value.like(build.layer(node, "pad", [value.layer], attributes))


def _slice(build: Build, node: Node) -> Made:
    value = build.unflattened(node, build.value(node))
    starts, ends = build.integers(node, 1, "starts"), build.integers(node, 2, "ends")
    axes, steps = build.integers(node, 3, "axes"), build.integers(node, 4, "steps")
    if starts is None or ends is None:
        raise Refusal("starts or ends are missing")
    axes = list(range(len(starts))) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise Refusal(f"starts are {starts}, ends {ends}, axes {axes}, steps {steps}; needed are as many of each")
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        samples = axis % value.rank == 0 and start == 0 and step == 1
        if samples and (end >= 2**31 - 1 or end in (SAMPLES, build.graph.batch)):
            continue
        number = _axis(axis, value.rank, value)
        size = value.dims[number - 1]
        places = range(size)[slice(start, end, step)]
        if step != 1 and len(places) > 1:
            raise Refusal(f"the step of axis {axis} is {step}; only 1 is understood")
        if places != range(size):
            value = _part(build, node, value, number, places.start, len(places))
    return value


def _part(build: Build, node: Node, value: Value, axis: int, start: int, length: int) -> Value:
    attributes = {"axis": value.axis(axis), "start": start, "length": length}
    return value.like(build.layer(node, "slice", [value.layer], attributes))


def _split(build: Build, node: Node) -> Made:
    value = build.unflattened(node, build.value(node))
    axis = _axis(int(node.get("axis", 0)), value.rank, value)
    size = value.dims[axis - 1]
    lengths, parts = build.integers(node, 1, "split"), len(node.outputs)
    node.require("num_outputs", parts, parts, neutral=lengths is not None)
    if lengths is None:
        longest = -(-size // parts)
        lengths = [min(longest, size - longest * part) for part in range(parts)]
    if len(lengths) != parts or sum(lengths) != size:
        raise Refusal(f"the lengths are {lengths} for {parts} outputs of {value.text}")
    starts = np.cumsum([0, *lengths[:-1]]).tolist()
    return [_part(build, node, value, axis, start, length) for start, length in zip(starts, lengths, strict=True)]


def _reduction(type: str) -> Operator:
    def make(build: Build, node: Node) -> Made:
        value = build.unflattened(node, build.value(node))
        axes = build.integers(node, 1, "axes")
        empty, keep = bool(node.get("noop_with_empty_axes", 0)), bool(node.get("keepdims", 1))
        if not axes and empty:
            return value
        if not axes:
            raise Refusal("reduces all dimensions, the samples, too")
        chosen = {_axis(axis, value.rank, value) for axis in axes}
        if not keep and len(chosen) == value.rank - 1:
            raise Refusal("leaves no dimension of a sample; only keepdims is understood")
        attributes = {"axes": [value.axis(axis) for axis in sorted(chosen)], "keep_dimensions": keep}
        layer = build.layer(node, type, [value.layer], attributes)
        if keep:
            return value.like(layer)
        kept = [axis for axis in value.order if axis not in chosen]
        numbers = {axis: number for number, axis in enumerate(sorted(kept))}
        return Value(layer, tuple(numbers[axis] for axis in kept))

    return make


OPERATORS: dict[str, Operator] = {
    "Concat": _concat, "Flatten": _flatten, "Pad": _pad, "Reshape": _reshape, "Slice": _slice, "Split": _split,
    "Squeeze": _squeeze, "Transpose": _transpose, "Unsqueeze": _unsqueeze,
    "ReduceMax": _reduction("max"), "ReduceMean": _reduction("mean"), "ReduceMin": _reduction("min"),
    "ReduceSum": _reduction("sum"),
}  # fmt: skip
