"""Layers from functions of one element: recorded once, then fused, differentiated and as fast as layers of plugins.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tenon import math
from tenon._model.layer import Layer, as_layer
from tenon.math import Expression


@dataclass(frozen=True)
class Learned:
    """A number of a formula that is learned: its first value, and whether each element has its own."""

    first: float
    each: bool

    def layer(self, like: Layer, name: str) -> Layer:
        """Returns the number for all elements of a layer."""
        attributes: dict[str, Any] = {"param.value.init": "constant", "param.value.init_value": float(self.first)}
        return Layer("parameter", [like], attributes if self.each else {**attributes, "shape": []}, name)


def learned(first: float = 0.0, *, each: bool = False) -> Any:
    """A number of a formula that is learned, as the default of an argument or in a call.

        @tenon.formula
        def prelu(x, slope=tenon.learned(0.25)):
            return where(x > 0, x, slope * x)

        hidden = prelu(tenon.layer.fc(pixel, size=128), name="prelu")  # has the parameter "prelu.slope.value"

    first: its first value. each: one for each element of a sample of the first input, rather than one for all.
    """
    return Learned(first, each)


def formula(function: Callable[..., Any]) -> Callable[..., Layer]:
    """Makes a layer function of a function of numbers.

        @tenon.formula
        def mish(x):
            return x * tanh(log(1 + exp(x)))

        hidden = mish(tenon.layer.fc(pixel, size=128))

    Arguments without a default are inputs, layers whose shapes are broadcast to each other; those with a default are
    numbers of the formula: def swish(x, beta=1.0), or tenon.learned. The function is called once for each set of
    numbers, with expressions in place of the others; functions of tenon.math that the program has no other meaning for
    need no import. The layer is saved with models as its formula, the type "formula", which every program of Tenon can
    load.
    """
    parameters = inspect.signature(function).parameters.values()
    names = [each.name for each in parameters if each.default is inspect.Parameter.empty]
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters) or not names:
        raise TypeError(
            f"the formula {function.__name__} needs at least one argument without a default, and no * or **"
        )
    texts: dict[tuple[float | None, ...], str] = {}

    def text_of(numbers: dict[str, float | None]) -> str:
        """Returns the formula with these numbers; None stands for an expression."""
        key = tuple(numbers.values())
        if key not in texts:
            given = {each: Expression(each) if value is None else value for each, value in numbers.items()}
            result = _with_math(function)(**given)
            if not isinstance(result, Expression):
                result = Expression("{}", result)
            texts[key] = result.text()
        return texts[key]

    @functools.wraps(function)
    def make(*args: Any, name: str = "", **kwargs: Any) -> Layer:
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        first = as_layer(given[names[0]])
        inputs: dict[str, Layer] = {}
        numbers: dict[str, float | None] = {}
        for each, value in given.items():
            numbers[each] = None
            if each in names:
                inputs[each] = first if each == names[0] else as_layer(value)
            elif isinstance(value, Learned):
                inputs[each] = value.layer(first, f"{name}.{each}" if name else "")
            elif hasattr(value, "__float__"):
                numbers[each] = float(value)
            else:
                raise TypeError(f"{function.__name__}: {each} is a number of the formula, not {value!r}")
        return Layer("formula", list(inputs.values()), {"formula": text_of(numbers), "names": list(inputs)}, name)

    return make


def _with_math(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function with the names of tenon.math where its module has none of these names."""
    if not isinstance(function, types.FunctionType):
        return function
    known = {name: getattr(math, name) for name in math.__all__ if name != "Expression"}
    found = types.FunctionType(
        function.__code__, {**known, **function.__globals__}, function.__name__, function.__defaults__,
        function.__closure__,
    )  # fmt: skip
    found.__kwdefaults__ = function.__kwdefaults__
    return found
