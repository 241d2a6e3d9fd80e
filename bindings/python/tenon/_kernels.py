"""Layers and metrics written in Python: what a class declares, and the calls of the library to its methods.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from tenon import _core, _functions, _host, error
from tenon._layer import Layer, LayerLike, as_layer
from tenon.data_type import numpy_dtype

Shape = tuple[Any, ...]  # numbers, and texts such as "samples" for dimensions that vary
Array = NDArray[Any]

VENDOR = "python."
_ROLES = {"layer": 0, "cost": 1, "metric": 2}
_ANY = 8  # the flag of a port that takes integers and floats
_WORD = re.compile("[a-z][a-z0-9_]*")


class Kernel:
    """The base of tenon.layer.Base and tenon.metric.Base. Objects of derived classes make layers of their inputs."""

    role = "layer"
    type = ""  # the name of the layer type; default that of the class: "python.leaky_swish" for LeakySwish
    outputs: Sequence[str] = ("output",)
    parameters: Sequence[str] = ()
    arguments: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> typing.Self:
        """Notes the arguments, which models keep."""
        made = super().__new__(cls)
        bound = inspect.signature(cls.__init__).bind(made, *args, **kwargs)
        bound.apply_defaults()
        made.arguments = definition(cls).values(list(bound.arguments.items())[1:])
        return made

    def __init__(self) -> None:
        pass

    def __call__(self, *inputs: LayerLike | None, name: str = "", **options: Any) -> Layer:
        """Makes a layer. options: what every layer takes, such as act="relu", parameter_name, param."""
        of = definition(type(self))
        least = sum(not each.optional for each in of.inputs)
        if not least <= len(inputs) <= len(of.inputs):
            listed = ", ".join(each.name for each in of.inputs)
            raise TypeError(f"{of.name} takes the inputs {listed}; {len(inputs)} are given")
        layers = [None if each is None else as_layer(each) for each in inputs]
        return KernelLayer(type(self), layers, {**self.arguments, **_functions.flatten(options)}, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


class KernelLayer(Layer):
    """A layer of a class written in Python, which its host learns when the layer is made there."""

    __slots__ = ("_kernel",)

    def __init__(self, kernel: type[Kernel], inputs: Sequence[Layer | None], attributes: Any, name: str) -> None:
        self._kernel = kernel
        super().__init__(definition(kernel).type, inputs, attributes, name)

    def _make(self, host: Any = None) -> None:
        self._type = register(host or _host.host(), self._kernel)
        super()._make(host)


@dataclass(frozen=True)
class Input:
    """An input of a class: an argument of forward or update. optional: it may be absent, and is None then."""

    name: str
    optional: bool


@dataclass(frozen=True)
class Argument:
    """An argument of __init__. kind: the number of its type in tenon._functions."""

    name: str
    kind: int
    required: bool
    default: Any


class Definition:
    """What a class declares, read from the signatures of its methods."""

    def __init__(self, kernel: type[Kernel]) -> None:
        self.kernel = kernel
        self.name = kernel.__name__
        self.type = _type(kernel)
        self.outputs = [] if kernel.role == "metric" else _names(kernel, "outputs")
        self.parameters = _names(kernel, "parameters")
        self.arguments = self._arguments()
        self.inputs = self._inputs("update" if kernel.role == "metric" else "forward")
        self.backward = self._backward() if self._has("backward") else None
        if self.parameters:
            self._words("initial_parameters")
        self.sums = [each.name for each in self._words("finalize")] if kernel.role == "metric" else []

    def description(self) -> dict[str, Any]:
        """Returns what the library is told of the type."""
        read = self.backward or []
        return {
            "type": self.type,
            "name": self.name,
            "doc": inspect.cleandoc(self.kernel.__doc__ or f"The class {self.kernel.__qualname__} of the program."),
            "role": _ROLES[self.kernel.role],
            "inputs": [(each.name, "", _ANY | (_functions.OPTIONAL if each.optional else 0)) for each in self.inputs],
            "outputs": [(name, "", 0) for name in self.outputs],
            "attributes": [(each.name, "", each.kind, each.default, each.required) for each in self.arguments],
            "parameters": self.parameters,
            "has_backward": self.backward is not None,
            "reads_operands": [name in read for name in self.operands],
            "reads_outputs": [name in read for name in self.outputs],
        }

    @property
    def operands(self) -> list[str]:
        """The names of what forward takes."""
        return [*(each.name for each in self.inputs), *self.parameters]

    def values(self, given: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        """Returns the arguments of __init__ as models keep them."""
        kinds = {each.name: each.kind for each in self.arguments}
        return {name: _value(self.name, name, kinds[name], value) for name, value in given if value is not None}

    def _has(self, method: str) -> bool:
        return getattr(self.kernel, method, None) is not None

    def _words(self, method: str) -> list[inspect.Parameter]:
        """Returns the arguments of a method, which are names of the library."""
        if not self._has(method):
            raise TypeError(f"the class {self.name} must define {method}")
        words = list(inspect.signature(getattr(self.kernel, method)).parameters.values())[1:]
        for each in words:
            if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
                raise TypeError(f"{self.name}.{method}: the argument {each} must have a name, without *")
            if not _WORD.fullmatch(each.name):
                raise TypeError(
                    f"{self.name}.{method}: the argument {each.name!r} must be of lower case letters, digits and _"
                )
        return words

    def _arguments(self) -> list[Argument]:
        hints = typing.get_type_hints(self.kernel.__init__)
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
        return [
            Input(each.name, each.default is not each.empty) for each in words if each.name not in self.parameters
        ]

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


def definition(kernel: type[Kernel]) -> Definition:
    """Returns what a class declares; TypeError where it cannot be a layer."""
    found = kernel.__dict__.get("_definition")
    if not isinstance(found, Definition):
        found = Definition(kernel)
        setattr(kernel, "_definition", found)
    return found


@dataclass(frozen=True)
class Parameter:
    """A parameter that a layer learns: its shape, and its first values: a constant, uniform in [low, high), or normal
    with (mean, standard deviation)."""

    shape: tuple[int, ...]
    constant: float = 0.0
    uniform: tuple[float, float] | None = None
    normal: tuple[float, float] | None = None

    def initializer(self) -> tuple[int, float, float]:
        """Returns kind and numbers of the first values, as the library has them."""
        if self.uniform is not None:
            return (1, *self.uniform)
        return (2, *self.normal) if self.normal is not None else (0, self.constant, 0.0)


class Calls:
    """The calls of the library to the methods of a class. They run on any thread, with the interpreter lock."""

    def __init__(self, of: Definition) -> None:
        self._of = of

    def make(self, attributes: dict[str, Any]) -> Any:
        """Returns an object of the class, for the calls of one layer of a machine."""
        return self._of.kernel(**attributes)

    def plan(self, attributes: dict[str, Any], inputs: list[Shape | None]) -> tuple[list[Any], list[Any], int]:
        """Returns the shapes of the outputs; (name, shape, first values) of the parameters; and the number of sums."""
        of = self._of
        if of.kernel.role == "metric":
            return [], [], len(of.sums)
        layer = self.make(attributes)
        given = [*inputs, *[None] * (len(of.inputs) - len(inputs))]
        known = {"samples", *(dim for shape in given if shape for dim in shape if isinstance(dim, str))}
        if hasattr(layer, "shape"):
            shapes = layer.shape(*given)
            shapes = [shapes] if len(of.outputs) == 1 else shapes
        else:
            shapes = [("samples",) if of.kernel.role == "cost" else given[0]] * len(of.outputs)
        if not isinstance(shapes, (tuple, list)) or len(shapes) != len(of.outputs):
            raise error.InvalidError(
                f"{of.name}.shape returned {shapes!r}; expected a shape for each of the outputs {', '.join(of.outputs)}"
            )
        return [self._shape("shape", each, known) for each in shapes], self._parameters(layer, given), 0

    def forward(self, layer: Any, operands: list[Array | None], expected: list[Any]) -> list[Array]:
        """Returns the outputs, or the sums of a metric."""
        of = self._of
        named = dict(zip(of.operands, operands))
        if of.kernel.role == "metric":
            names, method, results = of.sums, "update", layer.update(**named)
        else:
            names, method, results = of.outputs, "forward", layer.forward(**named)
        return [
            self._array(method, name, each, shape)
            for name, each, shape in zip(names, self._each(method, names, results), expected)
        ]

    def backward(
        self, layer: Any, operands: list[Array | None], outputs: list[Array | None], gradients: list[Any],
        expected: list[Any],
    ) -> list[Array | None]:  # fmt: skip
        """Returns the gradients that are expected. gradients: of the outputs; where they are zero, their shapes."""
        of = self._of
        dtype = next(each.dtype for each in gradients if isinstance(each, np.ndarray))
        given = [each if isinstance(each, np.ndarray) else np.zeros(each, dtype) for each in gradients]
        named: dict[str, Any] = {**dict(zip(of.operands, operands)), **dict(zip(of.outputs, outputs))}
        named["gradient"] = given[0] if len(given) == 1 else tuple(given)
        results = layer.backward(**{name: named[name] for name in of.backward or ()})
        return [
            None if wanted is None
            else np.zeros(wanted[0], numpy_dtype(wanted[1])) if each is None
            else self._array("backward", name, each, wanted)
            for name, each, wanted in zip(of.operands, self._each("backward", of.operands, results), expected)
        ]  # fmt: skip

    def finalize(self, attributes: dict[str, Any], sums: list[float]) -> dict[str, float]:
        """Returns the values of a metric by name."""
        of = self._of
        results = self.make(attributes).finalize(*sums)
        named = results if isinstance(results, Mapping) else {of.type.rpartition(".")[2]: results}
        for name, value in named.items():
            if not hasattr(value, "__float__"):
                raise error.InvalidError(f"{of.name}.finalize returned {value!r} for {name!r}; expected a number")
        return {str(name): float(value) for name, value in named.items()}

    def _each(self, method: str, names: Sequence[str], results: Any) -> Sequence[Any]:
        if len(names) == 1 and not isinstance(results, (tuple, list)):
            return [results]
        if not isinstance(results, (tuple, list)) or len(results) != len(names):
            what = f"{len(results)} values" if isinstance(results, (tuple, list)) else _described(results)
            raise error.InvalidError(
                f"{self._of.name}.{method} returned {what}; expected {len(names)}: {', '.join(names)}"
            )
        return results

    def _array(self, method: str, name: str, result: Any, expected: tuple[Shape, int]) -> Array:
        """Returns a result as a row-major array of the expected shape and type."""
        shape, dtype = expected[0], numpy_dtype(expected[1])
        array = np.asarray(result)
        if array.shape != shape or not np.can_cast(array.dtype, dtype, "same_kind"):
            raise error.InvalidError(
                f'{self._of.name}.{method} returned {_described(result)} for "{name}"; expected an array of {dtype} of '
                f"shape {list(shape)}"
            )
        return np.asarray(array, dtype, order="C")

    def _shape(self, method: str, shape: Any, known: set[str]) -> Shape:
        of = self._of
        dims = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        for dim in dims:
            if (dim not in known) if isinstance(dim, str) else not hasattr(dim, "__index__"):
                raise error.InvalidError(
                    f"{of.name}.{method} returned the shape {shape!r}; expected a tuple of numbers and of "
                    f"{', '.join(map(repr, sorted(known)))}"
                )
        return dims

    def _parameters(self, layer: Any, inputs: list[Shape | None]) -> list[Any]:
        of = self._of
        if not of.parameters:
            return []
        declared = layer.initial_parameters(*inputs)
        if not isinstance(declared, Mapping) or set(declared) != set(of.parameters):
            raise error.InvalidError(
                f"{of.name}.initial_parameters returned {declared!r}; expected a dict of {', '.join(of.parameters)}"
            )
        return [
            (name, self._shape("initial_parameters", declared[name].shape, set()), *declared[name].initializer())
            for name in of.parameters
        ]


def register(host: _host.Host, kernel: type[Kernel]) -> str:
    """Adds a class to a host if it does not have it. Returns its type there: its own; for a class that was defined
    anew, as in a cell of a notebook, with a number at the end."""
    of = definition(kernel)
    with host.lock:
        for type, known in host.kernels.items():
            if known is kernel:
                return type
        name, number = of.type, 1
        while name in host.kernels:
            other = host.kernels[name]
            if (other.__module__, other.__qualname__) != (kernel.__module__, kernel.__qualname__):
                raise error.InvalidError(
                    f"the classes {other.__module__}.{other.__qualname__} and {kernel.__module__}."
                    f'{kernel.__qualname__} have the same type "{name}": give one of them another, as '
                    'type = "python.another" in its body',
                    "layer",
                    name,
                )
            number += 1
            name = f"{of.type}_{number}"
        _add(host, kernel, name)
        return name


def _add(host: _host.Host, kernel: type[Kernel], name: str) -> None:
    of = definition(kernel)
    _core.add_kernel_type(host.core, {**of.description(), "type": name}, Calls(of))
    host.kernels[name] = kernel


def register_types(host: _host.Host, layers: Sequence[tuple[str, str]], where: str) -> bool:
    """Adds the classes that layers (name, type) of a model are made of. Returns whether there are any that the host did
    not have; NotFoundError where a class is missing."""
    added = False
    with host.lock:
        for layer, name in layers:
            if name in host.kernels or "." not in name:
                continue
            found = [each for each in _concrete(Kernel) if name in (_type(each), _type(each) + _number(name))]
            if found:
                _add(host, found[-1], name)
                added = True
            elif name.startswith(VENDOR):
                raise error.NotFoundError(
                    f'{where}: layer "{layer}" is of type "{name}", a class that is written in Python and not defined '
                    "here: define it, or import the module that does, before the model is loaded",
                    f'layer "{layer}"',
                    name,
                )
    return added


def _concrete(of: type[Kernel]) -> list[type[Kernel]]:
    """Returns the classes below one that can be layers or metrics, in the order of their definition."""
    found = [of] if hasattr(of, "forward") or hasattr(of, "update") else []
    return found + [each for derived in of.__subclasses__() for each in _concrete(derived)]


def _type(kernel: type[Kernel]) -> str:
    return kernel.__dict__.get("type") or VENDOR + _snake(kernel.__name__)


def _number(type: str) -> str:
    """Returns the number at the end of the type of a class that was defined anew."""
    found = re.search("_[0-9]+$", type)
    return found.group() if found else ""


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower().strip("_")


def _names(kernel: type[Kernel], attribute: str) -> list[str]:
    given = getattr(kernel, attribute)
    names = [given] if isinstance(given, str) else list(given)
    for each in names:
        if not isinstance(each, str) or not _WORD.fullmatch(each):
            raise TypeError(
                f"{kernel.__name__}.{attribute} has {each!r}; expected names of lower case letters, digits and _"
            )
    return names


def _described(result: Any) -> str:
    if isinstance(result, np.ndarray):
        return f"an array of {result.dtype} of shape {list(result.shape)}"
    return "None" if result is None else f"{result!r} of type {type(result).__name__}"


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
