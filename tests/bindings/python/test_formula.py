"""Formulas in Python, and check_gradient. SPDX-License-Identifier: Apache-2.0"""

import numpy as np
import pytest

import tenon
from tenon import math


def evaluate(layer, **feeds):
    return tenon.infer(layer, tenon.parameters.create(layer), feeds)


@tenon.formula
def mish(x):
    return x * tanh(log(1 + exp(x)))  # noqa: F821  (names of tenon.math)


@tenon.formula
def swish(x, beta=1.0):
    return x * math.sigmoid(beta * x)


@tenon.formula
def with_numpy(x, y):
    return np.tanh(x) + np.maximum(x, y) / 2 - np.exp(-(y**2))


@tenon.formula
def branches(x, y):
    small = (x < y) & ~(y <= 0) | (x == 0)
    return math.where(small, x + 1, abs(y)) + (x > 0.5)


@tenon.formula
def doubled_often(x):
    for _ in range(60):
        x = x + x
    return x


X = np.array([[-1.5, 0.25, 2], [3, -4, 0]], np.float32)
Y = np.array([[1.0, -2, 3]] * 2, np.float32)


@pytest.fixture
def x():
    return tenon.layer.data("x", tenon.data_type.dense_vector(3))


@pytest.fixture
def y():
    return tenon.layer.data("y", tenon.data_type.dense_vector(3))


def test_formulas_compute_what_they_say(x, y):
    np.testing.assert_allclose(evaluate(mish(x), x=X), X * np.tanh(np.log1p(np.exp(X))), rtol=1e-5)
    np.testing.assert_allclose(evaluate(swish(x, beta=2), x=X), X / (1 + np.exp(-2 * X)), rtol=1e-5)
    expected = np.tanh(X) + np.maximum(X, Y) / 2 - np.exp(-(Y**2))
    np.testing.assert_allclose(evaluate(with_numpy(x, y), x=X, y=Y), expected, rtol=1e-5)
    small = (X < Y) & ~(Y <= 0) | (X == 0)
    expected = np.where(small, X + 1, abs(Y)) + (X > 0.5)
    np.testing.assert_allclose(evaluate(branches(x, y), x=X, y=Y), expected, rtol=1e-6)


def test_shared_parts_are_recorded_once(x):
    layer = doubled_often(x)
    assert len(layer.describe()["attributes"]["formula"]) < 3000
    np.testing.assert_allclose(evaluate(layer, x=X), X * 2.0**60)


def test_inputs_are_broadcast(x):
    one = tenon.layer.data("one", tenon.data_type.dense_array([]))
    found = evaluate(with_numpy(x, one), x=X, one=[1.0, 2])
    second = np.array([[1.0], [2]])
    np.testing.assert_allclose(found, np.tanh(X) + np.maximum(X, second) / 2 - np.exp(-(second**2)), rtol=1e-5)


def test_formulas_are_saved_with_models(x, tmp_path):
    layer = swish(tenon.layer.fc(x, size=2), beta=3, name="out")
    parameters = tenon.parameters.create(layer)
    parameters.save(tmp_path / "model.safetensors")
    loaded = tenon.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(tenon.infer(loaded.outputs[0], loaded, X), tenon.infer(layer, parameters, X))


def test_a_formula_trains_as_the_layer_of_a_plugin_does(x):
    """The same maths: gradients are those of the native layer, and the plan has as many calls."""
    label = tenon.layer.data("label", tenon.data_type.integer_value(2))
    plans, gradients = [], []
    for activation in (tenon.layer.mish, mish):
        hidden = activation(tenon.layer.fc(x, size=8, name="hidden"))
        cost = tenon.layer.cross_entropy(tenon.layer.fc(hidden, size=2, name="score"), label, from_logits=True)
        gm = tenon.gradient_machine.new(cost, tenon.parameters.create(cost, seed=3))
        gm.feed({"x": X, "label": [0, 1]})
        plans.append(len(gm.plan().rows))
        gradients.append(gm.gradient("hidden.weight"))
    assert plans[0] == plans[1]
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-4, atol=1e-6)


@tenon.formula
def curve(x, y, slope=tenon.learned(0.25), power=2.0):  # noqa: B008 (a default, by which a formula is defined)
    return math.where(x > 0, x, slope * x) + slope * y**power


def test_numbers_may_be_learned(x, y):
    layer = curve(x, y, name="curve")
    parameters = tenon.parameters.create(layer)
    assert {name: values.tolist() for name, values in parameters.items()} == {"curve.slope.value": 0.25}
    expected = np.where(X > 0, X, X / 4) + Y**2 / 4
    np.testing.assert_allclose(tenon.infer(layer, parameters, {"x": X, "y": Y}), expected, rtol=1e-6)
    assert set(tenon.check_gradient(layer, parameters)) == {"x", "y", "curve.slope.value"}
    parameters["curve.slope.value"] = 0
    assert np.array_equal(tenon.infer(layer, parameters, {"x": X, "y": Y}), np.maximum(X, 0))
    unnamed = curve(x, x, slope=tenon.learned(0.5, each=True)) + curve(x, x, slope=0.5)
    parameters = tenon.parameters.create(unnamed)
    assert [values.tolist() for values in parameters.values()] == [[0.5] * 3]
    tenon.check_gradient(unnamed, parameters)


