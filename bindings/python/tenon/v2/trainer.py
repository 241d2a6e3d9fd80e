"""The trainer of Paddle v2: paddle.trainer.SGD(cost=, parameters=, update_equation=).

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenon import error, event
from tenon import parameters as _parameters
from tenon import trainer as _trainer
from tenon._base import check as _check
from tenon._model import layer as _layer
from tenon.trainer import Result
from tenon.v2._refused import refuse
from tenon.v2.inference import places_of
from tenon.v2.optimizer import Optimizer
from tenon.v2.parameters import Parameters
from tenon.v2.reader import Batches
from tenon.v2.topology import Topology

_HANDLED = (event.BeginPass, event.EndPass, event.BeginIteration, event.EndIteration)


class SGD:
    """Trains parameters in minibatches, with the evaluators of the topology as metrics."""

    def __init__(
        self,
        cost: Any,
        parameters: Parameters,
        update_equation: Optimizer,
        extra_layers: Any = None,
        is_local: bool = True,
        pserver_spec: str | None = None,
        use_etcd: bool = True,
    ) -> None:
        """is_local: True alone; tenon.dist_train trains in several processes."""
        if not is_local:
            raise error.UnsupportedError(
                "trainer.SGD: is_local=False; tenon.dist_train trains in several processes", "trainer", "is_local"
            )
        self._topology = Topology(cost, extra_layers)
        self._equation = _check.instance(update_equation, Optimizer, "one of paddle.optimizer", "update_equation", "trainer")
        self._set = _check.instance(parameters, Parameters, "a set of parameters", "parameters", "trainer").of(
            self._topology.layers
        )
        self._averages = _parameters.create(self._topology.layers) if update_equation.average else None

    @property
    def __topology_in_proto__(self) -> Topology:
        return self._topology

    def train(
        self, reader: Batches, num_passes: int = 1, event_handler: Callable[[Any], Any] | None = None, feeding: Any = None
    ) -> None:
        """Trains for some passes. feeding: {data layer: place in the tuple}, or names in the order of the tuple."""
        batches = _check.instance(reader, Batches, "what paddle.batch returns", "reader", "train")
        average = self._equation.average
        options: dict[str, Any] = {}
        if average is not None:
            options["average"] = {"parameters": self._averages, **average.options}

        def handle(happened: Any) -> None:
            happened.metrics = self._named(happened.metrics)
            if event_handler is not None and isinstance(happened, _HANDLED):
                event_handler(happened)

        _trainer.train(self._topology.layers, self._set, batches.reader, handle, passes=num_passes,
                       batch_size=batches.batch_size, updater=self._equation.updater(batches.batch_size),
                       feeding=self._places(feeding), **options)  # fmt: skip

    def test(self, reader: Batches, feeding: Any = None) -> Result:
        """Measures cost and metrics over a pass."""
        batches = _check.instance(reader, Batches, "what paddle.batch returns", "reader", "test")
        values = self._averages or self._set
        result = _trainer.test(self._topology.layers, values, batches.reader, batch_size=batches.batch_size,
                               feeding=self._places(feeding))  # fmt: skip
        result.metrics = self._named(result.metrics)
        return result

    def save_parameter_to_tar(self, f: Any) -> None:
        """Writes the parameters; with a model_average the averages."""
        Parameters(self._averages or self._set).to_tar(f)

    def _named(self, metrics: dict[str, float]) -> dict[str, float]:
        """Returns metrics under the names of their evaluators; further values of one keep theirs."""
        evaluators = [each for each in self._topology.layers if each.role == "metric"]
        names = {key: each.name for each in evaluators for key in (each.type, f"{each.name}.{each.type}")}
        return {names.get(key, key): value for key, value in metrics.items()}

    def _places(self, feeding: Any) -> dict[str, int]:
        return places_of(feeding or dict.fromkeys(_layer.data_types(self._topology.layers)))


__getattr__ = refuse(__name__, globals())
