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
        self.spread: dict[str, int] = {}  # constants of one sample for all: which dimension, from the end, is the samples
        self.rows = 0  # dimensions of the inputs of the node in work that the file has as one with the samples
        self.bodies = self.expanded = 0  # graphs inside of nodes, and their nodes, so far
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

    def operand(self, node: Node, number: int, like: Value) -> Value:
        """Returns an input with the dimensions of a value, also one that does not depend on the samples."""
        if not self.is_constant(node, number):
            return self.value(node, number)
        numbers = self.numbers(node, number, like)
        numbers = numbers.reshape((1,) * (like.rank - numbers.ndim) + numbers.shape)
        place = numbers.ndim - like.rank + like.samples
        if numbers.shape[place] != 1:
            raise Refusal(f"numbers of shape {list(numbers.shape)} differ between samples, {like.text}")
        kind = {"b": "bool", "i": "int", "u": "int"}.get(numbers.dtype.kind, "float")
        layer = self.fixed(node, like.layer, numbers.squeeze(place), node.inputs[number])
        return Value(layer, plain(numbers.ndim), samples=place, kind=kind)

    def numbers(self, node: Node, number: int, like: Value) -> Array:
        """Returns constant numbers of an operation with a value, of one sample where they are alike for all."""
        numbers = self.constant(node, number, "operand")
        place = numbers.ndim - like.rank + like.samples
        spread = self.spread.get(node.inputs[number])
        if spread is not None and numbers.ndim - spread != place:
            raise Refusal(f"input {number} has the samples in another dimension than {like.text}")
        if 0 <= place < numbers.ndim and numbers.shape[place] == self.graph.batch != 1 and numbers.size:
            first: Array = np.take(numbers, [0], place)
            return first if (numbers == first).all() else numbers
        return numbers

    def fixed(self, node: Node, like: Layer, numbers: Array, name: str = "") -> Layer:
        """Returns numbers as a layer, with the dimensions of a sample; a parameter, if the file has them as such."""
        shape = list(numbers.shape)
        if name in self.graph.learned:
            layer = self.named(name.strip("/").replace("/", "."), "parameter", [like], {"shape": shape})
            self.set(layer, value=float32(numbers))
            return layer
        given = {"shape": shape, "value": float32(numbers).ravel().tolist()}
        return self.layer(node, "constant", [like], given, ".constant")

    def formula(self, node: Node, formula: str, inputs: Sequence[Layer], suffix: str = "") -> Layer:
        """Returns a formula of layers that are called x, y and z in it."""
        return self.layer(node, "formula", inputs, {"formula": formula, "names": ["x", "y", "z"][: len(inputs)]}, suffix)

    def size(self, node: Node, number: int, axis: int) -> int:
        """Returns the size of a dimension of an input, which is not that of the samples."""
        if self.is_constant(node, number):
            return int(self.constants[node.inputs[number]].shape[axis])
        value = self.value(node, number)
        standard = value.standard(axis)
        if standard < 1:
            raise Refusal(f"axis {axis} of {value.text}")
        return value.dims[standard - 1]

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

    def set(self, layer: Layer, under: str = "", /, **values: Array | None) -> None:
        """Notes values of the layer's parameters, after checking their shapes. under: the name that they have in place of
        the layer's."""
        shapes = {each["name"]: each["shape"] for each in layer.parameters}
        for suffix, numbers in values.items():
            name = f"{under or layer.name}.{suffix}"
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
        return Value(self.plain(node, value), plain(value.rank), samples=value.samples, kind=value.kind, merged=value.merged)

    def unflattened(self, node: Node, value: Value) -> Value:
        """Returns the value itself, or with its layer flattened where it is flat."""
        return self.as_plain(node, value) if value.flat else value

    def image(self, node: Node, number: int = 0) -> Layer:
        """Returns an input with its channels last."""
        value = self.value(node, number)
        if value.rank < 3:
            raise Refusal(f"needs images [samples, channels, space...]; its input is {value.text}")
        return self.ordered(node, self.unflattened(node, value), channels_last(value.rank))

    def first(self, node: Node, value: Value) -> Value:
        """Returns a value with its samples as the first dimension."""
        if value.samples:
            raise Refusal(f"reads {value.text}; its samples must be the first dimension")
        return value

    def stand_in(self, sizes: tuple[int, ...]) -> Value:
        """Returns a value in place of one that could not be made, so that what follows is checked, too."""
        type = data_type.dense_array(sizes[1:])
        return Value(Data(self.free("stand_in"), type), plain(len(sizes)))
