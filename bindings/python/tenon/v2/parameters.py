"""Sets of parameters of Paddle v2, and their files: a tar with two members for each parameter, its numbers behind a header of
16 bytes, and its name and sizes as a message of protobuf.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import io
import math
import struct
import tarfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenon import error
from tenon import parameters as _parameters
from tenon._model.layer import Layer
from tenon.parameters import ParameterSet
from tenon.v2._make import seed, topology
from tenon.v2._refused import refuse

_HEADER = struct.Struct("<IIQ")  # version 0, bytes of an element, elements


class Parameters(Mapping[str, NDArray[Any]]):
    """The parameters of a topology, or the values of a file, which get a topology where they are used."""

    def __init__(self, set: ParameterSet | None = None) -> None:
        self._set = set
        self._values: dict[str, NDArray[Any]] = {}  # of a file

    @classmethod
    def from_tar(cls, f: Any) -> Parameters:
        """Reads a file that to_tar or Paddle v2 has written."""
        made = cls()
        made._values = _read(f)
        return made

    def to_tar(self, f: Any) -> None:
        """Writes the values to an open file."""
        with tarfile.open(fileobj=getattr(f, "buffer", f), mode="w") as tar:
            for name, values in self.items():
                floats = np.ascontiguousarray(values, np.float32)
                content = _HEADER.pack(0, 4, floats.size) + floats.tobytes()
                for member, data in ((name, content), (f"{name}.protobuf", _message(name, floats.shape))):
                    info = tarfile.TarInfo(member)
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))

    def init_from_tar(self, f: Any, exclude_params: Any = ()) -> None:
        """Replaces values by those of a file that have their names."""
        for name, values in _read(f).items():
            if name in self and name not in exclude_params:
                self.set(name, values)

    def of(self, outputs: list[Layer]) -> ParameterSet:
        """Returns the set for a topology; of a file one that has the values of it."""
        if self._set is not None:
            return self._set
        made = _parameters.create(outputs)
        for name in made:
            if name not in self._values:
                raise error.NotFoundError(
                    f'parameters: the file has no parameter "{name}"{error.suggestion(name, self._values)}', "parameters", name
                )
            made[name] = self._values[name].reshape(made.shape(name))
        return made

    def __getitem__(self, name: str) -> NDArray[Any]:
        return (self._values if self._set is None else self._set)[name]

    def __setitem__(self, name: str, values: Any) -> None:
        if self._set is None:
            self._values[name] = np.asarray(values, np.float32)
        else:
            self._set[name] = np.asarray(values).reshape(self._set.shape(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._values if self._set is None else self._set)

    def __len__(self) -> int:
        return len(self._values if self._set is None else self._set)

    def names(self) -> list[str]:
        """Returns the names."""
        return list(self)

    def has_key(self, key: str) -> bool:
        """Returns whether there is a parameter."""
        return key in self

    def get_shape(self, key: str) -> tuple[int, ...]:
        """Returns the shape of a parameter."""
        return self[key].shape

    def set(self, parameter_name: str, value: Any) -> None:
        """Sets the values of a parameter."""
        self[parameter_name] = value


def create(layers: Any) -> Parameters:
    """Returns the parameters of one or several layers."""
    return Parameters(_parameters.create(topology(layers), seed=seed.get()))


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def _message(name: str, shape: tuple[int, ...]) -> bytes:
    """Returns the message ParameterConfig: name 1, size 2, dims 9."""
    text = name.encode()
    dims = b"".join(b"\x48" + _varint(extent) for extent in shape)
    return b"\x0a" + _varint(len(text)) + text + b"\x10" + _varint(math.prod(shape)) + dims


def _dims(message: bytes) -> list[int]:
    """Returns the dims of a message ParameterConfig."""
    dims, at = [], 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        field, kind = divmod(number(), 8)
        if kind == 0:
            value = number()
            dims += [value] if field == 9 else []
        else:
            length = {1: 8, 5: 4}[kind] if kind != 2 else number()  # number() moves at
            at += length
    return dims


def _read(f: Any) -> dict[str, NDArray[Any]]:
    file, found = getattr(f, "buffer", f), {}
    where = getattr(f, "name", "the file")
    try:
        with tarfile.open(fileobj=file, mode="r") as tar:
            members = {each.name: tar.extractfile(each) for each in tar}
            content = {name: each.read() for name, each in members.items() if each is not None}
        for name, data in content.items():
            if name.endswith(".protobuf"):
                continue
            version, width, count = _HEADER.unpack_from(data)
            if (version, width) != (0, 4) or len(data) != _HEADER.size + 4 * count:
                raise error.BadDataError(f'{where}: parameter "{name}": damaged header', "parameters", name)
            dims = _dims(content.get(f"{name}.protobuf", b"")) or [count]
            found[name] = np.frombuffer(data, "<f4", offset=_HEADER.size).reshape(dims)
    except (tarfile.TarError, struct.error, IndexError, KeyError, ValueError) as failure:
        if isinstance(failure, error.Error):
            raise
        raise error.BadDataError(f"{where}: not a tar of parameters: {failure}", "parameters") from failure
    return found


__getattr__ = refuse(__name__, globals())
