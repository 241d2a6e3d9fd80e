"""Writers of layers on vectors, element by element, and of shapes. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tenon.onnx._emit import Emit, Item, Writer, Written
from tenon.onnx._values import Array, Refusal, plain


def _unary(op: str, **renamed: str) -> Writer:
    """Returns the writer of a function of one element. renamed: {attribute of the operator: that of the layer}."""

    def write(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
        given = {name: float(item.attributes[own]) for name, own in renamed.items()}
        return inputs[0].like(emit.node(op, [_name(inputs[0])], item.name, **given))

    return write


def _name(value: Written) -> str:
    if value.numbers is not None:
        raise Refusal("reads a constant, which only arithmetic can")
    return value.name


def _chain(*steps: tuple[str, Any]) -> Callable[[Emit, Item, Sequence[Written]], Written]:
    """Returns the writer of operators one after the other. A step has an operator and its second operand: a number, "x"
    for the input itself, or None."""

    def write(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
        name = first = _name(inputs[0])
        for number, (op, operand) in enumerate(steps):
            step = item.name if number == len(steps) - 1 else f"{item.name}.{number}"
            more = [] if operand is None else [first if operand == "x" else emit.numbers(operand, f"{step}.{op}")]
            name = emit.node(op, [name, *more], step)
        return inputs[0].like(name)

    return write


def _gelu(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    if item.attributes["approximation"] == "none":
        exact = _chain(("Mul", math.sqrt(0.5)), ("Erf", None), ("Add", 1), ("Mul", "x"), ("Mul", 0.5))
        return exact(emit, item, inputs)
    root = math.sqrt(2 / math.pi)
    # tanh(root (x + 0.044715 x^3)) = tanh(x (root + root 0.044715 x^2))
    steps = [
        ("Mul", "x"),
        ("Mul", root * 0.044715),
        ("Add", root),
        ("Mul", "x"),
        ("Tanh", None),
        ("Add", 1),
        ("Mul", "x"),
    ]
    return _chain(*steps, ("Mul", 0.5))(emit, item, inputs)


def _clip(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    bounds = [emit.numbers(item.attributes[name], f"{item.name}.{name}") if name in item.attributes else ""
              for name in ("low", "high")]  # fmt: skip
    return inputs[0].like(emit.node("Clip", [_name(inputs[0]), *bounds], item.name))


def _bounded(low: float, high: float) -> Writer:
    def write(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
        return _clip(emit, replace(item, attributes={"low": low, "high": high}), inputs)

    return write


def _power(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    return _chain(("Pow", item.attributes["exponent"]))(emit, item, inputs)


def _scale_shift(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    value = inputs[0]
    if not item.attributes["learnable"]:
        return _chain(("Mul", item.attributes["scale"]), ("Add", item.attributes["shift"]))(emit, item, inputs)
    value = emit.unflattened(value)
    names = [
        emit.numbers(_by_channel(value, item.parameter(suffix)), f"{item.name}.{suffix}")
        for suffix in ("scale", "shift")
    ]
    scaled = emit.node("Mul", [_name(value), names[0]], f"{item.name}.scaled")
    return value.like(emit.node("Add", [scaled, names[1]], item.name))


def _by_channel(value: Written, numbers: Array) -> Array:
    """Returns numbers of the layer's last dimension in the dimensions of the value."""
    shape = [1] * len(value.order)
    shape[value.axis(-1)] = -1
    return numbers.reshape(shape)


