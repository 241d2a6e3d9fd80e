"""The notebook of examples/python runs in a kernel, as in Jupyter. SPDX-License-Identifier: Apache-2.0"""

import base64
import re
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

NOTEBOOK = Path(__file__).parents[3] / "examples/python/train.ipynb"


def test_training_in_a_notebook(tmp_path, monkeypatch):
    home, folder = tmp_path / "home", tmp_path / "notebook"
    home.mkdir()
    folder.mkdir()
    monkeypatch.setenv("HOME", str(home))  # of the kernel's files
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    codes = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in codes)  # as committed
    # The kernel python3 is that of this environment, with this interpreter.
    nbclient.NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    assert list(folder.iterdir()) == []

    _, drawing, summary, training, result = [cell.outputs for cell in codes]
    assert "digraph" in str(drawing) or "<svg" in str(drawing)
    assert "<table>" in summary[0].data["text/html"] and "cross_entropy" in summary[0].data["text/plain"]
    progress, plot = [output.data for output in training]
    lines = re.findall(r"^(?:<pre>)?(test )?pass (\d)  cost [\d.]+  accuracy", progress["text/html"], re.MULTILINE)
    assert lines == [(test, str(number)) for number in range(1, 5) for test in ("", "test ")]
    assert base64.b64decode(plot["image/png"]).startswith(b"\x89PNG")
    assert float(result[0].text.removeprefix("accuracy ")) > 0.85
