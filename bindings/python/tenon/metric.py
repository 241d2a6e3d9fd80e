"""Metrics over many minibatches of a gradient machine.

    accuracy = tenon.metric.new_acc()
    for minibatch, pass_end in reader.read():
        gm.feed(minibatch)
        updater.update(gm)
        accuracy.append(gm, minibatch)
        if pass_end:
            print(accuracy.flush())

Each layer of plugins whose role is "metric" is a function here: tenon.metric.auc(). The values of all minibatches are
merged as the layer defines it: the AUC of a pass is that of all its samples, not a mean over minibatches.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenon import _core, error
from tenon import layer as _layer
from tenon._base import arrays as _arrays
from tenon._base import check as _check
from tenon._base import functions as _functions
from tenon._base import host as _host
from tenon._base.categories import may_be_named, numbered
from tenon._model.definition import definition
from tenon._model.kernels import Kernel
from tenon._model.layer import Data, Layer, LayerLike
from tenon.data_type import DataType
from tenon.gradient_machine import GradientMachine

__all__ = ["Base", "MachineMetrics", "Metric", "new", "new_acc"]

_ROOM = 256  # the fewest samples that are measured at once


class Base(Kernel):
    """The base of metrics written in Python: derive from it, and define update and finalize.

        class MeanError(tenon.metric.Base):
            def update(self, prediction, target):
                return np.abs(prediction - target).sum(), len(target)

            def finalize(self, total, count):
                return total / max(count, 1)

        error = MeanError()(prediction, "target")
        tenon.test([cost, error], parameters, reader).metrics["mean_error"]

        error = MeanError().over(prediction, "target")  # of a gradient machine
        error.append(machine, minibatch)

    The arguments of update are the inputs, arrays of all samples of a minibatch. It returns a number for each argument
    of finalize, or a number alone for one; they are summed over minibatches. finalize takes the sums, all 0 before the
    first minibatch, and returns a number or a dict of numbers by name. Arguments of __init__ are as those of
    tenon.layer.Base.
    """

    role = "metric"

    def over(self, *inputs: LayerLike | None) -> Metric:
        """Returns the metric over minibatches of a gradient machine, like those of the functions of this module.

        inputs: layers that the machine has as outputs, None for its first output, or names of slots; default the first
        output, and slots called as the inputs are.
        """
        names = [each.name for each in definition(type(self)).inputs if not each.optional]
        return _KernelMetric(self, (*(inputs or (None,)), *names[max(1, len(inputs)) :]))


class Metric:
    """A metric layer of a plugin, measured beside a machine of any topology.

    inputs: of the metric layer: a layer, which the machine must have as an output; None, its first output; or the name
    of a slot of the minibatch, or of a data layer of the machine. attributes: of the metric layer.
    """

    def __init__(self, type: str, inputs: tuple[LayerLike | None, ...], attributes: Mapping[str, Any]) -> None:
        self.type = type
        self._inputs = inputs
        self._attributes = dict(attributes)
        self._types: dict[str, DataType] = {}
        self._machine: Any = None
        self._total: Any = None
        self._room = 0

    def append(self, machine: GradientMachine, minibatch: Any = None) -> None:
        """Adds the last forward of a machine. minibatch: where slots are taken from, such as the label; default what
        the machine was fed."""
        _check.instance(machine, GradientMachine, "a gradient machine", "machine", "metric")
        values: dict[str, Any] = {}
        types: dict[str, DataType] = {}
        for number, given in enumerate(self._inputs):
            name = given if isinstance(given, str) else (given or machine.outputs[0]).name
            name = f"{name}_{number}" if name in types else name
            if isinstance(given, str):
                slot = isinstance(minibatch, Mapping) and given in minibatch
                value = minibatch[given] if slot else machine.fed(given)[0]
                if may_be_named(value) and (sets := getattr(machine, "parameters", None)) is not None:
                    codes = numbered(value, f'the values of "{given}"', given, sets.names().get(given, ()))
                    value = value if codes is None else codes[0]
                known = machine.types.get(given)
                types[name] = _type_of(value) if known is None else known
            else:
                value = machine.output(given)
                types[name] = _type_of(value)
            values[name] = value
        samples = machine.samples
        if self._machine is None:
            self._make(types, samples)
        for begin in range(0, samples, self._room):
            part = values if samples <= self._room else {n: _cut(v, begin, self._room) for n, v in values.items()}
            many = min(samples - begin, self._room)
            feeds = [(n, _arrays.to_core(value, self._types[n], n, many)) for n, value in part.items()]
            self._machine.forward(feeds, False)
            self._total.append(self._machine)

    def merge(self, other: Metric) -> None:
        """Adds the minibatches of another metric of the same type and attributes, as if they had been appended here; the
        other one stays as it is. InvalidError for another kind of metric."""
        if other is self or self.type != other.type or self._attributes != other._attributes:
            raise error.InvalidError(
                f"the metric {self.type} {self._attributes} merges another one of its type and attributes, not "
                f"{'itself' if other is self else f'{other.type} {other._attributes}'}",
                "metric",
            )
        if other._total is None:
            return
        if self._total is None:
            self._make(other._types, other._room)
        self._total.merge(other._total)

    def read(self) -> Any:
        """Returns the value over the minibatches so far, a number; of metrics with several values a dict by name."""
        if self._total is None or self._total.read()[1] == 0:
            raise error.MisuseError(f"the metric {self.type} has no minibatch yet: call append", "metric")
        found = self._total.read()[2]
        return next(iter(found.values())) if len(found) == 1 else found

    def flush(self) -> Any:
        """Returns the same as read, and forgets the minibatches so far."""
        value = self.read()
        self._total.flush()
        return value

    flash = flush  # as the design document of 2017 spells it

    @property
    def samples(self) -> int:
        """The samples so far."""
        return 0 if self._total is None else int(self._total.read()[1])

    def __repr__(self) -> str:
        words = "".join(f" {name}={value!r}" for name, value in self._attributes.items())
        return f"<tenon metric {self.type}{words} over {self.samples} samples>"

    def _make(self, types: dict[str, DataType], samples: int) -> None:
        data = [Data(name, type) for name, type in types.items()]
        layer = self._layer(data)
        host = _host.host().core
        room = max(samples, _ROOM)
        parameters = host.parameters([layer._made()], 0)
        self._machine = _core.machine(host, parameters, [layer._made()], room, False)
        self._total = _core.Metrics(self._machine)
        self._types, self._room = types, room

    def _layer(self, data: Sequence[Layer]) -> Layer:
        return Layer(self.type, data, self._attributes)


class _KernelMetric(Metric):
    """A metric written in Python, measured beside a machine."""

    def __init__(self, kernel: Base, inputs: tuple[LayerLike | None, ...]) -> None:
        super().__init__(definition(type(kernel)).type, inputs, kernel.arguments)
        self._kernel = kernel

    def _layer(self, data: Sequence[Layer]) -> Layer:
        return self._kernel(*data)


class MachineMetrics:
    """Cost and metrics among the outputs of one machine, over many minibatches."""

    def __init__(self, machine: GradientMachine) -> None:
        self._machine = machine
        self._core: Any = None
        self._total: Any = None

    def append(self, machine: GradientMachine, minibatch: Any = None) -> None:
        """Adds the last forward of the machine, the one that this was made for."""
        if machine is not self._machine:
            raise error.InvalidError("these metrics are those of another machine", "metric")
        if self._total is None:
            self._core, self._total = machine.core, _core.Metrics(machine.core)
        if machine.core is not self._core:
            raise error.MisuseError(
                "the machine was made again since the last append, for larger minibatches or without a label: give "
                "max_samples to gradient_machine.new, and flush the metrics between kinds of minibatches",
                "metric",
            )
        self._total.append(machine.core)

    def merge(self, other: MachineMetrics) -> None:
        """Adds the minibatches of the metrics of another machine with equal metrics; those stay as they are."""
        if other._total is None:
            return
        if self._total is None:
            self._core = self._machine.core
            self._total = _core.Metrics(self._core)
        self._total.merge(other._total)

    def read(self) -> dict[str, float]:
        """Returns {"cost": the mean cost over samples, metric: value} over the minibatches so far, with each of several
        costs, as in tenon.trainer.Result."""
        if self._total is None:
            raise error.MisuseError("the metrics have no minibatch yet: call append", "metric")
        cost, _, metrics, costs = self._total.read()
        return {"cost": cost, **costs, **metrics}

    def flush(self) -> dict[str, float]:
        """Returns the same as read, and forgets the minibatches so far."""
        values = self.read()
        self._total = None
        return values

    flash = flush

    @property
    def samples(self) -> int:
        """The samples so far."""
        return 0 if self._total is None else int(self._total.read()[1])

    def __repr__(self) -> str:
        values = {} if self._total is None else self.read()
        shown = "".join(f", {name} {value:.6g}" for name, value in values.items())
        return f"<tenon metrics of {self._machine!r} over {self.samples} samples{shown}>"


def new(machine: GradientMachine) -> MachineMetrics:
    """Returns cost and metrics of a machine."""
    return MachineMetrics(machine)


def new_acc(output: Layer | None = None, label: str = "label") -> Metric:
    """The share of samples whose largest score is that of the label. output: default the machine's first output."""
    return Metric("accuracy", (output, label), {})


