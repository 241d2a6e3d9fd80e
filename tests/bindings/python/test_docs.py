"""The programs of the pages on Python run, one after the other. SPDX-License-Identifier: Apache-2.0"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tenon
from conftest import needs_communicator

DOCS = Path(__file__).parents[3] / "docs"
PAGES = ["../README.md", *sorted(path.name for path in DOCS.glob("python*.md"))]
PAGES += ["branches.md", "generation.md", "paddle-v2.md", "recurrence.md", "rerun.md", "seeds.md", "serving.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_a_page_run(page, ssh, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # of the files that they write
    programs = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    assert programs
    if page in ("python-teams.md", "seeds.md"):
        needs_communicator("zmq")
    before, names = tenon.host(), {}
    tenon.use(tenon.Host())  # numbers layers from 0, as in a process of its own
    try:
        for program in programs:
            if file := re.match(r"# (\w+\.py)\n", program):  # a program of its own
                Path(file[1]).write_text(program)
                subprocess.run([sys.executable, "-B", file[1]], check=True, timeout=100)
            else:
                exec(compile(program, page, "exec"), names)
    finally:
        tenon.use(before)
