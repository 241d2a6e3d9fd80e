"""Who does what to whom, as in the book's chapter "Semantic role labelling": deep LSTM layers and a random field.

A sentence has two predicates, one of them marked; the roles of the words around it are found as whole phrases. The data
is made by examples/roles/generate. Prints precision, recall and F1 of the phrases of the test part.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import tenon

folder = tempfile.TemporaryDirectory()
generate = Path(__file__).parents[1] / "roles/generate"
subprocess.run([sys.executable, "-B", str(generate), folder.name], check=True)


def column(part: str, kind: str) -> tenon.reader.Reader:
    """The reader of one column, whose slot has its name; roles have the numbers of roles.txt."""
    files, numbers = [f"{folder.name}/{part}.{kind}"], f"{folder.name}/{kind}.txt"
    if kind == "roles":
        reader = tenon.reader.text(files=files, vocabulary=numbers, unknown="")
    elif part == "train":
        reader = tenon.reader.text(files=files, save_vocabulary=numbers)
    else:
        reader = tenon.reader.text(files=files, vocabulary=numbers)
    return reader.choose(**{kind: "words"})


def sentences(part: str) -> tenon.reader.Reader:
    return tenon.reader.compose(*(column(part, kind) for kind in ("words", "marks", "roles")))


train, test = sentences("train"), sentences("test")


def data(kind: str, limit: int) -> tenon.Layer:
    """A column as a data layer; their lengths are the same."""
    numbers = tenon.data_type.sequence(tenon.data_type.integer_value(limit), lengths_of="sentence")
    return tenon.layer.data(kind, numbers)


# docs: network
roles = data("roles", 9)
made = tenon.layer.concat(tenon.layer.embedding(data("words", 64), vocabulary=64, size=24),
                          tenon.layer.embedding(data("marks", 4), vocabulary=4, size=8))  # fmt: skip
for _ in range(2):
    made = tenon.layer.concat(tenon.layer.lstm(made, size=32), tenon.layer.lstm(made, size=32, reverse=True))
score = tenon.layer.fc(made, size=9)
cost = tenon.layer.crf(score, roles, parameter_name="chain")
best = tenon.layer.crf_decoding(score, parameter_name="chain")
phrases = tenon.layer.chunk_f1(best, roles, types=4)
# docs: end

topology = [cost, phrases]
parameters = tenon.parameters.create(topology, seed=1)
tenon.train(topology, parameters, train.shuffle(), passes=6, batch_size=16,
            updater=tenon.updater.Adam(learning_rate=0.005))  # fmt: skip
found = tenon.test(topology, parameters, test).metrics
print(", ".join(f"{name} {value:.4f}" for name, value in found.items()))

sentence = next(iter(test.samples()))
tags = (Path(folder.name) / "roles.txt").read_text().split()
chosen = tenon.infer(best, parameters, {kind: [sentence[kind]] for kind in ("words", "marks")})[0]
print("first sentence:", " ".join(tags[tag] for tag in chosen))
