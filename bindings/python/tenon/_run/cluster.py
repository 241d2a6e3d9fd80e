"""A training in a cluster of Kubernetes: on the laptop its start, in a pod its end.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tenon import error
from tenon import parameters as sets
from tenon._base import check as _check
from tenon._run import own_program
from tenon.parameters import ParameterSet

_RESULT = "TENON_POD_RESULT"  # in a pod: where process 0 leaves the trained parameters


@dataclass(frozen=True)
class Request:
    """What a call of dist_train asks of a cluster."""

    user: str | None
    token: str | None
    job: str | None
    image: str | None
    options: tuple[str, ...]


def request(user: Any, token: Any, job: Any, image: Any, options: Any) -> Request | None:
    """Returns what the arguments of dist_train ask for; None if they ask for no cluster."""
    if all(value is None for value in (user, token, job, image)) and not options:
        return None
    for name, value in (("k8s_user", user), ("k8s_token", token), ("k8s_job", job), ("image", image)):
        if value is not None:
            _check.text(value, name, "dist_train")
    words = tuple(_check.texts(options, "k8s_options", "dist_train"))
    if image is None and (user is None or job is None):
        raise error.InvalidError(
            "dist_train: which image pods have is missing: state image=, or k8s_user= and k8s_job=, of which it is USER/JOB",
            "dist_train",
            "image",
        )
    return Request(user, token, job, image, words)


def is_pod() -> bool:
    """Whether this process was started in a pod by a dist_train elsewhere."""
    return bool(os.environ.get(_RESULT))


def finish(parameters: ParameterSet | None, outputs: Any) -> NoReturn:
    """Ends process 0 of a pod after a training, whose parameters are its result."""
    if parameters is not None:
        parameters.save(os.environ[_RESULT], outputs, nan="allow")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _program() -> str:
    """Returns the path of tenon-dist: in the package, in the build that it is of, or in PATH."""
    package = Path(__file__).resolve().parents[1]
    build = Path(os.path.abspath(__file__)).parents[3]
    for folder in (package / "bin", build / "bin"):
        if os.access(folder / "tenon-dist", os.X_OK):
            return str(folder / "tenon-dist")
    found = shutil.which("tenon-dist")
    if found is None:
        raise error.UnsupportedError(
            "dist_train: a training in a cluster is started by the program tenon-dist, which is neither in the package nor in "
            "a folder of PATH; it is built where libcurl and yaml-cpp are there",
            "dist_train",
            "k8s_job",
        )
    return found


def train(asked: Request, parameters: ParameterSet | None, processes: int, servers: int) -> None:
    """Has pods run the program, and takes the trained parameters."""
    if parameters is None:
        raise error.InvalidError(
            "dist_train: parameters is missing, which takes what the cluster has trained", "dist_train", "parameters"
        )
    files = own_program.files("dist_train")
    if not files:
        why = "dist_train: pods run a program in a file, and this one is in none"
        raise error.UnsupportedError(why, "dist_train", "k8s_job")
    file, *modules = map(str, files)
    with tempfile.TemporaryDirectory(prefix="tenon-") as folder:
        result = os.path.join(folder, "result.safetensors")
        words = [_program(), "program", file, "--image", asked.image or f"{asked.user}/{asked.job}", "--save", result,
                 "--processes", str(processes), "--servers", str(servers)]  # fmt: skip
        words += ["--name", asked.job] if asked.job else []
        words += ["--credentials", asked.token] if asked.token else []
        words += [f"--module={path}" for path in modules]
        words += [f"--arg={word}" for word in sys.argv[1:]]
        sys.stdout.flush()
        code = subprocess.run([*words, *asked.options], check=False, stdin=subprocess.DEVNULL).returncode
        if code == 130:
            raise KeyboardInterrupt
        if code != 0:
            why = f"dist_train: the training in the cluster has ended with exit code {code}"
            raise error.FileError(why, "dist_train", "k8s_job")
        parameters.copy_from(sets.load(result))
