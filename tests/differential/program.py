"""A random program: data, layers, costs and how it is trained, with a text that can be read back.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Node:
    """A layer, or a data layer (type "data"). inputs: names, "name:1" of the second output. bodies: the layers inside of a
    scan (one list) or of a cond (two)."""

    name: str
    type: str
    inputs: tuple[str, ...] = ()
    attributes: dict = field(default_factory=dict)
    bodies: tuple[tuple[Node, ...], ...] = ()


@dataclass(frozen=True)
class Program:
    """settings: seed, samples, batch, updates, reader, updater (type and attributes), immutable, outputs, costs."""

    nodes: tuple[Node, ...]
    settings: dict

    def __getattr__(self, name):
        if name not in self.settings:
            raise AttributeError(name)
        return self.settings[name]

    def with_nodes(self, nodes, **settings):
        return Program(tuple(nodes), {**self.settings, **settings})

    def data(self):
        return [node for node in self.nodes if node.type == "data"]

    def __str__(self):
        lines = [json.dumps(self.settings)]
        for node in self.nodes:
            lines += _lines(node, "")
        return "\n".join(lines) + "\n"


def _lines(node, indent):
    yield f"{indent}{node.name} = {' '.join([node.type, *node.inputs])} {json.dumps(node.attributes)}"
    for body in node.bodies:
        yield f"{indent}  begin"
        for inner in body:
            yield from _lines(inner, indent + "    ")


def read(path):
    """Returns the program of a text file."""
    first, *lines = [line for line in Path(path).read_text().splitlines() if line.strip() and not line.startswith("#")]
    return Program(_nodes(lines, 0), json.loads(first))


def _nodes(lines, indent):
    """Takes the nodes of one indentation from the front of a list of lines."""
    nodes = []
    while lines and len(lines[0]) - len(lines[0].lstrip()) == indent:
        words, _, attributes = lines.pop(0).strip().partition("{")
        name, _, type, *inputs = words.split()
        bodies = []
        while lines and lines[0] == " " * (indent + 2) + "begin":
            lines.pop(0)
            bodies.append(_nodes(lines, indent + 4))
        nodes.append(Node(name, type, tuple(inputs), json.loads("{" + attributes), tuple(bodies)))
    return tuple(nodes)


def random_of(seed, name):
    """Returns random numbers that depend on a seed and a name alone."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def draw_data(program):
    """Returns {data layer: values of all samples}: an array, or of sequences a list of arrays; of sequences of sequences a
    list of lists; of sparse vectors a list of (ids, values)."""
    return {node.name: _draw(node, program) for node in program.data()}


def _draw(node, program):
    random = random_of(program.seed, node.name)
    kind, count = node.attributes["kind"], program.samples
    if kind == "sparse":
        width = node.attributes["width"]
        ids = [np.sort(random.choice(width, random.integers(0, width + 1), replace=False)) for _ in range(count)]
        return [(each, _numbers(random, (len(each),))) for each in ids]
    lengths = _lengths(node.attributes.get("lengths"), node.attributes.get("levels", 0), program)
    if lengths is None:
        return _elements(node, random, count)
    return [_rows(node, random, each) for each in lengths]


def _rows(node, random, length):
    if isinstance(length, list):
        return [_elements(node, random, each) for each in length]
    return _elements(node, random, length)


def _elements(node, random, count):
    if "limit" in node.attributes:
        return random.integers(0, node.attributes["limit"], (count, *node.attributes.get("shape", ())))
    return _numbers(random, (count, *node.attributes["shape"]))


def _numbers(random, shape):
    return random.normal(size=shape).astype(np.float32)


def _lengths(name, levels, program):
    """Returns the lengths of sequences, which those of one name share."""
    if not levels:
        return None
    random = random_of(program.seed, f"lengths {name}")
    # Rarely one is empty; they have unequal lengths.
    lengths = random.choice([0, 1, 2, 3, 4, 5], program.samples, p=[0.1, 0.2, 0.2, 0.2, 0.15, 0.15])
    if not program.settings.get("empty", True):
        lengths = np.maximum(lengths, 1)
    if levels == 1:
        return [int(each) for each in lengths]
    return [
        [int(each) for each in random.integers(0 if program.settings.get("empty", True) else 1, 4, outer)]
        for outer in np.minimum(lengths, 3)
    ]


def without(program, **settings):
    return replace(program, settings={**program.settings, **settings})
