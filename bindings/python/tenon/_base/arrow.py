"""Columns of the Arrow C data interface: of pyarrow, polars, DuckDB and whatever has its methods.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tenon import _core, error

_NUMBERS = {"c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8", "e": "f2", "f": "f4",
            "g": "f8"}  # fmt: skip
_TEXTS = {"u": "i4", "z": "i4", "U": "i8", "Z": "i8", "vu": "", "vz": ""}  # with the type of their offsets
_LISTS = {"+l": "i4", "+L": "i8", "+m": "i4"}
_FOREIGN = {"t": "times", "d": "decimals", "u": "texts", "U": "texts", "z": "bytes", "Z": "bytes", "w": "bytes",
            "v": "texts", "n": "missing values"}  # fmt: skip
_NESTED = {"+s": "structs", "+v": "list views", "+r": "run-end encoded values", "+u": "unions", "+m": "maps"}
_INLINE = 12  # bytes of a text that lie within its view


@dataclass(frozen=True)
class Part:
    """The elements of a chunk from `start` to `stop`, counted from the begin of its buffers."""

    chunk: Any
    start: int
    stop: int

    @classmethod
    def of(cls, chunk: Any) -> Part:
        """Returns all elements."""
        return cls(chunk, chunk.offset, chunk.offset + chunk.length)

    def child(self, number: int, start: int, stop: int) -> Part:
        """Returns elements of a child, counted from its offset."""
        child = self.chunk.children[number]
        if not 0 <= start <= stop <= child.length:
            raise error.BadDataError("the table of Arrow has offsets outside of their values", "data")
        return Part(child, child.offset + start, child.offset + stop)

    def __len__(self) -> int:
        return self.stop - self.start

    def buffer(self, number: int, dtype: str, more: int = 0) -> NDArray[Any]:
        """Returns the numbers of a buffer, one for each element and `more`, without a copy."""
        size = np.dtype(dtype).itemsize
        last = self.stop + more
        read = self.chunk.buffer(number, last * size) if len(self) + more else None
        if read is None:
            return np.zeros(len(self) + more, dtype)
        numbers: NDArray[Any] = read.view(dtype)[self.start : last]
        return numbers if numbers.flags.aligned else numbers.copy()

    def bits(self, number: int) -> NDArray[np.bool_]:
        """Returns the bits of a buffer, one for each element; all set if it is absent."""
        first, last = self.start // 8, (self.stop + 7) // 8
        read = self.chunk.buffer(number, last) if len(self) else None
        if read is None:
            return np.ones(len(self), np.bool_)
        bits = np.unpackbits(read[first:], bitorder="little")
        return bits[self.start - 8 * first :][: len(self)].view(np.bool_)


class Column:
    """A column of a table, in chunks. Its memory is that of the producer."""

    def __init__(self, type: dict[str, Any], parts: Sequence[Part]) -> None:
        self.type = type
        self.parts = list(parts)

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def format(self) -> str:
        """The format of the elements, as the interface writes it."""
        format: str = self.type["format"]
        return format

    def child(self, number: int, parts: Iterable[Part]) -> Column:
        """Returns a column of the elements of a child."""
        return Column(self.type["children"][number], list(parts))


class Sequences:
    """Lists of a column: the rows, and where those of each list begin; inner: of lists of lists."""

    def __init__(self, values: NDArray[Any], offsets: NDArray[Any], inner: NDArray[Any] | None = None) -> None:
        self.values, self.offsets, self.inner = values, offsets, inner


class Pairs(Sequences):
    """Maps of a column: keys instead of rows, and the values of the keys."""

    def __init__(self, keys: NDArray[Any], offsets: NDArray[Any], numbers: NDArray[Any]) -> None:
        super().__init__(keys, offsets)
        self.numbers = numbers


def is_arrow(value: Any) -> bool:
    """Whether a value exports its memory. Those of pandas are taken as such, column by column."""
    if isinstance(value, (Column, type)):
        return isinstance(value, Column)
    exports = hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")
    return exports and not hasattr(value, "iloc")


def read(value: Any) -> Column | dict[str, Column]:
    """Returns a column, or those of a table by name. A stream is read to its end, its numbers are not."""
    if isinstance(value, Column):
        return value
    if hasattr(value, "__arrow_c_stream__"):
        type, chunks = _core.read_arrow_stream(value.__arrow_c_stream__())
    else:
        type, chunks = _core.read_arrow_array(*value.__arrow_c_array__())
    column = Column(type, [Part.of(each) for each in chunks])
    if column.format != "+s":
        return column
    row = _first_null(column)
    if row is not None:
        raise error.BadDataError(f"row {row} of the table of Arrow is missing", "data")
    names = [each["name"].decode(errors="replace") for each in type["children"]]
    for name in names:
        if names.count(name) > 1:
            raise error.InvalidError(f'{names.count(name)} columns are called "{name}"; expected one', "reader", name)
    # The children of a struct are cut by its own offset.
    return {
        name: column.child(number, [each.child(number, each.start, each.stop) for each in column.parts])
        for number, name in enumerate(names)
    }


def values_of(value: Any, where: str, name: str) -> tuple[Any, list[str] | None]:
    """Returns the values of a column: an array, or Sequences; with the names of categories, or None. BadDataError for
    missing values. where: begins the message, such as 'slot "x"'; name: of the slot."""
    column = read(value)
    if isinstance(column, dict):
        return _side_by_side(column, where, name), None
    row = _first_null(column)
    if row is not None:
        raise error.BadDataError(f"sample {row}: {where} has a missing value", "data", name)
    if column.type["dictionary"] is not None:
        return _categories(column, where, name)
    return _values(column, where, name), None


def _side_by_side(columns: dict[str, Column], where: str, name: str) -> NDArray[Any]:
    """Returns columns of numbers as vectors."""
    pairs = [values_of(column, f'{where}, column "{part}",', name) for part, column in columns.items()]
    found = [values for values, texts in pairs if texts is None and isinstance(values, np.ndarray) and values.ndim == 1]
    if not found or len(found) != len(pairs):
        _refuse("a table whose columns are not all of numbers", where, name)
    return np.stack(found, 1)


def texts_of(value: Any) -> list[Any] | None:
    """Returns the texts of a column, bytes as they are; None of another one, and of one with missing values."""
    column = read(value)
    if isinstance(column, dict) or column.format not in _TEXTS or _first_null(column) is not None:
        return None
    return [text for each in column.parts for text in _texts(column.format, each)]


def _refuse(what: str, where: str, name: str) -> NoReturn:
    raise error.InvalidError(f"{where} has {what}; expected numbers, categories, or lists of numbers", "data", name)


def _values(column: Column, where: str, name: str) -> Any:
    """Returns numbers as an array, lists of equal length by their type as one more dimension, and other lists."""
    format = column.format
    if format in _NUMBERS:
        return _joined([each.buffer(1, _NUMBERS[format]) for each in column.parts], _NUMBERS[format])
    if format == "b":
        return _joined([each.bits(1) for each in column.parts], "?")
    if format.startswith("+w:"):
        size = _fixed_size(format)
        rows = _values(column.child(0, [_children(column, each) for each in column.parts]), where, name)
        if isinstance(rows, Sequences):
            _refuse("lists in lists of one size", where, name)
        return rows.reshape(-1, size, *rows.shape[1:])
    if format in _LISTS and column.type["children"][0]["dictionary"] is None:
        return _lists(column, where, name)
    kind = _NESTED.get(format[:2]) or _FOREIGN.get(format[:1]) or f"elements of the format {format}"
    if format in _LISTS or column.type["dictionary"] is not None:
        kind = "categories in lists"
    _refuse(kind, where, name)


def _lists(column: Column, where: str, name: str) -> Sequences:
    starts = [each.buffer(1, _LISTS[column.format], 1) for each in column.parts if len(each)]
    lengths = np.concatenate([np.zeros(1, np.int64), *[np.diff(each) for each in starts]])
    if (lengths < 0).any():
        raise error.BadDataError(f"{where} has offsets that fall", "data", name)
    offsets = np.cumsum(lengths, dtype=np.int64)
    child = column.child(0, [_children(column, each) for each in column.parts])
    if column.format == "+m":
        keys, numbers = (
            _values(child.child(number, [each.child(number, each.start, each.stop) for each in child.parts]), where, name)
            for number in (0, 1)
        )
        return Pairs(keys, offsets, numbers)
    values = _values(child, where, name)
    if not isinstance(values, Sequences):
        return Sequences(values, offsets)
    if values.inner is not None or isinstance(values, Pairs):
        _refuse("lists of more than 2 levels", where, name)
    return Sequences(values.values, offsets, values.offsets)


def _fixed_size(format: str) -> int:
    return int(format[3:])


def _children(column: Column, part: Part) -> Part:
    """Returns the elements of the lists of a part."""
    if column.format.startswith("+w:"):
        size = _fixed_size(column.format)
        return part.child(0, part.start * size, part.stop * size)
    if not len(part):
        return part.child(0, 0, 0)
    offsets = part.buffer(1, _LISTS[column.format], 1)
    return part.child(0, int(offsets[0]), int(offsets[-1]))


def _joined(arrays: Sequence[NDArray[Any]], dtype: str) -> NDArray[Any]:
    filled = [each for each in arrays if len(each)]
    if len(filled) == 1:
        return filled[0]
    return np.concatenate(filled) if filled else np.zeros(0, dtype)


def _first_null(column: Column) -> int | None:
    """Returns the number of the first element that is missing, or that has one that is."""
    rows = 0
    for each in column.parts:
        row = _null_in(Column(column.type, [each]), each)
        if row is not None:
            return rows + row
        rows += len(each)
    return None


def _null_in(column: Column, part: Part) -> int | None:
    format, rows = column.format, []
    if format == "n":
        return 0 if len(part) else None
    if part.chunk.null_count != 0 and format[:2] not in ("+u", "+r"):  # those have no bits of their own
        present = part.bits(0)
        rows += [int(present.argmin())] if not present.all() else []
    if (format in _LISTS or format.startswith("+w:")) and len(part):
        inner = _first_null(column.child(0, [_children(column, part)]))
        if inner is not None and format.startswith("+w:"):
            rows.append(inner // _fixed_size(format))
        elif inner is not None:
            starts = part.buffer(1, _LISTS[format], 1)
            rows.append(int(np.searchsorted(starts - starts[0], inner, side="right")) - 1)
    return min(rows, default=None)


def _categories(column: Column, where: str, name: str) -> tuple[NDArray[np.int64], list[str]]:
    """Returns the numbers and names of categories. Chunks may have dictionaries of their own: names are in the order of
    their first use, those of the first dictionary in its order."""
    place: dict[str, int] = {}
    parts: list[NDArray[np.int64]] = []
    for each in column.parts:
        numbers = each.buffer(1, _NUMBERS[column.format]).astype(np.int64)
        texts = _names(Column(column.type["dictionary"], [Part.of(each.chunk.dictionary)]), where, name)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(texts):
            raise error.BadDataError(f"{where} has numbers of categories that its dictionary lacks", "data", name)
        codes = np.array([-1 if text is None else place.setdefault(text, len(place)) for text in texts], np.int64)
        missing = np.flatnonzero(codes[numbers] < 0) if len(numbers) else numbers
        if len(missing):
            row = sum(len(part) for part in parts) + int(missing[0])
            raise error.BadDataError(f"sample {row}: {where} has a missing value", "data", name)
        parts.append(codes[numbers])
    return _joined(parts, "i8"), list(place)


def _names(column: Column, where: str, name: str) -> list[str | None]:
    """Returns the entries of a dictionary as texts."""
    [part] = column.parts
    present = part.bits(0) if part.chunk.null_count else np.ones(len(part), np.bool_)
    if column.format in _TEXTS:
        entries: list[Any] = _texts(column.format, part)
    elif column.format == "tdD":
        entries = part.buffer(1, "i4").astype("i8").view("M8[D]").tolist()
    elif column.format in _NUMBERS or column.format == "b":
        entries = _values(Column(column.type, [part]), where, name).tolist()
    else:
        _refuse(f"categories of {_FOREIGN.get(column.format[:1], column.format)}", where, name)
    return [category(each, where, name) if there else None for each, there in zip(entries, present, strict=True)]


def category(value: Any, where: str, name: str) -> str:
    """Returns a category as a text; bytes are UTF-8."""
    try:
        text = value.decode() if isinstance(value, bytes) else str(value)
        text.encode()
    except UnicodeError as fault:
        raise error.BadDataError(
            f'{where}: the category {value!r} is not UTF-8; .str.decode("latin1") of pandas reads ISO 8859-1', "reader", name
        ) from fault
    return text


def _texts(format: str, part: Part) -> list[bytes]:
    if not len(part):
        return []
    if format in ("vu", "vz"):
        return _viewed(part)
    offsets = part.buffer(1, _TEXTS[format], 1)
    if (np.diff(offsets) < 0).any() or offsets[0] < 0:
        raise error.BadDataError("the table of Arrow has offsets of texts that fall", "data")
    memory = part.chunk.buffer(2, int(offsets[-1]))
    joined = b"" if memory is None else memory.tobytes()
    return [joined[start:stop] for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


def _viewed(part: Part) -> list[bytes]:
    """Returns texts of views: 16 bytes each, with a text that is short, or else its place in one of several buffers."""
    views = part.buffer(1, "V16").view("i4").reshape(-1, 4)
    last = part.chunk.buffers - 1
    sizes = part.chunk.buffer(last, 8 * (last - 2))
    lengths = [] if sizes is None else sizes.view("i8").tolist()
    buffers = [part.chunk.buffer(2 + number, size) for number, size in enumerate(lengths)]
    texts: list[bytes] = []
    for size, _, number, start in views.tolist():
        if size <= _INLINE:
            texts.append(views[len(texts)].tobytes()[4 : 4 + size])
            continue
        if not (0 <= number < len(buffers) and 0 <= start <= lengths[number] - size):
            raise error.BadDataError("the table of Arrow has views outside of their texts", "data")
        texts.append(buffers[number][start : start + size].tobytes())
    return texts
