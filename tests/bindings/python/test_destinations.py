"""Files that are written: links are followed, but not those of other users in folders where everybody may create files.
SPDX-License-Identifier: Apache-2.0"""

import os

import pytest

import tenon
from models import classifier, labels, pixels

OTHER = 4711  # a user who is not that of the process


def write_graph(model, path):
    tenon.draw(model.score, path)


def write_onnx(model, path):
    pytest.importorskip("onnx")
    tenon.onnx.save(model.score, tenon.parameters.create(model.score), path)


def write_plot(model, path):
    pytest.importorskip("matplotlib")
    plotter = tenon.plot.Plotter("cost", file=path.with_name(path.name + ".png"))
    plotter.plot()


def write_log(model, path):
    log = tenon.callbacks.CSVLog(path)
    tenon.train(model.cost, tenon.parameters.create(model.cost), {"pixel": pixels, "label": labels}, log)


WRITERS = [write_graph, write_onnx, write_plot, write_log]


@pytest.fixture
def shared(tmp_path):
    """A folder where everybody may create files."""
    if os.geteuid() != 0:
        pytest.skip("the process cannot give links to others")
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def plant(path, target=None):
    """Creates a link, or a file, of another user."""
    if target is None:
        path.write_text("")
    else:
        path.symlink_to(target)
    os.lchown(path, OTHER, OTHER)


@pytest.mark.parametrize("write", WRITERS)
def test_planted_links_are_not_followed(write, shared, tmp_path):
    victim = tmp_path / "victim"
    for name in ("link", "link.png"):
        plant(shared / name, victim)
    for there in (False, True):
        if there:
            victim.write_text("secret")
        with pytest.raises(tenon.error.FileError, match="shared/link[.png]* belongs to user 4711, in a folder where all"):
            write(classifier(), shared / "link")
        assert victim.exists() == there
    assert victim.read_text() == "secret"
    (tmp_path / "way").symlink_to(shared / "folder")  # an own link that leads through a planted one
    plant(shared / "folder", tmp_path)
    with pytest.raises(tenon.error.FileError, match="the link .*shared/folder belongs to user 4711"):
        write(classifier(), tmp_path / "way" / "new")
    assert not (tmp_path / "new").exists() and not (tmp_path / "new.png").exists()


@pytest.mark.parametrize("write", WRITERS)
def test_own_links_are_followed(write, tmp_path):
    (tmp_path / "there").mkdir()
    for name in ("link", "link.png"):
        (tmp_path / name).symlink_to(f"there/../there/{name}")
    write(classifier(), tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and len(list((tmp_path / "there").iterdir())) == 1


def test_planted_files_are_not_written(shared):
    plant(shared / "log.csv")
    with pytest.raises(tenon.error.FileError, match="the file .*shared/log.csv belongs to user 4711"):
        write_log(classifier(), shared / "log.csv")
