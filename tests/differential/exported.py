"""A program's model as a file of ONNX: by onnxruntime, and loaded again. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import numpy as np
import onnxruntime

import check
import product
import tenon
from program import random_of

onnxruntime.set_default_logger_severity(3)


def check_file(checked):
    """Compares the outputs of the program, which a predictor has computed from the trained parameters."""
    program, layers = checked.program, checked.layers
    first = bool(random_of(program.seed, "channels_first").random() < 0.5)
    file = checked.folder / "model.onnx"
    outputs = layers.outputs
    tenon.onnx.save(outputs, checked.trained, file, channels_first=first)
    feeds = product.feeds(program, checked.data, list(range(program.samples)))
    wanted = [checked.found[name] for name in program.outputs]
    for name, value, other in zip(program.outputs, wanted, run(file, feeds), strict=True):
        check.close(f"{name} by onnxruntime", in_order(value, other), value, check.ROUNDED, checked.noise[name])
    loaded = tenon.onnx.load(file)
    types = loaded_types(loaded)
    given = {name: turned(feeds[name], types[name]) for name in types}
    for name, value, other in zip(program.outputs, wanted, tenon.infer(loaded.outputs, loaded, given), strict=True):
        check.close(f"{name} of the loaded file", in_order(value, other), value, check.ROUNDED, checked.noise[name])


def loaded_types(loaded):
    return {name: kind.shape for each in loaded.outputs for name, kind in each.data_types.items()}


def turned(values, shape):
    """Returns values with their channels first or last, whichever has the shape of a sample; the sizes are unequal."""
    if values.shape[1:] == tuple(shape):
        return values
    return np.moveaxis(values, -1, 1) if np.moveaxis(values, -1, 1).shape[1:] == tuple(shape) else np.moveaxis(values, 1, -1)


def session_of(file):
    """Of a file. With all its optimisations onnxruntime moves transposes behind a linear Resize, which it then refuses."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(file, options)
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        return onnxruntime.InferenceSession(file, options)


def run(file, feeds):
    session = session_of(file)
    return session.run(None, {each.name: turned(feeds[each.name], each.shape[1:]) for each in session.get_inputs()})


def in_order(wanted, found):
    """Returns an output with its dimensions as wanted: images may have their channels first. Of equal shapes the order that
    is nearer counts."""
    turns = [found] if found.ndim < 3 else [found, np.moveaxis(found, 1, -1), np.moveaxis(found, -1, 1)]
    fitting = [each for each in turns if each.shape == wanted.shape]
    return min(fitting, key=lambda each: float(np.abs(each - wanted).max(initial=0))) if fitting else found
