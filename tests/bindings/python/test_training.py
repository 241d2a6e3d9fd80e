"""train, test and infer. SPDX-License-Identifier: Apache-2.0"""

import subprocess
import sys
import traceback

import numpy as np
import pytest

import tenon
from models import classifier, labels, pixels, samples

ARRAYS = {"pixel": pixels, "label": labels}


def trained(reader, passes=3, **options):
    model = classifier()
    parameters = tenon.parameters.create([model.cost, model.accuracy])
    options.setdefault("updater", tenon.updater.Adam(learning_rate=0.02))
    tenon.train([model.cost, model.accuracy], parameters, reader, passes=passes, **options)
    return model, parameters


@pytest.mark.parametrize("reader", [ARRAYS, samples, list(samples()), tenon.reader.shuffle(samples, 100)])
def test_each_kind_of_reader_trains(reader):
    model, parameters = trained(reader, 6, batch_size=32)
    result = tenon.test([model.cost, model.accuracy], parameters, ARRAYS)
    assert result.metrics["accuracy"] > 0.9 and result.samples == 400


def test_readers_of_equal_samples_train_equally():
    first, second = trained(ARRAYS)[1], trained(samples)[1]
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


def test_events_come_in_order():
    kinds = []
    trained(ARRAYS, 1, event_handler=lambda event: kinds.append(type(event).__name__), batch_size=200)
    iteration = ["BeginIteration", "EndIteration"]
    assert kinds == ["BeginTraining", "BeginPass", *iteration, *iteration, "EndPass", "EndTraining"]


def test_a_handler_reads_the_machine_and_stops():
    seen = []

    def handler(event):
        if isinstance(event, tenon.event.EndIteration):
            seen.append(event)
            assert event.machine.output(model.score).shape == (event.samples, 3)
            if event.batch_id == 1:
                event.stop()

    model = classifier()
    parameters = tenon.parameters.create(model.cost)
    tenon.train([model.cost, model.score], parameters, ARRAYS, handler, batch_size=50)
    assert len(seen) == 2 and seen[0].cost > 0
    with pytest.raises(tenon.error.MisuseError, match="the event is over"):
        seen[0].stop()


def test_exceptions_come_out_as_themselves():
    def broken():
        yield pixels[0], 1
        raise KeyError("mine")

    def handler(event):
        raise ZeroDivisionError

    for reader, options, kind, word in ((broken, {}, KeyError, "in broken"),
                                        (ARRAYS, {"event_handler": handler}, ZeroDivisionError, "in handler")):  # fmt: skip
        with pytest.raises(kind) as caught:
            trained(reader, **options)
        assert word in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        ((pixels[0], "one"), ['sample 1: slot "label" is one number, int64', "str 'one'"]),
        ((pixels[0][:3], 1), ['sample 1: slot "pixel" is float32 [20]', "ndarray of float32 [3]"]),
        ((pixels[0], 1.5), ['sample 1: slot "label"', "float"]),
        ((pixels[0],), ["sample 1 has 1 values; expected 2", '"pixel", "label"']),
        ({"pixel": pixels[0]}, ['sample 1 has no slot "label"']),
        (7, ["sample 1 is int"]),
        ((pixels[0], 3), ['slot "label"', "3 is not below 3"]),
    ],
)
def test_wrong_samples_are_told_by_number_slot_and_types(sample, words):
    def reader():
        yield pixels[0], 0
        yield sample

    with pytest.raises(tenon.Error) as caught:
        trained(reader)
    for word in words:
        assert word in str(caught.value)


def test_immutable_parameters_keep_their_bits():
    model = classifier()
    parameters = tenon.parameters.create(model.cost)
    before = {name: parameters[name].copy() for name in parameters}
    tenon.train(model.cost, parameters, ARRAYS, immutable_parameters={"hidden"}, updater="sgd")
    for name in parameters:
        assert np.array_equal(before[name], parameters[name]) == name.startswith("hidden")
    with pytest.raises(tenon.error.NotFoundError, match='"hiden"; did you mean "hidden"'):
        tenon.train(model.cost, parameters, ARRAYS, immutable_parameters={"hiden"})


def test_training_one_topology_is_seen_by_another_on_the_same_set():
    model = classifier()
    parameters = tenon.parameters.create([model.cost, model.score])
    before = tenon.infer(model.score, parameters, pixels[:2])
    tenon.train(model.cost, parameters, ARRAYS)
    assert not np.array_equal(before, tenon.infer(model.score, parameters, pixels[:2]))


