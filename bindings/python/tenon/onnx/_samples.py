"""Constants that depend on the number of samples: sizes that hold it, and numbers of which each sample has the same.

What is computed of them is computed for several numbers of samples: what is in proportion to that number, or is the same
for each sample, is understood. SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tenon.onnx._graph import MOVING, SAMPLES, Node
from tenon.onnx._values import Array, Refusal

_TRIALS = (1, 2, 5)  # numbers of samples
_LONGEST = 64  # of lists of sizes
Compute = Callable[[dict[str, Array]], list[Array]]


def times(size: int) -> int:
    """Returns how many times the number of samples a size is, 0 where it is none."""
    return size // SAMPLES if size <= SAMPLES and size % SAMPLES == 0 else 0


def holds(value: Array) -> bool:
    return value.dtype == np.int64 and bool(((value <= SAMPLES) & (value % SAMPLES == 0)).any())


def depends(node: Node, given: dict[str, Array], spread: dict[str, int]) -> bool:
    """Returns whether a node computes with the number of samples, rather than leave sizes that hold it as they are."""
    if any(name in spread for name in given):
        return True
    return node.op not in MOVING and any(holds(value) for value in given.values())


def compute(node: Node, given: dict[str, Array], spread: dict[str, int], function: Compute) -> list[Array]:
    """Returns the results of a node that computes with the number of samples. spread: constants of one sample that stand
    for all, with the place of the samples counted from the end; results that do are added."""
    runs = [function({name: _of(name, value, spread, count) for name, value in given.items()}) for count in _TRIALS]
    results = []
    for name, *found in zip(node.outputs, *runs, strict=True):
        result, place = _common(found)
        if place:
            spread[name] = place
        results.append(result)
    return results


def _of(name: str, value: Array, spread: dict[str, int], count: int) -> Array:
    if name in spread:
        return value.repeat(count, value.ndim - spread[name])
    if holds(value):
        multiples = (value <= SAMPLES) & (value % SAMPLES == 0)
        return np.where(multiples, value // SAMPLES * count, value)
    return value


def _common(found: Sequence[Array]) -> tuple[Array, int]:
    """Returns what results for several numbers of samples have in common, and the place of the samples, 0 for none."""
    first, *_, last = found
    shapes = {each.shape for each in found}
    if len(shapes) == 1 and all(np.array_equal(each, first) for each in found):
        return first, 0
    if len(shapes) == 1 and first.dtype == np.int64 and first.size <= _LONGEST:
        factors = (last - first) // (_TRIALS[-1] - _TRIALS[0])
        if all(
            np.array_equal(each, first + factors * (count - _TRIALS[0])) for each, count in zip(found, _TRIALS, strict=True)
        ):
            rest = first - factors * _TRIALS[0]
            if (rest[factors != 0] == 0).all() and (factors >= 0).all():
                return np.where(factors > 0, factors * SAMPLES, rest), 0
    if all(each.ndim == first.ndim for each in found):
        axes = [axis for axis in range(first.ndim) if last.shape[axis] != first.shape[axis]]
        if len(axes) == 1 and all(each.shape[axes[0]] == count for each, count in zip(found, _TRIALS, strict=True)):
            single = first.take([0], axes[0])
            if all(np.array_equal(each, single.repeat(count, axes[0])) for each, count in zip(found, _TRIALS, strict=True)):
                return single, first.ndim - axes[0]
    raise Refusal("calculates with the number of samples")
