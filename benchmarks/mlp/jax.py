"""Row 1 in JAX: a step a call, or MODE "loop". SPDX-License-Identifier: Apache-2.0"""
from support import jax_peer

import jax.numpy as jnp
import numpy as np

images = jax_peer.tensor("images", (128, 784), np.uint8)
labels = jax_peer.tensor("labels", (128,), np.uint8).astype(jnp.int32)
values = jax_peer.parameters(("hidden", 784, 128), ("logits", 128, 10))


def loss_of(values):
    return jax_peer.cross_entropy(jax_peer.chain(images.astype(jnp.float32) * (1.0 / 255), values), labels)


step = jax_peer.step_of(loss_of, jax_peer.adam, 1e-3)
jax_peer.measure(step, (values, jax_peer.adam_slots(values)), 10, 100, 1000)
