"""Branches by rows: functions, integers, and the form of Fluid. SPDX-License-Identifier: Apache-2.0"""

import numpy as np
import pytest

import tenon

X = np.random.default_rng(1).uniform(-1, 1, (9, 3)).astype(np.float32)


@pytest.fixture
def x():
    return tenon.layer.data("x", tenon.data_type.dense_vector(3))


def expert(name):
    return lambda x: tenon.layer.fc(x, size=2, parameter_name=name)


def first(x):
    return tenon.layer.slice(x, axis=1, start=0, length=1)


def test_a_predicate_chooses_one_of_two_experts(x):
    made = tenon.cond(first(x), expert("one"), expert("other"), x, name="gate")
    one, other = expert("one")(x), expert("other")(x)
    parameters = tenon.parameters.create([made, one, other])
    found, a, b = tenon.infer([made, one, other], parameters, X)
    np.testing.assert_array_equal(found, np.where(X[:, :1] > 0, a, b))


def test_the_experts_are_trained(x):
    truth = tenon.layer.data("truth", tenon.data_type.dense_vector(1))
    made = tenon.cond(first(x), lambda x: tenon.layer.fc(x, size=1), lambda x: tenon.layer.fc(x, size=1), x)
    cost = tenon.layer.square_error(made, truth)
    parameters = tenon.parameters.create(cost)
    values = np.where(X[:, :1] > 0, X @ [[1], [2], [0]], X @ [[0], [-1], [3]] + 1).astype(np.float32)
    tenon.train(
        cost,
        parameters,
        updater=tenon.updater.adam(learning_rate=0.05),
        reader=tenon.batch({"x": X, "truth": values}, 9),
        passes=600,
    )
    np.testing.assert_allclose(tenon.infer(made, parameters, X), values, atol=0.05)


def test_several_results_and_values_from_outside(x):
    double = tenon.layer.scale_shift(x, scale=2.0)
    pair = tenon.cond(first(x), lambda a: (tenon.layer.add([a, double]), a), lambda a: (a, double), x)
    assert isinstance(pair, tuple)
    parameters = tenon.parameters.create(list(pair))
    found, second = tenon.infer(list(pair), parameters, X)
    holds = X[:, :1] > 0
    np.testing.assert_allclose(found, np.where(holds, 3 * X, X), rtol=1e-6)
    np.testing.assert_allclose(second, np.where(holds, X, 2 * X), rtol=1e-6)


def test_integers_choose_branches(x):
    number = tenon.layer.data("number", tenon.data_type.integer_value(3))
    made = tenon.cases(number, [lambda a, by=by: tenon.layer.scale_shift(a, scale=by) for by in (1.0, 2.0, 3.0)], x)
    numbers = np.arange(9) % 3
    found = tenon.infer(made, tenon.parameters.create(made), {"x": X, "number": numbers})
    np.testing.assert_allclose(found, X * (numbers[:, None] + 1), rtol=1e-6)


def test_sequences_of_the_chosen_samples(x):
    words = tenon.layer.data("words", tenon.data_type.dense_vector_sequence(3))
    made = tenon.cond(
        first(x),
        lambda rows: tenon.layer.sequence_pool(rows, kind="sum"),
        lambda rows: tenon.layer.sequence_pool(rows, kind="max"),
        words,
    )
    sequences = [X[: length + 1] for length in (2, 0, 4, 1, 3, 2, 1, 1, 0)]
    found = tenon.infer(made, tenon.parameters.create(made), {"x": X, "words": sequences})
    expected = [each.sum(0) if row[0] > 0 else each.max(0) for row, each in zip(X, sequences, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_form_of_fluid(x):
    branches = tenon.IfElse(first(x))
    with branches.true_block():
        branches.output(branches.input(x))
    with branches.false_block():
        branches.output(tenon.layer.scale_shift(branches.input(x), scale=-1.0))
    (found,) = branches()
    np.testing.assert_allclose(
        tenon.infer(found, tenon.parameters.create(found), X), np.where(X[:, :1] > 0, X, -X), rtol=1e-6
    )


def test_mistakes_are_refused(x):
    def same(a):
        return a

    with pytest.raises(tenon.Error, match='cond "gate": the function of branch 1 returns nothing'):
        tenon.cond(first(x), same, lambda a: None, x, name="gate")
    with pytest.raises(tenon.Error, match="some functions return a layer, others a tuple"):
        tenon.cond(first(x), same, lambda a: (a,), x)
    with pytest.raises(tenon.Error, match="must have one number for each sample or row"):
        tenon.cond(x, same, same, x)
    with pytest.raises(tenon.Error, match="at least one function"):
        tenon.cases(x, [], x)
    with pytest.raises(tenon.Error, match="in branch 0 and .samples, 3. of"):
        tenon.cond(first(x), lambda a: tenon.layer.fc(a, size=2), same, x)
    branches = tenon.IfElse(first(x))
    with pytest.raises(tenon.Error, match="are for true_block and false_block"):
        branches.input(x)
    with branches.true_block():
        branches.output(branches.input(x))
        with pytest.raises(tenon.Error, match="inside of another one"), branches.false_block():
            pass
    with pytest.raises(tenon.Error, match="false_block has no output"):
        branches()


class Descent(tenon.updater.Base):
    def update_parameter(self, name, parameter, gradient, state):
        parameter -= self.learning_rate * gradient


def test_an_updater_in_python_leaves_parameters_that_no_gradient_flows_to():
    """The predicate's layer has none; check_gradient compares the others."""
    x, y = (tenon.layer.data(name, tenon.data_type.dense_vector(3)) for name in ("x", "y"))
    choice = tenon.layer.fc(x, size=1, name="choice")
    branches = [lambda x, name=name: tenon.layer.fc(x, size=3, name=name) for name in ("yes", "no")]
    score = tenon.cond(choice, *branches, x)
    cost = tenon.layer.square_error(score, y)
    parameters, other = tenon.parameters.create(cost, seed=1), tenon.parameters.create(cost, seed=1)
    random = np.random.default_rng(3)
    data = {name: random.normal(size=(8, 3)).astype(np.float32) for name in "xy"}
    tenon.train(cost, parameters, data, updater=Descent(0.1), passes=3)
    tenon.train(cost, other, data, updater=tenon.updater.sgd(learning_rate=0.1), passes=3)
    for name in parameters:
        np.testing.assert_allclose(parameters[name], other[name], atol=1e-6)
    machine = tenon.gradient_machine.new(cost, parameters)
    assert set(machine.trained()) == {"yes.weight", "yes.bias", "no.weight", "no.bias"}
    report = tenon.check_gradient(score, parameters, {"x": data["x"]})
    assert {"yes.weight", "no.weight"} <= set(report) and "choice.weight" not in report
