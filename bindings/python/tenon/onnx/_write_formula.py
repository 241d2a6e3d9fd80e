"""Writers of formulas, and of layers that are formulas of their inputs, element by element.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from onnx import TensorProto

from tenon.onnx._emit import Emit, Item, Writer, Written
from tenon.onnx._values import Refusal

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.Pow: "Pow", ast.Lt: "Less", ast.LtE: "LessOrEqual",
    ast.Gt: "Greater", ast.GtE: "GreaterOrEqual", ast.Eq: "Equal", ast.And: "And", ast.Or: "Or",
}  # fmt: skip
_FUNCTIONS = {name: name.capitalize() for name in (
    "abs", "cos", "erf", "exp", "floor", "log", "max", "min", "pow", "reciprocal", "relu", "round", "sigmoid", "sign", "sin",
    "softplus", "sqrt", "tanh")}  # fmt: skip


class Formula:
    """The nodes of a formula whose names are values of the graph."""

    def __init__(self, emit: Emit, names: Mapping[str, str], title: str) -> None:
        self._emit, self._names, self._title = emit, dict(names), title
        self._truths: set[str] = set()

    def write(self, text: str) -> str:
        """Returns the name of the value, floats also where it is a truth value."""
        *parts, last = ast.parse(text).body
        for part in parts:
            if not isinstance(part, ast.Assign) or not isinstance(part.targets[0], ast.Name):
                raise Refusal(f"the formula {text!r} has parts that are not understood")
            self._names[part.targets[0].id] = self._value(part.value)
        if not isinstance(last, ast.Expr):
            raise Refusal(f"the formula {text!r} has no value")
        return self._number(last.value)

    def _node(self, op: str, *inputs: str, truth: bool = False) -> str:
        name = self._emit.node(op, inputs, self._title)
        if truth:
            self._truths.add(name)
        return name

    def _number(self, tree: ast.AST) -> str:
        name = self._value(tree)
        return self._emit.node("Cast", [name], self._title, to=TensorProto.FLOAT) if name in self._truths else name

    def _truth(self, tree: ast.AST) -> str:
        name = self._value(tree)
        if name in self._truths:
            return name
        name = self._emit.node("Cast", [name], self._title, to=TensorProto.BOOL)
        self._truths.add(name)
        return name

    def _value(self, tree: ast.AST) -> str:
        if isinstance(tree, ast.Name) and tree.id in self._names:
            return self._names[tree.id]
        if isinstance(tree, ast.Constant) and isinstance(tree.value, (int, float)):
            return self._emit.scalar(float(tree.value))
        if isinstance(tree, ast.BinOp):
            return self._node(_OPERATORS[type(tree.op)], self._number(tree.left), self._number(tree.right))
        if isinstance(tree, ast.BoolOp):
            op = _OPERATORS[type(tree.op)]
            return reduce(lambda a, b: self._node(op, a, b, truth=True), [self._truth(each) for each in tree.values])
        if isinstance(tree, ast.UnaryOp):
            return self._unary(tree)
        if isinstance(tree, ast.Compare):
            return self._comparison(tree)
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            return self._call(tree.func.id, tree.args)
        raise Refusal(f"the formula has {ast.unparse(tree)!r}, which is not understood")

    def _unary(self, tree: ast.UnaryOp) -> str:
        if isinstance(tree.op, ast.Not):
            return self._node("Not", self._truth(tree.operand), truth=True)
        value = self._number(tree.operand)
        return self._node("Neg", value) if isinstance(tree.op, ast.USub) else value

    def _comparison(self, tree: ast.Compare) -> str:
        numbers = [self._number(each) for each in (tree.left, *tree.comparators)]
        found = []
        for op, a, b in zip(tree.ops, numbers, numbers[1:], strict=False):
            if isinstance(op, ast.NotEq):
                found.append(self._node("Not", self._node("Equal", a, b), truth=True))
            else:
                found.append(self._node(_OPERATORS[type(op)], a, b, truth=True))
        return reduce(lambda a, b: self._node("And", a, b, truth=True), found)

    def _call(self, name: str, arguments: Sequence[ast.AST]) -> str:
        if name == "where":
            return self._node("Where", self._truth(arguments[0]), *(self._number(each) for each in arguments[1:]))
        given = [self._number(each) for each in arguments]
        if name in _FUNCTIONS:
            return self._node(_FUNCTIONS[name], *given)
        composed: dict[str, Callable[[], str]] = {
            "clip": lambda: self._node("Min", self._node("Max", given[0], given[1]), given[2]),
            "expm1": lambda: self._node("Sub", self._node("Exp", given[0]), self._emit.scalar(1.0)),
            "log1p": lambda: self._node("Log", self._node("Add", given[0], self._emit.scalar(1.0))),
            "square": lambda: self._node("Mul", given[0], given[0]), "stop": lambda: given[0],
            "is_finite": lambda: self._node("Not", self._node("Or", self._node("IsInf", given[0]),
                                                              self._node("IsNaN", given[0])), truth=True),
        }  # fmt: skip
        if name not in composed:
            raise Refusal(f"the formula has the function {name!r}, which no operator is")
        return composed[name]()


def of_formula(text: str, *numbers: str) -> Writer:
    """Returns the writer of a layer that is a formula of its inputs x, y and z. numbers: attributes that the formula has as
    {NAME}."""

    def write(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
        given = {name: f"({float(item.attributes[name])!r})" for name in numbers}
        return _written(emit, item, inputs, text.format(**given), "xyz")

    return write


def _formula(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    return _written(emit, item, inputs, item.attributes["formula"], item.attributes.get("names") or "xyz")


def _written(emit: Emit, item: Item, inputs: Sequence[Written], text: str, names: Sequence[str]) -> Written:
    operands, value = emit.together(item, inputs)
    formula = Formula(emit, dict(zip(names, operands, strict=False)), item.name)
    return value.like(formula.write(text))


WRITERS: dict[str, Writer] = {
    "formula": _formula, "where": of_formula("where(x, y, z)"), "masked_fill": of_formula("where(y, {value}, x)", "value"),
    "equal": of_formula("x == y"), "not_equal": of_formula("x != y"), "greater": of_formula("x > y"),
    "greater_equal": of_formula("x >= y"), "less": of_formula("x < y"), "less_equal": of_formula("x <= y"),
    "logical_and": of_formula("x and y"), "logical_or": of_formula("x or y"), "logical_not": of_formula("not x"),
    "logical_xor": of_formula("(x != 0) != (y != 0)"),
    "threshold": of_formula("where(x > {threshold}, x, {value})", "threshold", "value"),
    "hard_shrink": of_formula("where(abs(x) > {margin}, x, 0)", "margin"),
    "soft_shrink": of_formula("sign(x) * relu(abs(x) - {margin})", "margin"),
    "expm1": of_formula("expm1(x)"), "log1p": of_formula("log1p(x)"), "log_sigmoid": of_formula("-softplus(-x)"),
    "tanh_shrink": of_formula("x - tanh(x)"), "scaled_tanh": of_formula("{height} * tanh({slope} * x)", "height", "slope"),
}  # fmt: skip
