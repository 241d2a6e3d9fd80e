"""Draws random programs. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

import sources
import training
from draw_settings import settings_of, updater_of
from program import Node, Program, draw_data
from reference import Model, Run
from values import inner_lengths

MOST = 30.0  # values beyond make costs that fp32 cannot follow


class Draw:
    """The layers of a program as they are drawn, each computed at once by the reference. In the body of a scan or cond the
    values are random numbers in the place of the rows and memories."""

    def __init__(self, random, settings, model):
        self.random, self.settings, self.model = random, settings, model
        self.nodes, self.used, self.positive = [], set(), set()
        self.structures = {}  # of values with sequences: which have the same lengths by construction
        self.shared = defaultdict(list)  # parameter names by what they fit
        self.run = Run(Program((), settings), model, {})
        self.inside = False
        self.counts = [0]

    @property
    def values(self):
        return self.run.values

    def fresh(self, type):
        self.counts[0] += 1
        return f"{type}_{self.counts[0]}"

    def chance(self, share):
        return self.random.random() < share

    def one_of(self, choices):
        choices = list(choices)
        return choices[self.random.integers(len(choices))]

    def data(self, name, **attributes):
        """Adds a data layer, and returns its name."""
        node = Node(name, "data", (), attributes)
        program = Program((node,), self.settings)
        self.values[name] = self.run._feed(node, draw_data(program)[name])
        self.nodes.append(node)
        if attributes.get("levels"):
            self.structures[name] = attributes["lengths"]
        return name

    def add(self, type, *inputs, bodies=(), name=None, **attributes):
        """Adds a layer. Returns its name, or None if its values are too large for a comparison."""
        node = Node(name or self.fresh(type), type, tuple(inputs), attributes, tuple(bodies))
        results = self.run.compute(node, self.values)
        for value in results.values():
            array = value.var.value
            if not np.isfinite(array).all() or np.abs(array).max(initial=0) > MOST or not array.size:
                return None
        self.values.update(results)
        self.nodes.append(node)
        self.used.update(inputs)
        for each in node.bodies:
            self.used.update(name for inner in each for name in inner.inputs)
        self._note(node, results)
        return node.name

    def must_add(self, type, *inputs, **attributes):
        """Adds a layer without which the program has no meaning."""
        name = self.add(type, *inputs, **attributes)
        if name is None:
            raise TooLargeError(type)
        return name

    def _note(self, node, results):
        for name, value in results.items():
            if value.lengths is None:
                continue
            known = [self.structures.get(each) for each in node.inputs if each in self.structures]
            if node.type in ("sequence_slice", "sequence_concat"):
                self.structures[name] = node.name
            elif node.type == "sequence_pool" or (node.type == "scan" and value.levels < self.values[node.inputs[0]].levels):
                self.structures[name] = f"outer {known[0]}"
            else:
                self.structures[name] = known[-1] if node.type == "sequence_expand" else known[0]

    def levels(self, name):
        return self.values[name].levels

    def shape(self, name):
        """Returns the shape of a row."""
        return self.values[name].var.shape[1:]

    def is_float(self, name):
        return self.values[name].var.value.dtype.kind == "f" and self.values[name].sparse is None

    def names(self, levels=None, rank=None, where=lambda name: True):
        """Returns the names of float values with these levels and this rank."""
        return [
            name for name in self.values
            if self.is_float(name) and (levels is None or self.levels(name) in levels)
            and (rank is None or len(self.shape(name)) in rank) and where(name)
        ]  # fmt: skip

    def pick(self, levels=None, rank=None, where=lambda name: True):
        """Returns one of names(), rather one that no layer reads yet; None if there is none."""
        found = self.names(levels, rank, where)
        if not found:
            return None
        unread = [name for name in found if name not in self.used]
        return self.one_of(unread if unread and self.chance(0.7) else found)

    def alike(self, name):
        """Returns the names of values of the same shape and sequences."""
        return self.names(where=lambda other: self.shape(other) == self.shape(name) and self.levels(other) == self.levels(name)
                          and self.structures.get(other) == self.structures.get(name))  # fmt: skip

    def body(self):
        """Returns a draw for a body, which shares the names and the parameters."""
        inner = Draw(self.random, self.settings, self.model)
        inner.shared, inner.counts, inner.inside = self.shared, self.counts, True
        return inner

    def placeholder(self, name, shape, lengths=None):
        from values import Value

        rows = sum(lengths) if lengths is not None else self.settings["samples"]
        self.values[name] = Value(self.run.tape.constant(self.random.normal(size=(rows, *shape))), lengths)
        if lengths is not None:
            self.structures[name] = name
        return name


class TooLargeError(Exception):
    """A cost cannot be added."""


def program_of(seed, profile=None):
    """Returns the program of a seed."""
    for attempt in range(20):
        try:
            return _program_of(np.random.default_rng([seed, attempt]), seed, profile)
        except TooLargeError:
            continue
    raise ValueError(f"seed {seed} has no program")


def _program_of(random, seed, profile):
    import recipes

    profile = recipes.PROFILES[profile or str(random.choice(list(recipes.PROFILES), p=recipes.SHARES))]
    settings = settings_of(random, seed, profile)
    draw = Draw(random, settings, Model(seed))
    profile.begin(draw)
    wanted = int(random.integers(2, 9))
    for _ in range(6 * wanted):
        if len([node for node in draw.nodes if node.type != "data"]) >= wanted:
            break
        draw.one_of(profile.recipes)(draw)
    return finished(draw, profile)


def finished(draw, profile):
    """Returns the program with costs of all values that no layer reads, an updater and a reader."""
    import recipe_costs

    scores = None
    if profile.generates:
        limit = next(node.attributes["limit"] for node in draw.nodes if node.name == "w0")
        last = draw.pick(levels=[1], rank=[1], where=lambda name: name in draw.structures)
        scores = draw.must_add("fc", last, size=limit)
    leaves = [name for name in draw.names() if name not in draw.used]
    outputs = [name for name in leaves if not any(node.type == "data" and node.name == name for node in draw.nodes)]
    outputs = [scores] if scores else outputs[:4] or [node.name for node in draw.nodes if node.type != "data"][-1:]
    costs = recipe_costs.add_costs(draw, leaves, profile)
    program = Program(tuple(draw.nodes), {**draw.settings, "costs": costs, "outputs": outputs})
    program = pruned(program)
    return with_training(draw, program, profile)


def pruned(program):
    """Drops data layers and layers that no cost reads."""
    needed, kept = {*program.costs, *program.outputs}, []
    for node in reversed(program.nodes):
        names = {node.name, *(each for each in needed if each.startswith(node.name + ":"))}
        if needed & names:
            node = _with_pruned_bodies(node)
            kept.append(node)
            needed.update(node.inputs, _read(node))
    return program.with_nodes(reversed(kept))


def _with_pruned_bodies(node):
    """Drops the layers of bodies that no result and no memory depends on."""
    results = node.attributes.get("results", [])
    left = set(node.attributes.get("next", {}).values())
    bodies = []
    for number, body in enumerate(node.bodies):
        needed, kept = {*(results[number] if node.type == "cond" else results), *left}, []
        for inner in reversed(body):
            if any(name == inner.name or name.startswith(inner.name + ":") for name in needed):
                inner = _with_pruned_bodies(inner)
                kept.append(inner)
                needed.update(inner.inputs, _read(inner))
        bodies.append(tuple(reversed(kept)))
    return replace(node, bodies=tuple(bodies))


def _read(node):
    """Returns the names that the bodies of a node read, and those that its memories begin with."""
    found = {start for start in node.attributes.get("memories", {}).values() if isinstance(start, str)}
    left = [*node.attributes.get("next", {}).values()]
    left += [name for each in node.attributes.get("results", []) for name in ([each] if isinstance(each, str) else each)]
    for body in node.bodies:
        for inner in body:
            found |= {*inner.inputs, *_read(inner)}
    return found | set(left)


def with_training(draw, program, profile):
    import recipes

    random = draw.random
    model = training.model_of(program, draw_data(program))
    trained = sorted(model.reached)  # the costs need no others, so that a training refuses them
    immutable = [str(random.choice(trained))] if draw.chance(0.25) and len(trained) > 1 else []
    tables = any(
        "table" in node.type or node.type == "embedding" or node.attributes.get("kind") == "sparse" for node in program.nodes
    )
    reader = draw.one_of(sources.fitting(program))
    alone = {"batch_norm", "cond", *recipes.BLOCKS}  # of which a device sees its own samples alone, or is refused
    if not any(node.type in alone for node in program.nodes) and draw.chance(0.3):
        program = program.with_nodes(program.nodes, shards=True)
    return program.with_nodes(program.nodes, updater=updater_of(random, tables), immutable=immutable, reader=reader)


__all__ = ["Draw", "inner_lengths", "program_of"]
