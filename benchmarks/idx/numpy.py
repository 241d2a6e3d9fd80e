"""Row 12, images, in NumPy: the shuffled rows of an array in memory. SPDX-License-Identifier: Apache-2.0"""
import gzip

from support import peer

import numpy as np

with gzip.open("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz") as file:
    images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(60000, 784)
order = np.random.default_rng(1)


def one_pass():
    rows = order.permutation(60000)
    return sum(int(images[rows[at:at + 128]][0, 300]) for at in range(0, 60000, 128))


one_pass()
peer.report(seconds=peer.mean_seconds(5, one_pass))
