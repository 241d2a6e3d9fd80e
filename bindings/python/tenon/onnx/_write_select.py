"""Writers of layers that choose, repeat, join or count elements by their places. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto

from tenon.onnx._emit import Emit, Item, Writer, Written
from tenon.onnx._values import plain


def _embedding(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    ids = emit.unflattened(inputs[0])
    rank, reduce = len(ids.order), item.attributes["reduce"]
    table = emit.numbers(item.parameter("weight"), f"{item.name}.weight")
    order, sizes = (*ids.order, rank), (*ids.sizes, int(item.attributes["size"]))
    rows = Written(emit.node("Gather", [table, ids.name], item.name, axis=0), order, sizes)
    if reduce == "none":
        return rows
    if reduce == "concat":
        return replace(rows, flat=True)
    op = {"sum": "ReduceSum", "mean": "ReduceMean"}[reduce]
    more = [emit.numbers([1], f"{item.name}.axes", np.int64)] if op == "ReduceSum" else []
    axes = {} if more else {"axes": [1]}
    name = emit.node(op, [emit.plain(rows).name, *more], f"{item.name}.{reduce}", keepdims=0, **axes)
    return Written(name, plain(2), (sizes[-1],))


def _one_hot(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    ids = emit.unflattened(inputs[0])
    count = int(item.attributes["classes"])
    whole = emit.node("Cast", [ids.name], f"{item.name}.ids", to=TensorProto.INT64)
    depth = emit.numbers(count, f"{item.name}.depth", np.int64)
    values = emit.numbers([0, 1], f"{item.name}.values")
    name = emit.node("OneHot", [whole, depth, values], item.name, axis=-1)
    return Written(name, (*ids.order, len(ids.order)), (*ids.sizes, count))


def _gather(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    value, places = (emit.unflattened(each) for each in inputs)
    names = [value.name, emit.ordered(places, value.order).name]
    return replace(value, name=emit.node("GatherElements", names, item.name, axis=value.axis(item.attributes["axis"])),
                   sizes=item.sizes)  # fmt: skip


def _selected(places: Callable[[Item, int], Any]) -> Writer:
    """Returns the writer of elements along an axis at places, which are found of the length of the axis."""

    def write(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
        value = emit.unflattened(inputs[0])
        for axis in item.attributes.get("axes") or [item.attributes.get("axis", -1)]:
            size = value.sizes[axis - 1 if axis > 0 else axis]
            chosen = np.asarray(places(item, size))
            names = [value.name, emit.numbers(np.where(chosen < 0, chosen + size, chosen), f"{item.name}.places", np.int64)]
            value = value.like(emit.node("Gather", names, item.name, axis=value.axis(axis)))
        return replace(value, sizes=item.sizes)

    return write


def _expand(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    value = emit.raised(emit.many(inputs[0]), 1 + len(item.sizes))
    shape = [1, *item.sizes]
    return _expanded(emit, value, [shape[axis] for axis in value.order], item)


def _expanded(emit: Emit, value: Written, shape: list[int], item: Item) -> Written:
    names = [value.name, emit.numbers(shape, f"{item.name}.shape", np.int64)]
    return replace(value, name=emit.node("Expand", names, item.name), sizes=item.sizes)


def _tile(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    value = emit.unflattened(inputs[0])
    copies = [int(each) for each in item.attributes["copies"]]
    copies = [1] * (len(value.order) - len(copies)) + copies
    names = [value.name, emit.numbers([copies[axis] for axis in value.order], f"{item.name}.copies", np.int64)]
    return replace(value, name=emit.node("Tile", names, item.name), sizes=item.sizes)


def _place(op: str) -> Writer:
    def write(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
        value = emit.unflattened(inputs[0])
        axis = value.axis(item.attributes["axis"])
        name = emit.node(op, [value.name], item.name, axis=axis, keepdims=0)
        kept = [each for place, each in enumerate(value.order) if place != axis]
        numbers = {each: number for number, each in enumerate(sorted(kept))}
        return Written(name, tuple(numbers[each] for each in kept), item.sizes)

    return write


def _sorted(emit: Emit, item: Item, inputs: Sequence[Written]) -> list[Written]:
    """Writes the first elements in their order, and their places."""
    value, axis = emit.unflattened(inputs[0]), item.attributes["axis"]
    count = int(item.attributes.get("k", value.sizes[axis - 1 if axis > 0 else axis]))
    largest = not item.attributes["smallest"] if "smallest" in item.attributes else item.attributes["descending"]
    names = emit.nodes_of("TopK", [value.name, emit.numbers([count], f"{item.name}.k", np.int64)], item.name, 2,
                          axis=value.axis(axis), largest=int(largest))  # fmt: skip
    return [replace(value, name=name, sizes=item.sizes) for name in names]


def _order(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    return _sorted(emit, item, inputs)[1]


def _stack(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    axis, rank = int(item.attributes["axis"]), len(inputs[0].dims) + 2
    axis = axis + rank if axis < 0 else axis
    values = [emit.plain(emit.many(each)) for each in inputs]
    place = emit.numbers([axis], f"{item.name}.axis", np.int64)
    names = [emit.node("Unsqueeze", [value.name, place], f"{item.name}.row") for value in values]
    return Written(emit.node("Concat", names, item.name, axis=axis), plain(rank), item.sizes)


def _unstack(emit: Emit, item: Item, inputs: Sequence[Written]) -> list[Written]:
    value, axis = emit.unflattened(inputs[0]), int(item.attributes["axis"])
    axis = axis + len(value.order) if axis < 0 else axis
    kept = [each for each in value.order if each != axis]
    numbers = {each: number for number, each in enumerate(sorted(kept))}
    order = tuple(numbers[each] for each in kept)
    names = [emit.node("Gather", [value.name, emit.place(place)], item.name,
                       axis=value.order.index(axis)) for place in range(value.sizes[axis - 1])]  # fmt: skip
    return [Written(name, order, item.sizes) for name in names]


def _split(emit: Emit, item: Item, inputs: Sequence[Written]) -> list[Written]:
    value, axis = emit.unflattened(inputs[0]), int(item.attributes["axis"])
    place = axis - 1 if axis > 0 else axis
    parts = item.attributes.get("sizes")
    lengths = list(parts) if parts else [value.sizes[place] // int(item.attributes["parts"])] * int(item.attributes["parts"])
    names = emit.nodes_of("Split", [value.name, emit.numbers(lengths, f"{item.name}.sizes", np.int64)], item.name, len(lengths),
                       axis=value.axis(axis))  # fmt: skip
    found = []
    for name, length in zip(names, lengths, strict=True):
        sizes = list(value.sizes)
        sizes[place] = length
        found.append(replace(value, name=name, sizes=tuple(sizes)))
    return found


def _cumsum(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    value = emit.unflattened(inputs[0])
    axis = emit.numbers(value.axis(item.attributes["axis"]), f"{item.name}.axis", np.int64)
    flags = {name: int(item.attributes[name]) for name in ("exclusive", "reverse")}
    return value.like(emit.node("CumSum", [value.name, axis], item.name, **flags))


def _matmul(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    names = []
    for value, which in zip(inputs, "ab", strict=True):
        value = emit.unflattened(emit.real(value))
        order = list(plain(len(value.order)))
        if item.attributes[f"transpose_{which}"]:
            order[-2:] = order[:-3:-1]
        names.append(emit.ordered(value, tuple(order)).name)
    name = emit.node("MatMul", names, item.name)
    if item.attributes["scale"] != 1:
        name = emit.node("Mul", [name, emit.scalar(float(item.attributes["scale"]))], f"{item.name}.scaled")
    return Written(name, plain(1 + len(item.sizes)), item.sizes)


def _einsum(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    equation = item.attributes["equation"].replace(" ", "")
    left, arrow, result = equation.partition("->")
    if not arrow:
        joined = left.replace(",", "")
        result = "".join(sorted(each for each in set(joined) if joined.count(each) == 1))
    samples = next(each for each in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if each not in equation)
    names, terms = [], []
    for value, term in zip(inputs, left.split(","), strict=True):
        if value.numbers is not None:
            names.append(emit.numbers(value.numbers, value.name))
            terms.append(term)
        else:
            names.append(emit.plain(value).name)
            terms.append(samples + term)
    name = emit.node("Einsum", names, item.name, equation=f"{','.join(terms)}->{samples}{result}")
    return Written(name, plain(1 + len(item.sizes)), item.sizes)


def _group_norm(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    """Writes an instance normalisation of groups, since version 17 has no other."""
    image, groups = emit.image(inputs[0]), int(item.attributes["groups"])
    channels, title = image.sizes[-1], item.name
    shapes = [emit.numbers(shape, f"{title}.shape", np.int64) for shape in ([0, groups, -1], [0, channels, *image.sizes[:-1]])]
    rows = emit.node("Reshape", [image.name, shapes[0]], f"{title}.groups")
    ones = [emit.numbers(np.full(groups, number), f"{title}.{name}") for name, number in (("one", 1), ("zero", 0))]
    made = emit.node("InstanceNormalization", [rows, *ones], f"{title}.normal", epsilon=float(item.attributes["epsilon"]))
    made = emit.node("Reshape", [made, shapes[1]], title)
    for suffix, op in (("scale", "Mul"), ("shift", "Add")):
        if suffix in item.parameters:
            numbers = item.parameters[suffix].reshape(-1, *[1] * (len(image.sizes) - 1))
            made = emit.node(op, [made, emit.numbers(numbers, f"{title}.{suffix}")], title)
    return image.like(made)


WRITERS: dict[str, Writer] = {
    "argmax": _place("ArgMax"), "argmin": _place("ArgMin"), "argsort": _order, "cumsum": _cumsum, "einsum": _einsum,
    "embedding": _embedding, "expand": _expand, "flip": _selected(lambda item, size: np.arange(size)[::-1]),
    "gather": _gather, "group_norm": _group_norm, "index_select": _selected(lambda item, size: item.attributes["indices"]),
    "matmul": _matmul, "one_hot": _one_hot,
    "repeat": _selected(lambda item, size: np.arange(size).repeat(int(item.attributes["times"]))),
    "roll": _selected(lambda item, size: np.roll(np.arange(size), int(item.attributes["shift"]))),
    "sort": _sorted, "split": _split, "stack": _stack, "tile": _tile, "top_k": _sorted, "unstack": _unstack,
}  # fmt: skip
OF_INTEGERS = {"embedding": (0,), "gather": (1,), "one_hot": (0,)}  # inputs that are read as integers
MOVING = {"reshape", "slice", "split", "squeeze", "transpose", "unsqueeze", "unstack"}  # which leave integers integers
