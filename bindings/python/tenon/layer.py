"""The layers that plugins offer, as functions: tenon.layer.fc(x, size=10).

Each function has the signature, the defaults and the description that the manifest of its plugin gives. Inputs are
layers, or names of data layers. Beside its own attributes each layer takes: name; parameter_name, by which layers share
parameters; act, an activation; drop_rate; coefficient, of costs; param, options of parameters by name, such as
param={"weight": {"decay_multiplier": 0.5}}; an unknown option is an error that lists those known.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenon._base import functions as _functions
from tenon._base import host as _host
from tenon._model.kernels import Kernel, Parameter, Shape
from tenon._model.layer import Data, Layer, LayerLike, as_layer
from tenon._model.operators import OF_NUMBERS, is_number
from tenon.data_type import DataType

__all__ = ["Base", "Layer", "Parameter", "Shape", "data", "input"]


class Base(Kernel):
    """The base of layers written in Python: derive from it, and define forward and, for trainings, backward.

        class Swish(tenon.layer.Base):
            def __init__(self, beta: float = 1.0) -> None:
                self.beta = beta

            def forward(self, x):
                return x / (1 + np.exp(-self.beta * x))

            def backward(self, gradient, x):
                s = 1 / (1 + np.exp(-self.beta * x))
                return gradient * s * (1 + self.beta * x * (1 - s))

        hidden = Swish(beta=2)(tenon.layer.fc(pixel, size=128))

    forward takes the inputs, of which those with the default None may be absent (*inputs: one or more), and the
    `parameters` of the class, if it lists any. The arrays are of all samples of a minibatch; those of floats are
    float32, or float64 in check_gradient. They belong to the layer, which may change or keep them. Of sequences they
    are the rows; an argument with the annotation tenon.Ragged gets that. forward returns an array, or one for each of
    the `outputs` that the class lists. self.training tells whether the machine trains.

    backward takes by name what it needs of: gradient, of the output (a tuple for several); inputs; parameters; outputs
    ("output" for one). It returns the gradients of what forward takes, in that order, None where there is none.

    shape takes the shapes of the inputs, and returns that of the output, or a list of shapes for several outputs. A
    shape is a tuple of numbers and of texts for dimensions that vary: "samples" first. Without it the output has the
    shape of the first input, that of a cost is ("samples",). initial_parameters takes the same, and returns a
    tenon.layer.Parameter for each of the `parameters`, a dict, and for each of the `buffers`: values that forward takes
    and returns anew after the outputs, and that are kept with the model but not learned.

    The arguments of __init__ are kept by models: bool, int, float, str, or lists of one of the last three. The library
    makes objects of its own from them. role = "cost": the output has one value for each sample.
    """


def data(name: str, type: DataType | None = None) -> Layer:
    """A data layer: an input of the topology called `name`. Without a type it gets that of a reader's slot."""
    return Data(name, type)


def input(name: str, type: DataType | None = None) -> Layer:
    """The same as data."""
    return Data(name, type)


if TYPE_CHECKING:  # the functions of the plugins in the build, by stubs.py
    from tenon import _layers
    from tenon._layers import *  # noqa: F403 (they list their names)

    __all__ += _layers.__all__
else:

    def __getattr__(name: str) -> Any:
        return _functions.attribute("layer", name, make)


def __dir__() -> list[str]:
    return sorted({*__all__, *_host.host().names("layer")})


def make(type: str, inputs: list[LayerLike | None], attributes: dict[str, Any], name: str) -> Layer:
    """Makes a layer of any type."""
    like = next((each for each in inputs if isinstance(each, Layer)), None)
    if type in OF_NUMBERS and like is not None:
        inputs = [_constant(like, each) if is_number(each) or hasattr(each, "__array__") else each for each in inputs]
    return Layer(type, [None if each is None else as_layer(each) for each in inputs], attributes, name)


def _constant(like: Layer, value: Any) -> Layer:
    """Returns a layer of numbers that are the same for each sample."""
    numbers = np.asarray(value, float)
    return Layer("constant", [like], {"shape": list(numbers.shape), "value": numbers.ravel().tolist()})
