"""Handlers of events that many trainings need: tenon.train(..., event_handler=[Progress(), CSVLog("log.csv")]).

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import csv
import math
import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from tenon import error, event
from tenon._layer import LayerLike
from tenon.parameters import ParameterSet

__all__ = ["BestModel", "CSVLog", "EarlyStop", "Progress"]


def _value(happened: event.Event, metric: str) -> float:
    """Returns the cost or a metric of an event."""
    if metric == "cost":
        return float(happened.cost)
    if metric not in happened.metrics:
        known = ["cost", *happened.metrics]
        raise error.NotFoundError(
            f'the training has no metric "{metric}"; it has {", ".join(known)}{error.suggestion(metric, known)}',
            "callbacks",
            metric,
        )
    return float(happened.metrics[metric])


class _Best:
    """The best value so far. Measured by tests where the training has them (test=), else by passes."""

    def __init__(self, metric: str, highest: bool | None, min_delta: float) -> None:
        self.metric = metric
        self.highest = metric != "cost" if highest is None else highest
        self.min_delta = min_delta
        self.value = math.nan
        self.tested = False

    def improves(self, happened: event.Event) -> bool | None:
        """Returns whether a measurement is the best one; None for events that are none."""
        if isinstance(happened, event.BeginTraining):
            self.value, self.tested = math.nan, False
        if isinstance(happened, event.Test):
            self.tested = True
        elif not isinstance(happened, event.EndPass) or self.tested:
            return None
        found = _value(happened, self.metric)
        gain = found - self.value if self.highest else self.value - found
        if not math.isnan(self.value) and not gain > self.min_delta:
            return False
        self.value = found
        return True


class EarlyStop:
    """Ends the training after `patience` measurements without an improvement by more than min_delta.

    metric: "cost" or a metric; highest: whether the best value is the highest, default for metrics. A measurement is a
    test of the training (test=), or, without tests, a pass.
    """

    def __init__(
        self, metric: str = "cost", patience: int = 1, min_delta: float = 0.0, highest: bool | None = None
    ) -> None:
        if patience < 1:
            raise error.InvalidError(f"patience is {patience}; expected at least 1", "callbacks", "patience")
        self.best = _Best(metric, highest, min_delta)
        self.patience = patience
        self.waited = 0

    def __call__(self, happened: event.Event) -> None:
        improves = self.best.improves(happened)
        if isinstance(happened, event.BeginTraining) or improves:
            self.waited = 0
        elif improves is False:
            self.waited += 1
            if self.waited >= self.patience:
                happened.stop()


class BestModel:
    """Saves the model after each measurement that is the best one so far; the file is replaced at once.

    metric, highest: as in EarlyStop. outputs: the topology to save, default that of the set.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        parameters: ParameterSet,
        outputs: LayerLike | Iterable[LayerLike] | None = None,
        metric: str = "cost",
        highest: bool | None = None,
    ) -> None:
        self.path = os.fspath(path)
        self.parameters = parameters
        self.outputs = outputs
        self.best = _Best(metric, highest, 0.0)

    def __call__(self, happened: event.Event) -> None:
        if self.best.improves(happened):
            self.parameters.save(self.path, self.outputs)


class CSVLog:
    """Writes a line for each pass and each test: event, pass, cost, seconds and metrics, with a head line.

    append: continues a file, such as that of a training that is resumed.
    """

    def __init__(self, path: str | os.PathLike[str], append: bool = False) -> None:
        self.path = os.fspath(path)
        self.append = append
        self._columns: list[str] = []

    def __call__(self, happened: event.Event) -> None:
        if isinstance(happened, event.BeginTraining):
            self._columns = []
        if not isinstance(happened, (event.EndPass, event.Test)):
            return
        first = not self._columns
        self._columns = self._columns or ["event", "pass", "cost", "seconds", *happened.metrics]
        fresh = first and not (self.append and os.path.exists(self.path))
        with open(self.path, "w" if fresh else "a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self._columns, extrasaction="ignore")
            if fresh:
                writer.writeheader()
            kind = "test" if isinstance(happened, event.Test) else "pass"
            row: dict[str, Any] = {"event": kind, "pass": happened.pass_id, "cost": happened.cost}
            writer.writerow({**row, "seconds": f"{happened.seconds:.3f}", **happened.metrics})


class Progress:
    """Writes a line for each pass and test, and in a terminal the state of the pass ten times a second at most.

    file: default standard error.
    """

    def __init__(self, file: TextIO | None = None) -> None:
        self.file = sys.stderr if file is None else file
        self._shown = -1.0

    def __call__(self, happened: event.Event) -> None:
        metrics = "".join(f"  {name} {value:.4f}" for name, value in happened.metrics.items())
        text = f"pass {happened.pass_id + 1}  cost {happened.cost:.4f}{metrics}"
        if isinstance(happened, event.EndPass):
            self._write(f"{text}  {happened.seconds:.1f} s", "\n")
            self._shown = -1.0
        elif isinstance(happened, event.Test):
            self._write(f"test {text}", "\n")
        elif isinstance(happened, event.EndIteration) and self.file.isatty():
            if happened.seconds - self._shown >= 0.1:
                self._shown = happened.seconds
                self._write(f"{text}  batch {happened.batch_id + 1}", "")

    def _write(self, text: str, end: str) -> None:
        begin = "\r\x1b[K" if self.file.isatty() else ""
        self.file.write(begin + text + end)
        self.file.flush()
