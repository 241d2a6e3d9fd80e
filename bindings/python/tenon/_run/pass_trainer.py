"""The trainer of a network in this process, pass by pass. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenon import event, trainer, updater

if TYPE_CHECKING:
    from tenon._run.network import Network


class LocalTrainer:
    """Trains and tests a network pass by pass. The state of the updater is kept between passes."""

    def __init__(self, network: Network, options: dict[str, Any]) -> None:
        """options: of tenon.train."""
        self.network = network
        self.passes = 0
        self.options = options
        self._sgd = trainer.SGD()

    def withSGDOptimizer(
        self, learning_rate: float = 0.01, batch_size: int = trainer.BATCH, momentum: float = 0.0
    ) -> LocalTrainer:
        """Trains by stochastic gradient descent. Returns this trainer."""
        return self.withOptimizer(updater.make("sgd", {"learning_rate": learning_rate, "momentum": momentum}), batch_size)

    def withOptimizer(self, optimizer: Any, batch_size: int = trainer.BATCH) -> LocalTrainer:
        """Trains with any updater. Returns this trainer."""
        self._sgd = trainer.SGD(optimizer, batch_size)
        return self

    def trainOnePass(self, event_handler: Any = None) -> trainer.Result:
        """Trains one pass over train_data, in an order of its own. Returns cost and metrics of the pass."""
        result = self.train_pass(event_handler)
        assert result is not None  # this process gets the events
        return result

    def train_pass(self, event_handler: Any) -> trainer.Result | None:
        """The same; None in a process of a team that gets no events."""
        ends: list[event.EndTraining] = []

        def keep(each: event.Event) -> None:
            if isinstance(each, event.EndTraining):
                ends.append(each)

        handlers = [] if event_handler is None else [event_handler]
        network = self.network
        self._sgd.train(network.outputs, network.parameters, network.data("train_data", self.passes), [keep, *handlers],
                        **self.options)  # fmt: skip
        self.passes += 1
        return next((trainer.Result(end.cost, end.metrics, end.samples, end.seconds, end.costs) for end in ends), None)

    def testOnePass(self) -> trainer.Result:
        """Measures cost and metrics over test_data."""
        network = self.network
        where = {name: self.options[name] for name in ("device", "shards")}
        return self._sgd.test(network.outputs, network.parameters, network.data("test_data"), **where)
