"""Layers from functions of one element: recorded once, then fused, differentiated and as fast as layers of plugins.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from tenon import math
from tenon._layer import Layer, as_layer
from tenon.math import Expression


def formula(function: Callable[..., Any]) -> Callable[..., Layer]:
    """Makes a layer function of a function of numbers.

        @tenon.formula
        def mish(x):
            return x * tanh(log(1 + exp(x)))

        hidden = mish(tenon.layer.fc(pixel, size=128))

    Arguments without a default are inputs, layers whose shapes are broadcast to each other; those with a default are
    numbers of the formula: def swish(x, beta=1.0). The function is called once for each set of numbers, with expressions
    in place of the inputs; functions of tenon.math that the program has no other meaning for need no import. The layer is
    saved with models as its formula, the type "formula", which every program of Tenon can load.
    """
    parameters = inspect.signature(function).parameters.values()
    names = [each.name for each in parameters if each.default is inspect.Parameter.empty]
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters) or not names:
        raise TypeError(f"the formula {function.__name__} needs at least one argument without a default, and no * or **")
    numbers = [each.name for each in parameters if each.default is not inspect.Parameter.empty]
    texts: dict[tuple[float, ...], str] = {}

    def text_of(given: dict[str, Any]) -> str:
        """Returns the formula with these numbers."""
        key = tuple(float(given[name]) for name in numbers)
        if key not in texts:
            result = _with_math(function)(**{name: Expression(name) for name in names}, **dict(zip(numbers, key)))
            if not isinstance(result, Expression):
                result = Expression("{}", result)
            texts[key] = result.text()
        return texts[key]

    @functools.wraps(function)
    def make(*args: Any, name: str = "", **kwargs: Any) -> Layer:
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        for each in numbers:
            if not hasattr(given[each], "__float__"):
                raise TypeError(f"{function.__name__}: {each} is a number of the formula, not {given[each]!r}")
        inputs = [as_layer(given[each]) for each in names]
        return Layer("formula", inputs, {"formula": text_of(given), "names": names}, name)

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
