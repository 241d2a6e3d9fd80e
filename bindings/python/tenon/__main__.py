"""Runs the program tenon: `python -m tenon train job.toml`, and the script tenon of an installed wheel.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Replaces this process by the program, with the same arguments. Programs beside it find this interpreter."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "tenon")
    os.environ.setdefault("TENON_PYTHON", sys.executable)
    os.execv(program, ["tenon", *sys.argv[1:]])


if __name__ == "__main__":
    main()
