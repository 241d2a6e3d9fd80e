"""Trains a program by the reference, in float64 and in float32. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reference import Model, Run
from updates import Updates

NORMALISING = {"adam", "adagrad", "rmsprop", "adadelta", "adamax", "lion", "nadam", "radam", "ftrl", "rowwise_adagrad",
               "proximal_adagrad", "lamb"}  # fmt: skip
MOST = 1e3  # a training with such a cost is leaving all bounds
CLOSE = 2e-5  # a kink nearer than this may be on the other side in float32


@dataclass
class Training:
    """costs: of each step; parameters and buffers: after the last one; sharp: steps before the first whose result depends on
    the rounding of single numbers; first: the gradients of the first step."""

    costs: list = field(default_factory=list)
    parameters: dict = field(default_factory=dict)
    buffers: dict = field(default_factory=dict)
    gradients: list = field(default_factory=list)
    sharp: int = 0


def minibatches(program):
    """Yields the numbers of the samples of each minibatch, over all passes."""
    for _ in range(program.passes):
        for begin in range(0, program.samples, program.batch):
            yield list(range(begin, min(begin + program.batch, program.samples)))


def model_of(program, data):
    """Returns the first parameters of a program."""
    model = Model(program.seed)
    run = Run(program, model, _reference_feeds(program, data, range(program.samples)))
    if run.costs:
        run.gradients()
    return model


def train(program, data, model, dtype, nudge=None):
    """nudge: a seed; each first parameter is then one of the two numbers beside it, as if it had been rounded otherwise."""
    result, margins = Training(), []
    result.parameters = {name: each.astype(dtype) for name, each in model.parameters.items()}
    if nudge is not None:
        draw = np.random.default_rng(nudge)
        for name, each in result.parameters.items():
            result.parameters[name] = np.nextafter(each, dtype(1e30) * draw.choice((-1, 1), each.shape).astype(dtype))
    copy = Model(program.seed)
    copy.parameters, copy.buffers, copy.multipliers = result.parameters, dict(model.buffers), dict(model.multipliers)
    copy.reached, copy.looked_up = model.reached, model.looked_up
    updates = Updates(program.updater, copy.parameters, model.multipliers, program.immutable)
    left = {}
    for chosen in minibatches(program):
        if result.costs and not result.costs[-1] < MOST:
            margins.append(0.0)
            result.costs.append(result.costs[-1])
            continue
        left = left if chosen[0] else {}  # a pass begins with zeros
        run = Run(program, copy, _reference_feeds(program, data, chosen), dtype, carried=left)
        left = run.left
        result.costs.append(float(run.cost().value))
        gradients = run.gradients()
        result.gradients.append(gradients)
        copy.buffers.update(run.new_buffers)
        updates.step(gradients, run.rows)
        margins.append(run.tape.margin)
    result.buffers = copy.buffers
    wild = [not cost < MOST for cost in result.costs]
    result.sharp = next((k for k, each in enumerate(margins) if each < CLOSE or wild[k]), len(margins))
    return result


def _reference_feeds(program, data, chosen):
    return {node.name: [data[node.name][k] for k in chosen] for node in program.data()}


def noisy_step(program, wide, narrow):
    """Returns the first step in which an updater divides gradients by sizes that are rounding errors, or one of the trainings
    has left all bounds."""
    if program.updater["type"] not in NORMALISING:
        return len(wide.costs)
    for step, (a, b) in enumerate(zip(wide.gradients, narrow.gradients, strict=False)):
        for name, gradient in a.items():
            if (np.abs(gradient - b[name]) > 0.02 * np.abs(gradient)).any():
                return step
    return min(len(wide.costs), len(wide.gradients), len(narrow.gradients))
