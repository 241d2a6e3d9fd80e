"""JAX's side of the benchmarks: SGD and Adam as functions of arrays, and steps one by one or many in one compiled loop.
SPDX-License-Identifier: Apache-2.0
"""
import itertools

from support import peer  # before jax: it sets the number of threads

import jax
import jax.numpy as jnp


def tensor(name, shape, dtype=peer.np.float32):
    return jnp.asarray(peer.read(name, shape, dtype))


def parameters(*sizes):
    """Weight and bias of each (name, inputs, outputs)."""
    values = []
    for name, inputs, outputs in sizes:
        values += [tensor(f"{name}.weight", (inputs, outputs)), tensor(f"{name}.bias", (outputs,))]
    return values


def chain(x, values, last=lambda x: x):
    """Products and biases with relu between them; `last` comes behind the last one."""
    for weight, bias in zip(values[:-2:2], values[1:-2:2], strict=True):
        x = jax.nn.relu(x @ weight + bias)
    return last(x @ values[-2] + values[-1])


def filters(name, count, kernel, channels):
    """Those of a convolution, [kernel, kernel, channels, count]."""
    return tensor(f"{name}.weight", (count, kernel, kernel, channels)).transpose(1, 2, 3, 0)


def conv(x, weight, stride=1, padding="SAME"):
    return jax.lax.conv_general_dilated(x, weight, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1))


def sgd(values, slots, gradients, rate):
    return [v - rate * g for v, g in zip(values, gradients, strict=True)], slots


def momentum(values, slots, gradients, rate):
    slots = [0.9 * m + g for m, g in zip(slots, gradients, strict=True)]
    return [v - rate * m for v, m in zip(values, slots, strict=True)], slots


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


def adam_slots(values):
    return zeros(values), zeros(values), jnp.float32(0)


def step_of(loss_of, update, rate):
    """A step from (values, slots): loss_of(values, *batch) is differentiated, and `update` applied."""
    def step(state, *batch):
        values, slots = state
        loss, gradients = jax.value_and_grad(loss_of)(values, *batch)
        return update(values, slots, gradients, rate), loss
    return step


def rows_step_of(loss_of, rate):
    """A step of SGD from (tables, values). A batch begins with the ids of each table; loss_of(rows, values, *others)
    gets their rows. Only rows that were read are written: the gradient of jnp.take has the size of its table."""
    def step(state, *batch):
        tables, values = state
        ids, others = batch[:len(tables)], batch[len(tables):]
        rows = [table[at] for table, at in zip(tables, ids, strict=True)]
        loss, (of_rows, gradients) = jax.value_and_grad(loss_of, (0, 1))(rows, values, *others)
        tables = [table.at[at].add(-rate * g) for table, at, g in zip(tables, ids, of_rows, strict=True)]
        return (tables, sgd(values, (), gradients, rate)[0]), loss
    return step


def measure(step, state, compared, warm_up, count, batches=((),)):
    """step(state, *batch) gives the next state, and the loss before it. Batches take turns. Steps are calls, or with
    MODE "loop" 50 are one compiled loop, over the first batch."""
    inner = 50 if peer.MODE == "loop" else 1
    turns = itertools.cycle(batches)
    if inner > 1:
        run = jax.jit(lambda state, steps: jax.lax.fori_loop(
            0, steps, lambda _, now: step(now[0], *batches[0]), (state, jnp.float32(0))), donate_argnums=0)
    else:
        run = jax.jit(step, donate_argnums=0)
    loss = None

    def steps(total, at_once):
        nonlocal state, loss
        for _ in range(total // at_once):
            state, loss = run(state, at_once) if inner > 1 else run(state, *next(turns))

    def wait():
        jax.block_until_ready(state)

    steps(compared, compared if inner > 1 else 1)
    compared_loss = float(loss)
    steps(warm_up, inner)
    seconds = peer.mean_seconds(count // inner, lambda: steps(inner, inner), wait) / inner
    peer.report(seconds=seconds, loss=compared_loss)
