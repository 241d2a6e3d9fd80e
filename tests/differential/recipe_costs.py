"""Draws costs of values. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

WEIGHTS = (0.3, 0.5, 1.0, 2.0)


def add_costs(draw, leaves, profile):
    """Adds costs of all leaves: alone, or joined. Returns their names."""
    flat = [name for name in (_flat(draw, leaf) for leaf in leaves) if name is not None]
    if not flat:
        flat = [_flat(draw, draw.nodes[-1].name)]
    groups = [flat] if len(flat) == 1 or draw.chance(0.6) else [flat[: len(flat) // 2], flat[len(flat) // 2 :]]
    costs = []
    for group in groups:
        size = 1 if profile.scalar_label else int(draw.random.integers(2, 5))
        joined = group[0] if len(group) == 1 else draw.must_add("concat", *group)
        score = draw.must_add("fc", joined, size=size)
        costs.append(_cost(draw, score, size, profile))
    return costs


def _flat(draw, name):
    """Returns a value of one vector for each sample."""
    if draw.levels(name):
        level = {"level": "sample"} if draw.levels(name) == 2 else {}
        name = draw.must_add("sequence_pool", name, kind=draw.one_of(["sum", "mean", "last", "sqrt_n"]), **level)
    if name is not None and len(draw.shape(name)) != 1:
        size = 1
        for each in draw.shape(name):
            size *= each
        name = draw.must_add("reshape", name, shape=[size])
    return name


def _label(draw, size, number):
    name = f"label{number}"
    return name if name in draw.values else draw.data(name, kind="dense", shape=[size])


def _cost(draw, score, size, profile):
    options = {"coefficient": draw.one_of(WEIGHTS)} if draw.chance(0.3) else {}
    if profile.scalar_label:
        number = "number" if "number" in draw.values else draw.data("number", kind="dense", shape=[])
        label = draw.must_add("reshape", number, shape=[1])
        return draw.must_add(draw.one_of(["square_error", "huber", "smooth_l1"]), score, label, **options)
    kind = draw.one_of(["square_error", "classes", "classes", "absolute_error", "smooth_l1", "huber", "yes_no", "distribution",
                        "rank", "sum"])  # fmt: skip
    if kind == "classes":
        name = f"class{size}"
        label = name if name in draw.values else draw.data(name, kind="dense", limit=size)
        if draw.chance(0.5):
            return draw.must_add("cross_entropy", draw.must_add("softmax", score), label, **options)
        smoothing = {"label_smoothing": 0.2} if draw.chance(0.5) else {}
        return draw.must_add("cross_entropy", score, label, from_logits=True, **smoothing, **options)
    label = _label(draw, size, size)
    if kind == "yes_no":
        return draw.must_add(
            "binary_cross_entropy", score, draw.must_add("sigmoid", label), from_logits=True, positive_weight=1.5, **options
        )
    if kind == "distribution":
        shares = draw.must_add("softmax", label)
        if draw.chance(0.5):
            return draw.must_add("cross_entropy", score, shares, from_logits=True, **options)
        return draw.must_add("kl_divergence", score, shares, from_logits=True, **options)
    if kind == "rank":
        return draw.must_add(
            "rank_cost", score, draw.must_add("fc", label, size=size), draw.must_add("sigmoid", label), **options
        )
    if kind == "sum":
        return draw.must_add("sum_cost", draw.must_add("square", draw.must_add("sub", score, label)), **options)
    return draw.must_add(kind, score, label, **options)
