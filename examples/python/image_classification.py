"""Two networks for images, as in the book's chapter "Image classification": a VGG and a residual network.

The book's images have 32 x 32 pixels in colour; these are the first 4,000 of Fashion-MNIST, whose Debian package is
dataset-fashion-mnist. Prints the accuracy of both on 1,000 test images.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import tenon
from tenon import dataset

data = dataset.fashion_mnist()
image = tenon.layer.data("image", data.types["image"])
label = tenon.layer.data("label", data.types["label"])
picture = tenon.layer.reshape(image, shape=[28, 28, 1])


def vgg() -> tenon.Layer:
    made = picture
    for filters, convolutions, rate in ((8, 2, 0.1), (16, 2, 0.1), (32, 3, 0.2)):
        made = tenon.layer.img_conv_group(made, filters=[filters] * convolutions, batch_norm=True, pool_kernel=2,
                                          drop_rates=[rate] * (convolutions - 1) + [0])  # fmt: skip
    hidden = tenon.layer.batch_norm(tenon.layer.fc(made, size=64), act="relu", drop_rate=0.2)
    return tenon.layer.fc(hidden, size=10)


def residual(blocks: int = 1) -> tenon.Layer:
    made = tenon.layer.batch_norm(tenon.layer.conv(picture, filters=8, kernel=3, same=True, bias=False), act="relu")
    for filters, stride in ((8, 1), (16, 2), (32, 2)):
        for block in range(blocks):
            made = tenon.layer.residual_block(made, filters=filters, stride=1 if block else stride)
    return tenon.layer.fc(tenon.layer.pool(made, kind="average", whole=True), size=10)


accuracies = {}
for network in (vgg, residual):
    score = network()
    topology = [tenon.layer.cross_entropy(score, label, from_logits=True), tenon.layer.accuracy(score, label)]
    parameters = tenon.parameters.create(topology, seed=1)
    tenon.train(topology, parameters, data.train.first_n(4000).shuffle(), passes=3, batch_size=64,
                updater=tenon.updater.Adam(learning_rate=0.003))  # fmt: skip
    accuracies[network.__name__] = tenon.test(topology, parameters, data.test.first_n(1000)).metrics["accuracy"]
    print(f"{network.__name__}: accuracy {accuracies[network.__name__]:.4f}")
