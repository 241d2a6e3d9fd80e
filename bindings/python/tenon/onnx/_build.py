"""What the conversions of operators share: the values so far, and the layers that they make of them.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenon import data_type, error
from tenon._model.layer import Data, Layer
from tenon.onnx._graph import Graph, Node
from tenon.onnx._values import Array, Refusal, Value, channels_last, float32, moves, plain

Made = Value | list[Value]
Operator = Callable[["Build", Node], Made]


class Build:
    """The topology that a graph becomes, and the values of its parameters."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.values: dict[str, Value] = {}
        self.constants = dict(graph.constants)
        self.parameters: dict[str, Array] = {}
        self.aliases: dict[str, str] = {}  # outputs that a node before has made already
        self.uses = Counter([name for node in graph.nodes for name in node.inputs] + graph.outputs)
        self._ordered: dict[tuple[Any, ...], Layer] = {}
        self._names: Counter[str] = Counter()

    def value(self, node: Node, number: int = 0) -> Value:
        """Returns an input that depends on the samples."""
        name = node.inputs[number] if node.has(number) else ""
        if name not in self.values:
            raise Refusal(f"input {number} must be a value of the graph" if name else f"input {number} is missing")
        return self.values[name]

    def constant(self, node: Node, number: int, what: str) -> Array:
        """Returns an input that does not depend on the samples."""
        found = self.optional(node, number, what)
        if found is None:
            raise Refusal(f"the {what}, input {number}, is missing")
        return found

    def optional(self, node: Node, number: int, what: str) -> Array | None:
        """The same; None where the input is absent."""
        if not node.has(number):
            return None
        if node.inputs[number] not in self.constants:
            raise Refusal(f"the {what}, input {number}, is computed by the graph; only constants are understood")
        return self.constants[node.inputs[number]]

    def is_constant(self, node: Node, number: int) -> bool:
        """Returns whether an input does not depend on the samples."""
        return node.has(number) and node.inputs[number] in self.constants

    def integers(self, node: Node, number: int, attribute: str) -> list[int] | None:
        """Returns a list that was an attribute, and is an input in newer versions; None where it is absent."""
        given = node.get(attribute)
        if given is None:
            found = self.optional(node, number, attribute)
            if found is not None and found.size and found.dtype.kind not in "iu":
                raise Refusal(f"the {attribute}, input {number}, are {found.dtype}; integers are needed")
            return None if found is None else [int(each) for each in np.atleast_1d(found)]
        return [int(each) for each in given]

    def layer(
        self,
        node: Node,
        type: str,
        inputs: Sequence[Layer],
        attributes: Mapping[str, Any] | None = None,
        suffix: str = "",
    ) -> Layer:
        """Makes a layer that is called after the node."""
        return self.named(node.title + suffix, type, inputs, attributes)

    def named(
        self, wanted: str, type: str, inputs: Sequence[Layer], attributes: Mapping[str, Any] | None = None
    ) -> Layer:
        """Makes a layer of a name, with a number behind it where that is taken."""
        try:
            return Layer(type, inputs, attributes or {}, self.free(wanted))
        except error.Error as failure:
            raise Refusal(str(failure)) from failure

    def free(self, wanted: str) -> str:
        """Returns a name, with a number behind it where that is taken."""
        self._names[wanted] += 1
        if self._names[wanted] == 1:
            return wanted
        return self.free(f"{wanted}_{self._names[wanted]}")

    def set(self, layer: Layer, **values: Array | None) -> None:
        """Notes values of the layer's parameters, after checking their shapes."""
        shapes = {each["name"]: each["shape"] for each in layer.parameters}
        for suffix, numbers in values.items():
            name = f"{layer.name}.{suffix}"
            if numbers is None:
                continue
            if shapes.get(name) != numbers.shape:
                raise Refusal(
                    f"the layer ({layer.type}) needs {suffix} of shape {list(shapes.get(name, ()))}; "
                    f"the numbers have {list(numbers.shape)}"
                )
            self.parameters[name] = float32(numbers)

    def ordered(self, node: Node, value: Value, order: tuple[int, ...]) -> Layer:
        """Returns the layer with its dimensions in an order, of a value that is not flat."""
        if value.order == order:
            return value.layer
        key = (id(value.layer), value.order, order)
        if key not in self._ordered:
            self._ordered[key] = self._moved(node, value, order)
        return self._ordered[key]

    def _moved(self, node: Node, value: Value, order: tuple[int, ...]) -> Layer:
        axes = tuple(value.order.index(axis) for axis in order)
        if moves(value.sizes, axes):
            return self.layer(node, "transpose", [value.layer], {"axes": list(axes)}, ".transpose")
        sizes = [value.sizes[axis - 1] for axis in axes[1:]]
        return self.layer(node, "reshape", [value.layer], {"shape": sizes}, ".reshape")

    def plain(self, node: Node, value: Value) -> Layer:
        """Returns the layer with the dimensions of the value."""
        layer = self.ordered(node, value, plain(len(value.order)))
        if value.flat and len(value.order) > 2:
            layer = self.layer(node, "reshape", [layer], {"shape": [-1]}, ".flatten")
        return layer

    def as_plain(self, node: Node, value: Value) -> Value:
        """Returns the same value with the dimensions of its layer unmoved."""
        return Value(self.plain(node, value), plain(value.rank))

    def unflattened(self, node: Node, value: Value) -> Value:
        """Returns the value itself, or with its layer flattened where it is flat."""
        return self.as_plain(node, value) if value.flat else value

    def image(self, node: Node, number: int = 0) -> Layer:
        """Returns an input with its channels last."""
        value = self.value(node, number)
        if value.rank < 3:
            raise Refusal(f"needs images [samples, channels, space...]; its input is {value.text}")
        return self.ordered(node, self.unflattened(node, value), channels_last(value.rank))

    def stand_in(self, sizes: tuple[int, ...]) -> Value:
        """Returns a value in place of one that could not be made, so that what follows is checked, too."""
        type = data_type.dense_array(sizes[1:])
        return Value(Data(self.free("stand_in"), type), plain(len(sizes)))
