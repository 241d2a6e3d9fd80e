"""The reference: programs computed by NumPy from the published formulas. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import numpy as np

import formulas
import tape as ad
from program import random_of
from values import Value

HOST_ATTRIBUTES = ("act", "parameter_name", "coefficient", "param")


class Model:
    """The parameters and buffers of a program, drawn at their first use and then known."""

    def __init__(self, seed):
        self.seed, self.parameters, self.buffers, self.multipliers = seed, {}, {}, {}
        self.reached = set()  # the parameters that a gradient flows to
        self.looked_up = set()  # (parameter, layer) of the lookups that it flows to: those of no other read rows

    def parameter(self, name, shape, around):
        if name not in self.parameters:
            draw = random_of(self.seed, name).uniform(-1, 1, shape)
            width = 1 if len(shape) < 2 else np.prod(shape[1:]) if len(shape) > 2 else shape[0]
            scale = 0.5 if around else 1.5 / np.sqrt(width)
            self.parameters[name] = (around + scale * draw).astype(np.float32).astype(np.float64)
        if self.parameters[name].shape != tuple(shape):
            raise ValueError(f"parameter {name}: {self.parameters[name].shape} and {shape}")
        return self.parameters[name]

    def buffer(self, name, shape, value):
        if name not in self.buffers:
            spread = random_of(self.seed, name).uniform(0.5, 1.5, shape)
            self.buffers[name] = (value + spread - 1).astype(np.float32).astype(np.float64)
        return self.buffers[name]


class Run:
    """One forward of a program over a minibatch, and its backward."""

    def __init__(self, program, model, feeds, dtype=np.float64, training=True, carried=None):
        """carried: what the minibatch before left in memories, by their names."""
        self.program, self.model, self.training = program, model, training
        self.carried, self.left = carried or {}, {}
        self.tape = ad.Tape(dtype)
        self.values, self.used, self.new_buffers, self.costs = {}, {}, {}, {}
        self.lookups, self.rows = {}, {}  # rows: by parameter, once there are gradients; None: all
        for node in program.nodes:
            if node.type == "data":
                self.values[node.name] = self._feed(node, feeds[node.name])
            else:
                self.add(node)

    def _feed(self, node, values):
        levels, dtype = node.attributes.get("levels", 0), np.int64 if "limit" in node.attributes else self.tape.dtype
        shape = tuple(node.attributes.get("shape", ()))
        if node.attributes["kind"] == "sparse":
            dense = np.zeros((len(values), node.attributes["width"]))
            for row, (ids, numbers) in enumerate(values):
                dense[row, ids] = numbers
            return Value(self.tape.constant(dense), sparse=values)
        if levels == 0:
            return Value(ad.Var(self.tape, np.asarray(values, dtype)))
        lengths = tuple(len(each) if levels == 1 else tuple(len(part) for part in each) for each in values)
        parts = values if levels == 1 else [part for each in values for part in each]
        rows = np.concatenate([np.zeros((0, *shape)), *parts]).astype(dtype)
        return Value(ad.Var(self.tape, rows), lengths)

    def add(self, node):
        """Computes a layer."""
        self.values.update(self.compute(node, self.values))

    def compute(self, node, values):
        """Returns the outputs of a layer by name, from values by name."""
        if node.type in formulas.NESTED:
            results = formulas.NESTED[node.type](self, node, values)
        else:
            results = self._layer(node, [values[each] for each in node.inputs])
        return {f"{node.name}:{number}" if number else node.name: each for number, each in enumerate(results)}

    def _layer(self, node, inputs):
        attributes = {key: value for key, value in node.attributes.items() if key not in HOST_ATTRIBUTES}
        call = Call(self, node)
        if node.type in formulas.RAGGED:
            results = formulas.RAGGED[node.type](call, *inputs, **attributes)
            results = results if isinstance(results, tuple) else (results,)
        else:
            lengths = next((each.lengths for each in inputs if each.lengths is not None), None)
            results = formulas.PLAIN[node.type](call, *[each.var for each in inputs], **attributes)
            results = tuple(Value(each, lengths) for each in (results if isinstance(results, tuple) else (results,)))
        if node.type in formulas.COSTS:
            self.costs[node.name] = results[0].var * node.attributes.get("coefficient", 1.0)
        if "act" in node.attributes:
            function = formulas.PLAIN[node.attributes["act"]]
            results = (Value(function(call, results[0].var), results[0].lengths), *results[1:])
        return results

    def cost(self):
        """Returns the mean cost."""
        total = None
        for each in self.costs.values():
            total = each.mean() if total is None else total + each.mean()
        return total

    def gradients(self):
        """Returns the gradients of the mean cost by parameter."""
        self.tape.backward(self.cost(), 1.0)
        found = {name: var.gradient for name, var in self.used.items()}
        reached = {name for name, each in found.items() if each is not None}
        # A layer that no sample of this minibatch needs has gradients of 0.
        self.model.reached = self.model.reached or reached
        flows = {
            (name, layer) for name, each in self.lookups.items() for layer, (var, _) in each.items() if var.gradient is not None
        }
        self.model.looked_up = self.model.looked_up or flows
        for name, lookups in self.lookups.items():
            if name in self.rows:  # a layer reads all of it
                continue
            read = [rows for layer, (_, rows) in lookups.items() if (name, layer) in self.model.looked_up]
            self.rows[name] = {int(row) for rows in read for row in np.ravel(rows)}
        return {
            name: np.asarray(found[name], np.float64) if name in reached else np.zeros(self.model.parameters[name].shape)
            for name in self.model.reached
        }


class Call:
    """What a formula asks of its layer."""

    def __init__(self, run, node):
        self._run, self._node, self.training, self.tape = run, node.name, run.training, run.tape
        self._prefix = node.attributes.get("parameter_name", node.name)
        self._options = node.attributes.get("param", {})

    def parameter(self, suffix, shape, around=0.0, rows=None):
        """Returns a parameter. around: the middle of its first values; rows: those that are read of a table."""
        name, run = f"{self._prefix}.{suffix}", self._run
        if name not in run.used:
            run.used[name] = run.tape.constant(run.model.parameter(name, tuple(shape), around))
            run.model.multipliers.setdefault(name, {})
        run.model.multipliers[name].update(self._options.get(suffix, {}))
        if rows is None or not self._options.get(suffix, {}).get("sparse", True):
            run.rows[name] = None
            return run.used[name]
        lookup = run.used[name].then(run.used[name].value, lambda gradient: gradient)
        run.lookups.setdefault(name, {})[self._node] = lookup, rows
        return lookup

    def buffer(self, suffix, shape, value):
        return self._run.model.buffer(f"{self._prefix}.{suffix}", tuple(shape), value)

    def set_buffer(self, suffix, values):
        self._run.new_buffers[f"{self._prefix}.{suffix}"] = np.asarray(values, np.float64)
