"""What layers with layers inside mean: scans and conds. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import numpy as np

import tape as ad
from formula_sequences import collect, walk
from values import Value


def _outer(lengths):
    """Returns the steps of each sequence."""
    return tuple(len(each) for each in lengths) if lengths and isinstance(lengths[0], tuple) else lengths


def _parts(value, numbers):
    """Returns the rows of some entries of a value: its rows, or its sequences."""
    if value.lengths is None:
        return Value(value.var.take(numbers))
    begins = np.cumsum([0, *value.lengths])[:-1].astype(int)
    rows = [begins[each] + row for each in numbers for row in range(value.lengths[each])]
    return Value(value.var.take(np.array(rows, int)), tuple(value.lengths[each] for each in numbers))


def _steps_of(value):
    """Returns a value of sequences with one entry for each step, whose sub-sequences a step sees whole."""
    inner = tuple(each for outer in value.lengths for each in outer) if value.levels == 2 else None
    return Value(value.var, inner)


def _inside(names, values, numbers):
    """Returns the values that a body reads from outside, at the entries with these numbers."""
    return {name: _parts(values[name], numbers) for name in names if name in values and values[name].levels < 2}


def _read(body):
    """Returns the names that nodes read."""
    for node in body:
        yield from node.inputs
        yield from (start for start in node.attributes.get("memories", {}).values() if isinstance(start, str))
        for each in node.bodies:
            yield from _read(each)


def scan(run, node, values):
    """attributes: memories {name: width, or the name of a layer}, next {memory: name}, results [names], reverse. The rows of
    the inputs are called after the scan and their number: s.0, s.1; inside, other names are those of layers outside."""
    (body,), own = node.bodies, node.attributes
    inputs = [values[each] for each in node.inputs]
    lengths = inputs[0].lengths
    steps = _outer(lengths)
    memories = {name: _first(run, name, start, len(steps), values) for name, start in own["memories"].items()}
    names = {*_read(body), *own["results"], *own["next"].values()}
    parts, numbers = [[] for _ in own["results"]], []
    for running, rows in walk(steps, own.get("reverse", False)):
        inside = _inside(names, values, running)
        for number, value in enumerate(inputs):
            inside[f"{node.name}.{number}"] = _parts(_steps_of(value), rows)
        inside.update({name: Value(memory.take(running)) for name, memory in memories.items()})
        for each in body:
            inside.update(run.compute(each, inside))
        memories = {name: ad.put(memory, running, inside[own["next"][name]].var) for name, memory in memories.items()}
        numbers.append(rows)
        for each, name in zip(parts, own["results"], strict=True):
            each.append(inside[name])
    run.left.update({name: memories[name].value for name, start in own["memories"].items() if isinstance(start, dict)})
    results = [_results(each, numbers, lengths) for each in parts]
    return [*results, *[Value(memory) for memory in memories.values()]]


def _first(run, name, start, count, values):
    """Returns what a memory holds before the first step. start: a layer, a width, or {"shape": width, "carry": true}."""
    if isinstance(start, str):
        return values[start].var
    width = start["shape"] if isinstance(start, dict) else start
    found = np.zeros((count, width))
    if isinstance(start, dict) and name in run.carried:
        before = run.carried[name][:count]
        found[: len(before)] = before
    return run.tape.constant(found)


def _results(parts, numbers, lengths):
    """Puts the results of all steps in the order of the rows."""
    nested = any(part.lengths is not None for part in parts)
    if not nested:
        return Value(collect([part.var for part in parts], numbers), _outer(lengths))
    flat = [number for each in numbers for number in each]
    sizes = [size for part in parts for size in part.lengths]
    begins = np.cumsum([0, *sizes])[:-1].astype(int)
    rows = [begins[k] + row for k in np.argsort(flat) for row in range(sizes[k])]
    return Value(ad.concat([part.var for part in parts]).take(np.array(rows, int)), lengths)


def cond(run, node, values):
    """The first input is the predicate; attributes: results [[names], [names]] of the two bodies. The inputs are called
    c.0, c.1 inside."""
    predicate, *inputs = [values[each] for each in node.inputs]
    run.tape.kink(np.asarray(predicate.var.value, np.float64))
    holds = predicate.var.value.reshape(-1) > 0
    results = []
    chosen = [np.flatnonzero(holds), np.flatnonzero(~holds)]
    for body, rows, names in zip(node.bodies, chosen, node.attributes["results"], strict=True):
        inside = _inside({*_read(body), *names}, values, rows)
        for number, value in enumerate(inputs):
            inside[f"{node.name}.{number}"] = _parts(value, rows)
        for each in body:
            inside.update(run.compute(each, inside))
        results.append([inside[name].var for name in names])
    order = np.argsort(np.concatenate(chosen), kind="stable")
    return [Value(ad.concat([a, b]).take(order)) for a, b in zip(*results, strict=True)]


NESTED = {"scan": scan, "cond": cond}
