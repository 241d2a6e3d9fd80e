"""Operators that move elements or reduce dimensions. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tenon.onnx._build import Build, Made, Operator
from tenon.onnx._graph import SAMPLES, Node
from tenon.onnx._samples import times
from tenon.onnx._values import Refusal, Value, plain

_MOST_PLACES = 2**20  # that a file chooses along a dimension


def axis_of(value: Value, number: int) -> int:
    """Returns which dimension of a value with its samples first a number of the file means; not the samples."""
    axis = value.standard(number)
    if axis < 1:
        raise Refusal(f"axis {number} of {value.text}; it must be one of a sample")
    return axis


def _flatten(build: Build, node: Node) -> Made:
    value = build.value(node)
    more, start = sum(value.merged), value.samples - value.merged[0]
    rank, axis = value.rank - more, int(node.get("axis", 1))
    axis += rank if axis < 0 else 0
    if not start < axis <= rank:
        raise Refusal(f"axis is {node.get('axis')} of {value.text}; it must be one after the samples")
    after = math.prod(value.dims[axis + more - 1 :])
    if more or math.prod(value.dims[: axis - 1]) != 1:
        return _reshaped_to(build, node, value, [-1, after])
    if axis == value.rank:  # of samples of one number
        return reshaped(build, node, value, (1,))
    return value if value.rank == 2 else replace(value, flat=True)


def _reshape(build: Build, node: Node) -> Made:
    value = build.value(node)
    target = build.integers(node, 1, "shape")
    if target is None:
        raise Refusal("the shape is missing")
    node.require("allowzero", 0, 0, neutral=0 not in target)
    return _reshaped_to(build, node, value, target)


def _reshaped_to(build: Build, node: Node, value: Value, target: list[int]) -> Value:
    place, above, below, sizes = _target(build, value, target)
    rows = (above,) * (above > 1), (below,) * (below > 1)
    dims = (*sizes[:place], *rows[0], *rows[1], *sizes[place:])
    return replace(reshaped(build, node, value, dims), samples=place + len(rows[0]), merged=(len(rows[0]), len(rows[1])))


def _target(build: Build, value: Value, target: list[int]) -> tuple[int, int, int, tuple[int, ...]]:
    """Returns which dimension the samples are after Reshape, how many rows before and after them are one with them, and the
    sizes of the others. What is before the samples must stay before them."""
    start, end = value.samples - value.merged[0], value.samples + value.merged[1]
    dims = [*value.dims[:start], math.prod(value.fused) * SAMPLES, *value.dims[end:]]
    sizes = [dims[i] if size == 0 and i < len(dims) else size for i, size in enumerate(target)]
    own = math.prod(value.dims[: value.samples]), math.prod(value.dims[value.samples :])
    fits = []
    for place, size in enumerate(sizes):
        whole = build.graph.batch is not None and size > 0 and size % build.graph.batch == 0
        rows = times(size) or (size // (build.graph.batch or 1) if whole else 0)
        found = _parts(sizes[:place], sizes[place + 1 :], own, rows) if rows or size == -1 else None
        if found:
            above, below, others = found
            fits.append((times(size) == 0, above * below, size != -1, place, above, below, others))
    if fits:
        return min(fits)[3:]
    shown = [f"{times(size)} samples" if times(size) else size for size in target]
    raise Refusal(f"reshapes {value.text} to {shown}; the samples must stay a dimension, and what is before them")


def _parts(before: list[int], after: list[int], own: tuple[int, int], rows: int) -> tuple[int, int, tuple[int, ...]] | None:
    """Returns how many rows before and after the samples are one with them, and the sizes before and after that, None where
    these do not have the elements. rows: both together, 0 for any number."""
    least = [math.prod(size for size in sizes if size != -1) for sizes in (before, after)]
    if min(least) < 1 or own[0] % least[0] or own[1] % least[1]:
        return None
    above, below = own[0] // least[0], own[1] // least[1]
    if -1 in before:
        above = rows // below
        before = [own[0] // least[0] // above if size == -1 else size for size in before] if above else before
    elif -1 in after:
        below = rows // above
        after = [own[1] // least[1] // below if size == -1 else size for size in after] if below else after
    fits = above * math.prod(before) == own[0] and below * math.prod(after) == own[1] and rows in (0, above * below)
    return (above, below, (*before, *after)) if fits and min(above, below, *before, *after) > 0 else None


def reshaped(build: Build, node: Node, value: Value, sizes: tuple[int, ...]) -> Value:
    """Returns a value with other sizes of a sample."""
    if sizes == value.dims:
        return value
    if len(sizes) == 1 and value.dims:
        return replace(value, flat=True)
    if value.flat and sizes == value.inner:
        return replace(value, flat=False)
    layer = build.layer(node, "reshape", [build.plain(node, value)], {"shape": list(sizes)})
    return Value(layer, plain(1 + len(sizes)), samples=value.samples, kind=value.kind)


def _squeeze(build: Build, node: Node) -> Made:
    value = build.value(node)
    axes = build.integers(node, 1, "axes")
    if axes is None and (build.graph.batch or 1) > 1:
        axes = [axis for axis in range(value.rank) if value.standard(axis) and value.dims[value.standard(axis) - 1] == 1]
    if axes is None:
        raise Refusal("the axes are missing; all dimensions of size 1 might be the samples, too")
    chosen = {axis_of(value, axis) for axis in axes}
    if any(value.dims[axis - 1] != 1 for axis in chosen):
        raise Refusal(f"removes axes {axes} of {value.text}, which are not all of size 1")
    return without(build, node, build.unflattened(node, value), chosen)


def without(build: Build, node: Node, value: Value, chosen: set[int]) -> Value:
    """Returns a value that is not flat without dimensions of size 1."""
    if not chosen:
        return value
    sizes = [value.sizes[i - 1] for i, axis in enumerate(value.order) if i > 0 and axis not in chosen]
    return value.without(build.layer(node, "reshape", [value.layer], {"shape": sizes}), chosen)


def _unsqueeze(build: Build, node: Node) -> Made:
    value = build.value(node)
    axes = build.integers(node, 1, "axes")
    if axes is None:
        raise Refusal("the axes are missing")
    return unsqueezed(build, node, value, axes)


def unsqueezed(build: Build, node: Node, value: Value, axes: Sequence[int]) -> Value:
    """Returns a value with dimensions of size 1 where the file counts them."""
    rank = value.rank + len(axes)
    chosen = {axis + rank if axis < 0 else axis for axis in axes}
    if len(chosen) != len(axes) or min(chosen, default=0) < 0 or max(chosen, default=0) >= rank:
        raise Refusal(f"the axes are {list(axes)} of {value.text}")
    dims = list(value.dims)
    dims.insert(value.samples, SAMPLES)
    rest = iter(dims)
    sizes = [1 if axis in chosen else next(rest) for axis in range(rank)]
    place = sizes.index(SAMPLES)
    return replace(reshaped(build, node, value, (*sizes[:place], *sizes[place + 1 :])), samples=place)


def _transpose(build: Build, node: Node) -> Made:
    value = build.value(node)
    axes = [int(axis) for axis in node.get("perm") or reversed(range(value.rank))]
    if sorted(axes) != list(range(value.rank)):
        raise Refusal(f"perm is {axes} of {value.text}")
    value, place = build.unflattened(node, value), axes.index(value.samples)
    moved = [value.standard(axis) for axis in (axes[place], *axes[:place], *axes[place + 1 :])]
    return Value(value.layer, tuple(moved.index(axis) for axis in value.order), samples=place, kind=value.kind)


def _concat(build: Build, node: Node) -> Made:
    places = [number for number in range(len(node.inputs)) if not build.is_constant(node, number)]
    first = build.unflattened(node, build.value(node, places[0]))
    given = [build.operand(node, number, first) for number in range(len(node.inputs))]
    values = [build.unflattened(node, each) for each in given]
    if any(each.rank != first.rank or each.samples != first.samples for each in values):
        raise Refusal(f"its inputs are {', '.join(each.text for each in values)}")
    axis = axis_of(first, int(node.get("axis")))
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
        samples = value.standard(axis) == 0 and start == 0 and step == 1
        if samples and (end >= 2**31 - 1 or end in (SAMPLES, build.graph.batch)):
            continue
        number = axis_of(value, axis)
        size = value.dims[number - 1]
        places = range(size)[slice(start, end, step)]
        if not places:
            raise Refusal(f"leaves nothing of axis {axis} of {value.text}: start {start}, end {end}, step {step}")
        if step != 1 and len(places) > 1:
            value = selected(build, node, value, number, places)
        elif places != range(size):
            value = part(build, node, value, number, places.start, len(places))
    return value


def part(build: Build, node: Node, value: Value, axis: int, start: int, length: int) -> Value:
    """Returns a range along a dimension of a value that is not flat."""
    attributes = {"axis": value.axis(axis), "start": start, "length": length}
    return value.like(build.layer(node, "slice", [value.layer], attributes))


def selected(build: Build, node: Node, value: Value, axis: int, places: Sequence[int]) -> Value:
    """Returns elements along a dimension of a value that is not flat."""
    if len(places) > _MOST_PLACES:
        raise Refusal(f"chooses {len(places)} places of {value.text}; at most {_MOST_PLACES} are understood")
    if len(places) == value.dims[axis - 1] and all(place == number for number, place in enumerate(places)):
        return value
    places = list(places)
    return value.like(build.layer(node, "index_select", [value.layer], {"axis": value.axis(axis), "indices": places}))


def _split(build: Build, node: Node) -> Made:
    value = build.unflattened(node, build.value(node))
    axis = axis_of(value, int(node.get("axis", 0)))
    size = value.dims[axis - 1]
    lengths, parts = build.integers(node, 1, "split"), len(node.outputs)
    node.require("num_outputs", parts, parts, neutral=lengths is not None)
    if lengths is None:
        longest = -(-size // parts)
        lengths = [min(longest, size - longest * part) for part in range(parts)]
    if len(lengths) != parts or sum(lengths) != size:
        raise Refusal(f"the lengths are {lengths} for {parts} outputs of {value.text}")
    starts = np.cumsum([0, *lengths[:-1]]).tolist()
    return [part(build, node, value, axis, start, length) for start, length in zip(starts, lengths, strict=True)]


OPERATORS: dict[str, Operator] = {
    "Concat": _concat, "Flatten": _flatten, "Pad": _pad, "Reshape": _reshape, "Slice": _slice, "Split": _split,
    "Squeeze": _squeeze, "Transpose": _transpose, "Unsqueeze": _unsqueeze,
}  # fmt: skip
