"""Layers as expressions. A layer is made on its host as soon as the types of its inputs are known.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Union

from tenon import _core, error
from tenon._base import caller as _caller
from tenon._base import check as _check
from tenon._base import host as _host
from tenon._model.operators import Operators
from tenon.data_type import DataType, numpy_dtype, of_options

LayerLike = Union["Layer", str]

# Takes the layers that a step of a scan makes, by name; None outside of a step.
made_layers: ContextVar[dict[str, Layer] | None] = ContextVar("tenon made layers", default=None)


class Layer(Operators):
    """One output of a layer, and an expression of the layers that it depends on.

    Layers are made by the functions of tenon.layer, by + - * / ** @ < <= > >= abs and functions of NumPy on layers, numbers and
    arrays of a sample, and by indices: x[:, 0].
    """

    __slots__ = ("__weakref__", "_attributes", "_core", "_inputs", "_model", "_name", "_place", "_ports", "_type")

    def __init__(
        self,
        type: str,
        inputs: Sequence[Layer | None],
        attributes: Mapping[str, Any],
        name: str = "",
        host: Any = None,
    ) -> None:
        """inputs: None for an optional one that is absent."""
        self._type = type
        self._ports = tuple(inputs)
        self._inputs = tuple(each for each in inputs if each is not None)
        self._attributes = dict(attributes)
        self._name = _check.text(name, "name", f"layer ({type})")
        _check.attributes(self._attributes, f'layer "{name}" ({type})')
        self._core: Any = None
        self._model: Any = None
        self._place = ""
        if all(each._core is not None for each in self._inputs):
            self._make(host)
        else:
            self._place = _caller.place()

    @classmethod
    def _wrap(cls, core: Any) -> Layer:
        """Returns the layer of a handle, such as one of a loaded model."""
        made = cls.__new__(cls)
        made._core = core
        made._name, made._type = core.info()[:2]
        made._ports, made._inputs, made._attributes, made._place, made._model = (), (), {}, "", None
        return made

    def _make(self, host: Any = None) -> None:
        core = (host or _host.host()).core
        try:
            inputs = [None if each is None else each._core for each in self._ports]
            require_host([each for each in inputs if each is not None], core, f'layer "{self._name}" ({self._type})')
            self._core = core.layer(self._type, inputs, self._attributes, self._name)
            taken = made_layers.get()
            if taken is not None:
                taken[self.name] = self
        except error.Error as failure:
            if self._place:
                failure.add_note(f"the layer was written at {self._place}")
            raise

    @property
    def name(self) -> str:
        """The name, unique within a topology. Of layers without a given name it is known once the types are."""
        return str(self._core.info()[0]) if self._core is not None else self._name

    @property
    def type(self) -> str:
        """The type, such as "fc"."""
        return self._type

    @property
    def role(self) -> str:
        """ "layer", "cost" or "metric"; data layers are layers of the type "data"."""
        return str(self._made().info()[2])

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape: numbers, and texts such as "samples" for dimensions that vary; () of a metric."""
        text = self._output().get("shape", "").strip("[]")
        return tuple(int(each) if each.isdigit() else each for each in text.split(", ")) if text else ()

    @property
    def dtype(self) -> Any:
        """The element type, as NumPy has it; float32 for what is computed in the type of the machine."""
        code = self._made().output_type()[0]
        return numpy_dtype(code) if code else numpy_dtype(_core.dtype(2, 32))

    @property
    def inputs(self) -> tuple[Layer, ...]:
        """The layers that this one reads."""
        if self._inputs or self._core is None:
            return self._inputs
        count = self._core.info()[4]
        found = [self._core.input(number) for number in range(count)]
        return tuple(Layer._wrap(each) for each in found if each is not None)

    @property
    def parameters(self) -> list[dict[str, Any]]:
        """The parameters and buffers of this layer: name, shape, and whether it is a buffer."""
        return [
            {"name": each["name"], "shape": tuple(each["shape"]), "buffer": each["buffer"]}
            for each in self._made().parameters()
        ]

    @property
    def data_types(self) -> dict[str, DataType]:
        """The types of the data layers that this one depends on, in the order in which they were defined: that of the
        values of samples that are tuples. Those of a loaded model are in the order in which it uses them."""
        return data_types([self])

    def describe(self) -> dict[str, Any]:
        """Returns everything that the library knows of the layer."""
        described: dict[str, Any] = json.loads(self._made().describe())
        return described

    def find(self, name: str) -> Layer | None:
        """Returns the layer called `name` among those that this one depends on; None if there is none."""
        found = self._made().find(_check.text(name, "name", f'layer "{self.name}" ({self.type})'))
        return None if found is None else Layer._wrap(found)

    def output(self, number: int) -> Layer:
        """Returns output `number`, from 0, of a layer with several outputs."""
        count = self._made().info()[5]
        number = _check.whole(number, "output", f'layer "{self.name}" ({self.type})', 0, count - 1)
        made = Layer._wrap(self._made().output(number))
        made._ports, made._inputs = self._ports, self._inputs
        made._attributes, made._model = self._attributes, self._model
        return made

    def __iter__(self) -> Iterator[Layer]:
        count = self._made().info()[5]
        if count < 2:
            raise TypeError(f'layer "{self.name}" has {count} output; only layers with several can be unpacked')
        return iter([self.output(number) for number in range(count)])

    def _output(self) -> dict[str, Any]:
        described = self.describe()
        if not described.get("outputs"):
            return described
        outputs: list[dict[str, Any]] = described["outputs"]
        return outputs[int(self._core.info()[3])]

    def _made(self) -> Any:
        if self._core is None:
            data = sorted({each._name for each in walk([self]) if each._type == "data" and each._core is None})
            raise error.MisuseError(
                f"the type of data layer {', '.join(map(repr, data))} is not known yet: give one, as "
                f"tenon.layer.data({data[0]!r}, tenon.data_type....), or pass reader= to tenon.parameters.create",
                "layer",
                data[0],
            )
        return self._core

    def __repr__(self) -> str:
        if self._core is None:
            return f"<layer {self._name!r} ({self._type}) of yet unknown type>"
        return f"<layer {self.name!r} ({self._type}) {list(self.shape)}>"

    def _made_of(self, type: str, inputs: list[Any], attributes: dict[str, Any], truth: bool = False) -> Layer:
        return (_Truth if truth else Layer)(type, [as_layer(each) for each in inputs], attributes)


