"""The published formulas of updaters, of their schedules and of what every updater has. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import math

import numpy as np


class Updates:
    """The updates of a model's parameters, whose values are of one dtype. settings: type and attributes."""

    def __init__(self, settings, parameters, multipliers, immutable=()):
        self.own = {**DEFAULTS.get(settings["type"], {}), **settings}
        self.parameters, self.multipliers, self.immutable = parameters, multipliers, immutable
        self.states = {name: {} for name in parameters}
        self.number = 0

    def step(self, gradients, rows):
        """rows: {parameter with a row-sparse gradient: the rows that were read}; no others change."""
        self.number += 1
        gradients = {name: each for name, each in gradients.items() if not self._is_fixed(name)}
        gradients = self._clipped(gradients)
        rate = self.own["learning_rate"] * factor(self.own.get("schedule") or {}, self.number)
        for name, gradient in gradients.items():
            chosen = slice(None) if rows.get(name) is None else np.array(sorted(rows[name]), int)
            self._update(name, gradient, chosen, rate)

    def _is_fixed(self, name):
        return any(name == each or name.startswith(each + ".") for each in self.immutable)

    def _clipped(self, gradients):
        most = self.own.get("clip_norm")
        if most is not None:
            norm = math.sqrt(sum(float((each.astype(np.float64) ** 2).sum()) for each in gradients.values()))
            scale = min(1.0, most / norm) if norm else 1.0
            gradients = {name: each * scale for name, each in gradients.items()}
        if self.own.get("clip_value") is not None:
            bound = self.own["clip_value"]
            gradients = {name: np.clip(each, -bound, bound) for name, each in gradients.items()}
        return gradients

    def _update(self, name, gradient, chosen, rate):
        p, state = self.parameters[name], self.states[name]
        options = self.multipliers.get(name, {})
        decayed = options.get("decay_multiplier", 1.0)
        penalty = self.own.get("l1", 0) * np.sign(p) + self.own.get("l2", 0) * p
        g = (gradient + penalty * decayed).astype(p.dtype)
        for key in STATES.get(self.own["type"], ()):
            state.setdefault(key, np.full(p.shape, self.own.get("initial_sum", 0.0) if key == "v" else 0.0, p.dtype))
        part = {key: each[chosen] for key, each in state.items()}
        rule = RULES[self.own["type"]]
        values = rule(p[chosen], g[chosen], part, rate * options.get("rate_multiplier", 1.0), decayed, self.number, self.own)
        p[chosen] = values
        for key, each in part.items():
            state[key][chosen] = each


def factor(schedule, step):
    """Returns what a schedule multiplies the rate by in a step, from 1."""
    warm_up = schedule.get("warm_up", 0)
    if step <= warm_up:
        return step / warm_up
    u, kind = step - warm_up, schedule.get("type", "constant")
    steps, rate, end = schedule.get("steps", 1), schedule.get("rate", 0.1), schedule.get("end", 0.0)
    v = min(u / steps, 1)
    if kind == "multi_step":
        return rate ** sum(u >= each for each in schedule["milestones"])
    return {
        "constant": lambda: 1.0,
        "step": lambda: rate ** math.floor(u / steps),
        "exponential": lambda: rate ** (u / steps),
        "inverse": lambda: (1 + u / steps) ** -schedule.get("power", 1.0),
        "linear": lambda: schedule["start"] + (end - schedule["start"]) * v,
        "polynomial": lambda: end + (1 - end) * (1 - v) ** schedule.get("power", 1.0),
        "cosine": lambda: end + (1 - end) * (1 + math.cos(math.pi * v)) / 2,
    }[kind]()


def _decayed(p, g, decay, own):
    return g + own.get("weight_decay", 0.0) * decay * p


def _moments(g, state, own, centred_by="m"):
    b1, b2 = own["beta1"], own["beta2"]
    state["m"] = b1 * state["m"] + (1 - b1) * g
    state["v"] = b2 * state["v"] + (1 - b2) * g * g


