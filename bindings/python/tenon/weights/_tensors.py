"""Named tensors of others: files of safetensors, and dicts. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenon import _check, error
from tenon._arrays import plain

Array = NDArray[Any]
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1",
          "BOOL": "?"}  # fmt: skip
_LARGEST_HEADER = 100_000_000  # of the format


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
    try:
        with open(path, "rb") as file:
            return _parse(file.read(), path), path
    except FileNotFoundError:
        raise error.NotFoundError(f"{path}: file not found", component, path) from None
    except OSError as failure:
        raise error.FileError(f"{path}: {failure}", component, path) from failure


def _parse(data: bytes, path: str) -> dict[str, Array]:
    """Returns the tensors of a file: 8 bytes with the length of the header, the header in JSON, the numbers."""
    try:
        (length,) = struct.unpack_from("<Q", data)
        if length > min(len(data) - 8, _LARGEST_HEADER):
            raise ValueError(f"its header has {length} bytes, the file {len(data)}")
        header = json.loads(data[8 : 8 + length])
        body = memoryview(data)[8 + length :]
        return {name: _tensor(name, each, body) for name, each in header.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError, struct.error) as failure:
        raise error.BadDataError(f"{path}: not a file of safetensors: {failure}", path, path) from failure


def _tensor(name: str, entry: Mapping[str, Any], body: memoryview) -> Array:
    begin, end = entry["data_offsets"]
    part, shape = body[begin:end], tuple(entry["shape"])
    kind = entry["dtype"]
    if kind == "BF16":  # the upper half of a float32
        values = (np.frombuffer(part, "<u2").astype(np.uint32) << 16).view(np.float32)
    elif kind in _TYPES:
        values = np.frombuffer(part, _TYPES[kind])
    else:
        raise ValueError(f'tensor "{name}" has the type {kind}')
    if not 0 <= begin <= end <= len(body) or values.size != np.prod(shape, dtype=np.int64):
        raise ValueError(f'tensor "{name}" of shape {list(shape)} has the bytes {begin} to {end}')
    return values.reshape(shape)


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
