"""tenon model convert between ONNX, models and tensors: round trips bit for bit, and what is lost.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tenon

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402 (it needs the package)

PROGRAM = Path(tenon.__file__).parent / "bin" / "tenon"
FOLDER = os.pathsep.join([str(Path(tenon.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])


def convert(*arguments, code=0, **environment):
    """Returns the lines of standard error."""
    variables = {**os.environ, "TENON_PYTHON": sys.executable, "PYTHONPATH": FOLDER, **environment}
    command = [PROGRAM, "model", "convert", *map(str, arguments)]
    done = subprocess.run(command, check=False, env=variables, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert done.stdout == (f"saved {arguments[1]}\n" if code == 0 else "")
    return done.stderr.splitlines()


def trained(path):
    layer = tenon.layer
    image = layer.data("image", tenon.data_type.dense_array([6, 6, 2]))
    x = layer.pool(layer.conv(image, filters=3, kernel=3, act="relu", name="conv"), kind="max", kernel=2)
    score = layer.fc(layer.dropout(x, rate=0.5, name="drop"), size=4, name="score")
    cost = layer.cross_entropy(score, layer.data("label", tenon.data_type.integer_value(4)), from_logits=True, name="cost")
    outputs = [score, cost]
    parameters = tenon.parameters.create(outputs)
    parameters.save(path, outputs)
    return parameters


def test_a_model_becomes_onnx_and_back(tmp_path):
    parameters = trained(tmp_path / "a.safetensors")
    lost = convert(tmp_path / "a.safetensors", tmp_path / "a.onnx")
    assert lost == [f"not in {tmp_path}/a.onnx: outputs that are costs or metrics: cost",
                    f"not in {tmp_path}/a.onnx: what training alone reads of layers (dropout, multipliers): drop"]  # fmt: skip
    assert convert(tmp_path / "a.onnx", tmp_path / "b.safetensors") == []
    back = tenon.parameters.load(tmp_path / "b.safetensors")
    assert set(back) == set(parameters)
    assert all((back[name] == parameters[name]).all() for name in parameters)
    convert(tmp_path / "b.safetensors", tmp_path / "b.onnx")
    convert(tmp_path / "b.onnx", tmp_path / "c.safetensors")
    assert (tmp_path / "c.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_two_steps_at_once(tmp_path):
    parameters = trained(tmp_path / "a.safetensors")
    convert(tmp_path / "a.safetensors", tmp_path / "a.onnx")
    lost = convert(tmp_path / "a.onnx", tmp_path / "t.safetensors", "--to", "safetensors")
    assert any("the topology" in line for line in lost)
    convert(tmp_path / "t.safetensors", tmp_path / "t.onnx", "--topology", tmp_path / "a.safetensors", code=0)
    again = tenon.onnx.load(tmp_path / "t.onnx")
    assert all((again[name] == parameters[name]).all() for name in again)


def graph(nodes, tensors, names, **more):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["samples", 2])
    outputs = [helper.make_empty_tensor_value_info(name) for name in names]
    made = helper.make_graph(nodes, "graph", [x], outputs, [numpy_helper.from_array(v, n) for n, v in tensors.items()])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9, **more)


def test_what_onnx_has_and_a_model_lacks(tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Relu", ["y"], ["unread"], name="spare")]
    model = graph(nodes, {"w": np.ones((2, 3), np.float64)}, ["y"], doc_string="a text")
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    model.metadata_props.add(key="author", value="somebody")
    onnx.save(model, tmp_path / "a.onnx")
    to = tmp_path / "a.safetensors"
    assert convert(tmp_path / "a.onnx", to) == [
        f"not in {to}: metadata: author", f"not in {to}: descriptions",
        f"not in {to}: element types, which are float32 now: double",
        f"not in {to}: nodes that no output needs: spare"]  # fmt: skip


def test_every_node_that_is_refused_is_listed(tmp_path):
    nodes = [helper.make_node("QLinearMatMul", ["x", "s", "z", "w", "s", "z", "s", "z"], ["q"], name="product"),
             helper.make_node("TreeEnsembleRegressor", ["x"], ["t"], name="forest", domain="ai.onnx.ml"),
             helper.make_node("SVMClassifier", ["x"], ["label", "votes"], name="machine", domain="ai.onnx.ml")]  # fmt: skip
    tensors = {"s": np.float32(1), "z": np.uint8(0), "w": np.zeros((2, 2), np.uint8)}
    model = graph(nodes, tensors, ["q", "t", "votes"])
    model.opset_import.add(domain="ai.onnx.ml", version=3)
    onnx.save(model, tmp_path / "a.onnx")
    lines = convert(tmp_path / "a.onnx", tmp_path / "a.safetensors", code=78)
    assert "unsupported nodes" in lines[0] and lines[0].startswith("tenon: ")
    for words in ('node "product" (QLinearMatMul)', 'node "forest" (TreeEnsembleRegressor)', 'node "machine" (SVMClassifier)'):
        assert any(words in line for line in lines), lines
    assert not (tmp_path / "a.safetensors").exists()


def test_what_is_wrong(tmp_path):
    (tmp_path / "a.onnx").write_bytes(b"no model")
    assert any("a.onnx" in line for line in convert(tmp_path / "a.onnx", tmp_path / "a.safetensors", code=65))
    convert(tmp_path / "none.onnx", tmp_path / "a.safetensors", code=66)
    trained(tmp_path / "a.safetensors")
    lines = convert(tmp_path / "a.safetensors", tmp_path / "b.onnx", code=66, TENON_PYTHON="/none/python")
    assert "tenon[onnx]" in lines[0] and "/none/python" in lines[0] and "No such file" in lines[0]
    ids = tenon.layer.data("ids", tenon.data_type.integer_value_sequence(4))
    pooled = tenon.layer.sequence_pool(tenon.layer.embedding(ids, vocabulary=4, size=2, name="words"), kind="mean")
    tenon.parameters.create(pooled).save(tmp_path / "s.safetensors", pooled)
    lines = convert(tmp_path / "s.safetensors", tmp_path / "s.onnx", code=78)
    assert any("sequence_pool" in line for line in lines)
    assert not (tmp_path / "s.onnx").exists()
