"""Row 3 in JAX: a step a call, or MODE "loop". SPDX-License-Identifier: Apache-2.0"""
from support import jax_peer, peer

import jax.nn
import jax.numpy as jnp

x = jnp.asarray(peer.read("x", (1, 16)))
label = jnp.asarray([1])


def loss_of(values):
    w1, b1, w2, b2, w3, b3 = values
    hidden = jax.nn.relu(x @ w1 + b1)
    hidden = jax.nn.relu(hidden @ w2 + b2)
    return jax_peer.cross_entropy(hidden @ w3 + b3, label)


values = jax_peer.parameters(("first", 16, 32), ("second", 32, 32), ("logits", 32, 2))
jax_peer.measure(loss_of, values, (), jax_peer.sgd, 0.01, 10, 1000, 5000)
