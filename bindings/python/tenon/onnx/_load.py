"""A graph of ONNX as a topology with its parameters. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tenon import data_type, error
from tenon import parameters as sets
from tenon._base import check as _check
from tenon._model.layer import Data, Layer
from tenon.onnx import (
    _control,
    _dense,
    _fold,
    _graph,
    _images,
    _logic,
    _ml,
    _names,
    _pointwise,
    _products,
    _quantized,
    _recurrent,
    _reductions,
    _refused,
    _rows,
    _select,
    _shapes,
)  # fmt: skip
from tenon.onnx._build import Build, Operator
from tenon.onnx._graph import MOVING, SAMPLES, Graph, Node, guarded
from tenon.onnx._values import Refusal, Value, channels_last, plain
from tenon.parameters import ParameterSet

_FIELDS = (_pointwise, _logic, _dense, _products, _images, _shapes, _select, _reductions, _recurrent, _quantized)
OPERATORS: dict[str, Operator] = {op: operator for field in _FIELDS for op, operator in field.OPERATORS.items()}
_DOMAINS: dict[str, Mapping[str, Operator]] = {"": OPERATORS, "ai.onnx.ml": _ml.OPERATORS}
_OF_IMAGES = {*_images.OPERATORS, "BatchNormalization", "InstanceNormalization", "GroupNormalization", "LRN"}
_KEEPING = {*_pointwise.OPERATORS, *_quantized.OPERATORS, "Concat", "Pad", "Where"}
# Operators that understand values whose samples are not the first dimension.
_OF_ANY_PLACE = {
    *_pointwise.OPERATORS, *_logic.OPERATORS, *_reductions.OPERATORS, *_recurrent.OPERATORS, *_quantized.OPERATORS, "Concat",
    "Einsum", "Expand", "Flatten", "Gather", "GatherND", "LayerNormalization", "LogSoftmax", "MatMul", "Reshape",
    "ReverseSequence", "Slice", "Softmax", "Split",
    "Squeeze", "Transpose", "Unsqueeze",
}  # fmt: skip
_KINDS = {  # of results that are not of the kind of the first value that is read
    **dict.fromkeys(_logic.TRUTHS, "bool"),
    **dict.fromkeys(("ArgMax", "ArgMin", "QuantizeLinear", "LabelEncoder", "NonZero"), "int"),
    **dict.fromkeys(("DequantizeLinear", "OneHot", "Scaler", "Normalizer", "Imputer", "LinearRegressor",
                     "LinearClassifier", "OneHotEncoder", "SVMClassifier", "SVMRegressor"), "float"),
    "Cast": "", "Where": "",
}  # fmt: skip
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool")
_FLOATS = ("float16", "float32", "float64", "bfloat16")
_MOST_SHOWN = 40


def load(
    source: str | os.PathLike[str] | bytes | Any,
    channels_first: bool = False,
    *,
    outputs: str | Sequence[str] | None = None,
    sizes: Mapping[str, Any] | None = None,
) -> ParameterSet:
    """Reads a model of ONNX: a file, the bytes of one, or an onnx.ModelProto. Returns its parameters; their `outputs` are
    the layers that became of the outputs of the graph.

    The first dimension of inputs and outputs is that of the samples; where the file has them as another one, which is the
    only dimension of an input that may differ, they are moved to the front. Images, which ONNX has as [samples, channels,
    space...], are fed and returned as [samples, space..., channels], unless channels_first. Float16 and float64 become
    float32. outputs: the names of the values of the graph that are wanted in place of its outputs; nodes and inputs that
    they do not need are not read. sizes: of dimensions that the file leaves open, by their name, {"sequence": 20}, or of
    a sample by the name of the input, {"ids": [20]}. UnsupportedError lists every node that is not supported;
    BadDataError for a file that is not of ONNX.
    """
    names = None if outputs is None else _check.texts([outputs] if isinstance(outputs, str) else outputs, "outputs", "load")
    graph = _graph.load(source, names, sizes)
    with guarded(graph.path, "the model"):
        return _loaded(graph, channels_first)


def _loaded(graph: Graph, channels_first: bool) -> ParameterSet:
    build = Build(graph)
    budget = _fold.Budget(sum(each.size for each in graph.constants.values()))
    problems = _add_inputs(build, channels_first)
    pending = deque(graph.nodes)
    while pending:
        node = pending.popleft()
        with guarded(graph.path, f'node "{node.label}" ({node.op})'):
            reason = _expanded(build, node, pending) if node.op in _control.OPERATORS else _add(build, node, budget)
        if reason:
            problems.append(f'node "{node.label}" ({node.op}): {reason}')
    outputs = [] if problems else _outputs(build, channels_first, problems)
    if problems:
        _refuse(graph, problems)
    made = sets.create(outputs)
    for name in made:
        if name in build.parameters:
            made[name] = build.parameters[name]
    made.core.set_known(_names.known(graph))
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
    for name, _, sizes, dtype, text, place in build.graph.inputs:
        if dtype not in _FLOATS + _INTEGERS:
            problems.append(f'input "{name}": has the type {dtype}; floats, integers and truth values are understood')
        elif sizes is None:
            problems.append(
                f'input "{name}": the sizes of a sample must be known, and its shape is {text}; the first dimension is '
                "of the samples, load(..., sizes={NAME: SIZE}) gives others"
            )
        else:
            rank = 1 + len(sizes)
            order = plain(rank) if channels_first or place or not _is_image(build.graph, name, rank) else channels_last(rank)
            type = data_type.dense_array([sizes[axis - 1] for axis in order[1:]], dtype if dtype in _INTEGERS else "float32")
            kind = "float" if dtype in _FLOATS else "bool" if dtype == "bool" else "int"
            build.values[name] = Value(Data(build.free(name), type), order, samples=place, kind=kind)
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


def _expanded(build: Build, node: Node, pending: deque[Node]) -> str:
    """Puts the nodes that control flow becomes before the others. Returns why it cannot become any."""
    if any(name and name not in build.values and name not in build.constants for name in node.inputs):
        return ""
    try:
        pending.extendleft(reversed(_control.expand(build, node)))
    except Refusal as refusal:
        _stand_in(build, node)
        return str(refusal)
    return ""


def _add(build: Build, node: Node, budget: _fold.Budget) -> str:
    """Makes what becomes of a node. Returns why it cannot, "" for nodes after one that could not."""
    operators = _DOMAINS.get(node.domain)
    if operators is None:
        return _refused.reason(node.op, node.domain)
    given = [build.constants.get(name) for name in node.inputs]
    absent = [name for name, value in zip(node.inputs, given, strict=True) if name and value is None]
    try:
        if node.op == "Constant" or (not absent and any(value is not None for value in given)):
            build.constants.update(zip(node.outputs, _fold.fold(node, given, budget, build.spread), strict=True))
            return ""
        if node.op == "Shape" and absent[0] in build.values:
            build.constants[node.outputs[0]] = _shape(node, build.values[absent[0]])
            return ""
        if node.op == "Size" and absent[0] in build.values:
            raise Refusal("counts the elements of all samples")
        follows = any(name not in build.values for name in absent)  # a node that could not become a layer
        if node.op not in operators and not (follows and node.op in MOVING):
            return _refused.reason(node.op, node.domain)
        if follows:
            return ""
        _make(build, node, operators[node.op])
    except Refusal as refusal:
        _stand_in(build, node)
        return str(refusal)
    return ""


def _make(build: Build, node: Node, operator: Operator) -> None:
    if node.outputs[0] in build.aliases:
        build.values[node.outputs[0]] = build.values[build.aliases[node.outputs[0]]]
        return
    inputs = [build.values[name] for name in node.inputs if name in build.values]
    merged = any(value.fused for value in inputs)
    for value in inputs:
        if value.samples > value.merged[0] and node.op not in _OF_ANY_PLACE:
            build.first(node, value)
    apart = merged and node.op not in _rows.OF_ROWS
    results = _rows.apart(build, node, operator) if apart else operator(build, node)
    unread = [name for name in node.attributes if name not in node.read and not node.is_default(name)]
    if unread:
        raise Refusal(f"attributes that are not understood: {', '.join(sorted(unread))}")
    usual = inputs[0].kind if inputs else "float"
    for name, value in zip(node.outputs, results if isinstance(results, list) else [results], strict=False):
        kind = _KINDS.get(node.op, usual if value.kind == "float" else value.kind)
        build.values[name] = replace(value, kind=kind) if kind else value


def _stand_in(build: Build, node: Node) -> None:
    for name in node.outputs:
        if name in build.graph.inferred and name not in build.values:
            build.values[name] = build.stand_in(build.graph.inferred[name])


def _shape(node: Node, value: Value) -> Any:
    dims = list(value.dims)
    start, end = value.samples - value.merged[0], value.samples + value.merged[1]
    dims[start:end] = [SAMPLES * math.prod(value.fused)]
    return np.array(dims, np.int64)[slice(node.get("start", 0), node.get("end"))]


def _outputs(build: Build, channels_first: bool, problems: list[str]) -> list[Layer]:
    layers = []
    for name in build.graph.outputs:
        if name not in build.values:
            problems.append(f'output "{name}": does not depend on the inputs')
            continue
        value = build.values[name]
        rest = Node("output", name, name, [name], [], {}, 0)
        if value.fused:
            problems.append(f'output "{name}": is {value.text}; the samples must be a dimension of their own')
            continue
        keeps = not channels_first and not value.flat and not value.samples and value.order == channels_last(value.rank)
        layers.append(value.layer if keeps else build.plain(rest, value))
    return layers
