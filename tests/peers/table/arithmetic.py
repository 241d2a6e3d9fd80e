"""Several values, element by element, with broadcasting. SPDX-License-Identifier: Apache-2.0"""
from rows import one_of, positive, real, row, truth

SPREAD = {"x": real(4, 3, 2), "y": real(4, 3, 1)}
STEPS = {"x": one_of((-1, 0, 1), 6, 3), "y": one_of((-1, 0, 1), 6, 3)}

ROWS = [
    row("add", {}, SPREAD, "x + y"),
    row("sub", {}, SPREAD, "x - y"),
    row("mul", {}, SPREAD, "x * y"),
    row("div", {}, {"x": real(4, 3, 2), "y": positive(4, 1, 2)}, "x / y"),
    row("maximum", {}, SPREAD, "torch.maximum(x, y)"),
    row("minimum", {}, SPREAD, "torch.minimum(x, y)"),
    row("pow", {}, {"x": positive(4, 3), "y": real(4, 3)}, "x ** y"),
    row("equal", {}, STEPS, "x == y"),
    row("not_equal", {}, STEPS, "x != y"),
    row("less", {}, STEPS, "x < y"),
    row("less_equal", {}, STEPS, "x <= y"),
    row("greater", {}, STEPS, "x > y"),
    row("greater_equal", {}, STEPS, "x >= y"),
    row("logical_and", {}, STEPS, "torch.logical_and(x, y)"),
    row("logical_or", {}, STEPS, "torch.logical_or(x, y)"),
    row("logical_xor", {}, STEPS, "torch.logical_xor(x, y)"),
    row("logical_not", {}, {"x": one_of((-1, 0, 1), 6, 3)}, "torch.logical_not(x)"),
    row("where", {}, {"c": truth(4, 3), "x": real(4, 3), "y": real(4, 1)}, "torch.where(c != 0, x, y)"),
    row("masked_fill", {"value": 2.0}, {"x": real(4, 3), "m": truth(4, 3)}, "x.masked_fill(m != 0, 2)"),
]
