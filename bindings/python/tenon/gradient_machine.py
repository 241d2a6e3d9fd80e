"""Gradient machines, for training loops of the user's own: forward, backward, and an updater's update.

    gm = tenon.gradient_machine.new(output)
    updater = tenon.updater.new_simple()
    for minibatch, pass_end in reader.read():
        gm.feed(minibatch)
        updater.update(gm)

The output layer stands for its model: all layers that it depends on, and their parameters. Machines of layers that
depend on one another share parameters; machines of other layers do so where one set is given to both, or after compose.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenon import error
from tenon import reader as readers
from tenon._base import arrays as _arrays
from tenon._base import check as _check
from tenon._model import layer as layers
from tenon._model import model as _model
from tenon._model.layer import Layer, LayerLike
from tenon._run.machine import Machine
from tenon._run.machine_part import Part, default_cost
from tenon._run.step_through import Step, steps
from tenon.data_type import DataType, compute_code, dtype_code
from tenon.parameters import ParameterSet
from tenon.updater import Updater

__all__ = ["GradientMachine", "Step", "compose", "new"]


class GradientMachine(Machine):
    """Computes outputs and gradients of a model, one minibatch after the other.

    parameters: the set of its parameters; outputs: its output layers; label: the data layer of the default cost, or
    None. Made by new and compose.
    """

    def __init__(
        self,
        outputs: Sequence[Layer],
        parameters: ParameterSet,
        label: str | None,
        options: Mapping[str, Any],
        replaced: Mapping[str, Layer] | None = None,
        nan: bool = False,
    ) -> None:
        super().__init__(None)
        self._nan = nan
        self.outputs = list(outputs)
        self.parameters = parameters
        self._replaced = dict(replaced or {})
        self._plain = Part(outputs, parameters, options)
        self._costly: Part | None = self._plain if self._plain.has_cost else None
        self.label: str | None = None
        alone = self._costly is None and options["training"]
        if alone and label is not None and (cost := default_cost(outputs, label)) is not None:
            self.label = label
            self._costly = Part([*outputs, cost], parameters, options)
        self._options = options
        self._trained: list[str] | None = None
        self._used = self._plain  # of the last forward
        self._with_gradients: Any = None
        self._has_gradients = False
        self._fed: tuple[dict[str, Any], int] = ({}, 0)

    @property
    def types(self) -> dict[str, DataType]:
        """The types of the data layers, in the order in which they were defined, the label's last."""
        types = dict((self._costly or self._plain).types)
        if self.label is not None:
            types[self.label] = types.pop(self.label)
        return types

    @property
    def core(self) -> Any:
        if self._core is None:
            raise error.MisuseError("the machine has computed nothing yet: call forward or feed", "gradient_machine")
        return self._core

    @property
    def backward_core(self) -> Any:
        return self.core if self._with_gradients is None else self._with_gradients

    def layer(self, layer: Layer) -> Layer:
        """Returns the layer of this machine's topology that computes `layer`: another one in a composed machine."""
        return self._replaced.get(_check.instance(layer, Layer, "a layer", "layer", "gradient_machine").name, layer)

    def output(self, layer: Layer | None = None) -> Any:
        """Returns a copy of the output of a layer, default the first one of the machine: an array, Ragged or Sparse."""
        return super().output(self.layer(self.outputs[0] if layer is None else layer))

    def dlpack(self, layer: Layer | None = None) -> _arrays.Shared:
        return super().dlpack(self.layer(self.outputs[0] if layer is None else layer))

    @property
    def samples(self) -> int:
        """The samples of the last minibatch."""
        return self._fed[1]

    @property
    def has_gradients(self) -> bool:
        """Whether there are gradients that no update has used."""
        return self._has_gradients

    def trained(self) -> list[str]:
        """Returns the names of the parameters that have gradients: those of the outputs, without the immutable ones and
        those that no gradient flows to, such as of a layer that only chooses branches."""
        if self._trained is None:
            fixed = self._options["immutable"]
            names = [
                name
                for name in _model.parameter_names(self.outputs)
                if not any(name == each or name.startswith(each + ".") for each in fixed)
            ]
            if self._options["training"] and names:
                core = self._with_gradients or (self._costly or self._plain).core(0, self._has_gradients)
                names = [name for name in names if _has_gradient(core, name)]
            self._trained = names
        return self._trained

    def forward(self, minibatch: Any) -> Any:
        """Computes the outputs of a minibatch and returns copies: one array, or a list for several outputs. Metrics have
        no output; `metrics` has their values.

        minibatch: a dict by data layer, a frame or a table, of which other columns are ignored; a list in the order of
        the data layers, in which a dict stands for its slot of that name, or its only slot; or the values of the only data
        layer. The label of a default cost may be missing.
        """
        self._run(minibatch, needs_cost=False)
        results = [super(GradientMachine, self).output(each) for each in self.outputs if each.role != "metric"]
        return results[0] if len(results) == 1 else results

    def backward(self, gradients: Mapping[Layer, Any] | None = None) -> None:
        """Adds the gradients of the last forward's costs to those since the last update.

        gradients: {output: array of its shape}, gradients of a number of the caller's with respect to outputs, for a
        machine without a cost.
        """
        core = self.core
        for layer in () if gradients is None else _check.mapping(gradients, "gradients", "backward"):
            _check.instance(layer, Layer, "layers, the outputs of the machine, as its keys", "gradients", "backward")
        if gradients is None:
            if not self._used.has_cost:
                raise self._no_cost()
            core.backward()
        else:
            core.backward_from(
                [(self.layer(layer)._made(), self._values(values, layer.name)) for layer, values in gradients.items()]
            )
        self._with_gradients, self._has_gradients = core, True

    def set_gradient(self, parameter: str, values: Any) -> None:
        """Replaces the gradient of a parameter since the last update; later backwards add to it, an update uses it."""
        core = self._costly.core(0, self._has_gradients) if self._core is None and self._costly else self._core
        if core is None:
            core = self._plain.core(0, self._has_gradients)
        core.set_gradient(parameter, self._values(values, parameter))
        self._core, self._with_gradients, self._has_gradients = core, core, True

    def _values(self, values: Any, name: str) -> Any:
        """Returns numbers in the type in which the machine computes."""
        dtype = "float64" if self._options.get("compute") == dtype_code("float64") else "float32"
        array = _arrays.plain(values)
        return _arrays.to_core(array if hasattr(array, "dtype") else np.asarray(array), DataType(dtype), name)

    def feed(self, minibatch: Any) -> None:
        """forward and backward."""
        self._run(minibatch, needs_cost=True)
        self.backward()

    def feed_steps(self, minibatches: Any, updater: Updater, samples: int = 1) -> NDArray[np.float64]:
        """feed and updater.update for each `samples` samples in turn, in one call, with the same results to the bit; for
        models so small that the calls of a step take longer than its work. Returns the cost of each step.

        minibatches: as in forward, of any number of samples; the last step has those that are left. updater: one of a
        plugin. Where a step fails, the error begins with its number, and the steps before it are done.
        """
        of = "feed_steps"
        _check.instance(updater, Updater, "an updater of a plugin", "updater", of)
        if self._costly is None:
            raise self._no_cost()
        self.parameters.require_writable()
        most = _check.whole(samples, "samples", of, 1, 2**31 - 1)
        values = self._by_name(minibatches)
        part = self._part(values)
        if not part.has_cost:
            raise self._no_cost()
        feeds, count = _arrays.feeds({name: values[name] for name in part.types}, part.types, self._nan, self.parameters.names)
        core = part.core(min(count, most), self._has_gradients)
        self._core, self._used, self._fed = core, part, ({}, (count - 1) % most + 1 if count else 0)
        costs = core.steps(updater.core, feeds, most)
        self._with_gradients, self._has_gradients = core, False
        return np.asarray(costs, dtype=np.float64)

    def step_through(self, minibatch: Any = None) -> Iterator[Step]:
        """Runs a forward of its own, layer by layer, and yields a Step for each layer, inputs first.

        minibatch: as in forward; default that of the last forward. Where a layer fails, its error is raised after all
        layers before it were yielded, and names it. The machine itself stays as it is; states that layers carry from
        minibatch to minibatch begin at zero.
        """
        if minibatch is None:
            if not self._fed[0]:
                raise error.MisuseError("no forward or feed has a minibatch yet: give a minibatch", "gradient_machine")
            values = self._fed[0]
        else:
            values = self._by_name(minibatch)
        part = self._part(values)
        fed = {name: values[name] for name in part.types}
        feeds, samples = _arrays.feeds(fed, part.types, self._nan, self.parameters.names)
        return steps(part.outputs, self.parameters, self._options, feeds, samples)

    def data_gradient(self, name: str) -> Any:
        """Returns the gradient of a data layer by the last backward, of a machine made with data_gradients."""
        return _arrays.from_core(self.backward_core.data_gradient(name))

    def reset_carried(self) -> None:
        """Sets the states that layers carry from minibatch to minibatch to zero, as before the first forward."""
        if self._core is not None:
            self._core.reset_carried()

    def updated(self) -> None:
        """Told by updaters: the gradients were used."""
        self._has_gradients = False

    def fed(self, name: str) -> tuple[Any, int]:
        """Returns what the last forward was fed for a data layer, and the number of samples."""
        values, samples = self._fed
        if name not in values:
            raise error.NotFoundError(
                f'the last minibatch of the machine has nothing for "{name}"; it has {list(values)}'
                f"{error.suggestion(name, values)}",
                "gradient_machine",
                name,
            )
        return values[name], samples

    def prepare(self) -> Any:
        """Makes the machine for max_samples and returns its handle; InvalidError without a cost."""
        if self._costly is None:
            raise self._no_cost()
        self._core, self._used = self._costly.core(0, self._has_gradients), self._costly
        return self._core

    def _run(self, minibatch: Any, needs_cost: bool) -> None:
        if needs_cost and self._costly is None:
            raise self._no_cost()
        values = self._by_name(minibatch)
        part = self._part(values)
        if needs_cost and not part.has_cost:
            raise self._no_cost()
        values = {name: values[name] for name in part.types}
        feeds, samples = _arrays.feeds(values, part.types, self._nan, self.parameters.names)
        core = part.core(samples, self._has_gradients)
        core.forward(feeds, False)
        self._core, self._used, self._fed = core, part, (values, samples)

    def _by_name(self, minibatch: Any) -> dict[str, Any]:
        """Returns the values of a minibatch by data layer."""
        part = self._costly or self._plain
        if part.no_tuples and isinstance(minibatch, (list, tuple)) and not any(isinstance(each, Mapping) for each in minibatch):
            raise error.InvalidError(part.no_tuples, "gradient_machine", "minibatch")
        return _by_name(minibatch, self.types, self.label)

    def _part(self, values: Mapping[str, Any]) -> Part:
        """Returns the machine that computes a minibatch, which must have values for its data layers."""
        unlabelled = self.label in self.types and self.label not in values
        part = self._plain if self._costly is None or unlabelled else self._costly
        for name in part.types:
            if name not in values:
                given = list(values)
                raise error.InvalidError(
                    f'the minibatch has nothing for data layer "{name}"; it has {given}{error.suggestion(name, given)}',
                    "gradient_machine",
                    name,
                )
        return part

    def _no_cost(self) -> error.InvalidError:
        listed = ", ".join(f'"{each.name}" ({each.type})' for each in self.outputs)
        if self.label is not None:
            return error.InvalidError(
                f'gradients of {listed} need a label: feed data layer "{self.label}" for its cross_entropy',
                "gradient_machine",
                self.label,
            )
        return error.InvalidError(
            f"the machine's outputs have no cost, of which gradients could be computed: {listed}. Make it of a cost, "
            "such as tenon.layer.square_error(output, target), or of one softmax of [samples, classes], which takes "
            "cross_entropy to a fed label",
            "gradient_machine",
        )

    def __repr__(self) -> str:
        return f"<tenon.GradientMachine of {', '.join(each.name for each in self.outputs)}>"


