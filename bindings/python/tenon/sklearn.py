"""Estimators for scikit-learn: networks with fit, predict and score, for pipelines and searches over parameters.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin  # type: ignore
from sklearn.utils.multiclass import check_classification_targets  # type: ignore
from sklearn.utils.validation import (  # type: ignore
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from tenon import data_type, event, layer, parameters, trainer, updater
from tenon import reader as readers
from tenon._base import check as _check
from tenon._base.arrays import _is_scipy
from tenon._model.layer import Layer

__all__ = ["TenonClassifier", "TenonRegressor"]


class _Network(BaseEstimator):  # type: ignore
    """What both estimators share: a network on rows of numbers, dense or sparse."""

    def __init__(
        self,
        hidden: Sequence[int] = (64,),
        act: str = "relu",
        network: Callable[[Layer], Layer] | None = None,
        passes: int = 20,
        batch_size: int = 32,
        updater: str = "adam",
        learning_rate: float = 0.01,
        l2: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.hidden = hidden
        self.act = act
        self.network = network
        self.passes = passes
        self.batch_size = batch_size
        self.updater = updater
        self.learning_rate = learning_rate
        self.l2 = l2
        self.seed = seed

    def _fit(
        self, rows: Any, size: int, label: data_type.DataType, labels: Any, cost: Callable[..., Layer], weights: Any
    ) -> None:
        name = type(self).__name__
        seed = _check.seed(self.seed, name)
        passes, batch_size = _check.whole(self.passes, "passes", name), _check.whole(self.batch_size, "batch_size", name, 1)
        if not isinstance(self.hidden, Iterable):
            _check.refuse(self.hidden, "a sequence of sizes", "hidden", name)
        hidden = [_check.whole(each, "hidden", name, 1) for each in self.hidden]
        width = rows.shape[1]
        of = data_type.sparse_float_vector(width) if _is_scipy(rows) else data_type.dense_vector(width)
        values = layer.data("x", of)
        if self.network is None:
            for number, units in enumerate(hidden):
                values = layer.fc(values, size=units, act=self.act, name=f"hidden_{number}")
        else:
            values = self.network(values)
        output = layer.fc(values, size=size, name="output")
        columns = {"x": rows, "y": labels}
        inputs = [output, layer.data("y", label)]
        if weights is not None:
            columns["weight"] = _check_sample_weight(weights, rows, dtype=np.float32)[:, None]
            inputs.append(layer.data("weight", data_type.dense_vector(1)))
        costs = cost(*inputs)
        self.parameters_ = parameters.create([output, costs], seed=seed)
        options: dict[str, Any] = {"learning_rate": self.learning_rate}
        if self.l2:
            options["l2"] = self.l2
        used = updater.Updater(self.updater, options)
        stream = readers.arrays(columns).shuffle(seed=seed).batch(batch_size)
        self.history_: list[float] = []

        def note(happened: event.Event) -> None:
            if isinstance(happened, event.EndPass):
                self.history_.append(happened.cost)

        trainer.train(costs, self.parameters_, stream, note, passes=passes, updater=used, seed=seed)

    def _output(self, rows: Any) -> Any:
        check_is_fitted(self, "parameters_")
        given = validate_data(self, rows, accept_sparse="csr", dtype=np.float32, reset=False)
        return trainer.infer(self.parameters_.outputs[0], self.parameters_, {"x": given})

    def _rows(self, rows: Any, labels: Any, **options: Any) -> tuple[Any, Any]:
        found: tuple[Any, Any] = validate_data(self, rows, labels, accept_sparse="csr", dtype=np.float32, **options)
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class TenonClassifier(ClassifierMixin, _Network):  # type: ignore
    """A network that tells classes apart, by softmax and cross-entropy.

    hidden: sizes of the hidden layers, with the activation act; network: a function of the layer of the inputs that
    returns the last hidden layer, in place of both. passes, batch_size, updater (a type of tenon.updater), learning_rate
    and l2: of the training; seed: of first values, the order of samples and dropout.

    classes_: the labels, of any type; history_: the mean cost of each pass; parameters_: the trained parameters.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TenonClassifier:
        """Trains on the rows of X, [samples, features], dense or sparse, with labels y, [samples]. sample_weight: by
        which the cost of each sample is multiplied, [samples]."""
        check_classification_targets(y)
        rows, labels = self._rows(X, y)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        count = max(2, len(self.classes_))

        def cost(*inputs: Layer) -> Layer:
            return layer.cross_entropy(*inputs, from_logits=True, name="cost")

        self._fit(rows, count, data_type.integer_value(count), numbers, cost, sample_weight)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Returns the probabilities of the classes, [samples, classes]."""
        scores = self._output(X)
        scores = scores[:, : len(self.classes_)]
        powers = np.exp(scores - scores.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """Returns the most probable labels, [samples]."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]


class TenonRegressor(RegressorMixin, _Network):  # type: ignore
    """A network that predicts numbers, by the squared error. The arguments are those of TenonClassifier.

    Labels are standardised for the training; predictions have their units.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TenonRegressor:
        """Trains on the rows of X, [samples, features], with numbers y, [samples] or [samples, outputs]. sample_weight:
        by which the cost of each sample is multiplied, [samples]."""
        rows, labels = self._rows(X, y, multi_output=True, y_numeric=True)
        if np.ndim(labels) == 2 and labels.shape[1] == 1:
            labels = column_or_1d(labels, warn=True)
        numbers = np.asarray(labels, np.float64).reshape(len(labels), -1)
        self._flat = np.ndim(labels) == 1
        self._mean, deviation = numbers.mean(0), numbers.std(0)
        self._scale = np.where(deviation > 0, deviation, 1.0)
        scaled = ((numbers - self._mean) / self._scale).astype(np.float32)
        size = scaled.shape[1]

        def cost(*inputs: Layer) -> Layer:
            return layer.square_error(*inputs, name="cost")

        self._fit(rows, size, data_type.dense_vector(size), scaled, cost, sample_weight)
        return self

    def predict(self, X: Any) -> Any:
        """Returns the predictions, [samples] or [samples, outputs]."""
        found = self._output(X)
        found = found * self._scale + self._mean
        return found[:, 0] if self._flat else found
