"""Classifiers of small images, as in the book's chapter on digits: softmax regression, and a network of three layers.

The images are those of Fashion-MNIST, which are harder than digits; its Debian package is dataset-fashion-mnist. Prints
the accuracy on the test images.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import tenon
from tenon import dataset

data = dataset.fashion_mnist()
image = tenon.layer.data("image", data.types["image"])
label = tenon.layer.data("label", data.types["label"])


def softmax_regression() -> tenon.Layer:
    return tenon.layer.fc(image, size=10)


def multilayer_perceptron() -> tenon.Layer:
    hidden = tenon.layer.fc(image, size=128, act="relu")
    return tenon.layer.fc(tenon.layer.fc(hidden, size=64, act="relu"), size=10)


accuracies = {}
for network, passes in ((softmax_regression, 3), (multilayer_perceptron, 4)):
    score = network()
    cost = tenon.layer.cross_entropy(score, label, from_logits=True)
    accuracy = tenon.layer.accuracy(score, label)
    parameters = tenon.parameters.create([cost, accuracy], seed=1)
    tenon.train([cost, accuracy], parameters, data.new(), passes=passes, updater=tenon.updater.Adam())
    accuracies[network.__name__] = tenon.test([cost, accuracy], parameters, data.test).metrics["accuracy"]
    print(f"{network.__name__}: accuracy {accuracies[network.__name__]:.4f}")
