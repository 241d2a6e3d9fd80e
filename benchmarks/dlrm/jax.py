"""Row 8 in JAX. SPDX-License-Identifier: Apache-2.0"""
from support import jax_peer

import jax
import jax.numpy as jnp
import numpy as np

batch, tables, size = 2048, 26, 64
dense = jax_peer.tensor("dense", (batch, 13))
ids = jax_peer.tensor("ids", (batch, tables), np.int64).astype(jnp.int32)


def loss_of(rows, values, dense):
    x = jax_peer.chain(dense, values[:6], jax.nn.relu)
    vectors = jnp.concatenate([x[:, None], rows[0]], 1)
    products = jnp.einsum("bik,bjk->bij", vectors, vectors).reshape(batch, -1)
    return jax.nn.softplus(-jax_peer.chain(jnp.concatenate([x, products], 1), values[6:])).mean()


table = jax_peer.tensor("table.weight", (-1, size))
values = jax_peer.parameters(("bottom1", 13, 512), ("bottom2", 512, 256), ("bottom3", 256, size),
                             ("top1", size + (tables + 1) ** 2, 512), ("top2", 512, 256), ("score", 256, 1))
jax_peer.measure(jax_peer.rows_step_of(loss_of, 0.01), ([table], values), 5, 5, 20, [(ids, dense)])
