"""Checks an installed wheel, by the Python of an environment that has it and NumPy alone.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np

import tenon
from tenon._run import cluster

JOB = """outputs = ["cost"]

[[layer]]
name = "cost"
type = "square_error"
inputs = ["x", "y"]

[reader.train]
type = "csv"
files = ["/nowhere/train.csv"]
columns = ["x = a: f32", "y = b: f32"]
batch = 16
"""

# What manylinux promises, and what Python's own modules load.
SYSTEM = {"ld-linux-x86-64", "libc", "libdl", "libexpat", "libgcc_s", "libm", "libpthread", "librt", "libstdc++",
          "libutil", "libz", "libbz2", "libcrypto", "libffi", "liblzma", "libssl"}  # fmt: skip


def train() -> None:
    """Trains a line, with readers and layers of plugins."""
    x = tenon.layer.data("x", tenon.data_type.dense_vector(1))
    y = tenon.layer.data("y", tenon.data_type.dense_vector(1))
    line = tenon.layer.fc(x, size=1)
    parameters = tenon.parameters.create(tenon.layer.square_error(line, y))
    values = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
    tenon.train(tenon.layer.square_error(line, y), parameters, {"x": values, "y": 3 * values + 1}, passes=400,
                updater=tenon.updater.Adam(learning_rate=0.05))  # fmt: skip
    np.testing.assert_allclose(tenon.infer(line, parameters, np.array([[2.0]])), [[7.0]], atol=0.05)


def read_images() -> None:
    """Reads a picture of one red pixel, by the reader that needs libraries which the wheel brings."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">2I5B", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\0\xff\0\0")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "red", "pixel.png")
        file.parent.mkdir()
        file.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b""))
        (sample,) = tenon.reader.images(folder=folder, size=[1, 1]).samples()
    assert sample["image"].ravel().tolist() == [255, 0, 0] and sample["label"] == 0


def check_libraries(environment: Path) -> None:
    """Nothing is loaded but this environment, Python, and what manylinux promises."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = Path(line[73:].strip())
        if ".so" in path.name and environment not in path.parents and "python3" not in str(path):
            assert path.name.split(".so")[0] in SYSTEM, f"{path} is loaded"


def check_licences() -> None:
    """The texts of what is in the wheel but not Tenon's are there: of copied libraries, and of those linked statically."""
    folder = next(Path(tenon.__file__).parents[1].glob("tenon-*.dist-info")) / "licenses"
    names = {path.name for path in (folder / "third_party").iterdir() if path.stat().st_size > 500}
    some = {"libyaml-cpp0.7", "libzmq5", "libboost-program-options1.74.0", "libsodium-dev", "libopenblas-serial-dev"}
    assert names >= some, names
    assert (folder / "LICENSE").exists()
    copied = {path.name.split("-")[0] for path in Path(tenon.__file__).parents[1].glob("tenon.libs/*")}
    assert not copied & {"libcurl", "libssl", "libcrypto", "libgnutls"}, copied


def run_program(environment: Path) -> None:
    """The script tenon and `python -m tenon` run the program."""
    for command in ([str(environment / "bin/tenon")], [sys.executable, "-m", "tenon"]):
        assert "tenon" in subprocess.run([*command, "version"], check=True, capture_output=True, text=True).stdout
        listed = subprocess.run([*command, "plugins", "list"], check=True, capture_output=True, text=True).stdout
        assert str(environment) in listed
        assert subprocess.run([*command, "no-such-verb"], check=False, capture_output=True).returncode != 0


def start_in_a_cluster() -> None:
    """The program that does so is in the wheel, and found by the two ways to it."""
    assert cluster._program() == str(Path(tenon.__file__).parent / "bin/tenon-dist")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "job.toml").write_text(JOB)
        words = [sys.executable, "-m", "tenon", "train", "job.toml", "--cluster", "--image", "any", "--dry-run"]
        objects = subprocess.run(words, check=True, capture_output=True, text=True, cwd=folder).stdout
        words = [*words[:-1], "--quiet"]
        environment = {**os.environ, "HOME": folder, "KUBECONFIG": ""}
        refused = subprocess.run(words, check=False, capture_output=True, text=True, cwd=folder, env=environment)
    assert objects.count("kind:") > 4, objects
    assert refused.returncode == 66 and "there is no kubeconfig" in refused.stderr, refused.stderr


if __name__ == "__main__":
    root = Path(sys.prefix)
    assert root in Path(tenon.__file__).parents, tenon.__file__
    for plugin in tenon.host().plugins():
        assert plugin["status"] != "refused" and root in Path(plugin["file"]).parents, plugin
    train()
    read_images()
    check_libraries(root)
    check_licences()
    run_program(root)
    start_in_a_cluster()
    print(f"{len(tenon.host().plugins())} plugins in {root}")
