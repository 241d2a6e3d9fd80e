"""SPDX-License-Identifier: Apache-2.0"""

import pytest

from harness import Scratch


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)