def sgd(p, g, state, rate, decay, t, own):
    g = _decayed(p, g, decay, own)
    momentum = own.get("momentum", 0.0)
    state["m"] = momentum * state["m"] + g
    return p - rate * (g + momentum * state["m"] if own.get("nesterov") else state["m"])


def adam(p, g, state, rate, decay, t, own):
    decoupled = own.get("decoupled", False)
    _moments(g if decoupled else _decayed(p, g, decay, own), state, own)
    direction = (state["m"] / (1 - own["beta1"] ** t)) / (np.sqrt(state["v"] / (1 - own["beta2"] ** t)) + own["epsilon"])
    return p - rate * (direction + (own.get("weight_decay", 0.0) * decay * p if decoupled else 0))


def adagrad(p, g, state, rate, decay, t, own):
    g = _decayed(p, g, decay, own)
    state["v"] = state["v"] + g * g
    return p - rate * g / (np.sqrt(state["v"]) + own["epsilon"])


def rowwise_adagrad(p, g, state, rate, decay, t, own):
    g = _decayed(p, g, decay, own)
    squares = g * g
    state["v"] = state["v"] + (squares.mean(axis=tuple(range(1, p.ndim)), keepdims=True) if p.ndim > 1 else squares)
    return p - rate * g / (np.sqrt(state["v"]) + own["epsilon"])


def rmsprop(p, g, state, rate, decay, t, own):
    g, rho = _decayed(p, g, decay, own), own["rho"]
    state["v"] = rho * state["v"] + (1 - rho) * g * g
    state["m"] = rho * state["m"] + (1 - rho) * g
    square = np.maximum(state["v"] - state["m"] ** 2, 0) if own.get("centered") else state["v"]
    state["b"] = own.get("momentum", 0.0) * state["b"] + g / (np.sqrt(square) + own["epsilon"])
    return p - rate * state["b"]


def adadelta(p, g, state, rate, decay, t, own):
    g, rho = _decayed(p, g, decay, own), own["rho"]
    state["v"] = rho * state["v"] + (1 - rho) * g * g
    step = np.sqrt(state["u"] + own["epsilon"]) / np.sqrt(state["v"] + own["epsilon"]) * g
    state["u"] = rho * state["u"] + (1 - rho) * step * step
    return p - rate * step


def adamax(p, g, state, rate, decay, t, own):
    g = _decayed(p, g, decay, own)
    state["m"] = own["beta1"] * state["m"] + (1 - own["beta1"]) * g
    state["u"] = np.maximum(own["beta2"] * state["u"], np.abs(g) + own["epsilon"])
    return p - rate / (1 - own["beta1"] ** t) * state["m"] / state["u"]


def lion(p, g, state, rate, decay, t, own):
    direction = np.sign(own["beta1"] * state["m"] + (1 - own["beta1"]) * g)
    state["m"] = own["beta2"] * state["m"] + (1 - own["beta2"]) * g
    return p - rate * (direction + own.get("weight_decay", 0.0) * decay * p)


def nadam(p, g, state, rate, decay, t, own):
    g, b1 = _decayed(p, g, decay, own), own["beta1"]
    _moments(g, state, own)
    ahead = b1 * state["m"] / (1 - b1 ** (t + 1)) + (1 - b1) * g / (1 - b1**t)
    return p - rate * ahead / (np.sqrt(state["v"] / (1 - own["beta2"] ** t)) + own["epsilon"])


def radam(p, g, state, rate, decay, t, own):
    g, b2 = _decayed(p, g, decay, own), own["beta2"]
    _moments(g, state, own)
    most, step = 2 / (1 - b2) - 1, state["m"] / (1 - own["beta1"] ** t)
    length = most - 2 * t * b2**t / (1 - b2**t)
    if length > 5:
        scale = math.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
        step = step * scale / (np.sqrt(state["v"] / (1 - b2**t)) + own["epsilon"])
    return p - rate * step


