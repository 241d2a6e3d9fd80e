"""Evaluators of Paddle v2: metrics that every training has whose outputs depend on their inputs.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenon._model.layer import Layer
from tenon.v2._make import Input, Named, made
from tenon.v2._refused import refuse

# By name: the metric, its inputs, and what its arguments are here.
_EVALUATORS: dict[str, tuple[str, str, dict[str, str]]] = {
    "auc": ("auc", "input label weight", {}),
    "chunk": ("chunk_f1", "input label", {"chunk_scheme": "scheme", "num_chunk_types": "types",
                                          "excluded_chunk_types": "ignored_types"}),
    "classification_error": ("classification_error", "input label weight", {}),
    "column_sum": ("average", "input", {}),
    "ctc_error": ("edit_distance", "input label", {}),
    "precision_recall": ("precision_recall", "input label weight", {"positive_label": "positive"}),
    "sum": ("average", "input weight", {}),
}  # fmt: skip


def _evaluator(kind: str) -> Callable[..., Layer]:
    type, inputs, arguments = _EVALUATORS[kind]

    def evaluator(*args: Any, name: str | None = None, **kwargs: Any) -> Layer:
        ports = {**dict(zip(inputs.split(), args, strict=False)), **{each: kwargs.pop(each, None) for each in inputs.split()
                                                                     if each in kwargs}}  # fmt: skip
        layers = [each for each in ports.values() if each is not None]
        watched = [each for each in layers if isinstance(each, (Named, Input))]
        taken = {each.name for layer in watched for each in layer.evaluators}
        names = (f"__{kind}_evaluator_{number}__" for number in range(len(taken) + 1))
        chosen = name or next(each for each in names if each not in taken)
        metric = made(type, layers, {arguments.get(each, each): value for each, value in kwargs.items()}, chosen)
        for each in watched:
            each.evaluators = (*each.evaluators, metric)
        return metric

    evaluator.__name__ = evaluator.__qualname__ = kind
    evaluator.__doc__ = f"The metric {type}."
    return evaluator


globals().update({kind: _evaluator(kind) for kind in _EVALUATORS})

__getattr__ = refuse(__name__, globals())
