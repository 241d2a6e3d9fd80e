"""Classifiers of small images, as in the book's chapter "Recognize digits": softmax regression, three layers,
and convolutions.

    python recognize_images.py            # handwritten digits, which scikit-learn ships: 8 x 8 pixels, 1438 for training
    python recognize_images.py clothes    # Fashion-MNIST, Debian's dataset-fashion-mnist: 28 x 28 pixels, 60,000

Prints the accuracy on the test part four times in a training, and what the last network sees in one image.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import sys

import tenon
from tenon import dataset

if sys.argv[1:] == ["clothes"]:
    data, passes, batch_size, learning_rate = dataset.fashion_mnist(), 4, 128, 0.001
elif sys.argv[1:] in ([], ["digits"]):
    data, passes, batch_size, learning_rate = dataset.digits(), 40, 32, 0.01
else:
    sys.exit(f"recognize_images.py [digits|clothes], got {sys.argv[1:]}")
image = tenon.layer.data("image", data.types["image"])
label = tenon.layer.data("label", data.types["label"])


def softmax_regression() -> tenon.Layer:
    return tenon.layer.fc(image, size=10)


def multilayer_perceptron() -> tenon.Layer:
    hidden = tenon.layer.fc(image, size=128, act="relu")
    return tenon.layer.fc(tenon.layer.fc(hidden, size=64, act="relu"), size=10)


def convolutional_network() -> tenon.Layer:
    one_channel = tenon.layer.unsqueeze(image, axis=3)
    first = tenon.layer.simple_img_conv_pool(one_channel, filters=20, kernel=3, pool_kernel=2)
    return tenon.layer.fc(tenon.layer.simple_img_conv_pool(first, filters=50, kernel=2, pool_kernel=2), size=10)


def train(score: tenon.Layer) -> tuple[tenon.parameters.ParameterSet, float]:
    """Returns the trained parameters, and the accuracy on the test part."""
    topology = [tenon.layer.cross_entropy(score, label, from_logits=True), tenon.layer.accuracy(score, label)]
    parameters = tenon.parameters.create(topology)
    tested = 0.0

    def event_handler(event: tenon.event.Event) -> None:
        nonlocal tested
        if isinstance(event, tenon.event.EndPass) and (event.pass_id + 1) % (passes // 4) == 0:
            tested = tenon.test(topology, parameters, data.test).metrics["accuracy"]
            print(f"pass {event.pass_id + 1}: training {event.metrics['accuracy']:.4f}, test {tested:.4f}")

    tenon.train(topology, parameters, data.train.shuffle(), event_handler, passes=passes, batch_size=batch_size,
                updater=tenon.updater.Adam(learning_rate=learning_rate))  # fmt: skip
    return parameters, tested


_, softmax_accuracy = train(softmax_regression())
_, multilayer_accuracy = train(multilayer_perceptron())
score = convolutional_network()
parameters, convolutional_accuracy = train(score)
print(f"accuracy: softmax regression {softmax_accuracy:.4f}, multilayer perceptron {multilayer_accuracy:.4f}")
print(f"convolutional network: {convolutional_accuracy:.4f}")

sample = next(data.test.samples())
probabilities = tenon.infer(tenon.layer.softmax(score), parameters, sample["image"][None])[0]
print(f"a {int(sample['label'])} is seen as {probabilities.argmax()}, with probability {probabilities.max():.3f}")
