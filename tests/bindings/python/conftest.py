"""Fixtures of several files. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import pytest


@pytest.fixture
def cell():
    """The output of a cell: messages as a kernel sends them to a notebook; clear_output is {"clear": whether to wait}."""
    pytest.importorskip("IPython")
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    class Publisher(CapturingDisplayPublisher):
        def clear_output(self, wait=False):
            self.outputs.append({"clear": wait})

    shell = InteractiveShell.instance()
    shell.display_pub, shell.kernel = Publisher(), object()
    yield shell.display_pub.outputs
    InteractiveShell.clear_instance()
