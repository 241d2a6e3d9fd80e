"""The layouts of parameters of PyTorch and Keras. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenon.weights._topology import Part, Topology

Array = NDArray[Any]
Convert = Callable[[Topology, Part, Array, tuple[int, ...]], Array]


class Mismatch(Exception):
    """A tensor cannot have the layout that it should have."""


@dataclass(frozen=True)
class Framework:
    """How a framework names and stores parameters.

    layouts: {layer type: {its name: (ours, conversion)}}; ignored: names of what is no parameter of ours.
    """

    name: str
    separator: str
    layouts: Mapping[str, Mapping[str, tuple[str, Convert]]]
    ignored: frozenset[str] = frozenset()


def _need(values: Array, rank: int) -> Array:
    if values.ndim != rank:
        raise Mismatch(f"has {values.ndim} dimensions; {rank} are needed")
    return values


def _as_is(topology: Topology, part: Part, values: Array, shape: tuple[int, ...]) -> Array:
    return values


def _features(topology: Topology, part: Part, values: Array, shape: tuple[int, ...]) -> Array:
    """One number for each feature: of flattened images in the order of their channels."""
    columns = None
    if len(part.layer.shape) == 2 and values.shape == shape:
        columns = topology.columns_in(part.layer)
        columns = topology.columns_out(part.layer) if columns is None else columns
    return values if columns is None or len(columns) != len(values) else values[columns]


def _channels_last(topology: Topology, part: Part, values: Array, shape: tuple[int, ...]) -> Array:
    """PyTorch: [out, in / groups, kernel...]; transposed [in, out / groups, kernel...]."""
    return np.moveaxis(_need(values, len(shape)), 1, -1)


def _linear(topology: Topology, part: Part, values: Array, shape: tuple[int, ...]) -> Array:
    """PyTorch: [out, in], where flattened images have their channels first."""
    weight = _need(values, 2).T
    if weight.shape != shape:
        return weight
    columns, made = topology.columns_in(part.layer.inputs[0]), topology.columns_out(part.layer)
    weight = weight if columns is None else weight[columns]
    return weight if made is None else weight[:, made]


def _linear_bias(topology: Topology, part: Part, values: Array, shape: tuple[int, ...]) -> Array:
    made = topology.columns_out(part.layer)
    return values if made is None or values.shape != shape else values[made]


def _kernel(topology: Topology, part: Part, values: Array, shape: tuple[int, ...]) -> Array:
    """Keras: [kernel..., in / groups, out], and of depthwise convolutions [kernel..., in, multiplier]."""
    values = _need(values, len(shape))
    filters, inner = shape[0], shape[-1]
    own = values.shape[-2:]
    if own != (inner, filters) and inner == 1 and own[0] * own[1] == filters:
        return np.moveaxis(values.reshape(*values.shape[:-2], 1, filters), -1, 0)
    return np.moveaxis(values, -1, 0)


def _kernel_transposed(topology: Topology, part: Part, values: Array, shape: tuple[int, ...]) -> Array:
    """Keras: [kernel..., out, in]."""
    return np.moveaxis(_need(values, len(shape)), -1, 0)


def _slope(topology: Topology, part: Part, values: Array, shape: tuple[int, ...]) -> Array:
    """Keras: [1, 1, channels]."""
    return values.reshape(shape) if values.size == np.prod(shape, dtype=np.int64) else values


_SCALED: dict[str, tuple[str, Convert]] = {"weight": ("scale", _features), "bias": ("shift", _features)}
_WEIGHTED: dict[str, tuple[str, Convert]] = {"weight": ("weight", _channels_last), "bias": ("bias", _as_is)}
PYTORCH = Framework(
    "PyTorch",
    ".",
    {
        "conv": _WEIGHTED,
        "conv_transpose": _WEIGHTED,
        "fc": {"weight": ("weight", _linear), "bias": ("bias", _linear_bias)},
        "batch_norm": {**_SCALED, "running_mean": ("moving_mean", _features),
                       "running_var": ("moving_variance", _features)},
        "layer_norm": _SCALED,
        "group_norm": _SCALED,
        "instance_norm": _SCALED,
        "prelu": {"weight": ("slope", _features)},
        "embedding": {"weight": ("weight", _as_is)},
    },
    frozenset({"num_batches_tracked"}),
)  # fmt: skip

_GAMMA: dict[str, tuple[str, Convert]] = {"gamma": ("scale", _as_is), "beta": ("shift", _as_is)}
KERAS = Framework(
    "Keras",
    "/",
    {
        "conv": {"kernel": ("weight", _kernel), "depthwise_kernel": ("weight", _kernel), "bias": ("bias", _as_is)},
        "conv_transpose": {"kernel": ("weight", _kernel_transposed), "bias": ("bias", _as_is)},
        "fc": {"kernel": ("weight", _as_is), "bias": ("bias", _as_is)},
        "batch_norm": {
            **_GAMMA,
            "moving_mean": ("moving_mean", _as_is),
            "moving_variance": ("moving_variance", _as_is),
        },
        "layer_norm": _GAMMA,
        "group_norm": _GAMMA,
        "prelu": {"alpha": ("slope", _slope)},
        "embedding": {"embeddings": ("weight", _as_is)},
    },
)
