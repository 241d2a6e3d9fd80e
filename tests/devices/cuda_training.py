"""Two passes over Fashion-MNIST on the emulated GPU and on the cpu: costs of the passes within 1e-3, the share of test
images that are right within 0.003. Usage: cuda_training.py TENON JOB FOLDER_OF_EMULATOR; SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import subprocess
import sys

PROGRAM, JOB, EMULATOR = sys.argv[1:]


def train(device):
    """Returns the costs of the passes, and the accuracy of the test."""
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{EMULATOR}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    command = [PROGRAM, "train", JOB, "--passes", "2", "--no-save", "--log-format", "json", "--set", f"device={device}"]
    run = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {run.returncode}\n{run.stderr}")
    events = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    costs = [event["cost"] for event in events if event["event"] == "end_pass"]
    test = [event for event in events if event["event"] == "test"][-1]
    return costs, test["metrics"]["accuracy"]


here, there = train("cpu"), train("cuda")
print(f"cpu: costs {here[0]}, accuracy {here[1]}\ncuda: costs {there[0]}, accuracy {there[1]}")
if len(here[0]) != 2 or len(there[0]) != 2:
    sys.exit("expected the costs of two passes")
if any(abs(a - b) > 1e-3 for a, b in zip(here[0], there[0], strict=True)) or abs(here[1] - there[1]) > 0.003:
    sys.exit("the trainings differ")
