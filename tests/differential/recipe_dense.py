"""Draws layers on vectors, element by element, and of shapes. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

SMOOTH = ("tanh", "sigmoid", "softplus", "softsign", "erf", "sin", "cos", "silu", "mish", "gelu", "square")
KINKED = ("relu", "leaky_relu", "elu", "celu", "selu", "hard_sigmoid", "hard_swish", "hard_tanh", "relu6", "abs")
ACTS = ("tanh", "sigmoid", "relu", "leaky_relu", "softplus", "elu", "gelu")


def unary(draw):
    name = draw.pick()
    kind = draw.one_of(SMOOTH if draw.chance(0.6) else KINKED)
    options = {}
    if kind == "gelu" and draw.chance(0.5):
        options = {"approximation": "tanh"}
    if kind == "leaky_relu" and draw.chance(0.5):
        options = {"slope": 0.3}
    result = draw.add(kind, name, **options)
    if result and kind in ("sigmoid", "softplus"):
        draw.positive.add(result)


def of_positive(draw):
    name = draw.pick(where=lambda name: name in draw.positive)
    if name is not None:
        kind = draw.one_of(["log", "sqrt", "reciprocal", "power"])
        draw.add(kind, name, **({"exponent": draw.one_of([-0.5, 0.5, 1.5, 3.0])} if kind == "power" else {}))


def shift(draw):
    name = draw.pick(rank=(1, 2, 3))
    if name is None:
        return
    if draw.chance(0.5):
        draw.add("scale_shift", name, learnable=True)
    else:
        draw.add("scale_shift", name, scale=draw.one_of([-1.5, 0.5, 2.0]), shift=draw.one_of([-0.5, 0.0, 1.0]))


def clip(draw):
    low = {"low": -0.7} if draw.chance(0.7) else {}
    draw.add("clip", draw.pick(), **low, **({"high": 0.9} if draw.chance(0.7) or not low else {}))


def prelu(draw):
    name = draw.pick(rank=(1, 2, 3))
    if name is not None:
        draw.add("prelu", name, shared=draw.chance(0.3))


def binary(draw):
    a = draw.pick()
    b = draw.one_of(draw.alike(a))
    if draw.chance(0.2):
        divisors = [name for name in draw.alike(a) if name in draw.positive]
        if divisors:
            draw.add("div", a, draw.one_of(divisors))
        return
    draw.add(draw.one_of(["add", "sub", "mul", "maximum", "minimum", "add"]), a, b)


def several(draw):
    a = draw.pick()
    others = draw.alike(a)
    draw.add(draw.one_of(["add", "mul"]), a, draw.one_of(others), draw.one_of(others))


def chosen(draw):
    a = draw.pick()
    alike = draw.alike(a)
    test = draw.add(draw.one_of(["greater", "less"]), a, draw.one_of(alike)) if len(alike) > 1 else None
    if test is not None:
        draw.add("where", test, draw.one_of(alike), draw.one_of(alike))


def options_of_parameters(draw, suffixes):
    """Returns `param` with multipliers, now and then."""
    if not draw.chance(0.2):
        return {}
    choices = [{"rate_multiplier": 0.5}, {"decay_multiplier": 0.0}, {"rate_multiplier": 2.0, "decay_multiplier": 3.0}]
    return {"param": {draw.one_of(suffixes): draw.one_of(choices)}}


def shared_name(draw, *signature):
    """Returns {"parameter_name"} by which layers of one signature share parameters, now and then."""
    known = draw.shared[signature]
    if known and draw.chance(0.5):
        return {"parameter_name": draw.one_of(known)}
    if draw.chance(0.4):
        known.append(draw.fresh("shared"))
        return {"parameter_name": known[-1]}
    return {}


def fc(draw):
    first = draw.pick(rank=(1, 2, 3))
    if first is None:
        return
    size = int(draw.random.integers(1, 6))
    inputs = [first]
    if draw.chance(0.35) and not draw.levels(first):
        inputs.append(draw.one_of(draw.names(levels=[0], rank=(1, 2, 3))))
    bias = draw.chance(0.8)
    options = {"bias": False} if not bias else {}
    if len(inputs) == 1 and len(draw.shape(first)) > 1 and draw.chance(0.5):
        options["axis"] = -1
    options["act"] = draw.one_of(ACTS)
    if draw.chance(0.3):
        del options["act"]
    width = draw.shape(first)[-1] if "axis" in options else _size(draw.shape(first))
    sharing = shared_name(draw, "fc", width, size, bias) if len(inputs) == 1 else {}
    more = {} if sharing else options_of_parameters(draw, ["weight", "bias"] if bias else ["weight"])
    draw.add("fc", *inputs, size=size, **options, **sharing, **more)


def _size(shape):
    size = 1
    for each in shape:
        size *= each
    return size


def concat(draw):
    """Values of unequal widths, along the last dimension or another."""
    first = draw.pick(rank=(1, 2, 3))
    if first is None:
        return
    rank = len(draw.shape(first))
    axis = int(draw.random.integers(1, rank + 1))

    def fits(name):
        shape, other = draw.shape(first), draw.shape(name)
        return (draw.levels(name) == draw.levels(first) and draw.structures.get(name) == draw.structures.get(first)
                and all(shape[k] == other[k] for k in range(rank) if k != axis - 1))  # fmt: skip

    others = draw.names(rank=[rank], where=fits)
    chosen = [draw.one_of(others) for _ in range(int(draw.random.integers(1, 3)))]
    draw.add("concat", first, *chosen, axis=axis if draw.chance(0.5) else axis - rank - 1)


def reshape(draw):
    name = draw.pick(levels=[0], rank=(1, 2, 3))
    if name is None:
        return
    size = _size(draw.shape(name))
    factors = [k for k in range(1, size + 1) if size % k == 0]
    first = draw.one_of(factors)
    draw.add("reshape", name, shape=[size] if len(draw.shape(name)) > 1 and draw.chance(0.3) else [first, size // first])


def transpose(draw):
    name = draw.pick(levels=[0], rank=(2, 3))
    if name is not None:
        draw.add("transpose", name, axes=[0, *(1 + int(k) for k in draw.random.permutation(len(draw.shape(name))))])


def cut(draw):
    name = draw.pick(rank=(1, 2, 3))
    if name is None:
        return
    axis = int(draw.random.integers(1, len(draw.shape(name)) + 1))
    size = draw.shape(name)[axis - 1]
    start = int(draw.random.integers(0, size))
    draw.add("slice", name, axis=axis, start=start, length=int(draw.random.integers(1, size - start + 1)))


def pad(draw):
    name = draw.pick(levels=[0], rank=(1, 2, 3))
    if name is None:
        return
    axis = int(draw.random.integers(1, len(draw.shape(name)) + 1))
    most = draw.shape(name)[axis - 1] - 1
    before, after = (int(each) for each in draw.random.integers(0, 3, 2))
    mode = draw.one_of(["constant", "edge", "reflect"])
    if mode == "reflect":
        before, after = min(before, most), min(after, most)
    draw.add("pad", name, before=[before], after=[after], axes=[axis], mode=mode, value=0.5 if mode == "constant" else 0.0)


def reduction(draw):
    name = draw.pick(levels=[0], rank=(1, 2, 3))
    if name is None:
        return
    rank = len(draw.shape(name))
    kinds = ["mean", "sum", "max", "min"]
    kind = draw.one_of(kinds if draw.settings["export"] else [*kinds, "variance", "log_sum_exp", "norm", "standard_deviation"])
    along = {"axis": int(draw.random.integers(1, rank + 1))}
    if rank > 1 and draw.chance(0.3):
        along = {"axes": sorted(1 + int(k) for k in draw.random.choice(rank, 2, replace=False))}
    draw.add(kind, name, **along, keep_dimensions=bool(draw.chance(0.5) or rank == len(along.get("axes", [0]))))


def norm(draw):
    name = draw.pick(rank=(1, 2, 3), where=lambda name: draw.shape(name)[-1] > 1)
    if name is None:
        return
    kinds = ["layer_norm", "softmax", "log_softmax"]
    kind = draw.one_of(kinds if draw.settings["export"] else [*kinds, "rms_norm", "normalize"])
    # Of nearly equal elements a norm has large gradients, which float32 cannot follow.
    draw.add(kind, name, **({"epsilon": 0.1} if kind in ("layer_norm", "rms_norm") else {}))


def gate(draw):
    name = draw.pick(rank=(1, 2, 3), where=lambda name: draw.shape(name)[-1] % 2 == 0)
    if name is not None:
        if draw.chance(0.5):
            draw.add("maxout", name, pieces=2)
        else:
            draw.add("glu", name, gate=draw.one_of(["sigmoid", "silu", "gelu", "relu", "tanh", "none"]))


def along(draw):
    name = draw.pick(levels=[0], rank=(1, 2, 3))
    if name is not None:
        if draw.chance(0.4):
            draw.add("flip", name, axes=[draw.one_of([-1, 1])])
        else:
            draw.add("cumsum", name, exclusive=draw.chance(0.3), reverse=draw.chance(0.3))


def pairs(draw):
    a, b = draw.pick(levels=[0], rank=[1]), draw.pick(levels=[0], rank=[1])
    if a is None or b is None:
        return
    if draw.chance(0.5):
        draw.add("bilinear", a, b, size=int(draw.random.integers(1, 4)))
    else:
        draw.add("factorization_machine", a, factors=2)


def attend(draw):
    query = draw.pick(levels=[0], rank=[2])
    if query is None:
        return
    width = draw.shape(query)[1]
    heads = 2 if width % 2 == 0 and draw.chance(0.5) else 1
    keys = draw.names(levels=[0], rank=[2], where=lambda name: draw.shape(name)[1] == width)
    key = draw.one_of(keys)
    causal = draw.shape(key)[0] >= draw.shape(query)[0] and draw.chance(0.4)
    draw.add("attention", query, key, heads=heads, causal=causal)


def matrices(draw):
    """A value of two dimensions, from a vector."""
    name = draw.pick(levels=[0], rank=[1])
    if name is not None:
        rows, width = (int(each) for each in draw.random.integers(2, 5, 2))
        wide = draw.add("fc", name, size=rows * width)
        if wide is not None:
            draw.add("reshape", wide, shape=[rows, width])


DENSE = [unary, unary, of_positive, shift, clip, prelu, binary, binary, several, chosen, fc, fc, fc, concat, concat, reshape,
         transpose, cut, pad, reduction, norm, norm, gate, along, pairs, attend, matrices]  # fmt: skip
