"""What a class of layers or metrics in Python declares, by the signatures of its methods.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np

from tenon import error
from tenon._base import functions as _functions
from tenon._base.arrays import Ragged

VENDOR = "python."
_ROLES = {"layer": 0, "cost": 1, "metric": 2}
_VARIADIC, _ANY = 2, 8  # flags of ports: one or more values; integers and floats
_WORD = re.compile("[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Input:
    """An input of a class: an argument of forward or update.

    optional: it may be absent, and is None then; sequences: it comes as tenon.Ragged, by its annotation; variadic: it
    stands for one or more, as *inputs.
    """

    name: str
    optional: bool
    sequences: bool
    variadic: bool

    @property
    def flags(self) -> int:
        """The flags of its port."""
        return _ANY | (_functions.OPTIONAL if self.optional else 0) | (_VARIADIC if self.variadic else 0)


@dataclass(frozen=True)
class Argument:
    """An argument of __init__. kind: the number of its type in tenon._base.functions."""

    name: str
    kind: int
    required: bool
    default: Any


class Definition:
    """What a class declares, read from the signatures of its methods."""

    def __init__(self, kernel: type[Any]) -> None:
        self.kernel = kernel
        self.name = kernel.__name__
        if kernel.role not in _ROLES:
            raise TypeError(f"{self.name}.role is {kernel.role!r}; expected one of {', '.join(_ROLES)}")
        self.type = type_of(kernel)
        self.outputs = [] if kernel.role == "metric" else _names(kernel, "outputs")
        self.learned = _names(kernel, "parameters")
        self.buffers = _names(kernel, "buffers")
        self.arguments = self._arguments()
        self.inputs = self._inputs("update" if kernel.role == "metric" else "forward")
        self._check_names(["gradient", *self.operands, *self.outputs])
        self.backward = self._backward() if self._has("backward") else None
        if self.parameters:
            self._require("initial_parameters")
        self.sums = [each.name for each in self._words("finalize")] if kernel.role == "metric" else []

    def description(self) -> dict[str, Any]:
        """Returns what the library is told of the type."""
        read = self.backward or []
        return {
            "type": self.type,
            "name": self.name,
            "doc": inspect.cleandoc(self.kernel.__doc__ or f"The class {self.kernel.__qualname__} of the program."),
            "role": _ROLES[self.kernel.role],
            "inputs": [(each.name, "", each.flags) for each in self.inputs],
            "outputs": [(name, "", 0) for name in self.outputs],
            "attributes": [(each.name, "", each.kind, each.default, each.required) for each in self.arguments],
            "parameters": self.parameters,
            "sequences": [each.sequences for each in self.inputs],
            "has_backward": self.backward is not None,
            "reads_operands": [name in read for name in self.operands],
            "reads_outputs": [name in read for name in self.outputs],
        }

    @property
    def parameters(self) -> list[str]:
        """The names of what the layer keeps, parameters first."""
        return [*self.learned, *self.buffers]

    @property
    def operands(self) -> list[str]:
        """The names of what forward takes."""
        return [*(each.name for each in self.inputs), *self.parameters]

    def ports(self, count: int) -> list[Input]:
        """Returns the input that each of `count` values belongs to."""
        return [self.inputs[min(number, len(self.inputs) - 1)] for number in range(count)]

    @property
    def variadic(self) -> bool:
        """Whether the last input stands for one or more."""
        return bool(self.inputs) and self.inputs[-1].variadic

    def values(self, given: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        """Returns the arguments of __init__ as models keep them."""
        kinds = {each.name: each.kind for each in self.arguments}
        return {name: _value(self.name, name, kinds[name], value) for name, value in given if value is not None}

    def _check_names(self, names: list[str]) -> None:
        for name in names:
            if names.count(name) > 1:
                raise TypeError(
                    f"{self.name}: {name!r} names two things among the gradient, inputs, parameters and outputs"
                )

    def _has(self, method: str) -> bool:
        return getattr(self.kernel, method, None) is not None

    def _require(self, method: str) -> None:
        if not self._has(method):
            raise TypeError(f"the class {self.name} must define {method}")

    def _words(self, method: str) -> list[inspect.Parameter]:
        """Returns the arguments of a method, which are names of the library."""
        self._require(method)
        words = list(inspect.signature(getattr(self.kernel, method)).parameters.values())[1:]
        for each in words:
            variadic = each.kind is each.VAR_POSITIONAL and method in ("forward", "update")
            if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY) and not variadic:
                raise TypeError(f"{self.name}.{method}: the argument {each} must have a name, without *")
            if not _WORD.fullmatch(each.name):
                raise TypeError(
                    f"{self.name}.{method}: the argument {each.name!r} must be of lower case letters, digits and _"
                )
        return words

    def _arguments(self) -> list[Argument]:
        hints = _hints(self.kernel.__init__)
        found = []
        for each in self._words("__init__"):
            required = each.default is each.empty
            kind = _kind(hints.get(each.name), None if required else each.default)
            if kind == 0:
                raise TypeError(
                    f"{self.name}.__init__: the type of the argument {each.name!r} is not known; expected an "
                    "annotation, bool, int, float, str or a list of one of the last three, as model files keep it"
                )
            default = None if required or each.default is None else _value(self.name, each.name, kind, each.default)
            found.append(Argument(each.name, kind, required, default))
        return found

    def _inputs(self, method: str) -> list[Input]:
        words = self._words(method)
        names = [each.name for each in words]
        missing = [each for each in self.parameters if each not in names]
        if missing:
            raise TypeError(f"{self.name}.{method}: the parameter {missing[0]!r} of the class is no argument of it")
        hints = _hints(getattr(self.kernel, method))
        return [
            Input(each.name, each.default is not each.empty, _is_ragged(hints.get(each.name)),
                  each.kind is each.VAR_POSITIONAL)
            for each in words
            if each.name not in self.parameters
        ]  # fmt: skip

    def _backward(self) -> list[str]:
        names = [each.name for each in self._words("backward")]
        known = ["gradient", *self.operands, *self.outputs]
        for name in names:
            if name not in known:
                raise TypeError(
                    f"{self.name}.backward: the argument {name!r} is none of {', '.join(known)}"
                    f"{error.suggestion(name, known)}"
                )
        return names


def definition(kernel: type[Any]) -> Definition:
    """Returns what a class declares; TypeError where it cannot be a layer."""
    found = kernel.__dict__.get("_definition")
    if not isinstance(found, Definition):
        found = Definition(kernel)
        kernel._definition = found
    return found


def type_of(kernel: type[Any]) -> str:
    """Returns the layer type of a class."""
    return kernel.__dict__.get("type") or VENDOR + _snake(kernel.__name__)


def number_of(type: str) -> str:
    """Returns the number at the end of the type of a class that was defined anew, with its underscore."""
    found = re.search("_[0-9]+$", type)
    return found.group() if found else ""


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower().strip("_")


def _names(kernel: type[Any], attribute: str) -> list[str]:
    given = getattr(kernel, attribute)
    names = [given] if isinstance(given, str) else list(given)
    for each in names:
        if not isinstance(each, str) or not _WORD.fullmatch(each):
            raise TypeError(
                f"{kernel.__name__}.{attribute} has {each!r}; expected names of lower case letters, digits and _"
            )
    return names


def _hints(method: Any) -> dict[str, Any]:
    """Returns the annotations of a method, without those whose names mean nothing when it runs."""
    found = {}
    for name, hint in inspect.get_annotations(method).items():
        try:
            found[name] = eval(hint, method.__globals__) if isinstance(hint, str) else hint
        except NameError:
            continue
    return found


def _is_ragged(hint: Any) -> bool:
    return hint is Ragged or Ragged in typing.get_args(hint)


def _kind(hint: Any, default: Any) -> int:
    """Returns the kind of an argument by its annotation, else by its default; 0 if it is none that models keep."""
    scalars: dict[Any, int] = {bool: _functions.BOOL, int: _functions.INT, float: _functions.FLOAT,
                               str: _functions.STRING}  # fmt: skip
    lists = {int: _functions.INTS, float: _functions.FLOATS, str: _functions.STRINGS}
    origin, args = typing.get_origin(hint), [each for each in typing.get_args(hint) if each is not types.NoneType]
    if origin in (Union, types.UnionType):
        return _kind(args[0], default) if len(args) == 1 else 0
    if origin is not None:
        return lists.get(args[0], 0) if args and args[0] is not ... else 0
    if hint is None:
        of = default[0] if isinstance(default, (list, tuple)) and default else None
        return lists.get(type(of), 0) if isinstance(default, (list, tuple)) else scalars.get(type(default), 0)
    return scalars.get(hint, 0)


def _value(owner: str, name: str, kind: int, value: Any) -> Any:
    """Returns an argument as an attribute of its kind."""
    made: dict[int, Callable[[Any], Any]] = {_functions.BOOL: bool, _functions.STRING: str, _functions.FLOAT: float,
                                             _functions.INT: int}  # fmt: skip
    takes = {_functions.BOOL: "__bool__", _functions.INT: "__index__", _functions.FLOAT: "__float__"}
    entry = {_functions.INTS: _functions.INT, _functions.FLOATS: _functions.FLOAT,
             _functions.STRINGS: _functions.STRING}  # fmt: skip
    if kind in entry and isinstance(value, (list, tuple, np.ndarray)):
        return [_value(owner, name, entry[kind], each) for each in value]
    if kind in made and (isinstance(value, str) if kind == _functions.STRING else hasattr(value, takes[kind])):
        return made[kind](value)
    raise TypeError(f"{owner}: the argument {name!r} is {value!r}; expected {_functions._TYPES[kind]}")