def test_two_topologies_share_one_set_and_freeze_parts_of_it():
    def network(name, input, size):
        return tenon.layer.fc(tenon.layer.fc(input, size=8, act="relu", parameter_name=f"{name}.hidden"), size=size,
                              parameter_name=f"{name}.out")  # fmt: skip

    noise, real = (tenon.layer.data(name, tenon.data_type.dense_vector(2)) for name in ("noise", "real"))
    drawn = network("G", noise, 2)
    d0 = tenon.layer.should_be_true(network("D", drawn, 1))
    score = network("D", real, 1)
    d1 = tenon.layer.should_be_true(score)
    parameters = tenon.parameters.create([d0, d1])
    assert {name.split(".")[0] for name in parameters} == {"G", "D"} and len(parameters) == 8
    points = np.random.default_rng(0).normal(size=(64, 2))

    def bits():
        return {name: parameters[name].tobytes() for name in parameters}

    before, seen = bits(), tenon.infer([drawn], parameters, points)[0]
    tenon.train(d0, parameters, {"noise": points}, passes=3, immutable_parameters={"D"})
    for name, value in bits().items():
        assert (value == before[name]) == name.startswith("D.")
    assert not np.array_equal(tenon.infer(drawn, parameters, points), seen)
    before, seen = bits(), tenon.infer(network("D", drawn, 1), parameters, points)
    tenon.train(d1, parameters, {"real": points}, passes=3)
    for name, value in bits().items():
        assert (value == before[name]) == name.startswith("G.")
    # What d1 learned is seen at once through another topology on the same set.
    assert not np.array_equal(tenon.infer(network("D", drawn, 1), parameters, points), seen)


def test_inference_takes_constants():
    model = classifier()
    parameters = tenon.parameters.create(model.cost)
    costs = tenon.infer(model.cost, parameters, {"pixel": pixels[:9], "label": tenon.input.new(2)})
    expected = tenon.infer(model.cost, parameters, {"pixel": pixels[:9], "label": [2] * 9})
    np.testing.assert_array_equal(costs, expected)


def test_inference_takes_arrays_dicts_samples_and_readers():
    model, parameters = trained(ARRAYS)
    expected = tenon.infer(model.score, parameters, pixels)
    assert expected.shape == (400, 3)
    for given in ({"pixel": pixels}, pixels.tolist(), {"pixel": pixels, "label": labels},
                  tenon.reader.arrays({"pixel": pixels}), [(row,) for row in pixels]):  # fmt: skip
        np.testing.assert_allclose(tenon.infer(model.score, parameters, given), expected, rtol=1e-6)
    score, hidden = tenon.infer([model.score, model.hidden], parameters, pixels)
    assert hidden.shape == (400, 16)
    np.testing.assert_array_equal(score, expected)
    with pytest.raises(tenon.error.InvalidError, match='nothing for data layer "pixel"'):
        tenon.infer(model.score, parameters, {"pixels": pixels})


def test_tests_during_a_training_and_early_stop():
    events = []
    trained(ARRAYS, 30, test=ARRAYS, early_stop={"metric": "cost", "min_delta": 1.0}, event_handler=events.append)
    tests = [event for event in events if isinstance(event, tenon.event.Test)]
    assert 1 <= len(tests) < 30 and "accuracy" in tests[0].metrics


class Sgd(tenon.updater.Base):
    def update_parameter(self, name, parameter, gradient, state):
        parameter -= self.learning_rate * gradient


@pytest.mark.parametrize("given, passes", [("cost", 2), ({}, 2), ({"patience": 1}, 2), ({"patience": 3}, 4),
                                           ({"min_delta": 1e9, "patience": 2}, 3), ({"metric": "accuracy", "patience": 2}, 3),
                                           ({"best_is_highest": True, "patience": 5}, 6)], ids=str)  # fmt: skip
@pytest.mark.parametrize("updater", [tenon.updater.Sgd(learning_rate=0.0), Sgd(learning_rate=0.0)], ids=["plugin", "python"])
def test_a_training_that_does_not_improve_ends_after_as_many_passes_as_it_has_patience(updater, given, passes):
    model = classifier()
    parameters, ends = tenon.parameters.create([model.cost, model.accuracy]), []

    def note(event):
        if isinstance(event, tenon.event.EndPass):
            ends.append(event.pass_id)

    tenon.train([model.cost, model.accuracy], parameters, ARRAYS, note, passes=9, updater=updater, early_stop=given)
    assert len(ends) == passes


def test_a_training_resumes_from_its_checkpoints(tmp_path):
    whole = trained(ARRAYS, 4)[1]
    trained(ARRAYS, 2, checkpoint=str(tmp_path))
    resumed = trained(ARRAYS, 4, checkpoint=str(tmp_path))[1]
    for name in whole:
        np.testing.assert_array_equal(whole[name], resumed[name])


def test_one_program_serves_every_start(tmp_path):
    (tmp_path / "best.safetensors").write_text("of a training that was killed before its first checkpoint")
    begun = []

    def note(event):
        if isinstance(event, tenon.event.BeginTraining):
            begun.append(event.checkpoint)

    for passes in (1, 2):
        trained(ARRAYS, passes, checkpoint=str(tmp_path), event_handler=note)
    assert not begun[0] and begun[1].endswith("checkpoint-1-0.safetensors")


