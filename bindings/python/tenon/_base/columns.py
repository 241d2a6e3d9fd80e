"""Columns of arrays, frames and tables as the slots of a reader. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    is_frame,
    of_scipy,
    packed,
    plain,
    require_present,  # fmt: skip
    type_of,
)
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

    def renamed(self, pairs: Sequence[tuple[str, str]]) -> Wanted:
        """Returns the same for a source of slots with other names."""
        result = Wanted({old: self[new] for old, new in pairs if new in self}, self.alone, self.nan)
        slots = {new: old for old, new in pairs}
        result.known = [each.of(slots[each.slot]) for each in self.known if each.slot in slots]
        return result

    def and_slot(self, name: str) -> Wanted:
        """Returns the same with one more slot."""
        result = Wanted({**self, name: self.get(name)}, self.alone, self.nan)
        result.known = self.known
        return result


def converted(given: Any, types: Types) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Returns the values and the options of slots. Of columns that no data layer takes those alone that have numbers, and
    none if there are all that data layers take."""
    columns = _columns(given)
    if not isinstance(types, Wanted) or not types.alone:
        return {name: _column(name, values, types.get(name)) for name, values in columns.items()}
    found, missing = {}, any(name not in columns for name in types)
    for name, values in columns.items():
        try:
            if name in types or missing or not types:
                found[name] = _column(name, values, types.get(name))
        except error.Error:
            if name in types:
                raise
    return found


def _columns(columns: Any) -> dict[str, Any]:
    """Returns the columns by slot."""
    if not is_frame(columns):
        return dict(columns)
    table = hasattr(columns, "column_names")
    given = list(columns.column_names if table else columns.columns)
    names = [str(name) for name in given]
    for name in names:
        if names.count(name) > 1:
            raise error.InvalidError(f'{names.count(name)} columns are called "{name}"; expected one', "reader", name)
    return {name: columns.column(number) if table else columns[given[number]] for number, name in enumerate(names)}


def _name(category: Any, slot: str) -> str:
    """Returns a category as a text; bytes are UTF-8."""
    try:
        text = category.decode() if isinstance(category, bytes) else str(category)
        text.encode()
    except UnicodeError as fault:
        raise error.BadDataError(
            f'slot "{slot}": the category {category!r} is not UTF-8; .str.decode("latin1") of pandas reads ISO 8859-1',
            "reader",
            slot,
        ) from fault
    return text


def _categories(slot: str, values: Any) -> tuple[NDArray[Any], list[str]] | None:
    """Returns the numbers and names of categories of pandas, or of a dictionary of Arrow; None of anything else."""
    if hasattr(values, "cat") and hasattr(values.cat, "codes"):
        return values.cat.codes.to_numpy(), [_name(each, slot) for each in values.cat.categories]
    if hasattr(values, "unify_dictionaries") and str(values.type).startswith("dictionary"):  # chunks of Arrow
        values = values.unify_dictionaries().combine_chunks()
    if hasattr(values, "indices") and hasattr(values, "dictionary"):
        return values.indices.fill_null(-1).to_numpy(), [_name(each, slot) for each in values.dictionary.to_pylist()]
    return None


def _column(name: str, values: Any, known: DataType | None) -> tuple[Any, dict[str, Any]]:
    """Returns the values of a slot, and its options. known: the type of the data layer that the slot feeds."""
    where, limit = f'slot "{name}"', -1 if known is None else known.index_limit
    if _is_scipy(values):
        values = of_scipy(values, where, name)
    if isinstance(values, (Sparse, Ragged)):
        own = type_of(values)
        packed(values, own, where, name)  # refuses damaged ones
        dtype = own.dtype if known is None else known.dtype
        return values, DataType(dtype, own.shape, limit, own.storage, own.levels).options(name)
    if (categories := _categories(name, values)) is not None:
        numbers, texts = categories
        if (numbers < 0).any():
            first = int((numbers < 0).argmax())
            raise error.BadDataError(f'sample {first}: slot "{name}" has no category', "reader", name)
        type = DataType("int64", (), len(texts) if limit < 0 else limit)
        return numbers, {**type.options(name), "texts": texts}
    values = plain(require_present(values, where, name))
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
