"""Forward layer by layer. SPDX-License-Identifier: Apache-2.0"""

import numpy as np
import pytest

import tenon
from models import classifier, labels, pixels

ARRAYS = {"pixel": pixels[:5], "label": labels[:5]}


def test_layers_come_in_order_with_the_values_of_forward():
    model = classifier()
    hidden = tenon.layer.dropout(model.hidden, rate=0.5, name="dropped")
    score = tenon.layer.fc(hidden, size=3, name="last")
    cost = tenon.layer.cross_entropy(score, "label", from_logits=True, name="loss")
    accuracy = tenon.layer.accuracy(score, "label", name="right")
    parameters = tenon.parameters.create([cost, accuracy], reader={**ARRAYS})
    machine = tenon.gradient_machine.new([cost, accuracy], parameters, keep_all=True, seed=3)
    machine.forward(ARRAYS)
    steps = list(machine.step_through())  # of the last forward
    assert [(step.name, step.type) for step in steps] == [
        ("pixel", "data"), ("hidden", "fc"), ("dropped", "dropout"), ("last", "fc"), ("label", "data"),
        ("loss", "cross_entropy"), ("right", "accuracy")]  # fmt: skip
    values = {step.name: step.outputs for step in steps}
    assert values["right"] == () and values["pixel"][0].tolist() == ARRAYS["pixel"].tolist()
    for layer in (model.hidden, hidden, score, cost):
        np.testing.assert_array_equal(values[layer.name][0], machine.output(layer))
    assert (values["dropped"][0] == 0).any()  # a training draws
    other = list(machine.step_through({"pixel": pixels[5:8], "label": labels[5:8]}))
    assert other[1].outputs[0].shape == (3, 16) and machine.samples == 5


def test_sequences_and_several_outputs():
    words = tenon.layer.data("words", tenon.data_type.integer_value_sequence(9))
    vector = tenon.layer.embedding(words, vocabulary=9, size=4)
    values, _ = tenon.layer.top_k(tenon.layer.sequence_pool(vector, kind="mean"), k=2)
    machine = tenon.gradient_machine.new(values, training=False)
    steps = list(machine.step_through({"words": [[1, 2], [3]]}))
    assert [each.tolist() for each in steps[0].outputs[0]] == [[1, 2], [3]]
    assert len(steps[1].outputs[0]) == 2 and len(steps[1].outputs[0].values) == 3
    top, indices = steps[-1].outputs
    np.testing.assert_array_equal(np.take_along_axis(steps[2].outputs[0], indices.astype(np.int64), 1), top)


class Fails(tenon.layer.Base):
    def shape(self, x):
        return x

    def forward(self, x):
        if x[0, 0] == 4:
            raise ZeroDivisionError("four")
        return x + 1


def test_an_error_comes_after_the_layers_before_it():
    x = tenon.layer.data("x", tenon.data_type.dense_vector(1))
    broken = Fails()(tenon.layer.scale_shift(x, scale=2, name="twice"), name="broken")
    last = tenon.layer.scale_shift(broken, scale=3, name="last")
    machine = tenon.gradient_machine.new(last, training=False)
    assert [step.outputs[0].item() for step in machine.step_through({"x": [[1]]})] == [1, 2, 3, 9]
    steps = machine.step_through({"x": [[2]]})
    assert [next(steps) for _ in range(2)] == [("x", "data", ([[2]],)), ("twice", "scale_shift", ([[4]],))]
    with pytest.raises(ZeroDivisionError, match="four") as failure:
        next(steps)
    assert any('layer "broken"' in note for note in failure.value.__notes__)


def test_a_minibatch_is_needed():
    model = classifier()
    machine = tenon.gradient_machine.new(model.cost)
    with pytest.raises(tenon.error.MisuseError, match="give a minibatch"):
        machine.step_through()
    with pytest.raises(tenon.error.InvalidError, match='nothing for data layer "label"'):
        machine.step_through({"pixel": pixels[:2]})


class Unsound(tenon.layer.Base):
    def forward(self, x):
        raise KeyError("mine")

    def backward(self, gradient, x):
        return gradient


def test_a_machine_that_trains_names_the_layer_that_fails():
    x = tenon.layer.data("x", tenon.data_type.dense_vector(4))
    label = tenon.layer.data("label", tenon.data_type.integer_value(3))
    good = tenon.layer.fc(x, size=3, name="good")
    bad = Unsound()(good, name="bad")
    cost = tenon.layer.cross_entropy(bad, label, from_logits=True, name="cost")
    for outputs in (bad, [cost, tenon.layer.accuracy(bad, label)]):
        seen = []
        minibatch = {"x": np.ones((2, 4)), "label": [0, 1]}
        with pytest.raises(KeyError, match="mine") as caught:
            seen.extend(step.name for step in tenon.gradient_machine.new(outputs).step_through(minibatch))
        assert seen[-1] == "good" and any('"bad"' in note for note in caught.value.__notes__)
    sound = tenon.layer.cross_entropy(good, label, from_logits=True, name="cost")
    seen = []
    with pytest.raises(tenon.error.Error) as caught:
        for step in tenon.gradient_machine.new(sound).step_through({"x": np.ones((2, 4)), "label": [0, 9]}):
            seen.append(step.name)
    assert "label" in str(caught.value)
