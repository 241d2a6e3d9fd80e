"""Operators of windows over images, and their sizes. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenon._model.layer import Layer
from tenon.onnx._build import Build, Made, Operator
from tenon.onnx._graph import SAMPLES, Node
from tenon.onnx._values import Array, Refusal, Value, channels_last


def _made(layer: Layer) -> Value:
    return Value(layer, channels_last(len(layer.shape)))


def _window(node: Node, space: int, kernel: list[int]) -> dict[str, Any]:
    """Returns the attributes of a window but for its padding."""
    found = {"kernel": kernel, "stride": list(node.get("strides") or [1] * space),
             "dilation": list(node.get("dilations") or [1] * space)}  # fmt: skip
    for name, numbers in found.items():
        if len(numbers) != space:
            raise Refusal(f"{name} has {len(numbers)} numbers for images of {space} dimensions in space")
    return found


def _interleaved(before: list[int], after: list[int]) -> list[int]:
    if min(*before, *after) < 0:
        raise Refusal(f"pads are {[*before, *after]}; negative ones are not understood")
    return [size for pair in zip(before, after, strict=True) for size in pair]


def _padding(node: Node, image: Layer, window: dict[str, Any]) -> dict[str, Any]:
    """Returns the padding of a window over an image."""
    space = len(window["kernel"])
    mode, pads = node.get("auto_pad", "NOTSET"), _pads(node, space)
    if mode == "SAME_UPPER":
        return {"same": True}
    if mode == "VALID":
        return {}
    if mode == "SAME_LOWER":
        before, after = [], []
        for size, kernel, stride, dilation in zip(
            image.shape[1:-1], window["kernel"], window["stride"], window["dilation"], strict=True
        ):
            added = max(0, (-(-size // stride) - 1) * stride + dilation * (kernel - 1) + 1 - size)
            before.append(added - added // 2)
            after.append(added // 2)
        return {"padding": _interleaved(before, after)}
    if mode != "NOTSET":
        raise Refusal(f"auto_pad is {mode!r}")
    return {"padding": _interleaved(pads[:space], pads[space:])}


def _pads(node: Node, space: int) -> list[int]:
    pads = [int(each) for each in node.get("pads") or [0] * (2 * space)]
    if len(pads) != 2 * space:
        raise Refusal(f"pads has {len(pads)} numbers for images of {space} dimensions in space")
    return pads


def _weight(build: Build, node: Node) -> tuple[Layer, Array, list[int]]:
    image, weight = build.image(node), build.constant(node, 1, "weight")
    if weight.ndim != len(image.shape):
        raise Refusal(f"the weight has shape {list(weight.shape)}; its input is {build.value(node).text}")
    kernel = list(weight.shape[2:])
    if list(node.get("kernel_shape") or kernel) != kernel:
        raise Refusal(f"kernel_shape is {node.get('kernel_shape')}; the weight has shape {list(weight.shape)}")
    return image, np.moveaxis(weight, 1, -1), kernel


def _conv(build: Build, node: Node) -> Made:
    image, weight, kernel = _weight(build, node)
    bias = build.optional(node, 2, "bias")
    window = _window(node, len(kernel), kernel)
    attributes = {**window, **_padding(node, image, window), "filters": weight.shape[0],
                  "groups": node.get("group", 1), "bias": bias is not None}  # fmt: skip
    layer = build.layer(node, "conv", [image], attributes)
    build.set(layer, weight=weight, bias=bias)
    return _made(layer)


def _conv_transpose(build: Build, node: Node) -> Made:
    image, weight, kernel = _weight(build, node)
    bias = build.optional(node, 2, "bias")
    window = _window(node, len(kernel), kernel)
    groups = int(node.get("group", 1))
    more = [int(each) for each in node.get("output_padding") or [0] * len(kernel)]
    attributes = {**window, "padding": _cut(node, image, window, more), "output_padding": more,
                  "filters": weight.shape[-1] * groups, "groups": groups, "bias": bias is not None}  # fmt: skip
    layer = build.layer(node, "conv_transpose", [image], attributes)
    build.set(layer, weight=weight, bias=bias)
    return _made(layer)


def _cut(node: Node, image: Layer, window: dict[str, Any], more: list[int]) -> list[int]:
    """Returns what a transposed convolution removes on each side, by its padding or by the size it must have."""
    sizes, strides = [int(each) for each in image.shape[1:-1]], window["stride"]
    mode, wanted = node.get("auto_pad", "NOTSET"), list(node.get("output_shape") or [])
    space, pads = len(sizes), _pads(node, len(sizes))
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER") or len(more) != space:
        raise Refusal(f"auto_pad is {mode!r}, output_padding {more}")
    if not wanted and mode.startswith("SAME"):
        wanted = [size * stride for size, stride in zip(sizes, strides, strict=True)]
    if not wanted:
        return _interleaved(pads[:space], pads[space:]) if mode == "NOTSET" else [0] * (2 * space)
    if len(wanted) not in (space, space + 2):
        raise Refusal(f"output_shape is {wanted} for images of {space} dimensions in space")
    before, after = [], []
    for i, size in enumerate(sizes):
        extent = window["dilation"][i] * (window["kernel"][i] - 1) + 1
        cut = strides[i] * (size - 1) + more[i] + extent - int(wanted[i - space])
        half = cut // 2
        before.append(half if mode == "SAME_UPPER" else cut - half)
        after.append(cut - before[-1])
    return _interleaved(before, after)


def _pool(kind: str) -> Operator:
    def make(build: Build, node: Node) -> Made:
        if any(name and build.uses[name] for name in node.outputs[1:]):
            raise Refusal("the indices of its maxima are used")
        node.get("storage_order")  # of the indices
        image = build.image(node)
        window = _window(node, len(image.shape) - 2, list(node.get("kernel_shape") or []))
        attributes = {"kind": kind, **window, **_padding(node, image, window), "ceil": bool(node.get("ceil_mode", 0))}
        if kind == "average":
            attributes["count_padding"] = bool(node.get("count_include_pad", 0))
        if kind == "norm":
            attributes["power"] = float(node.get("p", 2))
        return _made(build.layer(node, "pool", [image], attributes))

    return make


def _global_pool(kind: str) -> Operator:
    def make(build: Build, node: Node) -> Made:
        return _made(build.layer(node, "pool", [build.image(node)], {"kind": kind, "whole": True}))

    return make


def _resize(build: Build, node: Node) -> Made:
    """Resize, and Upsample of older versions, which is the mode asymmetric."""
    image = build.image(node)
    old = node.op == "Upsample" or node.version < 11
    kind = node.get("mode", "nearest")
    kind = "linear" if kind == "bilinear" else kind  # in Upsample
    for name in ("cubic_coeff_a", "exclude_outside", "extrapolation_value"):
        node.get(name)  # of modes that are not understood
    places = node.get("coordinate_transformation_mode", "asymmetric" if old else "half_pixel")
    rounding = node.get("nearest_mode", "floor" if old else "round_prefer_floor")
    before = [int(each) for each in image.shape[1:-1]]
    sizes, exact = _sizes(build, node, before, int(image.shape[-1]), old)
    # All modes are equal along a dimension of one pixel, and along one that keeps its size.
    changed = [(size, made) for size, made in zip(before, sizes, strict=True) if 1 < size != made]
    exact = exact or places == "align_corners"
    node.require("antialias", 0, 0, neutral=kind == "nearest" or all(made > size for size, made in changed))
    if places not in _PLACES:
        raise Refusal(f"coordinate_transformation_mode is {places!r}")
    if kind not in ("nearest", "linear", "cubic") or (kind == "cubic" and changed):
        raise Refusal(f"mode is {kind!r}; nearest and linear are understood")
    if not exact:
        raise Refusal("scales times sizes are no whole numbers")
    attributes: dict[str, Any] = {"size": sizes, "kind": "nearest" if kind == "nearest" else "linear"}
    if kind != "nearest":
        one = any(made == 1 for _, made in changed)
        if changed and (places == "asymmetric" or (places == "pytorch_half_pixel" and one)):
            raise Refusal(f"coordinate_transformation_mode is {places!r} of the mode {kind}")
        attributes["align_corners"] = places == "align_corners"
    elif not all(_floors(places, rounding, size, made) for size, made in changed):
        raise Refusal(f"of the mode nearest coordinate_transformation_mode is {places!r}, nearest_mode {rounding!r}")
    return _made(build.layer(node, "resize", [image], attributes))


def _sizes(build: Build, node: Node, before: list[int], channels: int, old: bool) -> tuple[list[int], bool]:
    """Returns the sizes in space after a resize, and whether the factors are exactly their quotients."""
    axes = node.get("axes")
    scales, sizes = build.integers(node, 3, "sizes") if not old else None, None
    if scales:
        sizes, scales = scales, None
    given = node.get("scales")
    if given is None and not sizes:
        given = build.constant(node, 1 if old else 2, "scales")
    rank = len(before) + 2
    axes = [int(axis) % rank for axis in axes] if axes else list(range(rank))
    numbers = [float(each) for each in (sizes or np.asarray(given).ravel())]
    if len(numbers) != len(axes) or not np.isfinite(numbers).all():
        raise Refusal(f"there are {len(numbers)} sizes or scales for {len(axes)} dimensions, {numbers}")
    by_axis = dict(zip(axes, numbers, strict=True))
    same = (SAMPLES, build.graph.batch) if sizes else (1,)
    if by_axis.pop(0, same[0]) not in same or by_axis.pop(1, channels if sizes else 1) != (channels if sizes else 1):
        raise Refusal("samples or channels are resized")
    wanted = [by_axis.get(i + 2, float(size) if sizes else 1.0) for i, size in enumerate(before)]
    factors = {size / have for size, have in zip(wanted, before, strict=True)} | ({1.0} if {0, 1} & set(axes) else set())
    keeps = node.get("keep_aspect_ratio_policy", "stretch") in ("not_larger", "not_smaller") and len(factors) == 1
    node.require("keep_aspect_ratio_policy", "stretch", "stretch", neutral=bool(sizes) and keeps)
    if sizes:
        return [int(size) for size in wanted], True
    made = [int(np.floor(np.float32(size) * np.float32(scale))) for size, scale in zip(before, wanted, strict=True)]
    return made, all(size == 1 or size * scale == after for size, scale, after in zip(before, wanted, made, strict=True))


# Modes: the place of element o of `after` among `before`, as a fraction.
_Fraction = tuple[Any, int]
_PLACES: dict[str, Callable[[Any, int, int], _Fraction]] = {
    "align_corners": lambda o, before, after: (o * (before - 1), max(1, after - 1)),
    "asymmetric": lambda o, before, after: (o * before, after),
    "half_pixel": lambda o, before, after: ((2 * o + 1) * before - after, 2 * after),
    "half_pixel_symmetric": lambda o, before, after: ((2 * o + 1) * before - after, 2 * after),
    "pytorch_half_pixel": lambda o, before, after: ((2 * o + 1) * before - after if after > 1 else 0 * o, 2 * after),
}
_ROUNDINGS: dict[str, Callable[[Any, int], Any]] = {
    "ceil": lambda over, under: -(-over // under),
    "floor": lambda over, under: over // under,
    "round_prefer_ceil": lambda over, under: (2 * over + under) // (2 * under),
    "round_prefer_floor": lambda over, under: -((under - 2 * over) // (2 * under)),
}
_LONGEST = 2**20  # up to which sizes are compared


def _floors(places: str, rounding: str, before: int, after: int) -> bool:
    """Returns whether element o of the output is element floor(o before / after) of the input."""
    if rounding not in _ROUNDINGS or max(before, after) > _LONGEST:
        return False
    numbers = np.arange(after)
    chosen = np.clip(_ROUNDINGS[rounding](*_PLACES[places](numbers, before, after)), 0, before - 1)
    return bool((chosen == numbers * before // after).all())


OPERATORS: dict[str, Operator] = {
    "AveragePool": _pool("average"), "Conv": _conv, "ConvTranspose": _conv_transpose,
    "GlobalAveragePool": _global_pool("average"), "GlobalMaxPool": _global_pool("max"), "LpPool": _pool("norm"),
    "MaxPool": _pool("max"), "Resize": _resize, "Upsample": _resize,
}  # fmt: skip
