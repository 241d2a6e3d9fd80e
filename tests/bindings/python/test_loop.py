"""Loops of the user's own: gradient machines, updaters and metrics. SPDX-License-Identifier: Apache-2.0"""

import threading

import numpy as np
import pytest

import tenon
from models import classifier, labels, pixels

ARRAYS = {"pixel": pixels, "label": labels}
READER = tenon.reader.arrays(ARRAYS).batch(100)


def changed(parameters, action):
    before = {name: parameters[name].copy() for name in parameters}
    action()
    return [name for name in parameters if not np.array_equal(before[name], parameters[name])]


class Sgd(tenon.updater.Base):
    def update_parameter(self, name, parameter, gradient, state):
        state["updates"] = state.get("updates", 0) + 1
        parameter -= self.learning_rate * gradient


def test_a_loop_of_ones_own_trains_like_train():
    model = classifier()
    trained, own = (tenon.parameters.create([model.cost, model.accuracy], seed=3) for _ in range(2))
    tenon.train([model.cost, model.accuracy], trained, READER, passes=2, updater=tenon.updater.Adam(learning_rate=0.01))
    machine = tenon.gradient_machine.new([model.cost, model.accuracy], own)
    updater, metrics = tenon.updater.Adam(learning_rate=0.01), tenon.metric.new(machine)
    for minibatch, _ in READER.read(passes=2):
        machine.feed(minibatch)
        updater.update(machine)
        metrics.append(machine, minibatch)
    for name in own:
        np.testing.assert_array_equal(own[name], trained[name])
    values = metrics.read()
    assert repr(metrics) == (
        "<tenon metrics of <tenon.GradientMachine of cost, accuracy> over 800 samples, "
        f"cost {values['cost']:.6g}, accuracy {values['accuracy']:.6g}>"
    )
    assert metrics.samples == 800 and set(metrics.flush()) == {"cost", "accuracy"}
    assert repr(metrics) == "<tenon metrics of <tenon.GradientMachine of cost, accuracy> over 0 samples>"


def test_steps_in_one_call_give_the_same_bits():
    model = classifier()
    alone, together = (tenon.parameters.create(model.cost, seed=3) for _ in range(2))
    machine, updater = tenon.gradient_machine.new(model.cost, alone), tenon.updater.Adam()
    expected = []
    for first in range(0, len(labels), 30):
        machine.feed({name: values[first : first + 30] for name, values in ARRAYS.items()})
        expected.append(machine.cost)
        updater.update(machine)
    machine, updater = tenon.gradient_machine.new(model.cost, together), tenon.updater.Adam()
    costs = machine.feed_steps(ARRAYS, updater, samples=30)
    assert costs.dtype == np.float64 and costs.tolist() == expected
    assert machine.cost == expected[-1] and machine.samples == len(labels) % 30 and not machine.has_gradients
    for name in alone:
        np.testing.assert_array_equal(together[name], alone[name])
    before = {name: together[name].copy() for name in together}
    wrong = {"pixel": pixels[:20], "label": np.append(labels[:19], 99)}
    with pytest.raises(tenon.error.Error, match='data layer "label": sample 19 of the minibatch is 99'):
        machine.feed_steps(wrong, updater, samples=10)
    with pytest.raises(tenon.error.InvalidError, match="updater"):
        machine.feed_steps(ARRAYS, Sgd(), samples=10)
    with pytest.raises(tenon.error.InvalidError, match="samples"):
        machine.feed_steps(ARRAYS, updater, samples=0)
    for name, values in before.items():
        np.testing.assert_array_equal(together[name], values)
    assert len(machine.feed_steps({"pixel": pixels[:0], "label": labels[:0]}, updater)) == 0


