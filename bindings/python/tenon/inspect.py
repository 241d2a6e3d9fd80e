"""Topologies as tables and graphs, for people. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import html
import math
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from tenon import _layer as layers
from tenon._layer import Layer, LayerLike

__all__ = ["Summary", "draw", "summary"]


@dataclass(frozen=True)
class Row:
    """A layer of a topology. parameters: (name, shape)."""

    name: str
    type: str
    inputs: tuple[str, ...]
    output: str
    parameters: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def values(self) -> int:
        """The number of values of all its parameters."""
        return sum(math.prod(shape) for _, shape in self.parameters)


@dataclass(frozen=True)
class Summary:
    """The layers of a topology, inputs first; printed as a table."""

    rows: tuple[Row, ...]

    @property
    def values(self) -> int:
        """The number of values of all parameters; a shared one counts once."""
        shared = {name: math.prod(shape) for row in self.rows for name, shape in row.parameters}
        return sum(shared.values())

    def _cells(self) -> list[list[str]]:
        head = ["layer", "type", "inputs", "output", "parameters", "values"]
        lines = [
            [
                row.name,
                row.type,
                ", ".join(row.inputs),
                row.output,
                ", ".join(f"{name} {list(shape)}" for name, shape in row.parameters),
                str(row.values) if row.values else "",
            ]
            for row in self.rows
        ]
        return [head, *lines]

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells]
        return "\n".join([*lines, f"{len(self.rows)} layers, {self.values} values of parameters"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *lines = self._cells()

        def row(tag: str, cells: list[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(row("td", line) for line in lines)
        return f"<table>{row('th', head)}{body}</table><p>{self.values} values of parameters</p>"


def _rows(outputs: Iterable[Layer]) -> list[Row]:
    """Returns the layers that the outputs depend on, inputs first, each once."""
    order: dict[str, Row] = {}
    stack = [(each._made(), False) for each in reversed(list(outputs))]
    while stack:
        core, ready = stack.pop()
        name, type, role, _, count, _ = core.info()
        if name in order:
            continue
        inputs = [core.input(number) for number in range(count)]
        present = [each for each in inputs if each is not None]
        if not ready:
            stack.append((core, True))
            stack.extend((each, False) for each in reversed(present))
            continue
        layer = Layer._wrap(core)
        parameters = tuple((each["name"], each["shape"]) for each in layer.parameters if not each["buffer"])
        shape = "" if role == "metric" else str(list(layer.shape)).replace("'", "")
        order[name] = Row(name, type, tuple(each.info()[0] for each in present), shape, parameters)
    return list(order.values())


def summary(outputs: LayerLike | Iterable[LayerLike]) -> Summary:
    """Returns the layers of a topology with their shapes and parameters."""
    return Summary(tuple(_rows(layers.as_layers(outputs))))


def draw(outputs: LayerLike | Iterable[LayerLike], path: str | os.PathLike[str] | None = None) -> str:
    """Returns the graph of a topology: SVG where Graphviz (the program dot) is installed, else its DOT text.

    path: a file for it. A path that ends with .dot gets DOT text in any case.
    """
    lines = ["digraph topology {", "  rankdir=BT; node [shape=box, fontname=sans];"]
    for row in _rows(layers.as_layers(outputs)):
        label = "\\n".join(part for part in (row.name, row.type, row.output) if part)
        shape = ", shape=ellipse" if row.type == "data" else ""
        lines.append(f"  {_quoted(row.name)} [label={_quoted(label)}{shape}];")
        lines += [f"  {_quoted(each)} -> {_quoted(row.name)};" for each in row.inputs]
    text = "\n".join([*lines, "}"]) + "\n"
    program = shutil.which("dot")
    if program is not None and not (path is not None and os.fspath(path).endswith(".dot")):
        text = subprocess.run([program, "-Tsvg"], input=text, capture_output=True, text=True, check=True).stdout
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return text


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'
