"""Values between Python and the library: arrays, sequences, sparse vectors.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenon import _core, error
from tenon._base import arrow
from tenon._base.categories import may_be_named, numbered
from tenon.data_type import DataType


class Ragged:
    """Sequences of rows, one after the other without padding.

    values: [rows, shape of a row...]; offsets: [samples + 1], sequence i has the rows from offsets[i] to
    offsets[i + 1]; inner: of sequences of sequences, where offsets count the inner sequences.
    """

    __slots__ = ("inner", "offsets", "values")

    def __init__(self, values: Any, offsets: Any, inner: Any = None) -> None:
        self.values: NDArray[Any] = np.asarray(values)
        self.offsets: NDArray[np.int64] = _integers(offsets, 'the array "offsets" of tenon.Ragged')
        self.inner: NDArray[np.int64] | None = None
        if inner is not None:
            self.inner = _integers(inner, 'the array "inner" of tenon.Ragged')

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
        self.offsets: NDArray[np.int64] = _integers(offsets, 'the array "offsets" of tenon.Sparse')
        self.columns: NDArray[np.int64] = _integers(columns, 'the array "columns" of tenon.Sparse')
        self.values: NDArray[np.float32] | None = None
        if values is not None:
            made = numbers(values, DataType(), 'the array "values" of tenon.Sparse')
            self.values = np.ascontiguousarray(made, np.float32)

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

    def __init__(self, capsule: Callable[[bool], Any]) -> None:
        self._capsule = capsule

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        if copy:
            raise BufferError("this memory is shared without a copy: copy the tensor")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"this memory is the CPU's, {self.__dlpack_device__()}; {tuple(dl_device)} was asked for")
        return self._capsule(max_version is not None and max_version[0] >= 1)

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
        ends = np.cumsum([0, *[each[-1] for each in lists[:-1]]])
        return np.concatenate([lists[0][:1], *[each[1:] + end for each, end in zip(lists, ends, strict=True)]])

    inner = None if parts[0].inner is None else chained([each.inner for each in parts])
    return Ragged(np.concatenate([each.values for each in parts]), chained([each.offsets for each in parts]), inner)


def _is_scipy(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "scipy" and hasattr(value, "tocsr")


def is_frame(value: Any) -> bool:
    """Whether it is a frame of pandas or polars, a table of Arrow, or a structured array: what has columns by name."""
    if isinstance(value, np.ndarray):
        return value.dtype.names is not None and value.ndim == 1
    return hasattr(value, "column_names") or (hasattr(value, "columns") and hasattr(value, "to_numpy"))


def columns_of(frame: Any) -> dict[str, Any]:
    """Returns the columns of a frame by name, each as it is."""
    if isinstance(frame, np.ndarray):
        return {name: frame[name] for name in frame.dtype.names or ()}
    table = hasattr(frame, "column_names")
    labels = list(frame.column_names if table else frame.columns)
    names = [str(name) for name in labels]
    for name in names:
        if names.count(name) > 1:
            raise error.InvalidError(f'{names.count(name)} columns are called "{name}"; expected one', "reader", name)
    return {name: frame.column(number) if table else frame[labels[number]] for number, name in enumerate(names)}


def opened(value: Any) -> Any:
    """Returns the columns of what exports a table by the methods of Arrow alone, by name, and its column if it exports
    one; other values as they are, frames too, whose columns are exported one by one."""
    return arrow.read(value) if arrow.is_arrow(value) and not is_frame(value) else value


def is_table(value: Any) -> bool:
    """Whether it is what `opened` returns of a table, which may have any number of samples."""
    return isinstance(value, dict) and bool(value) and all(isinstance(each, arrow.Column) for each in value.values())


def _refusal(where: str, what: str, expected: object, name: str) -> error.InvalidError:
    return error.InvalidError(f"{where} {what}; expected {expected}", "data", name)


_FOREIGN = {"c": "complex numbers", "U": "texts", "S": "texts", "T": "texts", "M": "times", "m": "times"}


def numbers(value: Any, type: DataType, where: str, name: str = "") -> NDArray[Any]:
    """Returns numbers as an array in the element type of `type`, or in one that the library widens to it. Arrays of the
    right type are returned as they are, and their numbers are not read. InvalidError for what the type cannot hold.
    where: begins the message, such as 'slot "x"'; name: of the slot."""
    array = checked(value if isinstance(value, np.ndarray) else np.asarray(value), type, where, name)
    wanted = np.dtype(type.dtype)
    if array.dtype == wanted or _widens(array.dtype, wanted):
        return np.asarray(array).astype(array.dtype.newbyteorder("="), copy=False)
    if wanted.kind == "f" and array.dtype.kind == "f":
        try:
            with np.errstate(over="raise"):
                return array.astype(wanted)
        except FloatingPointError:
            raise _refusal(where, f"has numbers that {wanted} cannot hold", type, name) from None
    with np.errstate(invalid="ignore", over="ignore"):
        cast = array.astype(wanted)
        if array.dtype.kind == "b" or (_fits(array, wanted) and np.array_equal(cast.astype(array.dtype), array)):
            return cast
    raise _refusal(where, f"has {array.dtype} that {wanted} cannot hold", type, name)


def checked(array: NDArray[Any], type: DataType, where: str, name: str) -> NDArray[Any]:
    """Returns the array if its elements are numbers of the right kind, whatever their values; else an InvalidError."""
    kind, wanted = array.dtype.kind, np.dtype(type.dtype)
    if kind not in "iufb":
        what = _FOREIGN.get(kind, f"elements of type {array.dtype}")
        raise _refusal(where, f"has {what}", type, name)
    if kind == "f" and wanted.kind in "iub":
        missing = ", some of which are missing or NaN" if array.size and np.isnan(array).any() else ""
        raise _refusal(where, f"has floats{missing}", type, name)
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise _refusal(where, "has masked elements", type, name)
    return array


def _widens(of: np.dtype[Any], to: np.dtype[Any]) -> bool:
    """Whether the library reads the type as the wider one, without a loss."""
    if of.kind == "f":
        return of == np.float32 and to == np.float64
    return of.kind in "iu" and np.can_cast(of, to) and not (of.kind == "u" and to.kind == "i")


def _fits(array: NDArray[Any], wanted: np.dtype[Any]) -> bool:
    """Whether integers are within a type; always so of floats."""
    if wanted.kind not in "iu" or array.size == 0:
        return True
    limits = np.iinfo(wanted)
    return int(array.min()) >= limits.min and int(array.max()) <= limits.max


def _integers(value: Any, where: str) -> NDArray[np.int64]:
    array = np.asarray(value)
    if array.size == 0:
        return np.zeros(array.shape, np.int64)
    return np.ascontiguousarray(numbers(array, DataType("int64"), where), np.int64)


def require_present(value: Any, where: str, name: str) -> Any:
    """Returns a column of a frame or table, which may be one of floats; BadDataError if a number is missing in it. NaN of
    floats is a number here."""
    missing, what = None, "a missing value"
    if isinstance(value, np.ma.MaskedArray):
        missing, what = np.ma.getmaskarray(value), "masked elements"
    elif hasattr(value, "isna") and not isinstance(getattr(value, "dtype", None), np.dtype):  # of pandas
        missing = np.asarray(value.isna())
    if missing is not None and missing.any():
        row = int(missing.reshape(len(missing), -1).any(1).argmax()) if missing.ndim else 0
        raise error.BadDataError(f"sample {row}: {where} has {what}", "data", name)
    return value


def of_arrow(value: Any) -> Any:
    """Returns the array of Arrow in a column of pandas; other values as they are."""
    return value.array.__arrow_array__() if hasattr(getattr(value, "dtype", None), "pyarrow_dtype") else value


def of_column(value: Any, type: DataType | None, where: str, name: str) -> Any:
    """Returns the array, Ragged or Sparse of a column of Arrow, for a data layer of `type`; the array of a tensor or of
    another column; other values as they are. BadDataError if a value is missing."""
    value = of_arrow(value)
    if not arrow.is_arrow(value):
        return plain(require_present(value, where, name))
    values, texts = arrow.values_of(value, where, name, type)
    if texts is not None:
        raise _refusal(where, "has categories", type or "numbers", name)
    return from_core(values)


def plain(value: Any) -> Any:
    """Returns the array of a tensor, or of a column of a frame or table; other values as they are."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "to_numpy"):
        return value.to_numpy()
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    if hasattr(value, "__array__"):
        return np.asarray(value)
    return value


