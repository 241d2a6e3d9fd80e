"""Activations of Paddle v2, objects: act=paddle.activation.Relu().

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import builtins
from typing import Any

from tenon.v2._refused import refuse


class Base:
    """An activation. type: of the layer that computes it, "" for the identity; attributes: of that layer."""

    type = ""
    attributes: dict[str, Any] = {}  # noqa: RUF012 (never changed)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _of(name: str, type: str, **attributes: Any) -> builtins.type[Base]:
    return builtins.type(name, (Base,), {"type": type, "attributes": attributes})


Linear = Identity = _of("Linear", "")
Abs = _of("Abs", "abs")
BRelu = _of("BRelu", "clip", low=0.0, high=24.0)
Exp = _of("Exp", "exp")
Log = _of("Log", "log")
Reciprocal = _of("Reciprocal", "reciprocal")
Relu = _of("Relu", "relu")
STanh = _of("STanh", "scaled_tanh")
SequenceSoftmax = _of("SequenceSoftmax", "sequence_softmax")
Sigmoid = _of("Sigmoid", "sigmoid")
SoftRelu = _of("SoftRelu", "softplus")
SoftSign = _of("SoftSign", "softsign")
Softmax = _of("Softmax", "softmax")
Sqrt = _of("Sqrt", "sqrt")
Square = _of("Square", "square")
Tanh = _of("Tanh", "tanh")

__getattr__ = refuse(__name__, globals())
