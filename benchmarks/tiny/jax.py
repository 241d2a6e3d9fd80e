"""Row 3 in JAX: a step a call, or MODE "loop". SPDX-License-Identifier: Apache-2.0"""
from support import jax_peer

import jax.numpy as jnp

x = jax_peer.tensor("x", (1, 16))
label = jnp.asarray([1])
values = jax_peer.parameters(("first", 16, 32), ("second", 32, 32), ("logits", 32, 2))
step = jax_peer.step_of(lambda values: jax_peer.cross_entropy(jax_peer.chain(x, values), label), jax_peer.sgd, 0.01)
jax_peer.measure(step, (values, ()), 10, 1000, 5000)
