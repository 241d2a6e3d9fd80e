"""Layers and metrics written in Python: their base, and the calls of the library to their methods.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenon import _core, error
from tenon._base import functions as _functions
from tenon._base import host as _host
from tenon._base.arrays import from_core
from tenon._model.definition import VENDOR, Definition, definition, number_of, type_of
from tenon._model.layer import Layer, LayerLike, as_layer
from tenon.data_type import numpy_dtype

Shape = tuple[Any, ...]  # numbers, and texts such as "samples" for dimensions that vary
Array = NDArray[Any]


class Kernel:
    """The base of tenon.layer.Base and tenon.metric.Base. Objects of derived classes make layers of their inputs."""

    role = "layer"
    type = ""  # the name of the layer type; default that of the class: "python.leaky_swish" for LeakySwish
    outputs: Sequence[str] = ("output",)
    parameters: Sequence[str] = ()
    buffers: Sequence[str] = ()
    training: bool = False  # whether the machine trains, or only answers
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
        if len(inputs) < least or (len(inputs) > len(of.inputs) and not of.variadic):
            listed = ", ".join("*" * each.variadic + each.name for each in of.inputs)
            raise TypeError(f"{of.name} takes the inputs {listed}; {len(inputs)} are given")
        layers = [None if each is None else as_layer(each) for each in inputs]
        return KernelLayer(type(self), layers, {**self.arguments, **_functions.flatten(options)}, name)

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]:
        return (), self.arguments  # of copies

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
            return 1, float(self.uniform[0]), float(self.uniform[1])
        if self.normal is not None:
            return 2, float(self.normal[0]), float(self.normal[1])
        return 0, float(self.constant), 0.0


class Calls:
    """The calls of the library to the methods of a class. They run on any thread, with the interpreter lock."""

    def __init__(self, of: Definition) -> None:
        self._of = of

    def make(self, attributes: dict[str, Any], training: bool = False) -> Any:
        """Returns an object of the class, for the calls of one layer of a machine."""
        made = self._of.kernel(**attributes)
        made.training = training
        return made

    def plan(
        self, attributes: dict[str, Any], inputs: list[Shape | None], ragged: list[bool]
    ) -> tuple[list[Any], list[Any], int]:
        """Returns the shapes of the outputs; (name, shape, first values) of the parameters; and the number of sums.

        ragged: of each input, whether it has sequences.
        """
        of = self._of
        for input, shape, has in zip(of.ports(len(inputs)), inputs, ragged, strict=True):
            if input.sequences and shape is not None and not has:
                raise error.InvalidError(
                    f'{of.name}: the input "{input.name}" is {list(shape)}; expected sequences', "layer", input.name
                )
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
                f"{of.name}.shape returned {shapes!r}; expected a shape for each output: {', '.join(of.outputs)}"
            )
        return [self._shape("shape", each, known) for each in shapes], self._parameters(layer, given), 0

    def forward(self, layer: Any, operands: list[Any], expected: list[Any]) -> list[Array | None]:
        """Returns the outputs and the next values of buffers, or the sums of a metric. None is expected of buffers where
        they do not change."""
        of = self._of
        method, names = "forward", [*of.outputs, *of.buffers]
        if of.kernel.role == "metric":
            method, names = "update", of.sums
        named = self._named(operands)
        more = named.pop(of.inputs[-1].name) if of.variadic else ()
        # Those before *inputs by place, since it takes no keyword; parameters follow it.
        fixed = [named.pop(each.name) for each in of.inputs[:-1]] if of.variadic else []
        results = getattr(layer, method)(*fixed, *more, **named)
        return [
            None if wanted is None else self._array(method, name, each, wanted)
            for name, each, wanted in zip(names, self._each(method, names, results), expected, strict=True)
        ]

    def backward(
        self, layer: Any, operands: list[Any], outputs: list[Array | None], gradients: list[Any],
        expected: list[Any],
    ) -> list[Array | None]:  # fmt: skip
        """Returns the gradients that are expected. gradients: of the outputs; where they are zero, their shapes."""
        of = self._of
        dtype = next(each.dtype for each in gradients if isinstance(each, np.ndarray))
        given = [each if isinstance(each, np.ndarray) else np.zeros(each, dtype) for each in gradients]
        named = {**self._named(operands), **dict(zip(of.outputs, outputs, strict=True))}
        named["gradient"] = given[0] if len(given) == 1 else tuple(given)
        results = layer.backward(**{name: named[name] for name in of.backward or ()})
        names = [*(each.name for each in of.ports(len(operands) - len(of.parameters))), *of.learned]
        if results is None and any(each is not None for each in expected):
            raise error.InvalidError(
                f"{of.name}.backward returned None; expected the gradients of {', '.join(names)}; a layer without "
                "gradients defines no backward"
            )
        return [
            None if wanted is None
            else np.zeros(wanted[0], numpy_dtype(wanted[1])) if each is None
            else self._array("backward", name, each, wanted)
            for name, each, wanted in zip(names, self._each("backward", names, results), expected, strict=True)
        ]  # fmt: skip

    def finalize(self, attributes: dict[str, Any], sums: list[float]) -> dict[str, float]:
        """Returns the values of a metric by name."""
        of = self._of
        results = self.make(attributes).finalize(*sums)
        named = results if isinstance(results, Mapping) else {of.type.rpartition(".")[2]: results}
        for name, value in named.items():
            if not isinstance(name, str) or not name:
                raise error.InvalidError(f"{of.name}.finalize returned the name {name!r}; expected a text, not empty")
            if not hasattr(value, "__float__"):
                raise error.InvalidError(f"{of.name}.finalize returned {value!r} for {name!r}; expected a number")
        return {str(name): float(value) for name, value in named.items()}

    def _named(self, operands: list[Any]) -> dict[str, Any]:
        """Returns inputs and parameters by name; a tuple for what stands for several inputs."""
        of = self._of
        values = [from_core(each) for each in operands]
        if of.variadic:
            first, last = len(of.inputs) - 1, len(values) - len(of.parameters)
            values[first:last] = [tuple(values[first:last])]
        return dict(zip(of.operands, values, strict=True))

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
        return tuple(dim if isinstance(dim, str) else int(dim) for dim in dims)

    def _parameters(self, layer: Any, inputs: list[Shape | None]) -> list[Any]:
        of = self._of
        if not of.parameters:
            return []
        declared = layer.initial_parameters(*inputs)
        if (
            not isinstance(declared, Mapping)
            or set(declared) != set(of.parameters)
            or not all(isinstance(each, Parameter) for each in declared.values())
        ):
            raise error.InvalidError(
                f"{of.name}.initial_parameters returned {declared!r}; expected a dict of tenon.layer.Parameter by "
                f"{', '.join(of.parameters)}"
            )
        return [
            (name, self._shape("initial_parameters", declared[name].shape, set()), *declared[name].initializer(),
             name in of.buffers)
            for name in of.parameters
        ]  # fmt: skip


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
            found = [each for each in _concrete(Kernel) if name in (type_of(each), type_of(each) + number_of(name))]
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


def _described(result: Any) -> str:
    if isinstance(result, np.ndarray):
        return f"an array of {result.dtype} of shape {list(result.shape)}"
    return "None" if result is None else f"{result!r} of type {type(result).__name__}"
