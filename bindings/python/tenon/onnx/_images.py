"""Operators of windows over images, and their sizes. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenon._layer import Layer
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
    return [size for pair in zip(before, after) for size in pair]


def _padding(node: Node, image: Layer, window: dict[str, Any]) -> dict[str, Any]:
    """Returns the padding of a window over an image."""
    space = len(window["kernel"])
    mode = node.get("auto_pad", "NOTSET")
    pads = [int(each) for each in node.get("pads") or [0] * (2 * space)]
    if mode == "SAME_UPPER":
        return {"same": True}
    if mode == "VALID":
        return {}
    if mode == "SAME_LOWER":
        before, after = [], []
        for size, kernel, stride, dilation in zip(
            image.shape[1:], window["kernel"], window["stride"], window["dilation"]
        ):
            added = max(0, (-(-size // stride) - 1) * stride + dilation * (kernel - 1) + 1 - size)
            before.append(added - added // 2)
            after.append(added // 2)
        return {"padding": _interleaved(before, after)}
    if mode != "NOTSET":
        raise Refusal(f"auto_pad is {mode!r}")
    if len(pads) != 2 * space:
        raise Refusal(f"pads has {len(pads)} numbers for images of {space} dimensions in space")
    return {"padding": _interleaved(pads[:space], pads[space:])}


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
    mode, wanted = node.get("auto_pad", "NOTSET"), node.get("output_shape")
    if wanted is None and mode in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [size * stride for size, stride in zip(sizes, strides)]
    if wanted is None:
        pads = [int(each) for each in node.get("pads") or [0] * (2 * len(sizes))]
        return _interleaved(pads[: len(sizes)], pads[len(sizes) :])
    node.get("pads")
    before, after = [], []
    for i, size in enumerate(sizes):
        extent = window["dilation"][i] * (window["kernel"][i] - 1) + 1
        cut = strides[i] * (size - 1) + more[i] + extent - int(wanted[i])
        half = cut // 2
        before.append(half if mode == "SAME_UPPER" else cut - half)
        after.append(cut - before[-1])
    return _interleaved(before, after)


def _pool(kind: str) -> Operator:
    def make(build: Build, node: Node) -> Made:
        if any(name and build.uses[name] for name in node.outputs[1:]):
            raise Refusal("the indices of its maxima are used")
        node.require("storage_order", 0, 0)
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
    node.require("antialias", 0, 0)
    node.require("keep_aspect_ratio_policy", "stretch", "stretch")
    for name in ("cubic_coeff_a", "exclude_outside", "extrapolation_value"):
        node.get(name)
    if kind not in ("nearest", "linear"):
        raise Refusal(f"mode is {kind!r}; nearest and linear are understood")
    places = node.get("coordinate_transformation_mode", "asymmetric" if old else "half_pixel")
    rounding = node.get("nearest_mode", "floor" if old else "round_prefer_floor")
    before = [int(each) for each in image.shape[1:-1]]
    sizes, exact = _sizes(build, node, before, int(image.shape[-1]), old)
    attributes: dict[str, Any] = {"size": sizes, "kind": kind}
    if kind == "linear":
        one = any(size == 1 for size in sizes)
        if places not in ("half_pixel", "align_corners") and not (places == "pytorch_half_pixel" and not one):
            raise Refusal(f"coordinate_transformation_mode is {places!r} of the mode linear")
        attributes["align_corners"] = places == "align_corners"
        exact = exact or places == "align_corners"
    elif not _floors(places, rounding, before, sizes):
        raise Refusal(f"of the mode nearest coordinate_transformation_mode is {places!r}, nearest_mode {rounding!r}")
    if not exact:
        raise Refusal("scales times sizes are no whole numbers")
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
    numbers = [float(each) for each in (sizes if sizes else np.asarray(given).ravel())]
    by_axis = dict(zip([int(axis) % rank for axis in axes] if axes else range(rank), numbers))
    same = (SAMPLES, build.graph.batch) if sizes else (1,)
    if by_axis.pop(0, same[0]) not in same or by_axis.pop(1, channels if sizes else 1) != (channels if sizes else 1):
        raise Refusal("samples or channels are resized")
    wanted = [by_axis.get(i + 2, float(size) if sizes else 1.0) for i, size in enumerate(before)]
    if sizes:
        return [int(size) for size in wanted], True
    made = [int(np.floor(np.float32(size) * np.float32(scale))) for size, scale in zip(before, wanted)]
    return made, all(size * scale == after for size, scale, after in zip(before, wanted, made))


def _floors(places: str, rounding: str, before: list[int], after: list[int]) -> bool:
    """Returns whether element o of the output is element floor(o before / after) of the input."""
    if places == "asymmetric" and rounding == "floor":
        return True
    for size, made in zip(before, after):
        factor = made / size
        whole = factor == int(factor)
        if places == "half_pixel" and whole and rounding.startswith("round"):
            continue
        if places == "asymmetric" and factor in (1, 2) and rounding == "round_prefer_floor":
            continue
        return False
    return True


OPERATORS: dict[str, Operator] = {
    "AveragePool": _pool("average"), "Conv": _conv, "ConvTranspose": _conv_transpose,
    "GlobalAveragePool": _global_pool("average"), "GlobalMaxPool": _global_pool("max"), "LpPool": _pool("norm"),
    "MaxPool": _pool("max"), "Resize": _resize, "Upsample": _resize,
}  # fmt: skip