def column(array: NDArray[Any], type: DataType) -> NDArray[Any]:
    """Returns numbers as [samples, 1] where samples are vectors of one number; other arrays as they are."""
    return array[:, None] if array.ndim == 1 and type.shape == (1,) and type.storage == _core.DENSE else array


def _where(name: str) -> str:
    return f'the feed of data layer "{name}"'


def _is_matrix(value: Any) -> bool:
    """Whether a value is an array of the library's own floats, of two dimensions or more."""
    return (
        isinstance(value, np.ndarray)
        and value.dtype.char == "f"
        and value.dtype.isnative
        and value.ndim > 1
        and not isinstance(value, np.ma.MaskedArray)
    )


def to_core(value: Any, type: DataType, name: str, samples: int = 1, names: Sequence[str] | None = None) -> Any:
    """Returns what the library is fed for a data layer. samples: of the minibatch, for constants; names: those by which a
    model knows categories, none if it knows none; None: categories are refused.

    Arrays are taken whole. Everything else is a list of samples, each of which is converted as a sample of a reader is,
    with the same errors."""
    if _is_matrix(value) and type.dtype == "float32" and type.storage == _core.DENSE:
        return _core.dense(value)  # nothing to convert
    if isinstance(value, Constant):
        return _core.dense(_constant(value, type, name, samples))
    if _is_scipy(value):
        value = of_scipy(value, _where(name), name)
    value = of_arrow(value)
    if names is not None and (categories := numbered(value, _where(name), name, names)) is not None:
        value = categories[0]
    value = of_column(value, type, _where(name), name)
    if isinstance(value, (Ragged, Sparse)):
        return packed(value, type, _where(name), name)
    if isinstance(value, np.ndarray) and (type.storage == _core.DENSE or value.ndim == 0) and value.dtype != object:
        return _core.dense(column(numbers(value, type, _where(name), name), type))
    check_storage(value, type, _where(name), name)
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
        if hasattr(value, "__float__"):
            return _core.dense(numbers(value, type, _where(name), name))
        raise _refusal(_where(name), f"is a {value.__class__.__name__}", f"samples of {type}", name)
    return _core.gather({**type.options(name), "nan": True}, value)


