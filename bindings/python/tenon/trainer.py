"""Trainers: training, testing and inference of a topology on a set of parameters.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tenon import _core, error, event, updater
from tenon import reader as readers
from tenon._base import arrays as _arrays
from tenon._base import caller as _caller
from tenon._base import check as _check
from tenon._base import host as _host
from tenon._model import layer as layers
from tenon._model.layer import Layer, LayerLike
from tenon._run import options as _options
from tenon._run.feeding import open_reader, warn_of_left_out
from tenon._run.generation import BeamSearch
from tenon._run.rule import Rule
from tenon._run.team import Team
from tenon.data_type import compute_code
from tenon.parameters import ParameterSet

__all__ = ["SGD", "Checkpoint", "Default", "Result", "Updater", "infer", "test", "train"]

Handler = Callable[[event.Event], Any]
BATCH = 128  # samples of a minibatch where the reader says nothing


@dataclass
class Result:
    """What a test measured: the mean cost, the metrics by name, the number of samples and the seconds.

    costs: with two or more costs each of them, by the name of its layer ("<layer>.cost" if that is "cost" or the name of a
    metric): what it adds to `cost`, its mean times its coefficient. Else empty.
    """

    cost: float
    metrics: dict[str, float] = field(default_factory=dict)
    samples: int = 0
    seconds: float = 0.0
    costs: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        metrics = "".join(f", {name}={value:.6g}" for name, value in {**self.costs, **self.metrics}.items())
        return f"Result(cost={self.cost:.6g}{metrics}, samples={self.samples})"


@dataclass
class Checkpoint:
    """Checkpoints of a training in a folder.

    resume: True continues from the newest checkpoint of the folder, and begins anew if there is none, so that one program
    serves the first start and all others; False refuses a folder that has checkpoints. resume_with: what may differ from
    the checkpoint, such as "updater.learning_rate" and "reader.batch" (docs/checkpoints.md lists all); the training goes
    on with the present values and the states of the checkpoint.
    """

    folder: str
    every_passes: int = 1
    every_batches: int = 0
    every_seconds: float = 0.0
    keep: int = 3
    best: str = ""
    best_is_highest: bool = False
    resume: bool = True
    resume_with: Sequence[str] = ()


def _warn(pass_id: int, batch_id: int, cost: float) -> None:
    _caller.warn(
        f"the cost is {cost} since pass {pass_id}, batch {batch_id}: the parameters may no longer be finite; a host with "
        "check_finite=True ends the training at the first such number and names its layer",
        RuntimeWarning,
    )


def _handler(handler: Handler | Iterable[Handler] | None) -> Callable[[Any], None] | None:
    if handler is None:
        return None
    given = [handler] if callable(handler) else handler
    called = list(given) if isinstance(given, Iterable) else [given]
    for each in called:
        if not callable(each) or isinstance(each, type):
            hint = f": make an object of it, as {each.__name__}()" if isinstance(each, type) else ""
            _check.refuse(each, f"a function of an event, or several{hint}", "event_handler", "train")

    def handle(live: Any) -> None:
        happened = event.of(live)
        for each in called:
            each(happened)

    return handle


def _warn_of_names(parameters: ParameterSet) -> None:
    """Warns of lists of names that a model file cannot hold (docs/model-file.md)."""
    for slot, texts, count in parameters.core.names():
        if count > 0 and not texts:
            _caller.warn(
                f'the {count} names of "{slot}" are not stored with the model, which keeps at most 65536 names of 1 MiB '
                "in UTF-8: other data must bring the same list",
                UserWarning,
            )


class SGD:
    """Trains by stochastic gradient descent with an updater, in minibatches.

    updater: an updater, or the name of one; groups: of parameters with another updater, {name or prefix: updater}.
    """

    def __init__(self, updater: Any = None, batch_size: int = BATCH, groups: Mapping[str, Any] | None = None) -> None:
        self.updater = updater
        self.batch_size = _check.whole(batch_size, "batch_size", "train", 1)
        self.groups = dict(_check.mapping(groups or {}, "groups", "train"))

    def __repr__(self) -> str:
        return f"SGD(updater={self.updater!r}, batch_size={self.batch_size})"

    @_host.follows_parameters
    def train(
        self,
        topology: LayerLike | Iterable[LayerLike],
        parameters: ParameterSet,
        reader: Any = None,
        event_handler: Handler | Iterable[Handler] | None = None,
        *,
        passes: int = 1,
        immutable_parameters: Iterable[str] = (),
        feeding: Mapping[str, str | int] | None = None,
        test: Any = None,
        checkpoint: Checkpoint | str | None = None,
        early_stop: str | Mapping[str, Any] | None = None,
        average: Mapping[str, Any] | None = None,
        best: Mapping[str, Any] | None = None,
        pass_batches: int = 0,
        seed: int = 0,
        device: str | Iterable[str] = "",
        shards: int = 0,
        team: Team | None = None,
        verify_every: int = 0,
        staleness: int = 0,
        run: str = "",
        run_every: int = 0,
        rerun: str = "",
        updater: Any = None,
        compute: str = "float32",
        nan: str = "refuse",
    ) -> None:
        """Trains the parameters that the topology depends on.

        topology: costs, metrics, and any layers to compute. reader: of samples, or minibatches. event_handler: one or
        several functions of an event. passes: over the data. immutable_parameters: names that keep their values; a
        name includes everything below it. test: a reader that is measured after each pass. checkpoint: a folder.
        early_stop: a metric, or {"metric", "patience", "min_delta", "best_is_highest"}. average: {"parameters": another set
        of the same topology, which receives the averages of the values after each update, "decay": of moving averages,
        1 for plain means, "window": updates that count at most, 0 for all, "begin": updates before the first that
        counts}. best: {"parameters": another set of the same topology, which receives the values at the best measurement,
        a test of test= or else a pass, "averages": one for those of average, "metric": "cost" or another, "best_is_highest"}.
        pass_batches: minibatches of a pass, for readers without end, 0: the reader ends it. seed: of random
        numbers inside the model, such as dropout. device: one, such as "cuda:1", or several of one kind, each of
        which computes a shard of every minibatch. shards: of a minibatch, 0: one for each device and process; results
        depend on their number, and not on the devices and processes that compute them. team: the processes that train
        together, each with this call and equal arguments; handlers are called in process 0. verify_every: steps between
        comparisons of the parameters of a team's processes, 0: before the first step alone. staleness: 0: the exact mode,
        n: the bounded mode of a team with servers, in which processes compute minibatches at the same time, each of which
        begins when all but the n before it are done. run: a folder, in which a record of the training is written, with
        digests of the samples and the parameters, every run_every updates (0: about a thousand). rerun: the folder of such a
        record, with which the training is compared; InvalidError names the first difference. compute: "float32", or "bf16"
        or "tf32", with which factors of matrix products are rounded, and steps with gradients that are not finite are
        skipped. feeding: {slot: data layer} where the names differ, or of samples that are tuples {data layer: place}. nan:
        "allow" feeds NaN, which is an error otherwise. A RuntimeWarning names the first minibatch whose cost is not finite.
        A pass without samples costs nan. MisuseError while the set is trained by another call.
        """
        chosen = layers.as_layers(topology)
        if reader is None:
            raise error.InvalidError("training needs a reader", "train", "reader")
        used = _set(parameters)
        cores = layers.make(chosen, readers.types(reader, feeding, layers.untyped(chosen)))
        self.updater = self._chosen(updater)
        given = {"seed": seed, "passes": passes, "pass_batches": pass_batches, "shards": shards,
                 "verify_every": verify_every, "staleness": staleness,
                 "run": run, "run_every": run_every, "rerun": rerun}  # fmt: skip
        options = _check.options(_options.TRAIN, given, "train")
        options.update(outputs=cores, parameters=used, devices=_check.devices(device, "train"))
        options.update(compute=compute_code(compute, "train"), immutable_parameters=_names(immutable_parameters, parameters))
        options.update(self._updaters(parameters, chosen))
        options.update(_parts(checkpoint, early_stop, average, best))
        handle = _handler(event_handler)
        opened = functools.partial(
            open_reader, chosen=chosen, feeding=feeding, batch_size=self.batch_size, nan=_arrays.allows_nan(nan, "train"),
            parameters=parameters,
        )  # fmt: skip
        options.update(_readers(opened, reader, test, handle is not None or self._runs_python()))
        if team is not None:  # the last, since that of dist_train is joined now
            options["team"] = _team(team, parameters)
        with parameters.training():
            _core.train(options, handle, _warn)
        _warn_of_names(parameters)

    def _chosen(self, updater: Any) -> Any:
        """Returns the updater of a training: an argument, or that of the trainer; by default Adam."""
        given = self.updater if updater is None else updater
        return _updaters.make("adam", {}) if given is None else _updaters.as_updater(given)

    def _runs_python(self) -> bool:
        """Whether an updater of the training is written in Python."""
        return any(not hasattr(_updaters.as_updater(each), "core") for each in (self.updater, *self.groups.values()))

    def _updaters(self, parameters: ParameterSet, outputs: Sequence[Layer]) -> dict[str, Any]:
        """Returns the options of a training that are its updaters."""

        def core(given: Any) -> Any:
            of_plugin = getattr(given, "core", None)
            return Rule(given, parameters, outputs).core() if of_plugin is None else of_plugin

        options = {"updater": core(self.updater)}
        if self.groups:
            options["groups"] = [(core(_updaters.as_updater(each)), [name]) for name, each in self.groups.items()]
        return options

    @_host.follows_parameters
    def test(
        self,
        topology: LayerLike | Iterable[LayerLike],
        parameters: ParameterSet,
        reader: Any = None,
        *,
        feeding: Mapping[str, str | int] | None = None,
        device: str | Iterable[str] = "",
        shards: int = 0,
        compute: str = "float32",
        nan: str = "refuse",
    ) -> Result:
        """Measures costs and metrics over one pass of a reader; changes nothing. feeding, device, shards and nan: as in
        train."""
        chosen = layers.as_layers(topology)
        if reader is None:
            raise error.InvalidError("testing needs a reader", "test", "reader")
        cores = layers.make(chosen, readers.types(reader, feeding, layers.untyped(chosen)))
        known = _set(parameters).known()
        allowed = _arrays.allows_nan(nan, "test")
        opened, pairs = open_reader(reader, chosen, feeding, self.batch_size, allowed, known, parameters, readers.Ahead.ALONE)
        cost, samples, metrics, seconds, costs = _core.test(
            {"outputs": cores, "parameters": _set(parameters), "reader": opened, "feeding": pairs,
             "devices": _check.devices(device, "test"), "shards": _check.shards(shards, "test"),
             "compute": compute_code(compute, "test")}
        )  # fmt: skip
        if not samples:
            cost, costs, metrics = event.unmeasured(costs, metrics)
        return Result(cost, metrics, samples, seconds, costs)


_updaters = updater
Updater = updater.Base


def _parts(checkpoint: Any, early_stop: Any, average: Any, best: Any) -> dict[str, Any]:
    """Returns the parts of a training that are left out unless they are stated."""
    options: dict[str, Any] = {}
    if checkpoint is not None:
        options["checkpoint"] = _checkpoint(checkpoint)
    if early_stop is not None:
        options["early_stop"] = _early_stop(early_stop)
    if average is not None:
        options["average"] = _average(average)
    if best is not None:
        options["best"] = _best(best)
    return options


def _set(parameters: Any) -> Any:
    expected = "a set of parameters, as tenon.parameters.create makes it"
    return _check.instance(parameters, ParameterSet, expected, "parameters", "tenon").core


def _team(given: Any, parameters: ParameterSet) -> Any:
    """Returns the team of a training, joined."""
    core = _check.instance(given, Team, "a tenon.Team", "team", "train").core
    if given.host is not parameters.host:
        raise error.InvalidError("the team was joined on another host than that of the parameters", "train", "team")
    return core


def _readers(
    opened: Callable[..., tuple[Any, list[Any]]], reader: Any, test: Any, runs_python: bool
) -> dict[str, Any]:
    """Opens the reader of a training, and that of its tests, for which the numbers of names are those of the first.
    runs_python: whether the training calls functions of the application, which may change arrays."""
    reader, test = readers.as_reader(reader), None if test is None else readers.as_reader(test)
    runs_python = runs_python or readers.Ahead.NEVER in (reader.ahead, reader.ahead if test is None else test.ahead)
    ahead = readers.Ahead.ALWAYS if runs_python else readers.Ahead.ALONE
    opened = functools.partial(opened, ahead=ahead)
    core, pairs = opened(reader)
    options = {"reader": core, "feeding": pairs}
    if test is not None:
        layer_of = dict(pairs)
        known = [each.of(layer_of.get(each.slot, each.slot)) for each in core.known()]
        tested, fed = opened(test, known=known)
        options["test"] = {"reader": tested, "feeding": fed}
    return options


def _names(given: Iterable[str] | str, parameters: ParameterSet) -> list[str]:
    names = _check.texts(given, "immutable_parameters", "train")
    for name in names:
        if not any(each == name or each.startswith(name + ".") for each in parameters):
            heads = {each.split(".")[0] for each in parameters} | set(parameters)
            raise error.NotFoundError(
                f'immutable_parameters: the set has no parameter "{name}"{error.suggestion(name, heads)}',
                "train",
                name,
            )
    return names


def _checkpoint(given: Checkpoint | str) -> dict[str, Any]:
    options = given if isinstance(given, Checkpoint) else Checkpoint(given)
    folder = _check.path(options.folder, "folder", "checkpoint")
    fields = _check.options(_options.CHECKPOINT, {**vars(options), "folder": folder}, "checkpoint")
    fields["resume_with"] = _check.texts(options.resume_with, "resume_with", "checkpoint")
    fields["start"] = _core.START_RESUME_OR_FRESH if options.resume else _core.START_FRESH
    return fields


def _early_stop(given: Any) -> dict[str, Any]:
    known = _options.EARLY_STOP
    options = {"metric": given} if isinstance(given, str) else _check.mapping(given, "early_stop", "train", known)
    return _check.options(known, options, "early_stop")


def _average(given: Any) -> dict[str, Any]:
    return _with_sets(given, "average", _options.AVERAGE, {"parameters": "a set of parameters, which receives the averages"})


def _best(given: Any) -> dict[str, Any]:
    expected = "a set of parameters, which receives the values at the best measurement"
    sets = {"parameters": expected, **({"averages": expected} if isinstance(given, Mapping) and "averages" in given else {})}
    return _with_sets(given, "best", _options.BEST, sets, ("averages",))


def _with_sets(
    given: Any, name: str, known: Mapping[str, _check.Option], sets: Mapping[str, str], further: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns the options of a part of a training that has sets. sets: what is expected of each; further: other names."""
    options = _check.mapping(given, name, "train", (*sets, *further, *known))
    cores = {each: _check.instance(options.get(each), ParameterSet, what, each, name).core for each, what in sets.items()}
    return {**cores, **_check.options(known, options, name)}


