"""Handlers of events that many trainings need: tenon.train(..., event_handler=[Progress(), CSVLog("log.csv")]).

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import csv
import html
import importlib
import math
import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from numpy.typing import NDArray

from tenon import error, event
from tenon._base import check as _check
from tenon._model.layer import LayerLike
from tenon._run.event_file import EventFile
from tenon._run.notebook import is_notebook
from tenon.parameters import ParameterSet

__all__ = ["BestModel", "CSVLog", "EarlyStop", "Progress", "TensorBoard"]


def _value(happened: event.Event, metric: str) -> float:
    """Returns the cost, one of several costs, or a metric of an event."""
    values = {"cost": happened.cost, **happened.costs, **happened.metrics}
    if metric not in values:
        known = list(values)
        raise error.NotFoundError(
            f'the training has no metric "{metric}"; it has {", ".join(known)}{error.suggestion(metric, known)}',
            "callbacks",
            metric,
        )
    return float(values[metric])


def _shown(handler: object, **arguments: Any) -> str:
    """Returns the call that makes a handler."""
    words = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"{type(handler).__name__}({words})"


class _Best:
    """The best value so far. Measured by tests where the training has them (test=), else by passes."""

    def __init__(self, metric: str, highest: bool | None, min_delta: float) -> None:
        self.metric = _check.text(metric, "metric", "callbacks")
        self.highest = metric != "cost" if highest is None else highest
        self._by_name = highest is None
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
        if self._by_name and self.metric in happened.costs:
            self.highest = False
        if math.isnan(found):
            return False
        gain = found - self.value if self.highest else self.value - found
        if not math.isnan(self.value) and not gain > self.min_delta:
            return False
        self.value = found
        return True


class EarlyStop:
    """Ends the training after `patience` measurements without an improvement by more than min_delta.

    metric: "cost", one of several costs, or a metric; highest: whether the best value is the highest, default for
    metrics. A measurement is a test of the training (test=), or, without tests, a pass.
    """

    def __init__(
        self, metric: str = "cost", patience: int = 1, min_delta: float = 0.0, highest: bool | None = None
    ) -> None:
        self.best = _Best(metric, highest, _check.number(min_delta, "min_delta", "callbacks"))
        self.patience = _check.whole(patience, "patience", "callbacks", 1)
        self.waited = 0

    def __call__(self, happened: event.Event) -> None:
        improves = self.best.improves(happened)
        if isinstance(happened, event.BeginTraining) or improves:
            self.waited = 0
        elif improves is False:
            self.waited += 1
            if self.waited >= self.patience:
                happened.stop()

    def __repr__(self) -> str:
        best = self.best
        return _shown(
            self, metric=best.metric, patience=self.patience, min_delta=best.min_delta, highest=best.highest
        )


class BestModel:
    """Saves the model after each measurement that is the best one so far; the file is replaced at once.

    metric, highest: as in EarlyStop. outputs: the topology to save, default that of the set. restore: whether the set has the
    values of that measurement after the training, also one that EarlyStop or early_stop= ended, instead of the last ones.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        parameters: ParameterSet,
        outputs: LayerLike | Iterable[LayerLike] | None = None,
        metric: str = "cost",
        highest: bool | None = None,
        restore: bool = False,
    ) -> None:
        self.path = _check.path(path, "path", "callbacks")
        self.restore = restore
        self._values: dict[str, NDArray[Any]] = {}
        self.parameters = _check.instance(parameters, ParameterSet, "a set of parameters", "parameters", "callbacks")
        self.outputs = outputs
        self.best = _Best(metric, highest, 0.0)

    def __call__(self, happened: event.Event) -> None:
        if self.best.improves(happened):
            self.parameters.save(self.path, self.outputs)
            self._values = {name: self.parameters.read(name) for name in self.parameters} if self.restore else {}
        elif isinstance(happened, event.EndTraining):
            for name, values in self._values.items():
                self.parameters[name] = values
        if isinstance(happened, (event.BeginTraining, event.EndTraining)):
            self._values = {}

    def __repr__(self) -> str:
        restore = {"restore": True} if self.restore else {}
        return _shown(self, path=self.path, parameters=self.parameters, metric=self.best.metric, highest=self.best.highest,
                      **restore)  # fmt: skip


class CSVLog:
    """Writes a line for each pass and each test: event, pass, cost, seconds and metrics, with a head line.

    append: continues a file, such as that of a training that is resumed.
    """

    def __init__(self, path: str | os.PathLike[str], append: bool = False) -> None:
        self.path = _check.path(path, "path", "callbacks")
        self.append = append
        self._columns: list[str] = []

    def __call__(self, happened: event.Event) -> None:
        if isinstance(happened, event.BeginTraining):
            self._columns = []
        if not isinstance(happened, (event.EndPass, event.Test)):
            return
        first = not self._columns
        self._columns = self._columns or ["event", "pass", "cost", "seconds", *happened.costs, *happened.metrics]
        fresh = first and not (self.append and os.path.exists(self.path))
        mode = "w" if fresh else "a"
        to = _check.destination(self.path, "callbacks")
        with _check.files(self.path, "callbacks"), open(to, mode, newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self._columns, extrasaction="ignore")
            if fresh:
                writer.writeheader()
            kind = "test" if isinstance(happened, event.Test) else "pass"
            row: dict[str, Any] = {"event": kind, "pass": happened.pass_id, "cost": happened.cost}
            writer.writerow({**row, "seconds": f"{happened.seconds:.3f}", **happened.costs, **happened.metrics})

    def __repr__(self) -> str:
        return _shown(self, path=self.path, append=self.append)


