"""Runs the program tenon with the readers of this pack, and compares what a model is fed. SPDX-License-Identifier: Apache-2.0

Variables: TENON, the program; EXTRAS_PLUGINS, the folder of the readers.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

TENON = os.environ.get("TENON", "tenon")
PLUGINS = os.environ["EXTRAS_PLUGINS"]


def toml(values):
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


class ReaderCase(unittest.TestCase):
    """A folder, a reader `type` with `attributes` there, and models over its slots."""

    type = ""

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)

    def tenon(self, *arguments, code=0):
        done = subprocess.run([TENON, *arguments], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, f"tenon {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def job(self, attributes, slots, feature="x", trained=()):
        """Writes a job: a linear model of the slot `feature`, and each of `slots` as an output of its own. trained: those
        that a cost reads, too, whose names the model then keeps."""
        layers = [{"name": "score", "type": "fc", "inputs": [feature], "size": 1},
                  {"name": "cost", "type": "sum_cost", "inputs": ["score"]}]
        layers += [{"name": f"{slot}_read", "type": "scale_shift", "inputs": [slot]} for slot in slots]
        layers += [{"name": f"{slot}_cost", "type": "sum_cost", "inputs": [f"{slot}_read"]} for slot in trained]
        outputs = ["cost", *[layer["name"] for layer in layers[2:]]]
        reader = {"type": self.type, "batch": 3, **attributes}
        text = toml({"passes": 2, "seed": 1, "outputs": outputs})
        text += "".join(f"[[layer]]\n{toml(layer)}" for layer in layers)
        text += "".join(f"[reader.{part}]\n{toml(reader)}" for part in ("train", "test"))
        text += '[updater]\ntype = "sgd"\nlearning_rate = 0.001\n'
        (self.folder / "job.toml").write_text(text)

    def samples(self, attributes, slots, feature="x", train=None, trained=()):
        """Returns what a model is fed, slot by slot. train: attributes of the data that it is trained with."""
        self.job(train or attributes, slots, feature, trained)
        self.tenon("train", "job.toml", "--save", "model.safetensors", "--plugins", PLUGINS)
        self.job(attributes, slots, feature, trained)
        outputs = [part for slot in slots for part in ("--output", f"{slot}_read")]
        lines = self.tenon("infer", "job.toml", "--model", "model.safetensors", *outputs, "--format", "json", "--plugins",
                           PLUGINS).splitlines()
        rows = [json.loads(line) for line in lines if line.startswith("{")]
        return {slot: [row[f"{slot}_read"] for row in rows] for slot in slots}

    def refused(self, attributes, slots, *parts, code=65, feature="x"):
        self.job(attributes, slots, feature)
        message = self.tenon("train", "job.toml", "--no-save", "--plugins", PLUGINS, code=code)
        for part in parts:
            self.assertIn(part, message)
        self.assertNotIn("\n  ", message)

    def check_order(self, attributes, slot, expected, feature="x"):
        """Shards have their samples, a shuffled pass has all, and a training that is interrupted resumes exactly."""
        for shard in range(3):
            part = self.samples({**attributes, "shard": shard, "shards": 3}, [slot], feature, train=attributes)
            self.assertEqual(part[slot], expected[shard::3])
        for shuffle in (False, True):
            self.job({**attributes, "shuffle": shuffle}, [slot], feature)
            self.tenon("train", "job.toml", "--save", "whole.safetensors", "--plugins", PLUGINS)
            folder = tempfile.mkdtemp(dir=self.folder)
            common = ["--set", f"checkpoint.folder={folder}", "--plugins", PLUGINS]
            self.tenon("train", "job.toml", "--no-save", "--set", "checkpoint.every_batches=1", "--set", "checkpoint.keep=100",
                       *common)  # fmt: skip
            self.tenon("train", "job.toml", *common, "--resume-from", f"{folder}/checkpoint-1-1.safetensors", "--save",
                       "resumed.safetensors")  # fmt: skip
            whole, resumed = [(self.folder / name).read_bytes() for name in ("whole.safetensors", "resumed.safetensors")]
            self.assertEqual(whole, resumed)

    def check_interface(self, name, attributes):
        """The conformance kit finds nothing."""
        cases = f"[[case]]\ntype = \"{self.type}\"\n[case.attributes]\n{toml(attributes)}"
        (self.folder / "cases.toml").write_text(cases)
        self.tenon("plugins", "check", f"{PLUGINS}/readers/{name}.so", "--cases", "cases.toml")
