"""Updaters written in Python, in the trainings of the library. SPDX-License-Identifier: Apache-2.0"""

import numpy as np
import pytest

import tenon
from models import classifier, labels, pixels

ARRAYS = {"pixel": pixels, "label": labels}


class Adaptive(tenon.updater.Base):
    """Has states of every kind that a checkpoint holds."""

    def __init__(self, learning_rate=0.05, decay=0.9):
        super().__init__(learning_rate)
        self.decay = decay

    def update_parameter(self, name, parameter, gradient, state):
        square = state.setdefault("square", np.zeros(gradient.shape, np.float64))
        square *= self.decay
        square += (1 - self.decay) * gradient.astype(np.float64) ** 2
        state["count"] = state.get("count", 0) + 1
        state["scale"] = state.get("scale", 1.0) * 0.99
        state["norm"] = np.float32(np.abs(gradient).max())
        parameter -= (state["scale"] * self.learning_rate * gradient / (np.sqrt(square) + 1e-3)).astype(np.float32)


class Sgd(tenon.updater.Base):
    def update_parameter(self, name, parameter, gradient, state):
        parameter -= self.learning_rate * gradient


def train(updater, passes=2, parameters=None, groups=None, **options):
    model = classifier()
    parameters = parameters or tenon.parameters.create(model.cost, seed=3)
    reader = tenon.reader.arrays(ARRAYS).shuffle(seed=1).batch(50)
    tenon.trainer.SGD(updater, groups=groups).train(model.cost, parameters, reader, passes=passes, **options)
    return parameters


def require_equal(found, expected):
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


def test_a_training_gives_the_bits_of_a_loop_of_ones_own():
    trained = train(Adaptive())
    model = classifier()
    own = tenon.parameters.create(model.cost, seed=3)
    machine, updater = tenon.gradient_machine.new(model.cost, own), Adaptive()
    for minibatch, _ in tenon.reader.arrays(ARRAYS).shuffle(seed=1).batch(50).read(passes=2):
        machine.feed(minibatch)
        updater.update(machine)
    require_equal(trained, own)


@pytest.mark.parametrize("stop", [1, 5, 8, 13])
def test_a_training_resumes_from_its_checkpoints(tmp_path, stop):
    whole, updater = tenon.parameters.create(classifier().cost, seed=3), Adaptive()
    train(updater, 2, whole)
    steps = []

    def end(event):
        if isinstance(event, tenon.event.EndIteration):
            steps.append(event)
            if len(steps) == stop:
                event.stop()

    checkpoint = tenon.trainer.Checkpoint(str(tmp_path), every_batches=3)
    train(Adaptive(), 2, checkpoint=checkpoint, event_handler=end)
    again = Adaptive()
    resumed = train(again, 2, checkpoint=checkpoint)
    require_equal(resumed, whole)
    for name, states in updater.state(whole).items():
        restored = again.state(resumed)[name]
        assert {key: (type(value), value) for key, value in states.items() if key != "square"} == {
            key: (type(value), value) for key, value in restored.items() if key != "square"
        }
        assert restored["square"].dtype == np.float64
        np.testing.assert_array_equal(restored["square"], states["square"])


def test_the_learning_rate_resumes(tmp_path):
    def halve(event):
        if isinstance(event, tenon.event.EndPass):
            event.set_learning_rate(event.learning_rate / 2)

    rates = []

    def note(event):
        if isinstance(event, tenon.event.EndIteration):
            rates.append(event.learning_rate)

    train(Adaptive(), 2, checkpoint=str(tmp_path), event_handler=halve)
    train(Adaptive(), 3, checkpoint=str(tmp_path), event_handler=note)
    assert set(rates) == {0.0125}


