"""The formulas of layers, by type. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from formula_costs import COSTS as _COSTS
from formula_dense import DENSE
from formula_images import IMAGES
from formula_nested import NESTED
from formula_sequences import SEQUENCES

COSTS = frozenset(_COSTS)
PLAIN = {**DENSE, **IMAGES, **_COSTS}  # functions of vars; rows of sequences stay what they are
RAGGED = SEQUENCES  # functions of values, with the lengths of sequences
__all__ = ["COSTS", "NESTED", "PLAIN", "RAGGED"]
