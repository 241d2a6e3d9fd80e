"""F11: what no layer uses is neither converted nor checked. Each case is a line of docs/reports.md.

SPDX-License-Identifier: Apache-2.0
"""

import datetime
import decimal

import numpy as np
import pytest

import tenon

layer, data_type = tenon.layer, tenon.data_type


@pytest.fixture
def model():
    score = layer.fc(layer.data("a", data_type.dense_vector(1)), size=1, name="score")
    cost = layer.square_error(score, layer.data("t", data_type.dense_vector(1)))
    return score, cost, tenon.parameters.create(cost)


def works(model, data):
    score, cost, parameters = model
    tenon.train(cost, parameters, tenon.batch(data, 2), passes=1)
    answers = tenon.infer(score, parameters, data)
    assert answers.shape == (3, 1) and np.isfinite(answers).all()


GOOD = {"a": np.array([1.0, 2.0, 3.0]), "t": np.array([1.0, 0.0, 1.0])}


@pytest.mark.parametrize("unused", [
    np.array([object(), [1], None], dtype=object),
    np.array([1 + 2j, 3, 4]),
    np.array([np.nan, np.inf, -np.inf]),
    np.array(["x", "", "zz"]),
    np.array(["2020-01-01", "NaT", "1900-01-01"], "datetime64[ns]"),
])  # fmt: skip
def test_arrays(model, unused):
    """A dict of arrays with one of objects, complex numbers, infinite ones, texts or dates beside the needed ones"""
    works(model, {**GOOD, "unused": unused})


def test_frame_of_a_database(model):
    """A frame with decimals, dates, bytes, lists and nothing at all in columns that no layer uses"""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(GOOD).assign(
        price=[decimal.Decimal("1.1")] * 3, day=[datetime.date(2020, 1, 1)] * 3, photo=[b"\x00"] * 3,
        tags=[["x"], [], None], empty=[None] * 3)  # fmt: skip
    works(model, frame)


def test_frame_of_extension_types(model):
    """Categories, time zones, periods, intervals and nullable whole numbers of pandas"""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(GOOD).assign(
        kind=pandas.Categorical(["u", None, "v"]), when=pandas.date_range("2020", periods=3, tz="Europe/Rome"),
        month=pandas.period_range("2020-01", periods=3, freq="M"), span=pandas.interval_range(0, 3),
        count=pandas.array([1, None, 3], dtype="Int64"))  # fmt: skip
    works(model, frame)


def test_columns_of_arrow(model):
    """Structs, maps, decimals and nulls in a table of Arrow"""
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({
        **GOOD, "point": [{"x": 1, "y": "z"}] * 3, "map": arrow.array([[("k", 1)], [], None], arrow.map_("string", "int8")),
        "price": arrow.array([decimal.Decimal("1.10")] * 3), "none": arrow.nulls(3)})  # fmt: skip
    works(model, table)


def test_lengths(model):
    """An unused entry of another length in a dict of arrays"""
    works(model, {**GOOD, "index": np.arange(17)})


def test_samples_of_a_reader(model):
    """Samples that are dicts with further keys, from a generator"""
    _, cost, parameters = model

    def read():
        for i in range(4):
            yield {"a": [float(i)], "t": [0.0], "id": f"row {i}", "raw": object()}

    tenon.train(cost, parameters, tenon.batch(read, 2), passes=1)


def test_a_needed_column_is_still_checked(model):
    """A column that is needed and has texts is refused, and named"""
    score, _, parameters = model
    with pytest.raises(tenon.Error, match='"a"'):
        tenon.infer(score, parameters, {"a": np.array(["x", "y", "z"]), "b": GOOD["a"]})