def test_other_threads_read_whole_steps():
    """All parameters have one value after each step of an updater in Python; copy_from reads them all at once."""

    class Count(tenon.updater.Base):
        def update_parameter(self, name, parameter, gradient, state):
            parameter += 1

    x = tenon.layer.data("x", tenon.data_type.dense_vector(2))
    layers = [tenon.layer.fc(x, size=20_000, bias=False, name=f"part{number}") for number in range(8)]
    cost = tenon.layer.sum_cost(tenon.layer.concat(*layers))
    parameters, copy = tenon.parameters.create(cost), tenon.parameters.create(cost)
    for name in parameters:
        parameters[name] = np.zeros_like(parameters[name])
    machine, updater = tenon.gradient_machine.new(cost, parameters), Count()
    machine.feed({"x": [[0.0, 0.0]]})
    updater.update(machine)
    seen, over = [], threading.Event()

    def look():
        while not over.is_set():
            copy.copy_from(parameters)
            seen.append([copy.read(name).flat[-1] for name in copy])

    reader = threading.Thread(target=look)
    reader.start()
    try:
        for _ in range(60):
            machine.feed({"x": [[0.0, 0.0]]})
            updater.update(machine)
    finally:
        over.set()
        reader.join()
    assert seen and all(len(set(step)) == 1 for step in seen), [step for step in seen if len(set(step)) > 1][:3]


def test_a_softmax_takes_cross_entropy_to_a_fed_label():
    pixel = tenon.layer.data("pixel", tenon.data_type.dense_vector(20))
    for score in (tenon.layer.fc(pixel, size=3, act="softmax"), tenon.layer.softmax(pixel, size=3)):
        machine, updater = tenon.gradient_machine.new(score), tenon.updater.new_simple(0.5)
        accuracy = tenon.metric.new_acc()
        for minibatch, pass_end in READER.read(passes=10):
            machine.feed(minibatch)
            updater.update(machine)
            accuracy.append(machine, minibatch)
            if pass_end:
                value = accuracy.flash()
        assert value > 0.9
        assert machine.forward([pixels[:7]]).shape == (7, 3)  # a label is needed by gradients alone
        with pytest.raises(tenon.error.InvalidError, match='need a label: feed data layer "label"'):
            machine.backward()
        with pytest.raises(tenon.error.InvalidError, match='need a label: feed data layer "label"'):
            machine.feed([pixels[:7]])


def test_without_a_cost_there_are_no_gradients():
    pixel = tenon.layer.data("pixel", tenon.data_type.dense_vector(20))
    machine = tenon.gradient_machine.new(tenon.layer.fc(pixel, size=3, name="plain"))
    assert machine.forward(pixels[:5]).shape == (5, 3)
    for call in (lambda: machine.feed(pixels[:5]), machine.backward):
        with pytest.raises(tenon.error.InvalidError, match=r'outputs have no cost.*"plain" \(fc\)'):
            call()


def test_feeds_are_dicts_or_lists_in_the_order_of_the_data_layers():
    model = classifier()
    machine = tenon.gradient_machine.new(model.cost)
    assert list(machine.types) == ["pixel", "label"]
    costs = []
    one = tenon.input.new(1)
    for minibatch in (
        {"pixel": pixels[:9], "label": np.ones(9, int), "other": 3},
        [pixels[:9], [1] * 9],
        [{"pixel": pixels[:9], "label": None}, one],
        [{"any": pixels[:9]}, tenon.input.new(True)],
    ):
        machine.forward(minibatch)
        costs.append(machine.cost)
    assert costs[0] > 0 and costs == [costs[0]] * 4
    for minibatch, message in (
        ({"pixels": pixels, "label": one}, 'nothing for data layer "pixel".*did you mean "pixels"'),
        ([pixels], "a list of 1 values; the data layers are pixel, label"),
        ([{"a": pixels, "pixls": pixels}, one], 'no slot "pixel".*did you mean "pixls"'),
        ([pixels, tenon.input.new(0.5)], "int64"),
        ([pixels, tenon.input.new("one")], 'constant "one"|constant \'one\''),
        ([tenon.input.new(np.zeros(3)), [1]], r"a constant of shape \[3\]; expected float32 \[20\]"),
    ):
        with pytest.raises(tenon.error.InvalidError, match=message):
            machine.forward(minibatch)
    assert machine.cost == costs[0]


def test_machines_of_dependent_layers_share_parameters():
    model = classifier()
    hidden, cost = tenon.gradient_machine.new(model.hidden), tenon.gradient_machine.new(model.cost)
    assert hidden.parameters["hidden.weight"] is not None and "score.weight" in hidden.parameters
    before = hidden.forward(pixels[:3])
    cost.feed(ARRAYS)
    tenon.updater.new_simple(1.0).update(cost)
    assert not np.array_equal(before, hidden.forward(pixels[:3]))
    other = tenon.gradient_machine.new(tenon.layer.fc(model.pixel, size=2))
    assert len(other.parameters) == 2  # data layers are no reason to share
    separate = tenon.gradient_machine.new(model.hidden, tenon.parameters.create(model.hidden, seed=9))
    assert not np.array_equal(hidden.forward(pixels[:3]), separate.forward(pixels[:3]))


