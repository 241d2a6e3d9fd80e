"""Draws layers of images, of unequal sizes, and norms over a minibatch. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

EPSILON = {"epsilon": 0.1}  # of nearly equal elements a norm has large gradients, which float32 cannot follow


def begin(draw):
    sizes = [int(each) for each in draw.random.permutation([3, 4, 5, 6, 7])]
    space = 1 if draw.chance(0.2) else 2
    channels = 1 if draw.chance(0.15) else int(draw.random.integers(2, 5))
    shape = [*[size for size in sizes if size != channels][:space], channels]
    draw.data("image", kind="dense", shape=shape)
    if draw.chance(0.3):
        draw.data("other", kind="dense", shape=shape)
    if draw.chance(0.4):
        draw.data("x0", kind="dense", shape=[int(draw.random.integers(2, 6))])


def _image(draw, least=1):
    """Returns an image with at least so many elements along each dimension, or None."""
    return draw.pick(levels=[0], rank=(2, 3), where=lambda name: min(draw.shape(name)[:-1]) >= least)


def _each(draw, name, low, high):
    """Returns one number for all dimensions in space, or one for each."""
    space = len(draw.shape(name)) - 1
    return [int(each) for each in draw.random.integers(low, high, 1 if draw.chance(0.5) else space)]


def _padding(draw, name):
    if draw.chance(0.3):
        return {"same": True}
    if draw.chance(0.4):
        return {"padding": _each(draw, name, 0, 2)}
    if draw.chance(0.3):  # before and after
        return {"padding": [int(each) for each in draw.random.integers(0, 2, 2 * (len(draw.shape(name)) - 1))]}
    return {}


def conv(draw):
    name = _image(draw, 3)
    if name is None:
        return
    channels = draw.shape(name)[-1]
    groups = draw.one_of([k for k in (1, channels) if channels % k == 0])
    options = {"filters": groups * int(draw.random.integers(1, 4)), "kernel": _each(draw, name, 1, 4)}
    options.update(_padding(draw, name))
    if draw.chance(0.4):
        options["stride"] = _each(draw, name, 1, 3)
    elif draw.chance(0.2) and "same" in options:
        options["dilation"] = [2]
    if groups > 1:
        options["groups"] = groups
    if draw.chance(0.3):
        options["bias"] = False
    draw.add("conv", name, **options, **({"act": draw.one_of(["relu", "tanh", "leaky_relu"])} if draw.chance(0.5) else {}))


def conv_transpose(draw):
    name = draw.pick(levels=[0], rank=(2, 3), where=lambda name: max(draw.shape(name)[:-1]) <= 4)
    if name is None:
        return
    channels = draw.shape(name)[-1]
    groups = draw.one_of([k for k in (1, channels) if channels % k == 0])
    options = {
        "filters": groups * int(draw.random.integers(1, 3)),
        "kernel": _each(draw, name, 1, 4),
        "stride": _each(draw, name, 1, 3),
    }
    if draw.chance(0.4):
        options["same"] = True
    if groups > 1:
        options["groups"] = groups
    draw.add("conv_transpose", name, **options)


def pool(draw):
    name = _image(draw, 2)
    if name is None:
        return
    kind = draw.one_of(["max", "average", "max", "average", "sum"] if not draw.settings["export"] else ["max", "average"])
    if draw.chance(0.2):
        draw.add("pool", name, kind=kind, whole=True)
        return
    options = {"kernel": _each(draw, name, 2, 3)}
    if draw.chance(0.5):
        options["stride"] = _each(draw, name, 1, 3)
    if draw.chance(0.3):
        options["ceil"] = True
    elif draw.chance(0.3):
        options["same"] = True
    elif draw.chance(0.3):
        options["padding"] = [1]
        if kind == "average" and draw.chance(0.5):
            options["count_padding"] = True
    draw.add("pool", name, kind=kind, **options)


def batch_norm(draw):
    name = draw.pick(levels=[0], rank=(1, 2, 3))
    if name is not None:
        draw.add(
            "batch_norm", name, **EPSILON, momentum=draw.one_of([0.5, 0.9]), learnable=draw.chance(0.7), frozen=draw.chance(0.2)
        )


def norm(draw):
    name = _image(draw, 2)
    if name is None:
        return
    channels = draw.shape(name)[-1]
    kind = draw.one_of(["instance_norm", "local_response_norm", "layer_norm", "group_norm"])
    if draw.settings["export"] and (kind == "group_norm" or (kind == "local_response_norm" and len(draw.shape(name)) == 2)):
        kind = "instance_norm"  # onnxruntime has LRN of two dimensions in space alone
    if kind == "group_norm":
        draw.add(kind, name, groups=draw.one_of([k for k in range(1, channels + 1) if channels % k == 0]), **EPSILON)
    elif kind == "local_response_norm":
        draw.add(kind, name, size=draw.one_of([1, 3, 5]), alpha=draw.one_of([1e-4, 0.5]))
    else:
        draw.add(kind, name, **EPSILON, learnable=draw.chance(0.7))


def resize(draw):
    name = _image(draw)
    if name is None:
        return
    options = {"times": _each(draw, name, 1, 3)} if draw.chance(0.5) else {"size": _each(draw, name, 2, 8)}
    if draw.chance(0.5):
        options.update(kind="linear", align_corners=bool(draw.chance(0.5)))
    draw.add("resize", name, **options)


def block(draw):
    name = _image(draw, 3)
    if name is None:
        return
    kind = draw.one_of(["residual_block", "simple_img_conv_pool", "img_conv_group"])
    if kind == "residual_block":
        channels = draw.shape(name)[-1]
        filters = channels if draw.chance(0.5) else int(draw.random.integers(1, 4))
        draw.add(kind, name, filters=filters, stride=int(draw.random.integers(1, 3)), bottleneck=draw.chance(0.3))
    elif kind == "simple_img_conv_pool":
        draw.add(
            kind,
            name,
            filters=int(draw.random.integers(1, 4)),
            kernel=[2],
            pool_kernel=[2],
            pool_kind=draw.one_of(["max", "average"]),
        )
    else:
        filters = [int(each) for each in draw.random.integers(1, 4, 2)]
        stride = {"pool_stride": [1]} if draw.chance(0.5) else {}
        draw.add(kind, name, filters=filters, pool_kernel=[2], batch_norm=draw.chance(0.5), **stride)


IMAGES = [conv, conv, conv, conv_transpose, pool, pool, batch_norm, batch_norm, norm, resize, block]