def test_a_folder_of_checkpoints_belongs_to_one_training(tmp_path):
    refused = []

    def train_beside(event):
        if isinstance(event, tenon.event.EndIteration) and not refused:
            with pytest.raises(tenon.error.Error, match="another call of this process holds this lock"):
                trained(ARRAYS, 1, checkpoint=str(tmp_path))
            refused.append(event)

    trained(ARRAYS, 1, checkpoint=str(tmp_path), event_handler=train_beside)
    assert refused


@pytest.mark.parametrize("updater", [tenon.updater.Sgd(learning_rate=0.01), Sgd()])
def test_several_costs_are_reported_by_name(updater):
    model = classifier()
    small = tenon.layer.square_error(model.score, model.score * 0.0, coefficient=0.5, name="small")
    outputs = [model.cost, small, model.accuracy]
    parameters = tenon.parameters.create(outputs)
    name = model.cost.name if model.cost.name != "cost" else "cost.cost"
    seen = []

    def note(event):
        if isinstance(event, (tenon.event.EndIteration, tenon.event.EndPass, tenon.event.EndTraining)):
            seen.append(event)
            assert list(event.costs) == [name, "small"]
            assert sum(event.costs.values()) == pytest.approx(event.cost)

    stop = {"metric": "small", "best_is_highest": True, "min_delta": 1e9}
    tenon.train(outputs, parameters, ARRAYS, note, passes=9, updater=updater, early_stop=stop)
    assert seen[-1].pass_id == 1 and "small" in repr(seen[-1])
    result = tenon.test(outputs, parameters, ARRAYS)
    assert sum(result.costs.values()) == pytest.approx(result.cost) and "small=" in repr(result)
    assert tenon.test([small], parameters, ARRAYS).cost == pytest.approx(result.costs["small"])
    assert tenon.test([model.cost], parameters, ARRAYS).costs == {}


def test_the_interpreter_ends_beside_a_training(tmp_path):
    program = """
import threading, time, numpy as np, tenon
x = tenon.layer.data("x", tenon.data_type.dense_vector(2))
cost = tenon.layer.square_error(tenon.layer.fc(x, size=2), x)
parameters = tenon.parameters.create(cost)
begun = threading.Event()
def train():
    tenon.train(cost, parameters, {"x": np.ones((64, 2))}, lambda event: begun.set(), passes=10**9)
threading.Thread(target=train, daemon=True).start()
begun.wait()
del parameters, cost, x
print("ends")
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ends\n", "")


def test_several_devices_compute_shards_of_a_minibatch():
    one, two = trained(ARRAYS)[1], trained(ARRAYS, device=["cpu:0", "cpu"])
    for name in one:
        np.testing.assert_allclose(one[name], two[1][name], rtol=1e-3, atol=1e-4)
    model, parameters = two
    whole = tenon.test([model.cost, model.accuracy], parameters, ARRAYS)
    parts = tenon.test([model.cost, model.accuracy], parameters, ARRAYS, device=("cpu", "cpu", "cpu"))
    assert parts.samples == 400 and parts.metrics == whole.metrics
    machine = tenon.gradient_machine.new(model.cost, parameters, device=["cpu", "cpu"], max_samples=10)
    machine.forward({"pixel": pixels[:7], "label": labels[:7]})
    machine.backward()
    assert machine.output(model.cost).shape == (7,)
    with pytest.raises(tenon.error.NotFoundError, match='devices "cpu:0", "cpu:7": device "cpu:7": unknown number 7'):
        trained(ARRAYS, device=["cpu:0", "cpu:7"])


def test_products_in_bfloat16():
    skipped = []
    full = trained(ARRAYS)[1]
    model, rounded = trained(ARRAYS, compute="bf16", event_handler=lambda event: skipped.append(event.skipped))
    assert skipped and not any(skipped)
    for name in full:
        assert full[name].dtype == rounded[name].dtype == np.float32
        np.testing.assert_allclose(full[name], rounded[name], rtol=0.1, atol=0.05)
    assert any((full[name] != rounded[name]).any() for name in full)
    result = tenon.test([model.cost, model.accuracy], rounded, ARRAYS, compute="bf16")
    assert result.metrics["accuracy"] > 0.5
    machine = tenon.gradient_machine.new(model.cost, rounded, compute="tf32")
    machine.forward({"pixel": pixels[:7], "label": labels[:7]})
    assert machine.plan().compute == "tf32"
    with pytest.raises(tenon.error.InvalidError, match='compute is \'half\'; expected "float32"'):
        trained(ARRAYS, compute="half")


def test_ctrl_c_ends_a_training():
    import signal

    def handler(event):
        if isinstance(event, tenon.event.EndIteration):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        trained(ARRAYS, 100, event_handler=handler)


def test_two_trainings_on_two_threads():
    import threading

    results = {}

    def run(number):
        results[number] = trained(ARRAYS)[1]

    threads = [threading.Thread(target=run, args=[number]) for number in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for name in results[0]:
        np.testing.assert_array_equal(results[0][name], results[1][name])
