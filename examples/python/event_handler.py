"""An event handler that tests while a training runs, and ends it when the test is good enough.

Prints the test of every 20th minibatch.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import numpy as np

import tenon

random = np.random.default_rng(0)
inputs = random.uniform(-1, 1, size=(3000, 4))
targets = (inputs[:, :2].prod(1) + inputs[:, 2] ** 2)[:, None]
train_data = {"x": inputs[:2500], "y": targets[:2500]}
test_data = {"x": inputs[2500:], "y": targets[2500:]}

hidden = tenon.layer.fc(tenon.layer.fc("x", size=32, act="tanh"), size=32, act="tanh")
topology = tenon.layer.square_error(tenon.layer.fc(hidden, size=1), "y")
parameters = tenon.parameters.create(topology, reader=train_data)
reader = tenon.reader.shuffle(tenon.reader.arrays(train_data))
tests: list[float] = []


def event_handler(event: tenon.event.Event) -> None:
    if isinstance(event, tenon.event.EndIteration) and event.batch_id % 20 == 19:
        result = tenon.test(topology, parameters, test_data)
        tests.append(result.cost)
        print(f"pass {event.pass_id}, minibatch {event.batch_id}: {event.cost:.4f}, test {result.cost:.4f}")
        if result.cost < 0.005:
            event.stop()


tenon.train(topology, parameters, reader, event_handler, passes=50, batch_size=50,
            updater=tenon.updater.Adam(learning_rate=0.01))  # fmt: skip
