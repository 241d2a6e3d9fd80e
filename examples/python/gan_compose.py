"""A generative adversarial network by gradient machines, composed.

The models are known by their output layers: output_gen draws points, output_dis tells whether points are real. A
machine that covers both trains the generator by the discriminator; the two are not composed themselves. Prints mean and
standard deviation of the generated points; those of the target, uniform in [0, 1] x [0, 1], are 0.5 and 0.289.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import tenon

NOISE, BATCH, PASSES = 4, 64, 4000
random = np.random.default_rng(1)

input_gen = tenon.layer.input("noise", tenon.data_type.dense_vector(NOISE))
hidden_gen = tenon.layer.fc(tenon.layer.fc(input_gen, size=32, act="relu"), size=32, act="relu")
output_gen = tenon.layer.fc(hidden_gen, size=2)

# gm_gen maintains layer outputs and gradients of model gen.
gm_gen = tenon.gradient_machine.new(output_gen)

input_dis = tenon.layer.input("point", tenon.data_type.dense_vector(2))
hidden_dis = tenon.layer.fc(tenon.layer.fc(input_dis, size=64, act="leaky_relu"), size=64, act="leaky_relu")
output_dis = tenon.layer.softmax(hidden_dis, size=2)

# gm_dis maintains layer outputs and gradients of model dis.
gm_dis = tenon.gradient_machine.new(output_dis)

# gm_comp maintains layer outputs and gradients of both gen and dis.
gm_comp = tenon.gradient_machine.compose(output_gen, output_dis)

ud = tenon.updater.Adam(beta1=0.5)


def samples() -> Iterator[dict[str, NDArray[np.float64]]]:
    for _ in range(BATCH):
        yield {"noise": random.normal(size=NOISE), "point": random.uniform(size=2)}


rd = tenon.batch(tenon.reader.typed(samples, {**gm_gen.types, "point": tenon.data_type.dense_vector(2)}), BATCH)

for step, (mb, _pass_end) in enumerate(rd.read(passes=PASSES)):
    ud.set_learning_rate(2e-3 * (1 - step / PASSES))
    fake = gm_gen.forward(mb)
    fake_label = tenon.input.new(False)
    real_label = tenon.input.new(True)
    gm_dis.feed([fake, fake_label])
    gm_dis.feed([mb, real_label])
    ud.update(gm_dis)

    gm_comp.feed([mb, real_label])
    ud.update(gm_comp, output_gen)  # updates only the model whose output layer is output_gen.

points = gm_gen.forward({"noise": random.normal(size=(5000, NOISE))})
print(f"generated points: mean {points.mean(0)}, standard deviation {points.std(0)}")
