"""What the writers of layers share: the nodes so far, and the values of ONNX that layers became.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tenon._base import host as _host
from tenon.onnx._values import Array, Refusal, channels_first, plain

OPSET = 17  # version of the operators: that of 2022, which runtimes have
Attributes = Mapping[str, Any]
Parameters = Mapping[str, Array]
Writer = Callable[["Emit", "Item", Sequence["Written"]], "Written"]


@dataclass(frozen=True)
class Written:
    """A value of the graph that is written.

    order: dimension i of the value is dimension order[i] of the layer, whose sample has `sizes` before it is flattened.
    flat: the layer's output is [samples, rest] in the layer's order. numbers: those of a constant, which is no value yet.
    """

    name: str
    order: tuple[int, ...]
    sizes: tuple[int, ...]
    flat: bool = False
    numbers: Array | None = None

    @property
    def dims(self) -> tuple[int, ...]:
        """The sizes of a sample of the layer's output."""
        return (math.prod(self.sizes),) if self.flat else self.sizes

    def like(self, name: str) -> Written:
        """Returns the value of a node that works element by element on this one."""
        return replace(self, name=name)

    def axis(self, number: int) -> int:
        """Returns the dimension of the value that is dimension `number` of the layer, from the end where negative."""
        return self.order.index(number + len(self.order) if number < 0 else number)


@dataclass(frozen=True)
class Item:
    """A layer to write, or one of those that it stands for. attributes: defaults included; sizes: of a sample of its
    output, () where the writer finds them."""

    name: str
    type: str
    attributes: Attributes
    parameters: Parameters
    sizes: tuple[int, ...] = ()

    def parameter(self, suffix: str) -> Array:
        """Returns the values of a parameter."""
        return self.parameters[suffix]


class Emit:
    """The graph that is written."""

    def __init__(self, writers: Mapping[str, Writer]) -> None:
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.writers = writers
        self._names: Counter[str] = Counter()

    def free(self, wanted: str) -> str:
        """Returns a name, with a number behind it where that is taken."""
        self._names[wanted] += 1
        return wanted if self._names[wanted] == 1 else self.free(f"{wanted}_{self._names[wanted]}")

    def node(self, op: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        """Adds a node. Returns the name of its output, that of the node."""
        output = self.free(name)
        self.nodes.append(helper.make_node(op, list(inputs), [output], output, **attributes))
        return output

    def numbers(self, values: Any, name: str, dtype: Any = np.float32) -> str:
        """Adds numbers. Returns their name."""
        made = self.free(name)
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(np.asarray(values, dtype)), made))
        return made

    def write(self, item: Item, inputs: Sequence[Written]) -> Written:
        """Writes a layer of any type that has a writer, and its act."""
        if item.type not in self.writers:
            raise Refusal("unsupported type")
        made = self.writers[item.type](self, item, inputs)
        act = item.attributes.get("act")
        return made if not act else self.write(self.inner(item, act, {}, "act"), [made])

    def inner(self, item: Item, type: str, attributes: Attributes, suffix: str) -> Item:
        """Returns a layer that another one stands for, with the defaults of its type and its part of the parameters."""
        known = _host.host().describe("layer", type)["attributes"]
        defaults = {each["name"]: each["initial"] for each in known if each.get("initial") is not None}
        start = f"{suffix}."
        own = {name[len(start) :]: values for name, values in item.parameters.items() if name.startswith(start)}
        return Item(f"{item.name}.{suffix}", type, {**defaults, **attributes}, own)

    def ordered(self, value: Written, order: tuple[int, ...]) -> Written:
        """Returns a value that is not flat with its dimensions in an order."""
        if value.numbers is not None:
            raise Refusal("reads a constant, which only arithmetic can")
        if value.order == order:
            return value
        axes = [value.order.index(axis) for axis in order]
        made = self.node("Transpose", [value.name], f"{value.name}.transpose", perm=axes)
        return replace(value, name=made, order=order)

    def plain(self, value: Written) -> Written:
        """Returns a value with the dimensions of the layer."""
        made = self.ordered(value, plain(len(value.order)))
        if not value.flat or len(value.order) == 2:
            return replace(made, flat=False)
        return Written(self.node("Flatten", [made.name], f"{made.name}.flatten", axis=1), plain(2), value.dims)

    def unflattened(self, value: Written) -> Written:
        """Returns the value itself, or where it is flat one that is flattened."""
        return self.plain(value) if value.flat else value

    def image(self, value: Written) -> Written:
        """Returns a value with its channels first."""
        value = self.unflattened(value)
        return self.ordered(value, channels_first(len(value.order)))

    def columns(self, value: Written) -> tuple[str, Array]:
        """Returns a value flattened to [samples, columns] in an order of its own, and for each of these columns the one
        of the layer that it is."""
        if value.numbers is not None:
            raise Refusal("reads a constant, which only arithmetic can")
        count = math.prod(value.sizes)
        own = np.arange(count).reshape(value.sizes).transpose([axis - 1 for axis in value.order[1:]]).ravel()
        if len(value.order) == 2:
            return value.name, own
        return self.node("Flatten", [value.name], f"{value.name}.flatten", axis=1), own


def model(emit: Emit, inputs: Sequence[Any], outputs: Sequence[Any], name: str) -> Any:
    """Returns the finished model, which the package onnx has checked."""
    graph = helper.make_graph(emit.nodes, name, list(inputs), list(outputs), emit.initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8, producer_name="tenon")
    onnx.checker.check_model(made, full_check=True)
    return made
