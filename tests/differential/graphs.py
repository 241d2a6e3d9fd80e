"""Random graphs of ONNX, by onnxruntime and loaded: each is computed alike or refused. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import tenon
from exported import in_order, turned

SAMPLES = 3
SIMPLE = ("Relu", "Sigmoid", "Tanh", "Softplus", "Softsign", "Abs", "Neg", "Sin", "Erf", "HardSwish", "Identity")


class Graph:
    """A graph as it is drawn. shapes: of its values, without the samples."""

    def __init__(self, seed):
        self.random = np.random.default_rng([seed, 77])
        self.nodes, self.constants, self.shapes, self.inputs = [], {}, {}, []
        sizes = [int(each) for each in self.random.permutation([2, 3, 4, 5, 6, 7])]
        rank = int(self.random.choice([1, 2, 3, 3, 3]))
        for _ in range(int(self.random.integers(1, 3))):
            name = f"x{len(self.inputs)}"
            self.inputs.append(name)
            self.shapes[name] = tuple(sizes[:rank])
        wanted = int(self.random.integers(2, 8))
        for _ in range(5 * wanted):
            if len(self.nodes) >= wanted:
                break
            OPERATORS[self.random.integers(len(OPERATORS))](self)

    def chance(self, share):
        return self.random.random() < share

    def number(self, low, high):
        return int(self.random.integers(low, high))

    def pick(self, rank=None, where=lambda shape: True):
        """Returns a value, rather a late one; None if none fits."""
        found = [name for name, shape in self.shapes.items() if (rank is None or len(shape) in rank) and where(shape)]
        return found[-1 - min(int(self.random.geometric(0.6)) - 1, len(found) - 1)] if found else None

    def constant(self, values, dtype=np.float32):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(values, dtype)
        return name

    def weight(self, *shape):
        return self.constant(self.random.uniform(-1, 1, shape))

    def add(self, op, inputs, *shapes, **attributes):
        """Adds a node whose outputs have these shapes."""
        outputs = [f"y{len(self.shapes)}_{k}" for k in range(len(shapes))]
        if all(shape and math.prod(shape) < 2000 for shape in shapes):
            self.nodes.append(helper.make_node(op, inputs, outputs, **attributes))
            self.shapes.update(zip(outputs, shapes, strict=True))

    def model(self, last=None):
        """Returns the model with all outputs that no node reads, or with those of the node `last` alone."""
        nodes = self.nodes if last is None else self.nodes[: last + 1]
        read = {name for node in nodes for name in node.input}
        outputs = (
            list(nodes[-1].output) if last is not None else [each for node in nodes for each in node.output if each not in read]
        )
        needed, kept = set(outputs), []
        for node in reversed(nodes):
            if needed & set(node.output):
                kept.insert(0, node)
                needed.update(node.input)
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", *self.shapes[name]])
            for name in self.inputs
            if name in needed
        ]
        results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", *self.shapes[name]]) for name in outputs]
        tensors = [numpy_helper.from_array(values, name) for name, values in self.constants.items() if name in needed]
        graph = helper.make_graph(kept, "drawn", inputs, results, tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def simple(g):
    name = g.pick()
    g.add(SIMPLE[g.number(0, len(SIMPLE))], [name], g.shapes[name])


def conv(g):
    name = g.pick([2, 3], lambda shape: min(shape[1:]) >= 2)
    if name is None:
        return
    channels, *space = g.shapes[name]
    groups = channels if g.chance(0.25) else 1
    kernel = [g.number(1, 3) for _ in space]
    strides, pads = [g.number(1, 3) for _ in space], [g.number(0, 2) for _ in range(2 * len(space))]
    filters = groups * g.number(1, 4)
    sizes = [(size + pads[k] + pads[len(space) + k] - kernel[k]) // strides[k] + 1 for k, size in enumerate(space)]
    inputs = [name, g.weight(filters, channels // groups, *kernel), *([g.weight(filters)] if g.chance(0.6) else [])]
    g.add("Conv", inputs, (filters, *sizes), kernel_shape=kernel, strides=strides, pads=pads, group=groups)


def pool(g):
    name = g.pick([2, 3], lambda shape: min(shape[1:]) >= 2)
    if name is None:
        return
    channels, *space = g.shapes[name]
    op = ("MaxPool", "AveragePool")[g.number(0, 2)]
    if g.chance(0.25):
        g.add(f"Global{op}", [name], (channels, *[1] * len(space)))
        return
    kernel, strides = [2] * len(space), [g.number(1, 3) for _ in space]
    sizes = [(size - 2) // stride + 1 for size, stride in zip(space, strides, strict=True)]
    g.add(op, [name], (channels, *sizes), kernel_shape=kernel, strides=strides)


def norm(g):
    name = g.pick([2, 3], lambda shape: math.prod(shape[1:]) > 1)
    if name is None:
        return
    channels = g.shapes[name][0]
    if g.chance(0.4):
        g.add("InstanceNormalization", [name, g.weight(channels), g.weight(channels)], g.shapes[name], epsilon=0.1)
    elif g.chance(0.6):
        variance = g.constant(g.random.uniform(0.5, 2, channels))
        inputs = [name, *(g.weight(channels) for _ in range(3)), variance]
        g.add("BatchNormalization", inputs, g.shapes[name], epsilon=0.01)
    else:
        width = g.shapes[name][-1]
        g.add("LayerNormalization", [name, g.weight(width), g.weight(width)], g.shapes[name], epsilon=0.1, axis=-1)


def resize(g):
    name = g.pick([2, 3])
    if name is None:
        return
    channels, *space = g.shapes[name]
    sizes = [1 if g.chance(0.2) else g.number(2, 11) if g.chance(0.7) else size for size in space]
    mode = ("nearest", "linear")[g.number(0, 2)]
    places = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")[g.number(0, 4)]
    more = {"nearest_mode": ("floor", "round_prefer_floor", "ceil")[g.number(0, 3)]} if mode == "nearest" else {}
    inputs = [name, "", "", g.constant([SAMPLES, channels, *sizes], np.int64)]
    g.add("Resize", inputs, (channels, *sizes), mode=mode, coordinate_transformation_mode=places, **more)


def transpose(g):
    name = g.pick([2, 3])
    if name is not None:
        order = [1 + int(each) for each in g.random.permutation(len(g.shapes[name]))]
        g.add("Transpose", [name], tuple(g.shapes[name][each - 1] for each in order), perm=[0, *order])


def matmul(g):
    name = g.pick()
    *lead, width = g.shapes[name]
    size = g.number(1, 5)
    g.add("MatMul", [name, g.weight(width, size)], (*lead, size))


def products(g):
    """Of two values with three dimensions or more."""
    a = g.pick([2, 3])
    b = a and g.pick([len(g.shapes[a])], lambda shape: shape[:-2] == g.shapes[a][:-2] and shape[-2] == g.shapes[a][-1])
    if b:
        g.add("MatMul", [a, b], (*g.shapes[a][:-1], g.shapes[b][-1]))


def flatten(g):
    name = g.pick([2, 3])
    if name is None:
        return
    count = math.prod(g.shapes[name])
    if g.chance(0.5):
        g.add("Flatten", [name], (count,), axis=1)
    else:
        first = [k for k in range(1, count + 1) if count % k == 0][g.number(0, 2)]
        g.add("Reshape", [name, g.constant([0, first, -1], np.int64)], (first, count // first))


def gemm(g):
    name = g.pick([1])
    if name is not None:
        size = g.number(1, 5)
        g.add("Gemm", [name, g.weight(size, g.shapes[name][0]), g.weight(size)], (size,), transB=1)


def join(g):
    name = g.pick()
    axis = g.number(0, len(g.shapes[name]))
    shape = g.shapes[name]

    def fits(other):
        return len(other) == len(shape) and all(k == axis or other[k] == shape[k] for k in range(len(shape)))

    other = g.pick(None, fits)
    sizes = tuple(size + g.shapes[other][k] if k == axis else size for k, size in enumerate(shape))
    g.add("Concat", [name, other], sizes, axis=axis + 1)


def cut(g):
    name = g.pick()
    shape = g.shapes[name]
    axis = g.number(0, len(shape))
    start = g.number(0, shape[axis])
    end = g.number(start + 1, shape[axis] + 1)
    operands = [g.constant([each], np.int64) for each in (start, end, axis + 1)]
    g.add("Slice", [name, *operands], tuple(end - start if k == axis else size for k, size in enumerate(shape)))


def reduction(g):
    name = g.pick([2, 3])
    if name is None:
        return
    shape, keep = g.shapes[name], g.chance(0.4)
    axes = sorted(int(each) for each in g.random.choice(len(shape), g.number(1, len(shape)), replace=False))
    op = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin")[g.number(0, 4)]
    sizes = tuple(1 if k in axes else size for k, size in enumerate(shape) if keep or k not in axes)
    g.add(op, [name, g.constant([each + 1 for each in axes], np.int64)], sizes, keepdims=int(keep))


def softmax(g):
    name = g.pick()
    g.add(("Softmax", "LogSoftmax")[g.number(0, 2)], [name], g.shapes[name], axis=g.number(1, len(g.shapes[name]) + 1))


def with_numbers(g):
    name = g.pick()
    shape = tuple(size if g.chance(0.6) else 1 for size in g.shapes[name])
    operands = [name, g.weight(*shape[g.number(0, len(shape)) :])]
    if g.chance(0.3):
        operands.reverse()
    g.add(("Add", "Sub", "Mul", "Max", "Min")[g.number(0, 5)], operands, g.shapes[name])


def both(g):
    name = g.pick()
    other = g.pick(None, lambda shape: shape == g.shapes[name])
    g.add(("Add", "Sub", "Mul", "Max", "Min", "Sum")[g.number(0, 6)], [name, other], g.shapes[name])


def parts(g):
    name = g.pick(None, lambda shape: max(shape) > 1)
    if name is None:
        return
    shape = g.shapes[name]
    axis = max(range(len(shape)), key=lambda k: shape[k])
    first = g.number(1, shape[axis])
    sizes = [tuple(size if k == axis else each for k, each in enumerate(shape)) for size in (first, shape[axis] - first)]
    g.add("Split", [name, g.constant([first, shape[axis] - first], np.int64)], *sizes, axis=axis + 1)


def prelu(g):
    name = g.pick([2, 3])
    if name is not None:
        shape = g.shapes[name]
        g.add("PRelu", [name, g.weight(shape[0], *[1] * (len(shape) - 1))], shape)


OPERATORS = [simple, simple, conv, conv, pool, pool, norm, resize, transpose, transpose, matmul, products, flatten, gemm,
             join, join, cut, reduction, reduction, softmax, with_numbers, both, parts, prelu]  # fmt: skip


def fault_of(seed):
    """Returns what is wrong with the graph of a seed, "" if nothing is; whether it was refused; and the text of a part."""
    graph = Graph(seed)
    if not graph.nodes:
        return "", False, ""
    fault, refused = _compare(graph, graph.model(), seed)
    if not fault:
        return "", refused, ""
    for last in range(len(graph.nodes)):
        model = graph.model(last)
        smaller, _ = _compare(graph, model, seed)
        if smaller:
            return smaller, False, onnx.printer.to_text(model)
    return fault, False, onnx.printer.to_text(graph.model())


def _compare(graph, model, seed):
    random = np.random.default_rng([seed, 78])
    feeds = {name: random.normal(size=(SAMPLES, *graph.shapes[name])).astype(np.float32) for name in graph.inputs}
    file = model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, options)
    try:
        wanted = session.run(None, {each.name: feeds[each.name] for each in session.get_inputs()})
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail:  # it moves a Transpose behind a Resize, which it refuses then
        return "", True
    try:
        loaded = tenon.onnx.load(file, channels_first=bool(seed % 2))
    except tenon.error.UnsupportedError:
        return "", True
    kinds = {name: kind.shape for each in loaded.outputs for name, kind in each.data_types.items()}
    given = {name: turned(feeds[name], shape) for name, shape in kinds.items()}
    for name, value, found in zip(
        (each.name for each in model.graph.output), wanted, tenon.infer(loaded.outputs, loaded, given), strict=True
    ):
        other = in_order(value, found)
        if other.shape != value.shape:
            return f"{name}: shape {found.shape}; expected {value.shape}", False
        apart = float(np.abs(other - value).max(initial=0))
        if not apart <= 1e-4 * max(1.0, float(np.abs(value).max(initial=0))):
            return f"{name}: off by {apart:.3g} of {np.abs(value).max():.3g}", False
    return "", False
