"""LSTM, GRU and RNN: a layer for each step, which share their parameters. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tenon._model.layer import Layer
from tenon.onnx._build import Build, Made, Operator
from tenon.onnx._graph import Node
from tenon.onnx._values import Array, Refusal, Value, plain

_MOST_STEPS = 2048  # that the directions of a node take together
_ACTIVATIONS = {
    "Affine": ("{alpha} * {x} + {beta}", 1.0, 0.0), "Elu": ("where({x} < 0, {alpha} * expm1({x}), {x})", 1.0, 0.0),
    "HardSigmoid": ("clip({alpha} * {x} + {beta}, 0, 1)", 0.2, 0.5),
    "LeakyRelu": ("where({x} < 0, {alpha} * {x}, {x})", 0.01, 0.0),
    "Relu": ("relu({x})", 0.0, 0.0), "ScaledTanh": ("{alpha} * tanh({beta} * {x})", 1.0, 1.0),
    "Sigmoid": ("sigmoid({x})", 0.0, 0.0),
    "Softplus": ("softplus({x})", 0.0, 0.0), "Softsign": ("{x} / (1 + abs({x}))", 0.0, 0.0), "Tanh": ("tanh({x})", 0.0, 0.0),
    "ThresholdedRelu": ("where({x} > {alpha}, {x}, 0)", 1.0, 0.0),
}  # fmt: skip


@dataclass
class Cell:
    """One direction of a node. gates: those of a step, x W + b; states: what a step leaves, the output first."""

    build: Build
    node: Node
    title: str
    size: int
    activations: list[str]
    usual: bool
    recurrent: Array
    bias: Array | None  # of the state, where it is not that of the input
    peepholes: Array | None
    gates: list[Layer] = field(default_factory=list)

    def layer(self, type: str, inputs: Sequence[Layer], **attributes: object) -> Layer:
        """Returns a layer of a step, with the parameters of the direction."""
        return self.build.named(f"{self.title}.step", type, inputs, attributes)

    def shared(
        self, type: str, inputs: Sequence[Layer], name: str, values: dict[str, Array | None], **attributes: object
    ) -> Layer:
        """Returns a layer of a step whose parameters those of all steps are."""
        under = f"{self.title}.{name}"
        layer = self.layer(type, inputs, parameter_name=under, **attributes)
        self.build.set(layer, under, **values)
        return layer

    def formula(self, text: str, names: str, inputs: Sequence[Layer]) -> Layer:
        """Returns a formula of layers whose names are letters. F, G and H stand for the activations."""
        for letter, activation in zip("FGH", self.activations, strict=False):
            while f"{letter}(" in text:
                start = text.index(f"{letter}(")
                end = _closing(text, start + 1)
                text = f"{text[:start]}({activation.replace('{x}', f'({text[start + 2 : end]})')}){text[end + 1 :]}"
        return self.layer("formula", inputs, formula=text, names=list(names))

    def parts(self, layer: Layer, count: int) -> list[Layer]:
        """Returns the gates of a layer [samples, count * size]."""
        return [self.layer("slice", [layer], axis=1, start=i * self.size, length=self.size) for i in range(count)]

    def of_state(self, state: Layer, count: int) -> list[Layer]:
        """Returns state R + b, cut into gates."""
        values = {"weight": self.recurrent, "bias": self.bias}
        product = self.shared("fc", [state], "state", values, size=count * self.size, bias=self.bias is not None)
        return self.parts(product, count)


def _closing(text: str, start: int) -> int:
    depth = 0
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise ValueError(text)


def _lstm_step(cell: Cell, gates: Layer, states: list[Layer]) -> list[Layer]:
    state, memory = states
    if cell.usual:
        values = {"recurrent_weight": cell.recurrent, "peepholes": cell.peepholes}
        made = cell.shared("lstm_step", [gates, memory, state], "state", values, peepholes=cell.peepholes is not None)
        return [made, made.output(1)]
    if cell.peepholes is not None:
        raise Refusal("has peepholes beside activations that are not Sigmoid, Tanh, Tanh")
    given, own = cell.parts(gates, 4), cell.of_state(state, 4)
    parts = [*given[:3], *own[:3], memory]
    following = cell.formula("F(b + e) * m + F(a + d) * G(c + f)", "abcdefm", parts)
    return [cell.formula("F(a + b) * H(m)", "abm", [given[3], own[3], following]), following]


def _gru_step(cell: Cell, gates: Layer, states: list[Layer]) -> list[Layer]:
    [state] = states
    before = cell.bias is None
    if cell.usual and before:
        return [cell.shared("gru_step", [gates, state], "state", {"recurrent_weight": cell.recurrent})]
    if before:
        raise Refusal("activations other than Sigmoid, Tanh need linear_before_reset 1")
    parts = [*cell.parts(gates, 3), *cell.of_state(state, 3), state]
    return [cell.formula("z = F(a + d); (1 - z) * G(c + F(b + e) * f) + z * h", "abcdefh", parts)]


def _rnn_step(cell: Cell, gates: Layer, states: list[Layer]) -> list[Layer]:
    [state] = states
    if cell.usual:
        return [cell.shared("rnn_step", [gates, state], "state", {"recurrent_weight": cell.recurrent})]
    return [cell.formula("F(a + b)", "ab", [gates, *cell.of_state(state, 1)])]


@dataclass(frozen=True)
class Kind:
    """An operator: the gates of the layer by their places in the file, and which of them have the other sign in the layer
    of a step; its usual activations, and how many states a step leaves."""

    order: tuple[int, ...]
    negative: tuple[int, ...]
    usual: tuple[str, ...]
    states: int
    step: Callable[[Cell, Layer, list[Layer]], list[Layer]]


# The file has the gates i, o, f, c of LSTM and z, r, h of GRU, whose z is 1 - u.
_KINDS = {
    "LSTM": Kind((0, 2, 3, 1), (), ("Sigmoid", "Tanh", "Tanh"), 2, _lstm_step),
    "GRU": Kind((0, 1, 2), (0,), ("Sigmoid", "Tanh"), 1, _gru_step),
    "RNN": Kind((0,), (), ("Tanh",), 1, _rnn_step),
}


def _recurrence(build: Build, node: Node) -> Made:
    kind, first = _KINDS[node.op], bool(node.get("layout", 0))
    value = build.unflattened(node, build.value(node))
    if value.rank != 3 or value.samples != (0 if first else 1):
        raise Refusal(f"reads {value.text}; [steps, samples, features] is understood, or with layout 1 the samples first")
    direction = node.get("direction", "forward")
    turns = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(direction)
    if turns is None:
        raise Refusal(f"direction is {direction!r}; forward, reverse or bidirectional is understood")
    node.require("clip", 0.0, 0.0)
    node.require("input_forget", 0, 0)
    steps = value.dims[0]
    if steps * len(turns) > _MOST_STEPS:
        raise Refusal(f"has {steps * len(turns)} steps; at most {_MOST_STEPS} are understood")
    lengths, rows = _lengths(build, node, steps, value), build.plain(node, value)
    outputs, last = [], []
    for number, reverse in enumerate(turns):
        cell = _cell(build, node, kind, rows, number, len(turns))
        states = [_initial(build, node, value, rows, cell.size, 5 + i, number) for i in range(kind.states)]
        made = _run(cell, kind, states, reverse, lengths)
        outputs.append([each[0] for each in made])
        last.append(made[0 if reverse else -1])
    return _results(build, node, outputs, last, first)


def _lengths(build: Build, node: Node, steps: int, value: Value) -> Layer | None:
    if not node.has(4):
        return None
    if build.is_constant(node, 4):
        lengths = build.constant(node, 4, "lengths")
        if (lengths != steps).any():
            raise Refusal(
                f"sequence_lens are {lengths.ravel()[:8].tolist()} of {steps} steps; all of them, or a value, are understood"
            )
        return None
    own = build.plain(node, build.value(node, 4))
    return build.layer(node, "reshape", [own], {"shape": [1]}, ".lengths")


def _cell(build: Build, node: Node, kind: Kind, rows: Layer, number: int, count: int) -> Cell:
    weight, recurrent = (build.constant(node, i, what)[number] for i, what in ((1, "weight"), (2, "recurrent weight")))
    size, gates = recurrent.shape[-1], len(kind.order)
    if int(node.get("hidden_size", size)) != size or recurrent.shape != (gates * size, size) or weight.shape[0] != gates * size:
        raise Refusal(
            f"the weights have shapes {list(weight.shape)} and {list(recurrent.shape)}, hidden_size {node.get('hidden_size')}"
        )
    bias = build.optional(node, 3, "bias")
    both = np.zeros(2 * gates * size, np.float32) if bias is None else bias[number]
    after = bool(node.get("linear_before_reset", 0)) and node.op == "GRU"
    activations, usual = _activations(node, kind, number, count)
    kind = kind if usual and not after else replace(kind, negative=())
    given, own = _gates(kind, both[: gates * size]), _gates(kind, both[gates * size :])
    peepholes = build.optional(node, 7, "peepholes") if node.op == "LSTM" else None
    # The file has the peepholes of i, o and f, the layer those of i, f and o.
    sorted_peepholes = None if peepholes is None else peepholes[number].reshape(3, size)[[0, 2, 1]]
    title = node.title + (f".{('forward', 'backward')[number]}" if count == 2 else "")
    cell = Cell(
        build, node, title, size, activations, usual, _gates(kind, recurrent).T, own if after else None, sorted_peepholes
    )
    columns = {"size": gates * size, "axis": -1, "bias": True}
    product = build.named(f"{title}.input", "fc", [rows], columns)
    build.set(product, weight=_gates(kind, weight).T, bias=given if after else given + own)
    steps = int(rows.shape[1])
    apart = build.named(f"{title}.rows", "unstack", [product], {"axis": 1})
    cell.gates = [apart.output(step) for step in range(steps)] if steps > 1 else [apart]
    return cell


def _gates(kind: Kind, numbers: Array) -> Array:
    """Returns numbers of gates in the order and with the signs of the layer."""
    size = len(numbers) // len(kind.order)
    parts = [numbers[place * size : (place + 1) * size] * (-1 if place in kind.negative else 1) for place in kind.order]
    return np.concatenate(parts)


def _activations(node: Node, kind: Kind, number: int, count: int) -> tuple[list[str], bool]:
    each = len(kind.usual)
    names = [name.decode() if isinstance(name, bytes) else name for name in node.get("activations") or kind.usual * count]
    alphas, betas = list(node.get("activation_alpha") or []), list(node.get("activation_beta") or [])
    if len(names) != each * count:
        raise Refusal(f"activations are {names}; {each * count} are needed")
    by_lower = {name.lower(): name for name in _ACTIVATIONS}
    texts = []
    for place, name in enumerate(names):
        if name.lower() not in by_lower:
            raise Refusal(f"activation {name!r}; {', '.join(_ACTIVATIONS)} are understood")
        text, alpha, beta = _ACTIVATIONS[by_lower[name.lower()]]
        alpha, beta = (given[place] if place < len(given) else own for given, own in ((alphas, alpha), (betas, beta)))
        texts.append(text.replace("{alpha}", repr(float(alpha))).replace("{beta}", repr(float(beta))))
    own = [name.lower() for name in names[number * each : (number + 1) * each]]
    return texts[number * each : (number + 1) * each], own == [name.lower() for name in kind.usual]


def _initial(build: Build, node: Node, value: Value, rows: Layer, size: int, place: int, number: int) -> Layer:
    """Returns the state before the first step, [samples, size], of a direction."""
    title = f"{node.title}.initial"
    if not node.has(place) or (build.is_constant(node, place) and not build.constant(node, place, "state").any()):
        return build.named(title, "constant", [rows], {"shape": [size], "value": [0.0]})
    like = Value(rows, plain(3), samples=value.samples)
    states = build.unflattened(node, build.operand(node, place, like))
    if states.rank != 3 or states.samples != value.samples:
        raise Refusal(f"its initial state, input {place}, is {states.text}")
    layer = build.named(f"{title}s", "slice", [build.plain(node, states)], {"axis": 1, "start": number, "length": 1})
    return build.named(title, "reshape", [layer], {"shape": [size]})


def _run(cell: Cell, kind: Kind, states: list[Layer], reverse: bool, lengths: Layer | None) -> list[list[Layer]]:
    """Returns the output, the state and what else is kept after each step, by place. After the end of a sequence states
    stay, and the output is 0."""
    results: list[list[Layer]] = [[] for _ in cell.gates]
    places = range(len(cell.gates))
    for place in reversed(places) if reverse else places:
        following = kind.step(cell, cell.gates[place], states)
        output = following[0]
        if lengths is not None:
            names = ["n", "a", "b"]
            following = [cell.layer("formula", [lengths, new, old], formula=f"where(n > {place}, a, b)", names=names)
                         for new, old in zip(following, states, strict=True)]  # fmt: skip
            output = cell.layer("formula", [lengths, output], formula=f"where(n > {place}, a, 0)", names=names[:2])
        states = following
        results[place] = [output, *states]
    return results


def _results(build: Build, node: Node, outputs: list[list[Layer]], last: list[list[Layer]], first: bool) -> list[Value]:
    """Returns Y and the last states. With layout 1 the samples are the first dimension."""
    values = []
    stacked = [build.layer(node, "stack", each, {"axis": 1}, ".steps") for each in outputs]
    both = build.layer(node, "stack", stacked, {"axis": 2})  # [samples, steps, directions, size]
    values.append(Value(both, plain(4), samples=0 if first else 2))
    for place in range(1, len(last[0])):
        states = build.layer(node, "stack", [each[place] for each in last], {"axis": 1}, ".last")
        values.append(Value(states, plain(3), samples=0 if first else 1))
    return values


OPERATORS: dict[str, Operator] = dict.fromkeys(_KINDS, _recurrence)
