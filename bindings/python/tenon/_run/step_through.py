"""A forward layer by layer, which shows where a model fails. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenon._base import arrays as _arrays
from tenon._model import layer as layers
from tenon._model.layer import Layer
from tenon._run.machine_part import Part
from tenon.parameters import ParameterSet


class Step(NamedTuple):
    """A layer that step_through computed. outputs: copies, arrays, Ragged or Sparse; one for most layers, none for
    metrics. Of a data layer what it was fed."""

    name: str
    type: str
    outputs: tuple[Any, ...]


def steps(
    outputs: Sequence[Layer], parameters: ParameterSet, options: Mapping[str, Any], feeds: list[tuple[str, Any]],
    samples: int,
) -> Iterator[Step]:  # fmt: skip
    """Computes a minibatch by machines of their own, and yields a Step for each layer that the outputs depend on."""
    options = {**options, "keep_all": True, "max_samples": samples}
    whole: Any = Part(outputs, parameters, options).core(samples, False)
    try:
        whole.forward(feeds, False)
    except Exception:  # noqa: BLE001 (kernels in Python raise any)
        whole = None  # each layer alone, with what it depends on, up to the one that fails
    anchor: Layer | None = None
    for layer in layers.in_order(outputs):
        core = whole
        if core is None:
            # Gradients go to floats alone: what has none is computed beside a layer before it that has.
            float_like = layer.role != "metric" and layer.type != "data" and np.dtype(layer.dtype).kind == "f"
            with_it = [layer] if float_like or anchor is None else [layer, anchor]
            trains = options["training"] and (float_like or anchor is not None)
            alone = Part(with_it, parameters, {**options, "training": trains})
            anchor = layer if float_like else anchor
            core = alone.core(samples, False)
            try:
                core.forward([each for each in feeds if each[0] in alone.types], False)
            except Exception as failure:
                failure.add_note(f'in layer "{layer.name}" ({layer.type})')
                raise
        count = 0 if layer.role == "metric" else layer._made().info()[5]
        computed = [_arrays.from_core(core.output(layer._made().output(number))) for number in range(count)]
        yield Step(layer.name, layer.type, tuple(computed))
