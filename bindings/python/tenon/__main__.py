"""Runs the program tenon: `python -m tenon train job.toml`, and the scripts tenon and tenon-launch of an installed wheel; pods
of a cluster and agents of ssh are started by the latter.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import sys


def main(name: str = "tenon") -> None:
    """Replaces this process by the program, with the same arguments. Programs beside it find this interpreter."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    os.environ.setdefault("TENON_PYTHON", sys.executable)
    os.execv(program, [name, *sys.argv[1:]])


def launch() -> None:
    """Likewise, by the program tenon-launch."""
    main("tenon-launch")


if __name__ == "__main__":
    main()