def _type_of(value: Any) -> DataType:
    """Returns the type of a data layer that takes such values."""
    if isinstance(value, (_arrays.Ragged, _arrays.Sparse)):
        return _arrays.type_of(value)
    array = np.asarray(value.value)[None] if isinstance(value, _arrays.Constant) else np.asarray(value)
    dtype = {"f": "float32", "b": "int64", "i": "int64", "u": "int64"}.get(array.dtype.kind, str(array.dtype))
    return DataType(dtype, array.shape[1:])


def _cut(value: Any, begin: int, count: int) -> Any:
    if isinstance(value, _arrays.Constant):
        return value
    if not isinstance(value, (np.ndarray, list, tuple)):
        raise error.UnsupportedError(
            f"a minibatch of sequences is larger than the first one, of which metrics take at most {count} samples: "
            "append the largest minibatch first",
            "metric",
        )
    return value[begin : begin + count]


def _types() -> list[str]:
    host = _host.host()
    return [name for name in host.names("layer") if host.describe("layer", name)["role"] == "metric"]


def _function(name: str) -> Callable[..., Metric]:
    """Returns the function of a metric of a plugin."""
    if name.startswith("__"):
        raise AttributeError(name)
    if name not in _types():
        raise AttributeError(f'no plugin offers a metric "{name}"{error.suggestion(name, _types())}', name=name)
    described = _host.host().describe("layer", name)
    ports = [port["name"] for port in described["inputs"] if not port["flags"] & _functions.OPTIONAL]

    def make(*inputs: LayerLike | None, **attributes: Any) -> Metric:
        given = list(inputs) or [attributes.pop(ports[0], None)]
        given += [attributes.pop(port) for port in ports[len(given) :] if port in attributes]
        given += ports[len(given) :]
        return Metric(name, tuple(given), _functions.flatten(attributes))

    make.__name__ = make.__qualname__ = name
    make.__module__ = "tenon.metric"
    own = {*ports, *(_functions.python_name(each["name"]) for each in described["attributes"])}
    given = [each for each in _functions.signature("layer", described).parameters.values() if each.name in own]
    for number, port in enumerate(ports):
        given[number] = given[number].replace(annotation="LayerLike | None", default=port if number else None)
    make.__signature__ = inspect.Signature(given, return_annotation="Metric")  # type: ignore[attr-defined]
    make.__doc__ = (
        getattr(_layer, name).__doc__
        + "\n\nAs a metric: each input is a layer that the machine has as an output, None for its first output, or the "
        + "name of a slot; default the first output, and slots called as the inputs are."
    )
    return make


if TYPE_CHECKING:  # the functions of the plugins in the build, by stubs.py
    from tenon import _metrics
    from tenon._metrics import *  # noqa: F403 (they list their names)

    __all__ += _metrics.__all__
else:
    __getattr__ = _function


def __dir__() -> list[str]:
    return sorted({*__all__, *_types()})
