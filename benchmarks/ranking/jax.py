"""Row 6 in JAX, SGD. SPDX-License-Identifier: Apache-2.0"""
from support import jax_peer

import jax.numpy as jnp
import numpy as np

batch, bag, batches = 512, 20, 8
ids = jax_peer.tensor("ids", (batches, batch, bag), np.int64).astype(jnp.int32)
labels = jax_peer.tensor("labels", (batches, batch), np.int64).astype(jnp.int32)


def loss_of(rows, values, labels):
    return jax_peer.cross_entropy(jax_peer.chain(rows[0].sum(1), values), labels)


table = jax_peer.tensor("table.weight", (-1, 64))
values = jax_peer.parameters(("first", 64, 256), ("second", 256, 128), ("logits", 128, 1000))
jax_peer.measure(jax_peer.rows_step_of(loss_of, 0.01), ([table], values), 8, 16, 200, list(zip(ids, labels, strict=True)))
