"""Events of a training, which its handler receives.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import enum
import math
from typing import Any

from tenon import _core
from tenon._base import check as _check
from tenon._run.machine import Machine


class Reason(enum.IntEnum):
    """Why a training ended."""

    NONE = 0  # it has not
    PASSES = 1  # all passes are done
    HANDLER = 2  # a handler called stop()
    CANCEL = 3  # the library was asked to cancel
    EARLY_STOP = 4  # no improvement for `patience` measurements


class Event:
    """The base of all events.

    pass_id, batch_id: from 0; samples: in the minibatch, or in the pass so far; cost: mean over samples; costs:
    each of two or more by name, as in Result; metrics: by name; seconds: since the pass began; learning_rate: before
    the schedule; scheduled_rate: after it; reason: of EndTraining, a Reason; skipped: steps so far that were not
    updated, since gradients were not finite (see compute in SGD.train). Cost and metrics of a pass or a test without
    samples are nan. changes: of BeginTraining, what Checkpoint.resume_with lets differ from the checkpoint, one
    difference in each line. best: with best= of SGD.train, (value, passes, minibatches of the next pass) of the best
    measurement before this event; None before the first one. repeated, torn: in the bounded mode (staleness= of
    SGD.train), minibatches of lost processes so far that others have computed again, and of these the ones of which
    some servers had applied the gradients before.
    """

    __slots__ = ("_live", "batch_id", "best", "changes", "checkpoint", "cost", "costs", "learning_rate", "metrics", "pass_id",
                 "reason", "repeated", "samples", "scheduled_rate", "seconds", "skipped", "torn")  # fmt: skip

    def __init__(self, live: Any) -> None:
        self._live = live
        (_, self.pass_id, self.batch_id, self.samples, self.cost, self.metrics, self.seconds, self.learning_rate,
         self.scheduled_rate, self.checkpoint, self.reason, self.skipped, self.costs, self.changes,
         self.best, self.repeated, self.torn) = live.read()  # fmt: skip
        if self.reason:
            self.reason = Reason(self.reason)
        if not self.samples and isinstance(self, (EndPass, Test, EndTraining)):
            self.cost, self.costs, self.metrics = unmeasured(self.costs, self.metrics)

    @property
    def machine(self) -> Machine:
        """The machine that trains, for reading outputs and gradients inside the handler."""
        return Machine(self._live.machine())

    @property
    def gm(self) -> Machine:
        """The same as machine."""
        return self.machine

    def stop(self) -> None:
        """Ends the training after this event."""
        self._live.stop()

    def set_learning_rate(self, rate: float) -> None:
        """Changes the learning rate from the next update on."""
        self._live.set_learning_rate(_check.number(rate, "learning_rate", "event"))

    def __repr__(self) -> str:
        metrics = "".join(f", {name}={value:.6g}" for name, value in {**self.costs, **self.metrics}.items())
        return f"{type(self).__name__}(pass_id={self.pass_id}, batch_id={self.batch_id}, cost={self.cost:.6g}{metrics})"


def unmeasured(costs: dict[str, float], metrics: dict[str, float]) -> tuple[float, dict[str, float], dict[str, float]]:
    """Returns cost, costs and metrics over no samples: nan."""
    return math.nan, dict.fromkeys(costs, math.nan), dict.fromkeys(metrics, math.nan)


class BeginTraining(Event):
    """The training begins."""


class EndTraining(Event):
    """The training ended."""


class BeginPass(Event):
    """A pass over the data begins."""


class EndPass(Event):
    """The reader ended a pass: cost and metrics are those of the pass."""


class BeginIteration(Event):
    """A minibatch is about to be computed."""


class EndIteration(Event):
    """A minibatch was computed and the parameters updated: cost and metrics are those of the minibatch."""


class Checkpoint(Event):
    """A checkpoint was written to the file `checkpoint`."""


class Test(Event):
    """The data of test= was measured: cost and metrics are those of the test."""


_KINDS = {
    _core.BEGIN_TRAINING: BeginTraining,
    _core.END_TRAINING: EndTraining,
    _core.BEGIN_PASS: BeginPass,
    _core.END_PASS: EndPass,
    _core.BEGIN_ITERATION: BeginIteration,
    _core.END_ITERATION: EndIteration,
    _core.CHECKPOINT: Checkpoint,
    _core.TEST: Test,
}


def of(live: Any) -> Event:
    """Returns the event of the library's."""
    return _KINDS[live.kind()](live)
