#!/usr/bin/env python3
"""Runs the checks of README.md and docs/*.md that do not need a compiler: check.py ROOT BUILD.
SPDX-License-Identifier: Apache-2.0"""
import pathlib
import sys

import documents

complaints = documents.check(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve())
sys.exit("\n".join(complaints) or 0)
