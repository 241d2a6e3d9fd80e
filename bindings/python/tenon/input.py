"""Values to feed. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from typing import Any

from tenon._base.arrays import Constant

__all__ = ["new"]


def new(value: Any, samples: int | None = None) -> Constant:
    """Returns a feed in which all samples have one value: a number, True or False, or an array of a sample's shape.

    It has as many samples as the other feeds of the minibatch; samples: where there are no others.
    """
    return Constant(value, samples)