def test_machines_of_a_file_use_its_parameters(tmp_path):
    model = classifier()
    parameters = tenon.parameters.create(model.score)
    parameters.save(tmp_path / "model.safetensors")
    loaded = tenon.load(tmp_path / "model.safetensors")
    machine = tenon.gradient_machine.new(loaded.outputs[0], training=False)
    np.testing.assert_array_equal(machine.forward(pixels), tenon.infer(model.score, parameters, pixels))
    pixel = tenon.layer.data("seen", tenon.data_type.dense_vector(20))
    composed = tenon.gradient_machine.compose(tenon.layer.fc(pixel, size=20, name="front"), loaded.outputs[0])
    front = composed.forward({"seen": pixels})[0]
    expected = tenon.infer(model.score, parameters, front)
    np.testing.assert_allclose(composed.output(loaded.outputs[0]), expected, rtol=1e-5)


def test_minibatches_may_grow_between_updates():
    model = classifier()
    machine, updater = tenon.gradient_machine.new(model.cost), tenon.updater.new_simple()
    machine.feed({"pixel": pixels[:10], "label": labels[:10]})
    machine.feed({"pixel": pixels[:4], "label": labels[:4]})
    with pytest.raises(tenon.error.MisuseError, match="give max_samples=20"):
        machine.feed({"pixel": pixels[:20], "label": labels[:20]})
    updater.update(machine)
    machine.feed({"pixel": pixels[:20], "label": labels[:20]})


def test_gradients_of_the_users_own():
    model = classifier()
    machine = tenon.gradient_machine.new(model.score, data_gradients=True)
    machine.forward(pixels[:4])
    machine.backward({model.score: np.ones((4, 3))})
    np.testing.assert_array_equal(machine.gradient("score.bias"), [4, 4, 4])
    assert machine.data_gradient("pixel").shape == (4, 20)
    assert changed(machine.parameters, lambda: tenon.updater.new_simple().update(machine))


def test_immutable_parameters_have_no_gradients():
    machine = tenon.gradient_machine.new(classifier().cost, immutable_parameters="hidden")
    machine.feed(ARRAYS)
    assert machine.trained() == ["score.weight", "score.bias"]
    for updater in (tenon.updater.new_simple(), Sgd()):
        assert all(name.startswith("score") for name in changed(machine.parameters, lambda by=updater: by.update(machine)))
    with pytest.raises(tenon.error.NotFoundError, match="hidden.weight"):
        machine.gradient("hidden.weight")


@pytest.fixture
def gan():
    noise = tenon.layer.input("noise", tenon.data_type.dense_vector(2))
    image = tenon.layer.input("image", tenon.data_type.dense_vector(3))
    generator = tenon.layer.fc(tenon.layer.fc(noise, size=8, act="relu", name="g0"), size=3, name="g1")
    discriminator = tenon.layer.softmax(tenon.layer.fc(image, size=8, act="relu", name="d0"), size=2, name="d1")
    return generator, discriminator


MINIBATCH = {"noise": np.random.default_rng(0).random((16, 2)), "image": np.random.default_rng(1).random((16, 3))}


def test_compose_joins_the_models_and_keeps_the_parts(gan):
    machines = [tenon.gradient_machine.new(each) for each in gan]
    sets = [each.parameters for each in machines]
    fake = machines[0].forward(MINIBATCH)
    apart = machines[1].forward(fake)
    composed = tenon.gradient_machine.compose(*gan)
    assert list(composed.types) == ["noise", "label"]
    assert len(sets[0]) == len(sets[1]) == 8
    np.testing.assert_array_equal(composed.forward(MINIBATCH)[1], apart)  # the values were copied
    np.testing.assert_array_equal(composed.output(gan[1]), apart)
    np.testing.assert_array_equal(machines[0].forward(MINIBATCH), fake)


