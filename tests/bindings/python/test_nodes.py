"""Programs that train on other machines: dist_train(nodes=...) and createClusterTrainer. A script in place of ssh starts the
processes on this one. SPDX-License-Identifier: Apache-2.0"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tenon
from tenon._run import nodes
from test_team import needs_engine

MODEL = """
import numpy as np
from tenon.config_helpers import SoftmaxActivation, classification_cost, dense_vector, fc_layer, integer_value
import tenon

draw = np.random.default_rng(3)
pixels = draw.normal(size=(120, 8))
labels = (pixels @ draw.normal(size=(8, 3))).argmax(1)


@tenon.network(input_types={"img": dense_vector(8), "label": integer_value(3)})
def digits(img, label):
    hidden = fc_layer(input=img, size=6)
    return classification_cost(input=fc_layer(input=hidden, size=3, act=SoftmaxActivation()), label=label)


@digits.train_data(files=["all"])
@digits.test_data(files=["all"])
def provider(file):
    for row, label in zip(pixels, labels):
        yield row, int(label)
"""
PROGRAM = """
import os, sys, time
import tenon
import numpy as np
from model import digits, pixels

node = os.environ.get("TEST_NODE", "here")


def trained(trainer):
    results = [trainer.trainOnePass(handler) for _ in range(2)]
    name = next(iter(trainer.network.parameters))
    trainer.network.parameters[name] = np.zeros_like(trainer.network.parameters[name])
    results.append(trainer.trainOnePass(handler))
    results.append(trainer.testOnePass())
    np.savez("trained.npz", **{name: trainer.network.parameters[name] for name in trainer.network.parameters})
    return [(each.cost, each.metrics, each.samples) for each in results]


def handler(event):
    if isinstance(event, tenon.event.BeginTraining):
        print("trains on", node)


"""


@pytest.fixture
def machine(environment, ssh, tmp_path, monkeypatch):
    """A machine with nodes: runs a program in a folder."""
    needs_engine()
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    def run(program, *words, **options):
        (tmp_path / "train.py").write_text(PROGRAM + program)
        done = subprocess.run([sys.executable, "-B", "train.py", *words], check=False, capture_output=True, text=True,
                              timeout=100, cwd=tmp_path, env={**os.environ, **options}, stdin=subprocess.DEVNULL)  # fmt: skip
        assert list(tmp_path.glob("tenon-*")) == [], done.stderr
        assert left(tmp_path) == [], done.stderr
        return done

    run.folder = tmp_path
    return run


def left(folder):
    """The processes that this test has started, whose log is in the folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if f"TEST_LOG={folder}/log".encode() in (place / "environ").read_bytes() and int(place.name) != os.getpid():
                found.append((place / "cmdline").read_bytes())
        except OSError:
            pass
    return found


def stored(folder):
    with np.load(folder / "trained.npz") as values:
        return {name: values[name].tobytes() for name in values}


def test_a_trainer_on_nodes_has_the_bits_of_one_here(machine):
    program = "print(trained(digits().{}.withSGDOptimizer(learning_rate=0.5, batch_size=20)))\n"
    done = machine(program.format('createClusterTrainer("node0, ann@node1:2", shards=6)'))
    assert done.returncode == 0, done.stderr
    values, told = stored(machine.folder), done.stdout
    assert done.stderr.splitlines() == ["[process 0] trains on node0"] * 3, "handlers are called on the first node"
    log = (machine.folder / "log").read_text()
    assert log.count("-o BatchMode=yes") == 3 and log.count("-- ann@node1 ") == 2
    done = machine(program.format("createLocalTrainer(shards=6)"))
    assert done.returncode == 0, done.stderr
    assert stored(machine.folder) == values and done.stdout.splitlines()[-1] == told.strip()


