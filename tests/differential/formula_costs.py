"""The formulas of costs: one number for each sample. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import numpy as np

import tape as ad
from formula_dense import log_softmax


def _total(x):
    """Sums over the values of a sample."""
    return x.reshape(x.shape[0], -1).sum(1)


def square_error(call, x, label):
    return _total((x - label) ** 2)


def absolute_error(call, x, label):
    error = x - label
    return _total(ad.where(ad.above(error), error, -error))


def smooth_l1(call, x, label, beta=1.0):
    return huber(call, x, label, beta) / beta


def huber(call, x, label, delta=1.0):
    error = x - label
    size = ad.where(ad.above(error), error, -error)
    return _total(ad.where(ad.above(size, delta), (size - delta / 2) * delta, error * error * 0.5))


def _log(probability):
    """Costs take a probability of less than 1e-30 for 1e-30."""
    bounded = np.maximum(probability.value, 1e-30)
    probability.tape.kink(np.where(probability.value < 1e-29, 1e-29, 1.0))
    return probability.then(np.log(bounded), lambda gradient: gradient / bounded)


def cross_entropy(call, x, label, from_logits=False, label_smoothing=0.0):
    """label: numbers of classes, or a distribution of the shape of x."""
    classes = x.shape[-1]
    logarithms = log_softmax(call, x) if from_logits else _log(x)
    if label.value.dtype.kind == "i":
        shares = np.eye(classes)[label.value]
    else:
        shares = label
    shares = shares * (1 - label_smoothing) + label_smoothing / classes
    return _total(-(logarithms * shares))


def binary_cross_entropy(call, x, label, from_logits=False, positive_weight=1.0):
    if from_logits:
        yes, no = -ad.softplus(-x), -ad.softplus(x)
    else:
        yes, no = _log(x), _log(1 - x)
    return _total(-(label * yes * positive_weight + (1 - label) * no))


def hinge(call, x, label, margin=1.0):
    slack = margin - (label * 2 - 1) * x
    return _total(ad.where(ad.above(slack), slack, 0.0))


def rank_cost(call, left, right, label):
    order = left - right
    return _total(ad.softplus(order) - label * order)


def sum_cost(call, x):
    return _total(x)


def kl_divergence(call, x, label, from_logits=False):
    logarithms = log_softmax(call, x) if from_logits else _log(x)
    return _total(label * (ad.log(label) - logarithms))


COSTS = {each.__name__: each for each in (
    square_error, absolute_error, smooth_l1, huber, cross_entropy, binary_cross_entropy, hinge, rank_cost, sum_cost,
    kl_divergence,
)}  # fmt: skip
