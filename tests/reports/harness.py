"""Runs the program in a folder of its own, for the cases of docs/reports.md. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

TENON = os.environ.get("TENON", "tenon")


class Scratch:
    """A folder with data, and the program in it."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def run(self, *arguments, code=0, **options):
        """Returns the output of the program and its messages, after checking its exit code."""
        environment = {**os.environ, **options.pop("environment", {})}
        done = subprocess.run([TENON, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, check=False,
                              env=environment, **options)  # fmt: skip
        assert done.returncode == code, f"tenon {' '.join(map(str, arguments))}: {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def job(self, reader, layers=None, **keys):
        """Writes job.toml with a reader, a table of layers ("name type inputs", more keys), and keys of the top."""
        layers = layers if layers is not None else [("score fc x", {"size": 2}),
                                                    ("cost cross_entropy score,label", {"from_logits": True})]  # fmt: skip
        text = toml({"passes": 1, "seed": 1, "save": "model.safetensors", **keys})
        for title, more in layers:
            name, kind, inputs = title.split()
            text += "[[layer]]\n" + toml({"name": name, "type": kind, "inputs": inputs.split(","), **more})
        text += "[reader.train]\n" + toml({"batch": 2, **reader}) + '[updater]\ntype = "sgd"\nlearning_rate = 0.01\n'
        self.write("job.toml", text)

    def fed(self, reader, slots, **keys):
        """Returns what a model is fed: {slot: [value of each sample]}. The first slot has numbers."""
        layers = [(f"score fc {slots[0]}", {"size": 1}), ("cost sum_cost score", {})]
        layers += [(f"{slot}_read scale_shift {slot}", {}) for slot in slots]
        self.job(reader, layers, outputs=["cost", *[f"{slot}_read" for slot in slots]], **keys)
        self.run("train", "job.toml")
        wanted = [word for slot in slots for word in ("--output", f"{slot}_read")]
        rows = records(self.run("infer", "job.toml", "--reader", "train", *wanted))
        return {slot: [row[f"{slot}_read"] for row in rows] for slot in slots}

    def refusal(self, reader, code=65, layers=None, **keys):
        """Returns the message with which a training with this reader is refused: one sentence, without a trace."""
        self.job(reader, layers, **keys)
        message = self.run("train", "job.toml", code=code)
        assert message.splitlines()[-1].startswith("tenon: ") and "Traceback" not in message
        return message


def records(output):
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def toml(values):
    return "".join(f"{key} = {toml_value(value)}\n" for key, value in values.items())


def toml_value(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_value(each) for each in value) + "]"
    return json.dumps(value)
