"""Fixtures of several files. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import pytest


@pytest.fixture
def cell():
    """The output of a cell: messages as a kernel sends them to a notebook."""
    pytest.importorskip("IPython")
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.display_pub, shell.kernel = CapturingDisplayPublisher(), object()
    yield shell.display_pub.outputs
    InteractiveShell.clear_instance()
