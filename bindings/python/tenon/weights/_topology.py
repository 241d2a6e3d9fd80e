"""What a conversion of weights must know of a topology. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenon._model import layer as layers
from tenon._model.layer import Layer

IMAGES = {"conv", "conv_transpose", "pool", "resize", "local_response_norm", "spatial_dropout", "simple_img_conv_pool",
          "img_conv_group", "residual_block"}  # fmt: skip
# Layers whose output has its elements where the first input has them.
_KEEPING = {"relu", "leaky_relu", "elu", "sigmoid", "tanh", "softplus", "silu", "gelu", "mish", "selu", "celu", "softsign",
            "log_sigmoid", "scaled_tanh", "tanh_shrink", "prelu", "relu6", "hard_tanh", "clip", "hard_sigmoid", "hard_swish",
            "soft_shrink", "hard_shrink", "threshold", "exp", "log", "square", "sqrt", "abs", "power", "dropout",
            "batch_norm", "scale_shift", "add", "sub", "mul", "div", "maximum", "minimum"}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """A layer with parameters, or one of those that a block stands for. parameters: {last part of the name: name}."""

    name: str
    type: str
    layer: Layer
    parameters: dict[str, str]


def parts(order: Sequence[Layer]) -> list[Part]:
    """Returns the layers that have parameters, in order; those that share them once."""
    found: dict[str, Part] = {}
    for layer in order:
        for each in layer.parameters:
            prefix, _, last = each["name"].rpartition(".")
            part = found.setdefault(prefix, Part(prefix, _type(layer, prefix), layer, {}))
            part.parameters[last] = each["name"]
    return list(found.values())


def _type(layer: Layer, prefix: str) -> str:
    """Returns the type of the layer that has parameters of a prefix, within a block or not."""
    inner = prefix.rpartition(".")[2]
    if layer.type in ("img_conv_group", "residual_block"):
        return "conv" if inner.startswith("conv_") else "batch_norm"
    if layer.type == "simple_img_conv_pool":
        return "conv"
    return "fc" if layer.type in ("softmax", "log_softmax") else layer.type


class Topology:
    """The layers that outputs depend on, and where their vectors were images or become some."""

    def __init__(self, outputs: Sequence[Layer]) -> None:
        self.order = layers.in_order(outputs)
        self._readers: dict[str, list[Layer]] = {}
        for layer in self.order:
            for each in layer.inputs:
                self._readers.setdefault(each.name, []).append(layer)

    def columns_in(self, layer: Layer) -> NDArray[np.int64] | None:
        """Returns, for each element of the output flattened with channels last, its number where channels are first; None
        where the output is not of images."""
        sizes = _sizes(layer)
        if len(sizes) > 1:
            return _last_of_first(sizes) if len(sizes) > 2 or _of_images(layer) else None
        inputs = layer.inputs
        if layer.type == "concat" and all(len(_sizes(each)) == 1 for each in inputs):
            return self._concatenated(inputs)
        if layer.type == "reshape" or (layer.type in _KEEPING and _sizes(inputs[0]) == sizes):
            return self.columns_in(inputs[0])
        return None

    def _concatenated(self, inputs: Sequence[Layer]) -> NDArray[np.int64] | None:
        found, start, moved = [], 0, False
        for each in inputs:
            count, own = math.prod(_sizes(each)), self.columns_in(each)
            found.append(start + (np.arange(count) if own is None else own))
            start, moved = start + count, moved or own is not None
        return np.concatenate(found) if moved else None

    def columns_out(self, layer: Layer) -> NDArray[np.int64] | None:
        """Returns the same for a vector that is reshaped to images, which layers of images read; None for others."""
        if len(_sizes(layer)) != 1:
            return None
        for reader in self._readers.get(layer.name, []):
            sizes = _sizes(reader)
            if reader.type == "reshape" and len(sizes) > 1:
                return _last_of_first(sizes) if self._is_image(reader) else None
            if reader.type in _KEEPING and sizes == _sizes(layer):
                found = self.columns_out(reader)
                if found is not None:
                    return found
        return None

    def _is_image(self, layer: Layer) -> bool:
        readers = self._readers.get(layer.name, [])
        return any(each.type in IMAGES or (each.type in _KEEPING and self._is_image(each)) for each in readers)


def _sizes(layer: Layer) -> tuple[int, ...]:
    return tuple(int(size) for size in layer.shape[1:] if isinstance(size, int))


def _last_of_first(sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """Returns for each element of [space..., channels] its number in [channels, space...]."""
    numbers = np.arange(math.prod(sizes), dtype=np.int64).reshape(sizes[-1], *sizes[:-1])
    return np.moveaxis(numbers, 0, -1).ravel()


def _of_images(layer: Layer) -> bool:
    """Returns whether [samples, length, channels] is an image of one dimension, and not rows of features."""
    while layer.type not in IMAGES:
        if layer.type not in _KEEPING or not layer.inputs:
            return False
        layer = layer.inputs[0]
    return True
