"""The GAN of examples/python that draws clothes. SPDX-License-Identifier: Apache-2.0"""

import runpy
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "examples/python/gan_fashion.py"


def test_clothes_are_drawn(tmp_path, monkeypatch):
    image = pytest.importorskip("matplotlib.image")
    monkeypatch.chdir(tmp_path)
    found = runpy.run_path(str(PROGRAM), run_name="__main__")
    scores = found["scores"]
    assert scores["data"] > 6 and scores["drawn"] > 4 > 2 > max(scores["untrained"], scores["noise"])
    assert found["difference"] < 0.1
    assert image.imread("gan_fashion.png").shape[:2] == (280, 280)
