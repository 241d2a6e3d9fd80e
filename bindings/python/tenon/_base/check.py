"""Options that programs give, checked before the library gets them: InvalidError names the call and the option.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from tenon import _core, error

_MOST = 2**63 - 1
_MOST_OF = {"int64": _MOST, "uint64": 2**64 - 1, "uint32": 2**32 - 1}
_Of = TypeVar("_Of")


def refuse(value: object, expected: str, name: str, component: str) -> NoReturn:
    """Raises InvalidError for an option. expected: such as "a text"."""
    given = repr(value)
    if len(given) > 100:
        given = f"{given[:90]}... of type {type(value).__name__}"
    raise error.InvalidError(f"{component}: {name} is {given}; expected {expected}", component, name)


def whole(value: Any, name: str, component: str, least: int = 0, most: int = _MOST) -> int:
    """Returns a whole number within bounds, of Python or NumPy."""
    found = None if isinstance(value, bool) or not hasattr(value, "__index__") else _index(value)
    if found is None or not least <= found <= most:
        large = found is not None and found > most
        bounds = f"from {least} to {most}" if large or most != _MOST else f"from {least} on"
        refuse(value, f"a whole number {bounds}", name, component)
    return found


def _index(value: Any) -> int | None:
    try:
        return operator.index(value)
    except TypeError:  # an array of several numbers
        return None


def seed(value: Any, component: str) -> int:
    """Returns a seed, a whole number of 64 bits."""
    return whole(value, "seed", component, 0, 2**64 - 1)


def number(value: Any, name: str, component: str, least: float | None = None) -> float:
    """Returns a number as a float."""
    expected = "a number" if least is None else f"a number from {least:g} on"
    try:
        found = None if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = None
    if found is None or (least is not None and not found >= least):
        refuse(value, expected, name, component)
    return found


def text(value: Any, name: str, component: str) -> str:
    """Returns a text that can be written as UTF-8."""
    if not isinstance(value, str):
        refuse(value, "a text", name, component)
    try:
        value.encode()
    except UnicodeEncodeError:
        refuse(value, "a text without lone surrogates", name, component)
    return value


def path(value: Any, name: str, component: str) -> str:
    """Returns a path as a text: not a number, which would be the descriptor of an open file."""
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str):
        refuse(value, "a path", name, component)
    return text(os.fspath(value), name, component)


def mapping(value: Any, name: str, component: str, known: Iterable[str] | None = None) -> Mapping[Any, Any]:
    """Returns a dict. known: its keys."""
    if not isinstance(value, Mapping):
        refuse(value, "a dict", name, component)
    if known is not None:
        keys = list(known)
        for key in value:
            if key not in keys:
                near = error.suggestion(str(key), keys)
                raise error.InvalidError(
                    f"{component}: {name} has no key {key!r}; it has {', '.join(keys)}{near}", component, name
                )
    return value


def texts(value: Any, name: str, component: str) -> list[str]:
    """Returns a list of one text or of several."""
    if isinstance(value, str):
        return [text(value, name, component)]
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        refuse(value, "a text or several", name, component)
    return [text(each, name, component) for each in value]


@dataclass(frozen=True)
class Option:
    """An option of a struct of the library: a number, a text or a truth value. least: of a number."""

    kind: str
    default: Any = None
    least: int | None = None

    def check(self, value: Any, name: str, component: str) -> Any:
        """Returns a value of the option's kind."""
        if self.kind == "text":
            return text(value, name, component)
        if self.kind == "double":
            return number(value, name, component, self.least)
        if self.kind == "bool":
            return bool(value)
        return whole(value, name, component, self.least or 0, _MOST_OF[self.kind])


def options(known: Mapping[str, Option], given: Mapping[str, Any], component: str) -> dict[str, Any]:
    """Returns all known options: those that are given, checked, and the defaults of the others."""
    return {name: option.check(given.get(name, option.default), name, component) for name, option in known.items()}


def devices(value: Any, component: str) -> list[str]:
    """Returns the names of devices, given as one or several; none for the empty text, the default."""
    return [each for each in texts(value, "device", component) if each]


def shards(value: Any, component: str) -> int:
    """Returns a number of shards; 0 leaves it to the devices and processes."""
    return whole(value, "shards", component, 0, 2**32 - 1)


def instance(value: Any, of: type[_Of] | tuple[type[_Of], ...], expected: str, name: str, component: str) -> _Of:
    """Returns an object of a class."""
    if not isinstance(value, of):
        refuse(value, expected, name, component)
    return value


def attributes(values: Mapping[str, Any], component: str) -> None:
    """Checks the attributes of a layer, an updater or a reader for what no plugin can take: whole numbers that do not
    fit into 64 bits, and texts that are not UTF-8."""
    for name, value in values.items():
        for each in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(each, str):
                text(each, name, component)
            elif isinstance(each, int) and not -_MOST - 1 <= each <= _MOST:
                refuse(value, "whole numbers of 64 bits", name, component)


def destination(file: str, component: str) -> str:
    """Returns the file that a path leads to, for writing: through links, but not through those, nor to a file, that another
    user may have put into a folder where everybody may create files. Models are saved by the same rule."""
    try:
        return os.fsdecode(_core.file_target(file))
    except error.Error as refused:
        raise type(refused)(f"{component}: {refused}", component, file) from None


@contextmanager
def files(file: str | os.PathLike[str], component: str) -> Iterator[None]:
    """Makes errors of the system about a file errors of the library that name it."""
    try:
        yield
    except OSError as failure:
        if isinstance(failure, error.Error):
            raise
        reason = failure.strerror or str(failure)
        raise error.FileError(f"{component}: {os.fspath(file)}: {reason}", component, os.fspath(file)) from failure