def check_storage(value: Any, type: DataType, where: str, name: str) -> None:
    """InvalidError for a dense array where samples are sparse: its rows are no lists of columns."""
    if isinstance(value, np.ndarray) and type.storage == _core.SPARSE and value.dtype != object:
        raise _refusal(where, f"is a dense array {value.dtype} {list(value.shape)}",
                       f"{type}: a matrix of scipy.sparse, tenon.Sparse, or lists of columns", name)  # fmt: skip


def feeds(
    values: Mapping[str, Any], types: Mapping[str, DataType], nan: bool = False,
    names: Callable[[], Mapping[str, Sequence[str]]] | None = None,
) -> tuple[list[tuple[str, Any]], int]:  # fmt: skip
    """Returns what the library is fed for a minibatch, and its number of samples. nan: whether floats may be NaN; names:
    returns those of the categories of data layers, and is called where there are categories."""
    texts = names() if names is not None and any(may_be_named(each) for each in values.values()) else None
    constants = {name: value for name, value in values.items() if isinstance(value, Constant)}
    made = {
        name: to_core(value, types[name], name, names=None if texts is None else texts.get(name, ()))
        for name, value in values.items()
        if name not in constants
    }
    stated = [each.samples for each in constants.values() if each.samples is not None]
    samples: int = max((each.samples for each in made.values()), default=max(stated, default=1))
    for name, value in constants.items():
        made[name] = to_core(value, types[name], name, samples if value.samples is None else value.samples)
    for name, value in made.items() if not nan else ():
        place = value.first_nan()
        if place is not None:
            raise error.BadDataError(f'{_where(name)} is nan at {place}; nan="allow" feeds such numbers', "data", name)
    return list(made.items()), samples