@pytest.mark.parametrize("updater", [tenon.updater.new_simple(), Sgd()])
def test_an_update_of_one_output_leaves_the_other_model(gan, updater):
    generator, discriminator = gan
    composed = tenon.gradient_machine.compose(generator, discriminator)
    part = tenon.gradient_machine.new(discriminator)

    def step(output, prefix, machine=composed):
        machine.feed([MINIBATCH, tenon.input.new(True)])
        found = changed(part.parameters, lambda: updater.update(machine, output))
        assert found and all(name.startswith(prefix) for name in found)

    step(generator, "g")
    step(discriminator, "d")
    step(None, "d", part)
    before = part.forward(MINIBATCH["image"])
    step(discriminator, "d")
    assert not np.array_equal(before, part.forward(MINIBATCH["image"]))


def test_compose_refuses_what_is_not_clear(gan):
    a, b = (tenon.layer.data(name, tenon.data_type.dense_vector(3)) for name in "ab")
    both = tenon.layer.fc(tenon.layer.concat(a, b), size=1, name="both")
    with pytest.raises(tenon.error.InvalidError, match=r'fits 2 data layers of output "both": "a" .* "b"'):
        tenon.gradient_machine.compose(gan[0], both)
    machine = tenon.gradient_machine.compose(gan[0], both, connect={"b": gan[0]})
    assert list(machine.types) == ["a", "noise"] or list(machine.types) == ["noise", "a"]
    with pytest.raises(tenon.error.InvalidError, match='data layer "c"'):
        tenon.gradient_machine.compose(gan[0], gan[1], connect={"c": gan[0]})
    with pytest.raises(tenon.error.InvalidError, match="at least two"):
        tenon.gradient_machine.compose(gan[0])


def test_compose_rebuilds_layers_with_several_outputs(gan):
    x = tenon.layer.data("x", tenon.data_type.dense_vector(3))
    values, _ = tenon.layer.top_k(x, k=2)
    spread = values - tenon.layer.sum(values, axis=1)
    machine = tenon.gradient_machine.compose(gan[0], spread)
    fake = machine.forward(MINIBATCH)[0]
    top = np.sort(fake, 1)[:, :0:-1]
    np.testing.assert_allclose(machine.output(spread), top - top.sum(1, keepdims=True), rtol=1e-5)


def test_compose_chains_several_models():
    inputs = [tenon.layer.data(f"in{i}", tenon.data_type.dense_vector(i + 1)) for i in range(3)]
    parts = [tenon.layer.fc(each, size=i + 2, bias=False, name=f"part{i}") for i, each in enumerate(inputs)]
    machine = tenon.gradient_machine.compose(*parts)
    assert list(machine.types) == ["in0"]
    outputs = machine.forward(np.ones((2, 1)))
    expected = np.ones((2, 1))
    for part, output in zip(parts, outputs, strict=True):
        expected = expected @ machine.parameters[f"{part.name}.weight"]
        np.testing.assert_allclose(output, expected, rtol=1e-5)


@pytest.mark.parametrize("updater", [tenon.updater.new_simple(1.0), Sgd(1.0)])
def test_sequences_and_sparse_rows(updater):
    words = tenon.layer.data("words", tenon.data_type.integer_value_sequence(50))
    vector = tenon.layer.embedding(words, vocabulary=50, size=4, param={"weight": {"sparse": True}}, name="table")
    model = tenon.layer.softmax(tenon.layer.sequence_pool(vector, kind="mean"), size=2)
    random = np.random.default_rng(0)
    samples = [(random.integers(0, 50, random.integers(1, 9)), 0) for _ in range(300)]
    samples = [(each, int(np.mean(each < 25) > 0.5)) for each, _ in samples]
    machine, accuracy = tenon.gradient_machine.new(model), tenon.metric.new_acc()
    reader = tenon.reader.typed(lambda: iter(samples), machine.types).batch(30)
    for minibatch, pass_end in reader.read(passes=15):
        machine.feed(minibatch)
        rows, _ = machine.sparse_gradient("table.weight")
        assert set(rows.tolist()) == set(minibatch["words"].values.tolist())
        updater.update(machine)
        accuracy.append(machine, minibatch)
        if pass_end:
            value = accuracy.flush()
    assert value > 0.9


