"""The layers that plugins offer, as functions: tenon.layer.fc(x, size=10).

Each function has the signature, the defaults and the description that the manifest of its plugin gives. Inputs are
layers, or names of data layers. Beside its own attributes each layer takes: name; parameter_name, by which layers share
parameters; act, an activation; drop_rate; coefficient, of costs; param, options of parameters by name, such as
param={"weight": {"l2": 1e-4}}.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenon import _functions, _host
from tenon._layer import Data, Layer, LayerLike, as_layer
from tenon.data_type import DataType

__all__ = ["Layer", "data", "input"]


def data(name: str, type: DataType | None = None) -> Layer:
    """A data layer: an input of the topology called `name`. Without a type it gets that of a reader's slot."""
    return Data(name, type)


def input(name: str, type: DataType | None = None) -> Layer:
    """The same as data."""
    return Data(name, type)


if TYPE_CHECKING:  # the functions of the plugins in the build, by stubs.py
    from tenon import _layers
    from tenon._layers import *

    __all__ += _layers.__all__
else:

    def __getattr__(name: str) -> Any:
        return _functions.attribute("layer", name, make)


def __dir__() -> list[str]:
    return sorted({*__all__, *_host.host().names("layer")})


def make(type: str, inputs: list[LayerLike | None], attributes: dict[str, Any], name: str) -> Layer:
    """Makes a layer of any type."""
    return Layer(type, [None if each is None else as_layer(each) for each in inputs], attributes, name)
