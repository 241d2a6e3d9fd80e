"""The names in which configurations of 2016 describe networks: from tenon.config_helpers import *

What they make are the layers of tenon.layer, with which they can be mixed.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenon._model.layer import Layer, LayerLike, as_layers
from tenon._model.scan import StaticInput, SubsequenceInput, memory, recurrent_group
from tenon._run.generation import GeneratedInput, beam_search
from tenon.data_type import (
    dense_vector,
    dense_vector_sequence,
    integer_value,
    integer_value_sequence,
    sparse_binary_vector,
    sparse_float_vector,
)

__all__ = [
    "GeneratedInput", "LinearActivation", "ReluActivation", "SigmoidActivation", "SoftmaxActivation", "StaticInput",
    "SubsequenceInput", "TanhActivation", "beam_search", "classification_cost", "dense_vector", "dense_vector_sequence",
    "fc_layer", "integer_value", "integer_value_sequence", "memory", "recurrent_group", "regression_cost",
    "sparse_binary_vector", "sparse_float_vector",
]  # fmt: skip


class Activation:
    """An activation; type: the layer that computes it, None for the identity."""

    type: str | None = None


class LinearActivation(Activation):
    """The identity."""


class ReluActivation(Activation):
    """max(x, 0)."""

    type = "relu"


class SigmoidActivation(Activation):
    """1 / (1 + exp(-x))."""

    type = "sigmoid"


class SoftmaxActivation(Activation):
    """exp(x_j) / sum_k exp(x_k)."""

    type = "softmax"


class TanhActivation(Activation):
    """tanh(x)."""

    type = "tanh"


def fc_layer(
    input: LayerLike | Sequence[LayerLike], size: int, act: Activation | None = None, name: str = "", **attributes: Any
) -> Layer:
    """A fully connected layer of one or several inputs. act: default TanhActivation(), as it was in 2016."""
    activation = (TanhActivation() if act is None else act).type
    own = {"size": size, **({} if activation is None else {"act": activation}), **attributes}
    return Layer("fc", as_layers(input), own, name)


def classification_cost(input: LayerLike, label: LayerLike, name: str = "") -> Layer:
    """Cross-entropy of probabilities [samples, classes], as SoftmaxActivation gives them, and a label."""
    return Layer("cross_entropy", as_layers([input, label]), {}, name)


def regression_cost(input: LayerLike, label: LayerLike, name: str = "") -> Layer:
    """The squared error, summed over the values of a sample."""
    return Layer("square_error", as_layers([input, label]), {}, name)
