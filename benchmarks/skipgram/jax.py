"""Row 7 in JAX. SPDX-License-Identifier: Apache-2.0"""
from support import jax_peer

import jax
import jax.numpy as jnp
import numpy as np

batch, batches, targets = 1024, 16, 6
tables = [jax_peer.tensor(f"{name}.weight", (-1, 100)) for name in ("centres", "targets")]
centres = jax_peer.tensor("centres", (batches, batch), np.int64).astype(jnp.int32)
others = jax_peer.tensor("targets", (batches, batch, targets), np.int64).astype(jnp.int32)


def loss_of(rows, _):
    score = jnp.einsum("bk,btk->bt", *rows)
    return jax.nn.softplus(-score[:, 0]).mean() + jax.nn.softplus(score[:, 1:]).sum(1).mean()


jax_peer.measure(jax_peer.rows_step_of(loss_of, 3), (tables, []), 16, 16, 100, list(zip(centres, others, strict=True)))