def allows_nan(nan: str, component: str) -> bool:
    """Returns whether an argument `nan` is "allow"; InvalidError if it is not "refuse" either."""
    if nan not in ("refuse", "allow"):
        raise error.InvalidError(f'nan is {nan!r}; expected "refuse" or "allow"', component, "nan")
    return nan == "allow"


def _constant(constant: Constant, type: DataType, name: str, samples: int) -> NDArray[Any]:
    """Returns [samples, shape...], every sample of which is the constant."""
    given = np.asarray(constant.value)
    if type.storage != _core.DENSE or given.dtype.kind not in "iufb":
        raise error.InvalidError(
            f'the feed of data layer "{name}" is the constant {constant.value!r}; expected {type}', "data", name
        )
    value = numbers(given, type, _where(name), name)
    try:
        return np.ascontiguousarray(np.broadcast_to(value, (samples, *type.shape)))
    except ValueError:
        raise error.InvalidError(
            f'the feed of data layer "{name}" is a constant of shape {list(given.shape)}; expected {type}', "data", name
        ) from None


def of_scipy(value: Any, where: str, name: str) -> Sparse:
    """Returns a matrix of scipy.sparse, whose indices are checked before SciPy uses them; it stays as it is."""
    if value.ndim != 2:
        raise _refusal(where, f"is a sparse array of shape {list(value.shape)}", "a matrix", name)
    try:
        if hasattr(value, "check_format"):
            value.check_format()
        elif value.format == "coo":
            for indices, extent in ((value.row, value.shape[0]), (value.col, value.shape[1])):
                if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < extent:
                    raise ValueError(f"its indices go from {indices.min()} to {indices.max()} of {extent}")
        matrix = value.tocsr()
        matrix.check_format()
    except (TypeError, ValueError) as failure:
        raise error.InvalidError(f"{where} is a damaged sparse matrix: {failure}", "data", name) from None
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return Sparse(matrix.shape[1], matrix.indptr, matrix.indices, matrix.data)


def type_of(value: Ragged | Sparse) -> DataType:
    """Returns the type of a data layer that takes such values."""
    if isinstance(value, Sparse):
        return DataType("float32", (value.width,), storage=_core.SPARSE)
    rows = value.values
    levels = 1 if value.inner is None else 2
    return DataType(str(rows.dtype), rows.shape[1:], storage=_core.RAGGED, levels=levels)


def packed(value: Ragged | Sparse, type: DataType, where: str, name: str) -> Any:
    """Returns sequences or sparse vectors that are arrays already."""
    try:
        if isinstance(value, Sparse):
            if type.storage != _core.SPARSE:
                raise _refusal(where, "has sparse vectors", type, name)
            if value.width != type.shape[0]:
                raise _refusal(where, f"has vectors of {value.width} numbers", type.shape[0], name)
            return _core.sparse(value.width, value.offsets, value.columns, value.values)
        levels = 1 if value.inner is None else 2
        if type.storage != _core.RAGGED or type.levels != levels:
            raise _refusal(where, f"has {levels} levels of sequences", type, name)
        rows = numbers(value.values, type, where, name)
        if rows.shape[1:] != type.shape:
            raise _refusal(where, f"has rows of shape {list(rows.shape[1:])}", type, name)
        return _core.ragged(np.ascontiguousarray(rows), value.offsets, value.inner)
    except error.InvalidError as failure:
        if failure.subject == name:
            raise
        raise error.InvalidError(f"{where}: {failure}", "data", name) from None