def test_metrics_of_plugins_merge_minibatches():
    model = classifier()
    parameters = tenon.parameters.create([model.cost, model.accuracy])
    machine = tenon.gradient_machine.new(model.score, parameters, training=False)
    accuracy, top = tenon.metric.accuracy(input=model.score, label="label"), tenon.metric.top_k_accuracy(k=2)
    large = tenon.metric.new_acc()
    for minibatch, _ in tenon.reader.arrays(ARRAYS).batch(150).read():
        machine.forward(minibatch)
        accuracy.append(machine, minibatch)
        top.append(machine, minibatch)
    machine.forward(ARRAYS)
    large.append(machine, {"label": labels[:400]})
    expected = tenon.test([model.cost, model.accuracy], parameters, ARRAYS).metrics["accuracy"]
    assert accuracy.read() == large.read() == pytest.approx(expected) and accuracy.samples == 400
    assert top.flush() > expected
    with pytest.raises(tenon.error.MisuseError, match="no minibatch yet"):
        top.read()
    with pytest.raises(AttributeError, match='metric "acuracy"; did you mean "accuracy"'):
        tenon.metric.acuracy  # noqa: B018
    assert {"accuracy", "auc", "new_acc"} <= set(dir(tenon.metric))


def test_metrics_of_several_machines_are_merged():
    model = classifier()
    parameters = tenon.parameters.create([model.cost, model.accuracy])
    parts = []
    for part in (slice(0, 100), slice(100, 400)):
        machine = tenon.gradient_machine.new([model.score, model.cost, model.accuracy], parameters, training=False)
        machine.forward({name: values[part] for name, values in ARRAYS.items()})
        metrics = tenon.metric.new_acc(), tenon.metric.new(machine)
        for metric in metrics:
            metric.append(machine)
        parts.append(metrics)
    accuracy, both = parts[0]
    accuracy.merge(parts[1][0])
    both.merge(parts[1][1])
    expected = tenon.test([model.cost, model.accuracy], parameters, ARRAYS)
    assert accuracy.read() == pytest.approx(expected.metrics["accuracy"]) and accuracy.samples == 400
    assert both.read() == pytest.approx({"cost": expected.cost, **expected.metrics}) and parts[1][1].samples == 300
    empty = tenon.metric.new_acc()
    empty.merge(tenon.metric.new_acc())
    assert empty.samples == 0
    empty.merge(accuracy)
    assert empty.read() == accuracy.read()
    top = tenon.metric.top_k_accuracy(k=2)
    for other in (accuracy, tenon.metric.top_k_accuracy(k=1), top):
        with pytest.raises(tenon.error.InvalidError, match="of its type and attributes"):
            top.merge(other)
    cost = tenon.metric.new(tenon.gradient_machine.new(model.cost, parameters))
    cost._machine.forward(ARRAYS)
    with pytest.raises(tenon.error.InvalidError, match="other types or attributes"):
        cost.merge(both)


def test_metrics_need_an_output_that_the_machine_keeps():
    model = classifier()
    machine = tenon.gradient_machine.new(model.cost)
    machine.feed(ARRAYS)
    with pytest.raises(tenon.error.NotKeptError, match="score"):
        tenon.metric.new_acc(model.score).append(machine, ARRAYS)
    with pytest.raises(tenon.error.NotFoundError, match='"lable"; it has.*did you mean "label"'):
        tenon.metric.new_acc(model.cost, "lable").append(machine)


@pytest.mark.parametrize(
    "options",
    [{"test": ARRAYS}, {"stop": "EndIteration"}, {"stop": "BeginPass"}, {"stop": "EndPass"}, {"pass_batches": 5},
     {"passes": 0}, {"early_stop": {"min_delta": 1e9, "patience": 2}, "passes": 5},
     {"early_stop": {"metric": "accuracy", "best_is_highest": True, "min_delta": 0.05}, "passes": 9, "test": ARRAYS},
     {"immutable_parameters": {"hidden"}}],
    ids=str,
)  # fmt: skip
def test_updaters_in_python_train_like_those_of_plugins(options):
    def run(updater):
        model = classifier()
        parameters = tenon.parameters.create([model.cost, model.accuracy])
        events = []
        given = {"passes": 2, **options}
        stop = given.pop("stop", None)

        def handler(event):
            metrics = {name: round(value, 4) for name, value in event.metrics.items()}
            events.append((type(event), event.pass_id, event.batch_id, event.samples, round(event.cost, 4), metrics,
                           event.learning_rate, event.scheduled_rate, event.reason))  # fmt: skip
            if type(event).__name__ == stop:
                event.stop()

        tenon.train([model.cost, model.accuracy], parameters, ARRAYS, handler, updater=updater, batch_size=150, **given)
        return events, parameters

    expected, native = run(tenon.updater.Sgd(learning_rate=0.1))
    events, parameters = run(Sgd(0.1))
    assert repr(events) == repr(expected)  # nan is nan
    for name in native:
        np.testing.assert_allclose(parameters[name], native[name], atol=1e-6)


