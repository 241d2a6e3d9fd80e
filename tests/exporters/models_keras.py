"""Models of Keras for make.py. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import keras
import numpy as np
from keras import layers

RANDOM = np.random.default_rng(0)


def numbers(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def ids(*shape, below=20):
    return RANDOM.integers(0, below, shape).astype(np.int32)


def chain(*shape, dtype="float32", parts=()):
    return keras.Sequential([keras.Input(shape, dtype=dtype), *parts])


def attention():
    x = keras.Input((6, 8))
    y = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x))
    return keras.Model(x, layers.Dense(2)(layers.GlobalAveragePooling1D()(y + layers.Dense(8, "relu")(y))))


def text(cell):
    return chain(7, dtype="int32", parts=[layers.Embedding(20, 6), cell, layers.Dense(3, "softmax")])


# Name: the model, and an input.
MODELS = {
    "dense": lambda: (chain(5, parts=[layers.Dense(8, "relu"), layers.BatchNormalization(), layers.Dense(3, "softmax")]),
                      numbers(3, 5)),
    "image": lambda: (chain(10, 8, 3, parts=[layers.Conv2D(4, 3, padding="same", activation="relu"), layers.MaxPooling2D(),
                                             layers.Conv2D(6, 3, strides=2, padding="same"), layers.ReLU(max_value=6),
                                             layers.Flatten(), layers.Dense(2)]), numbers(3, 10, 8, 3)),
    "thin": lambda: (chain(9, 9, 3, parts=[layers.ZeroPadding2D(((0, 1), (0, 1))), layers.DepthwiseConv2D(3, strides=2),
                                           layers.BatchNormalization(), layers.Activation("silu"),
                                           layers.SeparableConv2D(5, 3), layers.GlobalMaxPooling2D()]), numbers(3, 9, 9, 3)),
    "up": lambda: (chain(4, 5, 2, parts=[layers.Conv2DTranspose(3, 3, strides=2, padding="same"), layers.LeakyReLU(),
                                         layers.UpSampling2D(), layers.Conv2D(1, 1, activation="tanh")]), numbers(3, 4, 5, 2)),
    "signal": lambda: (chain(12, 2, parts=[layers.Conv1D(4, 3, activation="elu"), layers.AveragePooling1D(2),
                                           layers.TimeDistributed(layers.Dense(3)), layers.Dense(2), layers.Flatten()]),
                       numbers(3, 12, 2)),
    "lstm": lambda: (text(layers.LSTM(5)), ids(3, 7)),
    "gru": lambda: (text(layers.Bidirectional(layers.GRU(4))), ids(3, 7)),
    "attention": lambda: (attention(), numbers(3, 6, 8)),
}  # fmt: skip
