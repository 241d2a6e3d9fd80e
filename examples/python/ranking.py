"""Ranking with three branches that share their parameters.

    A -> f -\\
    Q -> f --> cost
    B -> f -/

Each word belongs to one of 8 topics, which the program is not told. A pair says that word A fits query Q better than
word B does. Prints how often that holds for words of the right and a wrong topic, before and after the training.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import tenon

WORDS, TOPICS = 400, 8
random = np.random.default_rng(0)
topics = random.integers(0, TOPICS, WORDS)


def f(word: str) -> tenon.Layer:
    vector = tenon.layer.embedding(word, vocabulary=WORDS, size=16, parameter_name="embedding")
    return tenon.layer.softmax(vector, size=TOPICS, parameter_name="semantic")


# Three subnets, which share parameters because their layers have the same parameter names.
fA, fB, fQ = f("A"), f("B"), f("Q")
topology = tenon.layer.less_than(tenon.layer.cross_entropy(fA, fQ), tenon.layer.cross_entropy(fB, fQ))


def read_ranking_model_data() -> Iterator[dict[str, int]]:
    for _ in range(10_000):
        query, other = random.integers(0, WORDS, 2)
        while topics[other] == topics[query]:
            other = random.integers(0, WORDS)
        yield {"A": int(random.choice(np.flatnonzero(topics == topics[query]))), "B": int(other), "Q": int(query)}


word = tenon.data_type.integer_value(WORDS)
reader = tenon.reader.typed(read_ranking_model_data, {"A": word, "B": word, "Q": word})
parameters = tenon.parameters.create(topology, reader=reader)


def share() -> float:
    """How often a word is nearer to one of its own topic than to one of another, by the overlap of their vectors."""
    samples = list(read_ranking_model_data())[:2000]
    a, b, q = (tenon.infer(fA, parameters, [sample[name] for sample in samples]) for name in "ABQ")
    return float(np.mean((a * q).sum(1) > (b * q).sum(1)))


before = share()
updater = tenon.updater.Adam(learning_rate=0.02)
tenon.train(topology, parameters, reader=read_ranking_model_data, passes=6, updater=updater)
after = share()
print(f"pairs in the right order: {before:.3f} before, {after:.3f} after the training")