class _Truth(Layer):
    """What an operator compares: if x < 0 and 0 < x < 1 of layers would be true whatever the numbers are."""

    __slots__ = ()

    def __bool__(self) -> bool:
        raise TypeError(
            f'layer "{self.name}" is true for some samples alone; tenon.layer.where, masked_fill and tenon.cond choose by it'
        )


class Data(Layer):
    """A data layer: an input of the topology. Its type may be found later, from a reader. Equal data layers of a host
    are one."""

    __slots__ = ("_number",)

    def __init__(self, name: str, type: DataType | None = None) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"the name of a data layer is a text that is not empty, not {name!r}")
        if type is not None and not isinstance(type, DataType):
            raise TypeError(f"data layer {name!r}: its type is one of tenon.data_type, not {type!r}")
        self._type, self._ports, self._inputs, self._attributes, self._name = "data", (), (), {}, name
        self._core = self._model = None
        self._place = _caller.place()
        self._number = next(_definitions)
        if type is not None:
            self._core = defined_data(name, type, self._number)


_definitions = itertools.count()


def _key(name: str, type: DataType) -> tuple[Any, ...]:
    return name, replace(type, sequence=type.sequence or name)


def defined_data(name: str, type: DataType, number: int) -> Any:
    """Returns the handle of a data layer that was defined with a number, which rises."""
    host = _host.host()
    with host.lock:
        entry = host.data.setdefault(_key(name, type), (None, number, number))
        core = entry[0] or host.core.data(**type.options(name))
        host.data[_key(name, type)] = (core, min(entry[1], number), max(entry[2], number))
        return core


def require_host(cores: Iterable[Any], host: Any, component: str) -> None:
    """MisuseError for handles of layers of another host than that of a call."""
    for core in cores:
        if not core.is_of(host):
            name = core.info()[0]
            raise error.MisuseError(
                f'{component}: layer "{name}" was made on another host than this call works on: layers, sets and '
                "readers that are used together are of one host, that of tenon.use or tenon.host",
                component,
                name,
            )


def as_layer(value: LayerLike) -> Layer:
    """Returns a layer; a bare text is a data layer of that name."""
    if isinstance(value, Layer):
        return value
    if isinstance(value, str):
        return Data(value)
    return _check.refuse(value, "a layer or the name of a data layer", "input", "layer")


def as_layers(value: LayerLike | Iterable[LayerLike]) -> list[Layer]:
    """Returns a list of layers from one or several."""
    if isinstance(value, (Layer, str)):
        return [as_layer(value)]
    if not isinstance(value, Iterable):
        _check.refuse(value, "a layer or several", "outputs", "layer")
    layers = [as_layer(each) for each in value]
    if not layers:
        raise error.InvalidError("no layers are given; expected at least one")
    return layers


def walk(outputs: Iterable[Layer]) -> list[Layer]:
    """Returns the layers of a topology, inputs first; below a layer that is made only itself."""
    order: list[Layer] = []
    done: set[int] = set()
    stack = [(each, False) for each in reversed(list(outputs))]
    while stack:
        layer, ready = stack.pop()
        if id(layer) in done:
            continue
        if ready or layer._core is not None:
            done.add(id(layer))
            order.append(layer)
            continue
        stack.append((layer, True))
        stack.extend((each, False) for each in reversed(layer._inputs))
    return order