def ftrl(p, g, state, rate, decay, t, own):
    l1, l2 = own.get("l1_strength", 0.0), own.get("l2_strength", 0.0) * decay
    if rate == 0:
        return p
    before, state["n"] = state["n"], state["n"] + g * g
    state["z"] = state["z"] + g - (np.sqrt(state["n"]) - np.sqrt(before)) / rate * p
    z = state["z"]
    moved = np.where(np.abs(z) <= l1, 0, -(z - np.sign(z) * l1) / ((own["beta"] + np.sqrt(state["n"])) / rate + l2))
    return np.where(state["n"] > 0, moved, p)


def proximal_sgd(p, g, state, rate, decay, t, own):
    u = p - rate * g
    l1, l2 = own.get("l1_strength", 0.0), own.get("l2_strength", 0.0)
    return np.sign(u) * np.maximum(np.abs(u) - rate * decay * l1, 0) / (1 + rate * decay * l2)


def proximal_adagrad(p, g, state, rate, decay, t, own):
    state["v"] = state["v"] + g * g
    return proximal_sgd(p, g, state, rate / (np.sqrt(state["v"]) + own["epsilon"]), decay, t, own)


def lamb(p, g, state, rate, decay, t, own):
    _moments(g, state, own)
    direction = (state["m"] / (1 - own["beta1"] ** t)) / (np.sqrt(state["v"] / (1 - own["beta2"] ** t)) + own["epsilon"])
    direction = direction + own.get("weight_decay", 0.0) * decay * p
    own_norm, norm = math.sqrt(float((p * p).sum())), math.sqrt(float((direction * direction).sum()))
    own_norm = max(own_norm, own.get("least_norm", 0.0))
    return p - rate * (own_norm / norm if own_norm and norm else 1.0) * direction


_BETAS = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
DEFAULTS = {
    "sgd": {"learning_rate": 0.01}, "adam": {"learning_rate": 0.001, **_BETAS},
    "adagrad": {"learning_rate": 0.01, "epsilon": 1e-10}, "rowwise_adagrad": {"learning_rate": 0.01, "epsilon": 1e-10},
    "rmsprop": {"learning_rate": 0.001, "rho": 0.9, "epsilon": 1e-8},
    "adadelta": {"learning_rate": 1.0, "rho": 0.95, "epsilon": 1e-6}, "adamax": {"learning_rate": 0.002, **_BETAS},
    "lion": {"learning_rate": 1e-4, "beta1": 0.9, "beta2": 0.99}, "nadam": {"learning_rate": 0.002, **_BETAS},
    "radam": {"learning_rate": 0.001, **_BETAS}, "ftrl": {"learning_rate": 0.1, "beta": 1.0},
    "proximal_sgd": {"learning_rate": 0.01},
    "proximal_adagrad": {"learning_rate": 0.01, "initial_sum": 0.1, "epsilon": 1e-10},
    "lamb": {"learning_rate": 0.001, **_BETAS, "epsilon": 1e-6},
}  # fmt: skip
STATES = {"sgd": "m", "adam": "mv", "adagrad": "v", "rowwise_adagrad": "v", "rmsprop": "vmb", "adadelta": "vu", "adamax": "mu",
          "lion": "m", "nadam": "mv", "radam": "mv", "ftrl": "zn", "proximal_adagrad": "v", "lamb": "mv"}  # fmt: skip
RULES = {each.__name__: each for each in (
    sgd, adam, adagrad, rowwise_adagrad, rmsprop, adadelta, adamax, lion, nadam, radam, ftrl, proximal_sgd, proximal_adagrad,
    lamb,
)}  # fmt: skip
WHOLE = {"lamb"}  # those that need whole tensors, and refuse row-sparse gradients
