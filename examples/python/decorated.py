"""A network declared by a decorated function, with the names of 2016, and trained pass by pass.

The samples are handwritten digits of a kind: ten patterns of 28 x 28 pixels with noise, written to text files by this
program. Prints cost and accuracy of each pass, and of the test.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import tenon
from tenon.config_helpers import SoftmaxActivation, classification_cost, dense_vector, fc_layer, integer_value

folder = tempfile.TemporaryDirectory()


def write_samples(name: str, count: int, random: np.random.Generator) -> str:
    """Writes a file with a sample a line: the label, and the pixels."""
    patterns = np.random.default_rng(0).normal(size=(10, 784))
    labels = random.integers(0, 10, count)
    pixels = patterns[labels] + 3 * random.normal(size=(count, 784))
    path = os.path.join(folder.name, name)
    np.savetxt(path, np.column_stack([labels, pixels]), fmt="%.2f")
    return path


dataset1, dataset2, dataset_test = (
    write_samples(name, count, np.random.default_rng(seed))
    for name, count, seed in (("dataset1.txt", 600, 1), ("dataset2.txt", 600, 2), ("dataset_test.txt", 300, 3))
)


@tenon.network(input_types={"img": dense_vector(784), "label": integer_value(10)})
def mnist_network(img: tenon.Layer, label: tenon.Layer) -> tenon.Layer:
    hidden1 = fc_layer(input=img, size=200)
    hidden2 = fc_layer(input=hidden1, size=200)
    inference = fc_layer(input=hidden2, size=10, act=SoftmaxActivation())
    return classification_cost(input=inference, label=label)


@mnist_network.train_data(files=[dataset1, dataset2])
@mnist_network.test_data(files=[dataset_test])
def provider(filename: str) -> Iterator[tuple[NDArray[np.float32], int]]:
    with open(filename) as f:
        for line in f:
            numbers = np.array(line.split(), np.float32)
            yield numbers[1:], int(numbers[0])


if __name__ == "__main__":
    network = mnist_network()
    trainer = network.createLocalTrainer("cpu").withSGDOptimizer(learning_rate=0.05, batch_size=50)

    for _ in range(8):
        result = trainer.trainOnePass()
        print(f"cost {result.cost:.3f}, accuracy {result.metrics['accuracy']:.3f}")
    result = trainer.testOnePass()
    print(f"test: cost {result.cost:.3f}, accuracy {result.metrics['accuracy']:.3f}")
