"""A graph of ONNX as a topology with its parameters. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tenon import data_type, error
from tenon import parameters as sets
from tenon._model.layer import Data, Layer
from tenon.onnx import _dense, _fold, _graph, _images, _pointwise, _shapes
from tenon.onnx._build import Build, Operator
from tenon.onnx._graph import MOVING, SAMPLES, Graph, Node, guarded
from tenon.onnx._values import Refusal, Value, channels_last, plain
from tenon.parameters import ParameterSet

OPERATORS: dict[str, Operator] = {
    **_pointwise.OPERATORS, **_dense.OPERATORS, **_images.OPERATORS, **_shapes.OPERATORS,
}  # fmt: skip
_DOMAINS = ("", "ai.onnx")
_OF_IMAGES = {*_images.OPERATORS, "BatchNormalization", "InstanceNormalization", "LRN"}
_KEEPING = {*_pointwise.OPERATORS, "Concat", "Pad"}
_MOST_SHOWN = 40


def load(source: str | os.PathLike[str] | bytes | Any, channels_first: bool = False) -> ParameterSet:
    """Reads a model of ONNX: a file, the bytes of one, or an onnx.ModelProto. Returns its parameters; their `outputs` are
    the layers that became of the outputs of the graph.

    The first dimension of inputs and outputs is that of the samples. Images, which ONNX has as [samples, channels,
    space...], are fed and returned as [samples, space..., channels], unless channels_first. Float16 and float64 become
    float32. UnsupportedError lists every node that is not supported; BadDataError for a file that is not of ONNX.
    """
    graph = _graph.load(source)
    with guarded(graph.path, "the model"):
        return _loaded(graph, channels_first)


def _loaded(graph: Graph, channels_first: bool) -> ParameterSet:
    build = Build(graph)
    budget = _fold.Budget(sum(each.size for each in graph.constants.values()))
    problems = _add_inputs(build, channels_first)
    for node in graph.nodes:
        with guarded(graph.path, f'node "{node.label}" ({node.op})'):
            reason = _add(build, node, budget)
        if reason:
            problems.append(f'node "{node.label}" ({node.op}): {reason}')
    outputs = [] if problems else _outputs(build, channels_first, problems)
    if problems:
        _refuse(graph, problems)
    made = sets.create(outputs)
    for name in made:
        if name in build.parameters:
            made[name] = build.parameters[name]
    return made


def _refuse(graph: Graph, problems: list[str]) -> None:
    more = len(problems) - _MOST_SHOWN
    shown = problems[:_MOST_SHOWN] + ([f"and {more} more"] if more > 0 else [])
    raise error.UnsupportedError(
        f"{graph.path}: unsupported nodes, inputs or outputs: {len(problems)}; nothing was loaded:\n  "
        + "\n  ".join(shown),
        graph.path,
        "onnx",
    )


def _add_inputs(build: Build, channels_first: bool) -> list[str]:
    problems = []
    for name, sizes, dtype in build.graph.inputs:
        if sizes is None:
            problems.append(
                f'input "{name}": the sizes of a sample must be known; the first dimension is of the samples'
            )
        elif dtype not in ("float16", "float32", "float64", "bfloat16"):
            problems.append(f'input "{name}": has the type {dtype}; floats are understood')
        else:
            rank = 1 + len(sizes)
            order = plain(rank) if channels_first or not _is_image(build.graph, name, rank) else channels_last(rank)
            shape = [sizes[axis - 1] for axis in order[1:]]
            build.values[name] = Value(Data(build.free(name), data_type.dense_array(shape)), order)
    return problems


def _is_image(graph: Graph, name: str, rank: int) -> bool:
    """Returns whether an input has channels that are moved to the end: operators of images read it as it is."""
    reached = {name}
    for node in graph.nodes:
        if not reached.intersection(node.inputs):
            continue
        if node.op in _OF_IMAGES:
            return rank > 2
        if node.op in _KEEPING:
            reached.update(node.outputs)
    return False


def _add(build: Build, node: Node, budget: _fold.Budget) -> str:
    """Makes what becomes of a node. Returns why it cannot, "" for nodes after one that could not."""
    if node.domain not in _DOMAINS:
        return f'unknown operator of the domain "{node.domain}"'
    given = [build.constants.get(name) for name in node.inputs]
    absent = [name for name, value in zip(node.inputs, given, strict=True) if name and value is None]
    try:
        if node.op == "Constant" or (not absent and any(value is not None for value in given)):
            build.constants.update(zip(node.outputs, _fold.fold(node, given, budget), strict=True))
            return ""
        if node.op == "Shape" and absent[0] in build.values:
            build.constants[node.outputs[0]] = _shape(node, build.values[absent[0]])
            return ""
        follows = any(name not in build.values for name in absent)  # a node that could not become a layer
        if node.op not in OPERATORS and not (follows and node.op in MOVING):
            return "unknown operator"
        if follows:
            return ""
        _make(build, node)
    except Refusal as refusal:
        _stand_in(build, node)
        return str(refusal)
    return ""


def _make(build: Build, node: Node) -> None:
    if node.outputs[0] in build.aliases:
        build.values[node.outputs[0]] = build.values[build.aliases[node.outputs[0]]]
        return
    made = OPERATORS[node.op](build, node)
    unread = [name for name in node.attributes if name not in node.read and not node.is_default(name)]
    if unread:
        raise Refusal(f"attributes that are not understood: {', '.join(sorted(unread))}")
    build.values.update(zip(node.outputs, made if isinstance(made, list) else [made], strict=False))


def _stand_in(build: Build, node: Node) -> None:
    for name in node.outputs:
        if name in build.graph.inferred:
            build.values[name] = build.stand_in(build.graph.inferred[name])


def _shape(node: Node, value: Value) -> Any:
    dims = np.array([SAMPLES, *value.dims], np.int64)
    return dims[slice(node.get("start", 0), node.get("end"))]


def _outputs(build: Build, channels_first: bool, problems: list[str]) -> list[Layer]:
    made = []
    for name in build.graph.outputs:
        if name not in build.values:
            problems.append(f'output "{name}": does not depend on the inputs')
            continue
        value = build.values[name]
        rest = Node("output", name, name, [name], [], {}, 0)
        keeps = not channels_first and not value.flat and value.order == channels_last(value.rank)
        made.append(value.layer if keeps else build.plain(rest, value))
    return made
