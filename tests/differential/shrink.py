"""Makes a program that fails smaller. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import re

import check
import draw

MOST_TRIES = 300


def fault_of(program):
    """Returns what is wrong with a program, "" if nothing is, and whether it was compared in part."""
    checked = None
    try:
        checked = check.Check(program)
        checked.all()
    except (check.Difference, AssertionError) as difference:
        return str(difference), False
    except Exception as error:  # noqa: BLE001 - whatever the product raises is a fault of the program
        return f"{type(error).__name__}: {error}", False
    return "", checked.blunt


def _kind(fault):
    """Returns a fault without its numbers and names."""
    return re.sub(r"[a-z_]*_?\d[\w.:+-]*", "#", fault.split(";")[0])[:40]


def smallest(program, fault):
    """Drops layers and settings as long as a fault of the same kind remains. Returns the program and its fault."""
    tries, again = 0, True
    while again and tries < MOST_TRIES:
        again = False
        for smaller in _smaller(program):
            tries += 1
            other, _ = fault_of(smaller)
            if other and _kind(other) == _kind(fault):
                program, fault, again = smaller, other, True
                break
            if tries >= MOST_TRIES:
                break
    return program, fault


def _smaller(program):
    """Yields programs with one thing less."""
    simple = {"updater": {"type": "sgd", "learning_rate": 0.02}, "reader": "rows", "immutable": []}
    simple.update(dict.fromkeys(("shards", "export", "empty"), False))
    for name, value in simple.items():
        if program.settings.get(name) != value:
            yield program.with_nodes(program.nodes, **{name: value})
    for key in ("costs", "outputs"):
        for name in program.settings[key]:
            rest = [each for each in program.settings[key] if each != name]
            if rest:
                yield draw.pruned(program.with_nodes(program.nodes, **{key: rest}))
    for node in reversed(program.nodes):
        if node.type == "data":
            continue
        for other in node.inputs:  # a layer is replaced by one that it reads
            yield draw.pruned(_replaced(program, node.name, other))
        for key in node.attributes:
            fewer = {name: value for name, value in node.attributes.items() if name != key}
            yield program.with_nodes(_with(program.nodes, node, fewer))


def _with(nodes, changed, attributes):
    from dataclasses import replace

    return [replace(node, attributes=attributes) if node is changed else node for node in nodes]


def _replaced(program, name, other):
    from dataclasses import replace

    nodes = [
        replace(node, inputs=tuple(other if each == name else each for each in node.inputs))
        for node in program.nodes
        if node.name != name
    ]
    outputs = [other if each == name else each for each in program.outputs]
    return program.with_nodes(nodes, outputs=outputs)
