"""Reading a model of ONNX: its nodes in order, and what of them is constant. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from tenon import error
from tenon.onnx._values import Array, Refusal

# Stands for the number of samples in what operators compute of shapes. These may move it, not calculate with it.
SAMPLES = -(2**40) - 1
MOVING = {"Cast", "Concat", "Flatten", "Gather", "Identity", "Reshape", "Shape", "Slice", "Squeeze", "Unsqueeze"}
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

    def require(self, name: str, expected: Any, default: Any) -> None:
        """Refuses another value of an attribute than the one that is understood."""
        value = self.get(name, default)
        if value != expected:
            raise Refusal(f"{name} is {value!r}; only {expected!r} is understood")

    def has(self, number: int) -> bool:
        """Returns whether input `number` is there."""
        return number < len(self.inputs) and self.inputs[number] != ""


@dataclass
class Graph:
    """A model as it is read.

    inputs: (name, sizes of a sample, NumPy type); constants: initializers by name; learned: their names; inferred: sizes of
    values, as far as known; batch: the number of samples that the file states, None for any.
    """

    path: str
    inputs: list[tuple[str, tuple[int, ...] | None, str]]
    outputs: list[str]
    nodes: list[Node]
    constants: dict[str, Array]
    learned: set[str]
    inferred: dict[str, tuple[int, ...]]
    batch: int | None


def load(source: Any) -> Graph:
    """Reads a file, the bytes of one, or a model of the package onnx."""
    model, path = _model(source)
    if model.functions:
        from onnx import inliner

        model = inliner.inline_local_functions(model)
    versions = {each.domain: each.version for each in model.opset_import}
    version = versions.get("", versions.get("ai.onnx", 0))
    if 0 < version < _OLDEST:
        raise error.UnsupportedError(
            f"{path}: the operators are of version {version}; those from {_OLDEST} on are understood. "
            "onnx.version_converter converts models",
            path,
            "opset_import",
        )
    graph = model.graph
    constants = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    inputs = [_input(each) for each in graph.input if each.name not in constants]
    first = {each[1] for each in inputs}
    return Graph(
        path,
        [(name, sizes, dtype) for name, _, sizes, dtype in inputs],
        [each.name for each in graph.output],
        _nodes(graph.node, set(constants), version),
        constants,
        set(constants),
        _inferred(model),
        next(iter(first)) if len(first) == 1 else None,
    )


def _model(source: Any) -> tuple[Any, str]:
    if isinstance(source, onnx.ModelProto):
        return source, "the model"
    if isinstance(source, bytes):
        model, path = _parsed(lambda: onnx.load_from_string(source), "the model"), "the model"
    elif isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        model = _parsed(lambda: onnx.load(path), path)
    else:
        raise error.InvalidError(f"a model is a path, bytes or an onnx.ModelProto, not {source!r}", "onnx", "source")
    if not model.graph.node and not model.graph.output:
        raise error.BadDataError(f"{path}: not a model of ONNX: the graph is empty", path, path)
    return model, path


def _parsed(read: Any, path: str) -> Any:
    try:
        return read()
    except FileNotFoundError as failure:
        raise error.NotFoundError(f"{path}: file not found: {failure.filename}", path, path) from None
    except OSError as failure:
        raise error.FileError(f"{path}: {failure}", path, path) from failure
    except Exception as failure:  # of protobuf, and of data beside the file
        raise error.BadDataError(f"{path}: not a model of ONNX: {failure}", path, path) from failure


def _input(value: Any) -> tuple[str, int | None, tuple[int, ...] | None, str]:
    """Returns name, number of samples if it is fixed, sizes of a sample if they are, and type."""
    tensor = value.type.tensor_type
    dims = [each.dim_value if each.HasField("dim_value") else 0 for each in tensor.shape.dim]
    known = len(dims) > 0 and all(size > 0 for size in dims[1:])
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type) if tensor.elem_type else "none"
    return value.name, (dims[0] or None) if dims else None, tuple(dims[1:]) if known else None, str(dtype)


def _inferred(model: Any) -> dict[str, tuple[int, ...]]:
    """Returns the sizes of values, the samples included as 0, with which nodes after a refused one are checked."""
    try:
        graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    except Exception:  # such as a model that is too large; only messages become fewer
        return {}
    found = {}
    for value in [*graph.value_info, *graph.output]:
        dims = [each.dim_value for each in value.type.tensor_type.shape.dim]
        if dims and all(size > 0 for size in dims[1:]):
            found[value.name] = tuple(dims)
    return found


def _nodes(protos: Sequence[Any], initializers: set[str], version: int) -> list[Node]:
    nodes, counts = [], dict[str, int]()
    for proto in protos:
        op = proto.op_type
        counts[op] = counts.get(op, -1) + 1
        label = proto.name or f"{op}_{counts[op]}"
        attributes = {each.name: onnx.helper.get_attribute_value(each) for each in proto.attribute}
        title = _title(proto, label, initializers)
        nodes.append(
            Node(op, label, title, list(proto.input), list(proto.output), attributes, version, proto.domain, proto)
        )
    return nodes


def _title(proto: Any, label: str, initializers: set[str]) -> str:
    """Returns the name of the module that the weight of a node belongs to, or of the node, as PyTorch's state has it."""
    for name in proto.input:
        if name in initializers and name.endswith(".weight") and len(name) > len(".weight"):
            return str(name[: -len(".weight")])
    parts = label.strip("/").split("/")
    parts = [part for part, after in zip(parts, [*parts[1:], ""]) if not after.startswith(part + ".")]
    if len(parts) > 1 and parts[-1] == proto.op_type and initializers.intersection(proto.input):
        parts.pop()
    return ".".join(parts)


def fold(node: Node, constants: list[Array | None]) -> list[Array]:
    """Computes a node whose inputs are constants."""
    given = {name: value for name, value in zip(node.inputs, constants) if name and value is not None}
    if any(each.type in (each.GRAPH, each.GRAPHS) for each in node.proto.attribute):
        raise Refusal("graphs inside of operators are not understood")
    marked = any(value.dtype == np.int64 and (value == SAMPLES).any() for value in given.values())
    if marked and node.op not in MOVING:
        raise Refusal("calculates with the number of samples")
    inputs = [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in given]
    outputs = [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in node.outputs if name]
    graph = onnx.helper.make_graph([node.proto], "constant", inputs, outputs)
    opsets = [onnx.helper.make_opsetid("", node.version)]
    try:
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=opsets)).run(None, given)
    except Exception as failure:
        raise Refusal(f"its inputs are constant, but it cannot be computed: {failure}") from failure
    made = iter(results)
    return [np.asarray(next(made)) if name else np.zeros(0) for name in node.outputs]
