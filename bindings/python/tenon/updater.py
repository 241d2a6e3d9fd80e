"""Updaters: how gradients change parameters. Those of plugins under their names: tenon.updater.adam, or Adam.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tenon import _core, error
from tenon._base import check as _check
from tenon._base import foreign
from tenon._base import functions as _functions
from tenon._base import host as _host
from tenon._model import model as _model
from tenon._model.layer import Layer
from tenon.parameters import ParameterSet

__all__ = ["Base", "Updater", "new_simple"]


class Updater:
    """An updater of a plugin. It keeps its state for each set of parameters that it updates."""

    def __init__(self, type: str, attributes: dict[str, Any]) -> None:
        self.type = type
        self.attributes = attributes
        _check.attributes(attributes, f"updater {type}")
        self.core = _host.host().core.updater(type, attributes)

    def update(self, machine: Any, output: Layer | None = None) -> None:
        """Updates the parameters of a gradient machine by its gradients; with `output` only those it depends on."""
        core = _gradients_of(machine)
        if output is None:
            self.core.update(core)
        else:
            self.core.update_model(core, _check.instance(output, Layer, "a layer", "output", "update")._made())
        machine.updated()

    def update_parameters(self, machine: Any, names: Iterable[str]) -> None:
        """Updates these parameters alone; update(machine) ends the step with all others."""
        self.core.update_parameters(_gradients_of(machine), _check.texts(names, "names", "update_parameters"))

    def set_learning_rate(self, rate: float) -> None:
        """Changes the learning rate from the next update on."""
        self.core.set_learning_rate(_check.number(rate, "learning_rate", f"updater {self.type}"))

    def describe(self, parameters: Any) -> dict[str, Any]:
        """Returns type, learning rate and the size of the state for a set."""
        described: dict[str, Any] = json.loads(self.core.describe(parameters.core))
        return described

    def state(self, parameters: Any) -> Any:
        """Returns the state kept for a set: get, set, steps, save, load."""
        return _core.UpdaterState(self.core, parameters.core)

    def __repr__(self) -> str:
        words = ", ".join(f"{name}={value!r}" for name, value in self.attributes.items())
        return f"tenon.updater.{self.type}({words})"


class Base:
    """The base of updaters written in Python: derive from it, and define update_parameter.

        class Momentum(tenon.updater.Base):
            def update_parameter(self, name, parameter, gradient, state):
                velocity = state.setdefault("velocity", np.zeros_like(parameter))
                velocity *= 0.9
                velocity += gradient
                parameter -= self.learning_rate * velocity

        tenon.train(cost, parameters, reader, updater=Momentum(learning_rate=0.1))
    """

    learning_rate = 0.01

    def __init__(self, learning_rate: float = 0.01) -> None:
        self.learning_rate = _check.number(learning_rate, "learning_rate", f"updater {type(self).__name__}")

    def update_parameter(
        self, name: str, parameter: NDArray[Any], gradient: NDArray[Any], state: dict[str, Any]
    ) -> Any:
        """Changes the array `parameter` in place by its gradient, an array of its shape; returns nothing.

        state: of this parameter, {} before its first update, kept for each set of parameters.
        """
        raise NotImplementedError(f"{type(self).__name__} must define update_parameter")

    def update(self, machine: Any, output: Layer | None = None) -> None:
        """Updates the parameters of a gradient machine by its gradients; with `output` only those it depends on.

        Does nothing without a backward since the last update. Other threads read the set as it was before the update or
        after it. If update_parameter raises, all parameters keep their values.
        """
        _gradients_of(machine)
        if not machine.has_gradients:
            return
        chosen = None if output is None else set(_model_names(output))
        names = [name for name in machine.trained() if chosen is None or name in chosen]
        states = self.state(machine.parameters)
        changed = {}
        for name in names:
            changed[name] = machine.parameters[name].copy()
            given = self.update_parameter(name, changed[name], machine.gradient(name), states.setdefault(name, {}))
            if given is not None:
                raise error.InvalidError(
                    f"{type(self).__name__}.update_parameter returned a value for {name!r}; expected None: it changes "
                    "the array `parameter` in place",
                    f"updater {type(self).__name__}",
                    name,
                )
        machine.backward_core.commit([(name, machine.parameters.values_for(name, changed[name])) for name in names])
        machine.updated()

    def set_learning_rate(self, rate: float) -> None:
        """Changes the learning rate from the next update on."""
        self.learning_rate = _check.number(rate, "learning_rate", f"updater {type(self).__name__}")

    def state(self, parameters: ParameterSet) -> dict[str, dict[str, Any]]:
        """Returns the states kept for a set, by parameter. They may be changed, or filled from a file."""
        states: dict[str, dict[str, Any]] = parameters.updater_states.setdefault(self, {})
        return states

    def __repr__(self) -> str:
        return f"{type(self).__name__}(learning_rate={self.learning_rate!r})"


def _gradients_of(machine: Any) -> Any:
    """Returns the handle of a machine that holds its gradients. MisuseError while another thread trains its set."""
    if not hasattr(machine, "backward_core"):
        _check.refuse(machine, "a gradient machine", "machine", "update")
    parameters = getattr(machine, "parameters", None)
    if parameters is not None:
        parameters.require_writable()
    return machine.backward_core


def _model_names(output: Layer) -> list[str]:
    return _model.parameter_names([output])


def new_simple(learning_rate: float = 0.01) -> Updater:
    """Plain stochastic gradient descent."""
    return Updater("sgd", {"learning_rate": learning_rate})


def make(type: str, attributes: dict[str, Any]) -> Updater:
    """Makes an updater of any type."""
    return Updater(type, attributes)


def as_updater(value: Any) -> Any:
    """Returns an updater of: an updater, or the name of a type."""
    if isinstance(value, str):
        try:
            return _functions.attribute("updater", value, make)()
        except AttributeError as failure:
            raise error.NotFoundError(str(failure), "train", value) from None
    if not callable(getattr(value, "update", None)) or isinstance(value, type):
        _check.refuse(value, "an updater or the name of one", "updater", "train")
    return value


_FORMER = {"momentum": "sgd", "decayedadagrad": "rmsprop"}


if TYPE_CHECKING:  # the functions of the plugins in the build, by stubs.py
    from tenon import _updaters
    from tenon._updaters import *  # noqa: F403 (they list their names)

    __all__ += _updaters.__all__
else:

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        wanted = name.lower().replace("_", "")
        for type in _host.host().names("updater"):
            if type.replace("_", "") == _FORMER.get(wanted, wanted):
                return _functions.attribute("updater", type, make)
        known = _host.host().names("updater")
        raise AttributeError(f'no plugin offers an updater "{name}"{foreign.suggestion(name, known)}', name=name)


def __dir__() -> list[str]:
    types = _host.host().names("updater")
    return sorted({*__all__, *types, *["".join(p.title() for p in t.split("_")) for t in types]})
