"""Rows that are deliberately wrong, and what the peer test must say of them: it can fail.
SPDX-License-Identifier: Apache-2.0"""
from rows import Row, integers, real, row, updater

MATRIX = {"weight": real(3, 2), "bias": real(2)}
STATISTICS = {"moving_mean": real(3), "moving_variance": real(3)}
BATCH_NORM = "F.batch_norm(x, moving_mean, moving_variance, None, None, True, {})"

# The row, and a part of the message.
CASES = [
    (row("relu", {}, {"x": real(4, 3)}, "F.relu(x) + 1e-4 * x"), "output 0 at [0, 0]"),
    (row("relu", {}, {"x": real(4, 3)}, "F.relu(x).T"), "output 0: expected shape [3, 4], got [4, 3]"),
    (row("relu", {}, {"x": real(4, 3)}, "F.relu(y)"), "NameError"),
    (row("relu", {"no": 1}, {"x": real(4, 3)}, "F.relu(x)"), "\"no\""),
    (row("split", {"parts": 3}, {"x": real(4, 3)}, "x.split([1, 2], 1)"), "expected 2 outputs, got 3"),
    (row("silu", {}, {"x": real(4, 3)}, "x * torch.sigmoid(x).detach()"), "the gradient of x"),
    (row("sub", {}, {"x": real(4, 3), "y": real(4, 3)}, "x - 2 * y + y.detach()"), "the gradient of y"),
    (row("fc", {"size": 2}, {"x": real(4, 3)}, "x @ weight.detach() + bias", parameters=MATRIX),
     "the gradient of weight"),
    (row("fc", {"size": 2}, {"x": real(4, 3)}, "x @ weight", parameters={"weight": real(3, 2)}), "parameter bias"),
    (row("batch_norm", {"learnable": False}, {"x": real(4, 3)}, BATCH_NORM.format(0.2), buffers=STATISTICS),
     "the buffer moving_mean at [0]"),
    (row("accuracy", {}, {"x": real(4, 3), "k": integers(3, 4)}, "x.sum()", training=False),
     "the metric at [0]"),
    (updater("sgd", {"learning_rate": 0.1}, "torch.optim.SGD(p, 0.1, momentum=0.9)"), "the parameter after step 2"),
]


def unnoticed(missing):
    """What the function that compares types with the table does not find."""
    rows = [Row("tested", {}, {}, ""), Row("excused", {}, {}, "")]
    found = list(missing({"tested", "excused", "forgotten"}, rows, {"excused": "why", "gone": "why"}))
    return [] if [text.split(":")[0] for text in found] == ["forgotten", "excused", "gone"] else [
        f"types that are forgotten, excused in vain or gone must be found; found: {found}"]
