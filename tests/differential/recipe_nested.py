"""Draws scans and conds. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import recipe_dense as dense

# Layers that a step or a branch may have between its memories: each computes a row by itself.
STEP = [dense.unary, dense.unary, dense.binary, dense.binary, dense.shift, dense.norm, dense.gate, dense.fc]


def scan(draw):
    """One or two sequences of equal lengths, or sequences of sequences, with up to three memories."""
    first = draw.pick(levels=[1, 2], rank=[1])
    if first is None or (draw.inside and draw.levels(first) == 2):
        return
    same = [name for name in draw.names(levels=[draw.levels(first)], rank=[1])
            if draw.structures[name] == draw.structures[first]]  # fmt: skip
    inputs = [first] + ([draw.one_of(same)] if draw.chance(0.3) else [])
    name = draw.fresh("scan")
    inner, memories = _body(draw, name, inputs)
    for start in memories.values():
        if isinstance(start, str):
            draw.used.add(start)
    node = _fill(draw, inner, name, inputs, memories)
    if node is not None:
        draw.add("scan", *inputs, name=name, **node)


def _body(draw, name, inputs):
    """Returns a draw with the rows of the inputs, the memories, and vectors from outside; and how the memories begin."""
    inner, memories = draw.body(), {}
    nested = draw.levels(inputs[0]) == 2
    sizes = tuple(int(each) for each in draw.random.integers(1, 4, draw.settings["samples"])) if nested else None
    for number, each in enumerate(inputs):
        inner.placeholder(f"{name}.{number}", draw.shape(each), sizes)
        if nested:
            inner.structures[f"{name}.{number}"] = name
    width = int(draw.random.integers(2, 5))
    # The last value of a memory is not known while a text is generated.
    vectors = [] if draw.settings["texts"] else draw.names(levels=[0], rank=[1])
    for number in range(int(draw.random.choice([0, 1, 2, 2, 3]))):
        starts = vectors if not nested else []
        start = draw.one_of(starts) if starts and draw.chance(0.4) else width
        size = draw.shape(start)[0] if isinstance(start, str) else start
        if start == width and not nested and not draw.inside and not draw.settings["texts"] and draw.chance(0.2):
            start = {"shape": width, "carry": True}
        memories[f"{name}.m{number}"] = start
        inner.placeholder(f"{name}.m{number}", [size])
    for outside in vectors[:2]:
        if draw.chance(0.4):
            inner.values[outside] = draw.values[outside]
    return inner, memories


def _fill(draw, inner, name, inputs, memories):
    """Adds the layers of a step. Returns the attributes and the body of the scan, or None."""
    rows = f"{name}.0"
    widths = sorted({inner.shape(each)[0] for each in memories} or {2})
    if inner.levels(rows):
        rows = _summary(draw, inner, rows, memories)
        if rows is None:
            return None
    states = {}
    for width in widths:
        own = [each for each in memories if inner.shape(each)[0] == width]
        read = own if draw.chance(0.7) else own[:1]
        states[width] = [inner.add("fc", rows, *read, size=width, act=draw.one_of(["tanh", "sigmoid", "relu"]))]
        if states[width][0] is None:
            return None
        if draw.chance(0.3):
            states[width].append(_cell(draw, inner, rows, width, own))
    for _ in range(int(draw.random.integers(0, 4))):
        draw.one_of(STEP)(inner)
    left = {}
    for each in memories:
        width = inner.shape(each)[0]
        fits = [other for other in states[width] if other]
        fits += [node.name for node in inner.nodes if inner.levels(node.name) == 0 and inner.shape(node.name) == (width,)]
        left[each] = draw.one_of(fits)
    made = [node.name for node in inner.nodes if inner.levels(node.name) == 0 or inner.structures.get(node.name) == name]
    backward = draw.chance(0.4) and not draw.settings["texts"]
    results = [draw.one_of(made) for _ in range(int(draw.random.integers(1, 3)))]
    return {"memories": memories, "next": left, "results": list(dict.fromkeys(results)), "reverse": backward,
            "bodies": [tuple(inner.nodes)]}  # fmt: skip


def _summary(draw, inner, rows, memories):
    """A vector of the sub-sequence that a step sees: by a pool, or by a scan in the scan."""
    if draw.chance(0.5):
        return inner.add("sequence_pool", rows, kind=draw.one_of(["sum", "mean", "last"]))
    name = draw.fresh("scan")
    start = draw.one_of(list(memories)) if memories and draw.chance(0.7) else int(draw.random.integers(2, 5))
    width = inner.shape(start)[0] if isinstance(start, str) else start
    deep = inner.body()
    deep.placeholder(f"{name}.0", inner.shape(rows))
    deep.placeholder(f"{name}.m0", [width])
    state = deep.add("fc", f"{name}.0", f"{name}.m0", size=width, act="tanh")
    if state is None:
        return None
    added = inner.add("scan", rows, name=name, memories={f"{name}.m0": start}, next={f"{name}.m0": state}, results=[state],
                      reverse=draw.chance(0.4), bodies=[tuple(deep.nodes)])  # fmt: skip
    return f"{added}:1" if added and draw.chance(0.5) else inner.add("sequence_pool", added, kind="sum") if added else None


def _cell(draw, inner, rows, width, own):
    """A step of an lstm or a gru, with the memories as its states."""
    if not own:
        return None
    state = draw.one_of(own)
    if draw.chance(0.5):
        gates = inner.add("fc", rows, size=3 * width)
        return gates and inner.add("gru_step", gates, state)
    gates = inner.add("fc", rows, state, size=4 * width)
    cell = gates and inner.add("lstm_step", gates, draw.one_of(own))
    return cell and draw.one_of([cell, f"{cell}:1"])


def cond(draw):
    """Branches for the samples in which a number is above 0."""
    if draw.inside:
        return
    inputs = [draw.pick(levels=[0], rank=[1]) for _ in range(int(draw.random.integers(1, 3)))]
    if None in inputs:
        return
    predicate = draw.add("fc", draw.one_of(inputs), size=1)
    if predicate is None:
        return
    name, size = draw.fresh("cond"), int(draw.random.integers(2, 5))
    bodies, results = [], []
    for _ in range(2):
        inner = draw.body()
        for number, each in enumerate(inputs):
            inner.placeholder(f"{name}.{number}", draw.shape(each))
        for _ in range(int(draw.random.integers(0, 3))):
            draw.one_of(STEP)(inner)
        vectors = inner.names(levels=[0], rank=[1])
        result = inner.add("fc", draw.one_of(vectors), size=size)
        if result is None:
            return
        bodies.append(tuple(inner.nodes))
        results.append([result])
    draw.add("cond", predicate, *inputs, name=name, results=results, bodies=bodies)


NESTED = [scan, scan, scan, cond]
