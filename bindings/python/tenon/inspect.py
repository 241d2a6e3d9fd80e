"""Topologies and plans as tables and graphs, for people. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import html
import json
import math
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tenon import _core
from tenon._base import check as _check
from tenon._base import host as _host
from tenon._model import layer as layers
from tenon._model.layer import Layer, LayerLike

__all__ = ["Drawing", "Plan", "Summary", "draw", "plan", "summary"]

_PARTS = ["parameters", "state", "control", "feeds", "gradients", "arena", "workspace", "row_sparse", "machine",
          "live_bound", "saved for backward"]  # fmt: skip
_Cells = Sequence[Sequence[str]]  # lines of equal length, the head first


def _text_table(cells: _Cells) -> str:
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    numbers = [all(not line[column] or line[column].isdigit() for line in cells[1:]) for column in range(len(widths))]
    return "\n".join(
        "  ".join(cell.rjust(w) if n else cell.ljust(w) for cell, w, n in zip(line, widths, numbers, strict=True)).rstrip()
        for line in cells
    )


def _html_table(cells: _Cells) -> str:
    head, *lines = cells

    def row(tag: str, line: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in line) + "</tr>"

    return f"<table>{row('th', head)}{''.join(row('td', line) for line in lines)}</table>"


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
        return f"{_text_table(self._cells())}\n{len(self.rows)} layers, {self.values} values of parameters"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"{_html_table(self._cells())}<p>{self.values} values of parameters</p>"


def _rows(outputs: Iterable[Layer]) -> list[Row]:
    """Returns the layers that the outputs depend on, inputs first, each once."""
    rows = []
    for layer in layers.in_order(outputs):
        parameters = tuple((each["name"], each["shape"]) for each in layer.parameters if not each["buffer"])
        shape = "" if layer.role == "metric" else str(list(layer.shape)).replace("'", "")
        rows.append(Row(layer.name, layer.type, tuple(each.name for each in layer.inputs), shape, parameters))
    return rows


def summary(outputs: LayerLike | Iterable[LayerLike]) -> Summary:
    """Returns the layers of a topology with their shapes and parameters."""
    return Summary(tuple(_rows(layers.as_layers(outputs))))


@dataclass(frozen=True)
class Call:
    """A call of a kernel, as docs/plan.md describes it.

    phase: "forward" or "backward"; layers, types: those that the call serves; call: the primitive, or "native"; kernel:
    of the device or a plugin; operations: instructions of a program; outputs: types and shapes; reads, writes, workspace:
    bytes at the largest minibatch; traits: of the kernel; window: of convolutions and pooling, else None.
    """

    phase: str
    layers: tuple[str, ...]
    types: tuple[str, ...]
    call: str
    kernel: str
    operations: int
    reads: int
    writes: int
    workspace: int
    outputs: tuple[str, ...]
    traits: tuple[str, ...]
    window: dict[str, Any] | None = None


@dataclass(frozen=True)
class Plan:
    """The calls that a machine makes for a minibatch, in order, and its memory; printed as tables.

    bytes: {part: bytes}, the parts of docs/plan.md; "machine" is what a machine allocates. saved: (layer, value, bytes) of
    what forward calls keep for backward calls. max_samples: of the minibatch.
    """

    rows: tuple[Call, ...]
    bytes: dict[str, int]
    saved: tuple[tuple[str, str, int], ...]
    device: str
    compute: str
    max_samples: int
    training: bool

    @classmethod
    def of(cls, text: str) -> Plan:
        """Returns the plan that the library writes as JSON."""
        given = json.loads(text)
        types = {each["name"]: each["type"] for each in given["layers"]}
        rows = []
        for call in given["calls"]:
            served = tuple(types.get(name, "") for name in call["layers"])
            rows.append(
                Call(call["phase"], tuple(call["layers"]), served, call["call"], call["kernel"], call["operations"],
                     call["reads"], call["writes"], call["workspace"], tuple(call["outputs"]), tuple(call["traits"]),
                     call.get("window"))
            )  # fmt: skip
        saved = tuple((each["layer"], each["value"], each["bytes"]) for each in given["saved"])
        device = ", ".join(given.get("devices", [given["device"]]))
        return cls(tuple(rows), given["bytes"], saved, device, given["compute"], given["max_samples"], given["training"])

    def _tables(self) -> list[_Cells]:
        calls = [["phase", "layer", "type", "call", "kernel", "reads", "writes", "workspace", "outputs"]]
        calls += [
            [row.phase, " + ".join(row.layers) or "-", " + ".join(row.types) or "-", row.call, row.kernel,
             str(row.reads), str(row.writes), str(row.workspace), ", ".join(row.outputs)]
            for row in self.rows
        ]  # fmt: skip
        saved = sum(size for *_, size in self.saved)
        memory = {**self.bytes, "saved for backward": saved} if self.training else self.bytes
        parts = [[part, str(memory[part])] for part in sorted(memory, key=_PARTS.index)]
        return [calls, [["memory", "bytes"], *parts]]

    def _title(self) -> str:
        phase = "training" if self.training else "inference"
        return f"device {self.device}, compute {self.compute}, minibatches of at most {self.max_samples} samples, {phase}"

    def __str__(self) -> str:
        return "\n\n".join([self._title(), *map(_text_table, self._tables())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join([f"<p>{html.escape(self._title())}</p>", *map(_html_table, self._tables())])


def plan(
    outputs: LayerLike | Iterable[LayerLike],
    samples: int = 128,
    *,
    training: bool = True,
    updater: Any = None,
    immutable_parameters: Iterable[str] = (),
    device: str | Iterable[str] = "",
    shards: int = 0,
) -> Plan:
    """Returns the plan of a training with these outputs, as `tenon plan` prints it, without memory for its values.

    samples: the most of a minibatch. training: False plans the computation of the outputs. updater: of a plugin, whose
    state is then a part of `bytes`. The other arguments are those of tenon.train. MisuseError if a data layer has no type.
    """
    cores = [each._made() for each in layers.as_layers(outputs)]
    host = _host.host().core
    declared = host.declare(cores)
    immutable = [immutable_parameters] if isinstance(immutable_parameters, str) else list(immutable_parameters)
    machine = _core.machine(host, declared, cores, samples, training, devices=_check.devices(device, "plan"),
                            immutable=immutable, shards=_check.shards(shards, "plan"))
    made = Plan.of(machine.plan())
    if updater is not None:
        made.bytes["state"] = json.loads(updater.core.describe(declared))["state_bytes"]
    return made


class Drawing(str):
    """The graph of a topology: SVG or DOT text. A cell of a notebook that ends with it shows the SVG."""

    def _repr_svg_(self) -> str | None:
        return None if self.startswith("digraph") else str(self)


def draw(outputs: LayerLike | Iterable[LayerLike], path: str | os.PathLike[str] | None = None) -> Drawing:
    """Returns the graph of a topology: SVG where Graphviz (the program dot) is installed, else its DOT text.

    path: a file for it. A path that ends with .dot gets DOT text in any case.
    """
    file = None if path is None else _check.path(path, "path", "draw")
    lines = ["digraph topology {", "  rankdir=BT; node [shape=box, fontname=sans];"]
    for row in _rows(layers.as_layers(outputs)):
        label = "\\n".join(part for part in (row.name, row.type, row.output) if part)
        shape = ", shape=ellipse" if row.type == "data" else ""
        lines.append(f"  {_quoted(row.name)} [label={_quoted(label)}{shape}];")
        lines += [f"  {_quoted(each)} -> {_quoted(row.name)};" for each in row.inputs]
    text = "\n".join([*lines, "}"]) + "\n"
    program = shutil.which("dot")
    if program is not None and not (file is not None and file.endswith(".dot")):
        text = subprocess.run([program, "-Tsvg"], input=text, capture_output=True, text=True, check=True).stdout
    if file is not None:
        to = _check.destination(file, "draw")
        with _check.files(file, "draw"), open(to, "w", encoding="utf-8") as opened:
            opened.write(text)
    return Drawing(text)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'
