"""A generative adversarial network that draws clothes, learned from the images of Fashion-MNIST.

The generator G makes images of 28 x 28 pixels from random numbers; the discriminator D learns to tell them from those
of the data. Both are trained by turns on one set of parameters, each by a gradient machine that leaves the parameters
of the other network as they are. Writes gan_fashion.png, a sheet of 100 drawn images.

A classifier, trained on the data alone, judges images by the inception score (Salimans et al., "Improved Techniques for
Training GANs", 2016): from 1, where it thinks the same of all of them, to 10, where it is sure of each and finds all 10
kinds of clothes equally often. Prints the scores of images of the data, of drawn ones, of what G draws before it is
trained, and of noise.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import matplotlib.image
import numpy as np
from numpy.typing import NDArray

import tenon
from tenon import dataset

Bytes = NDArray[np.uint8]

NOISE, BATCH, PASSES = 100, 128, 3
random = np.random.default_rng(1)
data = dataset.fashion_mnist()

noise = tenon.layer.data("noise", tenon.data_type.dense_vector(NOISE))
image = tenon.layer.data("image", tenon.data_type.dense_array([28, 28], "uint8", scale=2 / 255, offset=-1))
label = tenon.layer.data("label", data.types["label"])


def G(noise: tenon.Layer) -> tenon.Layer:
    hidden = noise
    for number, size in enumerate((128, 256)):
        hidden = tenon.layer.fc(hidden, size=size, parameter_name=f"G.hidden{number}")
        hidden = tenon.layer.batch_norm(hidden, act="relu", parameter_name=f"G.norm{number}")
    return tenon.layer.fc(hidden, size=28 * 28, act="tanh", parameter_name="G.image")


def D(image: tenon.Layer) -> tenon.Layer:
    hidden = image
    for number, size in enumerate((256, 128)):
        hidden = tenon.layer.fc(hidden, size=size, act="leaky_relu", parameter_name=f"D.hidden{number}")
        hidden = tenon.layer.dropout(hidden, rate=0.3)
    return tenon.layer.fc(hidden, size=1, parameter_name="D.score")


drawn = G(noise)
goal_D = [tenon.layer.should_be_true(D(image)), tenon.layer.should_be_false(D(drawn))]
goal_G = [tenon.layer.should_be_true(D(drawn))]
parameters = tenon.parameters.create([*goal_D, *goal_G], seed=1)


def draw_noise(samples: int) -> NDArray[np.float32]:
    return random.standard_normal((samples, NOISE), np.float32)


def draw(samples: int) -> Bytes:
    values = tenon.infer(drawn, parameters, draw_noise(samples)).reshape(samples, 28, 28)
    pictures: Bytes = np.rint(127.5 * (values + 1)).astype(np.uint8)
    return pictures


# The judge.
kind = tenon.layer.fc(tenon.layer.fc(image, size=128, act="relu"), size=10)
cost = tenon.layer.cross_entropy(kind, label, from_logits=True)
judge = tenon.parameters.create(cost, seed=1)
tenon.train(cost, judge, data.new(), passes=3, updater=tenon.updater.Adam())


def inception_score(pictures: Bytes) -> float:
    each = tenon.infer(tenon.layer.softmax(kind), judge, pictures) + 1e-9
    return float(np.exp((each * np.log(each / each.mean(0))).sum(1).mean()))


real: Bytes = np.stack([sample["image"] for sample in data.test.first_n(2000).samples()])
scores = {"data": inception_score(real), "untrained": inception_score(draw(2000)),
          "noise": inception_score(random.integers(0, 256, real.shape, np.uint8))}  # fmt: skip

machine_D = tenon.gradient_machine.new(goal_D, parameters, immutable_parameters={"G"})
machine_G = tenon.gradient_machine.new(goal_G, parameters, immutable_parameters={"D"})
updater_D, updater_G = tenon.updater.Adam(beta1=0.5), tenon.updater.Adam(beta1=0.5)
for number in range(PASSES):
    updater_D.set_learning_rate(2e-3 * (1 - number / PASSES))
    updater_G.set_learning_rate(5e-3 * (1 - number / PASSES))
    for minibatch in data.train.shuffle(seed=number).batch(BATCH, drop_last=True):
        machine_D.feed({"image": minibatch["image"], "noise": draw_noise(BATCH)})
        updater_D.update(machine_D)
        machine_G.feed({"noise": draw_noise(BATCH)})
        updater_G.update(machine_G)

pictures = draw(2000)
scores["drawn"] = inception_score(pictures)
difference = np.abs(pictures.mean(0) - real.mean(0)).mean() / 255
print("inception score:", ", ".join(f"{name} {score:.2f}" for name, score in scores.items()))
print(f"the mean of the drawn images differs from that of the data by {difference:.3f} of the range of a pixel")

sheet = pictures[:100].reshape(10, 10, 28, 28).swapaxes(1, 2).reshape(280, 280)
matplotlib.image.imsave("gan_fashion.png", sheet, cmap="gray")
