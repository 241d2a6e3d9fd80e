"""Plots in notebooks and as files. SPDX-License-Identifier: Apache-2.0"""

import sys
from pathlib import Path

import pytest

import tenon
from models import classifier, labels, pixels

ARRAYS = {"pixel": pixels, "label": labels}


def test_a_training_is_plotted_as_a_picture(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    model = classifier()
    ploter = tenon.plot.Ploter("train cost", "test cost")
    costs = []

    def handler(event):
        if isinstance(event, (tenon.event.EndPass, tenon.event.Test)):
            name = "test cost" if isinstance(event, tenon.event.Test) else "train cost"
            ploter.append(name, event.pass_id, event.cost)
            costs.append(event.cost)
            ploter.plot()

    tenon.train(model.cost, tenon.parameters.create(model.cost), ARRAYS, handler, passes=3, test=ARRAYS)
    assert Path("plot.png").read_bytes().startswith(b"\x89PNG")
    lines = ploter.figure().axes[0].lines
    assert [line.get_label() for line in lines] == ["train cost", "test cost"]
    assert [line.get_xdata().tolist() for line in lines] == [[0, 1, 2]] * 2
    assert [line.get_ydata().tolist() for line in lines] == [costs[::2], costs[1::2]]
    ploter.plot("curves.svg")
    assert "<svg" in Path("curves.svg").read_text()


def test_points_are_forgotten(tmp_path):
    pytest.importorskip("matplotlib")
    plotter = tenon.plot.Plotter("a", "b", file=tmp_path / "curves.pdf")
    plotter.append("a", 1, 2)
    plotter.reset()
    assert [len(line.get_xdata()) for line in plotter.figure().axes[0].lines] == [0, 0]
    plotter.plot()
    assert (tmp_path / "curves.pdf").read_bytes().startswith(b"%PDF")


def test_a_plot_is_live_in_a_notebook(cell, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.chdir(tmp_path)
    plotter = tenon.plot.Plotter("cost")

    def plot(step):
        plotter.append("cost", step, 1 / (step + 1))
        plotter.plot()

    plot(0)
    plot(1)
    assert all(each["data"]["image/png"].startswith("iVBORw0KGgo") for each in cell) and list(tmp_path.iterdir()) == []
    assert [each["update"] for each in cell] == [False, True] and cell[0]["data"] != cell[1]["data"]
    assert cell[0]["transient"] == cell[1]["transient"]  # one place of the cell
    InteractiveShell.instance().execution_count += 1
    plot(2)
    assert not cell[2]["update"] and cell[2]["transient"] != cell[0]["transient"]  # another cell
    plotter.plot("curves.png")
    assert Path("curves.png").exists() and len(cell) == 3


def test_wrong_titles():
    plotter = tenon.plot.Ploter("train cost", "test cost")
    with pytest.raises(tenon.error.NotFoundError, match='no title "tset cost"; it has train .*did you mean "test cost"'):
        plotter.append("tset cost", 0, 1)
    with pytest.raises(tenon.error.InvalidError, match="at least one title"):
        tenon.plot.Ploter()


def test_matplotlib_is_asked_for(monkeypatch):
    for name in [each for each in sys.modules if each.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as if it were not installed
    plotter = tenon.plot.Ploter("cost")
    plotter.append("cost", 0, 1)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        plotter.plot()
