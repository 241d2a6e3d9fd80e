"""Row 4 in JAX, channels last. SPDX-License-Identifier: Apache-2.0"""
from support import jax_peer

import jax
import jax.numpy as jnp
import numpy as np

batch = jax_peer.tensor("images", (128, 28, 28, 1)), jax_peer.tensor("labels", (128,), np.uint8).astype(jnp.int32)


def loss_of(values, x, labels):
    for weight, bias in zip(values[:4:2], values[1:4:2], strict=True):
        x = jax.nn.relu(jax_peer.conv(x, weight, padding="VALID") + bias)
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return jax_peer.cross_entropy(jax_peer.chain(x.reshape(len(x), -1), values[4:]), labels)


values = []
for name, filters, channels in ("conv1", 6, 1), ("conv2", 16, 6):
    values += [jax_peer.filters(name, filters, 5, channels), jax_peer.tensor(f"{name}.bias", (filters,))]
values += jax_peer.parameters(("fc1", 256, 120), ("fc2", 120, 84), ("fc3", 84, 10))
step = jax_peer.step_of(loss_of, jax_peer.adam, 1e-3)
jax_peer.measure(step, (values, jax_peer.adam_slots(values)), 5, 20, 100, [batch])
