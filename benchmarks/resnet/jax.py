"""Row 5a in JAX, channels last: ResNet-20. SPDX-License-Identifier: Apache-2.0"""
from support import jax_peer

import jax
import jax.numpy as jnp
import numpy as np

BATCH, FIRST, STAGES, BLOCKS = 128, 16, 3, 3
values = []


def add_conv(name, channels, filters, kernel):
    """Filters, scale and shift of a convolution and its normalisation."""
    values.extend([jax_peer.filters(f"{name}_conv", filters, kernel, channels), jnp.ones(filters), jnp.zeros(filters)])


def conv(x, left, stride=1):
    """With the next of the parameters that are left; moving averages, which no step reads, are not kept."""
    weight, scale, shift = (next(left) for _ in range(3))
    side = weight.shape[0] // 2
    x = jax_peer.conv(x, weight, stride, [(side, side)] * 2)
    mean, square = jnp.mean(x, (0, 1, 2)), jnp.mean(x * x, (0, 1, 2))
    return (x - mean) * (jax.lax.rsqrt(square - mean * mean + 1e-5) * scale) + shift


add_conv("stem", 3, FIRST, 3)
channels, strides = FIRST, []
for stage in range(STAGES):
    for block in range(BLOCKS):
        strides.append(2 if stage > 0 and block == 0 else 1)
        filters, name = FIRST << stage, f"block{stage}{block}"
        add_conv(f"{name}a", channels, filters, 3)
        add_conv(f"{name}b", filters, filters, 3)
        if strides[-1] > 1:
            add_conv(f"{name}s", channels, filters, 1)
        channels = filters


def loss_of(values, x, labels):
    left = iter(values[:-2])
    x = jax.nn.relu(conv(x, left))
    for stride in strides:
        inner = conv(jax.nn.relu(conv(x, left, stride)), left)
        x = jax.nn.relu(inner + (conv(x, left, stride) if stride > 1 else x))
    return jax_peer.cross_entropy(jax_peer.chain(x.mean((1, 2)), values[-2:]), labels)


values += jax_peer.parameters(("logits", channels, 10))
batch = (jax_peer.tensor("images", (BATCH, 32, 32, 3)),
         jax_peer.tensor("labels", (BATCH,), np.uint8).astype(jnp.int32))
step = jax_peer.step_of(loss_of, jax_peer.momentum, 0.01)
jax_peer.measure(step, (values, jax_peer.zeros(values)), 3, 1, 5, [batch])
