"""Categories and texts as the numbers that a model knows them by. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenon import error
from tenon._base import arrow


def may_be_named(values: Any) -> bool:
    """Whether a feed may be of categories or texts, so that the names of a model are asked for."""
    if isinstance(values, np.ndarray):
        return values.dtype.kind in "OUT"
    if isinstance(values, (list, tuple)):
        return len(values) > 0 and isinstance(values[0], str)
    return hasattr(values, "cat") or hasattr(values, "iloc") or arrow.is_arrow(values)


def numbered(values: Any, where: str, name: str, names: Sequence[str] = ()) -> tuple[NDArray[Any], list[str]] | None:
    """Returns the numbers and names of categories of pandas or Arrow, and of texts if the model knows `names`; None of
    anything else. The numbers are those of `names`, or else of the column; BadDataError for a name that `names` lacks."""
    if hasattr(values, "cat") and hasattr(values.cat, "codes"):
        texts = [arrow.category(each, where, name) for each in values.cat.categories]
        numbers = values.cat.codes.to_numpy()
        if (numbers < 0).any():
            raise error.BadDataError(f"sample {int((numbers < 0).argmax())}: {where} has no category", "reader", name)
        return _renumbered(numbers, texts, where, name, names)
    if arrow.is_arrow(values):
        column = arrow.read(values)
        if isinstance(column, arrow.Column) and column.is_dictionary:
            numbers, own = arrow.values_of(column, where, name)
            return _renumbered(numbers, own or [], where, name, names)
        entries = arrow.texts_of(column) if names else None
    else:
        entries = _texts(values) if names else None
    if entries is None:
        return None
    texts = [arrow.category(each, where, name) for each in entries]
    place = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return _renumbered(np.array([place[text] for text in texts], np.int64), list(place), where, name, names)


def _texts(values: Any) -> list[str] | None:
    """Returns the texts of a list, an array or a column; None of other values."""
    if isinstance(values, np.ndarray):
        listed = values.tolist() if values.ndim == 1 and values.dtype.kind in "OUT" else None
    elif hasattr(values, "iloc"):
        listed = values.tolist() if str(values.dtype) in ("object", "str", "string") else None
    else:
        listed = list(values) if isinstance(values, (list, tuple)) else None
    return listed if listed and all(isinstance(each, str) for each in listed) else None


def _renumbered(
    numbers: NDArray[Any], texts: list[str], where: str, name: str, names: Sequence[str]
) -> tuple[NDArray[Any], list[str]]:
    if not names or texts == list(names):
        return numbers, texts
    place = {text: number for number, text in enumerate(names)}
    changed = np.array([place.get(text, -1) for text in texts], np.int64)[numbers]
    unknown = np.flatnonzero(changed < 0)
    if len(unknown):
        sample = int(unknown[0])
        text = texts[int(numbers[sample])]
        listed = ", ".join(list(names)[:10]) + (", ..." if len(names) > 10 else "")
        raise error.BadDataError(
            f'sample {sample}: {where} has the category "{text}", which the model was not trained with; it has {listed}'
            f"{error.suggestion(text, names)}",
            "data",
            name,
        )
    return changed, list(names)
