"""Models that the exporters of PyTorch, scikit-learn and Keras wrote, with what onnxruntime computed of them:
tests/exporters/make.py made the files. SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import tenon

FOLDER = Path(__file__).parents[2] / "data" / "onnx_models"
FILES = sorted(FOLDER.glob("*.onnx"))
# What F14 of the reports of users asks for; each occurs in one of the files.
OPERATORS = {"ArgMax", "ArrayFeatureExtractor", "Ceil", "DepthToSpace", "DequantizeLinear", "Einsum", "Expand", "GRU", "Gather",
             "Imputer", "LSTM", "LinearClassifier", "Normalizer", "OneHotEncoder", "QuantizeLinear", "RNN", "ReduceL1",
             "Resize", "Round", "Scaler", "Tile", "TopK", "Where", "ZipMap"}  # fmt: skip


def read(file):
    """Returns inputs by name, outputs, and the names of the outputs that are loaded, None for all."""
    arrays = np.load(file.with_suffix(".npz"))
    parts = {"input": {}, "output": {}}
    for name in arrays.files:
        kind, _, rest = name.partition(".")
        if kind in parts:
            parts[kind][rest] = arrays[name]
    outputs = [parts["output"][str(i)] for i in range(len(parts["output"]))]
    return parts["input"], outputs, [str(each) for each in arrays["outputs"]] or None


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_a_file_answers_as_its_runtime(file):
    feeds, wanted, outputs = read(file)
    parameters = tenon.onnx.load(file, channels_first=True, outputs=outputs)
    results = tenon.infer(parameters.outputs, parameters, feeds, nan="allow")
    for got, each in zip(results, wanted, strict=True):
        assert got.shape == each.shape
        np.testing.assert_allclose(got, each, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_a_file_that_is_written_again_answers_the_same(file, tmp_path):
    feeds, wanted, outputs = read(file)
    parameters = tenon.onnx.load(file, channels_first=True, outputs=outputs)
    tenon.onnx.save(parameters.outputs, parameters, tmp_path / "again.onnx", channels_first=False)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    by_others = onnxruntime.InferenceSession(tmp_path / "again.onnx", options).run(None, feeds)
    again = tenon.onnx.load(tmp_path / "again.onnx", channels_first=True)
    for results in (by_others, tenon.infer(again.outputs, again, feeds, nan="allow")):
        for got, each in zip(results, wanted, strict=True):
            assert got.shape == each.shape
            np.testing.assert_allclose(got, each, rtol=1e-5, atol=1e-5)


def test_the_set_has_what_users_bring():
    writers = Counter(file.stem.partition("_")[0] for file in FILES)
    assert sum(writers.values()) == 42 and len(writers) == 5 and min(writers.values()) >= 2, writers
    found = {node.op_type for file in FILES for node in onnx.load(file).graph.node}
    found |= {node.op_type for file in FILES for function in onnx.load(file).functions for node in function.node}
    assert found >= OPERATORS, OPERATORS - found
    assert sum(each.stat().st_size for each in FOLDER.iterdir()) < 1_500_000
