"""Output in the cells of notebooks. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import sys


def is_notebook() -> bool:
    """Returns whether the program runs in a notebook: in a kernel of IPython, whose output is shown in cells."""
    ipython = sys.modules.get("IPython")  # a kernel has imported it
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None