class TensorBoard:
    """Writes event files for TensorBoard: costs and metrics of passes and tests, and those of minibatches.

    folder: of the files. Its folder `train` has those of passes and minibatches, `test` those of tests, so that
    TensorBoard shows both in one chart. The step of tags such as "cost" is the pass, from 1; that of "minibatch/cost" and
    "minibatch/learning_rate" the number of minibatches that this handler has seen. Each training writes new files.
    every_batches: writes every n-th minibatch; 0: none.
    """

    def __init__(self, folder: str | os.PathLike[str], every_batches: int = 0) -> None:
        self.folder = _check.path(folder, "folder", "callbacks")
        self.every_batches = _check.whole(every_batches, "every_batches", "callbacks")
        self._files: dict[str, EventFile] = {}
        self._batches = 0

    def __call__(self, happened: event.Event) -> None:
        if isinstance(happened, (event.BeginTraining, event.EndTraining)):
            for file in self._files.values():
                file.close()
            self._files = {}
        values = {"cost": happened.cost, **happened.costs, **happened.metrics}
        if isinstance(happened, (event.EndPass, event.Test)):
            kind = "test" if isinstance(happened, event.Test) else "train"
            self._file(kind).scalars(happened.pass_id + 1, values)
        elif isinstance(happened, event.EndIteration):
            self._batches += 1
            if self.every_batches and self._batches % self.every_batches == 0:
                values["learning_rate"] = happened.scheduled_rate
                self._file("train").scalars(self._batches, {f"minibatch/{name}": each for name, each in values.items()})

    def _file(self, kind: str) -> EventFile:
        if kind not in self._files:
            with _check.files(self.folder, "callbacks"):
                self._files[kind] = EventFile(os.path.join(self.folder, kind))
        return self._files[kind]

    def __repr__(self) -> str:
        return _shown(self, folder=self.folder, every_batches=self.every_batches)


class Progress:
    """Shows a line for each pass and test, and in a terminal or a notebook the state of the pass, ten times a second at
    most, with a bar from the second pass on, when the number of minibatches is known.

    file: default the cell of a notebook, elsewhere standard error.
    """

    def __init__(self, file: TextIO | None = None) -> None:
        self.file = sys.stderr if file is None else file
        self._cell: Any = None  # the display of a notebook, from the first line on
        self._in_notebook = file is None and is_notebook()
        self._lines: list[str] = []
        self._batch, self._batches = 0, 0  # of the pass, of the pass before
        self._shown = -1.0

    def __call__(self, happened: event.Event) -> None:
        values = {**happened.costs, **happened.metrics}
        metrics = "".join(f"  {name} {value:.4f}" for name, value in values.items())
        text = f"pass {happened.pass_id + 1}  cost {happened.cost:.4f}{metrics}"
        if isinstance(happened, event.BeginTraining):
            self._cell, self._lines, self._batches, self._shown = None, [], 0, -1.0
        elif isinstance(happened, event.EndPass):
            self._batches, self._shown = self._batch, -1.0
            self._line(f"{text}  {happened.seconds:.1f} s")
        elif isinstance(happened, event.Test):
            self._line(f"test {text}")
        elif isinstance(happened, event.EndIteration):
            self._batch = happened.batch_id + 1
            if happened.seconds - self._shown >= 0.1:
                self._shown = happened.seconds
                self._state(text)

    def _line(self, text: str) -> None:
        if self._in_notebook:
            self._lines.append(text)
            self._display("")
        else:
            self._write(f"{text}\n")

    def _state(self, text: str) -> None:
        known = self._batch <= self._batches
        text += f"  batch {self._batch}" + (f" of {self._batches}" if known else "")
        if self._in_notebook:
            place = f' value="{self._batch}" max="{self._batches}"' if known else ""
            self._display(f"<progress{place}></progress> {html.escape(text)}")
        elif self.file.isatty():
            bar = "#" * (20 * self._batch // self._batches) if known else ""
            self._write(f"[{bar:<20}] {text}" if known else text)

    def _write(self, text: str) -> None:
        begin = "\r\x1b[K" if self.file.isatty() else ""
        self.file.write(begin + text)
        self.file.flush()

    def _display(self, state: str) -> None:
        """Shows the lines so far and the state below them, in place of those before."""
        cell: Any = importlib.import_module("IPython.display")
        lines = html.escape("\n".join(self._lines))
        shown = cell.HTML(f"<pre>{lines}</pre>{state}")
        if self._cell is None:
            self._cell = cell.display(shown, display_id=True)
        else:
            self._cell.update(shown)

    def __repr__(self) -> str:
        return _shown(self, **({} if self.file is sys.stderr else {"file": self.file}))


def __dir__() -> list[str]:
    return sorted(__all__)