def _has_gradient(core: Any, name: str) -> bool:
    try:
        core.gradient(name)
    except error.NotFoundError:
        return False
    except error.MisuseError:  # no backward yet
        return True
    return True


def _by_name(minibatch: Any, types: Mapping[str, DataType], label: str | None) -> dict[str, Any]:
    """Returns the values of a minibatch by data layer."""
    minibatch = _arrays.opened(minibatch)
    if isinstance(minibatch, Mapping):
        return dict(minibatch)
    if _arrays.is_frame(minibatch):
        return _arrays.columns_of(minibatch)
    names = list(types)
    if not isinstance(minibatch, (list, tuple)):
        minibatch = [minibatch]
    if len(minibatch) not in (len(names), len(names) - (label is not None)):
        raise error.InvalidError(
            f"the minibatch is a list of {len(minibatch)} values; the data layers are {', '.join(names)}",
            "gradient_machine",
        )
    values = {}
    for name, given in zip(names, minibatch, strict=False):
        if isinstance(given, Mapping):
            if name not in given and len(given) != 1:
                raise error.InvalidError(
                    f'the dict in the minibatch has no slot "{name}"; it has {list(given)}'
                    f"{error.suggestion(name, given)}",
                    "gradient_machine",
                    name,
                )
            given = given[name] if name in given else next(iter(given.values()))
        values[name] = given
    return values


