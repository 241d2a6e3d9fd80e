"""Columns of the Arrow C data interface: of pyarrow, polars, DuckDB and whatever has its methods.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tenon import _core, error

if TYPE_CHECKING:
    from tenon.data_type import DataType

Column = _core.ArrowColumn


def is_arrow(value: Any) -> bool:
    """Whether a value exports its memory. Those of pandas are taken as such, column by column."""
    if isinstance(value, (Column, type)):
        return isinstance(value, Column)
    exports = hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")
    return exports and not hasattr(value, "iloc")


def read(value: Any) -> Any:
    """Returns a column, or those of a table as a dict by name. A stream is read to its end, its numbers are not."""
    if isinstance(value, Column):
        return value
    if hasattr(value, "__arrow_c_stream__"):
        column = _core.read_arrow_stream(value.__arrow_c_stream__())
    else:
        column = _core.read_arrow_array(*value.__arrow_c_array__())
    if column.format != "+s":
        return column
    return {name.decode(errors="replace"): each for name, each in column.columns()}


def values_of(value: Any, where: str, name: str, type: DataType | None = None) -> tuple[Any, list[str] | None]:
    """Returns the values of a column as the library has arrays, for a data layer of `type`, with the names of categories,
    or None. BadDataError for missing values. where: begins the message, such as 'slot "x"'; name: of the slot."""
    column = read(value)
    if isinstance(column, dict):
        return _side_by_side(column, where, name), None
    expected = "numbers, categories, or lists of numbers" if type is None else str(type)
    form = None if type is None else (type.storage, type.levels, list(type.shape))
    values, names = column.values(where, name, expected, form)
    return values, None if names is None else [category(each, where, name) for each in names]


def _side_by_side(columns: dict[str, Any], where: str, name: str) -> NDArray[Any]:
    """Returns columns of numbers as vectors."""
    pairs = [values_of(column, f'{where}, column "{part}",', name) for part, column in columns.items()]
    found = [values for values, texts in pairs if texts is None and isinstance(values, np.ndarray) and values.ndim == 1]
    if not found or len(found) != len(pairs):
        raise error.InvalidError(
            f"{where} has a table whose columns are not all of numbers; expected numbers, categories, or lists of numbers",
            "data",
            name,
        )
    return np.stack(found, 1)


def texts_of(value: Any) -> list[Any] | None:
    """Returns the texts of a column, bytes as they are; None of another one, and of one with missing values."""
    column = read(value)
    return None if isinstance(column, dict) else column.texts()


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
