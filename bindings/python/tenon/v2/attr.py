"""Attributes of parameters and layers of Paddle v2: param_attr=paddle.attr.Param(name="emb", initial_std=0.01).

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

from tenon import error
from tenon._base import caller
from tenon.v2._refused import refuse


class Param:
    """How a parameter is called, begins and learns."""

    def __init__(
        self,
        name: str | None = None,
        is_static: bool = False,
        initial_std: float | None = None,
        initial_mean: float | None = None,
        initial_max: float | None = None,
        initial_min: float | None = None,
        l1_rate: float | None = None,
        l2_rate: float | None = None,
        learning_rate: float | None = None,
        sparse_update: bool = False,
        **others: Any,
    ) -> None:
        """l1_rate, l2_rate: 0 alone, which exempts the parameter. sparse_update: what can be row-sparse is so without it."""
        for key, value in {**others, "l1_rate": l1_rate or None, "l2_rate": l2_rate or None}.items():
            if value is not None:
                instead = "0, or a decay_multiplier of param= on tenon.layer" if key in ("l1_rate", "l2_rate") else "None"
                raise error.UnsupportedError(f"attr.Param: {key}={value!r} of one parameter; expected {instead}", "attr", key)
        options: dict[str, Any] = {"name": name or None}
        if initial_max is not None or initial_min is not None:
            high = 0.0 if initial_max is None else initial_max
            options.update(init="uniform", init_low=-high if initial_min is None else initial_min, init_high=high)
        elif initial_std:
            options.update(init="normal", init_mean=float(initial_mean or 0), init_std=float(initial_std))
        elif initial_std is not None or initial_mean is not None:
            options.update(init="constant", init_value=float(initial_mean or 0))
        if is_static:
            options.update(rate_multiplier=0.0, decay_multiplier=0.0)
        elif learning_rate is not None and learning_rate != 1:
            options["rate_multiplier"] = float(learning_rate)
        if 0 in (l1_rate, l2_rate):
            options["decay_multiplier"] = 0.0
        self.options = {key: value for key, value in options.items() if value is not None}


class Extra:
    """Attributes of a layer."""

    def __init__(
        self, drop_rate: float | None = None, error_clipping_threshold: float | None = None, device: Any = None
    ) -> None:
        """error_clipping_threshold: without effect; gradient_clipping_threshold of the optimizer bounds gradients."""
        if device is not None:
            raise error.UnsupportedError("attr.Extra: device of one layer; trainings have devices", "attr", "device")
        if error_clipping_threshold is not None:
            caller.warn(
                "error_clipping_threshold has no effect; gradient_clipping_threshold of the optimizer bounds gradients",
                UserWarning,
            )
        self.options = {"drop_rate": float(drop_rate)} if drop_rate else {}


ParamAttr = ParameterAttribute = Param
ExtraAttr = ExtraLayerAttribute = ExtraAttribute = Extra

__getattr__ = refuse(__name__, globals())
