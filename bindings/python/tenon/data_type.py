"""Types of data layers: the form of one sample of an input.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tenon import _core, error

_KINDS = {"i": 0, "u": 1, "f": 2, "b": 6}
_LAYOUTS = ("channels_last", "channels_first")
_NAMES = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}


def dtype_code(dtype: DTypeLike) -> int:
    """Returns the library's number for a type of NumPy."""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind.kind not in _KINDS or kind.itemsize > 8:
        known = "bool, int8 to int64, uint8 to uint32, float16, float32 and float64"
        raise error.InvalidError(f"{dtype!r} is no element type of numbers; those are {known}", "data", "dtype")
    return _core.dtype(_KINDS[kind.kind], 8 * kind.itemsize)


def compute_code(compute: str, component: str) -> int:
    """Returns the library's number for a type in which machines compute."""
    known = {"float32": (2, 32), "float64": (2, 64), "bf16": (4, 16), "tf32": (2, 19)}
    if compute not in known:
        raise error.InvalidError(
            f'compute is {compute!r}; expected "float32", "float64", "bf16" or "tf32"', component, "compute"
        )
    return _core.dtype(*known[compute])


def numpy_dtype(code: int) -> np.dtype[Any]:
    """Returns the type of NumPy for the library's number."""
    kind, bits = code & 0xFF, (code >> 8) & 0xFF
    return np.dtype(np.bool_ if kind == 6 else f"{_NAMES[kind]}{bits}")


def layout_code(layout: str) -> int:
    """Returns the library's number for the order of the dimensions of images."""
    if layout not in _LAYOUTS:
        raise error.InvalidError(f"layout {layout!r}; expected one of {', '.join(_LAYOUTS)}", "data", "layout")
    return _LAYOUTS.index(layout)


@dataclass(frozen=True)
class DataType:
    """The form of one sample: element type, shape, and whether it is dense, a sequence, or sparse."""

    dtype: str = "float32"
    shape: tuple[int, ...] = ()
    index_limit: int = -1
    storage: int = _core.DENSE
    levels: int = 0
    scale: float = 1.0
    offset: float = 0.0
    sequence: str = ""
    layout: str = "channels_last"

    def __post_init__(self) -> None:
        dtype_code(self.dtype)
        layout_code(self.layout)
        object.__setattr__(self, "dtype", str(np.dtype(self.dtype)))  # also given as numpy.float32
        if any(extent < 0 for extent in self.shape):
            raise error.InvalidError(
                f"a sample of shape {list(self.shape)}: expected numbers from 0 on", "data", "shape"
            )
        if self.index_limit < -1 or self.index_limit == 0:
            raise error.InvalidError(
                f"integers below {self.index_limit}: there are none; expected a limit from 1 on", "data", "index_limit"
            )

    def options(self, name: str) -> dict[str, Any]:
        """Returns the options of a data layer `name` of this type."""
        return {
            "name": name,
            "dtype": dtype_code(self.dtype),
            "shape": list(self.shape),
            "index_limit": self.index_limit,
            "storage": self.storage,
            "levels": self.levels,
            "sequence": self.sequence,
            "scale": self.scale,
            "offset": self.offset,
            "layout": layout_code(self.layout),
        }

    def __str__(self) -> str:
        if self.storage == _core.SPARSE:
            return f"sparse {self.dtype} {list(self.shape)}"
        text = f"{self.dtype} {list(self.shape)}"
        if self.layout != _LAYOUTS[0]:
            text += ", channels first"
        if self.index_limit >= 0:
            text += f" below {self.index_limit}"
        for _ in range(self.levels):
            text = f"sequences of {text}"
        return text


def of_options(options: dict[str, Any]) -> DataType:
    """Returns the type of a data layer or slot from its options."""
    return DataType(
        dtype=str(numpy_dtype(options["dtype"])),
        shape=tuple(options["shape"]),
        index_limit=options["index_limit"],
        storage=options["storage"],
        levels=options["levels"] if options["storage"] == _core.RAGGED else 0,
        scale=options.get("scale", 1.0),
        offset=options.get("offset", 0.0),
        sequence=options.get("sequence", ""),
        layout=_LAYOUTS[options.get("layout", 0)],
    )


def _extent(number: int) -> int:
    """Returns an integer of Python; InvalidError for anything else, such as 2.5."""
    try:
        return operator.index(number)
    except TypeError:
        raise error.InvalidError(f"the size {number!r} is no integer", "data", "size") from None


def dense_array(
    shape: Sequence[int],
    dtype: str = "float32",
    scale: float = 1.0,
    offset: float = 0.0,
    layout: str = "channels_last",
) -> DataType:
    """Arrays of this shape. Integers become scale * x + offset where floats are needed. layout "channels_first":
    images [channels, height, width], which become [height, width, channels] when they are fed."""
    extents = tuple(_extent(extent) for extent in shape)
    return DataType(dtype, extents, scale=scale, offset=offset, layout=layout)


def dense_vector(size: int, dtype: str = "float32") -> DataType:
    """Vectors of `size` numbers."""
    return DataType(dtype, (_extent(size),))


def integer_value(limit: int) -> DataType:
    """One integer of [0, limit), such as a label or the number of a word."""
    if (whole := _extent(limit)) < 1:
        raise error.InvalidError(f"integers below {limit}: there are none; expected a limit from 1 on", "data", "limit")
    return DataType("int64", (), whole)


def sparse_binary_vector(size: int) -> DataType:
    """Vectors of `size` numbers that are 0 but for some 1; a sample lists the columns that are 1."""
    return DataType("float32", (_extent(size),), storage=_core.SPARSE)


def sparse_float_vector(size: int) -> DataType:
    """Vectors of `size` numbers, mostly 0; a sample lists (column, value), or is a dict {column: value}."""
    return sparse_binary_vector(size)


sparse_vector = sparse_float_vector


def sequence(of: DataType, levels: int = 1, lengths_of: str = "") -> DataType:
    """Sequences of rows of a dense type; with two levels sequences of sequences. Data layers with one `lengths_of`
    have sequences of equal lengths."""
    if of.storage == _core.SPARSE:
        raise TypeError("sequences of sparse vectors are not offered; use rows of integers with two levels")
    return replace(of, storage=_core.RAGGED, levels=of.levels + levels, sequence=lengths_of)


def dense_vector_sequence(size: int) -> DataType:
    """Sequences of vectors."""
    return sequence(dense_vector(size))


def dense_vector_sub_sequence(size: int) -> DataType:
    """Sequences of sequences of vectors."""
    return sequence(dense_vector(size), 2)


def integer_value_sequence(limit: int) -> DataType:
    """Sequences of integers of [0, limit), such as the words of a text."""
    return sequence(integer_value(limit))


def integer_value_sub_sequence(limit: int) -> DataType:
    """Sequences of sequences of integers."""
    return sequence(integer_value(limit), 2)
