"""Models of PyTorch for the tests, made by the Python that has it. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DEBIAN = "/usr/bin/python3"  # has python3-torch, which the environment of the tests lacks
_folder = tempfile.TemporaryDirectory()


@functools.cache
def folder() -> Path:
    """Returns a folder with what torch_models.py makes; skips the test where PyTorch is not installed."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    script = Path(__file__).with_name("torch_models.py")
    if subprocess.run([DEBIAN, "-c", "import torch"], check=False, capture_output=True, env=environment).returncode:
        pytest.skip(f"PyTorch is not installed for {DEBIAN}")
    command = [DEBIAN, "-B", script, _folder.name]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return Path(_folder.name)


class TorchModel:
    """A model of torch_models.py: file, image, output and state."""

    def __init__(self, name: str, suffix: str = "") -> None:
        self.file = folder() / f"{name}{suffix}.onnx"
        arrays: Any = np.load(folder() / f"{name}.npz")
        self.image, self.output = arrays["image"], arrays["output"]
        self.state = {key.split(".", 2)[2]: arrays[key] for key in arrays.files if key.startswith("state.")}


def last(images: Any) -> Any:
    """Returns images with their channels last."""
    return np.moveaxis(images, 1, -1) if images.ndim > 2 else images


def close(got: Any, wanted: Any, share: float = 1e-4) -> None:
    """Asserts equality up to a share of the largest number."""
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=share, atol=share * float(np.abs(wanted).max()))
