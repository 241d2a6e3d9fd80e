"""ONNX Runtime's side of the benchmarks: chains of fully connected layers. SPDX-License-Identifier: Apache-2.0"""
from support import peer

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper


def bound_run(x, *sizes):
    """A function that answers for `x`, its memory bound beforehand, and the array that it writes.
    sizes: (name, inputs, outputs) of each layer; relu between them."""
    nodes, weights, value = [], [], "x"
    for index, (name, inputs, outputs) in enumerate(sizes):
        for part, shape in (("weight", (inputs, outputs)), ("bias", (outputs,))):
            weights.append(numpy_helper.from_array(peer.read(f"{name}.{part}", shape), f"{name}.{part}"))
        last = index + 1 == len(sizes)
        result = "y" if last else name
        nodes.append(helper.make_node("Gemm", [value, f"{name}.weight", f"{name}.bias"],
                                      [result if last else f"{name}.sum"]))
        if not last:
            nodes.append(helper.make_node("Relu", [f"{name}.sum"], [result]))
        value = result
    return bound_model(nodes, weights, x, sizes[-1][2])


def bound_model(nodes, weights, x, outputs):
    """The same for nodes that make y [samples, outputs] from x."""
    samples = x.shape[0]
    graph = helper.make_graph(
        nodes, "chain", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, list(x.shape))],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [samples, outputs])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = peer.THREADS
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    y = np.zeros((samples, outputs), np.float32)
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    return (lambda: session.run_with_iobinding(binding)), y
