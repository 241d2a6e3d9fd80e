"""Sets of parameters. SPDX-License-Identifier: Apache-2.0"""

import pickle

import numpy as np
import pytest

import tenon
from models import classifier, labels, pixels

ARRAYS = {"pixel": pixels, "label": labels}


@pytest.fixture
def model():
    return classifier()


@pytest.fixture
def parameters(model):
    return tenon.parameters.create(model.cost)


def test_a_set_is_a_mapping(parameters):
    assert list(parameters) == ["hidden.weight", "hidden.bias", "score.weight", "score.bias"]
    assert "score.bias" in parameters and "bias" not in parameters
    assert parameters["hidden.weight"].shape == (20, 16)
    with pytest.raises(tenon.error.NotFoundError, match='"hiden.bias"; did you mean "hidden.bias"'):
        parameters["hiden.bias"]
    with pytest.raises(LookupError):
        parameters["x"]


def test_a_view_is_of_the_sets_own_memory_and_outlives_a_training(model, parameters):
    view = parameters["score.weight"]
    before = view.copy()
    tenon.train(model.cost, parameters, ARRAYS)
    assert not np.array_equal(view, before)
    np.testing.assert_array_equal(view, parameters["score.weight"])
    with pytest.raises(ValueError, match="read-only"):
        view[:] = 0
    del parameters
    assert np.isfinite(view).all()


def test_writing(parameters):
    parameters["score.bias"] = [1, 2, 3]
    assert parameters["score.bias"].tolist() == [1, 2, 3]
    with parameters.edit("score.bias") as bias:
        bias += 1
    assert parameters["score.bias"].tolist() == [2, 3, 4]
    with pytest.raises(ZeroDivisionError), parameters.edit("score.bias") as bias:
        bias[:] = 0
        raise ZeroDivisionError
    assert parameters["score.bias"].tolist() == [2, 3, 4]
    with pytest.raises(tenon.error.InvalidError, match=r'"score.bias" has shape \[3\]; the given values have \[2\]'):
        parameters["score.bias"] = [1, 2]


def test_saving_and_loading(model, parameters, tmp_path):
    parameters.save(tmp_path / "model.safetensors", model.score)
    loaded = tenon.load(tmp_path / "model.safetensors")
    score = loaded.outputs[0]
    assert score.name == "score" and score.inputs[0].name == "hidden"
    np.testing.assert_array_equal(
        tenon.infer(score, loaded, pixels[:5]), tenon.infer(model.score, parameters, pixels[:5])
    )
    with pytest.raises(tenon.Error, match="nowhere"):
        tenon.load(tmp_path / "nowhere.safetensors")


def test_pickling(parameters):
    again = pickle.loads(pickle.dumps(parameters))
    assert list(again) == list(parameters)
    for name in parameters:
        np.testing.assert_array_equal(again[name], parameters[name])


def test_copying_by_name(model, parameters):
    other = tenon.parameters.create(tenon.layer.fc(model.hidden, size=3, name="head"), seed=5)
    report = other.copy_from(parameters, rename={"score": "head"})
    np.testing.assert_array_equal(other["head.weight"], parameters["score.weight"])
    assert report


def test_shared_names_are_one_parameter():
    a, b = (tenon.layer.data(name, tenon.data_type.dense_vector(4)) for name in "ab")
    layers = [tenon.layer.fc(each, size=2, parameter_name="shared") for each in (a, b)]
    assert list(tenon.parameters.create(layers)) == ["shared.weight", "shared.bias"]


def test_seeds_give_other_values(model):
    first, again, other = (tenon.parameters.create(model.cost, seed=seed)["score.weight"] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("values", "words"),
    [(np.ones(2) * 1j, "complex numbers"), (np.full(2, 1e300), "float32 cannot hold"), (["1", "2"], "texts"),
     (np.ma.masked_array([1.0, 2], [0, 1]), "masked"), (np.array([2**24 + 1, 0]), "int64 that float32 cannot hold")],
)  # fmt: skip
def test_values_that_a_parameter_cannot_hold(values, words, recwarn):
    layer = tenon.layer.fc(tenon.layer.data("x", tenon.data_type.dense_vector(2)), size=2, name="f")
    parameters = tenon.parameters.create(layer)
    with pytest.raises(tenon.error.InvalidError, match=f'parameter "f.bias" has .*{words}') as caught:
        parameters["f.bias"] = values
    assert caught.value.subject == "f.bias" and not recwarn.list


def test_a_set_is_a_mapping_also_for_names_that_it_does_not_have():
    model = classifier()
    parameters = tenon.parameters.create(model.cost)
    assert parameters.get("nope") is None and parameters.get("nope", 5) == 5 and parameters.get(0, 1) == 1
    np.testing.assert_array_equal(parameters.get("score.bias"), parameters["score.bias"])
    assert parameters._ipython_key_completions_() == list(parameters)
