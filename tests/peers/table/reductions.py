"""Reductions, normalisations and softmax. SPDX-License-Identifier: Apache-2.0"""
from rows import positive, real, row

X = {"x": real(5, 3, 4)}
CHANNELS = {"x": real(5, 3, 6)}
SCALE = {"scale": real(6), "shift": real(6)}

ROWS = [
    row("sum", {"axis": 1}, X, "x.sum(1)"),
    row("sum", {}, X, "x.sum((1, 2))"),
    row("mean", {"axes": [1, 2], "keep_dimensions": True}, X, "x.mean((1, 2), keepdim=True)"),
    row("max", {"axis": -1}, X, "x.amax(2)"),
    row("min", {"axis": 1}, X, "x.amin(1)"),
    row("variance", {"axis": 2}, X, "x.var(2, unbiased=False)"),
    row("variance", {"axis": 1, "unbiased": True}, X, "x.var(1, unbiased=True)"),
    row("standard_deviation", {"axis": 2}, X, "x.std(2, unbiased=False)"),
    row("norm", {"axis": 2}, X, "torch.linalg.vector_norm(x, 2, 2)"),
    row("norm", {"axis": 1, "order": 1}, X, "torch.linalg.vector_norm(x, 1, 1)"),
    row("log_sum_exp", {"axis": 1}, X, "torch.logsumexp(x, 1)"),
    row("product", {"axis": 2}, X, "x.prod(2)"),
    row("softmax", {}, X, "torch.softmax(x, 2)"),
    row("softmax", {"axis": 1}, X, "torch.softmax(x, 1)"),
    row("log_softmax", {"axis": 1}, X, "torch.log_softmax(x, 1)"),
    row("layer_norm", {}, CHANNELS, "F.layer_norm(x, (6,), scale, shift)", parameters=SCALE),
    row("rms_norm", {"learnable": False}, CHANNELS, "x * torch.rsqrt((x * x).mean(2, keepdim=True) + 1e-5)"),
    # Moving statistics move with updates, of which a row of a layer makes none.
    row("batch_norm", {}, {"x": real(7, 6)}, "F.batch_norm(x, None, None, scale, shift, training=True)",
        parameters=SCALE, buffers={"moving_mean": real(6), "moving_variance": positive(6)}),
    row("batch_norm", {}, {"x": real(7, 6)}, "F.batch_norm(x, moving_mean, moving_variance, scale, shift)",
        parameters=SCALE, buffers={"moving_mean": real(6), "moving_variance": positive(6)}, training=False),
    row("group_norm", {"groups": 2}, CHANNELS, "F.group_norm(x.transpose(1, 2), 2, scale, shift).transpose(1, 2)",
        parameters=SCALE),
    row("instance_norm", {}, CHANNELS, "F.instance_norm(x.transpose(1, 2), weight=scale, bias=shift).transpose(1, 2)",
        parameters=SCALE),
    row("normalize", {}, CHANNELS, "F.normalize(x, dim=2)"),
    row("normalize", {"axis": 1, "order": 1}, CHANNELS, "F.normalize(x, 1, dim=1)"),
    row("local_response_norm", {"size": 3, "alpha": 0.2}, CHANNELS,
        "F.local_response_norm(x.transpose(1, 2), 3, 0.2).transpose(1, 2)"),
]
