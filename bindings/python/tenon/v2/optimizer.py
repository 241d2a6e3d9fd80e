"""Optimizers of Paddle v2: paddle.optimizer.Momentum(momentum=0.9, learning_rate=0.1 / 128).

There the gradient of a minibatch is a sum, here a mean; and schedules count samples, here updates. So rates, decays and
schedules are converted once the size of the minibatches is known.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

from tenon import error
from tenon.updater import Updater
from tenon.v2._refused import refuse


class L2Regularization:
    """rate times each parameter is added to its gradient."""

    def __init__(self, rate: float) -> None:
        self.rate = rate


class ModelAverage:
    """Tests and saved parameters are averages of those of the last max_average_window updates."""

    def __init__(self, average_window: float, max_average_window: int | None = None, do_average_in_cpu: bool = False) -> None:
        self.options = {"decay": 1.0, "window": max_average_window or 0}


class Optimizer:
    """What all optimizers take. summed: whether an update is as large as the gradient, so that the rate depends on whether
    that is a sum."""

    type = ""
    summed = False

    def __init__(
        self,
        learning_rate: float = 1e-3,
        regularization: L2Regularization | None = None,
        model_average: ModelAverage | None = None,
        gradient_clipping_threshold: float | None = None,
        learning_rate_decay_a: float = 0.0,
        learning_rate_decay_b: float = 0.0,
        learning_rate_schedule: str | None = None,
        learning_rate_args: str = "",
        is_async: bool = False,
        **own: Any,
    ) -> None:
        self.rate, self.average, self.own = learning_rate, model_average, own
        self._decay = regularization.rate if regularization else 0.0
        self._threshold = gradient_clipping_threshold
        self._schedule = (
            learning_rate_schedule or "constant",
            learning_rate_decay_a,
            learning_rate_decay_b,
            learning_rate_args,
        )

    def updater(self, batch: int) -> Updater:
        """Returns the updater for minibatches of so many samples."""
        attributes: dict[str, Any] = {"learning_rate": self.rate * (batch if self.summed else 1), **self.own}
        if self._decay:
            attributes["l2"] = self._decay / batch
        if self._threshold:
            attributes["clip_value"] = self._threshold / batch
        for key, value in self._steps(batch).items():
            attributes[f"schedule.{key}"] = value
        return Updater(self.type, attributes)

    def _steps(self, batch: int) -> dict[str, Any]:
        kind, a, b, texts = self._schedule

        def steps(samples: float) -> int:
            return max(1, round(samples / batch))

        if kind == "constant":
            return {}
        if kind == "poly":
            return {"type": "inverse", "steps": steps(1 / a), "power": b}
        if kind == "caffe_poly":
            return {"type": "polynomial", "steps": steps(a), "power": b}
        if kind in ("exp", "discexp"):
            return {"type": "exponential" if kind == "exp" else "step", "steps": steps(b), "rate": a}
        if kind == "linear":
            return {"type": "linear", "steps": steps((self.rate - b) / a), "start": 1.0, "end": b / self.rate}
        if kind == "manual":
            parts = [part.split(":") for part in texts.split(",")]
            rates = [float(rate) for _, rate in parts]
            return {
                "type": "multi_step",
                "milestones": [steps(float(samples)) for samples, _ in parts[:-1]],
                "factors": rates[1:],
            }
        raise error.UnsupportedError(
            f'optimizer: learning_rate_schedule="{kind}"; expected "constant", "poly", "caffe_poly", "exp", '
            '"discexp", "linear" or "manual"',
            "optimizer",
            "learning_rate_schedule",
        )


class Momentum(Optimizer):
    """Stochastic gradient descent with momentum."""

    type, summed = "sgd", True

    def __init__(self, momentum: float | None = None, sparse: bool = False, **common: Any) -> None:
        super().__init__(momentum=momentum or 0.0, **common)


class Adam(Optimizer):
    """Adam."""

    type = "adam"


class Adamax(Optimizer):
    """Adamax."""

    type = "adamax"


class AdaGrad(Optimizer):
    """AdaGrad."""

    type = "adagrad"


class AdaDelta(Optimizer):
    """AdaDelta."""

    type = "adadelta"


class RMSProp(Optimizer):
    """RMSProp."""

    type = "rmsprop"

    def __init__(self, rho: float = 0.95, epsilon: float = 1e-6, **common: Any) -> None:
        super().__init__(rho=rho, epsilon=epsilon, **common)


class DecayedAdaGrad(RMSProp):
    """The same as RMSProp, with epsilon outside of the root."""


__getattr__ = refuse(__name__, globals())
