"""A fake cluster for the tests of each file. SPDX-License-Identifier: Apache-2.0"""

import os
import subprocess
import tempfile

import pytest

import fake_user
import training


def has_namespaces():
    """Whether processes may have file systems of their own here, as pods have."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("upper", "work", "all"):
            os.mkdir(f"{folder}/{name}")
        more = ",userxattr" if os.geteuid() else ""
        options = f"lowerdir=/usr,upperdir={folder}/upper,workdir={folder}/work{more}"
        words = ["unshare", "-m" if os.geteuid() == 0 else "-Urm", "mount", "-t", "overlay", "overlay", "-o", options]
        return subprocess.run([*words, f"{folder}/all"], check=False, capture_output=True).returncode == 0


def pytest_collection_modifyitems(items):
    if not has_namespaces():
        for item in items:
            item.add_marker(pytest.mark.skip(reason="no namespaces or overlays on this machine"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    folder.chmod(0o755)
    for parent in folder.parents:  # pods run as another user
        if parent.stat().st_mode & 0o005 != 0o005 and str(parent).startswith("/tmp/"):
            parent.chmod(0o755)
    place = folder / "fake"
    place.mkdir()
    with fake_user.running(place, "--image", f"{training.IMAGE}={training.BUILD}", "--claim", "work") as client:
        yield client


@pytest.fixture
def laptop(cluster, tmp_path):
    cluster.control("reset")
    laptop = training.Laptop(tmp_path, cluster)
    yield laptop
    cluster.control("reset")
    assert laptop.left() == {"persistentvolumeclaims": 1}
