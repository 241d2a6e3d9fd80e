"""Updaters written in Python, as the library's trainings call them.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tenon import _core, error
from tenon._model.layer import Layer
from tenon._run.machine import Machine
from tenon.parameters import ParameterSet
from tenon.updater import Base

_NUMBER, _SCALAR = ".number", ".scalar"  # what stored states are in Python, beside arrays
_PLAIN = (bool, int, float, str)


class StepMachine(Machine):
    """The machine of a training while an updater computes a step: to read, and to update the parameters of."""

    def __init__(self, core: Any, parameters: ParameterSet, outputs: Sequence[Layer], names: Sequence[str]) -> None:
        super().__init__(core)
        self.parameters = parameters
        self.outputs = list(outputs)
        self._names = list(names)
        self.has_gradients = True

    def trained(self) -> list[str]:
        """Returns the names of the parameters that the updater is to update."""
        return list(self._names)

    def set_gradient(self, parameter: str, values: Any) -> None:
        """Replaces the gradient of a parameter, for updaters of plugins that update it."""
        self.core.set_gradient(parameter, _core.dense(np.asarray(values, dtype=np.float32)))

    def updated(self) -> None:
        self.has_gradients = False

    def feed(self, *arguments: Any, **keywords: Any) -> None:
        """Refused, as forward and backward: the training computes the minibatches."""
        raise error.MisuseError(
            "the machine belongs to a training, whose updater may read it and update its parameters; for steps of several "
            "forwards write a loop of your own (tenon.gradient_machine)",
            "gradient_machine",
        )

    forward = backward = feed


class Rule:
    """What the library calls of an updater written in Python, which updates one set."""

    def __init__(self, updater: Any, parameters: ParameterSet, outputs: Sequence[Layer]) -> None:
        self._updater, self._parameters, self._outputs = updater, parameters, outputs
        self._attributes = self._described()

    def core(self) -> Any:
        """Makes the updater of the library."""
        name = type(self._updater).__name__
        return _core.rule_updater(self._parameters.core, name, json.dumps(self._attributes), self)

    def update(self, core: Any, names: Sequence[str]) -> None:
        self._updater.update(StepMachine(core, self._parameters, self._outputs, names))

    def learning_rate(self) -> float:
        return float(getattr(self._updater, "learning_rate", 0.0))

    def set_learning_rate(self, rate: float) -> None:
        self._updater.set_learning_rate(rate)

    def states(self) -> list[tuple[str, str, Any]]:
        """Returns (state, parameter, values), for checkpoints."""
        self._require_states()
        for key, value in self._described().items():
            if key != "learning_rate" and value != self._attributes.get(key):
                raise self._refusal(f"its attribute {key} has changed since the training began: what changes belongs to "
                                    "the `state` of update_parameter, which checkpoints hold", key)  # fmt: skip
        return [
            (*self._stored(name, parameter, value),)
            for parameter, states in self._updater.state(self._parameters).items()
            for name, value in states.items()
        ]

    def set_states(self, stored: Sequence[tuple[str, str, Any]]) -> None:
        """Takes what states has returned."""
        self._require_states()
        states = self._updater.state(self._parameters)
        states.clear()
        for name, parameter, values in stored:
            value: Any = values
            if name.endswith(_NUMBER):
                value = values.item()
            elif name.endswith(_SCALAR):
                value = values[()]
            states.setdefault(parameter, {})[name.removesuffix(_NUMBER).removesuffix(_SCALAR)] = value

    def _described(self) -> dict[str, Any]:
        """Returns the public attributes of the updater that are numbers, texts, or lists of these."""
        return dict(_plain_members(self._updater))

    def _stored(self, name: Any, parameter: str, value: Any) -> tuple[str, str, Any]:
        if not isinstance(name, str) or not name or any(each in name for each in "./"):
            raise self._refusal(f'the name {name!r} of a state of "{parameter}": checkpoints take texts without "." and "/"',
                                str(name))  # fmt: skip
        kind = _NUMBER if isinstance(value, (bool, int, float)) else _SCALAR if isinstance(value, np.generic) else ""
        if not kind and not isinstance(value, np.ndarray):
            raise self._refusal(f'the state "{name}" of "{parameter}" is a {type(value).__name__}; checkpoints hold '
                                "arrays and numbers", name)  # fmt: skip
        try:
            values = np.array(value, dtype=type(value) if kind == _NUMBER else None, order="C")
            return name + kind, parameter, _core.dense(values)
        except (OverflowError, TypeError) as failure:
            raise self._refusal(f'the state "{name}" of "{parameter}" cannot be stored: {failure}', name) from None

    def _require_states(self) -> None:
        if not isinstance(self._updater, Base):
            raise self._refusal("checkpoints need an updater that derives from tenon.updater.Base, whose states they hold",
                                "checkpoint")  # fmt: skip

    def _refusal(self, why: str, subject: str) -> error.UnsupportedError:
        name = type(self._updater).__name__
        return error.UnsupportedError(f"updater {name}: {why}", f"updater {name}", subject)


def _plain_members(value: Any) -> Iterator[tuple[str, Any]]:
    for name, each in getattr(value, "__dict__", {}).items():
        if name.startswith("_"):
            continue
        if isinstance(each, _PLAIN) or (isinstance(each, (list, tuple)) and all(isinstance(x, _PLAIN) for x in each)):
            yield name, list(each) if isinstance(each, tuple) else each
