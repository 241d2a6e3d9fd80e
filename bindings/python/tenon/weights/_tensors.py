"""Named tensors of others: files of safetensors, and dicts. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenon import error
from tenon._base import check as _check
from tenon._base import host as _host
from tenon._base.arrays import plain

Array = NDArray[Any]
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1",
          "BOOL": "?"}  # fmt: skip


def read(source: Any, component: str) -> tuple[dict[str, Array], str]:
    """Returns tensors by name, and what they are called in messages. source: the path of a file of safetensors, or a dict
    of arrays or tensors."""
    if isinstance(source, Mapping):
        found = {}
        for name, values in source.items():
            held = values.detach().cpu() if hasattr(values, "detach") else values  # of PyTorch, which may learn
            array = np.asarray(plain(held))
            if array.dtype.kind not in "biuf":
                raise error.InvalidError(f'tensor "{name}": expected numbers, got {array.dtype}', component, name)
            found[_check.text(name, "source", component)] = array
        return found, "the state"
    path = _check.path(source, "source", component)
    return _read(path), path


def _read(path: str) -> dict[str, Array]:
    """Returns the tensors of a file, whose header the library reads and checks: they lie behind it without gaps."""
    tensors = json.loads(_host.host().core.describe_model(path))["tensors"]
    for each in tensors:
        if each["dtype"] != "BF16" and each["dtype"] not in _TYPES:
            raise error.BadDataError(f'{path}: tensor "{each["name"]}" has the type {each["dtype"]}', path, each["name"])
    try:
        with open(path, "rb") as file:
            file.seek(-sum(each["bytes"] for each in tensors), os.SEEK_END)
            return {each["name"]: _tensor(each, file.read(each["bytes"])) for each in tensors}
    except ValueError as failure:
        raise error.BadDataError(f"{path}: the file has changed while it was read: {failure}", path, path) from failure
    except OSError as failure:
        raise error.FileError(f"{path}: {failure}", path, path) from failure


def _tensor(entry: Mapping[str, Any], data: bytes) -> Array:
    if entry["dtype"] == "BF16":  # the upper half of a float32
        values = (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
    else:
        values = np.frombuffer(data, _TYPES[entry["dtype"]])
    return values.reshape(entry["shape"])


def modules(tensors: Mapping[str, Array], separator: str) -> dict[str, dict[str, Array]]:
    """Returns {module: {last part of the name: tensor}}, in the order of the tensors."""
    found: dict[str, dict[str, Array]] = {}
    for name, values in tensors.items():
        module, _, last = name.removesuffix(":0").rpartition(separator)
        found.setdefault(module, {})[last] = values
    return found


def is_file(source: Any) -> bool:
    """Returns whether tensors come from a file, which has them sorted and not in the order of layers."""
    return isinstance(source, (str, os.PathLike))
