"""Gradients against finite differences. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenon import _core, error, gradient_machine
from tenon._base import check as _check
from tenon._base.arrays import Ragged
from tenon._model import layer as layers
from tenon._model.layer import Layer, LayerLike
from tenon.parameters import ParameterSet, create

_STREAM = 0x67726164


def check_gradient(
    output: LayerLike,
    parameters: ParameterSet | None = None,
    feeds: Mapping[str, Any] | None = None,
    *,
    samples: int = 3,
    step: float = 1e-3,
    tolerance: float = 1e-4,
    most: int = 50,
    seed: int = 0,
) -> dict[str, float]:
    """Compares the gradients of a layer with finite differences, in float64, for all its parameters and its dense inputs
    of floats; of each at most `most` elements.

    The number that is differentiated is a sum of the output's elements with random weights. feeds: values of the data
    layers; default random, for `samples` samples. Parameters are changed during the check, and end as before. Random
    numbers inside the model must not be drawn. Returns the largest relative difference by name; raises InvalidError that
    names the worst element where one is above the tolerance, relative to the largest gradient of its array.
    """
    chosen = layers.as_layer(output)
    samples, most = _check.whole(samples, "samples", "check_gradient", 1), _check.whole(most, "most", "check_gradient", 1)
    seed = _check.seed(seed, "check_gradient")
    used = create(chosen, seed=seed) if parameters is None else parameters
    layers.make([chosen])
    # A stream of its own: feeds of default_rng(seed) would be the weights, too, and their gradients often 0.
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM,)))
    given = dict(feeds) if feeds is not None else _random_feeds(chosen, samples, random)
    machine = gradient_machine.new(
        chosen, used, compute="float64", data_gradients=True, given_gradients=True, max_samples=max(1, samples)
    )
    values = machine.forward(given)
    shape = (values.values if isinstance(values, Ragged) else values).shape
    weights = random.normal(size=shape)

    def number() -> float:
        computed = machine.forward(given)
        return float(((computed.values if isinstance(computed, Ragged) else computed) * weights).sum())

    machine.backward({chosen: weights})
    found: dict[str, NDArray[Any]] = {}
    for name in machine.trained():
        found[name] = machine.gradient(name)
    types = machine.types
    for name, type in types.items():
        if type.storage == _core.DENSE and type.dtype.startswith("float"):
            try:
                found[name] = machine.data_gradient(name)
            except error.NotFoundError:
                continue
    machine.updated()
    report = {}
    for name, gradient in found.items():
        if name in used:
            report[name] = _compare(name, gradient, used[name].copy(), number, used.__setitem__, step, tolerance, most, random)
        else:
            array = np.array(given[name], np.float32)
            report[name] = _compare(name, gradient, array, number, given.__setitem__, step, tolerance, most, random)
    return report


def _random_feeds(output: Layer, samples: int, random: np.random.Generator) -> dict[str, Any]:
    feeds: dict[str, Any] = {}
    for name, type in layers.data_types([output]).items():
        if type.storage != _core.DENSE:
            raise error.InvalidError(f'check_gradient needs feeds for data layer "{name}", {type}', "check_gradient", name)
        shape = (samples, *type.shape)
        if type.dtype.startswith("float"):
            feeds[name] = random.normal(size=shape).astype(np.float32)
        else:
            feeds[name] = random.integers(0, max(1, type.index_limit), shape).astype(type.dtype)
    return feeds


def _compare(
    name: str, gradient: NDArray[Any], values: NDArray[Any], number: Any, set_: Any, step: float, tolerance: float,
    most: int, random: np.random.Generator,
) -> float:  # fmt: skip
    """Returns the largest difference of some elements, relative to the largest gradient."""
    flat = gradient.ravel()
    scale = max(float(np.abs(flat).max(initial=0)), 1e-6)
    places = np.arange(flat.size) if flat.size <= most else random.choice(flat.size, most, replace=False)
    worst = 0.0
    kept = values.copy()

    def end(place: Any, by: float) -> tuple[float, float]:
        """Returns by how much a value moved, since it is float32, and the number then."""
        moved = kept.copy()
        moved.ravel()[place] += by
        set_(name, moved)
        return float(moved.ravel()[place]) - float(kept.ravel()[place]), number()

    try:
        for place in places:
            (after, high), (before, low) = end(place, step), end(place, -step)
            slope = (high - low) / (after - before)
            if not abs(slope - float(flat[place])) / scale <= tolerance:
                slope = _extrapolated(partial(end, place), step)
            difference = abs(slope - float(flat[place])) / scale
            worst = max(worst, difference)
            if not difference <= tolerance:
                at = [int(each) for each in np.unravel_index(place, gradient.shape)]
                raise error.InvalidError(
                    f'the gradient of "{name}" at {at} is {flat[place]:.9g}, but the slope there is {slope:.9g}; the '
                    f"largest gradient of the array is {scale:.3g}",
                    "check_gradient",
                    name,
                )
    finally:
        set_(name, kept)
    return worst


def _extrapolated(end: Callable[[float], tuple[float, float]], step: float) -> float:
    """Returns the slope by differences over a step and over half of it, without their error of the second order, which is
    large beside a gradient of 0."""
    _, middle = end(0.0)
    slopes = []
    for by in (step, step / 2):
        (after, high), (before, low) = end(by), end(-by)
        slope = (before * before * (high - middle) - after * after * (low - middle)) / (after * before * (before - after))
        slopes.append((slope, after * before))
    (wide, much), (narrow, little) = slopes
    return (narrow * much - wide * little) / (much - little)
