"""Draws layers of sequences. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations


def begin(draw):
    """One or two sequences of equal lengths, perhaps others of their own lengths, and vectors."""
    draw.data("s0", kind="dense", shape=[int(draw.random.integers(2, 5))], levels=1, lengths="l0")
    if draw.chance(0.4):
        draw.data("s1", kind="dense", shape=[int(draw.random.integers(2, 5))], levels=1, lengths="l0")
    if draw.chance(0.4):
        words(draw, "w0", "l0")
    if draw.chance(0.3):
        draw.data("s2", kind="dense", shape=[int(draw.random.integers(2, 5))], levels=1, lengths="l1")
    if draw.chance(0.7):
        draw.data("x0", kind="dense", shape=[int(draw.random.integers(2, 5))])


def begin_nested(draw):
    draw.data("d0", kind="dense", shape=[int(draw.random.integers(2, 4))], levels=2, lengths="l2")
    if draw.chance(0.5):
        draw.data("x0", kind="dense", shape=[int(draw.random.integers(2, 5))])


def begin_words(draw):
    """Numbers of words: of bags, of sequences, and alone."""
    words(draw, "w0", "l0")
    if draw.chance(0.5):
        name = draw.data("b0", kind="dense", shape=[3], limit=7)
        embedded(draw, name, draw.one_of(["sum", "mean", "concat", "none"]), 7)
    if draw.chance(0.5):
        embedded(draw, draw.data("i0", kind="dense", limit=7), "none", 7)


def begin_sparse(draw):
    name = draw.data("x0", kind="sparse", width=int(draw.random.integers(3, 9)))
    for _ in range(int(draw.random.integers(1, 3))):
        size = int(draw.random.integers(2, 5))
        if draw.chance(0.7):
            draw.add("fc", name, size=size, **table_options(draw), **({"act": "tanh"} if draw.chance(0.5) else {}))
        else:
            embedded(draw, name, "sum", draw.values[name].var.shape[1])


def words(draw, name, lengths):
    limit = int(draw.random.integers(3, 8))
    draw.data(name, kind="dense", limit=limit, levels=1, lengths=lengths)
    embedded(draw, name, draw.one_of(["none", "none", "sum", "mean"]), limit)


def table_options(draw):
    return {"param": {"weight": {"sparse": False}}} if draw.chance(0.3) else {}


def embedded(draw, name, reduce, limit):
    """Adds an embedding. Tables of one size are shared now and then."""
    from recipe_dense import shared_name

    size = int(draw.random.integers(2, 5))
    sharing = shared_name(draw, "embedding", limit, size)
    options = {"reduce": reduce} if reduce != "none" else {}
    draw.add("embedding", name, vocabulary=limit, size=size, **options, **sharing, **({} if sharing else table_options(draw)))


def _rows(draw, levels=(1,), **more):
    """Returns sequences of vectors, or None."""
    return draw.pick(levels=levels, rank=[1], **more)


def pool(draw):
    name = draw.pick(levels=[1, 2])
    if name is not None:
        level = {"level": "sample"} if draw.levels(name) == 2 and draw.chance(0.3) else {}
        draw.add("sequence_pool", name, kind=draw.one_of(["sum", "mean", "sqrt_n", "max", "first", "last"]), **level)


def same_rows(draw):
    name = draw.pick(levels=[1, 2])
    if name is not None:
        draw.add(draw.one_of(["sequence_reverse", "sequence_softmax"]), name)


def expand(draw):
    like = draw.pick(levels=[1, 2])
    value = draw.pick(levels=[0], rank=[1])
    if like is not None and value is not None:
        draw.add("sequence_expand", value, like)


def cut(draw):
    name = draw.pick(levels=[1])
    if name is not None:
        draw.add("sequence_slice", name, count=int(draw.random.integers(1, 4)), from_end=draw.chance(0.5))


def join(draw):
    first = _rows(draw)
    if first is None:
        return
    others = draw.names(levels=[1], rank=[1], where=lambda name: draw.shape(name) == draw.shape(first))
    draw.add("sequence_concat", first, draw.one_of(others))


def window(draw):
    name = _rows(draw, (1, 2))
    if name is None:
        return
    if draw.chance(0.4):
        draw.add("row_conv", name, length=int(draw.random.integers(1, 4)))
        return
    length = int(draw.random.integers(1, 4))
    start = {"start": int(draw.random.integers(-length, 2))} if draw.chance(0.5) else {}
    draw.add("context_projection", name, length=length, trainable_padding=draw.chance(0.4), **start)


def attend(draw):
    key = _rows(draw)
    if key is None:
        return
    width = draw.shape(key)[0]
    queries = draw.names(levels=[0], rank=[1], where=lambda name: draw.shape(name)[0] == width)
    if queries and draw.chance(0.6):
        draw.add("dot_attention", draw.one_of(queries), key)
        return
    alike = draw.alike(key)
    draw.add("sequence_attention", draw.one_of(alike), key, draw.one_of(alike), causal=draw.chance(0.5))


def recurrent(draw):
    name = _rows(draw)
    if name is None:
        return
    size = int(draw.random.integers(2, 5))
    kind = draw.one_of(["rnn", "gru", "lstm"])
    options = {"reverse": True} if draw.chance(0.4) else {}
    if draw.chance(0.3):
        options["bias"] = False
    if kind == "rnn":
        options["activation"] = draw.one_of(["tanh", "relu", "sigmoid"])
    first = draw.names(levels=[0], rank=[1], where=lambda other: draw.shape(other)[0] == size)
    inputs = [name, draw.one_of(first)] if first and draw.chance(0.5) else [name]
    draw.add(kind, *inputs, size=size, **options)


SEQUENCES = [pool, pool, same_rows, expand, expand, cut, join, window, attend, attend, recurrent, recurrent]
