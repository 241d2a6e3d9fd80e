"""Opening the reader of a topology: which slot, or place of a tuple, feeds which data layer.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tenon import error
from tenon import reader as readers
from tenon._base import check as _check
from tenon._base.columns import Wanted
from tenon._model import layer as _layer


def _feeding(given: Mapping[Any, Any] | None, data: Sequence[str]) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Returns (slot, data layer) of {slot: data layer}, or the places of {data layer: place in the tuple}."""
    _check.mapping(given or {}, "feeding", "feeding")
    pairs, places = [], {}
    for key, value in (given or {}).items():
        _check.text(key, "feeding", "feeding")
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            places[key] = _check.whole(value, "feeding", "feeding")
        else:
            pairs.append((key, value))
    if pairs and places:
        raise error.InvalidError(
            f"feeding names both slots and places: {dict(given or {})}; expected {{slot: data layer}}, or {{data layer: "
            "place in the tuple}",
            "feeding",
            "feeding",
        )
    for layer in places or [layer for _, layer in pairs]:
        if layer not in data:
            raise error.InvalidError(
                f'feeding names the data layer "{layer}", which the topology does not have'
                f"{error.suggestion(str(layer), data)}",
                "feeding",
                str(layer),
            )
    for layer in data if places else ():
        if layer not in places:
            raise error.InvalidError(f'feeding has no place for data layer "{layer}"', "feeding", layer)
    return pairs, places


def open_reader(
    reader: Any, chosen: Sequence[_layer.Layer], feeding: Any, batch_size: int, nan: bool, known: Iterable[Any] = ()
) -> tuple[Any, list[Any]]:
    """Opens a reader for a topology, in minibatches. Returns it with its feeding. known: what a model knows of the data
    layers."""
    types, no_tuples = _layer.defined_types(chosen)
    pairs, places = _feeding(feeding, list(types))
    slots = {layer: slot for slot, layer in pairs}
    recipe = readers.as_reader(reader)
    named = {slots.get(name, name): type for name, type in types.items()}
    wanted = Wanted(named, True, nan, places, "" if places else no_tuples)
    wanted.known = [each.of(slots.get(each.slot, each.slot)) for each in known]
    core = recipe.open(wanted)
    if places and not wanted.by_place:
        raise error.InvalidError(
            f"feeding has places, {places}, but the slots of the reader have names; expected {{slot: data layer}}",
            "feeding",
            "feeding",
        )
    return core if recipe.batched else core.batch(batch_size, False), pairs
