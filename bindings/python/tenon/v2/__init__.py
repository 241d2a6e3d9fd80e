"""The programming interface of Paddle v2 (2017): import tenon.v2 as paddle.

    import tenon.v2 as paddle

    paddle.init(use_gpu=False, trainer_count=1)
    x = paddle.layer.data(name="x", type=paddle.data_type.dense_vector(13))
    y = paddle.layer.data(name="y", type=paddle.data_type.dense_vector(1))
    price = paddle.layer.fc(input=x, size=1, act=paddle.activation.Linear())
    cost = paddle.layer.square_error_cost(input=price, label=y)
    parameters = paddle.parameters.create(cost)
    trainer = paddle.trainer.SGD(cost=cost, parameters=parameters, update_equation=paddle.optimizer.Momentum(momentum=0))
    trainer.train(reader=paddle.batch(reader, batch_size=2), num_passes=30)

Names alone: what they make are layers, updaters and trainings of Tenon, with which they can be mixed. docs/paddle-v2.md has
what differs.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

from tenon import data_type, error, plot
from tenon._base import check as _check
from tenon._base.host import Host, use
from tenon.v2 import (
    _make,
    activation,
    attr,
    dataset,
    evaluator,
    event,
    inference,
    layer,
    networks,
    optimizer,
    parameters,
    pooling,
    reader,
    topology,
    trainer,
)
from tenon.v2._refused import refuse
from tenon.v2.inference import infer
from tenon.v2.reader import batch

__all__ = ["activation", "attr", "batch", "data_type", "dataset", "evaluator", "event", "infer", "inference", "init", "layer",
           "networks", "optimizer", "parameters", "plot", "pooling", "reader", "topology", "trainer"]  # fmt: skip


def init(use_gpu: bool = False, trainer_count: int = 1, seed: int = 0, **flags: Any) -> None:
    """Begins anew: automatic names count from 0. trainer_count: threads. seed: of the first values. Other flags, such as
    log_period, have no effect."""
    if use_gpu:
        raise error.UnsupportedError("init: use_gpu=True; device= of tenon.train chooses devices", "init", "use_gpu")
    use(Host(threads=_check.whole(trainer_count, "trainer_count", "init", 1)))
    _make.seed.set(_check.seed(seed, "init"))


__getattr__ = refuse(__name__, globals())
