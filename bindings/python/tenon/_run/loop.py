"""The training loop of updaters written in Python; those of plugins train inside the library.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tenon import _core, error
from tenon._base import arrays as _arrays
from tenon._model.layer import Layer
from tenon.event import unmeasured
from tenon.gradient_machine import GradientMachine
from tenon.parameters import ParameterSet

OPTIONS = {"passes", "pass_batches", "seed"}  # those that are numbers
_PASSES, _HANDLER, _EARLY = 1, 2, 4  # the reasons of EndTraining


class Stream:
    """An opened reader of minibatches, by data layer. feeding: (slot, data layer) where the names differ."""

    def __init__(self, core: Any, feeding: Sequence[tuple[str, str]]) -> None:
        renamed = dict(feeding)
        self._core = core
        self._names = [renamed.get(slot["name"], slot["name"]) for slot in core.slots()]
        self.samples = int(json.loads(core.describe())["batch"])  # the most of a minibatch

    def next(self) -> dict[str, Any] | None:
        """Returns a minibatch; None at the end of a pass."""
        values = self._core.next()
        return None if values is None else dict(zip(self._names, map(_arrays.from_core, values), strict=True))


@dataclass
class _State:
    """Where a training is: what its events tell."""

    pass_id: int = 0
    batch_id: int = 0
    samples: int = 0
    cost: float = 0.0
    metrics: dict[str, float] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter)
    seconds: float | None = None  # of a test
    reason: int = 0
    costs: dict[str, float] = field(default_factory=dict)


class _Live:
    """What tenon.event.of takes: an event while its handlers run."""

    def __init__(self, kind: int, state: _State, updater: Any, machine: GradientMachine) -> None:
        self._kind, self._state, self._updater, self._machine = kind, state, updater, machine
        self._over = self.stopped = False

    def kind(self) -> int:
        return self._kind

    def read(self) -> tuple[Any, ...]:
        state, rate = self._state, float(getattr(self._updater, "learning_rate", 0.0))
        seconds = time.perf_counter() - state.began if state.seconds is None else state.seconds
        return (self._kind, state.pass_id, state.batch_id, state.samples, state.cost, state.metrics, seconds, rate,
                rate, "", state.reason, 0, state.costs)  # fmt: skip

    def machine(self) -> Any:
        self._check()
        return self._machine.core

    def stop(self) -> None:
        self._check()
        self.stopped = True

    def set_learning_rate(self, rate: float) -> None:
        self._check()
        self._updater.set_learning_rate(rate)

    def end(self) -> None:
        self._over = True

    def _check(self) -> None:
        if self._over:
            raise error.MisuseError("the event is over; its machine, stop() and learning rate belong to its handler")


class _Stopped(Exception):
    """A handler called stop(), or early stopping did."""

    reason = _HANDLER


class _Early:
    """Early stopping, as tn_early_stop_options defines it."""

    def __init__(self, metric: str, patience: int, min_delta: float, best_is_highest: bool) -> None:
        self._metric, self._patience, self._min_delta = metric, patience, min_delta
        self._sign = 1 if best_is_highest else -1
        self._best, self._misses = -math.inf, 0

    def measure(self, state: _State) -> None:
        """Takes a measurement; raises _Stopped after too many without an improvement."""
        values = {"cost": state.cost, **state.costs, **state.metrics}
        if self._metric not in values:
            raise error.NotFoundError(
                f'early_stop: the training has no metric "{self._metric}"; it has {", ".join(values)}'
                f"{error.suggestion(self._metric, values)}",
                "train",
                self._metric,
            )
        value = self._sign * values[self._metric]
        if math.isfinite(value) and value > self._best + (self._min_delta if math.isfinite(self._best) else 0):
            self._best, self._misses = value, 0
            return
        self._misses += 1
        if self._misses >= self._patience:
            stopped = _Stopped()
            stopped.reason = _EARLY
            raise stopped


class _Training:
    """The events of a training, whose handlers see its state, and its minibatches."""

    def __init__(
        self,
        updater: Any,
        machine: GradientMachine,
        stream: Stream,
        handle: Callable[[Any], None] | None,
        spoilt: Callable[[int, int, float], None],
    ) -> None:
        self._updater, self._machine, self._stream, self._handle = updater, machine, stream, handle
        self._spoilt: Callable[[int, int, float], None] | None = spoilt  # None after its call
        self._total = _core.Metrics(machine.prepare())  # cost and metrics of the pass
        self.state = _State()

    def emit(self, kind: int, state: _State) -> None:
        """Calls the handlers; raises _Stopped if one of them called stop()."""
        if self._handle is None:
            return
        live = _Live(kind, state, self._updater, self._machine)
        try:
            self._handle(live)
        finally:
            live.end()
        if live.stopped:
            raise _Stopped

    def minibatches(self, pass_batches: int) -> Iterator[dict[str, Any]]:
        """The minibatches of a pass of the training."""
        count, empty = 0, False
        while not pass_batches or count < pass_batches:
            values = self._stream.next()
            if values is not None:
                count, empty = count + 1, False
                yield values
            elif not pass_batches or empty:
                return
            else:
                empty = True

    def whole_pass(self, batch_id: int) -> _State:
        """Returns the state of the pass after batch_id minibatches."""
        cost, samples, metrics, costs = self._total.read()
        if not samples:
            cost, costs, metrics = unmeasured(costs, metrics)
        return _State(self.state.pass_id, batch_id, samples, cost, metrics, self.state.began, costs=costs)

    def run_pass(self, pass_id: int, pass_batches: int) -> None:
        """Updates with each minibatch of a pass."""
        machine, self.state = self._machine, _State(pass_id)
        machine.reset_carried()
        self._total.flush()
        self.emit(_core.BEGIN_PASS, self.state)
        for batch_id, values in enumerate(self.minibatches(pass_batches)):
            self.emit(_core.BEGIN_ITERATION, _State(pass_id, batch_id, began=self.state.began))
            machine.feed(values)
            self._updater.update(machine)
            self._total.append(machine.core)
            self.state = self.whole_pass(batch_id + 1)
            if self._spoilt is not None and not math.isfinite(machine.cost):
                spoilt, self._spoilt = self._spoilt, None
                spoilt(pass_id, batch_id, machine.cost)
            self.emit(_core.END_ITERATION, _State(pass_id, batch_id, machine.samples, machine.cost, machine.metrics,
                                                  self.state.began, costs=machine.costs))  # fmt: skip
        self.state = self.whole_pass(self.state.batch_id)
        self.emit(_core.END_PASS, self.state)

    def measure(self, test: Callable[[], Any] | None) -> _State:
        """Returns what a test measures after a pass; without one, the pass itself."""
        if test is None:
            return self.state
        result = test()
        measured = _State(self.state.pass_id, self.state.batch_id, result.samples, result.cost, result.metrics,
                          seconds=result.seconds, costs=result.costs)  # fmt: skip
        self.emit(_core.TEST, measured)
        return measured

    def end(self) -> None:
        """Emits the last event; what a handler of it stops has ended already."""
        reason = self.state.reason
        ended = self.whole_pass(self.state.batch_id)
        ended.reason = reason
        with contextlib.suppress(_Stopped):
            self.emit(_core.END_TRAINING, ended)


def train(
    updater: Any,
    outputs: Sequence[Layer],
    parameters: ParameterSet,
    stream: Stream,
    handle: Callable[[Any], None] | None,
    *,
    passes: int,
    pass_batches: int,
    immutable: Sequence[str],
    test: Callable[[], Any] | None,
    early_stop: Mapping[str, Any] | None,
    seed: int,
    devices: Sequence[str],
    nan: bool,
    spoilt: Callable[[int, int, float], None],
) -> None:
    """Trains like the library: the same events in the same order, with the same numbers.

    updater: has update(machine). handle: is given the live event of each event. test: measures after each pass.
    nan: whether floats may be NaN; spoilt: is called at the first minibatch whose cost is not finite.
    """
    options = {"training": True, "max_samples": stream.samples, "seed": seed, "devices": list(devices),
               "immutable": list(immutable)}  # fmt: skip
    early = None if early_stop is None else _Early(**early_stop)
    machine = GradientMachine(outputs, parameters, None, options, nan=nan)
    training = _Training(updater, machine, stream, handle, spoilt)
    try:
        training.emit(_core.BEGIN_TRAINING, training.state)
        for pass_id in range(passes):
            training.run_pass(pass_id, pass_batches)
            measured = training.measure(test)
            if early is not None:
                early.measure(measured)
        training.state.reason = _PASSES
    except _Stopped as stopped:
        training.state.reason = stopped.reason
    training.end()
