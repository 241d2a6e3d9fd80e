"""Costs: one number for each sample, the sum over its values. SPDX-License-Identifier: Apache-2.0"""
from rows import distribution, integers, one_of, positive, real, row, share, truth

XY = {"x": real(5, 3), "y": real(5, 3)}
XYW = {**XY, "w": positive(5, 3)}
CLASSES = {"x": real(6, 4), "y": integers(4, 6)}

ROWS = [
    row("square_error", {}, XY, "((x - y) ** 2).sum(1)"),
    row("square_error", {}, XYW, "(w * (x - y) ** 2).sum(1)"),
    row("absolute_error", {}, XY, "F.l1_loss(x, y, reduction='none').sum(1)"),
    row("huber", {"delta": 0.7}, XY, "F.huber_loss(x, y, reduction='none', delta=0.7).sum(1)"),
    row("smooth_l1", {"beta": 0.7}, XYW, "(w * F.smooth_l1_loss(x, y, reduction='none', beta=0.7)).sum(1)"),
    row("poisson_nll", {}, {"x": real(5, 3), "y": positive(5, 3)},
        "F.poisson_nll_loss(x, y, reduction='none').sum(1)"),
    row("gaussian_nll", {}, {**XY, "v": positive(5, 3)}, "F.gaussian_nll_loss(x, y, v, reduction='none').sum(1)"),
    row("binary_cross_entropy", {}, {"x": share(5, 3), "y": truth(5, 3)},
        "F.binary_cross_entropy(x, y, reduction='none').sum(1)"),
    row("binary_cross_entropy", {"from_logits": True, "positive_weight": 2.0}, {"x": real(5, 3), "y": truth(5, 3)},
        "F.binary_cross_entropy_with_logits(x, y, reduction='none', pos_weight=torch.tensor(2.0)).sum(1)"),
    row("cross_entropy", {"from_logits": True}, CLASSES, "F.cross_entropy(x, y, reduction='none')"),
    row("cross_entropy", {"from_logits": True, "class_weights": [1.0, 2.0, 0.5, 3.0]}, CLASSES,
        "F.cross_entropy(x, y, torch.tensor([1, 2, 0.5, 3]).double(), reduction='none')"),
    row("cross_entropy", {"from_logits": True, "ignore_index": 1}, CLASSES,
        "F.cross_entropy(x, y, ignore_index=1, reduction='none')"),
    row("cross_entropy", {"from_logits": True, "label_smoothing": 0.1}, CLASSES,
        "F.cross_entropy(x, y, label_smoothing=0.1, reduction='none')"),
    row("kl_divergence", {}, {"x": distribution(5, 3), "y": distribution(5, 3)},
        "F.kl_div(torch.log(x), y, reduction='none').sum(1)"),
    row("triplet", {}, {"a": real(5, 3), "p": real(5, 3), "n": real(5, 3)},
        "F.triplet_margin_loss(a, p, n, reduction='none', eps=0)"),
    row("cosine_embedding", {"margin": 0.2}, {"a": real(6, 3), "b": real(6, 3), "y": one_of((-1, 1), 6)},
        "F.cosine_embedding_loss(a, b, y, margin=0.2, reduction='none')"),
    row("margin_ranking", {"margin": 0.3}, {"a": real(6), "b": real(6), "y": one_of((-1, 1), 6)},
        "F.margin_ranking_loss(a, b, y, margin=0.3, reduction='none')"),
    row("sum_cost", {}, {"x": real(5, 3)}, "x.sum(1)"),
    row("accuracy", {}, CLASSES, "(x.argmax(1) == y).double().mean()", training=False),
    row("accuracy", {"ignore_index": 1}, CLASSES, "(x.argmax(1) == y)[y != 1].double().mean()", training=False),
    row("classification_error", {}, CLASSES, "(x.argmax(1) != y).double().mean()", training=False),
    row("top_k_accuracy", {"k": 2}, CLASSES, "(x.topk(2).indices == y[:, None]).any(1).double().mean()", training=False),
    row("r2", {}, XY, "1 - ((x - y) ** 2).sum() / ((y - y.mean()) ** 2).sum()", training=False),
    row("correlation", {}, XY, "torch.corrcoef(torch.stack([x.flatten(), y.flatten()]))[0, 1]", training=False),
    row("average", {}, {"x": real(5, 3)}, "x.mean()", training=False),
    row("mean_squared_error", {}, XY, "F.mse_loss(x, y)", training=False),
    row("mean_absolute_error", {}, XY, "F.l1_loss(x, y)", training=False),
    row("perplexity", {}, {"x": positive(7)}, "torch.exp(x.mean())", training=False),
]