def test_averages_are_those_of_the_values_after_each_update():
    averages = tenon.parameters.create(classifier().cost, seed=9)
    parameters = tenon.parameters.create(classifier().cost, seed=3)
    seen = []

    def note(event):
        if isinstance(event, tenon.event.EndIteration):
            seen.append({name: parameters[name].astype(np.float64) for name in parameters})

    train(Sgd(0.1), 1, parameters, average={"parameters": averages}, event_handler=note)
    for name in averages:
        np.testing.assert_allclose(averages[name], np.mean([each[name] for each in seen], 0), rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("rest, group", [(Adaptive, tenon.updater.Adam), (tenon.updater.Adam, Adaptive), (Adaptive, Sgd)])
def test_groups_have_updaters_of_either_kind(rest, group, tmp_path):
    trained = train(rest(learning_rate=0.01), 2, groups={"score": group(learning_rate=0.02)})
    model = classifier()
    own = tenon.parameters.create(model.cost, seed=3)
    machines = [tenon.gradient_machine.new(model.cost, own, immutable_parameters=fixed) for fixed in ("score", "hidden")]
    updaters = [rest(learning_rate=0.01), group(learning_rate=0.02)]
    for minibatch, _ in tenon.reader.arrays(ARRAYS).shuffle(seed=1).batch(50).read(passes=2):
        for machine in machines:
            machine.feed(minibatch)
        for machine, updater in zip(machines, updaters, strict=True):
            updater.update(machine)
    require_equal(trained, own)
    options = {"groups": {"score": group(learning_rate=0.02)}, "checkpoint": str(tmp_path)}
    train(rest(learning_rate=0.01), 1, **options)
    options["groups"] = {"score": group(learning_rate=0.02)}
    require_equal(train(rest(learning_rate=0.01), 2, **options), trained)


def test_steps_whose_gradients_are_not_finite_are_skipped():
    updater, skipped = Adaptive(), []
    data = {"pixel": pixels.copy(), "label": labels}
    data["pixel"][60] = np.inf

    def note(event):
        if isinstance(event, tenon.event.EndIteration):
            skipped.append(event.skipped)

    model = classifier()
    parameters = tenon.parameters.create(model.cost, seed=3)
    reader = tenon.reader.arrays(data).batch(50)
    with pytest.warns(RuntimeWarning, match="pass 0, batch 1"):
        tenon.train(model.cost, parameters, reader, note, updater=updater, compute="bf16", nan="allow")
    assert skipped == [0, 1, 1, 1, 1, 1, 1, 1]
    assert updater.state(parameters)["score.bias"]["count"] == 7
    assert all(np.isfinite(parameters[name]).all() for name in parameters)


class Clipped:
    """Changes the gradients, and lets an updater of a plugin do the rest."""

    def __init__(self):
        self.inner = tenon.updater.Adam(learning_rate=0.01)

    def update(self, machine):
        for name in machine.trained():
            machine.set_gradient(name, np.clip(machine.gradient(name), -0.01, 0.01))
        self.inner.update(machine)


def test_an_updater_may_change_gradients_for_one_of_a_plugin():
    trained = train(Clipped())
    expected = train(tenon.updater.Adam(learning_rate=0.01, clip_value=0.01))
    require_equal(trained, expected)
    everywhere = train(tenon.updater.Adam(learning_rate=0.01, clip_value=0.01), groups={"score": Clipped()})
    require_equal(everywhere, expected)


class Wrong(Sgd):
    def __init__(self, action):
        super().__init__(0.1)
        self._action = action

    def update(self, machine, output=None):
        self._action(machine)
        super().update(machine, output)


def test_what_an_updater_may_not_do_in_a_training():
    for action, message in (
        (lambda machine: machine.feed(ARRAYS), "belongs to a training, whose updater may read it"),
        (lambda machine: machine.core.backward(), "whose updater may read it and end its step, no more"),
        (lambda machine: machine.core.reset_carried(), "whose updater may read it and end its step, no more"),
        (lambda machine: train(Sgd(), parameters=machine.parameters), "a training of these parameters has not ended"),
    ):
        parameters = tenon.parameters.create(classifier().cost, seed=3)
        before = {name: parameters[name].copy() for name in parameters}
        with pytest.raises(tenon.error.MisuseError, match=message):
            train(Wrong(action), parameters=parameters)
        require_equal(parameters, before)
        train(Sgd(), parameters=parameters)  # the set is free again


def test_a_group_cannot_change_what_is_not_its_own():
    def other(machine):
        values = machine.parameters.values_for("hidden.bias", np.ones(16, np.float32))
        machine.backward_core.commit([("hidden.bias", values)])

    with pytest.raises(tenon.error.InvalidError, match='"hidden.bias" is not among those that this updater is to update'):
        train(tenon.updater.Adam(), groups={"score": Wrong(other)})
    with pytest.raises(tenon.error.InvalidError, match='"hidden.bias" is not among'):
        train(tenon.updater.Adam(), groups={"score": Wrong(
            lambda machine: tenon.updater.Sgd().update_parameters(machine, ["hidden.bias"]))})  # fmt: skip


def test_the_machine_of_a_step_is_over_with_it():
    kept = []
    train(Wrong(kept.append), passes=1)
    with pytest.raises(tenon.error.MisuseError):
        kept[0].gradient("score.bias")


def test_checkpoints_that_cannot_be(tmp_path):
    class Odd(Sgd):
        def __init__(self, value, name="odd"):
            super().__init__(0.1)
            self._value, self._name = value, name

        def update_parameter(self, name, parameter, gradient, state):
            state[self._name] = self._value

    class Counts(Sgd):
        steps = 0

        def update_parameter(self, name, parameter, gradient, state):
            self.steps += 1

    for number, (updater, message) in enumerate([
        (Odd([1, 2]), 'the state "odd" of "hidden.weight" is a list; checkpoints hold arrays and numbers'),
        (Odd(2**70), 'the state "odd" of "hidden.weight" cannot be stored'),
        (Odd(np.array(["a"])), 'the state "odd" of "hidden.weight" cannot be stored'),
        (Odd(1, "a/b"), "the name 'a/b' of a state"),
        (Odd(1, 3), "the name 3 of a state"),
        (Counts(), "its attribute steps has changed since the training began"),
        (Clipped(), "checkpoints need an updater that derives from tenon.updater.Base"),
    ]):  # fmt: skip
        with pytest.raises(tenon.error.UnsupportedError, match=message):
            train(updater, checkpoint=str(tmp_path / str(number)))
    train(Adaptive(decay=0.9), 1, checkpoint=str(tmp_path / "own"))
    for updater, message in ((Adaptive(decay=0.8), "updater.attributes.decay: 0.9 in the checkpoint, 0.8 now"),
                             (Sgd(0.05), 'updater.type: "Adaptive" in the checkpoint, "Sgd" now'),
                             (tenon.updater.Adam(), "updater.type")):  # fmt: skip
        with pytest.raises(tenon.error.InvalidError, match=message):
            train(updater, 2, checkpoint=str(tmp_path / "own"))


def test_a_failing_update_keeps_its_exception_and_every_value():
    class Broken(Sgd):
        calls = 0

        def update_parameter(self, name, parameter, gradient, state):
            Broken.calls += 1
            if Broken.calls == 7:
                raise KeyError("seventh")
            super().update_parameter(name, parameter, gradient, state)

    parameters = tenon.parameters.create(classifier().cost, seed=3)
    after = []

    def note(event):
        if isinstance(event, tenon.event.EndIteration):
            after.append({name: parameters[name].copy() for name in parameters})

    with pytest.raises(KeyError, match="seventh"):
        train(Broken(), parameters=parameters, event_handler=note)
    assert len(after) == 1
    require_equal(parameters, after[0])