def test_a_learned_number_is_found(x):
    target = tenon.layer.data("y", tenon.data_type.dense_vector(3))
    cost = tenon.layer.square_error(curve(x, x, name="curve"), target)
    parameters = tenon.parameters.create(cost)
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    wanted = np.where(rows > 0, rows, 0.75 * rows) + 0.75 * rows**2
    tenon.train(cost, parameters, {"x": rows, "y": wanted}, passes=10, updater=tenon.updater.Adam(learning_rate=0.02))
    assert abs(parameters["curve.slope.value"] - 0.75) < 0.01


def test_wrong_formulas_are_refused(x):
    with pytest.raises(TypeError, match="cannot branch"):
        tenon.formula(lambda x: 1 if x > 0 else 0)(x)
    with pytest.raises(TypeError, match="not str"):
        tenon.formula(lambda x: x + "1")(x)
    with pytest.raises(tenon.error.InvalidError, match="inf"):
        tenon.formula(lambda x: x * float("inf"))(x)
    with pytest.raises(TypeError, match="at least one argument"):
        tenon.formula(lambda: 1)
    with pytest.raises(TypeError, match="beta is a number"):
        swish(x, beta=x)
    with pytest.raises(TypeError, match="unexpected"):
        swish(x, bta=1)
    with pytest.raises(tenon.error.InvalidError, match='unknown name "q"'):
        tenon.layer.formula(x, formula="q + x")
    with pytest.raises(ZeroDivisionError):
        tenon.formula(lambda x: x + 1 / 0)(x)


def test_check_gradient(x):
    layer = tenon.layer.fc(mish(tenon.layer.fc(x, size=4, name="a")), size=2, name="b")
    report = tenon.check_gradient(layer)
    assert set(report) == {"x", "a.weight", "a.bias", "b.weight", "b.bias"}
    assert max(report.values()) < 1e-4


def test_check_gradient_draws_weights_feeds_and_parameters_by_its_seed(x):
    def report(**given):
        return tenon.check_gradient(mish(tenon.layer.fc(x, size=2, name="f")), **given)

    layer = tenon.layer.fc(x, size=2, name="f")
    fixed = {"parameters": tenon.parameters.create(mish(layer), seed=5), "feeds": {"x": np.ones((2, 3))}}
    for given in ({}, fixed, {"parameters": fixed["parameters"]}, {"feeds": fixed["feeds"]}):
        assert report(seed=1, **given) == report(seed=1, **given) != report(seed=2, **given)
    assert report() == report(seed=0)
    with pytest.raises(tenon.error.InvalidError, match="seed"):
        report(seed=-1)


@pytest.mark.parametrize("seed", range(4))
def test_check_gradient_of_feeds_from_a_stream_of_the_same_seed(seed):
    """Weights of the same numbers made the gradient of a normalization exactly 0."""
    v = tenon.layer.data("v", tenon.data_type.dense_vector(3))
    for layer in (tenon.layer.normalize(v), tenon.layer.layer_norm(v, name=f"norm_{seed}"), tenon.layer.softmax(v)):
        feeds = np.random.default_rng(seed).normal(size=(3, 3))
        assert max(tenon.check_gradient(layer, feeds={"v": feeds}, seed=seed).values()) < 1e-4


def test_check_gradient_of_zero(x):
    """Gradients that are 0, or nearly so, beside third derivatives that are not."""
    for formula in (lambda x: 0 * x, lambda x: x**4 - x**4 + 1e-9 * x):
        tenon.check_gradient(tenon.formula(formula)(x))
    v = tenon.layer.data("v", tenon.data_type.dense_vector(3))
    along = tenon.layer.sum(tenon.layer.square(tenon.layer.normalize(v)), axes=[1], keep_dimensions=True)  # 1 everywhere
    assert set(tenon.check_gradient(along)) == {"v"}
    cubic = tenon.formula(lambda x: (x - 1) ** 3 + 2)(v)
    tenon.check_gradient(cubic, feeds={"v": np.ones((2, 3))})
    with pytest.raises(tenon.error.InvalidError, match='the gradient of "v"'):  # 0 where it is not
        tenon.check_gradient(tenon.formula(lambda x: math.stop(x**3))(v), feeds={"v": np.ones((2, 3))})


def test_check_gradient_names_what_is_wrong(x):
    """stop() takes a part of the derivative away."""
    half = tenon.formula(lambda x: 0.5 * math.stop(x) ** 2 + 0.5 * x**2)
    parameters = tenon.parameters.create(half(tenon.layer.fc(x, size=2, name="f")))
    before = {name: parameters[name].copy() for name in parameters}
    with pytest.raises(tenon.error.InvalidError, match=r'the gradient of "f.weight" at \[0, 0\] is') as caught:
        tenon.check_gradient(half(tenon.layer.fc(x, size=2, name="f")), parameters)
    assert caught.value.subject == "f.weight"
    for name, values in before.items():
        np.testing.assert_array_equal(values, parameters[name])
    words = tenon.layer.data("words", tenon.data_type.integer_value_sequence(5))
    with pytest.raises(tenon.error.InvalidError, match='needs feeds for data layer "words"'):
        tenon.check_gradient(tenon.layer.embedding(words, vocabulary=5, size=2))
