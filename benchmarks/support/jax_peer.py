"""JAX's side of the benchmarks: SGD and Adam as functions of arrays, and steps one by one or many in one compiled loop.
SPDX-License-Identifier: Apache-2.0
"""
import time

from support import peer  # before jax: it sets the number of threads

import jax
import jax.numpy as jnp


def parameters(*sizes):
    """Weight and bias of each (name, inputs, outputs)."""
    values = []
    for name, inputs, outputs in sizes:
        values += [jnp.asarray(peer.read(f"{name}.weight", (inputs, outputs))),
                   jnp.asarray(peer.read(f"{name}.bias", (outputs,)))]
    return values


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1))


def sgd(values, slots, gradients, rate):
    return [v - rate * g for v, g in zip(values, gradients, strict=True)], slots


def adam(values, slots, gradients, rate):
    """Kingma and Ba 2015, algorithm 1."""
    first, second, step = slots
    step = step + 1
    first = [0.9 * m + 0.1 * g for m, g in zip(first, gradients, strict=True)]
    second = [0.999 * v + 0.001 * g * g for v, g in zip(second, gradients, strict=True)]
    values = [p - rate * (m / (1 - 0.9**step)) / (jnp.sqrt(v / (1 - 0.999**step)) + 1e-8)
              for p, m, v in zip(values, first, second, strict=True)]
    return values, (first, second, step)


def zeros(values):
    return [jnp.zeros_like(v) for v in values]


def measure(loss_of, values, slots, update, rate, compared, warm_up, count):
    """loss_of(values) and the update make a step. Steps are calls, or with MODE "loop" 50 are one compiled loop."""
    def one(_, state):
        values, slots, _ = state
        loss, gradients = jax.value_and_grad(loss_of)(values)
        values, slots = update(values, slots, gradients, rate)
        return values, slots, loss

    if peer.MODE == "loop":
        run = jax.jit(lambda state, steps: jax.lax.fori_loop(0, steps, one, state), donate_argnums=0)
        inner = 50
    else:
        run = jax.jit(lambda state, _: one(0, state), donate_argnums=0)
        inner = 1
    state = (list(values), slots, jnp.float32(0))

    def steps(total, at_once):
        nonlocal state
        for _ in range(total // at_once):
            state = run(state, at_once)
        return float(state[2])

    loss = steps(compared, compared if inner > 1 else 1)
    steps(warm_up, inner)
    began = time.perf_counter()
    steps(count, inner)
    peer.report(seconds=(time.perf_counter() - began) / count, loss=loss)
