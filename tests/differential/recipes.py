"""How programs are drawn: profiles with their data layers and the recipes of their layers, functions that add one or a few.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import recipe_dense as dense
import recipe_images as images
import recipe_sequences as sequences
from recipe_nested import NESTED, cond, scan


@dataclass(frozen=True)
class Profile:
    """begin: adds data layers. scalar_label: the labels of all costs are one number. export: ONNX has all its layers.
    generates: the last layer has scores of the id that follows."""

    begin: Callable
    recipes: list
    export: bool = False
    scalar_label: bool = False
    generates: bool = False


def _vectors(draw):
    for number in range(int(draw.random.integers(1, 4))):
        draw.data(f"x{number}", kind="dense", shape=[int(draw.random.integers(2, 7))])


def _ids(draw):
    """A sequence of ids whose vectors are all that the layers read."""
    limit = int(draw.random.integers(3, 5))
    draw.data("w0", kind="dense", limit=limit, levels=1, lengths="l0")
    draw.add("embedding", "w0", vocabulary=limit, size=int(draw.random.integers(2, 5)))


def _either(draw):
    (images.begin if draw.chance(0.7) else _vectors)(draw)


_NOT_WRITTEN = {dense.chosen, dense.gate, dense.along, dense.pairs, dense.attend}
_WRITTEN = [each for each in dense.DENSE if each not in _NOT_WRITTEN]
BLOCKS = ("residual_block", "img_conv_group")
PROFILES = {
    "dense": Profile(_vectors, [*dense.DENSE, cond]),
    "images": Profile(images.begin, [*images.IMAGES, *images.IMAGES, *dense.DENSE]),
    "sequences": Profile(sequences.begin, [*sequences.SEQUENCES, *sequences.SEQUENCES, *NESTED, *dense.DENSE]),
    "scans": Profile(sequences.begin, [*NESTED, *NESTED, *NESTED, *sequences.SEQUENCES]),
    "nested": Profile(sequences.begin_nested, [*NESTED, *NESTED, *sequences.SEQUENCES]),
    "words": Profile(sequences.begin_words, [*sequences.SEQUENCES, *dense.DENSE]),
    "sparse": Profile(sequences.begin_sparse, dense.DENSE, scalar_label=True),
    "texts": Profile(_ids, [scan, scan, dense.fc, dense.unary, dense.norm, dense.concat, dense.binary], generates=True),
    "export": Profile(_either, [*images.IMAGES, *_WRITTEN], export=True),
}
SHARES = [0.14, 0.15, 0.13, 0.14, 0.08, 0.06, 0.06, 0.04, 0.2]
