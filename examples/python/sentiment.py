"""The verdict of reviews, as in the book's chapter "Sentiment analysis": convolutions over time, and stacked LSTM layers,
each second one reversed.

The order of the words decides, not which words there are: a review praises one thing and blames another, and "but" or
"although" says which of them counts. The data is made by examples/sentiment/generate. Prints the test accuracy beside
that of the mean of the words' vectors.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import tenon

WORDS = 64  # more than there are
folder = tempfile.TemporaryDirectory()
generate = Path(__file__).parents[1] / "sentiment/generate"
subprocess.run([sys.executable, "-B", str(generate), folder.name], check=True)
vocabulary = f"{folder.name}/words.txt"
train = tenon.reader.text(files=[f"{folder.name}/train.txt"], labelled=True, labels=["bad", "good"],
                          save_vocabulary=vocabulary)  # fmt: skip
test = tenon.reader.text(files=[f"{folder.name}/test.txt"], labelled=True, labels=["bad", "good"],
                         vocabulary=vocabulary)  # fmt: skip
label = tenon.layer.data("label", tenon.data_type.integer_value(2))
words = tenon.layer.data("words", tenon.data_type.integer_value_sequence(WORDS))
vectors = tenon.layer.embedding(words, vocabulary=WORDS, size=32)


# docs: networks
def around(length: int) -> tenon.Layer:
    """The maximum over time of a convolution of so many words."""
    windows = tenon.layer.context_projection(vectors, length=length)
    return tenon.layer.sequence_pool(tenon.layer.fc(windows, size=32, act="tanh"), kind="max")


def convolution() -> tenon.Layer:
    return tenon.layer.fc(around(3), around(4), size=2)


def stacked(layers: int = 3) -> tenon.Layer:
    """Each layer reads the words, and what the layer before read in the other direction."""
    made = tenon.layer.lstm(vectors, size=32)
    for number in range(1, layers):
        made = tenon.layer.lstm(tenon.layer.concat(vectors, made), size=32, reverse=number % 2 == 1)
    return tenon.layer.fc(tenon.layer.sequence_pool(made, kind="max"), size=2)

# docs: end


def bag() -> tenon.Layer:
    return tenon.layer.fc(tenon.layer.sequence_pool(vectors, kind="mean"), size=2)


accuracies = {}
for network in (convolution, stacked, bag):
    score = network()
    topology = [tenon.layer.cross_entropy(score, label, from_logits=True), tenon.layer.accuracy(score, label)]
    parameters = tenon.parameters.create(topology, seed=1)
    tenon.train(topology, parameters, train.shuffle(), passes=5, batch_size=32,
                updater=tenon.updater.Adam(learning_rate=0.005))  # fmt: skip
    accuracies[network.__name__] = tenon.test(topology, parameters, test).metrics["accuracy"]
    print(f"{network.__name__}: accuracy {accuracies[network.__name__]:.4f}")
