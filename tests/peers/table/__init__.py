"""The table of the peer test: the rows of all kinds. SPDX-License-Identifier: Apache-2.0"""
from . import activations, arithmetic, costs, products, reductions, shapes, updaters
from .not_in_torch import NOT_IN_TORCH  # noqa: F401

ROWS = [row for kind in (activations, arithmetic, costs, products, reductions, shapes, updaters) for row in kind.ROWS]
