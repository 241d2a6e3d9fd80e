"""What gradient machines and the machines of events have in common: reading. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import json
from typing import Any

from tenon._arrays import from_core
from tenon._layer import Layer


class Machine:
    """Outputs, gradients, cost and metrics of the last minibatch of a machine."""

    def __init__(self, core: Any) -> None:
        self.core = core

    def output(self, layer: Layer) -> Any:
        """Returns a copy of the output of a layer: an array, Ragged or Sparse."""
        return from_core(self.core.output(layer._made()))

    def gradient(self, parameter: str) -> Any:
        """Returns a copy of the gradient of a parameter, dense."""
        return self.core.gradient(parameter)

    def sparse_gradient(self, parameter: str) -> Any:
        """Returns the numbers of the rows of a row-sparse gradient, and their gradients."""
        return self.core.sparse_gradient(parameter)

    @property
    def cost(self) -> float:
        """The mean cost over the samples of the minibatch."""
        return self.core.cost()

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics over the minibatch."""
        return self.core.metrics()

    def plan(self) -> dict[str, Any]:
        """Returns the calls of kernels that the machine makes, with layers and bytes."""
        return json.loads(self.core.plan())