def _prelu(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    value = emit.unflattened(inputs[0])
    slope = item.parameter("slope")
    shaped = slope.reshape(-1) if slope.size == 1 else _by_channel(value, slope)[0]
    return value.like(emit.node("PRelu", [_name(value), emit.numbers(shaped, f"{item.name}.slope")], item.name))


def _constant(suffix: str) -> Writer:
    def write(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
        given = item.parameters.get(suffix)
        numbers = np.asarray(item.attributes["value"] if given is None else given, np.float32)
        shaped = np.broadcast_to(numbers, item.sizes) if numbers.size == 1 else numbers.reshape(item.sizes)
        return Written(item.name, plain(1 + len(item.sizes)), item.sizes, numbers=shaped)

    return write


def _arithmetic(op: str) -> Writer:
    def write(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
        operands, value = emit.together(item, inputs)
        name = operands[0]
        for number, operand in enumerate(operands[1:], 1):
            step = item.name if number == len(operands) - 1 else f"{item.name}.{number}"
            name = emit.node(op, [name, operand], step)
        return value.like(name)

    return write


def fc(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    """Writes fc, and softmax and others with a size: Gemm on flattened values, MatMul along the last dimension."""
    axis = item.attributes.get("axis", 1)
    rank = len(inputs[0].dims) + 1
    if axis not in (1, -1, rank - 1):
        raise Refusal(f"axis is {axis}; 1 and the last one have operators")
    along = axis != 1 and rank > 2
    size, name = int(item.attributes["size"]), ""
    for number, value in enumerate(inputs):
        suffix = "weight" if number == 0 else f"weight_{number}"
        weight = item.parameter(suffix)
        own = f"{item.name}.{number}" if len(inputs) > 1 else item.name
        if along:
            value = emit.plain(value)
            made = emit.node("MatMul", [_name(value), emit.numbers(weight, f"{item.name}.{suffix}")], f"{own}.product")
        else:
            columns, order = emit.columns(value)
            operands = [columns, emit.numbers(weight[order], f"{item.name}.{suffix}")]
            if number == 0 and "bias" in item.parameters:
                operands.append(emit.numbers(item.parameter("bias"), f"{item.name}.bias"))
            made = emit.node("Gemm", operands, own)
        name = made if number == 0 else emit.node("Add", [name, made], f"{item.name}.sum")
    if along and "bias" in item.parameters:
        name = emit.node("Add", [name, emit.numbers(item.parameter("bias"), f"{item.name}.bias")], item.name)
    sizes = (*inputs[0].dims[:-1], size) if along else (size,)
    return Written(name, plain(1 + len(sizes)), sizes)


def _softmax(op: str) -> Writer:
    def write(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
        value = inputs[0]
        if "size" in item.attributes:
            value = fc(emit, replace(item, name=f"{item.name}.score"), inputs)
        value = emit.unflattened(value)
        return value.like(emit.node(op, [_name(value)], item.name, axis=value.axis(item.attributes.get("axis", -1))))

    return write


def _same(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    return inputs[0]


def _reshape(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    value, sizes = inputs[0], item.sizes
    if sizes == value.dims:
        return value
    if len(sizes) == 1:
        return replace(value, flat=True)
    if value.flat and sizes == value.sizes:
        return replace(value, flat=False)
    made = emit.plain(value)
    shape = emit.numbers([0, *sizes], f"{item.name}.shape", np.int64)
    return Written(emit.node("Reshape", [made.name, shape], item.name), plain(1 + len(sizes)), sizes)


def _transpose(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    value, axes = emit.unflattened(inputs[0]), list(item.attributes["axes"])
    # Dimension i of the output is dimension axes[i] of the input: the value stays, its dimensions get other numbers.
    return replace(value, order=tuple(axes.index(axis) for axis in value.order),
                   sizes=tuple(value.sizes[axis - 1] for axis in axes[1:]))  # fmt: skip


def _concat(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    values = [emit.unflattened(emit.many(value)) for value in inputs]
    order = next((value.order for value, given in zip(values, inputs, strict=True) if given.numbers is None), values[0].order)
    names = [emit.ordered(value, order).name for value in values]
    axis = order.index(item.attributes["axis"] % len(order))
    return Written(emit.node("Concat", names, item.name, axis=axis), order, item.sizes)


def _slice(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    value = emit.unflattened(inputs[0])
    start, length = item.attributes["start"], item.attributes["length"]
    numbers = {"start": start, "end": start + length, "axis": value.axis(item.attributes["axis"])}
    names = [emit.numbers([number], f"{item.name}.{name}", np.int64) for name, number in numbers.items()]
    return replace(value, name=emit.node("Slice", [_name(value), *names], item.name), sizes=item.sizes)


def _pad(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    value = emit.unflattened(inputs[0])
    mode, rank = item.attributes["mode"], len(value.order)
    if mode not in ("constant", "edge", "reflect"):
        raise Refusal(f"mode {mode!r} has no operator")
    pads = [0] * (2 * rank)
    axes = item.attributes.get("axes", range(1, rank))
    for axis, before, after in zip(axes, item.attributes["before"], item.attributes["after"], strict=True):
        pads[value.axis(axis)], pads[rank + value.axis(axis)] = before, after
    names = [
        emit.numbers(pads, f"{item.name}.pads", np.int64),
        emit.numbers(item.attributes["value"], f"{item.name}.value"),
    ]
    return replace(value, name=emit.node("Pad", [_name(value), *names], item.name, mode=mode), sizes=item.sizes)


def _reduction(op: str) -> Writer:
    def write(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
        value = emit.unflattened(inputs[0])
        rank = len(value.order)
        if "axis" in item.attributes:
            given = [item.attributes["axis"]]
        else:
            given = list(item.attributes.get("axes", range(1, rank)))
        keep = bool(item.attributes.get("keep_dimensions", False))
        axes = sorted(value.axis(axis) for axis in given)
        if op == "ReduceSum":
            operand = emit.numbers(axes, f"{item.name}.axes", np.int64)
            name = emit.node(op, [_name(value), operand], item.name, keepdims=int(keep))
        else:
            name = emit.node(op, [_name(value)], item.name, axes=axes, keepdims=int(keep))
        kept = [axis for place, axis in enumerate(value.order) if keep or place not in axes]
        numbers = {axis: number for number, axis in enumerate(sorted(kept))}
        return Written(name, tuple(numbers[axis] for axis in kept), item.sizes)

    return write


def _norm(emit: Emit, item: Item, inputs: Sequence[Written]) -> Any:
    return _reduction("ReduceL1" if item.attributes["order"] == 1 else "ReduceL2")(emit, item, inputs)


WRITERS: dict[str, Writer] = {
    **{op.lower(): _unary(op) for op in ("Relu", "Sigmoid", "Tanh", "Softplus", "Softsign", "Selu", "Exp", "Log", "Sqrt",
                                         "Abs", "Reciprocal", "Erf", "Sin", "Cos", "Floor", "Round", "Sign")},
    "leaky_relu": _unary("LeakyRelu", alpha="slope"), "elu": _unary("Elu", alpha="alpha"),
    "celu": _unary("Celu", alpha="alpha"), "hard_swish": _unary("HardSwish"),
    "hard_sigmoid": _unary("HardSigmoid", alpha="slope", beta="shift"),
    "silu": _chain(("Sigmoid", None), ("Mul", "x")), "mish": _chain(("Softplus", None), ("Tanh", None), ("Mul", "x")),
    "square": _chain(("Mul", "x")), "gelu": _gelu, "clip": _clip, "relu6": _bounded(0, 6), "hard_tanh": _bounded(-1, 1),
    "power": _power, "scale_shift": _scale_shift, "prelu": _prelu,
    "parameter": _constant("value"), "constant": _constant("value"),
    "add": _arithmetic("Add"), "sub": _arithmetic("Sub"), "mul": _arithmetic("Mul"), "div": _arithmetic("Div"),
    "maximum": _arithmetic("Max"), "minimum": _arithmetic("Min"), "pow": _arithmetic("Pow"),
    "fc": fc, "softmax": _softmax("Softmax"), "log_softmax": _softmax("LogSoftmax"),
    "dropout": _same, "spatial_dropout": _same,
    "reshape": _reshape, "transpose": _transpose, "concat": _concat, "slice": _slice, "pad": _pad,
    "mean": _reduction("ReduceMean"), "sum": _reduction("ReduceSum"), "max": _reduction("ReduceMax"),
    "min": _reduction("ReduceMin"), "product": _reduction("ReduceProd"), "log_sum_exp": _reduction("ReduceLogSumExp"),
    "norm": _norm, "squeeze": _reshape, "unsqueeze": _reshape,
}  # fmt: skip
