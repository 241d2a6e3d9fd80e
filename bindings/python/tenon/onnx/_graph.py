"""Reading a model of ONNX: its nodes in order, and what of them is constant. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import onnx
from onnx import numpy_helper

from tenon import error
from tenon.onnx import _file
from tenon.onnx._values import Array, Refusal

# Stands for the number of samples in what operators compute of shapes. These may move it, not calculate with it.
SAMPLES = -(2**40) - 1
MOVING = {"Cast", "Concat", "Flatten", "Gather", "Identity", "Reshape", "Shape", "Slice", "Split", "Squeeze", "Unsqueeze"}
_OF_LISTS = {*MOVING, "Add", "Constant", "Div", "Max", "Min", "Mul", "Neg", "Range", "Size", "Sub", "Where"}
_LONGEST_SHAPE, _LONGEST_LIST = 64, 2**16
_OLDEST = 7  # version of the operators before which they had other rules of broadcasting


@dataclass
class Node:
    """A node of the graph. title: the name of its layer, unless that is taken."""

    op: str
    label: str
    title: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    version: int
    domain: str = ""
    proto: Any = None
    read: set[str] = field(default_factory=set)

    def get(self, name: str, default: Any = None) -> Any:
        """Returns an attribute. What no one reads is refused, since it may change what the node computes."""
        self.read.add(name)
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def flag(self, name: str, default: int) -> bool:
        """Returns an attribute that is 0 or 1. Runtimes differ in what they make of another number."""
        value = self.get(name, default)
        if value not in (0, 1):
            raise Refusal(f"{name} is {value!r}; 0 or 1 is understood")
        return bool(value)

    def is_default(self, name: str) -> bool:
        """Returns whether an attribute has the value that the operator takes where it is absent."""
        try:
            schema = onnx.defs.get_schema(self.op, self.version or onnx.defs.onnx_opset_version(), self.domain)
            default = schema.attributes[name].default_value
        except (onnx.defs.SchemaError, KeyError):
            return False
        return bool(default.name) and onnx.helper.get_attribute_value(default) == self.attributes[name]

    def require(self, name: str, expected: Any, default: Any, neutral: bool = False) -> None:
        """Refuses another value of an attribute than the one that is understood. neutral: no value changes anything for
        the sizes and inputs of this node."""
        value = self.get(name, default)
        if value != expected and not neutral:
            raise Refusal(f"{name} is {value!r}; only {expected!r} is understood")

    def has(self, number: int) -> bool:
        """Returns whether input `number` is there."""
        return number < len(self.inputs) and self.inputs[number] != ""


class Input(NamedTuple):
    """An input of the graph. samples: their number where it is fixed; sizes: of a sample, None where they are open; place:
    which dimension the samples are."""

    name: str
    samples: int | None
    sizes: tuple[int, ...] | None
    dtype: str
    text: str
    place: int = 0


@dataclass
class Graph:
    """A model as it is read.

    inputs and outputs are those that are wanted, nodes those that they need, in order. versions: of the operators, by
    domain; constants: initializers by name; learned: their names; batch: the number of samples that the file states, None
    for any.
    """

    path: str
    inputs: list[Input]
    outputs: list[str]
    nodes: list[Node]
    constants: dict[str, Array]
    learned: set[str]
    batch: int | None
    versions: Mapping[str, int]
    model: Any

    @cached_property
    def inferred(self) -> dict[str, tuple[int, ...]]:
        """The sizes of values as far as known, the samples included as 0, with which nodes after a refused one are
        checked."""
        try:
            graph = onnx.shape_inference.infer_shapes(self.model, data_prop=_is_short(self)).graph
        except Exception:  # noqa: BLE001 (such as of a model that is too large; only messages become fewer)
            return {}
        found = {}
        for value in [*graph.value_info, *graph.output]:
            dims = [each.dim_value for each in value.type.tensor_type.shape.dim]
            if dims and all(size > 0 for size in dims[1:]):
                found[value.name] = tuple(dims)
        return found


@contextmanager
def guarded(path: str, what: str) -> Iterator[None]:
    """Turns what a damaged part of a file raises into a BadDataError that names the part."""
    try:
        yield
    except (error.Error, Refusal):
        raise
    except Exception as failure:
        message = f"{path}: {what} is damaged: {type(failure).__name__}: {failure}"
        raise error.BadDataError(message, path, what) from failure


def load(source: Any, outputs: Sequence[str] | None = None, sizes: Mapping[str, Any] | None = None) -> Graph:
    """Reads a file, the bytes of one, or a model of the package onnx. outputs: values of the graph that are wanted in place
    of its outputs; sizes: of open dimensions by name, or of a sample by the name of an input."""
    model, path = _file.read(source)
    with guarded(path, "the model"):
        return _read(model, path, outputs, sizes or {})


def _read(model: Any, path: str, outputs: Sequence[str] | None, sizes: Mapping[str, Any]) -> Graph:
    versions = {"" if each.domain == "ai.onnx" else each.domain: each.version for each in model.opset_import}
    if 0 < versions.get("", 0) < _OLDEST:
        raise error.UnsupportedError(
            f"{path}: the operators are of version {versions['']}; those from {_OLDEST} on are understood. "
            "onnx.version_converter converts models",
            path,
            "opset_import",
        )
    graph = model.graph
    constants = constants_of(graph, path)
    inputs = [_input(each, path, sizes) for each in graph.input if each.name not in constants]
    _require_sizes(path, sizes, graph.input)
    nodes = nodes_of(graph.node, set(constants), versions, path)
    _require_one_maker(path, [*constants, *(each.name for each in inputs), *(name for node in nodes for name in node.outputs)])
    wanted = _outputs(path, graph, outputs, nodes)
    needed = needs(nodes, wanted)
    inputs = [each for each in inputs if each.name in needed]
    first = {each.samples for each in inputs}
    return Graph(
        path,
        inputs,
        wanted,
        [node for node in nodes if needed.intersection(node.outputs) or not any(node.outputs)],
        constants,
        set(constants),
        next(iter(first)) if len(first) == 1 else None,
        versions,
        model,
    )


def _outputs(path: str, graph: Any, names: Sequence[str] | None, nodes: Sequence[Node]) -> list[str]:
    declared = [each.name for each in graph.output]
    if names is None:
        return declared
    values = {name for node in nodes for name in node.outputs if name}
    for name in names:
        if name not in values and name not in declared:
            listed = ", ".join(declared)
            message = f'{path}: there is no value "{name}"; the outputs are {listed}{error.suggestion(name, values)}'
            raise error.NotFoundError(message, path, name)
    return list(names)


def needs(nodes: Sequence[Node], wanted: Iterable[str]) -> set[str]:
    """Returns the values that wanted ones depend on, themselves included. Others may be of any kind: they change nothing."""
    needed = set(wanted)
    for node in reversed(nodes):
        if needed.intersection(node.outputs) or not any(node.outputs):  # without any it is damaged
            needed.update(node.inputs)
            needed.update(_outer(node.proto))
    return needed


def _outer(proto: Any) -> Iterator[str]:
    """Returns the names that graphs inside of a node read, those of their own included."""
    for graph in (graph for each in proto.attribute for graph in (each.g, *each.graphs)):
        for node in graph.node:
            yield from node.input
            yield from _outer(node)
        yield from (each.name for each in graph.output)


def _require_one_maker(path: str, names: Sequence[str]) -> None:
    for name, count in Counter(name for name in names if name).items():
        if count > 1:
            raise error.BadDataError(f'{path}: {count} inputs, constants or nodes make the value "{name}"', path, name)


def constants_of(graph: Any, path: str) -> dict[str, Array]:
    """Returns the initializers of a graph by name."""
    return {each.name: _constant(each, path) for each in graph.initializer}


def _constant(tensor: Any, path: str) -> Array:
    with guarded(path, f'tensor "{tensor.name}"'):
        if min(tensor.dims, default=0) < 0:
            raise ValueError(f"its sizes are {list(tensor.dims)}")
        return numpy_helper.to_array(tensor)


def _input(value: Any, path: str, sizes: Mapping[str, Any]) -> Input:
    tensor = value.type.tensor_type
    dims = [each.dim_value if each.HasField("dim_value") else int(sizes.get(each.dim_param, 0)) for each in tensor.shape.dim]
    if value.name in sizes:
        dims[1:] = [int(each) for each in sizes[value.name]]
    free = [place for place, size in enumerate(dims) if size <= 0]
    place = free[0] if len(free) == 1 and free[0] > 0 else 0  # the only one that may differ, as of [steps, samples, features]
    rest = dims[:place] + dims[place + 1 :]
    fixed = len(dims) > 0 and all(size > 0 for size in rest)
    with guarded(path, f'input "{value.name}"'):
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type) if tensor.elem_type else "none"
    names = [str(size) if size else each.dim_param or "?" for size, each in zip(dims, tensor.shape.dim, strict=False)]
    return Input(value.name, (dims[place] or None) if dims else None, tuple(rest) if fixed else None, str(dtype),
                 f"[{', '.join(names)}]", place)  # fmt: skip


def _require_sizes(path: str, sizes: Mapping[str, Any], inputs: Sequence[Any]) -> None:
    dims = {each.dim_param for value in inputs for each in value.type.tensor_type.shape.dim if each.dim_param}
    for name in sizes:
        if name not in dims and name not in {each.name for each in inputs}:
            message = f'{path}: no input is called "{name}", and no dimension of one; the open ones are {sorted(dims)}'
            raise error.NotFoundError(message, path, name)


def _is_short(graph: Graph) -> bool:
    """Returns whether no list of integers that the graph makes is long: the package onnx computes them without limits."""
    lengths = {name: each.size for name, each in graph.constants.items() if each.dtype.kind in "iu" and each.ndim < 2}
    for node in graph.nodes:
        given = [lengths.get(name, _LONGEST_SHAPE) for name in node.inputs]
        if node.op == "Constant":
            given = [max((len(each.SerializeToString()) for each in node.proto.attribute), default=0)]
        made = sum(given) if node.op == "Concat" else max(given, default=0) if node.op in _OF_LISTS else _LONGEST_SHAPE
        lengths.update(dict.fromkeys(node.outputs, made))
    return max(lengths.values(), default=0) <= _LONGEST_LIST


def nodes_of(
    protos: Sequence[Any], initializers: set[str], versions: Mapping[str, int], path: str
) -> list[Node]:
    nodes, counts = [], dict[str, int]()
    for proto in protos:
        op = proto.op_type
        counts[op] = counts.get(op, -1) + 1
        label = proto.name or f"{op}_{counts[op]}"
        with guarded(path, f'node "{label}" ({op})'):
            attributes = {each.name: onnx.helper.get_attribute_value(each) for each in proto.attribute}
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        names = (list(proto.input), list(proto.output))
        title, version = _title(proto, label, initializers), versions.get(domain, 0)
        nodes.append(Node(op, label, title, *names, attributes, version, domain, proto))
    return nodes


def _title(proto: Any, label: str, initializers: set[str]) -> str:
    """Returns the name of the module that the weight of a node belongs to, or of the node, as PyTorch's state has it."""
    for name in proto.input:
        if name in initializers and name.endswith(".weight") and len(name) > len(".weight"):
            return str(name[: -len(".weight")])
    parts = label.strip("/").split("/")
    parts = [part for part, after in zip(parts, [*parts[1:], ""], strict=True) if not after.startswith(part + ".")]
    if len(parts) > 1 and parts[-1] == proto.op_type and initializers.intersection(proto.input):
        parts.pop()
    return ".".join(parts)
