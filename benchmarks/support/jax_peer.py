"""JAX's side of the benchmarks: SGD and Adam as functions of arrays, and steps one by one or many in one compiled loop.
SPDX-License-Identifier: Apache-2.0
"""
from support import peer  # first: it sets the number of threads

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
    return [v - rate * g for v, g in zip(values, gradients)], slots


def adam(values, slots, gradients, rate):
    """Kingma and Ba 2015, algorithm 1."""
    first, second, step = slots
    step = step + 1
    first = [0.9 * m + 0.1 * g for m, g in zip(first, gradients)]
    second = [0.999 * v + 0.001 * g * g for v, g in zip(second, gradients)]
    rate = rate * jnp.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    values = [p - rate * m / (jnp.sqrt(v) + 1e-8) for p, m, v in zip(values, first, second)]
    return values, (first, second, step)


def zeros(values):
    return [jnp.zeros_like(v) for v in values]


def measure(loss_of, values, slots, update, rate, warm_up, count):
    """loss_of(values) and the update make a step; MODE "loop" runs 50 of them in one compiled loop."""
    inner = 50 if peer.MODE == "loop" else 1

    def one(_, state):
        values, slots, _ = state
        loss, gradients = jax.value_and_grad(loss_of)(values)
        values, slots = update(values, slots, gradients, rate)
        return values, slots, loss

    run = jax.jit(lambda state: jax.lax.fori_loop(0, inner, one, state) if inner > 1 else one(0, state),
                  donate_argnums=0)
    state = [(list(values), slots, jnp.float32(0))]

    def step():
        state[0] = run(state[0])

    for _ in range(warm_up // inner):
        step()
    loss = float(state[0][2])

    def steps():
        step()
        if inner > 1:
            state[0][2].block_until_ready()

    seconds = peer.mean_seconds(count // inner, steps)
    state[0][2].block_until_ready()
    peer.report(seconds=seconds / inner, loss=loss)
