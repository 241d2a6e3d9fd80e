"""A fake cluster for the tests of each file. SPDX-License-Identifier: Apache-2.0"""

import pytest

import fake_user
import training


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
