"""Row 2 in JAX. SPDX-License-Identifier: Apache-2.0"""
from support import jax_peer

import jax.numpy as jnp
import numpy as np

values = jax_peer.parameters(("first", 1024, 4096), ("second", 4096, 4096), ("logits", 4096, 1000))
batch = jax_peer.tensor("x", (1024, 1024)), jax_peer.tensor("labels", (1024,), np.int64).astype(jnp.int32)


def loss_of(values, x, labels):
    return jax_peer.cross_entropy(jax_peer.chain(x, values), labels)


step = jax_peer.step_of(loss_of, jax_peer.momentum, 0.01)
jax_peer.measure(step, (values, jax_peer.zeros(values)), 3, 0, 3, [batch])