def test_updaters_in_python_keep_state_and_refuse_what_they_cannot():
    model = classifier()
    parameters = tenon.parameters.create(model.cost)
    updater = Sgd(0.1)
    seen = []

    def handler(event):
        if isinstance(event, tenon.event.EndIteration):
            event.set_learning_rate(0.0)
            seen.append(event)
            assert event.machine.gradient("score.bias").shape == (3,)

    tenon.train(model.cost, parameters, ARRAYS, handler, updater=updater, batch_size=100)
    assert updater.state(parameters)["score.bias"] == {"updates": 4} and updater.learning_rate == 0
    with pytest.raises(tenon.error.MisuseError, match="the event is over"):
        seen[0].stop()
    with pytest.raises(tenon.error.InvalidError, match='metric is "csot", which the training does not have; did you'):
        tenon.train(model.cost, parameters, ARRAYS, updater=updater, early_stop="csot")
    with pytest.raises(tenon.error.InvalidError, match="patience is 0; expected a whole number from 1 on"):
        tenon.train(model.cost, parameters, ARRAYS, updater=updater, early_stop={"patience": 0})
    with pytest.raises(tenon.error.InvalidError, match="training needs a cost among the outputs"):
        tenon.train(tenon.layer.softmax(model.score), parameters, {"pixel": pixels}, updater=updater)


def test_an_updater_that_fails_changes_no_parameter():
    class Broken(tenon.trainer.Updater):
        def update_parameter(self, name, parameter, gradient, state):
            parameter[:] = 0
            if name == "score.bias":
                raise ZeroDivisionError

    model = classifier()
    parameters = tenon.parameters.create(model.cost)

    def train():
        with pytest.raises(ZeroDivisionError):
            tenon.train(model.cost, parameters, ARRAYS, updater=Broken())

    assert changed(parameters, train) == []
    with pytest.raises(NotImplementedError, match="Base must define update_parameter"):
        tenon.train(model.cost, parameters, ARRAYS, updater=tenon.updater.Base())


def test_gradients_are_given_of_costs_and_set_in_either_type():
    x = tenon.layer.data("x", tenon.data_type.dense_vector(2))
    cost = tenon.layer.sum_cost(tenon.layer.fc(x, size=1, bias=False, name="f"))
    for compute in ("float32", "float64"):
        gm = tenon.gradient_machine.new(cost, compute=compute, given_gradients=True)
        gm.forward({"x": [[1.0, 2], [3, 4]]})
        gm.backward({cost: [1.0, 10]})
        gradient = gm.gradient("f.weight")
        assert gradient.dtype == compute and gradient.ravel().tolist() == [31, 42]
        gm.set_gradient("f.weight", [[1.0], [2]])
        before = gm.parameters["f.weight"].copy()
        tenon.updater.Sgd(learning_rate=1.0).update(gm)
        np.testing.assert_allclose(before - gm.parameters["f.weight"], [[1], [2]], rtol=1e-6)


def test_metrics_are_no_outputs_of_forward():
    x = tenon.layer.data("x", tenon.data_type.dense_vector(1))
    gm = tenon.gradient_machine.new([x * 2, tenon.layer.average(x)])
    assert gm.forward({"x": [[1.0], [3]]}).tolist() == [[2], [6]]
    assert gm.metrics == {"average": 2}


def test_optional_inputs_may_be_absent_before_others():
    q = tenon.layer.data("q", tenon.data_type.dense_array([3, 4]))
    described = tenon.host().describe("layer", "multi_head_attention")["inputs"]
    assert [port["flags"] & 1 for port in described][1:] == [1, 1, 1, 1]
    late = tenon.layer.multi_head_attention("q", None, None, "m", heads=2)
    mask = tenon.layer.data("m", tenon.data_type.dense_array([3]))
    made = tenon.layer.multi_head_attention(q, mask=mask, heads=2)
    assert made.shape == ("samples", 3, 4) and len(made.inputs) == 2
    tenon.parameters.create(late, reader={"q": np.ones((2, 3, 4)), "m": np.ones((2, 3))})
    assert late.shape == made.shape
