"""Columns of arrays, frames and tables as the slots of a reader. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenon import _core, error
from tenon._base.arrays import (
    Ragged,
    Sparse,
    _is_scipy,
    check_storage,
    checked,
    column,
    columns_of,
    is_frame,
    of_arrow,
    of_column,
    of_scipy,
    packed,
    plain,
    type_of,
)
from tenon._base.categories import numbered
from tenon.data_type import DataType

Types = Mapping[str, DataType]


class Wanted(dict[str, Any]):
    """Types of the slots that data layers take, in the order in which samples that are tuples have them. A type may be
    None: then the slot is wanted, and its type is that of its values.

    alone: whether other slots are left out; nan: whether floats may be NaN; places: in tuples, by slot; no_tuples: why
    samples that are tuples are refused, "" if they are not. known: what a model knows of slots, such as the names of
    classes and columns.
    """

    known: Sequence[Any] = ()

    def __init__(
        self, types: Mapping[str, Any], alone: bool, nan: bool, places: Mapping[str, int] | None = None, no_tuples: str = ""
    ) -> None:
        super().__init__(types)
        self.alone, self.nan, self.places, self.no_tuples = alone, nan, places or {}, no_tuples
        self.by_place = False  # whether a reader has taken the places
        self.columns: list[str] = []  # of frames, also those that were left as they are

    def renamed(self, pairs: Sequence[tuple[str, str]]) -> Wanted:
        """Returns the same for a source of slots with other names."""
        result = Wanted({old: self[new] for old, new in pairs if new in self}, self.alone, self.nan)
        result.columns = self.columns
        slots = {new: old for old, new in pairs}
        result.known = [each.of(slots[each.slot]) for each in self.known if each.slot in slots]
        return result

    def and_slot(self, name: str) -> Wanted:
        """Returns the same with one more slot."""
        result = Wanted({**self, name: self.get(name)}, self.alone, self.nan)
        result.known, result.columns = self.known, self.columns
        return result


def converted(given: Any, types: Types) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Returns the values and the options of slots: of the columns that data layers take, or else of all. The others stay
    as they are, unless there is none that they take: then those of numbers are slots, for messages."""
    columns = columns_of(given) if is_frame(given) else dict(given)
    if not isinstance(types, Wanted) or not types.alone:
        return {name: _column(name, values, types.get(name)) for name, values in columns.items()}
    names = {each.slot: each.texts for each in types.known if each.texts}
    found = {
        name: _column(name, values, types[name], names.get(name, ())) for name, values in columns.items() if name in types
    }
    types.columns += columns
    for name, values in columns.items() if not found else ():
        with suppress(Exception):  # of whatever the column is made of
            found[name] = _column(name, values, None)
    return found


def _column(
    name: str, values: Any, known: DataType | None, names: Sequence[str] = ()
) -> tuple[Any, dict[str, Any]]:
    """Returns the values of a slot, and its options. known: the type of the data layer that the slot feeds; names: by which
    a model knows its categories."""
    where, limit = f'slot "{name}"', -1 if known is None else known.index_limit
    if _is_scipy(values):
        values = of_scipy(values, where, name)
    values = of_arrow(values)
    if (categories := numbered(values, where, name, names)) is not None:
        numbers, texts = categories
        type = DataType("int64", (), len(texts) if limit < 0 else limit)
        return numbers, {**type.options(name), "texts": texts}
    values = of_column(values, known, where, name)
    if isinstance(values, (Sparse, Ragged)):
        own = type_of(values)
        packed(values, own, where, name)  # refuses damaged ones
        dtype = own.dtype if known is None else known.dtype
        return values, DataType(dtype, own.shape, limit, own.storage, own.levels).options(name)
    array = values if isinstance(values, np.ndarray) else _array(values, known)
    foreign = array.dtype.kind not in "iufb" if known is None else known.storage != _core.DENSE
    if foreign or array.dtype == object:
        return _listed(name, array, known)
    if array.ndim == 0:
        raise error.InvalidError(f'column "{name}" is one number; expected an array of samples', "reader", name)
    if known is not None:
        array = column(array, known)
    array = np.asarray(checked(array, known or DataType(_narrow(array.dtype)), where, name))
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        array = array.astype(_narrow(array.dtype))
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    dtype = _narrow(array.dtype) if known is None else known.dtype
    return array, DataType(dtype, array.shape[1:], limit).options(name)


def packed_column(values: Any, name: str) -> Any:
    """Returns what the library reads of the values of a slot; None of objects, each of which is a sample."""
    if isinstance(values, np.ndarray):
        return None if values.dtype == object else _core.dense(np.ascontiguousarray(values))
    if isinstance(values, Ragged) and values.values.dtype == np.float16:
        values = Ragged(values.values.astype(np.float32), values.offsets, values.inner)
    return packed(values, type_of(values), f'slot "{name}"', name)


def _array(values: Any, known: DataType | None) -> NDArray[Any]:
    """Returns a list as an array; of objects where it is none of numbers, or where its samples are no arrays."""
    if known is None or known.storage == _core.DENSE:
        try:
            return np.asarray(values)
        except ValueError:  # of several lengths
            pass
    listed = list(values)
    array = np.empty(len(listed), object)
    array[:] = listed
    return array


def _narrow(dtype: np.dtype[Any]) -> str:
    """Returns the type of a slot for that of a column: float32 for float64, which NumPy has by default."""
    if dtype.kind == "f":
        return "float32"
    return "int64" if dtype == np.uint64 or dtype.kind not in "iub" else str(dtype.newbyteorder("="))


def _listed(name: str, values: NDArray[Any], known: DataType | None) -> tuple[Any, dict[str, Any]]:
    """Returns a column of objects, each a sample, and the options of its slot; of the first sample's type where none is
    known."""
    first = values[0] if len(values) else None
    if isinstance(first, np.generic):
        first = first.item()
    first = np.asarray(first) if isinstance(first, (list, tuple)) and known is None else plain(first)
    if isinstance(first, str):
        raise error.InvalidError(
            f'column "{name}" has texts; expected {known or "numbers"}; .astype("category") of pandas makes them integers '
            "with names",
            "reader",
            name,
        )
    if known is not None:
        check_storage(values, known, f'slot "{name}"', name)
        return values, known.options(name)
    if not isinstance(first, (int, float, np.ndarray, np.number)) or np.asarray(first).dtype.kind not in "iufb":
        raise error.InvalidError(
            f'column "{name}" has elements of type {type(first).__name__}; expected numbers', "reader", name
        )
    made = np.asarray(first)
    return values, DataType(_narrow(made.dtype), made.shape).options(name)
