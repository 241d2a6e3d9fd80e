"""What gradient machines and the machines of events have in common: reading. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from typing import Any

from tenon._base.arrays import Shared, from_core
from tenon._model.layer import Layer
from tenon.inspect import Plan


class Machine:
    """Outputs, gradients, cost and metrics of the last minibatch of a machine."""

    def __init__(self, core: Any) -> None:
        self._core = core

    @property
    def core(self) -> Any:
        """The handle of the last forward."""
        return self._core

    @property
    def backward_core(self) -> Any:
        """The handle of the last backward, which updaters take the gradients of."""
        return self._core

    def updated(self) -> None:
        """Told by updaters: the gradients were used."""

    def output(self, layer: Layer) -> Any:
        """Returns a copy of the output of a layer: an array, Ragged or Sparse."""
        return from_core(self.core.output(layer._made()))

    def dlpack(self, layer: Layer) -> Shared:
        """Returns the memory of a dense output of the last forward for from_dlpack of NumPy, PyTorch and others, without
        a copy. While a tensor of theirs lives, the next forward is a MisuseError; it must not be written."""
        return Shared(lambda versioned: self.core.dlpack(layer._made(), versioned))

    def gradient(self, parameter: str) -> Any:
        """Returns a copy of the gradient of a parameter, dense."""
        return self.backward_core.gradient(parameter)

    def sparse_gradient(self, parameter: str) -> Any:
        """Returns the numbers of the rows of a row-sparse gradient, and their gradients."""
        return self.backward_core.sparse_gradient(parameter)

    @property
    def cost(self) -> float:
        """The mean cost over the samples of the minibatch."""
        cost: float = self.core.cost()
        return cost

    @property
    def costs(self) -> dict[str, float]:
        """Each of two or more costs by the name of its layer, times its coefficient: their sum is `cost`. Else empty."""
        costs: dict[str, float] = self.core.costs()
        return costs

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics over the minibatch."""
        metrics: dict[str, float] = self.core.metrics()
        return metrics

    def plan(self) -> Plan:
        """Returns the calls of kernels that the machine makes, and its memory, as tenon.plan does."""
        return Plan.of(self.core.plan())
