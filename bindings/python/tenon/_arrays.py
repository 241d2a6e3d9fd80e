"""Values between Python and the library: arrays, sequences, sparse vectors.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenon import _core, error
from tenon.data_type import DataType


class Ragged:
    """Sequences of rows, one after the other without padding.

    values: [rows, shape of a row...]; offsets: [samples + 1], sequence i has the rows from offsets[i] to
    offsets[i + 1]; inner: of sequences of sequences, where offsets count the inner sequences.
    """

    __slots__ = ("inner", "offsets", "values")

    def __init__(self, values: Any, offsets: Any, inner: Any = None) -> None:
        self.values: NDArray[Any] = np.asarray(values)
        self.offsets: NDArray[np.int64] = np.ascontiguousarray(offsets, dtype=np.int64)
        self.inner: NDArray[np.int64] | None = None if inner is None else np.ascontiguousarray(inner, dtype=np.int64)

    @classmethod
    def of(cls, sequences: Sequence[Any], dtype: Any = None, row_shape: tuple[int, ...] = ()) -> Ragged:
        """Returns the sequences of a list of arrays or lists."""
        parts = [np.asarray(each, dtype=dtype).reshape(-1, *row_shape) for each in sequences]
        offsets = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(each) for each in parts], out=offsets[1:])
        return cls(np.concatenate(parts) if parts else np.zeros((0, *row_shape), dtype), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> Any:
        if not -len(self) <= number < len(self):
            raise IndexError(f"sequence {number} of {len(self)}")
        begin, end = self.offsets[number % len(self)], self.offsets[number % len(self) + 1]
        if self.inner is None:
            return self.values[begin:end]
        return [self.values[self.inner[i] : self.inner[i + 1]] for i in range(begin, end)]

    def __iter__(self) -> Iterator[Any]:
        return (self[number] for number in range(len(self)))

    def __repr__(self) -> str:
        return f"<tenon.Ragged of {len(self)} sequences, {len(self.values)} rows>"


class Sparse:
    """Sparse vectors of `width` numbers: vector i has values[k] at columns[k] for k from offsets[i] to offsets[i + 1].

    values None: all are 1. scipy.sparse matrices are taken in its place everywhere.
    """

    __slots__ = ("columns", "offsets", "values", "width")

    def __init__(self, width: int, offsets: Any, columns: Any, values: Any = None) -> None:
        self.width = int(width)
        self.offsets: NDArray[np.int64] = np.ascontiguousarray(offsets, dtype=np.int64)
        self.columns: NDArray[np.int64] = np.ascontiguousarray(columns, dtype=np.int64)
        self.values = None if values is None else np.ascontiguousarray(values, dtype=np.float32)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def toarray(self) -> NDArray[np.float32]:
        """Returns the vectors as a dense array [samples, width]."""
        dense = np.zeros((len(self), self.width), np.float32)
        rows = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        np.add.at(dense, (rows, self.columns), 1.0 if self.values is None else self.values)
        return dense

    def __repr__(self) -> str:
        return f"<tenon.Sparse of {len(self)} vectors of {self.width} numbers, {len(self.columns)} entries>"


class Constant:
    """One value for all samples of a minibatch; tenon.input.new makes it."""

    __slots__ = ("samples", "value")

    def __init__(self, value: Any, samples: int | None = None) -> None:
        self.value = value
        self.samples = samples


class Shared:
    """What numpy.from_dlpack, torch.from_dlpack and others take: a view without a copy, of the CPU's memory. Each use of
    it is a lease of its own, which ends with the tensor that the use returned."""

    __slots__ = ("_capsule",)

    def __init__(self, capsule: Callable[[], Any]) -> None:
        self._capsule = capsule

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        if copy:
            raise BufferError("this memory is shared without a copy: copy the tensor")
        return self._capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # kDLCPU


def from_core(value: Any) -> Any:
    """Returns an array, Ragged or Sparse for what the library gave."""
    if not isinstance(value, tuple):
        return value
    if isinstance(value[0], int):
        return Sparse(*value)
    return Ragged(*value)


def join(parts: Sequence[Any]) -> Any:
    """Returns the results of several minibatches as one."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    if isinstance(parts[0], Sparse):
        raise error.UnsupportedError("sparse results cannot be joined")

    def chained(lists: list[Any]) -> NDArray[np.int64]:
        ends = np.cumsum([0, *[each[-1] for each in lists]])
        return np.concatenate([lists[0][:1], *[each[1:] + end for each, end in zip(lists, ends)]])

    inner = None if parts[0].inner is None else chained([each.inner for each in parts])
    return Ragged(np.concatenate([each.values for each in parts]), chained([each.offsets for each in parts]), inner)