def test_dist_train_on_nodes_has_the_bits_of_one(machine):
    program = """
network = digits()
tenon.dist_train(network, event_handler=handler, passes=2, updater="adam", shards=6, batch_size=20{})
print("after", sys.argv[1:], node)
np.savez("trained.npz", **{{name: network.parameters[name] for name in network.parameters}})
"""
    elsewhere = machine.folder / "elsewhere"
    elsewhere.mkdir()
    done = machine(program.format(', nodes="node0,node1"'), "more", TEST_ELSEWHERE=str(elsewhere))
    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("after ['more'] here\n", "[process 0] trains on node0\n")
    values = stored(machine.folder)
    done = machine(program.format(""))
    assert done.returncode == 0 and done.stdout.startswith("trains on here"), done.stderr
    assert stored(machine.folder) == values


FAILS = """
def fails(event):
    if isinstance(event, tenon.event.EndIteration):
        raise KeyError("mine")


if sys.argv[1] == "other" and node == "node1":
    sys.exit(3)
if sys.argv[1] == "killed" and node == "node1":
    import threading
    threading.Timer(3, lambda: os.kill(os.getpid(), 9)).start()
trainer = digits().createClusterTrainer(sys.argv[2])
try:
    for number in range(1000 if sys.argv[1] == "killed" else 2):
        trainer.trainOnePass(fails if sys.argv[1] == "raises" else None)
except Exception as failure:
    print(type(failure).__name__, failure)
    try:
        trainer.trainOnePass()
    except tenon.Error as again:
        print(again)
"""


@pytest.mark.parametrize(
    ("scenario", "names", "words"),
    [
        ("raises", "node0,node1", "KeyError 'mine'"),
        ("other", "node0,node1", "FileError process 1 on node1 ended with code 3 before it came to the call"),
        ("killed", "node0,node1", "FileError process 1 on node1 was ended by signal 9 (Killed)"),
        ("unknown", "node0,unknown", "ssh has ended with exit code 255: ssh: Could not resolve hostname unknown"),
        ("bare", "bare", "process 0 on bare ended with code 127 before it came to the call"),
    ],
)
def test_the_first_failure_of_a_node_is_raised(machine, scenario, names, words):
    done = machine(FAILS, scenario, names)
    assert done.returncode == 0 and words in done.stdout.splitlines()[0], done.stdout + done.stderr
    assert "the nodes have ended after an error" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_on_the_nodes(machine, number):
    (machine.folder / "train.py").write_text(PROGRAM + """
trainer = digits().createClusterTrainer("node0, node1")
while True:
    trainer.trainOnePass(lambda event: open(f"begun-{node}", "w").close())
""")
    words = [sys.executable, "-B", "train.py"]
    with subprocess.Popen(words, cwd=machine.folder, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 60
        while not (machine.folder / "begun-node0").exists() and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(number)
        told = process.communicate(timeout=30)[1]
    assert process.returncode == -number, told
    while left(machine.folder) and time.monotonic() < until:
        time.sleep(0.05)
    assert left(machine.folder) == []


def test_a_notebook_is_told_the_way_out(environment, cell):
    for call in (lambda: network().createClusterTrainer("node0"), lambda: tenon.dist_train(network(), nodes="node0")):
        with pytest.raises(tenon.error.UnsupportedError, match="a notebook is not a program: .* %%writefile train.py"):
            call()


def network():
    @tenon.network(input_types={"x": tenon.data_type.dense_vector(2)})
    def net(x):
        return tenon.layer.square_error(tenon.layer.fc(x, size=2), x)

    @net.train_data(files="none")
    def provider(name):
        yield ([1.0, 2.0],)

    return net()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected names of machines"),
        ("a b", "expected names of machines"),
        ("-oProxyCommand=x", "expected names of machines"),
        ("a:0", "expected names of machines"),
        ("a:1025", "with 1 to 1024"),
        ("a,a", 'nodes has "a" twice; a:2 has two processes'),
        (3, "nodes is 3; expected a text"),
    ],
)
def test_wrong_nodes(text, words):
    with pytest.raises(tenon.error.InvalidError, match=words):
        nodes.parse(text, "dist_train")


def test_nodes_are_numbered():
    parsed = nodes.parse("ann@a:2,b, [fe80::1%eth0]:3", "dist_train")
    assert [(each.host, each.first, each.processes) for each in parsed] == [("a", 0, 2), ("b", 2, 1), ("fe80::1%eth0", 3, 3)]
