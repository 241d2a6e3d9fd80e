"""F17: where programs run. Each case is a line of docs/reports.md. SPDX-License-Identifier: Apache-2.0"""

import os
import pathlib
import re
import subprocess

from harness import TENON

BUILD = pathlib.Path(TENON).resolve().parent.parent


def job(scratch):
    scratch.write("data.csv", "a,label\n" + "".join(f"{i},{i % 2}\n" for i in range(8)))
    scratch.job({"type": "csv", "files": ["data.csv"], "columns": ["x = a: f32", "label: i32 < 2"]})


def test_a_program_behind_links(scratch):
    """The program behind two links in a folder with a space, from another working directory"""
    job(scratch)
    (scratch.folder / "my bin").mkdir()
    (scratch.folder / "my bin/one").symlink_to(pathlib.Path(TENON).resolve())
    (scratch.folder / "my bin/two").symlink_to("one")
    done = subprocess.run([str(scratch.folder / "my bin/two"), "train", str(scratch.folder / "job.toml")], cwd="/",
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_library_behind_a_link(scratch):
    """libtenon behind a link in an empty folder finds the plugins beside the real file"""
    job(scratch)
    library = next((BUILD / "lib").glob("libtenon.so.[0-9]*")).resolve()
    name = re.search(r"soname: \[(.*)\]", subprocess.run(["readelf", "-d", library], capture_output=True, text=True,
                                                         check=True).stdout).group(1)  # fmt: skip
    (scratch.folder / "links").mkdir()
    (scratch.folder / "links" / name).symlink_to(library)
    scratch.run("train", "job.toml", environment={"LD_LIBRARY_PATH": str(scratch.folder / "links")})


def test_without_a_home(scratch):
    """No variables of the environment at all"""
    job(scratch)
    done = subprocess.run([TENON, "train", "job.toml"], cwd=scratch.folder, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_checked_set_without_a_writable_folder(scratch):
    """A plugin set with SHA-256 sums where TMPDIR cannot be written: the copies are in memory"""
    job(scratch)
    scratch.run("plugins", "lock", "job.toml", "-o", "set.toml")
    out = scratch.run("train", "job.toml", "--plugin-set", "set.toml", environment={"TMPDIR": "/proc/nowhere"})
    assert "cannot create" not in out


def test_one_thread_is_allowed(scratch):
    """Threads that cannot start: the training goes on with those that run"""
    job(scratch)
    script = f"ulimit -u 1; exec {TENON} train job.toml --threads 4"
    user = ["setpriv", "--reuid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    os.chmod(scratch.folder, 0o777)
    for parent in scratch.folder.parents:
        if parent.stat().st_uid == os.geteuid() and str(parent).startswith(("/tmp/", "/var/tmp/")):
            os.chmod(parent, 0o755)
    done = subprocess.run([*user, "bash", "-c", script], cwd=scratch.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_width_of_lists(scratch):
    """tenon plugins list fits into a terminal of 80 columns"""
    out = scratch.run("plugins", "list", environment={"COLUMNS": "80"})
    assert len(out.splitlines()) > 20


def test_symbols_of_plugins():
    """No plugin needs a newer C library than libtenon does"""
    def newest(path):
        text = subprocess.run(["readelf", "-V", str(path)], capture_output=True, text=True, check=True).stdout
        versions = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", text)
        return max(tuple(map(int, each)) for each in versions) if versions else (0, 0)

    limit = newest(next((BUILD / "lib").glob("libtenon.so.0*")).resolve())
    for plugin in (BUILD / "lib/tenon/plugins").glob("*/*.so"):
        assert newest(plugin) <= limit, plugin


def test_a_folder_that_is_missing(scratch):
    """A model that cannot be saved where the job says is refused before the training, with the folder"""
    job(scratch)
    message = scratch.run("train", "job.toml", "--save", "models/2026/x.safetensors", code=66)
    assert 'there is no folder "models/2026"' in message and "pass 1" not in message
