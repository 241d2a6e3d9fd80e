"""Tests that are skipped without leave fail, by conftest.py. SPDX-License-Identifier: Apache-2.0"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CASES = """
import pytest

def test_passes():
    pass

@pytest.mark.xfail
def test_fails_as_expected():
    assert False
"""
SKIPPED = "@pytest.mark.skip(reason='no CUDA device on this machine')\ndef test_skipped(): pass\n"
MISSING = "def test_missing(): pytest.importorskip('no_such_package')\n"
WHOLE = "pytest.importorskip('no_such_package')\n"
ALLOWED = {"TENON_ALLOWED_SKIPS": str(Path(__file__).parents[2] / "allowed_skips.txt")}


@pytest.mark.parametrize("added, variables, code", [
    (SKIPPED, ALLOWED, pytest.ExitCode.OK),
    (MISSING, {}, pytest.ExitCode.OK),
    (MISSING, ALLOWED, pytest.ExitCode.TESTS_FAILED),
    (WHOLE, ALLOWED, pytest.ExitCode.INTERRUPTED),
])  # fmt: skip
def test_a_skip_needs_leave(tmp_path, added, variables, code):
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_cases.py").write_text(CASES + added)
    environment = {name: value for name, value in os.environ.items() if name not in ALLOWED}
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_cases.py"]
    environment.update(variables)
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == code, done.stdout
    assert ("without leave: Skipped: could not import 'no_such_package'" in done.stdout) == (code != 0)
