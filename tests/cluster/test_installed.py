"""A training in a cluster by what is installed: the files of the Debian packages, which a wheel has, too. Laptop and image are
the same folder, which knows nothing of the build. SPDX-License-Identifier: Apache-2.0"""

import os
import subprocess

import fake_user
import training


def test_an_installation_trains_in_a_cluster(laptop, tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    folder.chmod(0o755)
    root = folder / "root"
    for component in ("library", "program", "plugins"):
        words = ["cmake", "--install", str(training.BUILD), "--prefix", str(root), "--component", component]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    (folder / "fake").mkdir()
    with fake_user.running(folder / "fake", f"--image=installed={root}") as cluster:
        environment = {**os.environ, "KUBECONFIG": str(cluster.folder / "kubeconfig"), "PATH": f"{root}/bin:/usr/bin:/bin"}
        words = ["tenon", "train", "job.toml", "--cluster", "--host-path", f"{laptop.data}:/data", "--image", "installed"]
        done = subprocess.run([*words, "--processes", "2"], check=False, cwd=laptop.folder, env=environment,
                              capture_output=True, text=True, timeout=100)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "other builds of plugins" not in done.stderr, done.stderr
    assert laptop.trained() == laptop.trained_alone()
