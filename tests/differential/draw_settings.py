"""Draws how a program is trained. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

# Rates at which ten updates change a parameter by about a tenth.
UPDATERS = {
    "sgd": {"learning_rate": 0.02}, "adam": {"learning_rate": 0.01}, "adagrad": {"learning_rate": 0.02, "initial_sum": 0.1},
    "rowwise_adagrad": {"learning_rate": 0.02, "initial_sum": 0.1}, "rmsprop": {"learning_rate": 0.005},
    "adadelta": {"learning_rate": 0.5, "epsilon": 1e-4}, "adamax": {"learning_rate": 0.01}, "lion": {"learning_rate": 0.005},
    "nadam": {"learning_rate": 0.01}, "radam": {"learning_rate": 0.01, "beta2": 0.9}, "ftrl": {"learning_rate": 0.05},
    "proximal_sgd": {"learning_rate": 0.02}, "proximal_adagrad": {"learning_rate": 0.02}, "lamb": {"learning_rate": 0.01},
}  # fmt: skip
DECAYING = {"sgd", "adam", "adagrad", "rowwise_adagrad", "rmsprop", "adadelta", "adamax", "lion", "nadam", "radam", "lamb"}
SCHEDULES = [
    {"type": "step", "steps": 3, "rate": 0.5}, {"type": "exponential", "steps": 4, "rate": 0.5},
    {"type": "inverse", "steps": 3, "power": 0.5}, {"type": "linear", "steps": 6, "start": 0.2, "end": 1.5},
    {"type": "polynomial", "steps": 8, "power": 2.0, "end": 0.1}, {"type": "cosine", "steps": 7, "end": 0.2, "warm_up": 3},
    {"type": "multi_step", "milestones": [2, 5], "rate": 0.3}, {"type": "constant", "warm_up": 4},
]  # fmt: skip


def settings_of(random, seed, profile):
    """Returns what is known before the layers: numbers of samples, minibatches and passes, and what is checked."""
    batches, passes = ((1, 10), (2, 5), (5, 2), (10, 1))[random.integers(4)]
    batch = int(random.integers(2, 5))
    rest = int(random.integers(0, batch)) if batches > 1 else 0
    # A last minibatch of one sample has no variance for norms.
    samples = batches * batch - (rest if batch - rest > 1 else 0)
    return {"seed": int(seed), "samples": samples, "batch": batch, "passes": passes, "export": profile.export,
            "shards": False, "texts": profile.generates, "empty": bool(random.random() < 0.5)}  # fmt: skip


def updater_of(random, tables):
    """tables: whether gradients may be row-sparse, which updaters of whole tensors refuse."""
    names = [name for name in UPDATERS if not (tables and name == "lamb")]
    kind = str(random.choice(names)) if random.random() < 0.7 else "sgd"
    options = {"type": kind, **UPDATERS[kind]}
    if kind == "sgd" and random.random() < 0.6:
        options.update(momentum=0.8, nesterov=bool(random.random() < 0.5))
    if kind == "adam" and random.random() < 0.5:
        options.update(decoupled=True, weight_decay=0.1)
    if kind == "rmsprop" and random.random() < 0.5:
        options.update(centered=True, momentum=0.5, epsilon=1e-3)
    if kind in ("ftrl", "proximal_sgd", "proximal_adagrad") and random.random() < 0.5:
        options.update(l1_strength=0.01, l2_strength=0.1)
    if kind in DECAYING and random.random() < 0.3:
        options["weight_decay"] = 0.05
    common = {"clip_norm": 0.5, "clip_value": 0.05, "l1": 0.01, "l2": 0.05}
    options.update({name: value for name, value in common.items() if random.random() < 0.15})
    if random.random() < 0.35:
        options["schedule"] = SCHEDULES[random.integers(len(SCHEDULES))]
    return options
