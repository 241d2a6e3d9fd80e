"""Writers of layers of images, of normalisations, and of blocks of them. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tenon.onnx._emit import Emit, Item, Writer, Written
from tenon.onnx._values import Refusal


def _all(given: Any, space: int) -> list[int]:
    """Returns one number for each dimension in space."""
    numbers = [int(each) for each in given]
    return numbers * space if len(numbers) == 1 else numbers


def _window(item: Item, image: Written, stride: list[int]) -> dict[str, Any]:
    """Returns the attributes of a window over an image, its padding stated."""
    sizes = image.sizes[:-1]
    space = len(sizes)
    kernel = _all(item.attributes["kernel"], space)
    strides = _all(item.attributes.get("stride", stride), space)
    dilations = _all(item.attributes.get("dilation", [1]), space)
    given = [int(each) for each in item.attributes.get("padding", [0])]
    before, after = (given[::2], given[1::2]) if len(given) == 2 * space else (_all(given, space),) * 2
    if item.attributes["same"]:
        added = [max(0, (-(-size // s) - 1) * s + d * (k - 1) + 1 - size)
                 for size, k, s, d in zip(sizes, kernel, strides, dilations, strict=True)]  # fmt: skip
        before, after = [each // 2 for each in added], [each - each // 2 for each in added]
    return {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": [*before, *after]}


def _places(sizes: Sequence[int], window: dict[str, Any]) -> list[int]:
    """Returns the numbers of windows."""
    space = len(sizes)
    pads = window["pads"]
    return [
        (sizes[i] + pads[i] + pads[space + i] - window["dilations"][i] * (window["kernel_shape"][i] - 1) - 1)
        // window["strides"][i] + 1
        for i in range(space)
    ]  # fmt: skip


def _conv(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    image = emit.image(inputs[0])
    window = _window(item, image, [1])
    weight = np.moveaxis(item.parameter("weight"), -1, 1)
    sizes = (*_places(image.sizes[:-1], window), weight.shape[0])
    return _of_weight(emit, item, "Conv", image, weight, window, sizes)


def _of_weight(
    emit: Emit, item: Item, op: str, image: Written, weight: Any, window: dict[str, Any], sizes: tuple[int, ...]
) -> Written:
    names = [image.name, emit.numbers(weight, f"{item.name}.weight")]
    if "bias" in item.parameters:
        names.append(emit.numbers(item.parameter("bias"), f"{item.name}.bias"))
    made = emit.node(op, names, item.name, group=int(item.attributes["groups"]), **window)
    return replace(image, name=made, sizes=sizes)


def _conv_transpose(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    image = emit.image(inputs[0])
    space = len(image.sizes) - 1
    window = _window(replace(item, attributes={**item.attributes, "same": False}), image, [1])
    more = _all(item.attributes.get("output_padding", [0]), space)
    if item.attributes["same"]:
        extents = [d * (k - 1) + 1 for k, d in zip(window["kernel_shape"], window["dilations"], strict=True)]
        cut = [max(extent - stride, 0) for extent, stride in zip(extents, window["strides"], strict=True)]
        window["pads"] = [*(each // 2 for each in cut), *(each - each // 2 for each in cut)]
        more = [max(stride - extent, 0) for extent, stride in zip(extents, window["strides"], strict=True)]
    weight = np.moveaxis(item.parameter("weight"), -1, 1)
    return _of_weight(emit, item, "ConvTranspose", image, weight, {**window, "output_padding": more}, item.sizes)


def _pool(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    kind, image = item.attributes["kind"], emit.image(inputs[0])
    if kind == "sum" or (kind == "norm" and item.attributes["power"] != int(item.attributes["power"])):
        raise Refusal(f"the kind {kind!r} with power {item.attributes['power']} has no operator")
    op = {"max": "MaxPool", "average": "AveragePool", "norm": "LpPool"}[kind]
    power = {"p": int(item.attributes["power"])} if kind == "norm" else {}
    if item.attributes["whole"]:
        name = emit.node(f"Global{op}", [image.name], item.name, **power)
        return replace(image, name=name, sizes=(*[1] * (len(image.sizes) - 1), image.sizes[-1]))
    window = _window(item, image, item.attributes["kernel"])
    sizes = _places(image.sizes[:-1], window) if not item.sizes else list(item.sizes[:-1])
    dilated = any(each > 1 for each in window["dilations"])
    if kind != "max":
        del window["dilations"]
        if dilated or (item.attributes["ceil"] and kind == "norm"):
            raise Refusal(f"the kind {kind!r} with dilation or ceil has no operator of version 17")
    if kind == "average":
        window["count_include_pad"] = int(item.attributes["count_padding"])
    if kind != "norm":
        window["ceil_mode"] = int(item.attributes["ceil"])
    return replace(
        image, name=emit.node(op, [image.name], item.name, **window, **power), sizes=(*sizes, image.sizes[-1])
    )


def _resize(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    image, kind = emit.image(inputs[0]), item.attributes["kind"]
    places = "align_corners" if item.attributes["align_corners"] else "half_pixel" if kind == "linear" else "asymmetric"
    for axis, (new, old) in enumerate(zip(item.sizes[:-1], image.sizes[:-1], strict=True)):
        if kind == "nearest" and not _floors(new, old):
            image = _nearest(emit, item, image, axis)
    return _resized(emit, item, image, item.sizes, {"mode": kind, "coordinate_transformation_mode": places})


def _resized(emit: Emit, item: Item, image: Written, sizes: tuple[int, ...], given: dict[str, str]) -> Written:
    """Writes Resize, with scales where they are exact: rounded ones may make other sizes."""
    pairs = list(zip(sizes[:-1], image.sizes[:-1], strict=True))
    scales = np.array([1, 1, *(new / old for new, old in pairs)], np.float32)
    if all(float(scale) * old == new for scale, (new, old) in zip(scales[2:], pairs, strict=True)):
        names = ["", emit.numbers(scales, f"{item.name}.scales")]
    else:
        names = ["", "", _sizes_of(emit, image, f"{item.name}.sizes", sizes[:-1])]
    made = emit.node("Resize", [image.name, *names], item.name, nearest_mode="floor", **given)
    return replace(image, name=made, sizes=sizes)


def _floors(new: int, old: int) -> bool:
    """Returns whether runtimes, which divide in float32, find element floor(o old / new) for each element o."""
    numbers = np.arange(new)
    places = numbers.astype(np.float32) / (np.float32(new) / np.float32(old))
    return bool((np.floor(places) == numbers * old // new).all())


def _nearest(emit: Emit, item: Item, image: Written, axis: int) -> Written:
    """Writes a resize along one dimension in whole steps: of each element several, of which every so many-th stays."""
    new, old, space = item.sizes[axis], image.sizes[axis], len(image.sizes) - 1
    common = math.gcd(new, old)
    longer, shorter = list(image.sizes), list(image.sizes)
    longer[axis], shorter[axis] = old * new // common, new
    if new > common:
        given = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"}
        image = _resized(emit, item, image, tuple(longer), given)
    strides = [old // common if each == axis else 1 for each in range(space)]
    name = emit.node("AveragePool", [image.name], f"{item.name}.chosen", kernel_shape=[1] * space, strides=strides)
    return replace(image, name=name, sizes=tuple(shorter))


def _sizes_of(emit: Emit, image: Written, name: str, space: tuple[int, ...]) -> str:
    """Returns the sizes of an image that becomes one of other sizes in space, for any number of samples."""
    bounds = [emit.numbers([number], f"{name}.{what}", np.int64) for what, number in (("start", 0), ("end", 2))]
    kept = emit.node("Slice", [emit.node("Shape", [image.name], f"{name}.shape"), *bounds], f"{name}.kept")
    return emit.node("Concat", [kept, emit.numbers(space, f"{name}.space", np.int64)], name, axis=0)


def _lrn(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    image = emit.image(inputs[0])
    size = int(item.attributes["size"])
    if size % 2 == 0:
        raise Refusal(f"size is {size}; even ones have other neighbours in ONNX")
    given = {"alpha": "alpha", "beta": "beta", "bias": "k"}
    numbers = {name: float(item.attributes[own]) for name, own in given.items()}
    return image.like(emit.node("LRN", [image.name], item.name, size=size, **numbers))


def _norm(op: str, *suffixes: str) -> Writer:
    """Returns the writer of a normalisation by channel. suffixes: of its parameters, scale and shift first."""

    def write(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
        image = emit.image(inputs[0])
        absent = {"scale": np.ones, "shift": np.zeros}
        values = [
            item.parameters[each] if each in item.parameters else absent[each](image.sizes[-1]) for each in suffixes
        ]
        names = [emit.numbers(value, f"{item.name}.{each}") for each, value in zip(suffixes, values, strict=True)]
        more = {"momentum": float(item.attributes["momentum"])} if "momentum" in item.attributes else {}
        epsilon = float(item.attributes["epsilon"])
        return image.like(emit.node(op, [image.name, *names], item.name, epsilon=epsilon, **more))

    return write


def _layer_norm(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    value = emit.plain(inputs[0])
    absent = {"scale": np.ones, "shift": np.zeros}
    names = [emit.numbers(item.parameters.get(each, make(value.sizes[-1])), f"{item.name}.{each}")
             for each, make in absent.items()]  # fmt: skip
    epsilon = float(item.attributes["epsilon"])
    return value.like(emit.node("LayerNormalization", [value.name, *names], item.name, axis=-1, epsilon=epsilon))


def _convolved(
    emit: Emit, item: Item, value: Written, number: int, normalise: bool, act: str, **attributes: Any
) -> Written:
    """Writes step `number` of a block: a convolution, a normalisation and an activation."""
    given = {"same": True, "bias": not normalise, **attributes}
    value = emit.write(emit.inner(item, "conv", given, f"conv_{number}"), [value])
    if normalise:
        value = emit.write(emit.inner(item, "batch_norm", {}, f"norm_{number}"), [value])
    return emit.write(emit.inner(item, act, {}, f"act_{number}"), [value]) if act else value


def _pooled(emit: Emit, item: Item, value: Written) -> Written:
    own = item.attributes
    given = {
        "kind": own["pool_kind"],
        "kernel": own["pool_kernel"],
        "stride": own.get("pool_stride", own["pool_kernel"]),
    }
    return emit.write(emit.inner(item, "pool", given, "pool"), [value])


def _conv_pool(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    own = item.attributes
    conv = emit.inner(item, "conv", {"filters": own["filters"], "kernel": own["kernel"]}, "conv")
    value = emit.write(replace(conv, parameters=item.parameters), inputs)
    if own["activation"]:
        value = emit.write(emit.inner(item, own["activation"], {}, "activation"), [value])
    return _pooled(emit, item, value)


def _conv_group(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    own, value = item.attributes, inputs[0]
    for number, filters in enumerate(own["filters"]):
        value = _convolved(emit, item, value, number, own["batch_norm"], own["activation"], filters=filters,
                           kernel=own.get("kernel", [3]))  # fmt: skip
    return _pooled(emit, item, value)


def _residual_block(emit: Emit, item: Item, inputs: Sequence[Written]) -> Written:
    filters, stride = int(item.attributes["filters"]), int(item.attributes["stride"])
    deep = item.attributes["bottleneck"]
    steps = [(filters, 3, stride), (filters, 3, 1)]
    if deep:
        steps = [(filters, 1, 1), (filters, 3, stride), (4 * filters, 1, 1)]
    value = inputs[0]
    for number, (channels, kernel, by) in enumerate(steps):
        act = "relu" if number < len(steps) - 1 else ""
        value = _convolved(emit, item, value, number, True, act, filters=channels, kernel=[kernel], stride=[by])
    shortcut = inputs[0]
    if "conv_3.weight" in item.parameters:
        shortcut = _convolved(emit, item, shortcut, 3, True, "", filters=steps[-1][0], kernel=[1], stride=[stride])
    value = emit.write(emit.inner(item, "add", {}, "add"), [value, shortcut])
    return emit.write(emit.inner(item, "relu", {}, "relu"), [value])


WRITERS: dict[str, Writer] = {
    "conv": _conv, "conv_transpose": _conv_transpose, "pool": _pool, "resize": _resize, "local_response_norm": _lrn,
    "batch_norm": _norm("BatchNormalization", "scale", "shift", "moving_mean", "moving_variance"),
    "instance_norm": _norm("InstanceNormalization", "scale", "shift"), "layer_norm": _layer_norm,
    "simple_img_conv_pool": _conv_pool, "img_conv_group": _conv_group, "residual_block": _residual_block,
}  # fmt: skip
IMAGE_TYPES = {*WRITERS} - {"layer_norm"}  # those whose first input are images, where it has three dimensions or more
