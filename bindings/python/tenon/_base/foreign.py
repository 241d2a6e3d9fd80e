"""What names of Paddle v2, PyTorch and Keras are in Tenon: the tables of docs/coming-from.md, as the build writes them.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tenon import _coming_from, error

_ENDINGS = re.compile(r"(_layer|_evaluator|_projection|Activation|Layer)$")


def suggestion(name: str, known: Iterable[str]) -> str:
    """Returns '; in Tenon: ...' for a name of another framework, else that of the most similar known name."""
    here = replacement(name)
    return f"; in Tenon: {here}" if here else error.suggestion(name, known)


def replacement(name: str) -> str:
    """Returns what a name is here, such as "sequence_pool kind=last" for last_seq; "" if it is unknown."""
    for each in (name, _ENDINGS.sub("", name), f"{name}_layer", f"{name}_evaluator", f"{name}Loss"):
        for key in (each, each.lower()):
            if key in _coming_from.NAMES:
                return _coming_from.NAMES[key]
    return ""
