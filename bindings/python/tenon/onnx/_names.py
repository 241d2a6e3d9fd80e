"""The names of classes and columns, as metadata of a model of ONNX. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import json
from typing import Any, cast

from tenon import _core, error
from tenon.onnx._graph import Graph
from tenon.parameters import ParameterSet

_KEYS = {"tenon.names": "texts", "tenon.columns": "columns"}  # of the metadata, and the member of a list of names


def metadata(parameters: ParameterSet) -> dict[str, str]:
    """Returns the metadata of a set: JSON objects from data layers to lists of texts. Lists that a set knows by their digest
    alone are left out, as are those that are empty."""
    result = {}
    for key, member in _KEYS.items():
        lists = {each.slot: getattr(each, member) for each in parameters.core.known() if getattr(each, member)}
        if lists:
            result[key] = json.dumps(lists, ensure_ascii=False, sort_keys=True)
    return result


def known(graph: Graph) -> list[Any]:
    """Returns what the metadata of a graph say of data layers."""
    found = {each.key: each.value for each in graph.model.metadata_props}
    lists: dict[str, dict[str, list[str]]] = {}
    for key, member in _KEYS.items():
        for slot, texts in _lists(graph.path, key, found.get(key, "{}")).items():
            lists.setdefault(slot, {})[member] = texts
    sizes = {each.name: each.sizes[-1] for each in graph.inputs if each.sizes}
    for slot, each in lists.items():
        count = len(each.get("columns", []))
        if count > 0 and count != sizes.get(slot, count):
            message = f'{graph.path}: input "{slot}" has {sizes[slot]} columns, and metadata "tenon.columns" names {count}'
            raise error.BadDataError(message, graph.path, "tenon.columns")
    return [_core.Names(slot, each.get("texts", []), each.get("columns", [])) for slot, each in lists.items()]


def _lists(path: str, key: str, text: str) -> dict[str, list[str]]:
    try:
        lists = json.loads(text)
    except ValueError:
        lists = None
    whole = isinstance(lists, dict) and all(
        isinstance(texts, list) and all(isinstance(each, str) for each in texts) and len({*texts}) == len(texts)
        for texts in lists.values()
    )
    if not whole:
        message = f'{path}: metadata "{key}": expected a JSON object of lists of different texts, got {text[:60]!r}'
        raise error.BadDataError(message, path, key)
    return cast("dict[str, list[str]]", lists)