Default = SGD()


def train(
    topology: LayerLike | Iterable[LayerLike],
    parameters: ParameterSet,
    reader: Any = None,
    event_handler: Any = None,
    **options: Any,
) -> None:
    """Trains with tenon.trainer.Default, or with updater=. The arguments are those of SGD.train, and batch_size."""
    trainer = SGD(options.pop("updater", None) or Default.updater, options.pop("batch_size", Default.batch_size))
    trainer.train(topology, parameters, reader, event_handler, **options)


def test(
    topology: LayerLike | Iterable[LayerLike], parameters: ParameterSet, reader: Any = None, **options: Any
) -> Result:
    """Measures costs and metrics over one pass of a reader."""
    return SGD(None, options.pop("batch_size", Default.batch_size)).test(topology, parameters, reader, **options)


@_host.follows_parameters
def infer(
    outputs: LayerLike | Iterable[LayerLike] | BeamSearch,
    parameters: ParameterSet,
    input: Any = None,
    *,
    reader: Any = None,
    feeding: Mapping[str, str | int] | None = None,
    batch_size: int = 256,
    nan: str = "refuse",
) -> Any:
    """Computes outputs: an array [samples, ...] for one output, a list of them for several.

    input: samples: a dict of arrays by data layer; an array or list of samples for a topology of one data layer; a list
    of samples, dicts or tuples; or a reader. reader: the same, a reader. outputs: also what tenon.beam_search makes.
    feeding and nan: as in SGD.train.
    """
    if isinstance(outputs, BeamSearch):
        return outputs.infer(parameters, input)
    given = _arrays.opened(reader if reader is not None else input)
    if given is None:
        raise error.InvalidError("inference needs an input", "infer", "input")
    single = isinstance(outputs, (layers.Layer, str))
    if not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
        raise error.InvalidError(f"batch_size is {batch_size!r}; expected an integer from 1 on", "infer", "batch_size")
    chosen = layers.as_layers(outputs)
    typed = isinstance(given, (Mapping, readers.Reader)) or _arrays.is_frame(given)  # by its slots
    cores = layers.make(chosen, readers.types(given, feeding, layers.untyped(chosen)) if typed else None)
    _set(parameters)
    layers.require_host(cores, parameters.host.core, "infer")
    for each in chosen:
        if each.role == "metric":
            raise error.InvalidError(
                f'layer "{each.name}" ({each.type}) is a metric, which has no output to infer; tenon.test measures it. '
                'Give the other outputs, as [each for each in outputs if each.role != "metric"]',
                "infer",
                each.name,
            )
    types = layers.data_types(chosen)
    results = _infer(chosen, cores, parameters, given, types, feeding, batch_size, _arrays.allows_nan(nan, "infer"))
    return results[0] if single else results


