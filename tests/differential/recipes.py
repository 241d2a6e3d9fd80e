"""How layers are drawn: functions that add one layer or a few to a draw, and profiles, which are lists of them.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from recipe_dense import DENSE


@dataclass(frozen=True)
class Profile:
    """begin: adds data layers. scalar_label: the labels of all costs are one number. export: ONNX has all its layers."""

    begin: Callable
    recipes: list
    export: bool = False
    scalar_label: bool = False


def _vectors(draw):
    for number in range(int(draw.random.integers(1, 4))):
        draw.data(f"x{number}", kind="dense", shape=[int(draw.random.integers(2, 7))])


PROFILES = {"dense": Profile(_vectors, DENSE)}
SHARES = [1.0]
