"""Reverse-mode gradients of NumPy arrays, in float64 or float32. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import math

import numpy as np

_erf = np.vectorize(math.erf, otypes=[np.float64])


class Tape:
    """The operations of one forward, in order, and how close an operand came to a place without a derivative."""

    def __init__(self, dtype):
        self.dtype, self.steps, self.margin = np.dtype(dtype), [], math.inf

    def constant(self, value):
        return Var(self, np.asarray(value, self.dtype))

    def backward(self, var, gradient):
        var.add_gradient(np.asarray(gradient, self.dtype))
        for step in reversed(self.steps):
            if step.gradient is not None:
                for parent, derivative in step.parents:
                    parent.add_gradient(derivative(step.gradient))

    def kink(self, distance):
        """Notes the distances of operands from a kink; those that are 0 are 0 in every precision."""
        apart = np.abs(distance[distance != 0])
        if apart.size:
            self.margin = min(self.margin, float(apart.min()))


class Var:
    """An array on a tape."""

    __slots__ = ("gradient", "parents", "tape", "value")
    __array_ufunc__ = None

    def __init__(self, tape, value, parents=()):
        self.tape, self.value, self.parents, self.gradient = tape, value, parents, None
        if parents:
            tape.steps.append(self)

    @property
    def shape(self):
        return self.value.shape

    def add_gradient(self, gradient):
        self.gradient = gradient if self.gradient is None else self.gradient + gradient

    def then(self, value, derivative):
        """Returns the var of a function of this one. derivative: from the gradient of the result to that of this var."""
        return Var(self.tape, value, ((self, derivative),))

    def _pair(self, other, value, own, others):
        return Var(self.tape, value, ((self, lambda g: _fold(own(g), self.shape)),
                                      (other, lambda g: _fold(others(g), other.shape))))  # fmt: skip

    def _var(self, other):
        return other if isinstance(other, Var) else self.tape.constant(other)

    def __add__(self, other):
        other = self._var(other)
        return self._pair(other, self.value + other.value, lambda g: g, lambda g: g)

    def __sub__(self, other):
        other = self._var(other)
        return self._pair(other, self.value - other.value, lambda g: g, lambda g: -g)

    def __mul__(self, other):
        other = self._var(other)
        return self._pair(other, self.value * other.value, lambda g: g * other.value, lambda g: g * self.value)

    def __truediv__(self, other):
        other = self._var(other)
        value = self.value / other.value
        return self._pair(other, value, lambda g: g / other.value, lambda g: -g * value / other.value)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other):
        return self._var(other) - self

    def __rtruediv__(self, other):
        return self._var(other) / self

    def __neg__(self):
        return self.then(-self.value, lambda g: -g)

    def __pow__(self, exponent):
        return self.then(self.value**exponent, lambda g: g * exponent * self.value ** (exponent - 1))

    def __matmul__(self, other):
        swap = lambda array: np.swapaxes(array, -1, -2)  # noqa: E731
        return self._pair(other, self.value @ other.value, lambda g: g @ swap(other.value), lambda g: swap(self.value) @ g)

    def __getitem__(self, key):
        def derivative(gradient):
            whole = np.zeros_like(self.value)
            np.add.at(whole, key, gradient)
            return whole

        return self.then(self.value[key], derivative)

    def reshape(self, *shape):
        return self.then(self.value.reshape(shape), lambda g: g.reshape(self.shape))

    def transpose(self, *axes):
        return self.then(self.value.transpose(axes), lambda g: g.transpose(np.argsort(axes)))

    def sum(self, axis=None, keepdims=False):
        axes = tuple(range(self.value.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        kept = tuple(1 if k in {a % self.value.ndim for a in axes} else n for k, n in enumerate(self.shape))
        value = self.value.sum(axis=axes, keepdims=keepdims)
        return self.then(np.asarray(value), lambda g: np.broadcast_to(g.reshape(kept), self.shape))

    def mean(self, axis=None, keepdims=False):
        total = self.sum(axis, keepdims)
        return total * (total.value.size / max(self.value.size, 1))

    def take(self, index, axis=0):
        """Returns the elements of an axis by number; index may have any number of dimensions."""
        index = np.asarray(index, np.int64)

        def derivative(gradient):
            whole = np.zeros_like(self.value)
            lead = tuple(range(axis, axis + index.ndim))
            np.add.at(np.moveaxis(whole, axis, 0), index, np.moveaxis(gradient, lead, range(index.ndim)))
            return whole

        return self.then(np.take(self.value, index, axis), derivative)


def _fold(gradient, shape):
    """Sums a gradient over the dimensions along which an operand of this shape was repeated."""
    if gradient.shape == shape:
        return gradient
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    along = tuple(k for k, size in enumerate(shape) if size == 1 and gradient.shape[k] != 1)
    return gradient.sum(axis=along, keepdims=True) if along else gradient


def concat(parts, axis=0):
    """Concatenates vars."""
    bounds = np.cumsum([0, *(part.shape[axis] for part in parts)])
    value = np.concatenate([part.value for part in parts], axis)

    def piece(number):
        return lambda g: np.take(g, range(bounds[number], bounds[number + 1]), axis)

    return Var(parts[0].tape, value, tuple((part, piece(number)) for number, part in enumerate(parts)))


def put(whole, rows, values):
    """Returns `whole` with other values in some rows."""
    value = whole.value.copy()
    value[rows] = values.value

    def rest(gradient):
        kept = gradient.copy()
        kept[rows] = 0
        return kept

    return Var(whole.tape, value, ((whole, rest), (values, lambda g: g[rows])))


def stop(x):
    """Returns a var without a derivative."""
    return x.tape.constant(x.value)


def exp(x):
    value = np.exp(x.value)
    return x.then(value, lambda g: g * value)


def log(x):
    return x.then(np.log(x.value), lambda g: g / x.value)


def tanh(x):
    value = np.tanh(x.value)
    return x.then(value, lambda g: g * (1 - value * value))


def sigmoid(x):
    value = 0.5 * (1 + np.tanh(0.5 * x.value))
    return x.then(value, lambda g: g * value * (1 - value))


def softplus(x):
    value = np.logaddexp(x.value, 0).astype(x.value.dtype)
    return x.then(value, lambda g: g * 0.5 * (1 + np.tanh(0.5 * x.value)))


def sqrt(x):
    """The root; where it is 0, so is its derivative."""
    value = np.sqrt(x.value)
    return x.then(value, lambda g: np.where(value > 0, g * 0.5 / np.where(value > 0, value, 1), 0))


def erf(x):
    slope = 2 / math.sqrt(math.pi) * np.exp(-x.value * x.value)
    return x.then(_erf(x.value).astype(x.value.dtype), lambda g: g * slope)


def sin(x):
    return x.then(np.sin(x.value), lambda g: g * np.cos(x.value))


def cos(x):
    return x.then(np.cos(x.value), lambda g: -g * np.sin(x.value))


def where(condition, a, b):
    """Chooses by an array of truth values."""
    a, b = (a if isinstance(a, Var) else b._var(a)), (b if isinstance(b, Var) else a._var(b))
    zero = a.value.dtype.type(0)
    return a._pair(
        b, np.where(condition, a.value, b.value), lambda g: np.where(condition, g, zero), lambda g: np.where(condition, zero, g)
    )


def above(x, bound=0.0):
    """Returns where x is above a bound, a kink."""
    x.tape.kink(x.value - bound)
    return x.value > bound


def maximum(a, b):
    """The larger of two; of equal ones each has half of the derivative."""
    return _extreme(a, b, 1)


def minimum(a, b):
    return _extreme(a, b, -1)


def _extreme(a, b, sign):
    b = a._var(b)
    a.tape.kink(a.value - b.value)
    share = np.where(a.value == b.value, 0.5, sign * (a.value - b.value) > 0).astype(a.value.dtype)
    return a * share + b * (1 - share)


def largest(x, axis, ties):
    """The largest along an axis. ties: "first" has the derivative, or they "share" it."""
    value = x.value.max(axis=axis, keepdims=True)
    x.tape.kink(np.where(x.value == value, 0, x.value - value))
    equal = (x.value == value).astype(x.value.dtype)
    if ties == "first":
        equal = equal * (np.cumsum(equal, axis=axis) == 1)
    # In place of a product, so that elements that are -infinity add nothing.
    weights = equal / equal.sum(axis=axis, keepdims=True)
    found = np.squeeze(value, axis)
    return x.then(found, lambda g: np.expand_dims(g, axis) * weights)
