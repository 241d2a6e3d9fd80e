"""Words as vectors, as in the book's chapter "Word2vec": from four words of a text the next one, over one table.

The texts are the licences that every Debian has; one of them, the GPL 2, is the test, of which much is in the others,
too. Prints the cost on the test, in nats for each word, beside the entropy of its words, the least that a model without
context can reach; and words whose vectors are near.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import math

import numpy as np

import tenon
from tenon import dataset

data = dataset.licences()
vocabulary = data.vocabulary


def vector(word: str) -> tenon.Layer:
    """The vector of a word: the four layers share one table, since they have one parameter name."""
    number = tenon.layer.data(word, data.types[word])
    return tenon.layer.embedding(number, vocabulary=len(vocabulary), size=16, parameter_name="table",
                                 param={"weight": {"init": "normal", "init_std": 0.01}})  # fmt: skip


context = tenon.layer.concat(*(vector(f"word_{place}") for place in range(4)))
hidden = tenon.layer.fc(context, size=64, act="tanh")
score = tenon.layer.fc(hidden, size=len(vocabulary))
cost = tenon.layer.cross_entropy(score, tenon.layer.data("next", data.types["next"]), from_logits=True)

parameters = tenon.parameters.create(cost)
tenon.train(cost, parameters, data.new(), passes=4, updater=tenon.updater.Adam(learning_rate=0.005))

test_cost = tenon.test(cost, parameters, data.test).cost
counts = np.bincount([sample["next"] for sample in data.test.samples()])
shares = counts[counts > 0] / counts.sum()
entropy = -float(shares @ np.log(shares))
print(f"test: {test_cost:.2f} nats, perplexity {math.exp(test_cost):.1f}")
print(f"words alone: {entropy:.2f} nats, perplexity {math.exp(entropy):.1f}")

table = parameters["table.weight"][:400]  # the most frequent words
table = table / np.linalg.norm(table, axis=1, keepdims=True)
near = {}
for word in ("may", "modify", "program", "you", "1"):
    order = np.argsort(-table @ table[vocabulary.index(word)])
    near[word] = [vocabulary[number] for number in order[1:6]]
    print(f"near {word}: {', '.join(near[word])}")
