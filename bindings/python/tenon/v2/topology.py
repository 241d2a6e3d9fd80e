"""Topologies of Paddle v2: what a model is apart from its parameters.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tenon._model import layer as _layer
from tenon._model.layer import Layer
from tenon.data_type import DataType
from tenon.program import Program
from tenon.v2 import _make
from tenon.v2._refused import refuse


class Topology:
    """A topology. str(it) is its text, as JSON."""

    def __init__(self, layers: Any, extra_layers: Any = None) -> None:
        self.layers = _make.topology(layers, extra_layers)

    def data_type(self) -> list[tuple[str, DataType]]:
        """Returns names and types of the data layers."""
        return list(_layer.data_types(self.layers).items())

    def get_layer(self, name: str) -> Layer | None:
        """Returns the layer of a name."""
        return next((found for each in self.layers if (found := each.find(name))), None)

    def serialize_for_inference(self, stream: Any) -> None:
        """Writes the text, from which Inference(fileobj=) makes the layers again."""
        getattr(stream, "buffer", stream).write(str(self).encode())

    def __str__(self) -> str:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "topology.json"
            Program(self.layers).save(file)
            return file.read_text(encoding="utf-8")


def parse(stream: Any) -> list[Layer]:
    """Returns the outputs of a topology that serialize_for_inference has written."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "topology.json"
        file.write_bytes(getattr(stream, "buffer", stream).read())
        return Program.load(file).outputs


__getattr__ = refuse(__name__, globals())
