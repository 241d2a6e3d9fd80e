"""The formulas of layers of sequences: functions of values, which have the lengths of their sequences.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import math

import numpy as np

import formula_dense as dense
import tape as ad
from values import Value, inner_lengths


def _inner(value):
    return inner_lengths(value.lengths)


def _bounds(lengths):
    ends = np.cumsum(lengths).astype(int)
    return [(int(end) - length, int(end)) for end, length in zip(ends, lengths, strict=True)]


def _is_nested(lengths):
    return bool(lengths) and isinstance(lengths[0], tuple)


def sequence_pool(call, x, kind, level="sequence"):
    nested = _is_nested(x.lengths)
    whole = nested and level == "sample"
    lengths = tuple(sum(each) for each in x.lengths) if whole else _inner(x)
    parts = []
    for begin, end in _bounds(lengths):
        rows, count = x.var[begin:end], end - begin
        if not count:
            parts.append(x.var.tape.constant(np.zeros((1, *x.var.shape[1:]))))
        elif kind == "max":
            parts.append(ad.largest(rows, 0, "share").reshape(1, *x.var.shape[1:]))
        elif kind in ("first", "last"):
            parts.append(rows[0:1] if kind == "first" else rows[count - 1 : count])
        else:
            share = {"sum": 1, "mean": 1 / count, "sqrt_n": 1 / math.sqrt(count)}[kind]
            parts.append(rows.sum(0, True) * share)
    outer = tuple(len(each) for each in x.lengths) if nested and not whole else None
    return Value(_joined(parts, x.var.tape, x.var.shape[1:]), outer)


def _joined(parts, tape, shape):
    return ad.concat(parts) if parts else tape.constant(np.zeros((0, *shape)))


def sequence_reverse(call, x):
    order = [row for begin, end in _bounds(_inner(x)) for row in range(end - 1, begin - 1, -1)]
    return Value(x.var.take(np.array(order, int)), x.lengths)


def sequence_softmax(call, x):
    parts = [dense.softmax(call, x.var[begin:end], axis=0) for begin, end in _bounds(_inner(x)) if end > begin]
    return Value(_joined(parts, x.var.tape, x.var.shape[1:]), x.lengths)


def sequence_expand(call, value, like):
    nested = _is_nested(like.lengths)
    per_sample = nested and value.lengths is None
    lengths = tuple(sum(each) for each in like.lengths) if per_sample else _inner(like)
    return Value(value.var.take(np.repeat(np.arange(len(lengths)), lengths)), like.lengths)


def sequence_concat(call, first, second):
    both = ad.concat([first.var, second.var])
    offset, order = first.var.shape[0], []
    for (a, b), (c, d) in zip(_bounds(first.lengths), _bounds(second.lengths), strict=True):
        order += [*range(a, b), *range(offset + c, offset + d)]
    lengths = tuple(a + b for a, b in zip(first.lengths, second.lengths, strict=True))
    return Value(both.take(np.array(order, int)), lengths)


def sequence_slice(call, x, count, from_end=False):
    order, lengths = [], []
    for begin, end in _bounds(x.lengths):
        size = min(count, end - begin)
        order += range(end - size, end) if from_end else range(begin, begin + size)
        lengths.append(size)
    return Value(x.var.take(np.array(order, int)), tuple(lengths))


def _rows_around(call, x, length, start, outside):
    """Returns the rows around each row as [rows, length, features]. outside: (how far before, how far behind) -> the
    number of a row behind those of x."""
    table = []
    for begin, end in _bounds(_inner(x)):
        for row in range(begin, end):
            places = range(row + start, row + start + length)
            table.append([at if begin <= at < end else outside(begin - at, at - end + 1) for at in places])
    return np.array(table, int).reshape(-1, length)


def context_projection(call, x, length, start=None, trainable_padding=False):
    start = -((length - 1) // 2) if start is None else start
    flat = x.var.reshape(x.var.shape[0], math.prod(x.var.shape[1:]))
    rows, width = flat.shape
    front, back = max(0, -start), max(0, start + length - 1)
    if trainable_padding and front + back:
        more = call.parameter("weight", (front + back, width))
        # The row next to the sequence is the last of those before, and the first of those behind.
        table = _rows_around(
            call, x, length, start, lambda before, behind: rows + (front - before if before > 0 else front + behind - 1)
        )
    else:
        more = flat.tape.constant(np.zeros((1, width)))
        table = _rows_around(call, x, length, start, lambda before, behind: rows)
    around = ad.concat([flat, more]).take(table)
    return Value(around.reshape(rows, length * width), x.lengths)


def row_conv(call, x, length):
    flat = x.var.reshape(x.var.shape[0], math.prod(x.var.shape[1:]))
    rows, width = flat.shape
    table = _rows_around(call, x, length, 0, lambda before, behind: rows)
    around = ad.concat([flat, flat.tape.constant(np.zeros((1, width)))]).take(table)
    return Value((around * call.parameter("weight", (length, width))).sum(1), x.lengths)


def embedding(call, ids, vocabulary, size, reduce="none"):
    read = ids.var.value if ids.sparse is None else np.concatenate([each for each, _ in ids.sparse])
    table = call.parameter("weight", (vocabulary, size), rows=read)
    if ids.sparse is not None:
        total = ids.var @ table
        sums = ids.var.value.sum(1, keepdims=True)
        return Value(total if reduce == "sum" else ad.where(sums == 0, 0.0, total / np.where(sums == 0, 1, sums)))
    vectors = Value(table.take(ids.var.value), ids.lengths)
    if reduce == "none":
        return vectors
    if ids.lengths is not None:
        return sequence_pool(call, vectors, reduce)
    samples, count = ids.var.shape[:2]
    if reduce == "concat":
        return Value(vectors.var.reshape(samples, count * size))
    return Value(vectors.var.sum(1) if reduce == "sum" else vectors.var.mean(1))


def fc(call, *inputs, size, axis=None, bias=True):
    """Of a sparse input the rows of its ids are read."""
    if inputs[0].sparse is None:
        lengths = next((each.lengths for each in inputs if each.lengths is not None), None)
        return Value(dense.fc(call, *[each.var for each in inputs], size=size, axis=axis, bias=bias), lengths)
    x = inputs[0]
    read = np.concatenate([each for each, _ in x.sparse])
    product = x.var @ call.parameter("weight", (x.var.shape[1], size), rows=read)
    return Value(product + call.parameter("bias", (size,)) if bias else product)


def dot_attention(call, query, key, value=None, scale=1.0):
    value = key if value is None else value
    sums, shares = [], []
    for sample, (begin, end) in enumerate(_bounds(key.lengths)):
        if begin == end:
            sums.append(query.var.tape.constant(np.zeros((1, value.var.shape[1]))))
            continue
        scores = (key.var[begin:end] * query.var[sample : sample + 1]).sum(1, True) * scale
        shares.append(dense.softmax(call, scores, axis=0))
        sums.append((value.var[begin:end] * shares[-1]).sum(0, True))
    return Value(_joined(sums, query.var.tape, value.var.shape[1:])), Value(_joined(shares, query.var.tape, (1,)), key.lengths)


def sequence_attention(call, query, key, value, heads=1, scale=None, causal=False):
    parts = []
    for begin, end in _bounds(query.lengths):
        if end > begin:
            rows = [each.var[begin:end].reshape(1, end - begin, each.var.shape[1]) for each in (query, key, value)]
            found = dense.attention(call, *rows, heads=heads, causal=causal, scale=scale)
            parts.append(found.reshape(end - begin, value.var.shape[1]))
    return Value(_joined(parts, query.var.tape, value.var.shape[1:]), query.lengths)


def _gates(z, size, count):
    return [z.take(range(k * size, (k + 1) * size), 1) for k in range(count)]


def lstm_cell(z, cell, size, forget_bias=0.0, peepholes=None):
    """Returns the output and the next cell. peepholes: vars for the three gates."""
    i, f, g, o = _gates(z, size, 4)
    if peepholes is not None:
        i, f = i + peepholes[0] * cell, f + peepholes[1] * cell
    after = ad.sigmoid(f + forget_bias) * cell + ad.sigmoid(i) * ad.tanh(g)
    if peepholes is not None:
        o = o + peepholes[2] * after
    return ad.sigmoid(o) * ad.tanh(after), after


def gru_cell(z, state, weight, size):
    z_u, z_r, z_c = _gates(z, size, 3)
    w_u, w_r, w_c = _gates(weight, size, 3)
    u, r = ad.sigmoid(z_u + state @ w_u), ad.sigmoid(z_r + state @ w_r)
    return (1 - u) * state + u * ad.tanh(z_c + (r * state) @ w_c)


def walk(lengths, reverse):
    """Yields (sequences that run, numbers of their rows) of each step, of which there is at least one."""
    begins = np.cumsum([0, *lengths])[:-1].astype(int)
    for step in range(max([1, *lengths])):
        running = np.array([k for k, length in enumerate(lengths) if length > step], int)
        yield running, np.array([begins[k] + (lengths[k] - 1 - step if reverse else step) for k in running], int)


def collect(parts, numbers):
    """Returns rows in order, from parts of them with their numbers."""
    return ad.concat(parts).take(np.argsort(np.concatenate(numbers)))


def _recurrent(x, size, reverse, states, cell):
    """Runs a cell (rows, states) -> states over sequences. Returns the values of the layer's outputs."""
    lengths, parts, numbers = _inner(x), [], []
    for running, rows in walk(lengths, reverse):
        after = cell(x.var.take(rows), [each.take(running) for each in states])
        states = [ad.put(state, running, new) for state, new in zip(states, after, strict=True)]
        parts.append(after[0])
        numbers.append(rows)
    outer = tuple(len(each) for each in x.lengths) if _is_nested(x.lengths) else None
    return (Value(collect(parts, numbers), x.lengths), *[Value(each, outer) for each in states])


