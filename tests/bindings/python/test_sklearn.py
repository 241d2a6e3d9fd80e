"""Estimators in scikit-learn. SPDX-License-Identifier: Apache-2.0"""

import pickle
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import tenon
from tenon.sklearn import TenonClassifier, TenonRegressor

BY_MINIBATCHES = {
    f"check_sample_weight_equivalence_on_{form}_data": "a sample of weight 2 is not two samples in the minibatches of a pass"
    for form in ("dense", "sparse")
}

random = np.random.default_rng(0)
X = random.normal(size=(300, 5)) * [1, 10, 100, 1, 1]
Y = np.array(["low", "high", "middle"])[np.digitize(X[:, 0] + X[:, 1] / 10, [-0.5, 0.5])]
NUMBERS = 1000 + 50 * (X[:, 0] * X[:, 3] + X[:, 1] / 10)


def test_a_classifier_in_a_pipeline():
    model = make_pipeline(StandardScaler(), TenonClassifier(hidden=(16,), passes=15))
    assert model.fit(X, Y).score(X, Y) > 0.93
    probabilities = model.predict_proba(X[:4])
    assert probabilities.shape == (4, 3)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-6)
    assert set(model.predict(X)) == {"low", "middle", "high"}
    assert len(model[-1].history_) == 15 and model[-1].history_[-1] < model[-1].history_[0]


def test_a_regressor_keeps_the_units():
    model = make_pipeline(StandardScaler(), TenonRegressor(hidden=(32,), passes=40)).fit(X, NUMBERS)
    assert model.score(X, NUMBERS) > 0.9 and model.predict(X).shape == (300,)
    both = np.stack([NUMBERS, -NUMBERS], 1)
    assert TenonRegressor(hidden=(8,), passes=2).fit(X, both).predict(X).shape == (300, 2)


def test_a_search_over_parameters():
    search = GridSearchCV(TenonClassifier(passes=3), {"hidden": [(4,), (16, 8)], "learning_rate": [0.0, 0.05]}, cv=2)
    search.fit(X / X.std(0), Y)
    assert search.best_params_["learning_rate"] == 0.05


def test_cloning_and_pickling():
    model = TenonClassifier(hidden=(8,), passes=2, l2=1e-4, seed=4).fit(X, Y)
    again = clone(model)
    assert again.get_params() == model.get_params() and not hasattr(again, "parameters_")
    np.testing.assert_array_equal(again.fit(X, Y).predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))


def test_sparse_rows_are_rows():
    dense = np.where(random.random((200, 30)) < 0.1, 1.0, 0.0)
    labels = (dense[:, :5].sum(1) > 0.5).astype(int)
    found = [TenonClassifier(passes=10).fit(rows, labels).predict_proba(rows)
             for rows in (dense, scipy.sparse.csr_matrix(dense))]  # fmt: skip
    # Adam leaves rows of a weight alone whose columns a minibatch lacks, so that the numbers differ a little.
    np.testing.assert_allclose(found[0], found[1], atol=0.02)


def test_a_network_of_ones_own():
    def network(x):
        return tenon.layer.fc(tenon.layer.fc(x, size=8, act="tanh"), size=8, act="mish")

    assert TenonClassifier(network=network, passes=20).fit(X / X.std(0), Y).score(X / X.std(0), Y) > 0.85


@pytest.mark.parametrize("kind", [TenonClassifier, TenonRegressor])
def test_the_rules_of_scikit_learn_hold(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(kind(passes=5), on_fail=None, expected_failed_checks=BY_MINIBATCHES)
    assert [each["check_name"] for each in results if each["status"] not in ("passed", "skipped", "xfail")] == []
    assert len(results) > 40


def test_mistakes_are_told():
    with pytest.raises(NotFittedError):
        TenonClassifier().predict(X)
    with pytest.raises(ValueError, match="features"):
        TenonClassifier(passes=1).fit(X, Y).predict(X[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        TenonRegressor().fit(np.full((3, 2), np.nan), [1, 2, 3])
    with pytest.raises(tenon.error.NotFoundError, match="adm"):
        TenonClassifier(updater="adm").fit(X, Y)


@pytest.mark.parametrize("kind", [TenonClassifier, TenonRegressor])
def test_samples_of_no_weight_teach_nothing(kind):
    random = np.random.default_rng(0)
    rows = random.normal(size=(300, 3))
    labels = (rows[:, 0] > 0).astype(int)
    wrong = np.where(np.arange(300) < 200, 1 - labels, labels)
    network = kind(hidden=(), passes=30)
    network.fit(rows, wrong, sample_weight=np.arange(300) >= 200)
    found = network.predict(rows) > 0.5
    assert (found == labels).mean() > 0.9


@pytest.mark.parametrize("option", [{"seed": None}, {"seed": -1}, {"hidden": -1}, {"hidden": (-1,)}, {"passes": 1.5}])
def test_wrong_options_are_named(option):
    [name] = option
    with pytest.raises(tenon.error.InvalidError, match=f"TenonClassifier: {name} is"):
        TenonClassifier(**option).fit(np.eye(4), [0, 1, 0, 1])
