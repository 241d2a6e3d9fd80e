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
Writer = Callable[["Emit", "Item", Sequence["Written"]], Any]  # to a Written, or a list of them for several outputs


@dataclass(frozen=True)
class Written:
    """A value of the graph that is written.

    order: dimension i of the value is dimension order[i] of the layer, whose sample has `sizes` before it is flattened.
    flat: the layer's output is [samples, rest] in the layer's order. numbers: those of a constant, which is no value yet.
    dtype: of its elements, as NumPy has it; scale and offset: what integers become numbers by.
    """

    name: str
    order: tuple[int, ...]
    sizes: tuple[int, ...]
    flat: bool = False
    numbers: Array | None = None
    dtype: str = "float32"
    scale: float = 1.0
    offset: float = 0.0

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
        self._shared: dict[Any, str] = {}
        self._count = ""
        self.first = ""  # an input of the graph, whose first dimension is the samples

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

    def nodes_of(self, op: str, inputs: Sequence[str], name: str, count: int, **attributes: Any) -> list[str]:
        """Adds a node of several outputs. Returns their names."""
        outputs = [self.free(f"{name}.{number}") for number in range(count)]
        self.nodes.append(helper.make_node(op, list(inputs), outputs, self.free(name), **attributes))
        return outputs

    def shared(self, values: Any, name: str) -> str:
        """Adds numbers of float32 that others may have added already. Returns their name."""
        numbers = np.array(values, np.float32, order="C")
        key = (numbers.shape, numbers.tobytes())
        if key not in self._shared:
            self._shared[key] = self.free(name)
            self.initializers.append(numpy_helper.from_array(numbers, self._shared[key]))
        return self._shared[key]

    def place(self, number: int) -> str:
        """Adds a whole number that others may have added already. Returns its name."""
        if number not in self._shared:
            self._shared[number] = self.free("place")
            self.initializers.append(numpy_helper.from_array(np.array(number, np.int64), self._shared[number]))
        return self._shared[number]

    def scalar(self, number: float) -> str:
        """Adds a number. Returns its name."""
        return self.shared(number, "number")

    def write(self, item: Item, inputs: Sequence[Written]) -> Written:
        """Writes a layer of one output, of any type that has a writer, and its act."""
        return self.write_all(item, inputs)[0]

    def write_all(self, item: Item, inputs: Sequence[Written]) -> list[Written]:
        """Writes a layer of any type that has a writer, and its act. Returns its outputs."""
        if item.type not in self.writers:
            raise Refusal("unsupported type")
        made = self.writers[item.type](self, item, inputs)
        act = item.attributes.get("act")
        if isinstance(made, list):
            return made
        return [made] if not act else self.write_all(self.inner(item, act, {}, "act"), [made])

    def inner(self, item: Item, type: str, attributes: Attributes, suffix: str) -> Item:
        """Returns a layer that another one stands for, with the defaults of its type and its part of the parameters."""
        known = _host.host().describe("layer", type)["attributes"]
        defaults = {each["name"]: each["initial"] for each in known if each.get("initial") is not None}
        start = f"{suffix}."
        own = {name[len(start) :]: values for name, values in item.parameters.items() if name.startswith(start)}
        return Item(f"{item.name}.{suffix}", type, {**defaults, **attributes}, own)

    def ordered(self, value: Written, order: tuple[int, ...]) -> Written:
        """Returns a value that is not flat with its dimensions in an order."""
        value = self.many(value)
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

    def real(self, value: Written) -> Written:
        """Returns a value, of a constant one that is the same for all samples."""
        if value.numbers is None:
            return value
        name = self.shared(value.numbers[np.newaxis], value.name)
        return Written(name, plain(1 + len(value.sizes)), value.sizes)

    def many(self, value: Written) -> Written:
        """Returns a value, of a constant one that each sample has."""
        if value.numbers is None:
            return value
        self._count = self._count or self.node("Shape", [self.first], "samples", start=0, end=1)
        sizes = self.numbers(value.sizes, f"{value.name}.sizes", np.int64)
        shape = self.node("Concat", [self._count, sizes], f"{value.name}.shape", axis=0)
        single = self.real(value)
        return replace(single, name=self.node("Expand", [single.name, shape], value.name))

    def raised(self, value: Written, rank: int) -> Written:
        """Returns a value with further dimensions of size 1 after the samples."""
        more = rank - len(value.dims) - 1
        if more <= 0:
            return self.unflattened(value)
        value = self.plain(value)
        axes = self.numbers(list(range(1, more + 1)), f"{value.name}.axes", np.int64)
        name = self.node("Unsqueeze", [value.name, axes], f"{value.name}.raised")
        return replace(value, name=name, order=plain(rank), sizes=(*[1] * more, *value.sizes))

    def together(self, item: Item, inputs: Sequence[Written]) -> tuple[list[str], Written]:
        """Returns the names of values of an operation on elements, constants too, as they are broadcast to each other, and a
        value like the result."""
        ranks = [len(value.dims) + 1 for value in inputs]
        values = [value if value.numbers is not None else self.raised(value, max(ranks)) for value in inputs]
        real = [value for value in values if value.numbers is None]
        if not real:
            raise Refusal("its inputs are constant; one must depend on the samples")
        largest = max(real, key=lambda value: math.prod(value.sizes))
        result = replace(largest, sizes=item.sizes or largest.sizes, dtype="float32")
        return [self.operand(value, result.order) for value in values], result

    def operand(self, value: Written, order: tuple[int, ...]) -> str:
        """Returns the name of a value, or of a constant, with its dimensions in an order."""
        if value.numbers is None:
            return self.ordered(value, order).name
        rank = len(order)
        numbers = value.numbers.reshape((1,) * (rank - value.numbers.ndim) + value.numbers.shape)
        return self.numbers(numbers.transpose(order), value.name)

    def floats(self, value: Written) -> Written:
        """Returns a value of integers as numbers."""
        if value.numbers is not None or value.dtype == "float32":
            return value
        name = self.node("Cast", [value.name], f"{value.name}.float", to=onnx.TensorProto.FLOAT)
        if value.scale != 1:
            name = self.node("Mul", [name, self.scalar(value.scale)], f"{value.name}.scaled")
        if value.offset:
            name = self.node("Add", [name, self.scalar(value.offset)], f"{value.name}.shifted")
        return replace(value, name=name, dtype="float32", scale=1.0, offset=0.0)

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
        value = self.many(value)
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