def new(
    output: LayerLike | Iterable[LayerLike],
    parameters: ParameterSet | None = None,
    *,
    reader: Any = None,
    label: str = "label",
    training: bool = True,
    max_samples: int = 0,
    keep_all: bool = False,
    data_gradients: bool = False,
    immutable_parameters: Iterable[str] = (),
    seed: int = 0,
    device: str | Iterable[str] = "",
    shards: int = 0,
    compute: str = "float32",
    given_gradients: bool | None = None,
    nan: str = "refuse",
) -> GradientMachine:
    """Makes a gradient machine.

    output: a cost, or several outputs; one softmax without a cost, also by act="softmax", takes cross_entropy to the
    fed data layer `label`. parameters: default those of the layers of an earlier machine, else new ones, drawn with
    `seed`. reader: types data layers that have no type. training: False computes as for predictions, without gradients.
    max_samples: of the minibatches that the machine is made for at first; for a larger one it is made again. keep_all:
    the output of every layer can be read. data_gradients: for data_gradient. immutable_parameters: names that keep
    their values; a name includes everything below it. seed: also of random numbers inside the model, such as dropout.
    device: one, such as "cuda:1", or several of one kind, each of which computes a shard of every minibatch. shards: of a
    minibatch, 0: one for each device; results depend on their number, and not on the devices. compute: "float32", or
    "float64", in which parameters are read and gradients made; "bf16" or "tf32" as in SGD.train.
    given_gradients: backward takes gradients of the outputs, also of costs; None: of machines without a cost. nan:
    "allow" feeds NaN, which is an error otherwise.
    """
    chosen = layers.as_layers(output)
    _make(chosen, reader)
    options = _options(training, max_samples, keep_all, data_gradients, immutable_parameters, seed, device, shards)
    options.update(compute=compute_code(compute, "gradient_machine"), given_gradients=given_gradients)
    return _machine(chosen, parameters, label, options, nan=nan)


