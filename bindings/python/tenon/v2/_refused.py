"""Names of Paddle v2 that have no place in tenon.v2: an error says what replaces them.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tenon._base import foreign

_ELSEWHERE = {
    "cluster": "tenon.dist_train, tenon.Team",
    "EndForwardBackward": "EndIteration, whose event.gm has outputs and gradients",
    "dump_config": "the command tenon plan",
    "image": "tenon.reader.images, and augment of readers",
    "make_diagram": "tenon.draw",
    "master": "tenon.dist_train",
    "xmap_readers": "map_readers",
}


def refuse(module: str, known: Mapping[str, Any]) -> Callable[[str], Any]:
    """Returns the __getattr__ of a module: AttributeError with what replaces a name."""

    def missing(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        public = [each for each in known if each[0] != "_"]
        hint = f"; in Tenon: {_ELSEWHERE[name]}" if name in _ELSEWHERE else foreign.suggestion(name, public)
        raise AttributeError(f'{module} does not offer "{name}"{hint}', name=name)

    return missing
