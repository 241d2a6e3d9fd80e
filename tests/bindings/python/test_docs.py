"""The programs of the pages on Python run, one after the other. SPDX-License-Identifier: Apache-2.0"""

import re
from pathlib import Path

import pytest

import tenon

DOCS = Path(__file__).parents[3] / "docs"
PAGES = ["../README.md", *sorted(path.name for path in DOCS.glob("python*.md"))]
PAGES += ["branches.md", "generation.md", "recurrence.md", "seeds.md", "serving.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # of the files that they write
    programs = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    assert programs
    before, names = tenon.host(), {}
    tenon.use(tenon.Host())  # numbers layers from 0, as in a process of its own
    try:
        for program in programs:
            exec(compile(program, page, "exec"), names)
    finally:
        tenon.use(before)