def _first(x, size, initial):
    return x.var.tape.constant(np.zeros((len(_inner(x)), size))) if initial is None else initial.var


def _projected(call, x, width, size, bias):
    product = x.var @ call.parameter("weight", (x.var.shape[1], width))
    recurrent = call.parameter("recurrent_weight", (size, width))
    return Value(product + call.parameter("bias", (width,)) if bias else product, x.lengths), recurrent


def rnn(call, x, initial=None, *, size, reverse=False, bias=True, activation="tanh"):
    rows, weight = _projected(call, x, size, size, bias)
    function = dense.DENSE[activation]
    cell = lambda z, states: [function(call, z + states[0] @ weight)]  # noqa: E731
    return _recurrent(rows, size, reverse, [_first(x, size, initial)], cell)


def gru(call, x, initial=None, *, size, reverse=False, bias=True):
    rows, weight = _projected(call, x, 3 * size, size, bias)
    cell = lambda z, states: [gru_cell(z, states[0], weight, size)]  # noqa: E731
    return _recurrent(rows, size, reverse, [_first(x, size, initial)], cell)


def lstm(call, x, initial=None, initial_cell=None, *, size, reverse=False, bias=True, forget_bias=0.0):
    rows, weight = _projected(call, x, 4 * size, size, bias)
    first = [_first(x, size, initial), _first(x, size, initial_cell)]
    return _recurrent(rows, size, reverse, first, lambda z, s: lstm_cell(z + s[0] @ weight, s[1], size, forget_bias))


def lstm_step(call, gates, cell, state=None, forget_bias=0.0):
    size, z = cell.var.shape[1], gates.var
    if state is not None:
        z = z + state.var @ call.parameter("recurrent_weight", (size, 4 * size))
    return tuple(Value(each, gates.lengths) for each in lstm_cell(z, cell.var, size, forget_bias))


def gru_step(call, gates, state):
    size = state.var.shape[1]
    return Value(gru_cell(gates.var, state.var, call.parameter("recurrent_weight", (size, 3 * size)), size))


SEQUENCES = {each.__name__: each for each in (
    sequence_pool, sequence_reverse, sequence_softmax, sequence_expand, sequence_concat, sequence_slice, context_projection,
    row_conv, embedding, fc, dot_attention, sequence_attention, rnn, gru, lstm, lstm_step, gru_step,
)}  # fmt: skip
