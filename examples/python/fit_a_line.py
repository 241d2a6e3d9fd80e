"""Linear regression, as in the book's chapter "Fit a line": prices of houses from twelve features of their districts.

The data is that of the Debian package python3-sklearn; help(tenon.dataset.housing) says what to keep in mind about it.
Prints the mean squared error on the test part every 20 passes, and a few prices, in thousands of dollars.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import tenon
from tenon import dataset

data = dataset.housing()
features = tenon.layer.data("features", data.types["features"])
price = tenon.layer.data("price", data.types["price"])
predicted = tenon.layer.fc(features, size=1)
cost = tenon.layer.square_error(predicted, price)
parameters = tenon.parameters.create(cost)


def event_handler(event: tenon.event.Event) -> None:
    if isinstance(event, tenon.event.EndPass) and event.pass_id % 20 == 19:
        error = tenon.test(cost, parameters, data.test).cost
        print(f"pass {event.pass_id}: training {event.cost:.2f}, test {error:.2f}")


tenon.train(cost, parameters, data.train.shuffle(), event_handler, passes=100, batch_size=20,
            updater=tenon.updater.sgd(learning_rate=0.005))  # fmt: skip

error = tenon.test(cost, parameters, data.test).cost
samples = list(data.test.first_n(5).samples())
for sample, value in zip(samples, tenon.infer(predicted, parameters, samples)):
    print(f"price {sample['price'][0]:.1f}, predicted {value[0]:.1f}")
