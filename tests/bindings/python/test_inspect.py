"""Tables and graphs of topologies. SPDX-License-Identifier: Apache-2.0"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tenon
from models import classifier
from tenon import inspect


def test_a_summary_is_a_table():
    model = classifier()
    table = tenon.summary([model.cost, model.accuracy])
    lines = str(table).splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == ["pixel", "hidden", "score", "label", "cost", "accuracy"]
    hidden = table.rows[1]
    assert hidden.type == "fc" and hidden.inputs == ("pixel",) and hidden.output == "[samples, 16]"
    assert hidden.values == 20 * 16 + 16 and table.values == hidden.values + 16 * 3 + 3
    assert lines[-1] == f"6 layers, {table.values} values of parameters"
    assert "<td>hidden</td>" in table._repr_html_()


def test_shared_parameters_count_once():
    a, b = (tenon.layer.data(name, tenon.data_type.dense_vector(4)) for name in "ab")
    both = [tenon.layer.fc(each, size=2, bias=False, parameter_name="shared") for each in (a, b)]
    assert tenon.summary(both).values == 8


def test_a_graph_is_drawn(tmp_path, monkeypatch):
    model = classifier()
    text = tenon.draw(model.cost, tmp_path / "graph.dot")
    assert text == (tmp_path / "graph.dot").read_text()
    assert '"hidden" -> "score";' in text and '"pixel" [label="pixel\\ndata' in text
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert inspect.draw(model.cost) == text and text._repr_svg_() is None  # a notebook shows the text


def test_a_graph_is_a_picture_in_a_notebook(tmp_path, monkeypatch):
    dot = tmp_path / "dot"  # in place of Graphviz, which may not be installed
    dot.write_text("#!/bin/sh\necho '<svg></svg>'\n")
    dot.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(dot))
    drawing = tenon.draw(classifier().cost, tmp_path / "graph.svg")
    assert drawing._repr_svg_() == drawing == (tmp_path / "graph.svg").read_text() == "<svg></svg>\n"


def test_loaded_models_have_summaries(tmp_path):
    model = classifier()
    tenon.parameters.create(model.score).save(tmp_path / "model.safetensors")
    rows = tenon.summary(tenon.load(tmp_path / "model.safetensors").outputs).rows
    assert [row.name for row in rows] == ["pixel", "hidden", "score"]


JOB = """
layer = [{ name = "hidden", type = "fc", inputs = ["pixel"], size = 16, act = "relu" },
         { name = "score", type = "fc", inputs = ["hidden"], size = 3 },
         { name = "cost", type = "cross_entropy", inputs = ["score", "label"], from_logits = true }]
updater = { type = "adam" }
reader.train = { type = "npy", names = ["pixel", "label"], files = ["pixels.npy", "labels.npy"], batch = 64 }
"""


def test_a_plan_is_that_of_the_program(tmp_path):
    model = classifier()
    (tmp_path / "job.toml").write_text(JOB)
    np.save(tmp_path / "pixels.npy", np.zeros((100, 20), np.float32))
    np.save(tmp_path / "labels.npy", np.arange(100) % 3)
    package = str(Path(tenon.__file__).parents[1])
    done = subprocess.run([sys.executable, "-m", "tenon", "plan", "job.toml", "--json"], cwd=tmp_path,
                          check=False, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": package})  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = json.loads(done.stdout)
    plan = tenon.plan(model.cost, 64, updater=tenon.updater.adam())
    assert plan.bytes == expected["bytes"] and plan.bytes["state"] > 0
    assert len(plan.rows) == len(expected["calls"]) > 4
    for row, call in zip(plan.rows, expected["calls"], strict=True):
        for name in ("phase", "call", "kernel", "operations", "reads", "writes", "workspace"):
            assert getattr(row, name) == call[name]
        for name in ("layers", "outputs", "traits"):
            assert getattr(row, name) == tuple(call[name])
    assert plan.saved == tuple((each["layer"], each["value"], each["bytes"]) for each in expected["saved"])
    first = plan.rows[0]
    assert first.layers == ("hidden/fc", "hidden/relu") and first.types == ("fc", "relu")


def test_a_plan_is_a_table():
    model = classifier()
    plan = tenon.plan(model.score, training=False)
    assert {row.phase for row in plan.rows} == {"forward"} and not plan.training and "gradients" in plan.bytes
    title, calls, memory = str(plan).split("\n\n")
    assert title == "device cpu, compute float32, minibatches of at most 128 samples, inference"
    assert calls.splitlines()[0].split()[:5] == ["phase", "layer", "type", "call", "kernel"]
    assert len(calls.splitlines()) == len(plan.rows) + 1
    assert memory.splitlines()[1].split() == ["parameters", str(plan.bytes["parameters"])]
    page = plan._repr_html_()
    assert page.count("<table>") == 2 and f"<td>machine</td><td>{plan.bytes['machine']}</td>" in page
    fixed = tenon.plan(model.cost, immutable_parameters="hidden")
    assert fixed.bytes["gradients"] < tenon.plan(model.cost).bytes["gradients"]
    with pytest.raises(tenon.error.MisuseError, match="data layer 'x' is not known"):
        tenon.plan(tenon.layer.fc("x", size=2))


def test_a_machine_has_the_plan_of_its_calls():
    model = classifier()
    machine = tenon.gradient_machine.new(model.cost, max_samples=64)
    machine.feed({"pixel": np.zeros((64, 20)), "label": np.zeros(64, np.int64)})
    assert machine.plan() == tenon.plan(model.cost, 64)
