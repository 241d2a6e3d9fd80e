"""tests/devices/example_convolutions.json has the convolutions of the examples, each once: plans of cuDNN are made for
them (tests/devices/cuda_plans_test.cpp). Run as a program, this file writes it.

SPDX-License-Identifier: Apache-2.0
"""

import json
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np

import tenon

ROOT = Path(__file__).parents[3]
LIST = ROOT / "tests/devices/example_convolutions.json"
PROGRAM = Path(tenon.__file__).parents[2] / "bin/tenon"


def of_calls(calls):
    return {json.dumps(window, sort_keys=True) for call, window in calls if call == "conv"}


def of_job(job):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(job.parent, folder, dirs_exist_ok=True)
        if (job.parent / "generate").exists():
            subprocess.run([sys.executable, "-B", "generate", "data"], cwd=folder, check=True)
        told = subprocess.run([PROGRAM, "plan", "--json", job.name], cwd=folder, check=True, capture_output=True, text=True)
    return of_calls((call["call"], call.get("window")) for call in json.loads(told.stdout)["calls"])


def of_program(path, *arguments):
    """Of the topologies for which a program creates parameters; nothing is trained."""
    found = set()
    create = tenon.parameters.create

    def created(outputs, *given, **named):
        found.update(of_calls((row.call, row.window) for row in tenon.plan(outputs).rows))
        return create(outputs, *given, **named)

    before = tenon.host()
    tenon.use(tenon.Host())
    try:
        with (
            patch("sys.argv", [str(path), *arguments]),
            patch("tenon.parameters.create", created),
            patch("tenon.train", lambda *_, **__: None),
            patch("tenon.test", lambda *_, **__: SimpleNamespace(metrics={"accuracy": 0.0})),
            patch("tenon.infer", lambda *_, **__: np.full((1, 10), 0.1)),
        ):
            runpy.run_path(str(path), run_name="__main__")
    finally:
        tenon.use(before)
    return found


def of_examples():
    found = set()
    for job in sorted(ROOT.glob("examples/**/*.toml")):
        if "conv" in job.read_text():
            found |= of_job(job)
    programs = ROOT / "examples/python"
    found |= of_program(programs / "recognize_images.py")
    found |= of_program(programs / "recognize_images.py", "clothes")
    found |= of_program(programs / "image_classification.py")
    return sorted(found)


def test_the_list_is_complete():
    assert [json.dumps(each, sort_keys=True) for each in json.loads(LIST.read_text())] == of_examples()


if __name__ == "__main__":
    LIST.write_text("[\n" + ",\n".join(of_examples()) + "\n]\n")
