"""Kinds of pooling of Paddle v2, objects: pooling_type=paddle.pooling.Max().

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import builtins

from tenon.v2._refused import refuse


class Base:
    """A kind of pooling. over_time: the kind of sequence_pool; over_image: that of pool, "" if it has none."""

    over_time = over_image = ""


def _of(name: str, over_time: str, over_image: str) -> builtins.type[Base]:
    return builtins.type(name, (Base,), {"over_time": over_time, "over_image": over_image})


Avg = CudnnAvg = _of("Avg", "mean", "average")
Max = CudnnMax = _of("Max", "max", "max")
SquareRootN = _of("SquareRootN", "sqrt_n", "")
Sum = _of("Sum", "sum", "sum")

__getattr__ = refuse(__name__, globals())
