"""Row 13 for LeNet-5 in ONNX Runtime. SPDX-License-Identifier: Apache-2.0"""
import numpy as np
from onnx import helper, numpy_helper

from support import onnx_peer, peer

nodes, weights = [], []


def add(kind, inputs, **options):
    value = nodes[-1].output[0] if nodes else "x"
    made = f"v{len(nodes)}" if kind != "Gemm" or "fc3.weight" not in inputs else "y"
    nodes.append(helper.make_node(kind, [value, *inputs], [made], **options))


def weight(name, array):
    weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
    return name


for name, filters, channels in (("conv1", 6, 1), ("conv2", 16, 6)):
    kernel = peer.read(f"{name}.weight", (filters, 5, 5, channels)).transpose(0, 3, 1, 2)
    add("Conv", [weight(f"{name}.weight", kernel), weight(f"{name}.bias", peer.read(f"{name}.bias", (filters,)))])
    add("Relu", [])
    add("MaxPool", [], kernel_shape=[2, 2], strides=[2, 2])
add("Flatten", [])
for name, inputs, outputs in (("fc1", 256, 120), ("fc2", 120, 84), ("fc3", 84, 10)):
    matrix = peer.read(f"{name}.weight", (inputs, outputs))
    if name == "fc1":  # its rows are places, then channels; ONNX flattens channels first
        matrix = matrix.reshape(4, 4, 16, outputs).transpose(2, 0, 1, 3).reshape(inputs, outputs)
    add("Gemm", [weight(f"{name}.weight", matrix), weight(f"{name}.bias", peer.read(f"{name}.bias", (outputs,)))])
    if name != "fc3":
        add("Relu", [])
run, y = onnx_peer.bound_model(nodes, weights, peer.read("images", (1, 28, 28, 1)).transpose(0, 3, 1, 2).copy(), 10)
peer.mean_seconds(1000, run)
peer.report(**peer.single_calls(5000, run), loss=float(y[0, 0]) - float(y[0, 1]))
