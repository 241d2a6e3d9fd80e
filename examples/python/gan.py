"""A generative adversarial network, trained by turns on one set of parameters.

The generator G learns to draw points that are uniform in the square [0, 1] x [0, 1]; the discriminator D learns to
tell them from real ones. Two topologies share the parameters of both; each training keeps those of the other network by
immutable_parameters. Prints mean and standard deviation of the generated points; those of the target are 0.5 and 0.289.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import tenon

NOISE, BATCH, ROUNDS = 4, 64, 2000
random = np.random.default_rng(2)


def G(noise: tenon.Layer) -> tenon.Layer:
    hidden = tenon.layer.fc(noise, size=32, act="relu", parameter_name="G.hidden0")
    hidden = tenon.layer.fc(hidden, size=32, act="relu", parameter_name="G.hidden1")
    return tenon.layer.fc(hidden, size=2, parameter_name="G.point")


def D(point: tenon.Layer) -> tenon.Layer:
    hidden = tenon.layer.fc(point, size=64, act="leaky_relu", parameter_name="D.hidden0")
    hidden = tenon.layer.fc(hidden, size=64, act="leaky_relu", parameter_name="D.hidden1")
    return tenon.layer.fc(hidden, size=1, parameter_name="D.score")


noise = tenon.layer.data("noise", tenon.data_type.dense_vector(NOISE))
real = tenon.layer.data("real", tenon.data_type.dense_vector(2))

# The first topology has both D and G. Training it updates G: D should take what G draws for real.
d0 = tenon.layer.should_be_true(D(G(noise)))

# The second one updates D, which should tell real points from drawn ones.
d1 = [tenon.layer.should_be_true(D(real)), tenon.layer.should_be_false(D(G(noise)))]

parameters = tenon.parameters.create([d0, *d1])


def read_from_rng() -> Iterator[dict[str, NDArray[np.float64]]]:
    while True:
        yield {"noise": random.normal(size=NOISE)}


def read_from_realistic_points() -> Iterator[dict[str, NDArray[np.float64]]]:
    while True:
        yield {"noise": random.normal(size=NOISE), "real": random.uniform(size=2)}


updater_G = tenon.updater.Adam(beta1=0.5)
updater_D = tenon.updater.Adam(beta1=0.5)
for round in range(ROUNDS):
    for updater in (updater_G, updater_D):
        updater.set_learning_rate(2e-3 * (1 - round / ROUNDS))
    tenon.train(d0, parameters, reader=read_from_rng, updater=updater_G, batch_size=BATCH, pass_batches=1,
                immutable_parameters={"D"})  # fmt: skip
    tenon.train(d1, parameters, reader=read_from_realistic_points, updater=updater_D, batch_size=BATCH, pass_batches=1,
                immutable_parameters={"G"})  # fmt: skip

points = tenon.infer(G(noise), parameters, random.normal(size=(5000, NOISE)))
thinks = tenon.infer(tenon.layer.sigmoid(D(real)), parameters, random.uniform(size=(1000, 2)))
print(f"generated points: mean {points.mean(0)}, standard deviation {points.std(0)}")
print(f"D thinks that real points are real with probability {thinks.mean():.2f}")
