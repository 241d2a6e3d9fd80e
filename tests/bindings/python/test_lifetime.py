"""Threads, processes, hosts, and the end of the interpreter: nothing hangs or crashes.

SPDX-License-Identifier: Apache-2.0
"""

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tenon
from models import classifier, labels, pixels, samples

ARRAYS = {"pixel": pixels, "label": labels}
TYPES = {"pixel": tenon.data_type.dense_vector(20), "label": tenon.data_type.integer_value(3)}


def slow():
    """Samples without end, so slow that a buffer reads them on a thread of its own."""
    while True:
        for sample in samples():
            time.sleep(0.001)
            yield sample


def buffered(function, batch=2):
    return tenon.reader.typed(function, TYPES).batch(batch).buffered(4)


def created():
    model = classifier()
    return model, tenon.parameters.create([model.cost, model.accuracy])


HEAD = """
import os, sys, threading, time
import tenon
from models import samples
from test_lifetime import ARRAYS, buffered, created, slow
model, parameters = created()
"""
ENDINGS = {
    "a reader that reads ahead": "core = buffered(slow).open(); [core.next() for _ in range(9)]",
    "a reader that is being read": "stream = buffered(slow).read(None); [next(stream) for _ in range(9)]",
    "an exception": "core = buffered(slow).open(); [core.next() for _ in range(9)]; raise SystemExit(0)",
    "a reader that waits for ever": """
def stuck():
    for sample in samples():
        yield sample
        time.sleep(0.001 if sample[1] else 1000)
core = buffered(stuck).open(); core.next()
""",
    "a reader whose end predicts": """
def predicting():
    try:
        yield from slow()
    finally:
        tenon.infer(model.score, parameters, ARRAYS)
core = buffered(predicting).open(); [core.next() for _ in range(9)]
""",
    "a training on another thread": """
threading.Thread(target=tenon.train, args=[model.cost, parameters, slow], daemon=True).start(); time.sleep(0.1)
""",
    "a training with a handler on another thread": """
arguments = [model.cost, parameters, ARRAYS, lambda event: event.cost]
threading.Thread(target=tenon.train, args=arguments, kwargs={"passes": 10**6}, daemon=True).start(); time.sleep(0.1)
""",
    "a child process that has a reader": """
core = buffered(slow).open(); [core.next() for _ in range(9)]
if os.fork() == 0:
    del core
    sys.exit(0)
assert os.wait()[1] == 0
""",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_interpreter_ends_with(ending):
    program = HEAD + ENDINGS[ending] + "\nprint('end')" * ("raise" not in ENDINGS[ending])
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-X", "faulthandler", "-c", program]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=20, env={**os.environ, "PYTHONPATH": path}
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_dropping_a_reader_whose_thread_runs_python():
    for _ in range(10):
        core = buffered(slow).open()
        for _ in range(9):
            core.next()
        del core


def test_a_reader_may_use_the_host():
    model, parameters = created()

    def reader():
        for number, (pixel, label) in enumerate(samples()):
            if number % 50 == 0:
                time.sleep(0.01)
                tenon.layer.fc(model.pixel, size=3)
                tenon.infer(model.score, parameters, pixels[:1])
            yield pixel, label

    for each in (tenon.reader.typed(reader, TYPES).batch(8), buffered(reader, 8)):
        tenon.train(model.cost, parameters, each)


def test_threads_predict_and_read_while_one_trains():
    model, parameters = created()
    over, failures, answers = threading.Event(), [], []

    def serve():
        while not over.is_set():
            try:
                answers.append(tenon.infer(model.score, parameters, pixels[:7]).shape)
                assert parameters.read("score.weight").shape == (16, 3)
            except Exception as failure:  # noqa: BLE001 (the test has it)
                failures.append(failure)
                return

    threads = [threading.Thread(target=serve) for _ in range(4)]
    for each in threads:
        each.start()
    tenon.train(model.cost, parameters, samples, lambda event: event.cost, passes=10, batch_size=8)
    over.set()
    for each in threads:
        each.join()
    assert failures == [] and set(answers) == {(7, 3)}


def test_a_view_during_a_training_of_another_thread_is_refused_with_a_hint():
    model, parameters = created()
    inside, done = threading.Event(), threading.Event()

    def reader():
        yield from samples()
        inside.set()
        done.wait(10)

    thread = threading.Thread(target=tenon.train, args=[model.cost, parameters, reader])
    thread.start()
    inside.wait(10)
    try:
        with pytest.raises(tenon.error.MisuseError) as caught:
            parameters["score.bias"]
        assert "parameters.read('score.bias')" in str(caught.value) and "tn_" not in str(caught.value)
    finally:
        done.set()
        thread.join()
    np.testing.assert_array_equal(parameters.read("score.bias"), parameters["score.bias"])


def test_a_set_is_trained_on_its_own_host():
    before = tenon.host()
    try:
        first = tenon.use(tenon.Host(threads=1))
        model, parameters = created()
        tenon.use(tenon.Host(threads=2))
        del first
        gc.collect()
        tenon.train(model.cost, parameters, ARRAYS, updater="adam")
        assert tenon.infer(model.score, parameters, pixels[:1]).shape == (1, 3)
        assert tenon.test(model.cost, parameters, samples).samples == 400
        machine = tenon.gradient_machine.new(model.cost, parameters)
        machine.forward(ARRAYS)
        assert machine.cost > 0
        assert parameters.host.threads == 1 and tenon.host().threads == 2
        with pytest.raises(tenon.error.MisuseError, match="on another host"):
            tenon.layer.fc(model.pixel, size=1)
    finally:
        tenon.use(before)


def test_arrays_outlive_sets_and_hosts():
    before = tenon.host()
    try:
        tenon.use(tenon.Host(threads=1))
        parameters = created()[1]
        weight = parameters["score.weight"]
        kept = weight.copy()
    finally:
        tenon.use(before)
    del parameters
    gc.collect()
    np.testing.assert_array_equal(weight, kept)


def _bias(number):
    model, parameters = created()
    tenon.train(model.cost, parameters, ARRAYS)
    return float(parameters["score.bias"][0])


def test_child_processes_get_a_host_of_their_own():
    expected = _bias(0)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(_bias, range(3)) == [expected] * 3


class Held(tenon.updater.Base):
    """An updater that waits in its second update for the test."""

    def __init__(self):
        super().__init__(0.1)
        self.inside, self.go, self.calls = threading.Event(), threading.Event(), 0

    def update_parameter(self, name, parameter, gradient, state):
        self.calls += 1
        if self.calls == 6:
            self.inside.set()
            self.go.wait(10)
        parameter -= self.learning_rate * gradient


def test_a_training_by_an_updater_in_python_holds_its_set():
    model, parameters = created()
    held = Held()
    before = parameters.read("score.bias")
    thread = threading.Thread(target=tenon.train, args=[model.cost, parameters, samples], kwargs={"updater": held})
    thread.start()
    held.inside.wait(10)
    machine = tenon.gradient_machine.new(model.cost, parameters)
    machine.feed({"pixel": pixels, "label": labels})

    def edit():
        with parameters.edit("score.bias"):
            pass

    calls = [
        lambda: parameters["score.bias"], lambda: parameters.__setitem__("score.bias", before), edit,
        lambda: parameters.copy_from(parameters), lambda: tenon.train(model.cost, parameters, samples),
        lambda: tenon.train(model.cost, parameters, samples, updater=Held()),
        lambda: np.from_dlpack(parameters.dlpack("score.bias")), lambda: tenon.updater.Adam().update(machine),
        lambda: Held().update(machine),
    ]  # fmt: skip
    try:
        for call in calls:
            with pytest.raises(tenon.error.MisuseError) as caught:
                call()
            assert caught.value.component == "parameters" and "tn_" not in str(caught.value)
        assert not np.array_equal(parameters.read("score.bias"), before)
    finally:
        held.go.set()
        thread.join()
    parameters["score.bias"] = before
    tenon.train(model.cost, parameters, samples)


def test_an_updater_cannot_train_the_set_that_it_updates():
    model, parameters = created()

    class Nested(tenon.updater.Base):
        def update_parameter(self, name, parameter, gradient, state):
            tenon.train(model.cost, parameters, samples)

    with pytest.raises(tenon.error.MisuseError, match="a training of these parameters has not ended"):
        tenon.train(model.cost, parameters, samples, updater=Nested())
    tenon.train(model.cost, parameters, samples)