def compose(
    *outputs: LayerLike,
    parameters: ParameterSet | None = None,
    connect: Mapping[str, Layer] | None = None,
    reader: Any = None,
    label: str = "label",
    max_samples: int = 0,
    keep_all: bool = False,
    data_gradients: bool = False,
    immutable_parameters: Iterable[str] = (),
    seed: int = 0,
    device: str | Iterable[str] = "",
    shards: int = 0,
    nan: str = "refuse",
) -> GradientMachine:
    """Makes one machine of several models, in which each output feeds the next one's model.

    The earlier output takes the place of the data layer of the later one that has its shape; connect: {data layer:
    layer} says which where that is not clear. The models stay as they are, and machines of them too. Their sets of
    parameters become one: values are copied, and all machines and sets of the parts see the joined set from then on.
    Updaters begin with new states for it. updater.update(machine, output) updates the model of one output alone. The
    other arguments are those of new.
    """
    given = layers.as_layers(outputs)
    if len(given) < 2:
        raise error.InvalidError("compose needs at least two outputs", "compose")
    _make(given, reader)
    joined = [given[0]]
    replaced: dict[str, Layer] = {}
    wanted = dict(connect or {})
    for later in given[1:]:
        types = layers.data_types([later])
        sources = {name: layer for name, layer in (connect or {}).items() if name in types}
        for name in sources:
            wanted.pop(name, None)
        replaced[later.name] = _model.connect(later, sources or {_model.entry_of(joined[-1], later): joined[-1]})
        joined.append(replaced[later.name])
    for name in wanted:
        raise error.InvalidError(
            f'connect names the data layer "{name}", which the later outputs do not have'
            f"{error.suggestion(name, layers.data_types(given[1:]))}",
            "compose",
            name,
        )
    if parameters is None:
        parameters = _model.parameters_of(given, seed)
    options = _options(True, max_samples, keep_all, data_gradients, immutable_parameters, seed, device, shards)
    return _machine(joined, parameters, label, options, replaced, nan)


def _make(chosen: Sequence[Layer], reader: Any) -> None:
    layers.make(chosen, None if reader is None else readers.types(reader, None, layers.untyped(chosen)))


def _options(
    training: bool, max_samples: int, keep_all: bool, data_gradients: bool, immutable: Iterable[str] | str, seed: int,
    device: str | Iterable[str], shards: int,
) -> dict[str, Any]:  # fmt: skip
    of = "gradient_machine"
    return {
        "training": bool(training),
        "max_samples": _check.whole(max_samples, "max_samples", of, 0, 2**31 - 1),
        "keep_all": bool(keep_all),
        "seed": _check.seed(seed, of),
        "devices": _check.devices(device, of),
        "shards": _check.shards(shards, of),
        "data_gradients": bool(data_gradients),
        "immutable": _check.texts(immutable, "immutable_parameters", of),
    }


def _machine(
    chosen: Sequence[Layer], parameters: ParameterSet | None, label: str, options: Mapping[str, Any],
    replaced: Mapping[str, Layer] | None = None, nan: str = "refuse",
) -> GradientMachine:  # fmt: skip
    allowed = _arrays.allows_nan(nan, "gradient_machine")
    if parameters is None:
        parameters = _model.parameters_of(chosen, options["seed"])
    expected = "a set of parameters, as tenon.parameters.create makes it"
    _check.instance(parameters, ParameterSet, expected, "parameters", "gradient_machine")
    _model.attach(chosen, parameters)
    return GradientMachine(chosen, parameters, label, options, replaced, allowed)
