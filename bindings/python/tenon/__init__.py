"""Tenon: neural networks made of plugins.

    import tenon

    pixel = tenon.layer.data("pixel", tenon.data_type.dense_vector(784))
    label = tenon.layer.data("label", tenon.data_type.integer_value(10))
    score = tenon.layer.fc(tenon.layer.fc(pixel, size=128, act="relu"), size=10)
    cost = tenon.layer.cross_entropy(score, label, from_logits=True)
    parameters = tenon.parameters.create(cost)
    tenon.train(cost, parameters, reader={"pixel": pixels, "label": labels}, passes=5)
    tenon.infer(score, parameters, pixels[:3])

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tenon import data_type, error, event, layer, parameters, reader, trainer, updater
from tenon._base.arrays import Ragged, Sparse
from tenon._base.host import Host, host, use
from tenon._model.layer import Layer
from tenon.error import Error
from tenon.parameters import ParameterSet, load
from tenon.reader import Reader, batch
from tenon.trainer import infer, test, train

__all__ = [
    "Error", "GeneratedInput", "Generator", "Host", "IfElse", "Layer", "ParameterSet", "Predictor", "Ragged",
    "Reader", "Sparse", "StaticInput", "SubsequenceInput", "Table", "Team", "batch", "beam_search", "cases",
    "check_gradient", "cond", "data_type", "dist_train", "draw", "error", "event", "formula", "generate", "host",
    "infer", "layer", "learned", "load", "memory", "network", "parameters", "plan", "reader", "recurrent_group",
    "scan", "summary", "test", "train", "trainer", "updater", "use",
]  # fmt: skip

# Parts that not every program needs are imported when they are named.
_LATE = {"callbacks", "config_helpers", "dataset", "gradient_machine", "input", "inspect", "math", "metric", "onnx",
         "plot", "program", "sklearn", "v2", "weights"}  # fmt: skip
_LATE_FUNCTIONS = {  # by module
    "GeneratedInput": "_run.generation",
    "Generator": "_run.generation",
    "IfElse": "_model.cond",
    "Predictor": "_run.predictor",
    "StaticInput": "_model.scan",
    "SubsequenceInput": "_model.scan",
    "Table": "_base.table",
    "Team": "_run.team",
    "beam_search": "_run.generation",
    "cases": "_model.cond",
    "check_gradient": "_run.gradient_check",
    "cond": "_model.cond",
    "dist_train": "_run.dist_train",
    "draw": "inspect",
    "formula": "_model.formula",
    "generate": "_run.generation",
    "learned": "_model.formula",
    "memory": "_model.scan",
    "network": "_run.network",
    "plan": "inspect",
    "recurrent_group": "_model.scan",
    "scan": "_model.scan",
    "summary": "inspect",
}

if TYPE_CHECKING:
    from tenon import callbacks as callbacks
    from tenon import config_helpers as config_helpers
    from tenon import dataset as dataset
    from tenon import gradient_machine as gradient_machine
    from tenon import input as input
    from tenon import inspect as inspect
    from tenon import math as math
    from tenon import metric as metric
    from tenon import onnx as onnx
    from tenon import plot as plot
    from tenon import program as program
    from tenon import sklearn as sklearn
    from tenon import v2 as v2
    from tenon import weights as weights
    from tenon._base.table import Table
    from tenon._model.cond import IfElse, cases, cond
    from tenon._model.formula import formula, learned
    from tenon._model.scan import StaticInput, SubsequenceInput, memory, recurrent_group, scan
    from tenon._run.dist_train import dist_train
    from tenon._run.generation import GeneratedInput, Generator, beam_search, generate
    from tenon._run.gradient_check import check_gradient
    from tenon._run.network import network
    from tenon._run.predictor import Predictor
    from tenon._run.team import Team
    from tenon.inspect import draw, plan, summary
else:

    def __getattr__(name: str) -> Any:
        if name in _LATE_FUNCTIONS:
            return getattr(importlib.import_module(f"tenon.{_LATE_FUNCTIONS[name]}"), name)
        if name in _LATE:
            return importlib.import_module(f"tenon.{name}")
        raise AttributeError(f"module 'tenon' has no attribute {name!r}{error.suggestion(name, __dir__())}", name=name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_LATE})
