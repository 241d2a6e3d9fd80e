"""Control flow that folds away: branches whose condition is constant, and loops of a number of steps that is known, which
become the nodes of their steps. SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from tenon.onnx._build import Build
from tenon.onnx._graph import Node, constants_of, nodes_of
from tenon.onnx._values import Refusal

OPERATORS = ("If", "Loop", "Scan")
_MOST_NODES = 5_000  # that all branches and steps together become


def expand(build: Build, node: Node) -> list[Node]:
    """Returns the nodes that take the place of one of control flow, in order."""
    nodes = {"If": _branch, "Loop": _step, "Scan": _scan}[node.op](build, node)
    build.expanded += len(nodes)
    if build.expanded > _MOST_NODES:
        raise Refusal(f"its branches and steps are more than {_MOST_NODES} nodes")
    build.graph.nodes.extend(nodes)
    build.uses.update(name for each in nodes for name in each.inputs)
    return nodes


def _branch(build: Build, node: Node) -> list[Node]:
    taken = _truth(build, node.inputs[0], "the condition, input 0,")
    graph = node.get("then_branch" if taken else "else_branch")
    nodes, names = _body(build, node, graph, {})
    return [*nodes, *_renamed(node, [names.get(each.name, each.name) for each in graph.output], node.outputs)]


def _truth(build: Build, name: str, what: str) -> bool:
    if name not in build.constants:
        raise Refusal(f"{what} is computed of values; only a constant one is understood")
    return bool(np.asarray(build.constants[name]).reshape(()))


def _body(build: Build, node: Node, graph: Any, inputs: Mapping[str, str]) -> tuple[list[Node], dict[str, str]]:
    """Returns the nodes of a graph inside of a node with names of their own, and these names by those of the graph."""
    own = [each.name for each in graph.initializer] + [name for each in graph.node for name in each.output if name]
    number = build.bodies = build.bodies + 1
    names = {**{name: f"{node.label}.{number}.{name}" for name in own}, **inputs}
    build.constants.update((names[name], numbers) for name, numbers in constants_of(graph, build.graph.path).items())
    protos = [_with_names(each, names) for each in graph.node]
    return nodes_of(protos, build.graph.learned, build.graph.versions, build.graph.path), names


def _with_names(proto: Any, names: Mapping[str, str]) -> Any:
    renamed = onnx.NodeProto()
    renamed.CopyFrom(proto)
    renamed.input[:] = [names.get(name, name) for name in proto.input]
    renamed.output[:] = [names.get(name, name) for name in proto.output]
    inner = [each for each in renamed.attribute if each.type in (each.GRAPH, each.GRAPHS)]
    for graph in (graph for each in inner for graph in (each.graphs or [each.g])):
        kept = {each.name for each in (*graph.input, *graph.initializer)} | {
            name for each in graph.node for name in each.output
        }
        outer = {name: other for name, other in names.items() if name not in kept}
        nodes = [_with_names(each, outer) for each in graph.node]
        del graph.node[:]
        graph.node.extend(nodes)
        for each in graph.output:
            each.name = outer.get(each.name, each.name)
    return renamed


def node_of(like: Node, op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> Node:
    """Returns a node that stands for a part of another one."""
    proto = onnx.helper.make_node(op, list(inputs), list(outputs), like.label, **attributes)
    return Node(op, like.label, like.title, list(inputs), list(outputs), attributes, like.version, "", proto)


def _renamed(node: Node, values: Sequence[str], outputs: Sequence[str]) -> list[Node]:
    return [node_of(node, "Identity", [value], [name]) for value, name in zip(values, outputs, strict=False) if name]


def _step(build: Build, node: Node) -> list[Node]:
    """Returns the nodes of the next step of a loop, and a loop for the others; after the last step its outputs."""
    graph = node.get("body")
    carried, step = len(graph.input) - 2, int(node.attributes.get("step", 0))
    rows: list[list[str]] = node.attributes.get("rows", [[] for _ in graph.output[1 + carried :]])
    limit = build.constant(node, 0, "number of steps") if node.has(0) else None
    goes_on = not node.has(1) or _truth(build, node.inputs[1], "whether it goes on, input 1,")
    if not goes_on or (limit is not None and step >= int(np.asarray(limit).reshape(()))):
        return [*_renamed(node, node.inputs[2:], node.outputs[:carried]), *_stacked(build, node, rows, node.outputs[carried:])]
    number = f"{node.label}.step{step}.{build.bodies}"
    build.constants[number], build.constants[f"{number}.on"] = np.asarray(step, np.int64), np.asarray(True)
    given = [number, f"{number}.on", *node.inputs[2:]]
    nodes, names = _body(build, node, graph, dict(zip((each.name for each in graph.input), given, strict=True)))
    results = [names.get(each.name, each.name) for each in graph.output]
    following = Node("Loop", node.label, node.title, [node.inputs[0], *results[: 1 + carried]], node.outputs, {
        "body": graph, "step": step + 1,
        "rows": [[*before, row] for before, row in zip(rows, results[1 + carried :], strict=True)],
    }, node.version, "", node.proto)  # fmt: skip
    return [*nodes, following]


def _stacked(build: Build, node: Node, rows: Sequence[Sequence[str]], outputs: Sequence[str], axis: int = 0) -> list[Node]:
    """Returns the nodes that make of the values of all steps one output each, with the steps along an axis."""
    nodes, name = [], f"{node.label}.axis{build.bodies}"
    build.constants[name] = np.array([axis], np.int64)
    inline = {"axes": [axis]} if node.version < 13 else {}
    for values, output in zip(rows, outputs, strict=True):
        if not output:
            continue
        if not values:
            raise Refusal(f'its output "{output}" has no steps')
        lifted = [f"{value}.{output}.row{number}" for number, value in enumerate(values)]
        nodes += [node_of(node, "Unsqueeze", [value] if inline else [value, name], [row], **inline)
                  for value, row in zip(values, lifted, strict=True)]  # fmt: skip
        nodes.append(node_of(node, "Concat", lifted, [output], axis=axis))
    return nodes


def _scan(build: Build, node: Node) -> list[Node]:
    graph, count = node.get("body"), int(node.get("num_scan_inputs"))
    carried = len(node.inputs) - count
    inputs_axes, outputs_axes = node.get("scan_input_axes"), node.get("scan_output_axes")
    backward = [bool(each) for each in node.get("scan_input_directions") or [0] * count]
    turned = [bool(each) for each in node.get("scan_output_directions") or [0] * (len(node.outputs) - carried)]
    axes = [int(each) for each in inputs_axes or [0] * count]
    if len(set(backward)) > 1:
        raise Refusal("its inputs run in different directions")
    steps = build.size(node, carried, axes[0])
    if steps * (count + len(graph.node)) > _MOST_NODES:
        raise Refusal(f"its {steps} steps are more than {_MOST_NODES} nodes")
    state, nodes = list(node.inputs[:carried]), list[Node]()
    rows: list[list[str]] = [[] for _ in node.outputs[carried:]]
    for step in reversed(range(steps)) if backward and backward[0] else range(steps):
        index = f"{node.label}.step{step}.{build.bodies}"
        build.constants[index] = np.asarray(step, np.int64)
        parts = [f"{index}.{number}" for number in range(count)]
        nodes += [node_of(node, "Gather", [name, index], [part], axis=axis)
                  for name, part, axis in zip(node.inputs[carried:], parts, axes, strict=True)]  # fmt: skip
        body, names = _body(build, node, graph, dict(zip((each.name for each in graph.input), [*state, *parts], strict=True)))
        nodes += body
        results = [names.get(each.name, each.name) for each in graph.output]
        state = results[:carried]
        for row, result in zip(rows, results[carried:], strict=True):
            row.append(result)
    ordered = [row[::-1] if turn else row for row, turn in zip(rows, turned, strict=True)]
    nodes += _renamed(node, state, node.outputs[:carried])
    for row, output, axis in zip(ordered, node.outputs[carried:], outputs_axes or [0] * len(rows), strict=True):
        nodes += _stacked(build, node, [row], [output], int(axis))
    return nodes
