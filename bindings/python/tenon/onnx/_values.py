"""Values of a graph of ONNX as layers: which dimension of the layer is which dimension of the value.

ONNX has images as [samples, channels, space...], Tenon as [samples, space..., channels]. A value therefore carries the
order of its dimensions. What works element by element keeps the order, a transposition only renames it, and an operator
that needs a certain one asks for it; so no elements are moved where none must be. The samples are the first dimension of every
layer; of a value they may be another one, as in the recurrences of ONNX, which have [steps, samples, features].

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenon._model.layer import Layer

Array = NDArray[Any]


class Refusal(Exception):
    """A node, or a layer, has no counterpart; its text is the reason."""


def plain(rank: int) -> tuple[int, ...]:
    """Returns the order in which nothing is moved."""
    return tuple(range(rank))


def channels_last(rank: int) -> tuple[int, ...]:
    """Returns the order of [samples, space..., channels] by dimensions of [samples, channels, space...]."""
    return (0, *range(2, rank), 1) if rank > 2 else plain(rank)


def channels_first(rank: int) -> tuple[int, ...]:
    """Returns the order of [samples, channels, space...] by dimensions of [samples, space..., channels]."""
    return (0, rank - 1, *range(1, rank - 1)) if rank > 2 else plain(rank)


def moves(sizes: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    """Returns whether a transposition to `axes` moves elements: dimensions of size 1 may be anywhere."""
    long = [axis for axis in axes if axis == 0 or sizes[axis - 1] != 1]
    return long != sorted(long)


@dataclass(frozen=True)
class Value:
    """A value of the graph.

    order: dimension i of the layer is dimension order[i] of the value with its samples first. flat: the value is [samples,
    rest], the elements of a sample in the value's own order, while the layer still has the dimensions before that.
    samples: which dimension of the value the samples are. merged: how many dimensions before and after the samples are one
    with them in the file, as rows of all samples are. kind: "float", "int" or "bool"; numbers that the file takes for
    integers or truth values may be floats of a layer.
    """

    layer: Layer
    order: tuple[int, ...]
    flat: bool = False
    samples: int = 0
    kind: str = "float"
    merged: tuple[int, int] = (0, 0)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of a sample of the layer."""
        return tuple(int(size) for size in self.layer.shape[1:])

    @property
    def inner(self) -> tuple[int, ...]:
        """The sizes of a sample of the value before it was flattened."""
        return tuple(self.sizes[self.order.index(axis) - 1] for axis in range(1, len(self.order)))

    @property
    def dims(self) -> tuple[int, ...]:
        """The sizes of a sample of the value."""
        return (math.prod(self.inner),) if self.flat else self.inner

    @property
    def rank(self) -> int:
        """The number of dimensions of the value, the samples included."""
        return 1 + len(self.dims)

    def like(self, layer: Layer) -> Value:
        """Returns the value of a layer that works element by element on this one."""
        return replace(self, layer=layer)

    def axis(self, number: int) -> int:
        """Returns the dimension of the layer that is dimension `number` of the value, which is not flat, with its samples
        first."""
        return self.order.index(number)

    def standard(self, number: int) -> int:
        """Returns what dimension `number` of the value is where its samples are first, -1 where there is none such."""
        axis = number + self.rank if number < 0 else number
        if not 0 <= axis < self.rank:
            return -1
        return 0 if axis == self.samples else axis + 1 if axis < self.samples else axis

    def without(self, layer: Layer, axes: Collection[int]) -> Value:
        """Returns the value of a layer that lacks dimensions, which are those of the value with its samples first."""
        kept = [axis for axis in self.order if axis not in axes]
        numbers = {axis: number for number, axis in enumerate(sorted(kept))}
        before = sum(1 for axis in axes if axis <= self.samples)
        return Value(layer, tuple(numbers[axis] for axis in kept), samples=self.samples - before, kind=self.kind)

    def rows(self, weight: Array) -> Array:
        """Returns a matrix [rest, columns] for the value flattened, with its rows in the order of the layer."""
        columns = weight.shape[1:]
        axes = [axis - 1 for axis in self.order[1:]]
        moved: Array = weight.reshape(*self.inner, *columns).transpose(*axes, len(axes))
        return moved.reshape(-1, *columns)

    def broadcast(self, numbers: Array) -> Array:
        """Returns numbers that are broadcast to the value, in the dimensions of a sample of the layer."""
        before = self.rank - numbers.ndim
        padded = numbers.reshape((1,) * before + numbers.shape) if before >= 0 else numbers
        if before < 0 or padded.shape[self.samples] != 1:
            raise Refusal(f"numbers of shape {list(numbers.shape)} differ between samples, {self.text}")
        padded = padded.squeeze(self.samples)
        pairs = zip(padded.shape, self.dims, strict=True)
        if any(size not in (1, own) and (own != 1 or self.flat) for size, own in pairs):
            raise Refusal(f"numbers of shape {list(numbers.shape)} do not fit {self.text}")
        if self.flat:
            padded = padded.reshape(self.inner if padded.size > 1 else (1,) * len(self.inner))
        shaped: Array = padded.transpose([axis - 1 for axis in self.order[1:]])
        return shaped

    @property
    def fused(self) -> tuple[int, ...]:
        """The sizes of the dimensions that are one with the samples."""
        return self.dims[self.samples - self.merged[0] : self.samples + self.merged[1]] if sum(self.merged) else ()

    @property
    def text(self) -> str:
        """The shape for messages."""
        sizes, rows = list(map(str, self.dims)), self.fused
        if rows:
            start = self.samples - self.merged[0]
            sizes[start : self.samples + self.merged[1]] = [f"{math.prod(rows)} samples"]
            return f"[{', '.join(sizes)}]"
        return f"[{', '.join([*sizes[: self.samples], 'samples', *sizes[self.samples :]])}]"


def float32(numbers: Any) -> Array:
    """Returns the numbers of a parameter."""
    if np.asarray(numbers).dtype.kind == "c":
        raise Refusal("complex numbers are not understood")
    return np.array(numbers, np.float32, order="C")  # np.ascontiguousarray makes a list of a single number
