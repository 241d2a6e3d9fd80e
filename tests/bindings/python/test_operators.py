"""Operators, indices and functions of NumPy on layers give what NumPy gives. SPDX-License-Identifier: Apache-2.0"""

import math

import numpy as np
import pytest

import tenon

layer = tenon.layer
VALUES = (np.arange(24.0).reshape(2, 3, 4) - 9).astype(np.float32)
ROW = np.arange(4) - 1.5


@pytest.fixture
def x():
    before = tenon.host()
    tenon.use(tenon.Host())
    yield layer.data("x", tenon.data_type.dense_array([3, 4]))
    tenon.use(before)


EXPRESSIONS = {
    "element": lambda x: x[:, 0],
    "last": lambda x: x[..., -1],
    "slice": lambda x: x[:, 1:3],
    "step": lambda x: x[:, 1, ::2],
    "reversed": lambda x: x[:, ::-1],
    "list": lambda x: x[:, [2, 0, 0]],
    "mask": lambda x: x[:, np.array([True, False, True])],
    "new axes": lambda x: x[:, None, :, 3, None],
    "whole": lambda x: x[:],
    "abs": abs,
    "number to a power": lambda x: 2**x,
    "power": lambda x: x**2,
    "array": lambda x: x + ROW,
    "array first": lambda x: np.full((3, 1), 2) - x,
    "number of NumPy": lambda x: np.float64(2) * x - np.float32(1),
    "quotients": lambda x: 3 / (x + 0.5) - x / 4 + (1 - x) / ROW,
    "less": lambda x: x < 3,
    "less or equal": lambda x: x <= ROW,
    "greater": lambda x: x < 3,
    "greater or equal": lambda x: x[:, 0] >= x[:, 1],
    "exp": lambda x: np.exp(x / 9),
    "sqrt of a square": lambda x: np.sqrt(np.square(x)),
    "maximum": lambda x: np.maximum(x, 0),
    "minimum": lambda x: np.minimum(ROW, x),
    "minimum of layers": lambda x: np.minimum(x, -x),
    "equal": lambda x: np.equal(x, 3),
    "negative": lambda x: np.negative(np.absolute(x)) + np.add(1, x),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_are_those_of_numpy(x, name):
    expression = EXPRESSIONS[name]
    output, wanted = expression(x), np.asarray(expression(VALUES), np.float32)
    got = tenon.infer(output, tenon.parameters.create(output), {"x": VALUES})
    assert got.shape == wanted.shape and np.allclose(got, wanted, rtol=1e-5)


def test_gradients_go_through_them(x):
    cost = layer.sum_cost(np.maximum(x[:, 1:, ::-1], 0) * ROW + 1.5 ** abs(x[:, 0, None]))
    assert tenon.check_gradient(cost, feeds={"x": VALUES + 0.25})


def test_rows_of_sequences(x):
    rows = layer.data("rows", tenon.data_type.dense_vector_sequence(3))
    output = rows[:, [2, 0]]
    got = tenon.infer(output, tenon.parameters.create(output), {"rows": [VALUES[0, :, :3], VALUES[1, :2, :3]]})
    assert [each.tolist() for each in got] == [VALUES[0, :, [2, 0]].T.tolist(), VALUES[1, :2, [2, 0]].T.tolist()]
    with pytest.raises(IndexError, match="dimension 0, rows.*, is indexed by 0"):
        rows[0]


def test_functions_of_layers_take_numbers_and_arrays(x):
    for output, wanted in ((layer.maximum(x, 0), np.maximum(VALUES, 0)), (layer.sub(ROW, x, name="left"), ROW - VALUES),
                           (layer.less(x, b=2.5), VALUES < 2.5)):  # fmt: skip
        got = tenon.infer(output, tenon.parameters.create(output), {"x": VALUES})
        assert np.allclose(got, wanted, rtol=1e-5)
    with pytest.raises(tenon.Error, match="expected a layer or the name of a data layer"):
        layer.fc(x, 10, size=2)


def test_a_constant_takes_an_array_of_several_dimensions(x):
    table = np.arange(12).reshape(3, 4)
    output = layer.constant(x, value=table)
    assert (tenon.infer(output, tenon.parameters.create(output), {"x": VALUES}) == table).all()


@pytest.mark.parametrize(
    "kind, expression, message",
    [
        (IndexError, lambda x: x[0], r"dimension 0, samples, is indexed by 0, but a layer computes each of these by itself"),
        (IndexError, lambda x: x[1:], "is indexed by slice"),
        (IndexError, lambda x: x[:, 3], "position 3 of dimension 1; expected -3 to 2"),
        (IndexError, lambda x: x[:, 2:1], r"positions \[\] of dimension 1; expected at least one"),
        (IndexError, lambda x: x[:, [0, 7]], r"positions \[0, 7\] of dimension 1"),
        (IndexError, lambda x: x[:, x], "tenon.layer.gather takes positions that a layer computes"),
        (IndexError, lambda x: x[:, 0, 0, 0], 'has 4 dimensions and 0 "..."'),
        (IndexError, lambda x: x[..., 0, ...], '2 "..."'),
        (TypeError, np.arctan, "numpy.arctan of a layer; expected one of absolute"),
        (TypeError, np.add.reduce, "numpy.add.reduce of a layer"),
        (TypeError, lambda x: np.exp(x, where=True), "numpy.exp with options"),
        (TypeError, lambda x: x + object(), "not with object"),
        (TypeError, lambda x: x + np.array(["a"]), "arrays of numbers, not with ndarray"),
        (TypeError, lambda x: x @ 2, "matmul of a layer and a number"),
        (TypeError, lambda x: 0 < x < 1, "is true for some samples alone"),
        (tenon.error.InvalidError, lambda x: np.less(x, math.nan), "less needs a finite one"),
    ],
)
def test_what_is_refused(x, kind, expression, message):
    with pytest.raises(kind, match=message):
        expression(x)


def test_layers_are_compared_as_objects_and_are_keys(x):
    other = layer.data("y", tenon.data_type.dense_vector(2))
    assert x == x and x != other and {x: 1}[x] == 1 and x in [other, x] and bool(x)


def test_operators_of_a_memory():
    rows = layer.data("steps", tenon.data_type.dense_vector_sequence(2))

    def step(row):
        before = tenon.memory(size=2)
        after = np.maximum(before, 0) / 2 + row[:, ::-1]
        before.set_input(after)
        return after

    output = tenon.recurrent_group(step, rows)
    got = tenon.infer(output, tenon.parameters.create(output), {"steps": [np.array([[1, 2], [3, -4]], np.float32)]})
    assert got[0].tolist() == [[2, 1], [-3, 3.5]]
