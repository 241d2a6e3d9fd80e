"""The machines of the library that a gradient machine is made of, and the cost that one without a cost takes.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenon import _core, error
from tenon._model import layer as layers
from tenon._model.layer import Data, Layer
from tenon.data_type import integer_value
from tenon.parameters import ParameterSet


class Part:
    """A machine of the library for fixed outputs, made again for larger minibatches and after the set was joined."""

    def __init__(self, outputs: Sequence[Layer], parameters: ParameterSet, options: Mapping[str, Any]) -> None:
        self.outputs = list(outputs)
        self.types, self.no_tuples = layers.defined_types(outputs)
        self.has_cost = any(each.role == "cost" for each in outputs)
        self._parameters = parameters
        self._options = dict(options)
        self._limit = int(self._options.pop("max_samples"))
        self._set: Any = None
        self._core: Any = None

    def core(self, samples: int, has_gradients: bool) -> Any:
        """Returns the handle, for minibatches of so many samples."""
        if self._core is not None and self._set is self._parameters.core and samples <= self._limit:
            return self._core
        if self._core is not None and has_gradients:
            what = f"a minibatch of {samples} samples" if samples > self._limit else "its parameters, which were joined"
            raise error.MisuseError(
                f"the machine has gradients that no update has used, and must be made again for {what}: call an "
                f"updater's update before, or give max_samples={max(samples, self._limit)} to gradient_machine.new",
                "gradient_machine",
            )
        if samples > self._limit:
            self._limit = samples if self._core is None else max(samples, self._limit * 3 // 2)
        options = dict(self._options)
        if options.get("given_gradients") is None:
            options["given_gradients"] = options["training"] and not self.has_cost
        cores = [each._made() for each in self.outputs]
        self._set = self._parameters.core
        room = max(1, self._limit, len(options.get("devices", ())))
        self._core = _core.machine(self._parameters.host.core, self._set, cores, room, **options)
        return self._core


def default_cost(outputs: Sequence[Layer], label: str) -> Layer | None:
    """Returns cross_entropy of the only softmax of [samples, classes] among the outputs; None if there is no one."""
    softmaxes = [each for each in outputs if _is_softmax(each)]
    if len(softmaxes) != 1:
        return None
    [output] = softmaxes
    classes = output.shape[1]
    if output._made().find(label) is not None:
        raise error.InvalidError(
            f'the topology has a layer "{label}", so that the label of the default cost needs another name: give '
            "label= to gradient_machine.new",
            "gradient_machine",
            label,
        )
    return Layer("cross_entropy", [output, Data(label, integer_value(classes))], {})


def _is_softmax(layer: Layer) -> bool:
    softmax = layer.type == "softmax" or layer._made().attributes().get("act") == "softmax"
    return softmax and len(layer.shape) == 2 and layer.shape[0] == "samples"
