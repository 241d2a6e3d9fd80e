"""Plots of costs and metrics over a training, by matplotlib.

    ploter = tenon.plot.Ploter("train cost", "test cost")

    def handler(event):
        if isinstance(event, tenon.event.EndPass):
            ploter.append("train cost", event.pass_id, event.cost)
            ploter.plot()

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import importlib
import os
from io import BytesIO
from typing import Any

from tenon import error
from tenon._base import check as _check
from tenon._run.notebook import is_notebook

__all__ = ["Ploter", "Plotter"]


class Plotter:
    """Curves of numbers over steps, one for each title; Ploter is the same, as the system of 2017 spells it.

    file: the picture that plot() writes outside of notebooks, in the format of its ending, such as .png, .svg or .pdf.
    """

    def __init__(self, *titles: str, file: str | os.PathLike[str] = "plot.png") -> None:
        if not titles:
            raise error.InvalidError("a plot needs at least one title", "plot", "titles")
        self.titles = titles
        self.file = _check.path(file, "file", "plot")
        self.points: dict[str, list[tuple[float, float]]] = {}  # by title: (step, value)
        self._display: Any = None  # the picture in the output of a cell
        self._cell = 0  # the number of that cell
        self.reset()

    def append(self, title: str, step: float, value: float) -> None:
        """Adds a point to the curve of a title. step: such as the number of the pass. NotFoundError for another title."""
        if title not in self.points:
            raise error.NotFoundError(
                f'the plot has no title "{title}"; it has {", ".join(self.titles)}'
                f"{error.suggestion(title, self.titles)}",
                "plot",
                title,
            )
        self.points[title].append((float(step), float(value)))

    def plot(self, path: str | os.PathLike[str] | None = None) -> None:
        """Draws the curves: in a notebook in place of the picture before in the cell, elsewhere as the picture `file`.

        path: a picture to write instead, also in a notebook. ImportError without matplotlib.
        """
        figure = self.figure()
        if path is None and is_notebook():
            picture = BytesIO()
            figure.savefig(picture, format="png")
            self._show(picture.getvalue())
        else:
            file = self.file if path is None else _check.path(path, "path", "plot")
            with _check.files(file, "plot"):
                figure.savefig(_check.destination(file, "plot"))

    def _show(self, picture: bytes) -> None:
        """Shows a picture in the cell that runs, whose other output, such as that of callbacks.Progress, remains."""
        ipython: Any = importlib.import_module("IPython")
        cell, image = ipython.get_ipython().execution_count, ipython.display.Image(picture)
        if self._display is not None and self._cell == cell:
            self._display.update(image)
        else:
            self._display, self._cell = ipython.display.display(image, display_id=True), cell

    def figure(self) -> Any:
        """Returns the curves as a matplotlib.figure.Figure."""
        try:
            matplotlib: Any = importlib.import_module("matplotlib.figure")
        except ImportError:
            raise ImportError("tenon.plot needs matplotlib, which is not installed: pip install matplotlib") from None
        figure = matplotlib.Figure(layout="constrained")
        axes = figure.subplots()
        for title in self.titles:
            points = self.points[title]
            axes.plot(*zip(*points, strict=True) if points else ([], []), label=title)
        axes.set_xlabel("step")
        axes.legend()
        return figure

    def reset(self) -> None:
        """Forgets all points."""
        self.points = {title: [] for title in self.titles}


Ploter = Plotter