def _infer(
    chosen: Sequence[layers.Layer], cores: list[Any], parameters: ParameterSet, given: Any, types: Any, feeding: Any,
    batch_size: int, nan: bool,
) -> list[Any]:  # fmt: skip
    parts: list[list[Any]] = []
    recipe = readers.as_reader(given) if _arrays.is_table(given) else readers.samples_or_feeds(given, types, feeding)
    if not isinstance(recipe, readers.Reader):
        feeds, samples = _arrays.feeds(recipe, types, nan, parameters.names)
        predictor = _with_parameters(
            parameters, cores, lambda: _core.Predictor(parameters.core, cores, max(1, samples), 1)
        )
        return [_arrays.from_core(each) for each in predictor.predict(feeds)]
    opened, pairs = open_reader(recipe, chosen, feeding, batch_size, nan, parameters.core.known(), parameters)
    options = {"outputs": cores, "parameters": parameters.core, "reader": opened, "feeding": pairs}
    _with_parameters(parameters, cores, lambda: _core.infer(options, parts.append))
    if not parts:
        raise error.BadDataError("the input of infer has no samples", "infer")
    warn_of_left_out(opened)
    return [_arrays.join([_arrays.from_core(part[i]) for part in parts]) for i in range(len(cores))]


def _with_parameters(parameters: ParameterSet, cores: list[Any], call: Callable[[], Any]) -> Any:
    """Calls the library. A parameter that the set lacks is often one of a network that was built again."""
    try:
        return call()
    except (error.NotFoundError, error.InvalidError):
        entries = parameters.host.core.declare(cores).entries()
        missing = [each["name"] for each in entries if each["name"] not in parameters]
        if not missing:
            raise
        raise error.NotFoundError(
            f'infer: the set has no parameter "{missing[0]}", which the network needs. Automatic names of layers count '
            "on over the host, so that a network that is built again has others: name its layers, or begin with "
            "tenon.use(tenon.Host())",
            "infer",
            missing[0],
        ) from None


def __dir__() -> list[str]:
    return sorted(__all__)