def in_order(outputs: Iterable[Layer]) -> list[Layer]:
    """Returns the layers that made outputs depend on, inputs first, each once."""
    order: dict[str, Layer] = {}
    stack = [(each._made(), False) for each in reversed(list(outputs))]
    while stack:
        core, ready = stack.pop()
        name, count = core.info()[0], core.info()[4]
        if ready:
            order.setdefault(name, Layer._wrap(core))
        elif name not in order:
            inputs = [core.input(number) for number in range(count)]
            stack.append((core, True))
            stack.extend((each, False) for each in reversed(inputs) if each is not None)
    return list(order.values())


def make(outputs: Sequence[Layer], types: Mapping[str, DataType] | None = None) -> list[Any]:
    """Makes all layers that the outputs depend on. types: of data layers without one. Returns the handles."""
    order = walk(outputs)
    host = _host.host()
    made = [each._core for each in order if each._core is not None]
    data = {each.info()[0]: each for each in _core.data_layers(made)} if made else {}
    for layer in order:
        if layer._core is not None:
            continue
        if layer._type != "data":
            layer._make(host)
            continue
        if layer._name not in data:
            if types is None or layer._name not in types:
                known = "" if types is None else error.suggestion(layer._name, types)
                raise error.InvalidError(
                    f'the type of data layer "{layer._name}" is not known: give one, as '
                    f'tenon.layer.data("{layer._name}", tenon.data_type....), or a reader with a slot of that name, as '
                    f"tenon.parameters.create(..., reader=reader){known}; the layer was written at {layer._place}",
                    "data",
                    layer._name,
                )
            data[layer._name] = defined_data(layer._name, types[layer._name], _number_of(layer))
        layer._core = data[layer._name]
    return [each._core for each in outputs]


def untyped(outputs: Sequence[Layer]) -> list[str]:
    """Returns the names of the data layers that have no type yet."""
    return [each._name for each in walk(outputs) if each._core is None and each._type == "data"]


def _number_of(layer: Layer) -> int:
    return layer._number if isinstance(layer, Data) else next(_definitions)


def data_types(outputs: Sequence[Layer]) -> dict[str, DataType]:
    """Returns the types of the data layers of a made topology, in the order in which they were defined."""
    return defined_types(outputs)[0]


def _definitions_of(outputs: Sequence[Layer]) -> dict[str, int]:
    """Returns when the data layers were defined that outputs depend on, as far as these are expressions of them."""
    found: dict[str, int] = {}
    seen: set[int] = set()
    stack = list(outputs)
    while stack:
        layer = stack.pop()
        if id(layer) not in seen:
            seen.add(id(layer))
            stack.extend(layer._inputs)
            if isinstance(layer, Data):
                found[layer._name] = min(layer._number, found.get(layer._name, layer._number))
    return found


def defined_types(outputs: Sequence[Layer]) -> tuple[dict[str, DataType], str]:
    """Returns the types of the data layers of a made topology in the order in which they were defined, those of a loaded
    model before and as the layers use them; and why values without names are not taken in this order, "" if they are: no
    two may take the place of one another where the layers use them in another order."""
    known, exact = _host.host().data, _definitions_of(outputs)
    options = [each.data_options() for each in _core.data_layers([each._made() for each in outputs])]
    types = {each["name"]: of_options(each) for each in options}
    # The first and the last definition of an equal data layer, behind what is no expression, such as a scan.
    spans = [
        (exact[name],) * 2 if name in exact else known.get(_key(name, type), (None, -1, -1))[1:]
        for name, type in types.items()
    ]
    order = sorted(range(len(options)), key=lambda number: spans[number][1])
    names = list(types)
    for place, first in enumerate(order):
        for second in order[place + 1 :]:
            kept = first < second and spans[first][0] <= spans[second][0]
            if not kept and _alike(types[names[first]], types[names[second]]):
                return {names[number]: types[names[number]] for number in order}, (
                    f'data layers "{names[first]}" and "{names[second]}" take values of one form, and the order in which '
                    "they were defined is not that in which the layers use them, so that values without names might be "
                    'mistaken: give dicts by data layer, or of tuples the places, such as feeding={"'
                    f'{names[first]}": 0, "{names[second]}": 1}}'
                )
    return {names[number]: types[names[number]] for number in order}, ""


def _alike(a: DataType, b: DataType) -> bool:
    """Returns whether the values of a data layer may pass as those of another."""
    if a.storage != b.storage:
        return _core.DENSE not in (a.storage, b.storage)  # lists of integers
    return a.storage == _core.SPARSE or (a.levels == b.levels and math.prod(a.shape) == math.prod(b.shape))
