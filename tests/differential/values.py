"""The values of layers in the reference. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Value:
    """What a layer has for a minibatch. lengths: None, or of each sequence its rows, or of each sample those of its inner
    sequences. sparse: the ids of each sample; var holds the values in a dense array then."""

    var: Any
    lengths: tuple | None = None
    sparse: Any = None

    @property
    def levels(self):
        return 0 if self.lengths is None else 2 if self.lengths and isinstance(self.lengths[0], tuple) else 1


def inner_lengths(lengths):
    """Returns the lengths of the innermost sequences, one after the other."""
    if lengths and isinstance(lengths[0], tuple):
        return tuple(each for outer in lengths for each in outer)
    return lengths
