"""Handwritten digits, as in the book's chapter "Recognize digits": softmax regression, and a network of three layers.

The digits are those that scikit-learn ships: 8 x 8 pixels, 1438 for training and 359 for tests. Prints the accuracy on
the test part after every tenth pass, and what the better network sees in one image.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import tenon
from tenon import dataset

data = dataset.digits()
image = tenon.layer.data("image", data.types["image"])
label = tenon.layer.data("label", data.types["label"])


def softmax_regression() -> tenon.Layer:
    return tenon.layer.fc(image, size=10)


def multilayer_perceptron() -> tenon.Layer:
    hidden = tenon.layer.fc(image, size=128, act="relu")
    return tenon.layer.fc(tenon.layer.fc(hidden, size=64, act="relu"), size=10)


def train(score: tenon.Layer) -> tuple[tenon.parameters.ParameterSet, float]:
    """Returns the trained parameters, and the accuracy on the test part."""
    topology = [tenon.layer.cross_entropy(score, label, from_logits=True), tenon.layer.accuracy(score, label)]
    parameters = tenon.parameters.create(topology)

    def event_handler(event: tenon.event.Event) -> None:
        if isinstance(event, tenon.event.EndPass) and event.pass_id % 10 == 9:
            accuracy = tenon.test(topology, parameters, data.test).metrics["accuracy"]
            print(f"pass {event.pass_id}: training {event.metrics['accuracy']:.4f}, test {accuracy:.4f}")

    tenon.train(topology, parameters, data.train.shuffle(), event_handler, passes=40, batch_size=32,
                updater=tenon.updater.Adam(learning_rate=0.01))  # fmt: skip
    return parameters, tenon.test(topology, parameters, data.test).metrics["accuracy"]


_, softmax_accuracy = train(softmax_regression())
score = multilayer_perceptron()
parameters, multilayer_accuracy = train(score)
print(f"accuracy: softmax regression {softmax_accuracy:.4f}, multilayer perceptron {multilayer_accuracy:.4f}")

sample = next(data.test.samples())
probabilities = tenon.infer(tenon.layer.softmax(score), parameters, sample["image"][None])[0]
print(f"a {int(sample['label'])} is seen as {probabilities.argmax()}, with probability {probabilities.max():.3f}")
