"""A small classifier and its data, for the tests. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import tenon

random = np.random.default_rng(0)
pixels = random.normal(size=(400, 20)).astype(np.float32)
labels = (pixels @ random.normal(size=(20, 3))).argmax(1)


class Classifier(NamedTuple):
    pixel: Any
    hidden: Any
    score: Any
    cost: Any
    accuracy: Any


def classifier() -> Classifier:
    pixel = tenon.layer.data("pixel", tenon.data_type.dense_vector(20))
    label = tenon.layer.data("label", tenon.data_type.integer_value(3))
    hidden = tenon.layer.fc(pixel, size=16, act="relu", name="hidden")
    score = tenon.layer.fc(hidden, size=3, name="score")
    cost = tenon.layer.cross_entropy(score, label, from_logits=True, name="cost")
    return Classifier(pixel, hidden, score, cost, tenon.layer.accuracy(score, label, name="accuracy"))


def samples():
    for row, label in zip(pixels, labels, strict=True):
        yield row, int(label)
