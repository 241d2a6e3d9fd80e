"""Writers of the steps of recurrences. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenon.onnx._emit import Emit, Item, Writer, Written
from tenon.onnx._values import Array, plain
from tenon.onnx._write_formula import Formula


def _row(emit: Emit, value: Written) -> str:
    return emit.plain(emit.real(value)).name


def _product(emit: Emit, item: Item, state: str, weight: Array, suffix: str) -> str:
    return emit.node("MatMul", [state, emit.shared(weight, f"{item.name}.{suffix}")], f"{item.name}.state")


def _parts(emit: Emit, item: Item, name: str, names: str, size: int) -> dict[str, str]:
    """Returns gates by letters."""
    lengths = emit.numbers([size] * len(names), f"{item.name}.sizes", np.int64)
    return dict(zip(names, emit.nodes_of("Split", [name, lengths], f"{item.name}.gates", len(names), axis=1), strict=True))


def _lstm_step(emit: Emit, item: Item, inputs: Sequence[Written]) -> list[Written]:
    size, (gates, cell, *state) = item.sizes[0], [_row(emit, each) for each in inputs]
    if state:
        own = _product(emit, item, state[0], item.parameter("recurrent_weight"), "recurrent_weight")
        gates = emit.node("Add", [gates, own], f"{item.name}.sum")
    names = {**_parts(emit, item, gates, "ifgo", size), "c": cell}
    seen = dict.fromkeys("ifo", "")
    if "peepholes" in item.parameters:
        for letter, numbers in zip("ifo", item.parameters["peepholes"], strict=True):
            names[f"p{letter}"] = emit.shared(numbers, f"{item.name}.peephole")
            seen[letter] = f" + p{letter} * {'n' if letter == 'o' else 'c'}"
    shift = f" + ({float(item.attributes['forget_bias'])})"
    formula = Formula(emit, names, item.name)
    names["n"] = formula.write(f"sigmoid(f{seen['f']}{shift}) * c + sigmoid(i{seen['i']}) * tanh(g)")
    output = Formula(emit, names, item.name).write(f"sigmoid(o{seen['o']}) * tanh(n)")
    return [Written(name, plain(2), (size,)) for name in (output, names["n"])]


def _gru_step(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    size, (gates, state) = item.sizes[0], [_row(emit, each) for each in inputs]
    weight = item.parameter("recurrent_weight")
    own = _product(emit, item, state, weight[:, : 2 * size], "recurrent_weight")
    names = {**_parts(emit, item, gates, "urc", size), **_parts(emit, item, own, "ab", size), "h": state}
    names["g"] = Formula(emit, names, item.name).write("sigmoid(r + b) * h")
    names["d"] = _product(emit, item, names["g"], weight[:, 2 * size :], "candidate_weight")
    return Written(
        Formula(emit, names, item.name).write("v = sigmoid(u + a); (1 - v) * h + v * tanh(c + d)"), plain(2), (size,)
    )


def _rnn_step(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    gates, state = (_row(emit, each) for each in inputs)
    own = _product(emit, item, state, item.parameter("recurrent_weight"), "recurrent_weight")
    formula = Formula(emit, {"x": gates, "y": own}, item.name)
    return Written(formula.write(f"{item.attributes['activation']}(x + y)"), plain(2), item.sizes)


WRITERS: dict[str, Writer] = {"gru_step": _gru_step, "lstm_step": _lstm_step, "rnn_step": _rnn_step}