def _is_scipy(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "scipy" and hasattr(value, "tocsr")


def _dense(value: Any, type: DataType, name: str) -> Any:
    if hasattr(value, "to_numpy"):  # frames, series, Arrow arrays
        value = value.to_numpy()
    elif not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__"):
        value = np.from_dlpack(value)
    wanted = np.dtype(type.dtype)
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    if array.dtype.kind not in "iufb":
        array_type = array.dtype
        try:
            array = np.asarray(array.tolist(), dtype=wanted)
        except (TypeError, ValueError):
            raise error.InvalidError(
                f'the feed of data layer "{name}" has elements of type {array_type}; expected {type}', "data", name
            ) from None
    if array.dtype != wanted and not isinstance(value, np.ndarray):
        if wanted.kind in "iu" and array.dtype.kind == "f" and array.size:
            raise error.InvalidError(f'the feed of data layer "{name}" has floats; expected {type}', "data", name)
        array = array.astype(wanted)
    elif array.dtype == np.float64 and wanted == np.float32:
        array = array.astype(wanted)
    elif array.dtype.kind in "iub" and array.dtype != wanted and not np.can_cast(array.dtype, wanted):
        array = _narrowed(array, wanted, type, name)
    elif array.dtype.kind == "b":
        array = array.astype(wanted)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _narrowed(array: NDArray[Any], wanted: np.dtype[Any], type: DataType, name: str) -> NDArray[Any]:
    """Returns integers in a narrower type; refuses those that it cannot hold."""
    cast = array.astype(wanted)
    if not np.array_equal(cast, array):
        raise error.InvalidError(
            f'the feed of data layer "{name}" has {array.dtype} that {wanted} cannot hold; expected {type}', "data", name
        )
    return cast


def to_core(value: Any, type: DataType, name: str, samples: int = 1) -> Any:
    """Returns what the library is fed for a data layer. samples: of the minibatch, for constants."""
    if isinstance(value, Constant):
        return _core.dense(_constant(value, type, name, samples))
    if type.storage == _core.DENSE:
        return _core.dense(_dense(value, type, name))
    if type.storage == _core.SPARSE:
        return _sparse(value, type, name)
    return _ragged(value, type, name)


def feeds(values: Mapping[str, Any], types: Mapping[str, DataType]) -> tuple[list[tuple[str, Any]], int]:
    """Returns what the library is fed for a minibatch, and its number of samples."""
    constants = {name: value for name, value in values.items() if isinstance(value, Constant)}
    made = {name: to_core(value, types[name], name) for name, value in values.items() if name not in constants}
    stated = [each.samples for each in constants.values() if each.samples is not None]
    samples: int = max((each.samples for each in made.values()), default=max(stated, default=1))
    for name, value in constants.items():
        made[name] = to_core(value, types[name], name, samples if value.samples is None else value.samples)
    return list(made.items()), samples


def _constant(constant: Constant, type: DataType, name: str, samples: int) -> NDArray[Any]:
    """Returns [samples, shape...], every sample of which is the constant."""
    given = np.asarray(constant.value)
    if type.storage != _core.DENSE or given.dtype.kind not in "iufb":
        raise error.InvalidError(
            f'the feed of data layer "{name}" is the constant {constant.value!r}; expected {type}', "data", name
        )
    wanted = np.dtype(type.dtype)
    value = _narrowed(given, wanted, type, name) if wanted.kind in "iu" else given.astype(wanted)
    try:
        return np.ascontiguousarray(np.broadcast_to(value, (samples, *type.shape)))
    except ValueError:
        raise error.InvalidError(
            f'the feed of data layer "{name}" is a constant of shape {list(given.shape)}; expected {type}', "data", name
        ) from None


def _sparse(value: Any, type: DataType, name: str) -> Any:
    width = type.shape[0]
    if _is_scipy(value):
        matrix = value.tocsr()
        matrix.sum_duplicates()
        if matrix.shape[1] != width:
            raise error.InvalidError(
                f'the feed of data layer "{name}" has {matrix.shape[1]} columns; expected {width}', "data", name
            )
        value = Sparse(width, matrix.indptr, matrix.indices, matrix.data)
    if not isinstance(value, Sparse):
        offsets, columns, values = [0], [], []
        for row in value:
            for entry in row.items() if isinstance(row, dict) else row:
                pair = entry if isinstance(entry, (tuple, list)) else (entry, 1.0)
                columns.append(int(pair[0]))
                values.append(float(pair[1]))
            offsets.append(len(columns))
        value = Sparse(width, offsets, columns, values)
    if value.width != width:
        raise error.InvalidError(
            f'the feed of data layer "{name}" has vectors of {value.width} numbers; expected {width}', "data", name
        )
    return _core.sparse(width, value.offsets, value.columns, value.values)


def _ragged(value: Any, type: DataType, name: str) -> Any:
    if not isinstance(value, Ragged):
        try:
            value = _ragged_of(value, type)
        except (TypeError, ValueError) as failure:
            raise error.InvalidError(
                f'the feed of data layer "{name}" is no list of sequences: {failure}; expected {type}', "data", name
            ) from None
    if (value.inner is not None) != (type.levels == 2):
        levels = 1 if value.inner is None else 2
        raise error.InvalidError(
            f'the feed of data layer "{name}" has {levels} levels of sequences; expected {type}', "data", name
        )
    values = np.ascontiguousarray(_dense(value.values, type, name))
    return _core.ragged(values, value.offsets, value.inner)


def _ragged_of(value: Any, type: DataType) -> Ragged:
    if type.levels < 2:
        return Ragged.of(value, type.dtype, type.shape)
    samples = [list(each) for each in value]
    rows = Ragged.of([inner for each in samples for inner in each], type.dtype, type.shape)
    offsets = np.cumsum([0, *[len(each) for each in samples]])
    return Ragged(rows.values, offsets, rows.offsets)
