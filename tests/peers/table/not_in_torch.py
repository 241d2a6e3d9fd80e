"""Types that PyTorch lacks, and why they have no row. SPDX-License-Identifier: Apache-2.0"""

METRIC = "a metric; PyTorch has none"
COST = "PyTorch has no such cost"
OPTIMIZER = "torch.optim has no such optimizer"
IMAGES = "made of conv, batch_norm, pool and others, which have rows"
SEQUENCES = "of sequences of different lengths, which PyTorch has no operator for"

NOT_IN_TORCH = {
    "auc": METRIC,
    "confusion_matrix": METRIC,
    "macro_precision_recall": METRIC,
    "mean_average_precision": METRIC,
    "mean_iou": METRIC,
    "ndcg": METRIC,
    "pnpair": METRIC,
    "precision_recall": METRIC,
    "categorical_focal": COST,
    "dice": COST,
    "focal": COST + "; torchvision has",
    "hierarchical_sigmoid": COST,
    "hinge": COST + ": MultiLabelMarginLoss and HingeEmbeddingLoss are others",
    "lambda_cost": COST,
    "less_than": COST,
    "less_than_share": COST,
    "nce": COST,
    "rank_cost": COST,
    "should_be_false": COST,
    "should_be_true": COST,
    "ftrl": OPTIMIZER,
    "lamb": OPTIMIZER,
    "lion": OPTIMIZER,
    "proximal_adagrad": OPTIMIZER,
    "proximal_sgd": OPTIMIZER,
    "rowwise_adagrad": OPTIMIZER,
    "context_projection": SEQUENCES,
    "sequence_expand": SEQUENCES,
    "sequence_unpad": SEQUENCES,
    "constant": "a value, not a function",
    "parameter": "a value, not a function",
    "dropout": "random: PyTorch draws other numbers",
    "spatial_dropout": "random: PyTorch draws other numbers",
    "formula": "any function, by a text",
    "expand": "needs a shape alone: broadcasting has rows with add",
    "factorization_machine": "PyTorch has no such layer",
    "img_conv_group": IMAGES,
    "residual_block": IMAGES,
    "simple_img_conv_pool": IMAGES,
    "mixed": "a sum of projections, which have rows of their own",
    "multi_head_attention": "made of fc and attention, which have rows",
    "positional_encoding": "PyTorch has no such layer",
    "standardize": "PyTorch has no such layer",
}
