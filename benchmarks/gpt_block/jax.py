"""Row 10 in JAX: query, key and value in one product. SPDX-License-Identifier: Apache-2.0"""
from support import jax_peer

import jax
import jax.numpy as jnp

batch, length, heads, size = 8, 256, 6, 384


def weight(name, inputs, outputs):
    return jax_peer.tensor(f"{name}.weight", (inputs, outputs))


def norm(x, scale, shift):
    x = x - jnp.mean(x, -1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale + shift


def loss_of(values, x, target):
    qkv, joined, up, down, *norms = values
    parts = (norm(x, *norms[:2]) @ qkv).reshape(batch, length, 3, heads, size // heads)
    mixed = jax.nn.dot_product_attention(*(parts[:, :, part] for part in range(3)), is_causal=True)
    attended = x + mixed.reshape(batch * length, size) @ joined
    out = attended + jax.nn.gelu(norm(attended, *norms[2:]) @ up, approximate=True) @ down
    return jnp.sum((out - target) ** 2) / batch


values = [jnp.concatenate([weight(name, size, size) for name in ("query", "key", "value")], 1),
          weight("joined", size, size), weight("up", size, 4 * size), weight("down", 4 * size, size),
          *(jax_peer.tensor(f"{name}.{part}", (size,)) for name in ("first", "second") for part in ("scale", "shift"))]
feeds = [jax_peer.tensor(name, (batch * length, size)) for name in ("x", "target")]
step = jax_peer.step_of(loss_of, jax_peer.adam, 1e-3)
jax_peer.measure(step, (values, jax_peer.adam_slots(values)), 3, 2, 10, [feeds])
