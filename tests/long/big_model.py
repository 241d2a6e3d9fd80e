"""Trains a table of 2 GB, saves, loads and saves it again: big_model.py SEED. SPDX-License-Identifier: Apache-2.0"""
import pathlib
import sys
import tempfile

import numpy as np

import jobs
import tenon

ROWS, SIZE = 8_400_000, 64  # 2.15 GB of float32


def main():
    seed = int(sys.argv[1])
    word = tenon.layer.data("word", tenon.data_type.integer_value(ROWS))
    label = tenon.layer.data("label", tenon.data_type.integer_value(2))
    score = tenon.layer.fc(tenon.layer.embedding(word, vocabulary=ROWS, size=SIZE, name="table"), size=2, name="score")
    cost = tenon.layer.cross_entropy(score, label, from_logits=True, name="cost")
    numbers = np.random.default_rng(seed)
    samples = {"word": numbers.integers(ROWS, size=256), "label": numbers.integers(2, size=256)}
    samples["word"][:2] = 0, ROWS - 1
    parameters = tenon.parameters.create(cost, seed=seed)
    before = parameters["table.weight"][[0, ROWS - 1]].copy()
    tenon.train(cost, parameters, samples, batch_size=64, updater=tenon.updater.SGD(learning_rate=0.5))
    after = parameters["table.weight"]
    if not (before != after[[0, ROWS - 1]]).any(axis=1).all():
        sys.exit("the first or the last row of the table was not trained")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        parameters.save(folder / "first.safetensors", score)
        answers = tenon.infer(score, parameters, samples["word"][:8])
        del parameters
        loaded = tenon.parameters.load(folder / "first.safetensors")
        if not np.array_equal(tenon.infer(loaded.outputs[0], loaded, samples["word"][:8]), answers):
            sys.exit("the loaded model answers otherwise")
        loaded.save(folder / "second.safetensors", loaded.outputs)
        if jobs.digest(folder / "first.safetensors") != jobs.digest(folder / "second.safetensors"):
            sys.exit("the model that was loaded and saved again has other bytes")
        size = (folder / "first.safetensors").stat().st_size
    print(f"a model of {size / 1e9:.2f} GB, trained, saved, loaded and saved with the same bytes")


if __name__ == "__main__":
    main()
