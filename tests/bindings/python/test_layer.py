"""Layers as expressions, and their functions from manifests. SPDX-License-Identifier: Apache-2.0"""

import inspect

import numpy as np
import pytest

import tenon


def numbers(*values):
    return np.array(values, np.float32).reshape(-1, 1)


def evaluate(layer, **feeds):
    return tenon.infer(layer, tenon.parameters.create(layer), feeds)


@pytest.fixture
def ab():
    return [tenon.layer.data(name, tenon.data_type.dense_vector(1)) for name in "ab"]


@pytest.mark.parametrize(
    "formula",
    [
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a * b,
        lambda a, b: a / b,
        lambda a, b: 2 + a - 1,
        lambda a, b: 1 - a * 3,
        lambda a, b: 2 / a + b / 4,
        lambda a, b: -a + (+b),
        lambda a, b: a**3,
    ],
)
def test_operators_are_those_of_numbers(ab, formula):
    a, b = numbers(1, -2, 3), numbers(4, 5, -8)
    layer = formula(*ab)
    feeds = {each: values for each, values in (("a", a), ("b", b)) if layer.find(each) is not None}
    np.testing.assert_allclose(evaluate(layer, **feeds), formula(a, b), rtol=1e-6)


def test_operators_refuse_texts_and_none(ab):
    with pytest.raises(TypeError):
        ab[0] + None
    with pytest.raises(TypeError):
        2 - ab[0] - [1]


def test_a_function_has_the_signature_and_description_of_its_manifest():
    signature = inspect.signature(tenon.layer.fc)
    assert signature.parameters["size"].default is inspect.Parameter.empty
    assert signature.parameters["bias"].default is True
    assert "name" in signature.parameters and "act" in signature.parameters
    assert "[samples, size]" in tenon.layer.fc.__doc__
    assert "number of outputs for each sample" in tenon.layer.fc.__doc__


def test_completion_lists_the_types():
    assert {"fc", "data", "cross_entropy"} <= set(dir(tenon.layer))
    assert {"adam", "Adam", "new_simple"} <= set(dir(tenon.updater))
    assert {"csv", "shuffle"} <= set(dir(tenon.reader))


def test_unknown_names_are_told_with_the_nearest():
    with pytest.raises(AttributeError, match='offers a layer "fcc"; did you mean "fc"'):
        tenon.layer.fcc  # noqa: B018
    with pytest.raises(TypeError, match='unknown argument "sise"; did you mean "size"'):
        tenon.layer.fc("a", sise=3)
    with pytest.raises(TypeError, match='needs the input "label"'):
        tenon.layer.cross_entropy("a")
    with pytest.raises(TypeError, match="takes 2 inputs; 1 more"):
        tenon.layer.sub("a", "b", "c")


def test_wrong_attributes_are_errors_with_component_and_subject(ab):
    with pytest.raises(tenon.error.InvalidError, match='"size": expected an integer') as caught:
        tenon.layer.fc(ab[0], size="wide", name="hidden")
    assert caught.value.component == 'layer "hidden" (fc)'
    assert caught.value.subject == "size"
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, tenon.Error)


def test_a_text_is_a_data_layer_typed_by_the_reader():
    cost = tenon.layer.square_error(tenon.layer.fc("x", size=1), "y")
    with pytest.raises(tenon.error.InvalidError, match='data layer "x" is not known.*test_layer.py') as caught:
        tenon.parameters.create(cost)
    assert caught.value.subject == "x"
    reader = tenon.reader.arrays({"x": np.ones((4, 2)), "y": np.ones((4, 1))})
    parameters = tenon.parameters.create(cost, reader=reader)
    assert sorted(parameters.shape(name) for name in parameters) == [(1,), (2, 1)]


def test_layers_with_several_outputs_are_unpacked():
    x = tenon.layer.data("x", tenon.data_type.dense_vector(4))
    values, indices = tenon.layer.top_k(x, k=2)
    found = tenon.infer([values, indices], tenon.parameters.create([values, indices]), {"x": [[1.0, 4, 3, 2]]})
    assert found[0].tolist() == [[4, 3]] and found[1].tolist() == [[1, 2]]
    with pytest.raises(TypeError, match="can be unpacked"):
        _a, _b = tenon.layer.fc(x, size=2)


def test_options_of_parameters_are_dicts(ab):
    layer = tenon.layer.fc(ab[0], size=2, name="f", param={"weight": {"init": "constant", "init_value": 0.5}})
    assert (tenon.parameters.create(layer)["f.weight"] == 0.5).all()


def test_shapes_and_types_are_known_while_the_expression_is_built(ab):
    layer = tenon.layer.fc(ab[0], size=7)
    assert layer.shape == ("samples", 7) and layer.dtype == np.float32
    assert layer.inputs[0].name == "a"
    assert "fc" in repr(layer)


def test_errors_of_layers_typed_late_name_the_line():
    layer = tenon.layer.fc("x", size=-1)
    with pytest.raises(tenon.error.InvalidError) as caught:
        tenon.parameters.create(layer, reader={"x": np.ones((2, 2))})
    assert any("test_layer.py" in note for note in caught.value.__notes__)


def test_chains_may_be_long():
    layer = tenon.layer.data("x", tenon.data_type.dense_vector(1))
    for _ in range(3000):
        layer = layer + 1
    assert evaluate(layer, x=[[0.0]]).tolist() == [[3000]]


def test_parameters_of_a_layer(ab):
    layer = tenon.layer.batch_norm(ab[0], name="n")
    found = {each["name"]: (each["shape"], each["buffer"]) for each in layer.parameters}
    assert found["n.scale"] == ((1,), False) and found["n.moving_mean"] == ((1,), True)


def test_arrays_combined_with_layers_are_no_arrays_of_layers():
    x = tenon.layer.data("x", tenon.data_type.dense_vector(4))
    for combined in (lambda: np.ones(4) * x, lambda: x * np.ones(4)):
        assert combined().shape == ("samples", 4)
    for combined in (lambda: np.ones((4, 4)) @ x, lambda: x @ np.ones(4)):
        with pytest.raises(TypeError):
            combined()
    assert (np.float32(2) * x).type == "scale_shift"


def test_the_order_of_data_layers_is_that_of_tuples():
    a, b, q = (tenon.layer.data(name, tenon.data_type.dense_vector(2)) for name in "ABQ")
    order = (tenon.layer.square_error(b, q) + tenon.layer.square_error(a, q)).data_types
    assert list(order) == ["A", "B", "Q"] and order["A"].shape == (2,)
