"""Operators that choose elements by their places, and that repeat them. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tenon._model.layer import Layer
from tenon.onnx._build import Build, Made, Operator
from tenon.onnx._graph import SAMPLES, Node
from tenon.onnx._pointwise import raised
from tenon.onnx._shapes import axis_of, part, reshaped, selected, unsqueezed, without
from tenon.onnx._values import Array, Refusal, Value, plain

_LARGEST = 2**24  # up to which floats of 32 bits have every whole number
_MOST_CLASSES = 4096  # of ids that are computed as floats


def _gather(build: Build, node: Node) -> Made:
    axis = int(node.get("axis", 0))
    if build.is_constant(node, 0):
        return _embedded(build, node, build.constant(node, 0, "table"), axis)
    if not build.is_constant(node, 1):
        raise Refusal("both its inputs are values; the table, or the places, must be constant")
    value, places = build.unflattened(node, build.value(node)), build.constant(node, 1, "places")
    number = axis_of(value, axis)
    size = value.dims[number - 1]
    indices = [int(place) + (size if place < 0 else 0) for place in places.ravel()]
    if min(indices, default=0) < 0 or max(indices, default=0) >= size:
        raise Refusal(f"chooses places {sorted(set(indices))} of {value.text} along axis {axis}")
    if places.ndim == 0:
        return without(build, node, part(build, node, value, number, indices[0], 1), {number})
    if not indices:
        raise Refusal("chooses nothing")
    chosen = selected(build, node, value, number, indices)
    if places.ndim == 1:
        return chosen
    sizes = [*chosen.dims[: number - 1], *places.shape, *chosen.dims[number:]]
    shifted = value.samples + (places.ndim - 1 if axis % value.rank < value.samples else 0)
    return replace(reshaped(build, node, chosen, tuple(sizes)), samples=shifted)


def _gather_nd(build: Build, node: Node) -> Made:
    """Gather along the first dimension, as which alone the operator is understood."""
    places = build.constant(node, 1, "places")
    if node.get("batch_dims", 0) or places.shape[-1:] != (1,):
        shape = list(places.shape)
        batch = node.get("batch_dims", 0)
        raise Refusal(f"batch_dims is {batch}, places have shape {shape}; 0 and one number a place are understood")
    name = f"{node.inputs[1]}.single"
    build.constants[name] = places.squeeze(-1)
    return _gather(build, replace(node, inputs=[node.inputs[0], name], attributes={"axis": 0}))


def _embedded(build: Build, node: Node, table: Array, axis: int) -> Value:
    """Returns rows of a constant table by ids."""
    ids = build.value(node, 1)
    ids = Value(build.plain(node, ids), plain(ids.rank), samples=ids.samples, kind="int")
    axis += table.ndim if axis < 0 else 0
    if axis != 0:
        raise Refusal(f"axis is {axis} of a table of shape {list(table.shape)}; only 0 is understood")
    if table.dtype.kind in "iu" and np.abs(table).max(initial=0) >= _LARGEST:
        raise Refusal(f"its table has integers of {_LARGEST} and above, which floats of 32 bits do not have")
    kind = {"b": "bool", "i": "int", "u": "int"}.get(table.dtype.kind, "float")
    rows = table.reshape(table.shape[0], -1)
    layer = embedded(build, node, ids.layer, rows)
    value = Value(layer, plain(ids.rank + 1), samples=ids.samples, kind=kind)
    dims = (*ids.dims, *table.shape[1:])
    return value if dims == value.dims else replace(reshaped(build, node, value, dims), samples=ids.samples, kind=kind)


def embedded(build: Build, node: Node, ids: Layer, rows: Array) -> Layer:
    """Returns the rows of a table at ids, one more dimension than these have."""
    if ids.dtype.kind not in "iu":
        if len(rows) > _MOST_CLASSES:
            raise Refusal(f"its ids are computed, for a table of {len(rows)} rows; at most {_MOST_CLASSES} are understood")
        sizes = [*(int(size) for size in ids.shape[1:]), 1]
        column = build.layer(node, "reshape", [ids], {"shape": sizes}, ".ids")
        ids = build.layer(node, "equal", [column, build.fixed(node, column, np.arange(len(rows)))], suffix=".one_hot")
        layer = build.layer(node, "fc", [ids], {"size": rows.shape[1], "bias": False, "axis": -1})
    else:
        layer = build.layer(node, "embedding", [ids], {"vocabulary": len(rows), "size": rows.shape[1]})
    build.set(layer, weight=rows)
    return layer


def _gather_elements(build: Build, node: Node) -> Made:
    like = build.value(node, 0 if not build.is_constant(node, 0) else 1)
    a, b = build.operand(node, 0, like), build.operand(node, 1, like)
    a, b = build.unflattened(node, a), build.unflattened(node, b)
    axis = axis_of(a, int(node.get("axis", 0)))
    if build.is_constant(node, 1) or b.layer.dtype.kind not in "iu":
        raise Refusal("its places must be integers of the samples")
    places = build.ordered(node, b, a.order)
    return a.like(build.layer(node, "gather", [a.layer, places], {"axis": a.axis(axis)}))


def _expand(build: Build, node: Node) -> Made:
    value, target = build.value(node), build.integers(node, 1, "shape")
    if target is None:
        raise Refusal("the shape is missing")
    value = raised(build, node, value, max(value.rank, len(target)))
    wanted = [1] * (value.rank - len(target)) + target
    samples = wanted.pop(value.samples)
    if samples not in (1, SAMPLES, build.graph.batch):
        raise Refusal(f"expands {value.text} to {samples} samples")
    if (
        any(size not in (1, own) and own != 1 for size, own in zip(wanted, value.dims, strict=True))
        or min(wanted, default=1) < 1
    ):
        raise Refusal(f"expands {value.text} to a sample of shape {wanted}")
    return _expanded(build, node, value, [max(size, own) for size, own in zip(wanted, value.dims, strict=True)])


def _expanded(build: Build, node: Node, value: Value, dims: list[int]) -> Value:
    if tuple(dims) == value.dims:
        return value
    return value.like(build.layer(node, "expand", [value.layer], {"shape": [dims[axis - 1] for axis in value.order[1:]]}))


def _tile(build: Build, node: Node) -> Made:
    value, copies = build.unflattened(node, build.value(node)), build.integers(node, 1, "repeats") or []
    if len(copies) != value.rank or min(copies) < 1 or copies[value.samples] != 1:
        raise Refusal(f"the repeats are {copies} of {value.text}; the samples are not repeated")
    del copies[value.samples]
    if all(count == 1 for count in copies):
        return value
    return value.like(build.layer(node, "tile", [value.layer], {"copies": [copies[axis - 1] for axis in value.order[1:]]}))


def _reverse(build: Build, node: Node) -> Made:
    """Whole sequences from their last step to their first."""
    value = build.unflattened(node, build.value(node))
    axis, lengths = axis_of(value, int(node.get("time_axis", 0))), build.constant(node, 1, "lengths")
    size = value.dims[axis - 1]
    if value.standard(int(node.get("batch_axis", 1))) != 0 or (lengths != size).any():
        raise Refusal(
            f"reverses {lengths.ravel()[:8].tolist()} steps of {value.text}; all of them, in each sample, are understood"
        )
    return selected(build, node, value, axis, range(size)[::-1])


def _one_hot(build: Build, node: Node) -> Made:
    ids, depth = build.value(node), int(build.constant(node, 1, "depth").reshape(()))
    off, on = (float(each) for each in build.constant(node, 2, "values").ravel())
    if not 0 < depth <= _MOST_CLASSES:
        raise Refusal(f"depth is {depth}; 1 to {_MOST_CLASSES} are understood")
    axis = int(node.get("axis", -1))
    value = unsqueezed(build, node, ids, [axis])
    value = value.like(build.formula(node, f"where(x < 0, x + {depth}, x)", [value.layer], ".ids"))
    place = axis + value.rank if axis < 0 else axis
    classes = build.fixed(node, value.layer, value.broadcast(np.arange(depth).reshape([-1] + [1] * (value.rank - 1 - place))))
    layer = build.layer(node, "equal", [value.layer, classes])
    if (off, on) != (0.0, 1.0):
        layer = build.layer(node, "scale_shift", [layer], {"scale": on - off, "shift": off}, ".values")
    return value.like(layer)


def _top_k(build: Build, node: Node) -> Made:
    value, count = build.unflattened(node, build.value(node)), node.get("k")
    count = int(build.constant(node, 1, "k").reshape(())) if count is None else int(count)
    node.get("sorted")  # unsorted ones may have any order
    axis = axis_of(value, int(node.get("axis", -1)))
    attributes = {"axis": value.axis(axis), "k": count, "smallest": not node.get("largest", 1)}
    layer = build.layer(node, "top_k", [value.layer], attributes)
    return [value.like(layer), replace(value.like(layer.output(1)), kind="int")]


def _depth_to_space(build: Build, node: Node) -> Made:
    value, size = build.value(node), int(node.get("blocksize"))
    mode = node.get("mode", "DCR")
    channels, height, width = value.dims
    if channels % size**2:
        raise Refusal(f"blocksize is {size} for {value.text}")
    depth = channels // size**2
    split, axes = ([size, size, depth], [0, 3, 4, 1, 5, 2]) if mode == "DCR" else ([depth, size, size], [0, 1, 4, 2, 5, 3])
    return _blocks(build, node, value, [*split, height, width], axes, (depth, height * size, width * size))


def _space_to_depth(build: Build, node: Node) -> Made:
    value, size = build.value(node), int(node.get("blocksize"))
    channels, height, width = value.dims
    if height % size or width % size:
        raise Refusal(f"blocksize is {size} for {value.text}")
    split = [channels, height // size, size, width // size, size]
    return _blocks(build, node, value, split, [0, 3, 5, 1, 2, 4], (channels * size**2, height // size, width // size))


def _blocks(build: Build, node: Node, value: Value, split: list[int], axes: list[int], sizes: tuple[int, ...]) -> Value:
    layer = build.layer(node, "reshape", [build.plain(node, value)], {"shape": split}, ".split")
    layer = build.layer(node, "transpose", [layer], {"axes": axes}, ".moved")
    return Value(build.layer(node, "reshape", [layer], {"shape": list(sizes)}), plain(1 + len(sizes)))


OPERATORS: dict[str, Operator] = {
    "DepthToSpace": _depth_to_space, "Expand": _expand, "Gather": _gather,
    "GatherElements": _gather_elements, "GatherND": _gather_nd,
    "OneHot": _one_hot, "ReverseSequence": _reverse, "SpaceToDepth": _space_to_depth, "Tile": _tile, "TopK": _top_k,
}  # fmt: skip
