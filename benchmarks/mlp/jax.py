"""Row 1 in JAX: a step a call, or MODE "loop". SPDX-License-Identifier: Apache-2.0"""
from support import jax_peer, peer

import jax.numpy as jnp
import jax.nn
import numpy as np

images = jnp.asarray(peer.read("images", (128, 784), np.uint8))
labels = jnp.asarray(peer.read("labels", (128,), np.uint8)).astype(jnp.int32)
values = jax_peer.parameters(("hidden", 784, 128), ("logits", 128, 10))


def loss_of(values):
    w1, b1, w2, b2 = values
    hidden = jax.nn.relu(images.astype(jnp.float32) * (1.0 / 255) @ w1 + b1)
    return jax_peer.cross_entropy(hidden @ w2 + b2, labels)


slots = (jax_peer.zeros(values), jax_peer.zeros(values), jnp.float32(0))
jax_peer.measure(loss_of, values, slots, jax_peer.adam, 1e-3, 10, 100, 1000)
