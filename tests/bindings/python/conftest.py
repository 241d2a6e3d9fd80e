"""Fixtures of several files, and which tests may be skipped. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import tenon

SSH = """#!/bin/sh
echo "$*" >>"$TEST_LOG"
while [ "$1" != -- ]; do shift; done
case $2 in
unknown) echo "ssh: Could not resolve hostname unknown: Name or service not known" >&2; exit 255 ;;
bare) echo "sh: 1: exec: python3: not found" >&2; exit 127 ;;
esac
export TEST_NODE=$2 SSH_CONNECTION="127.0.0.1 40000 127.0.0.1 22"
[ ! -d "$TEST_ELSEWHERE" ] || cd "$TEST_ELSEWHERE"
exec sh -c "$3"
"""

# The variable names a file of reasons, as scripts/test-report reads it, and a skip for any other reason fails: ctest sees
# whole files, and would count one with skipped tests as passed. Where it is not set, any reason will do.
ALLOWED = "TENON_ALLOWED_SKIPS"


def refuse_skip(report):
    """Makes a skip without leave a failure. report: of a test, or of a file that is skipped as a whole."""
    if ALLOWED not in os.environ or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2]
    lines = Path(os.environ[ALLOWED]).read_text().splitlines()
    if not any(re.search(line.strip(), reason) for line in lines if line.strip() and not line.startswith("#")):
        report.outcome, report.longrepr = "failed", f"{report.nodeid}: without leave: {reason}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    refuse_skip((yield).get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report():
    refuse_skip((yield).get_result())


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


def needs_communicator(name: str) -> None:
    """Skips the test if no plugin of the build has the communicator."""
    manifests = [plugin["manifest"] or {} for plugin in tenon.host().plugins()]
    if not any(each["type"] == name for manifest in manifests for each in manifest.get("comms", ())):
        pytest.skip(f"no communicator {name} in this build")


@pytest.fixture
def environment(monkeypatch):
    """Without what launchers say; a function that sets it."""
    for name in list(os.environ):
        if name.startswith(("TENON_TEAM_", "OMPI_", "PMI_", "MPI_")):
            monkeypatch.delenv(name)

    def change(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return change


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    """A script in place of ssh: starts what is for another machine on this one. Its log is in the folder of the test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(SSH)
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("TEST_LOG", str(tmp_path / "log"))
