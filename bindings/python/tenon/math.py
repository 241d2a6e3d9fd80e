"""Functions of formulas (tenon.formula): of one element, recorded as part of a program.

They also take numbers. Operators are + - * / ** and < <= > >= == !=; conditions are joined by & | ~.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any, Union

import numpy as np

from tenon import error

__all__ = [
    "Expression", "abs", "clip", "cos", "erf", "exp", "expm1", "floor", "is_finite", "log", "log1p", "maximum", "minimum",
    "power", "reciprocal", "relu", "round", "sigmoid", "sign", "sin", "softplus", "sqrt", "square", "stop", "tanh",
    "where",
]  # fmt: skip

Operand = Union["Expression", float]


class Expression:
    """A value of a formula that is being recorded."""

    __slots__ = ("operands", "template")

    def __init__(self, template: str, *operands: Operand) -> None:
        self.template = template
        self.operands = tuple(_operand(each) for each in operands)

    def __add__(self, other: Operand) -> Expression:
        return Expression("({} + {})", self, other)

    def __radd__(self, other: float) -> Expression:
        return Expression("({} + {})", other, self)

    def __sub__(self, other: Operand) -> Expression:
        return Expression("({} - {})", self, other)

    def __rsub__(self, other: float) -> Expression:
        return Expression("({} - {})", other, self)

    def __mul__(self, other: Operand) -> Expression:
        return Expression("({} * {})", self, other)

    def __rmul__(self, other: float) -> Expression:
        return Expression("({} * {})", other, self)

    def __truediv__(self, other: Operand) -> Expression:
        return Expression("({} / {})", self, other)

    def __rtruediv__(self, other: float) -> Expression:
        return Expression("({} / {})", other, self)

    def __pow__(self, other: Operand) -> Expression:
        return Expression("({} ** {})", self, other)

    def __rpow__(self, other: float) -> Expression:
        return Expression("({} ** {})", other, self)

    def __neg__(self) -> Expression:
        return Expression("(-{})", self)

    def __pos__(self) -> Expression:
        return self

    def __abs__(self) -> Expression:
        return Expression("abs({})", self)

    def __lt__(self, other: Operand) -> Expression:
        return Expression("({} < {})", self, other)

    def __le__(self, other: Operand) -> Expression:
        return Expression("({} <= {})", self, other)

    def __gt__(self, other: Operand) -> Expression:
        return Expression("({} > {})", self, other)

    def __ge__(self, other: Operand) -> Expression:
        return Expression("({} >= {})", self, other)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return Expression("({} == {})", self, other)  # type: ignore[arg-type]

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return Expression("({} != {})", self, other)  # type: ignore[arg-type]

    __hash__ = object.__hash__

    def __and__(self, other: Operand) -> Expression:
        return Expression("({} and {})", self, other)

    def __or__(self, other: Operand) -> Expression:
        return Expression("({} or {})", self, other)

    def __invert__(self) -> Expression:
        return Expression("(not {})", self)

    def __bool__(self) -> bool:
        raise TypeError("a formula is recorded without values, so that it cannot branch: use tenon.math.where, & | ~")

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        name = _UFUNCS.get(function.__name__)
        if method != "__call__" or name is None or options:
            return NotImplemented
        return Expression(name, *inputs)

    def text(self) -> str:
        """Returns the formula as text, in which values that are used several times have names."""
        order: list[Expression] = []
        uses: dict[int, int] = {}
        stack: list[tuple[Expression, bool]] = [(self, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                order.append(node)
                continue
            uses[id(node)] = uses.get(id(node), 0) + 1
            if uses[id(node)] == 1:
                stack.append((node, True))
                stack.extend((each, False) for each in node.operands if isinstance(each, Expression))
        texts: dict[int, str] = {}
        parts: list[str] = []
        for node in order:
            operands = [texts[id(each)] if isinstance(each, Expression) else repr(each) for each in node.operands]
            text = node.template.format(*operands)
            # Names keep the text short, and the formula's nesting flat.
            if node.operands and (uses[id(node)] > 1 or len(text) > 200) and node is not self:
                parts.append(f"_{len(parts)} = {text}; ")
                text = f"_{len(parts) - 1}"
            texts[id(node)] = text
        return "".join(parts) + texts[id(self)]


def _operand(value: Any) -> Operand:
    if isinstance(value, Expression):
        return value
    if not hasattr(value, "__float__"):
        raise TypeError(f"a formula has numbers and its arguments, not {type(value).__name__}")
    number = float(value)
    if not np.isfinite(number):
        raise error.InvalidError(f"a formula cannot hold the number {number}")
    return number


_UFUNCS = {
    "add": "({} + {})", "subtract": "({} - {})", "multiply": "({} * {})", "true_divide": "({} / {})",
    "divide": "({} / {})", "power": "({} ** {})", "negative": "(-{})", "less": "({} < {})",
    "less_equal": "({} <= {})", "greater": "({} > {})", "greater_equal": "({} >= {})", "equal": "({} == {})",
    "not_equal": "({} != {})", "logical_and": "({} and {})", "logical_or": "({} or {})", "logical_not": "(not {})",
    "maximum": "max({}, {})", "minimum": "min({}, {})", "absolute": "abs({})", "rint": "round({})",
    **{name: name + "({})" for name in ("sqrt", "exp", "expm1", "log", "log1p", "tanh", "sin", "cos", "floor", "sign",
                                        "square", "reciprocal")},
}  # fmt: skip


def abs(x: Operand) -> Expression:
    """|x|"""
    return Expression("abs({})", x)


def sqrt(x: Operand) -> Expression:
    """The square root."""
    return Expression("sqrt({})", x)


def exp(x: Operand) -> Expression:
    """e to the x."""
    return Expression("exp({})", x)


def expm1(x: Operand) -> Expression:
    """exp(x) - 1, exact near 0."""
    return Expression("expm1({})", x)


def log(x: Operand) -> Expression:
    """The natural logarithm."""
    return Expression("log({})", x)


def log1p(x: Operand) -> Expression:
    """log(1 + x), exact near 0."""
    return Expression("log1p({})", x)


def tanh(x: Operand) -> Expression:
    """The hyperbolic tangent."""
    return Expression("tanh({})", x)


def erf(x: Operand) -> Expression:
    """The error function."""
    return Expression("erf({})", x)


def sin(x: Operand) -> Expression:
    """The sine, of radians."""
    return Expression("sin({})", x)


def cos(x: Operand) -> Expression:
    """The cosine, of radians."""
    return Expression("cos({})", x)


def floor(x: Operand) -> Expression:
    """The largest whole number that is not above x; derivative 0."""
    return Expression("floor({})", x)


def round(x: Operand) -> Expression:
    """The nearest whole number, halves to the even one; derivative 0."""
    return Expression("round({})", x)


def sign(x: Operand) -> Expression:
    """-1, 0 or 1; derivative 0."""
    return Expression("sign({})", x)


def square(x: Operand) -> Expression:
    """x * x"""
    return Expression("square({})", x)


def reciprocal(x: Operand) -> Expression:
    """1 / x"""
    return Expression("reciprocal({})", x)


def relu(x: Operand) -> Expression:
    """max(x, 0)"""
    return Expression("relu({})", x)


def sigmoid(x: Operand) -> Expression:
    """1 / (1 + exp(-x))"""
    return Expression("sigmoid({})", x)


def softplus(x: Operand) -> Expression:
    """log(1 + exp(x)), for all x."""
    return Expression("softplus({})", x)


def maximum(a: Operand, b: Operand) -> Expression:
    """The larger one; the derivative goes to a where they are equal."""
    return Expression("max({}, {})", a, b)


def minimum(a: Operand, b: Operand) -> Expression:
    """The smaller one; the derivative goes to a where they are equal."""
    return Expression("min({}, {})", a, b)


def power(a: Operand, b: Operand) -> Expression:
    """a ** b"""
    return Expression("pow({}, {})", a, b)


def clip(x: Operand, low: Operand, high: Operand) -> Expression:
    """x, but at least low and at most high."""
    return Expression("clip({}, {}, {})", x, low, high)


def where(condition: Operand, a: Operand, b: Operand) -> Expression:
    """a where the condition holds, else b."""
    return Expression("where({}, {}, {})", condition, a, b)


def stop(x: Operand) -> Expression:
    """x, through which no derivative flows."""
    return Expression("stop({})", x)


def is_finite(x: Operand) -> Expression:
    """Whether x is neither infinite nor NaN."""
    return Expression("is_finite({})", x)
