"""Programs as Tenon runs them. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import numpy as np

import tenon


def data_type(attributes):
    """Returns the type of a data layer."""
    if attributes["kind"] == "sparse":
        return tenon.data_type.sparse_float_vector(attributes["width"])
    if "limit" in attributes:
        kind = tenon.data_type.integer_value(attributes["limit"])
        if attributes.get("shape"):
            kind = tenon.data_type.dense_array(attributes["shape"], "int64")
    else:
        kind = tenon.data_type.dense_array(attributes["shape"])
    levels = attributes.get("levels", 0)
    return tenon.data_type.sequence(kind, levels, lengths_of=attributes["lengths"]) if levels else kind


class Layers:
    """The layers of a program on a host. outputs: the layers of its settings "outputs"; costs: those of its costs."""

    def __init__(self, program):
        self.named = {}
        for node in program.nodes:
            add(node, self.named)
        self.costs = [self.named[name] for name in program.costs]
        self.outputs = [self.named[name] for name in program.outputs]

    def parameters(self, model):
        """Returns a set of parameters with the values of a reference's model."""
        created = tenon.parameters.create([*self.costs, *self.outputs])
        values = {**model.parameters, **model.buffers}
        lacking = [name for name in created if name not in values or created.shape(name) != values[name].shape]
        # Layers that a scan or a cond is given and does not read have no part in the model.
        missing = sorted(name for name in model.reached if name not in created)
        if lacking or missing:
            raise AssertionError(f"parameters {lacking} are unknown to the reference, {missing} are missing")
        for name in created:
            created[name] = values[name].astype(np.float32)
        return created


def add(node, named):
    """Makes a layer from others by name."""
    if node.type == "data":
        layers = [tenon.layer.data(node.name, data_type(node.attributes))]
    elif node.type == "scan":
        layers = _scan(node, named)
    elif node.type == "cond":
        layers = _cond(node, named)
    else:
        layer = getattr(tenon.layer, node.type)(*[named[each] for each in node.inputs], name=node.name, **node.attributes)
        count = len(layer.describe().get("outputs") or [0])
        layers = [layer] if count < 2 else list(layer)
    named.update({f"{node.name}:{number}" if number else node.name: each for number, each in enumerate(layers)})


def _scan(node, named):
    own = node.attributes

    def step(*rows, **memories):
        inside = {**named, **memories}
        inside.update({f"{node.name}.{number}": row for number, row in enumerate(rows)})
        for each in node.bodies[0]:
            add(each, inside)
        results = tuple(inside[name] for name in own["results"])
        return (results, {name: inside[left] for name, left in own["next"].items()}) if own["memories"] else results

    starts = {name: named[start] if isinstance(start, str) else start for name, start in own["memories"].items()}
    results, last = tenon.scan(step, [named[each] for each in node.inputs], starts, own.get("reverse", False), node.name)
    return [*results, *[last[name] for name in own["memories"]]]


def _cond(node, named):
    def branch(number):
        def build(*inputs):
            inside = {**named, **{f"{node.name}.{k}": each for k, each in enumerate(inputs)}}
            for each in node.bodies[number]:
                add(each, inside)
            return tuple(inside[name] for name in node.attributes["results"][number])

        return build

    predicate, *inputs = [named[each] for each in node.inputs]
    results = tenon.cond(predicate, branch(0), branch(1), inputs, node.name)
    return list(results) if isinstance(results, tuple) else [results]


def feeds(program, data, chosen):
    """Returns what a gradient machine is fed with: the samples with the numbers `chosen`."""
    fed = {}
    for node in program.data():
        values = data[node.name]
        if node.attributes["kind"] == "sparse":
            fed[node.name] = [sparse(values[k]) for k in chosen]
        else:
            fed[node.name] = values[chosen] if isinstance(values, np.ndarray) else [values[k] for k in chosen]
    return fed


def sparse(sample):
    """Returns a sparse vector as a list of pairs."""
    return [(int(id), float(number)) for id, number in zip(*sample, strict=True)]


def updater(program):
    options = dict(program.updater)
    return getattr(tenon.updater, options.pop("type"))(**options)
