"""Inference of Paddle v2: paddle.infer(output_layer=, parameters=, input=), whose samples are tuples.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tenon import trainer as _trainer
from tenon._base.arrays import Ragged
from tenon._model import layer as _layer
from tenon._run.generation import BeamSearch
from tenon.v2._make import topology
from tenon.v2._refused import refuse
from tenon.v2.parameters import Parameters
from tenon.v2.topology import parse


class Inference:
    """Computes layers of samples, also of a topology that was written to a file."""

    def __init__(self, parameters: Parameters, output_layer: Any = None, fileobj: Any = None) -> None:
        self._beams = output_layer if isinstance(output_layer, BeamSearch) else None
        if self._beams:
            self._outputs = [self._beams.scores]
        else:
            self._outputs = topology(output_layer) if fileobj is None else parse(fileobj)
        self._parameters = parameters.of(self._outputs)

    def infer(self, input: Any, field: Any = "value", feeding: Any = None, flatten_result: bool = True) -> Any:
        """Returns an array for each output, of sequences the rows one after another; of beam_search "prob" [samples, beams],
        and "id", for each result its length, its ids and -1."""
        if self._beams:
            columns = {"prob": self._written(input, feeding, "prob"), "id": self._written(input, feeding, "id")}
            return columns[field] if isinstance(field, str) else [columns[each] for each in field]
        outputs = [each for each in self._outputs if each.role != "metric"]
        places = feeding or dict.fromkeys(_layer.data_types(outputs))
        results = _trainer.infer(outputs, self._parameters, list(input), feeding=places_of(places))
        flat = [each.values if isinstance(each, Ragged) and flatten_result else each for each in results]
        return flat[0] if len(flat) == 1 else flat

    def _written(self, input: Any, feeding: Any, field: str) -> Any:
        assert self._beams is not None
        names = [each for each in _layer.data_types(self._outputs) if each != self._beams.ids]
        places = places_of(feeding or dict.fromkeys(names))
        samples = self._beams.infer(self._parameters, {name: [each[places[name]] for each in input] for name in names})
        if field == "prob":
            return np.array([[each.score for each in sample] for sample in samples])
        return np.concatenate([[len(each.ids), *each.ids, -1] for sample in samples for each in sample])


def places_of(feeding: Any) -> dict[str, int]:
    """Returns {data layer: place} of that, or of names in their order."""
    if isinstance(feeding, Mapping) and None not in feeding.values():
        return dict(feeding)
    return {name: place for place, name in enumerate(feeding)}


def infer(
    output_layer: Any,
    parameters: Parameters,
    input: Any,
    feeding: Any = None,
    field: Any = "value",
    flatten_result: bool = True,
) -> Any:
    """Inference once."""
    return Inference(parameters, output_layer).infer(input, field, feeding, flatten_result)


__getattr__ = refuse(__name__, globals())
