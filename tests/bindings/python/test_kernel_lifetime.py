"""Layers written in Python over threads, hosts and processes. SPDX-License-Identifier: Apache-2.0"""

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import tenon
from models import classifier, pixels
from test_kernels import ARRAYS, Affine, CrossEntropy, Hits, Swish, vector


def run(program, **options):
    environment = {**os.environ, "PYTHONPATH": f"{Path(tenon.__file__).parents[1]}:{Path(__file__).parent}"}
    return subprocess.run([sys.executable, "-B", "-c", program], check=False, capture_output=True, text=True,
                          timeout=30, env=environment, **options)  # fmt: skip


def work(rounds):
    for _ in range(rounds):
        model = classifier()
        hidden = Swish()(model.score)
        cost = CrossEntropy()(tenon.layer.softmax(hidden, size=3), model.cost.inputs[1])
        outputs = [cost, Hits()(hidden, model.cost.inputs[1])]
        parameters = tenon.parameters.create(outputs)
        tenon.train(outputs, parameters, ARRAYS, lambda event: event.metrics, batch_size=100)
        machine = tenon.gradient_machine.new(outputs, parameters)
        machine.feed(ARRAYS)
        tenon.updater.Adam().update(machine)
        tenon.infer(hidden, parameters, {"pixel": pixels})
        del machine
        gc.collect()


def test_threads_train_at_once():
    """Machines of all threads begin and end all the time. In a process: a dead lock would hold the interpreter."""
    done = run("""
import sys, threading
from test_kernel_lifetime import work
sys.setswitchinterval(1e-5)
threads = [threading.Thread(target=work, args=[15]) for _ in range(4)]
[each.start() for each in threads]
[each.join() for each in threads]
""")
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_a_model_is_loaded_where_the_class_is_defined(tmp_path):
    layer = Affine(2)(Swish(beta=3)(vector("x")), name="end")
    parameters = tenon.parameters.create(layer)
    parameters.save(tmp_path / "model")
    program = """
import numpy as np, tenon
{0}
model = tenon.load("model")
print(tenon.infer(model.outputs[0], model, np.ones((1, 3))).tolist())
"""
    done = run(program.format("from test_kernels import Swish, Affine"), cwd=tmp_path)
    assert done.stdout == f"{tenon.infer(layer, parameters, np.ones((1, 3))).tolist()}\n", done.stderr
    missing = run(program.format(""), cwd=tmp_path)
    assert missing.stderr.splitlines()[-1] == (
        f'tenon.error.NotFoundError: model: layer "{layer.inputs[0].name}" is of type "python.swish", a class that is '
        "written in Python and not defined here: define it, or import the module that does, before the model is loaded"
    )


@pytest.fixture
def other_host():
    """Puts the default host back after the test."""
    former = tenon.host()
    yield lambda: tenon.use(tenon.Host(threads=1))
    tenon.use(former)


def test_a_class_may_be_defined_anew(tmp_path, other_host):
    """As in a cell of a notebook: layers keep the class that they were made with."""

    def define(factor, **more):
        class Times(tenon.layer.Base):
            def forward(self, x):
                return factor * x

        return type("Times", (Times,), {"__qualname__": "Times", "__module__": __name__, **more})

    x = vector("x", 1)
    first = define(2)()(x)
    second = define(3, forward=lambda self, x, y=None: 3 * x)()(x)
    parameters = tenon.parameters.create([first, second])
    assert [each.tolist() for each in tenon.infer([first, second], parameters, [[1.0]])] == [[[2]], [[3]]]
    assert second.type == "python.times_2"
    parameters.save(tmp_path / "model", second)
    other_host()
    loaded = tenon.load(tmp_path / "model")
    assert tenon.infer(loaded.outputs[0], loaded, [[1.0]]) == 3
    other_host()
    loaded = tenon.load((tmp_path / "model").read_bytes())
    assert tenon.infer(loaded.outputs[0], loaded, [[1.0]]) == 3


def test_two_classes_of_one_type_are_refused():
    Other = type("Swish", (Swish,), {"__qualname__": "Other.Swish"})
    message = r'test_kernels.Swish and .*Other.Swish have the same type "python.swish"'
    with pytest.raises(tenon.error.InvalidError, match=message):
        Swish()(vector("x"))
        Other()(vector("x"))
    assert type("Swish", (Other,), {"type": "acme.swish"})()(vector("x")).type == "acme.swish"


def test_hosts_hold_classes_as_long_as_they_need_them(other_host):
    class Local(tenon.layer.Base):
        def forward(self, x):
            return x + 1

    host = other_host()
    layer = Local()(vector("x", 1))
    parameters = tenon.parameters.create(layer)
    gone = weakref.ref(Local)
    del Local
    gc.collect()
    assert tenon.infer(layer, parameters, [[1.0]]) == 2
    other_host()
    del layer, parameters, host
    gc.collect()
    assert gone() is None


ENDINGS = {
    "a training on another thread": """
threading.Thread(target=tenon.train, args=[cost, parameters, ARRAYS], kwargs={"passes": 10**6}, daemon=True).start()
time.sleep(0.1)
""",
    "a layer that never ends": """
class Stuck(tenon.layer.Base):
    def forward(self, x):
        time.sleep(1000)
stuck = Stuck()(model.score)
threading.Thread(target=tenon.infer, args=[stuck, parameters, {"pixel": pixels}], daemon=True).start(); time.sleep(0.1)
""",
    "an exception in a layer": """
class Failing(tenon.layer.Base):
    def forward(self, x):
        raise SystemExit(0)
tenon.infer(Failing()(model.score), parameters, {"pixel": pixels})
""",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_programs_end_cleanly(ending):
    head = """
import threading, time
import tenon
from models import classifier, pixels
from test_kernels import ARRAYS, CrossEntropy, Swish
model = classifier()
cost = CrossEntropy()(tenon.layer.softmax(Swish()(model.score), size=3), model.cost.inputs[1])
parameters = tenon.parameters.create(cost)
"""
    done = run(head + ENDINGS[ending])
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_layers_after_the_end_of_the_interpreter_are_an_error():
    """In functions that atexit calls later than that of tenon, which drops the classes."""
    done = run("""
import atexit
def late():
    try:
        tenon.infer(layer, parameters, {"pixel": pixels})
    except tenon.error.CancelledError as failure:
        print(failure)
atexit.register(late)
import tenon
from models import classifier, pixels
from test_kernels import Swish
layer = Swish()(classifier().score)
parameters = tenon.parameters.create(layer)
""")
    assert done.stdout.endswith("the interpreter is ending\n") and done.stderr == "", done.stdout + done.stderr
