"""The table of the peer test: the rows of all kinds. SPDX-License-Identifier: Apache-2.0"""
from . import activations, arithmetic, costs, images, products, reductions, schedules, sequences, shapes, updaters
from .not_in_torch import NOT_IN_TORCH  # noqa: F401

KINDS = (activations, arithmetic, costs, images, products, reductions, schedules, sequences, shapes, updaters)
ROWS = [row for kind in KINDS for row in kind.ROWS]
