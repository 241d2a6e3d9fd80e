"""Tables that pyarrow, polars, pandas and DuckDB read without a copy. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenon import _core, error
from tenon._base import arrow
from tenon._base.arrays import Ragged, Sparse, columns_of, is_frame, of_arrow, of_column, opened, plain
from tenon._base.categories import numbered

_TIMES = {"s": "tss:", "ms": "tsm:", "us": "tsu:", "ns": "tsn:"}


class Categories:
    """Numbers of classes with the names of all classes."""

    def __init__(self, numbers: Any, names: Sequence[str]) -> None:
        self.numbers = np.asarray(numbers)
        self.names = list(names)

    def __len__(self) -> int:
        return len(self.numbers)

    def texts(self) -> NDArray[Any]:
        """Returns the names, one for each number."""
        texts: NDArray[Any] = np.array(self.names, object)[self.numbers]
        return texts

    def __repr__(self) -> str:
        return f"<categories {self.texts().tolist()!r}>"


class Table:
    """Columns of equal length by name, for everything that takes the methods of Arrow: pyarrow.table(table),
    polars.DataFrame(table), pandas.DataFrame.from_arrow(table), or a query of DuckDB.

    columns: arrays of numbers or times, lists of numbers or texts, tenon.Ragged, tenon.Sparse, or a frame or table. Arrays
    of several dimensions become lists of one size, sequences lists, sparse vectors maps. The memory of arrays is lent.
    """

    def __init__(self, columns: Any) -> None:
        columns = opened(columns)
        self._columns = columns_of(columns) if is_frame(columns) else dict(columns)
        self._values = {name: _values(values, name) for name, values in self._columns.items()}
        lengths = {name: len(values) for name, values in self._values.items()}
        if len(set(lengths.values())) > 1:
            raise error.InvalidError(f"the columns of a table differ in length: {lengths}", "table")

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self._columns)

    def __getitem__(self, name: str) -> Any:
        if name not in self._columns:
            near = error.suggestion(str(name), self._columns)
            raise error.NotFoundError(f"the table has no column {name!r}{near}", "table", str(name))
        return self._columns[name]

    def __len__(self) -> int:
        return next((len(values) for values in self._values.values()), 0)

    def _field(self) -> Any:
        columns = [_field(name, values) for name, values in self._values.items()]
        return _core.arrow_buffers("+s", "", len(self), [None], columns)

    def __arrow_c_schema__(self) -> Any:
        return _core.arrow_schema(self._field())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return _core.arrow_stream(self._field())

    def __repr__(self) -> str:
        return f"<tenon.Table of {len(self)} rows: {', '.join(self._columns)}>"


def _values(values: Any, name: str) -> Any:
    """Returns an array, Ragged, Sparse, Categories, or a list of texts."""
    where = f'column "{name}" of the table'
    if isinstance(values, (Ragged, Sparse, Categories)):
        return values
    values = of_arrow(values)
    if (categories := numbered(values, where, name)) is not None:
        return Categories(*categories)
    if arrow.is_arrow(values):
        encoded = arrow.texts_of(values)
        array = of_column(values, None, where, name) if encoded is None else [each.decode() for each in encoded]
    else:
        array = plain(values)
    if isinstance(array, (str, bytes)) or not hasattr(array, "__iter__"):
        raise error.InvalidError(f"{where} is one value; expected an array", "table", name)
    if not isinstance(array, np.ndarray):
        listed = list(array)
        array = np.array(listed, object) if any(isinstance(each, str) for each in listed) else np.asarray(listed)
    if array.ndim == 0:
        raise error.InvalidError(f"{where} is one value; expected an array", "table", name)
    if array.ndim == 1 and array.dtype.kind in "OUT":
        texts = array.tolist()
        for row, each in enumerate(texts):
            if not isinstance(each, str):
                raise error.InvalidError(
                    f"{where} has {type(each).__name__} {each!r} in row {row}; expected texts", "table", name
                )
        return texts
    if array.dtype.kind == "M" and array.ndim == 1:
        return array.astype("M8[s]") if np.datetime_data(array.dtype)[0] not in _TIMES else array
    if array.dtype.kind not in "iufb":
        raise error.InvalidError(f"{where} has elements of type {array.dtype}; expected numbers or texts", "table", name)
    return np.ascontiguousarray(array, array.dtype.newbyteorder("="))


def _field(name: str, values: Any) -> Any:
    """Returns a column as _core.arrow_stream takes it."""
    if isinstance(values, list):
        return _texts(name, values)
    if isinstance(values, Categories):
        return _core.arrow_field(name, _core.dense(np.ascontiguousarray(values.numbers, np.int64)), _texts("", values.names))
    if isinstance(values, Sparse):
        return _core.arrow_field(name, _core.sparse(values.width, values.offsets, values.columns, values.values))
    if isinstance(values, Ragged):
        return _core.arrow_field(name, _core.ragged(np.ascontiguousarray(values.values), values.offsets, values.inner))
    if values.dtype.kind != "M":
        return _core.arrow_field(name, _core.dense(values))
    missing = np.isnat(values)
    present = np.packbits(~missing, bitorder="little") if missing.any() else None
    format = _TIMES[np.datetime_data(values.dtype)[0]]
    return _core.arrow_buffers(format, name, len(values), [present, np.ascontiguousarray(values).view(np.int64)], [])


def _texts(name: str, texts: Sequence[str]) -> Any:
    encoded = [each.encode("utf-8", "replace") for each in texts]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(each) for each in encoded], out=offsets[1:])
    return _core.arrow_buffers("U", name, len(encoded), [None, offsets, np.frombuffer(b"".join(encoded), np.uint8)], [])
