#!/usr/bin/env python3
"""Makes the models of tests/data/onnx_models by the exporters of others, with inputs and what onnxruntime computes of them:
  make.py torch|legacy|sklearn|keras FOLDER
For each exporter in an environment of its own, as it wants other versions of packages than the tests:
  torch, legacy: torch onnxscript onnxruntime; sklearn: skl2onnx onnxruntime; keras: tensorflow-cpu tf2onnx onnxruntime
A model is NAME.onnx and NAME.npz: arrays input.NAME and output.NUMBER, and in "outputs" the names that are loaded.
SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime

SAMPLES = 3
# Not all of these are made by both exporters of PyTorch.
BY_TORCH = ("signal", "residual", "norms", "upscaled", "patches", "encoder", "lstm", "gru", "bag", "pixels", "best", "expanded")
BY_LEGACY = ("dense", "generator", "attention", "lstm", "rnn", "states", "recommender", "lengths")


def write(folder, name, model, feeds, outputs=None):
    """Writes a model that is small, without what a training has left beside it, with inputs and results."""
    onnx.checker.check_model(model)
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    del model.metadata_props[:]
    data = model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    found = onnxruntime.InferenceSession(data, options).run(outputs, feeds)
    (folder / f"{name}.onnx").write_bytes(data)
    arrays = {f"output.{i}": columns(each) for i, each in enumerate(found)}
    np.savez_compressed(folder / f"{name}.npz", outputs=np.array(outputs or [], str), **arrays,
                        **{f"input.{each}": values for each, values in feeds.items()})  # fmt: skip


def columns(result):
    """Returns an array; of maps by class, their values."""
    return np.array([list(row.values()) for row in result], np.float32) if isinstance(result, list) else result


def torch_models(folder, dynamo):
    import torch

    import models_torch

    for name in BY_TORCH if dynamo else BY_LEGACY:
        torch.manual_seed(0)
        make, inputs = models_torch.MODELS[name]
        model, given = make().eval(), inputs(SAMPLES)
        for each in model.modules():
            if isinstance(each, torch.nn.modules.batchnorm._BatchNorm):
                each.running_mean.normal_()
                each.running_var.uniform_(0.5, 2)
        names = [f"x{i}" for i in range(len(given))]
        file = folder / f"{'torch' if dynamo else 'legacy'}_{name}.onnx"
        if dynamo:
            shapes = tuple({0: torch.export.Dim("batch")} for _ in given)
            torch.onnx.export(model, tuple(given), dynamo=True, dynamic_shapes=shapes, input_names=names).save(file)
        else:
            axes = {each: {0: "batch"} for each in names}
            torch.onnx.export(model, tuple(given), file, dynamo=False, input_names=names, dynamic_axes=axes, opset_version=17)
        write(folder, file.stem, onnx.load(file), {each: value.numpy() for each, value in zip(names, given, strict=True)})


def quantized_models(folder):
    """Makes models with rounded values of two of PyTorch's, by onnxruntime's tool."""
    from onnxruntime import quantization

    class Feeds(quantization.CalibrationDataReader):
        def __init__(self, feeds):
            self.left = [feeds]

        def get_next(self):
            return self.left.pop() if self.left else None

    for name in ("legacy_dense", "torch_residual"):
        arrays = np.load(folder / f"{name}.npz")
        feeds = {each[len("input.") :]: arrays[each] for each in arrays.files if each.startswith("input.")}
        file = folder / f"quantized_{name.split('_')[1]}.onnx"
        quantization.quantize_static(folder / f"{name}.onnx", file, Feeds(feeds), quant_format=quantization.QuantFormat.QDQ,
                                     per_channel=name == "torch_residual")  # fmt: skip
        write(folder, file.stem, onnx.load(file), feeds)


def sklearn_models(folder):
    from skl2onnx import to_onnx

    import models_sklearn

    for name, make in models_sklearn.MODELS.items():
        model, x, options, outputs = make()
        made = to_onnx(model, x[:1], options={id(model): options} if options else None, target_opset={"": 17, "ai.onnx.ml": 3})
        write(folder, f"sklearn_{name}", made, {made.graph.input[0].name: x}, outputs)


def keras_models(folder):
    import tensorflow
    import tf2onnx

    import models_keras

    for name, make in models_keras.MODELS.items():
        tensorflow.keras.utils.set_random_seed(0)
        model, x = make()
        for each in model.variables:
            if "moving" in each.path:
                each.assign(abs(models_keras.numbers(*each.shape)) + 0.5)
        signature = [tensorflow.TensorSpec([None, *x.shape[1:]], x.dtype, name="x")]
        made, _ = tf2onnx.convert.from_function(tensorflow.function(lambda x, model=model: model(x)), signature, opset=17)
        write(folder, f"keras_{name}", made, {made.graph.input[0].name: x})


def main():
    kind, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if kind in ("torch", "legacy"):
        torch_models(folder, kind == "torch")
    {"quantized": quantized_models, "sklearn": sklearn_models, "keras": keras_models}.get(kind, lambda _: None)(folder)


if __name__ == "__main__":
    main()
