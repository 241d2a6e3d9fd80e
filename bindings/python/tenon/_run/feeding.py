"""Opening the reader of a topology: which slot, or place of a tuple, feeds which data layer.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tenon import error
from tenon import reader as readers
from tenon._base import caller as _caller
from tenon._base import check as _check
from tenon._base.columns import Wanted
from tenon._model import layer as _layer

_AHEAD = 2  # minibatches that are read ahead, as of a job file


def _feeding(given: Any, data: Sequence[str], parameters: Any) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Returns (slot, data layer) of {slot: data layer}, or the places of {data layer: place in the tuple}, which a list of
    data layers states as well. Places of data layers that only other topologies of the set have are left out."""
    if isinstance(given, (list, tuple)):
        given = {name: place for place, name in enumerate(_check.texts(given, "feeding", "feeding"))}
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
    if not all(layer in data for layer in places) and parameters is not None:
        elsewhere = _layer.data_types(parameters.outputs)
        places = {layer: place for layer, place in places.items() if layer in data or layer not in elsewhere}
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


def _require_slots(core: Any, wanted: Wanted, slot_of: Mapping[str, str], types: Iterable[str]) -> None:
    """InvalidError if columns lack a slot that a data layer takes. The library names those that are open alone."""
    if not wanted.columns:
        return
    slots = [each["name"] for each in core.slots()]
    names = list(dict.fromkeys([*wanted.columns, *slots]))
    for layer in types:
        slot = slot_of.get(layer, layer)
        if slot not in slots:
            raise error.InvalidError(
                f'data layer "{layer}": no slot of the reader feeds it; known: {", ".join(names)}'
                f"{error.suggestion(slot, names)}",
                "feeding",
                layer,
            )


def warn_of_left_out(core: Any) -> None:
    """Warns of records without an answer: the answers of the others are not in their places."""
    if (count := core.left_out()) > 0:
        records = "1 record of the data is" if count == 1 else f"{count} records of the data are"
        _caller.warn(
            f"{records} left out, as the reader says: answer i is not that of record i. tenon.Predictor.table has the numbers "
            "of the records",
            UserWarning,
        )


def open_reader(
    reader: Any, chosen: Sequence[_layer.Layer], feeding: Any, batch_size: int, nan: bool, known: Iterable[Any] = (),
    parameters: Any = None, ahead: readers.Ahead | None = None,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """Opens a reader for a topology, in minibatches. Returns it with its feeding. known: what a model knows of the data
    layers; parameters: the set; ahead: of the recipes that are read ahead; None: none is."""
    types, no_tuples = _layer.defined_types(chosen)
    pairs, places = _feeding(feeding, list(types), parameters)
    slots = {layer: slot for slot, layer in pairs}
    recipe = readers.as_reader(reader)
    named = {slots.get(name, name): type for name, type in types.items()}
    wanted = Wanted(named, True, nan, places, "" if places else no_tuples)
    wanted.known = [each.of(slots.get(each.slot, each.slot)) for each in known]
    core = recipe.open(wanted)
    _require_slots(core, wanted, slots, types)
    if places and not wanted.by_place:
        raise error.InvalidError(
            f"feeding has places, {places}, but the slots of the reader have names; expected {{slot: data layer}}",
            "feeding",
            "feeding",
        )
    core = core if recipe.batched else core.batch(batch_size, False)
    return core.buffered(_AHEAD) if ahead is not None and recipe.ahead >= ahead else core, pairs
