"""Convolution, pooling and resizing of images. PyTorch has their channels first, so that its expressions move them.
SPDX-License-Identifier: Apache-2.0
"""
from rows import real, row

LINE = {"x": real(3, 7, 4)}
IMAGE = {"x": real(3, 5, 6, 4)}
SPACE = {"x": real(2, 3, 4, 3, 2)}


def moved(expression):
    """An expression of `x`, channels first, whose result is moved back."""
    return f"(lambda x: {expression})(x.movedim(-1, 1)).movedim(1, -1)"


def weights(kernel, filters, inner, bias=True):
    """[filters, kernel..., inner], or of a transposed convolution [channels, kernel..., filters / groups]."""
    return {"weight": real(filters, *kernel, inner), **({"bias": real(bias)} if bias else {})}


ROWS = [
    row("conv", {"filters": 3, "kernel": 3}, LINE, moved("F.conv1d(x, weight.movedim(-1, 1), bias)"),
        parameters=weights([3], 3, 4, 3)),
    row("conv", {"filters": 2, "kernel": [3, 2], "stride": [2, 1], "padding": [1, 0]}, IMAGE,
        moved("F.conv2d(x, weight.movedim(-1, 1), bias, (2, 1), (1, 0))"), parameters=weights([3, 2], 2, 4, 2)),
    row("conv", {"filters": 2, "kernel": 2, "padding": [0, 2, 1, 0]}, IMAGE,
        moved("F.conv2d(F.pad(x, (1, 0, 0, 2)), weight.movedim(-1, 1), bias)"), parameters=weights([2, 2], 2, 4, 2)),
    row("conv", {"filters": 2, "kernel": [3, 2], "dilation": [1, 2], "same": True, "bias": False}, IMAGE,
        moved("F.conv2d(x, weight.movedim(-1, 1), padding='same', dilation=(1, 2))"),
        parameters=weights([3, 2], 2, 4, None)),
    row("conv", {"filters": 6, "kernel": 3, "groups": 2}, IMAGE,
        moved("F.conv2d(x, weight.movedim(-1, 1), bias, groups=2)"), parameters=weights([3, 3], 6, 2, 6)),
    row("conv", {"filters": 8, "kernel": 3, "padding": 1, "groups": 4}, IMAGE,
        moved("F.conv2d(x, weight.movedim(-1, 1), bias, padding=1, groups=4)"), parameters=weights([3, 3], 8, 1, 8)),
    row("conv", {"filters": 3, "kernel": 2, "stride": [1, 2, 1]}, SPACE,
        moved("F.conv3d(x, weight.movedim(-1, 1), bias, (1, 2, 1))"), parameters=weights([2, 2, 2], 3, 2, 3)),
    row("conv_transpose", {"filters": 3, "kernel": 3, "stride": 2}, LINE,
        moved("F.conv_transpose1d(x, weight.movedim(-1, 1), bias, 2)"), parameters=weights([3], 4, 3, 3)),
    row("conv_transpose", {"filters": 2, "kernel": 3, "stride": 2, "padding": 1, "output_padding": [1, 0]}, IMAGE,
        moved("F.conv_transpose2d(x, weight.movedim(-1, 1), bias, 2, 1, (1, 0))"),
        parameters=weights([3, 3], 4, 2, 2)),
    row("conv_transpose", {"filters": 6, "kernel": 2, "groups": 2, "dilation": 2, "bias": False}, IMAGE,
        moved("F.conv_transpose2d(x, weight.movedim(-1, 1), groups=2, dilation=2)"),
        parameters=weights([2, 2], 4, 3, None)),
    row("conv_transpose", {"filters": 1, "kernel": 2, "stride": 2}, SPACE,
        moved("F.conv_transpose3d(x, weight.movedim(-1, 1), bias, 2)"), parameters=weights([2, 2, 2], 2, 1, 1)),
    row("pool", {"kind": "max", "kernel": 3, "stride": 2, "padding": 1}, LINE, moved("F.max_pool1d(x, 3, 2, 1)")),
    row("pool", {"kind": "max", "kernel": 2, "ceil": True}, IMAGE, moved("F.max_pool2d(x, 2, ceil_mode=True)")),
    row("pool", {"kind": "max", "kernel": [2, 3], "stride": 1, "dilation": [2, 1]}, IMAGE,
        moved("F.max_pool2d(x, (2, 3), 1, dilation=(2, 1))")),
    row("pool", {"kind": "max", "kernel": 2, "stride": [1, 2, 1]}, SPACE, moved("F.max_pool3d(x, 2, (1, 2, 1))")),
    row("pool", {"kind": "average", "kernel": 3, "stride": 2, "padding": 1}, IMAGE,
        moved("F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)")),
    row("pool", {"kind": "average", "kernel": 3, "stride": 2, "padding": 1, "count_padding": True, "ceil": True}, IMAGE,
        moved("F.avg_pool2d(x, 3, 2, 1, ceil_mode=True)")),
    row("pool", {"kind": "average", "kernel": 2}, LINE, moved("F.avg_pool1d(x, 2)")),
    row("pool", {"kind": "average", "whole": True}, SPACE, moved("F.adaptive_avg_pool3d(x, 1)")),
    row("pool", {"kind": "norm", "kernel": 2, "power": 3.0}, IMAGE, moved("F.lp_pool2d(x.abs(), 3.0, 2)")),
    row("pool", {"kind": "sum", "kernel": 2}, IMAGE, moved("F.avg_pool2d(x, 2, divisor_override=1)")),
    row("block_expand", {"kernel": [2, 3], "stride": [1, 2], "padding": [1, 0]}, IMAGE,
        "F.unfold(x.movedim(-1, 1), (2, 3), 1, (1, 0), (1, 2)).view(3, 4, 6, -1).permute(0, 3, 2, 1).flatten(2)"),
    row("spatial_pyramid_pool", {"levels": [1, 2]}, IMAGE,
        "torch.cat([F.max_pool2d(x.movedim(-1, 1), k, s).movedim(1, -1).flatten(1) "
        "for k, s in (((5, 6), (5, 6)), ((3, 3), (2, 3)))], 1)"),
    row("resize", {"size": [7, 4]}, IMAGE, moved("F.interpolate(x, (7, 4))")),
    row("resize", {"times": 2}, SPACE, moved("F.interpolate(x, scale_factor=2)")),
    row("resize", {"size": 11, "kind": "linear"}, LINE, moved("F.interpolate(x, 11, mode='linear')")),
    row("resize", {"size": [7, 4], "kind": "linear"}, IMAGE, moved("F.interpolate(x, (7, 4), mode='bilinear')")),
    row("resize", {"size": [8, 3], "kind": "linear", "align_corners": True}, IMAGE,
        moved("F.interpolate(x, (8, 3), mode='bilinear', align_corners=True)")),
    row("resize", {"times": [2, 1, 3], "kind": "linear"}, SPACE,
        moved("F.interpolate(x, scale_factor=(2, 1, 3), mode='trilinear')")),
    row("batch_norm", {}, IMAGE, moved("F.batch_norm(x, None, None, scale, shift, training=True)"),
        parameters={"scale": real(4), "shift": real(4)}, buffers={"moving_mean": real(4), "moving_variance": real(4)}),
    row("local_response_norm", {"size": 3, "alpha": 0.2}, IMAGE, moved("F.local_response_norm(x, 3, 0.2)")),
]
