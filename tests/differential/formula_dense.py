"""The formulas of layers on vectors, element by element, and of shapes. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import math

import numpy as np

import tape as ad


def fc(call, *inputs, size, axis=None, bias=True):
    total = None
    for number, x in enumerate(inputs):
        first = 1 if axis is None else axis % len(x.shape)
        flat = x.reshape(*x.shape[:first], math.prod(x.shape[first:]))
        product = flat @ call.parameter(f"weight_{number}" if number else "weight", (flat.shape[-1], size))
        total = product if total is None else total + product
    return total + call.parameter("bias", (size,)) if bias else total


def log_softmax(call, x, axis=-1):
    shifted = x - x.value.max(axis=axis, keepdims=True)
    return shifted - ad.log(ad.exp(shifted).sum(axis, True))


def softmax(call, x, size=None, axis=-1):
    if size is not None:
        x = fc(call, x, size=size)
    return ad.exp(log_softmax(call, x, axis))


def relu(call, x):
    return ad.where(ad.above(x), x, 0.0)


def leaky_relu(call, x, slope=0.01):
    return ad.where(ad.above(x), x, x * slope)


def elu(call, x, alpha=1.0):
    return ad.where(ad.above(x), x, (ad.exp(ad.where(x.value > 0, 0.0, x)) - 1) * alpha)


def celu(call, x, alpha=1.0):
    return ad.where(ad.above(x), x, (ad.exp(ad.where(x.value > 0, 0.0, x) / alpha) - 1) * alpha)


def selu(call, x):
    return elu(call, x, 1.6732632423543772) * 1.0507009873554805


def gelu(call, x, approximation="none"):
    if approximation == "none":
        return x * (ad.erf(x * math.sqrt(0.5)) + 1) * 0.5
    return x * (ad.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1) * 0.5


def silu(call, x):
    return x * ad.sigmoid(x)


def mish(call, x):
    return x * ad.tanh(ad.softplus(x))


def softsign(call, x):
    return x / (absolute(call, x) + 1)


def absolute(call, x):
    return ad.where(ad.above(x), x, -x)


def hard_sigmoid(call, x, slope=1 / 6, shift=0.5):
    return clip(call, x * slope + shift, 0.0, 1.0)


def hard_swish(call, x):
    return x * hard_sigmoid(call, x)


def clip(call, x, low=-math.inf, high=math.inf):
    x.tape.kink(x.value - low)
    x.tape.kink(x.value - high)
    return ad.where(x.value < low, low, ad.where(x.value > high, high, x))


def prelu(call, x, slope=0.25, shared=False):
    return ad.where(ad.above(x), x, x * call.parameter("slope", (1 if shared else x.shape[-1],), 0.25))


def scale_shift(call, x, scale=1.0, shift=0.0, learnable=False):
    if not learnable:
        return x * scale + shift
    return x * call.parameter("scale", (x.shape[-1],), 1.0) + call.parameter("shift", (x.shape[-1],))


def power(call, x, exponent):
    return x**exponent


def _fold(function):
    def formula(call, first, *more):
        for each in more:
            first = function(first, each)
        return first

    return formula


def choose(call, condition, a, b):
    return ad.where(condition.value != 0, a, b)


def _compared(sign):
    def formula(call, a, b):
        above = ad.above((a - b) * sign)
        return a.tape.constant(above)

    return formula


def concat(call, *inputs, axis=-1):
    return ad.concat(inputs, axis % len(inputs[0].shape))


def reshape(call, x, shape):
    return x.reshape(x.shape[0], *shape)


def transpose(call, x, axes):
    return x.transpose(*axes)


def slice_along(call, x, length, axis=-1, start=0):
    return x.take(range(start, start + length), axis % len(x.shape))


def pad(call, x, before, after, axes=None, mode="constant", value=0.0):
    for axis, front, back in zip(range(1, len(x.shape)) if axes is None else axes, before, after, strict=True):
        axis %= len(x.shape)
        size = x.shape[axis]
        numbers = np.pad(np.arange(size), (front, back), {"constant": "edge"}.get(mode, mode))
        padded = x.take(numbers, axis)
        if mode == "constant":
            outside = (np.arange(front + size + back) < front) | (np.arange(front + size + back) >= front + size)
            padded = ad.where(outside.reshape([-1 if k == axis else 1 for k in range(len(x.shape))]), value, padded)
        x = padded
    return x


def flip(call, x, axes):
    for axis in axes:
        x = x.take(np.arange(x.shape[axis])[::-1], axis % len(x.shape))
    return x


def cumsum(call, x, axis=-1, exclusive=False, reverse=False):
    axis %= len(x.shape)
    size = x.shape[axis]
    counted = np.triu(np.ones((size, size)), 1 if exclusive else 0)  # [from, to]
    order = [k for k in range(len(x.shape)) if k != axis] + [axis]
    moved = x.transpose(*order)
    flat = moved.reshape(-1, size) @ x.tape.constant(counted.T if reverse else counted)
    return flat.reshape(*moved.shape).transpose(*np.argsort(order))


def _axes(x, axis, axes):
    if axis is not None:
        return (axis % len(x.shape),)
    return tuple(range(1, len(x.shape))) if axes is None else tuple(each % len(x.shape) for each in axes)


def _moment(function):
    """Returns the formula of a reduction. function: (x, axes, keep) -> var."""

    def formula(call, x, axis=None, axes=None, keep_dimensions=False, **more):
        return function(x, _axes(x, axis, axes), bool(keep_dimensions), **more)

    return formula


def _variance(x, axes, keep, unbiased=False):
    count = math.prod(x.shape[axis] for axis in axes)
    squares = ((x - x.mean(axes, True)) ** 2).mean(axes, keep)
    return squares * (count / max(count - 1, 1)) if unbiased else squares


def _extreme(x, axes, keep):
    kept = [axis for axis in range(len(x.shape)) if axis not in axes]
    flat = x.transpose(*kept, *axes).reshape(*[x.shape[axis] for axis in kept], -1)
    found = ad.largest(flat, len(kept), "share")
    return found.reshape(*[1 if axis in axes else x.shape[axis] for axis in range(len(x.shape))]) if keep else found


def _log_sum_exp(x, axes, keep):
    highest = x.value.max(axis=axes, keepdims=True)
    total = ad.log(ad.exp(x - highest).sum(axes, True)) + highest
    return total if keep else total.reshape(*[n for axis, n in enumerate(total.shape) if axis not in axes])


def _length(x, axes, keep, order=2):
    return absolute(None, x).sum(axes, keep) if order == 1 else ad.sqrt((x * x).sum(axes, keep))


def normalize(call, x, axis=-1, order=2, epsilon=1e-12):
    return x / _length(x, _axes(x, axis, None), True, order)


def layer_norm(call, x, epsilon=1e-5, learnable=True):
    centred = x - x.mean(-1, True)
    return _affine(call, centred / ad.sqrt((centred * centred).mean(-1, True) + epsilon), learnable, learnable)


def rms_norm(call, x, epsilon=1e-5, learnable=True, shift=False):
    return _affine(call, x / ad.sqrt((x * x).mean(-1, True) + epsilon), learnable, shift)


def _affine(call, x, scale, shift):
    x = x * call.parameter("scale", (x.shape[-1],), 1.0) if scale else x
    return x + call.parameter("shift", (x.shape[-1],)) if shift else x


def bilinear(call, a, b, size, bias=True):
    weight = call.parameter("weight", (size, a.shape[-1], b.shape[-1]))
    outer = a.reshape(*a.shape, 1) * b.reshape(b.shape[0], 1, b.shape[1])
    product = outer.reshape(a.shape[0], -1) @ weight.reshape(size, -1).transpose(1, 0)
    return product + call.parameter("bias", (size,)) if bias else product


def factorization_machine(call, x, factors):
    flat = x.reshape(x.shape[0], math.prod(x.shape[1:]))
    weight = call.parameter("weight", (flat.shape[1], factors))
    both = (flat @ weight) ** 2 - (flat * flat) @ (weight * weight)
    return both.sum(1, True) * 0.5


def glu(call, x, gate="sigmoid"):
    half = x.shape[-1] // 2
    gates = {"sigmoid": ad.sigmoid, "silu": lambda b: silu(call, b), "gelu": lambda b: gelu(call, b),
             "relu": lambda b: relu(call, b), "tanh": ad.tanh, "none": lambda b: b}  # fmt: skip
    return x.take(range(half), len(x.shape) - 1) * gates[gate](x.take(range(half, 2 * half), len(x.shape) - 1))


def maxout(call, x, pieces):
    return ad.largest(x.reshape(*x.shape[:-1], x.shape[-1] // pieces, pieces), len(x.shape), "share")


def cos_sim(call, a, b, scale=1.0, epsilon=1e-8):
    return (a * b).sum(-1) / (ad.sqrt((a * a).sum(-1)) * ad.sqrt((b * b).sum(-1))) * scale


def attention(call, query, key=None, value=None, heads=1, causal=False, scale=None):
    key = query if key is None else key
    value = key if value is None else value
    samples, queries, features = query.shape
    keys = key.shape[1]

    def parts(x):
        return x.reshape(samples, x.shape[1], heads, x.shape[2] // heads).transpose(0, 2, 1, 3)

    scale = 1 / math.sqrt(features / heads) if scale is None else scale
    scores = parts(query) @ parts(key).transpose(0, 1, 3, 2) * scale
    if causal:
        hidden = np.arange(keys)[None, :] > np.arange(queries)[:, None] + keys - queries
        scores = ad.where(hidden, -1e30, scores)
    mixed = softmax(call, scores) @ parts(value)
    return mixed.transpose(0, 2, 1, 3).reshape(samples, queries, value.shape[2])


def _plain(function):
    return lambda call, x: function(x)


DENSE = {
    **{each.__name__: each for each in (
        fc, log_softmax, softmax, relu, leaky_relu, elu, celu, selu, gelu, silu, mish, softsign, hard_sigmoid,
        hard_swish, clip, prelu, scale_shift, power, concat, reshape, transpose, pad, flip, cumsum, normalize,
        layer_norm, rms_norm, bilinear, factorization_machine, glu, maxout, cos_sim, attention,
    )},
    "abs": absolute, "greater": _compared(1), "less": _compared(-1), "slice": slice_along, "where": choose,
    "tanh": _plain(ad.tanh), "sigmoid": _plain(ad.sigmoid), "softplus": _plain(ad.softplus), "exp": _plain(ad.exp),
    "log": _plain(ad.log), "sqrt": _plain(ad.sqrt), "sin": _plain(ad.sin), "cos": _plain(ad.cos),
    "erf": _plain(ad.erf), "square": _plain(lambda x: x * x), "reciprocal": _plain(lambda x: 1 / x),
    "relu6": lambda call, x: clip(call, x, 0.0, 6.0), "hard_tanh": lambda call, x: clip(call, x, -1.0, 1.0),
    "add": _fold(lambda a, b: a + b), "sub": _fold(lambda a, b: a - b), "mul": _fold(lambda a, b: a * b),
    "div": _fold(lambda a, b: a / b), "maximum": _fold(ad.maximum), "minimum": _fold(ad.minimum),
    "mean": _moment(lambda x, axes, keep: x.mean(axes, keep)), "sum": _moment(lambda x, axes, keep: x.sum(axes, keep)),
    "variance": _moment(_variance), "standard_deviation": _moment(lambda *a, **k: ad.sqrt(_variance(*a, **k))),
    "max": _moment(_extreme), "min": _moment(lambda x, axes, keep: -_extreme(-x, axes, keep)),
    "log_sum_exp": _moment(_log_sum_exp), "norm": _moment(_length),
}  # fmt: skip
