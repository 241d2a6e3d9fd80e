"""Pipelines of scikit-learn for make.py: scalers, encoders, linear models and networks. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn import compose, decomposition, discriminant_analysis, impute, linear_model, neural_network, pipeline, svm
from sklearn import preprocessing as ready

warnings.filterwarnings("ignore")
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(80, 4)).astype(np.float32) * [1, 3, 0.5, 2] + [0, 1, -2, 5]
X = X.astype(np.float32)
CLASS = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.8])
NUMBER = X @ [1.0, -2, 0.5, 0.1] + 0.3
CODES = np.stack([RANDOM.integers(0, 4, 80), RANDOM.integers(10, 13, 80)], 1)
SAMPLE = np.concatenate([X[:3], RANDOM.normal(size=(2, 4)).astype(np.float32) * 4])


def steps(*parts):
    return pipeline.make_pipeline(*parts)


def with_missing():
    x = X.copy()
    x[::7, 1] = x[::5, 3] = np.nan
    return x


def table():
    """Numbers that are scaled beside codes that are spread to columns."""
    columns = compose.ColumnTransformer([("number", ready.StandardScaler(), [0, 1, 2, 3]),
                                         ("code", ready.OneHotEncoder(), [4, 5])])  # fmt: skip
    both = np.concatenate([X, CODES.astype(np.float32)], 1)
    return steps(columns, linear_model.LogisticRegression(max_iter=500)).fit(both, CLASS), both[:5]


SCALED = ready.StandardScaler
PLAIN = {"zipmap": False}
# Name: the pipeline after its training, an input, options, and the outputs that are wanted in place of all.
MODELS = {
    "logistic": lambda: (steps(SCALED(), linear_model.LogisticRegression()).fit(X, CLASS > 1), SAMPLE, {}, None),
    "classes": lambda: (steps(ready.MinMaxScaler(), linear_model.LogisticRegression()).fit(X, CLASS), SAMPLE, PLAIN, None),
    "names": lambda: (steps(SCALED(), linear_model.LogisticRegression()).fit(X, np.array(["low", "mid", "high"])[CLASS]),
                      SAMPLE, PLAIN, ["probabilities"]),
    "ridge": lambda: (steps(ready.RobustScaler(), linear_model.Ridge()).fit(X, NUMBER), SAMPLE, {}, None),
    "missing": lambda: (steps(impute.SimpleImputer(), ready.MaxAbsScaler(), linear_model.LinearRegression())
                        .fit(with_missing(), np.stack([NUMBER, -NUMBER], 1)), with_missing()[:8], {}, None),
    "table": lambda: (*table(), PLAIN, None),
    "network": lambda: (steps(SCALED(), neural_network.MLPClassifier(hidden_layer_sizes=(6,), max_iter=200,
                                                                     random_state=0)).fit(X, CLASS + 3), SAMPLE, PLAIN, None),
    "curve": lambda: (neural_network.MLPRegressor(hidden_layer_sizes=(7, 5), activation="tanh", max_iter=200, random_state=0)
                      .fit(X, NUMBER), SAMPLE, {}, None),
    "margin": lambda: (steps(ready.Normalizer(), linear_model.SGDClassifier("log_loss", random_state=0)).fit(X, CLASS),
                       SAMPLE, PLAIN, None),
    "kernel": lambda: (steps(SCALED(), svm.SVR()).fit(X, NUMBER), SAMPLE, {}, None),
    "parts": lambda: (steps(decomposition.PCA(3), ready.Binarizer(threshold=0.1), linear_model.SGDRegressor(random_state=0))
                      .fit(X, NUMBER), SAMPLE, {}, None),
    "groups": lambda: (discriminant_analysis.LinearDiscriminantAnalysis().fit(X, CLASS), SAMPLE, PLAIN, None),
}  # fmt: skip
