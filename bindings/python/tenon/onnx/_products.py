"""Products of tensors. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import string
from collections.abc import Sequence

from tenon.onnx._build import Build, Made, Operator
from tenon.onnx._graph import Node
from tenon.onnx._values import Refusal, Value, plain


def _einsum(build: Build, node: Node) -> Made:
    terms, result = _letters(node.get("equation"), [_rank(build, node, number) for number in range(len(node.inputs))])
    places = [number for number in range(len(terms)) if not build.is_constant(node, number)]
    values = {number: build.as_plain(node, build.unflattened(node, build.value(node, number))) for number in places}
    letters = {terms[number][value.samples] for number, value in values.items()}
    if len(letters) != 1 or result.count(next(iter(letters))) != 1:
        raise Refusal(f"equation {node.get('equation')!r}: the samples must be one letter of all values and of the output")
    [samples] = letters
    like, inputs, shown = values[places[0]], [], []
    for number, term in enumerate(terms):
        if term.count(samples) > 1 or len(set(term)) != len(term):
            raise Refusal(f"equation {node.get('equation')!r}: a letter occurs twice in {term!r}")
        if number in values:
            inputs.append(values[number].layer)
        else:
            numbers = build.constant(node, number, "operand")
            if samples in term:
                if numbers.shape[term.index(samples)] != 1:
                    raise Refusal(f"numbers of shape {list(numbers.shape)} differ between samples")
                numbers = numbers.squeeze(term.index(samples))
            inputs.append(build.fixed(node, like.layer, numbers, node.inputs[number]))
        shown.append(term.replace(samples, ""))
    layer = build.layer(node, "einsum", inputs, {"equation": f"{','.join(shown)}->{result.replace(samples, '')}"})
    return Value(layer, plain(len(result)), samples=result.index(samples))


def _rank(build: Build, node: Node, number: int) -> int:
    return build.constant(node, number, "operand").ndim if build.is_constant(node, number) else build.value(node, number).rank


def _letters(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Returns the letters of the inputs and of the output, with letters in place of an ellipsis."""
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise Refusal(f"equation {equation!r} has {len(terms)} terms for {len(ranks)} inputs")
    free = [letter for letter in string.ascii_lowercase + string.ascii_uppercase if letter not in equation]
    hidden = [rank - len(term.replace("...", "")) if "..." in term else 0 for term, rank in zip(terms, ranks, strict=True)]
    if min(hidden, default=0) < 0 or any(len(term.replace("...", "")) + count != rank
                                         for term, count, rank in zip(terms, hidden, ranks, strict=True)):  # fmt: skip
        raise Refusal(f"equation {equation!r} does not fit inputs of {list(ranks)} dimensions")
    letters = "".join(free[: max(hidden, default=0)])
    terms = [term.replace("...", letters[len(letters) - count :]) for term, count in zip(terms, hidden, strict=True)]
    if not arrow:
        joined = "".join(terms)
        once = sorted(letter for letter in set(joined) if joined.count(letter) == 1 and letter not in letters)
        result = "..." + "".join(once)
    return terms, result.replace("...", letters)


OPERATORS: dict[str, Operator] = {"Einsum": _einsum}
