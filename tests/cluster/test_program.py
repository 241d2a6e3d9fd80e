"""tenon.dist_train in a cluster: a program on the laptop, whose pods run it again. SPDX-License-Identifier: Apache-2.0"""

import os
import subprocess

import pytest

import fake_user
import training

PYTHON = next((path for path in (training.BUILD / "venv/bin/python", training.BUILD / "bin/python") if path.exists()), None)
pytestmark = pytest.mark.skipif(PYTHON is None, reason="the Python package is not built")
MODELS = """
import numpy as np
import tenon
from tenon import data_type, layer

draw = np.random.default_rng(1)
pixels = draw.normal(size=(200, 8)).astype(np.float32)
labels = (pixels.sum(axis=1) > 0).astype(np.int32)
pixel = layer.data("pixel", data_type.dense_vector(8))
label = layer.data("label", data_type.integer_value(2))
hidden = layer.fc(pixel, size=6, act="tanh")
cost = layer.cross_entropy([layer.fc(hidden, size=2), label], from_logits=True)
"""
PROGRAM = """
import sys
import numpy as np
import tenon
from models import cost, labels, pixels


def reader():
    for sample in zip(pixels, labels):
        if sys.argv[1:] == ["fails"]:
            raise KeyError("mine")
        yield {{"pixel": sample[0], "label": sample[1]}}


parameters = tenon.parameters.create(cost)
print("before")
tenon.dist_train(cost, parameters, reader, lambda event: print(type(event).__name__), updater="adam", batch_size=20,
                 passes=2, shards=4, {options})
print("after")
np.savez("trained.npz", **{{name: parameters[name] for name in parameters}})
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    for parent in (folder, *folder.parents):
        if str(parent).startswith("/tmp/"):
            parent.chmod(0o755)
    image = folder / "image/bin"
    image.mkdir(parents=True)
    for name in ("tenon", "tenon-launch"):
        (image / name).symlink_to(training.BUILD / "bin" / name)
    (image / "python3").write_text(f'#!/bin/sh\nexport PYTHONPATH="{training.BUILD}/python"\nexec "{PYTHON}" "$@"\n')
    (image / "python3").chmod(0o755)
    place = folder / "fake"
    place.mkdir()
    with fake_user.running(place, "--image", f"yi/hello={folder / 'image'}") as running:
        yield running


def run(folder, client, options, *arguments, program=PROGRAM, **variables):
    (folder / "models.py").write_text(MODELS)
    (folder / "train.py").write_text(program.format(options=options) if options else program)
    environment = {**os.environ, "PYTHONPATH": str(training.BUILD / "python"), "KUBECONFIG": str(client.folder / "kubeconfig"),
                   **variables}  # fmt: skip
    return subprocess.run([str(PYTHON), "-B", "train.py", *arguments], check=False, cwd=folder, env=environment, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=100)  # fmt: skip


def trained(folder):
    return (folder / "trained.npz").read_bytes()


def test_the_parameters_come_back(tmp_path, client):
    done = run(tmp_path, client, 'processes=2, k8s_user="yi", k8s_job="hello"')
    assert done.returncode == 0, done.stderr
    assert done.stdout == "before\nafter\n", "what pods print is no output of the program"
    assert "BeginPass" in done.stderr and "fetched" in done.stderr
    assert done.stderr.startswith("hello-")
    cluster = trained(tmp_path)
    done = run(tmp_path, client, "processes=1")
    assert done.returncode == 0, done.stderr
    assert trained(tmp_path) == cluster, "the bits of one process"
    counts = client.control("counts")
    assert counts["processes"] == 0 and {kind for kind, number in counts["objects"].items() if number} == {"events"}


def test_a_token_in_a_file(tmp_path, client):
    (tmp_path / "kube.pem").write_text((client.folder / "token").read_text())
    done = run(tmp_path, client, 'k8s_user="yi", k8s_job="hello", k8s_token="kube.pem", k8s_options=["--cluster=wrong-token"]')
    assert done.returncode == 0, done.stderr


SEED = """
import tenon as paddle
from tenon.config_helpers import *


@paddle.network(input_types={"img": dense_vector(4), "label": integer_value(2)})
def network(img, label):
    return classification_cost(input=fc_layer(input=img, size=2, act=SoftmaxActivation()), label=label)


@network.train_data(files="drawn")
def provider(file):
    for number in range(60):
        yield [float(number >> bit & 1) for bit in range(4)], number & 1


model = network()
paddle.dist_train(model,
                  k8s_user="yi",
                  k8s_token="kube_cluster_tls.pem",
                  k8s_job="hello",
                  num_parameter_servers=15)
print(sorted(model.parameters), abs(model.parameters["fc_0.weight"]).max() > 0)
"""


def test_the_call_of_the_design_document(tmp_path, client):
    (tmp_path / "kube_cluster_tls.pem").write_text((client.folder / "token").read_text())
    done = run(tmp_path, client, "", program=SEED)
    assert done.returncode == 0, done.stderr
    assert "num_parameter_servers is 15, and none is started" in done.stderr and "1 pod in the namespace" in done.stderr
    assert done.stdout.endswith("True\n"), done.stdout


@pytest.mark.parametrize(
    ("options", "arguments", "words"),
    [
        ('processes=2, k8s_user="yi", k8s_job="hello"', ["fails"], ["KeyError: 'mine'", "has ended with exit code 1"]),
        ('k8s_job="hello"', [], ["which image pods have is missing"]),
        ('image="yi/absent", k8s_options=["--queue"]', [], ["--queue", "has ended with exit code 64"]),
        ('k8s_user="yi", k8s_job="hello", k8s_token="nowhere.pem"', [], ['cannot read "nowhere.pem"', "exit code 66"]),
        ("k8s_job=3", [], ["k8s_job is 3; expected a text"]),
    ],
)
def test_mistakes(tmp_path, client, options, arguments, words):
    done = run(tmp_path, client, options, *arguments)
    assert done.returncode == 1 and "after" not in done.stdout, done.stderr
    for each in words:
        assert each in done.stderr, done.stderr


