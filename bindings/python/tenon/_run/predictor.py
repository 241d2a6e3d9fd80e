"""Predictors: one model for any number of threads. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenon import _core, error
from tenon import parameters as sets
from tenon import reader as readers
from tenon._base import arrays as _arrays
from tenon._base import arrow
from tenon._base import check as _check
from tenon._base import host as _host
from tenon._base.table import Categories, Table
from tenon._model import layer as layers
from tenon._model.layer import Layer, LayerLike
from tenon._run import classes as _classes
from tenon._run.feeding import open_reader, warn_of_left_out
from tenon.data_type import DataType
from tenon.parameters import ParameterSet

_OF = "predictor"


class Predictor:
    """Computes outputs of one model, for any number of threads at the same time.

        with tenon.Predictor("model.safetensors") as predictor:
            scores = predictor(frame)

    model: the path of a model file, or the outputs of a topology, whose set is `parameters`. outputs: of a file, the names
    of the layers to compute; default those it was saved for, without costs and metrics. machines: predictions at the same
    time, further threads wait; 0: the host's threads. max_samples: of one computation; more samples are computed part by
    part. nan: "allow" takes NaN, which is an error otherwise.

    A predictor has the values that the parameters had when it was made; refresh takes new ones. One of a file can be
    pickled: the other process reads the file again.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | LayerLike | Iterable[LayerLike],
        parameters: ParameterSet | None = None,
        *,
        outputs: str | Sequence[str] | None = None,
        machines: int = 0,
        max_samples: int = 256,
        nan: str = "refuse",
    ) -> None:
        self._nan = _arrays.allows_nan(nan, _OF)
        self._limit = _check.whole(max_samples, "max_samples", _OF, 1, 2**31 - 1)
        machines = _check.whole(machines, "machines", _OF, 0, 1024)
        self._options = {"outputs": outputs, "machines": machines, "max_samples": self._limit, "nan": nan}
        self.path: str | None = None
        if parameters is None:
            self.path = os.path.abspath(_check.path(model, "model", _OF))
            parameters = sets.load(self.path)
            chosen, single = _outputs(parameters, outputs)
        else:
            expected = "a set of parameters, as tenon.parameters.create makes it"
            _check.instance(parameters, ParameterSet, expected, "parameters", _OF)
            if outputs is not None:
                _check.refuse(outputs, "None where the model is given by its outputs", "outputs", _OF)
            single = isinstance(model, (Layer, str))
            chosen = layers.as_layers(model)  # type: ignore[arg-type]
        self.host = parameters.host
        self.parameters = parameters
        self.outputs = chosen
        self._single = single
        self._make(machines)

    @_host.follows_parameters
    def _make(self, machines: int) -> None:
        cores = layers.make(self.outputs)
        layers.require_host(cores, self.host.core, _OF)
        for each in self.outputs:
            if each.role == "metric":
                raise error.InvalidError(
                    f'layer "{each.name}" ({each.type}) is a metric, which has no output to predict', _OF, each.name
                )
        self._types = layers.data_types(self.outputs)
        self._names = self.parameters.names()
        labels = _classes.labels_of(self.parameters.outputs, self._names)
        self._classes = {each.name: _classes.names_of(each, labels) for each in self.outputs}
        self._known = self.parameters.core.known()
        self._core: Any = _core.Predictor(self.parameters.core, cores, self._limit, machines)

    @property
    def inputs(self) -> dict[str, DataType]:
        """The types of the data layers that the outputs need, by name."""
        return dict(self._types)

    def class_names(self, output: str | None = None) -> list[str]:
        """Returns the names of the classes of an output, default the only one. NotFoundError if the model has none."""
        return self._named(self._output(output))[0]

    def predict(self, data: Any, *, names: bool = False, feeding: Any = None) -> Any:
        """Computes the outputs of many samples: an array [samples, ...] for one output, a list of them for several.

        data: as in tenon.infer: a dict of arrays or lists by data layer, a frame or a table by columns, of which others
        are ignored; a list of samples, dicts or tuples; values for the only data layer; or a reader. names: of outputs
        that are numbers of classes, such as those of argmax, their names. feeding: as in tenon.train.
        """
        results = self._predict(data, feeding)
        if names:
            results = [self._with_names(each, values) for each, values in zip(self.outputs, results, strict=True)]
        return results[0] if self._single else results

    __call__ = predict

    def one(self, sample: Any, *, names: bool = False) -> Any:
        """Computes the outputs of one sample: a dict, a row of a frame or a tuple by data layer, or the value of the only
        data layer. Returns values without the dimension of samples."""
        if hasattr(sample, "iloc") and hasattr(sample, "to_dict"):
            sample = sample.to_dict()
        elif isinstance(sample, np.void) and sample.dtype.names is not None:
            sample = {name: sample[name] for name in sample.dtype.names}
        if isinstance(sample, Mapping):
            found = self.predict({name: _alone(sample[name]) for name in self._types if name in sample}, names=names)
        elif len(self._types) == 1 and not isinstance(sample, tuple):
            found = self.predict({next(iter(self._types)): _alone(sample)}, names=names)
        else:
            found = self.predict([sample], names=names)
        return found[0] if self._single else [each[0] for each in found]

    def argmax(self, data: Any, *, output: str | None = None, names: bool = False) -> NDArray[Any]:
        """Returns the class with the highest score of each sample; names: its name."""
        layer = self._output(output)
        best = self._scores(layer, data).argmax(1)
        return Categories(best, self._named(layer)[0]).texts() if names else best

    def top_k(
        self, data: Any, k: int, *, output: str | None = None, names: bool = False
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Returns the k classes with the highest scores of each sample, [samples, k], the best first, and their scores.
        names: their names."""
        layer = self._output(output)
        scores = self._scores(layer, data)
        k = _check.whole(k, "k", _OF, 1, scores.shape[1])
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        classes = Categories(best, self._named(layer)[0]).texts() if names else best
        return classes, np.take_along_axis(scores, best, 1)

    @_host.follows_parameters
    def table(self, data: Any, *, keep: str | Sequence[str] = ()) -> Table:
        """Returns the outputs of many samples as a table for pyarrow, polars, pandas and DuckDB: a column for each output,
        and "<output>.class" of the best class if its classes have names. keep: columns of the data that go before. Of a
        reader the first column is "record", the number of the record in the data, from 0, since a reader may leave out
        some; its columns are kept as texts, also those that it does not read, such as "file" of images."""
        names = _check.texts(keep, "keep", _OF)
        data = _arrays.opened(data)
        columns: dict[str, Any] = {}
        if isinstance(data, readers.Reader):
            results, stream = self._read(data, None)
            samples = len(results[0])
            columns["record"] = np.array([stream.record(i) for i in range(samples)] if stream.left_out() else range(samples))
            columns |= self._texts(data, names, samples)
        else:
            columns |= _kept(data, names)
            results = self._predict(data, None)
        for layer, values in zip(self.outputs, results, strict=True):
            classes = self._classes[layer.name]
            columns[layer.name] = values
            if classes is not None and isinstance(values, np.ndarray) and (classes[1] or values.ndim == 2):
                numbers = values if classes[1] else values.argmax(1)
                columns[f"{layer.name}.class"] = Categories(numbers, classes[0])
        return Table(columns)

    @_host.follows_parameters
    def refresh(self, parameters: ParameterSet | None = None) -> None:
        """Takes the present values of the set, or of another one with the same parameters. Predictions that run end with
        the values before."""
        self._live().refresh((self.parameters if parameters is None else parameters).core)

    def close(self) -> None:
        """Ends the predictor. Predictions of other threads end first; later ones are a MisuseError."""
        self._core = None

    def __enter__(self) -> Predictor:
        self._live()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        if self.path is None:
            raise error.MisuseError(
                "a predictor that was made of layers cannot be pickled: save its parameters, and make it of the file", _OF
            )
        return _of_file, (self.path, self._options)

    def __repr__(self) -> str:
        return f"<tenon.Predictor of {', '.join(each.name for each in self.outputs)}>"

    def _live(self) -> Any:
        core = self._core
        if core is None:
            raise error.MisuseError("the predictor is closed", _OF)
        return core

    @_host.follows_parameters
    def _predict(self, data: Any, feeding: Any) -> list[Any]:
        core = self._live()
        values = readers.samples_or_feeds(_arrays.opened(data), self._types, feeding)
        if not isinstance(values, readers.Reader):
            feeds, samples = _arrays.feeds(values, self._types, self._nan, lambda: self._names)
            if samples <= self._limit:
                return [_arrays.from_core(each) for each in core.predict(feeds)]
            values = readers.as_reader(values)
        results, stream = self._read(values, feeding)
        warn_of_left_out(stream)
        return results

    def _open(self, recipe: readers.Reader, feeding: Any) -> tuple[Any, dict[str, str]]:
        """Returns minibatches of a reader, and the data layers of its slots."""
        stream, pairs = open_reader(recipe, self.outputs, feeding, self._limit, self._nan, self._known, self.parameters)
        return stream, dict(pairs)

    def _texts(self, recipe: readers.Reader, names: Sequence[str], samples: int) -> dict[str, list[str]]:
        """Returns columns of the data of a reader, which is opened a second time."""
        columns: dict[str, list[str]] = {}
        for name in names:
            stream = self._open(recipe, None)[0]
            texts = enumerate(stream.text(number, name) for number in range(samples))
            columns[name] = [arrow.category(text, f'sample {number}: column "{name}"', name) for number, text in texts]
        return columns

    def _read(self, recipe: readers.Reader, feeding: Any) -> tuple[list[Any], Any]:
        """Returns the outputs of one pass of a reader, and the reader after it."""
        core = self._live()
        stream, layer_of = self._open(recipe, feeding)
        slots = [layer_of.get(each["name"], each["name"]) for each in stream.slots()]
        parts = []
        while (minibatch := stream.next()) is not None:
            fed = {name: _arrays.from_core(each) for name, each in zip(slots, minibatch, strict=True) if name in self._types}
            feeds, samples = _arrays.feeds(fed, self._types, True)
            if samples > self._limit:
                raise error.InvalidError(
                    f"{_OF}: a minibatch of the reader has {samples} samples; expected at most max_samples={self._limit}",
                    _OF,
                    "max_samples",
                )
            parts.append(core.predict(feeds))
        if not parts:
            raise error.BadDataError("the data has no samples", _OF)
        return [_arrays.join([_arrays.from_core(part[i]) for part in parts]) for i in range(len(self.outputs))], stream

    def _output(self, name: str | None) -> Layer:
        if name is None and len(self.outputs) == 1:
            return self.outputs[0]
        names = [each.name for each in self.outputs]
        if name not in names:
            raise error.InvalidError(f"{_OF}: output is {name!r}; expected one of {', '.join(names)}", _OF, "output")
        return self.outputs[names.index(name)]

    def _named(self, layer: Layer) -> tuple[list[str], bool]:
        named = self._classes[layer.name]
        if named is None:
            raise error.NotFoundError(
                f'the model has no names for the classes of "{layer.name}": names come from the categories of a label that '
                "a cost or metric of the saved model reads beside these scores",
                _OF,
                layer.name,
            )
        return named

    def _scores(self, layer: Layer, data: Any) -> NDArray[Any]:
        scores = self._predict(data, None)[self.outputs.index(layer)]
        if not isinstance(scores, np.ndarray) or scores.ndim != 2:
            form = f"shape {list(layer.shape)}" if isinstance(scores, np.ndarray) else "sequences"
            raise error.InvalidError(
                f'output "{layer.name}" has {form}; expected scores [samples, classes]', _OF, layer.name
            )
        return scores

    def _with_names(self, layer: Layer, values: Any) -> Any:
        named = self._classes[layer.name]
        if named is None or not named[1]:
            return values
        if isinstance(values, _arrays.Ragged):
            return _arrays.Ragged(Categories(values.values, named[0]).texts(), values.offsets, values.inner)
        return Categories(values, named[0]).texts()


def _of_file(path: str, options: dict[str, Any]) -> Predictor:
    return Predictor(path, **options)


def _kept(data: Any, names: Sequence[str]) -> dict[str, Any]:
    """Returns columns of the data."""
    columns = _arrays.columns_of(data) if _arrays.is_frame(data) else data
    known = list(columns) if isinstance(columns, Mapping) else []
    for name in names:
        if name not in known:
            near = error.suggestion(name, known)
            raise error.NotFoundError(f'the data has no column "{name}"; it has {known}{near}', _OF, name)
    return {name: columns[name] for name in names}


def _alone(value: Any) -> Any:
    """Returns a minibatch of one value, which a matrix of SciPy with one row is."""
    if _arrays._is_scipy(value) and value.shape[0] == 1:
        return value
    return value[None] if isinstance(value, np.ndarray) and value.dtype != object else [value]


def _outputs(parameters: ParameterSet, names: str | Sequence[str] | None) -> tuple[list[Layer], bool]:
    """Returns the layers of a loaded model to compute, and whether one is meant alone."""
    saved = parameters.outputs
    if names is None:
        found = [each for each in saved if each.role == "layer"] or _scored(saved)
        return found, len(found) == 1
    found = []
    for name in _check.texts(names, "outputs", _OF):
        layer = next((each for output in saved if (each := output.find(name)) is not None), None)
        if layer is None:
            near = error.suggestion(name, [each.name for each in layers.in_order(saved)])
            raise error.NotFoundError(f'the model has no layer "{name}"{near}', _OF, name)
        found.append(layer)
    return found, isinstance(names, str)


def _scored(saved: Sequence[Layer]) -> list[Layer]:
    """Returns what costs and metrics read that is computed: the predictions of a model that was saved for these alone."""
    found = {each.name: each for layer in saved for each in layer.inputs if each.type != "data" and each.role == "layer"}
    return list(found.values())
