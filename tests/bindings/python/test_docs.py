"""The programs of docs/python.md run, one after the other. SPDX-License-Identifier: Apache-2.0"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_programs_of_the_page_run():
    text = (ROOT / "docs/python.md").read_text()
    programs = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(programs) >= 6
    names = {}
    for program in programs:
        exec(compile(program, "docs/python.md", "exec"), names)
