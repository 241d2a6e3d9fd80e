"""Trains five small models with each of other libraries, as run.py trains the jobs of Tenon, on several kinds of processor
and with several numbers of threads, and counts how many different models each gives. SPDX-License-Identifier: Apache-2.0
    peers.py [--python [LIBRARY=]PATH] [--columns LIST] [--libraries LIST]
Data are whole numbers, seeds are fixed, and what a library has to be deterministic is set. A model is its parameters, not
the file: files name settings such as the number of threads. Prints a row for each model: by processor and threads a digest,
and how many there are; and of each library how many of its models had one. Ends with 0.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import subprocess
import sys

import run


class Numbers:
    """Whole numbers from -8 to 7, drawn without a library."""

    def __init__(self, seed):
        self.state = seed

    def draw(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 60) - 8

    def array(self, *shape):
        import numpy as np

        count = 1
        for extent in shape:
            count *= extent
        return np.array([self.draw() for _ in range(count)], np.float32).reshape(shape) / 8


ROWS, COLUMNS, STEPS = 384, 24, 30


def digest(arrays):
    import numpy as np

    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()[:8]


def tables():
    """Returns x [ROWS, COLUMNS], a number y [ROWS] and a class c [ROWS] from 0 to 2."""
    import numpy as np

    numbers = Numbers(1)
    x = numbers.array(ROWS, COLUMNS)
    y = x[:, 0] * x[:, 1] + x[:, 2] - x[:, 3] / 2 + numbers.array(ROWS) / 4
    return x, y.astype(np.float32), ((y > -0.5).astype(np.int64) + (y > 0.5))


def torch_models(threads):
    import torch
    from torch import nn

    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    x, y, c = map(torch.from_numpy, tables())
    images = torch.from_numpy(Numbers(2).array(ROWS, 3, 12, 12))
    texts = torch.from_numpy(Numbers(3).array(ROWS, 10, COLUMNS))

    class Last(nn.Module):
        """The last step of a sequence."""

        def __init__(self, layer):
            super().__init__()
            self.layer, self.head = layer, nn.Linear(32, 3)

        def forward(self, inputs):
            outputs = self.layer(inputs)
            return self.head((outputs[0] if isinstance(outputs, tuple) else outputs)[:, -1])

    def linear():
        return nn.Linear(COLUMNS, 1), x, y[:, None], nn.MSELoss(), torch.optim.SGD, 0.05

    def perceptron():
        layers = nn.Sequential(nn.Linear(COLUMNS, 64), nn.Tanh(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
        return layers, x, c, nn.CrossEntropyLoss(), torch.optim.Adam, 0.01

    def convolution():
        layers = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                               nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(512, 3))  # fmt: skip
        return layers, images, c, nn.CrossEntropyLoss(), torch.optim.SGD, 0.05

    def lstm():
        return Last(nn.LSTM(COLUMNS, 32, batch_first=True)), texts, c, nn.CrossEntropyLoss(), torch.optim.Adam, 0.01

    def transformer():
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0, batch_first=True)
        layers = Last(nn.Sequential(nn.Linear(COLUMNS, 32), layer))
        return layers, texts, c, nn.CrossEntropyLoss(), torch.optim.AdamW, 0.01

    for recipe in (linear, perceptron, convolution, lstm, transformer):
        torch.manual_seed(1)
        model, inputs, wanted, cost, updater, rate = recipe()
        update = updater(model.parameters(), lr=rate)
        for step in range(STEPS):
            rows = slice(step * 64 % ROWS, step * 64 % ROWS + 64)
            update.zero_grad()
            cost(model(inputs[rows]), wanted[rows]).backward()
            update.step()
        yield recipe.__name__, digest(value.numpy() for value in model.state_dict().values())


def jax_recipes():
    """Returns functions that return parameters, inputs, what is wanted, and the cost of these three."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    x, y, c = tables()
    images, texts = Numbers(2).array(ROWS, 12, 12, 3), Numbers(3).array(ROWS, 10, COLUMNS)

    def weights(*shapes):
        keys = jax.random.split(jax.random.key(1), len(shapes))
        return [jax.random.normal(key, shape) * 0.2 for key, shape in zip(keys, shapes, strict=True)]

    def classes(logits, wanted):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), wanted[:, None], 1))

    def linear():
        return weights((COLUMNS, 1)), x, y, lambda w, a, b: jnp.mean((a @ w[0] - b[:, None]) ** 2)

    def perceptron():
        def cost(w, a, b):
            return classes(jax.nn.relu(jnp.tanh(a @ w[0]) @ w[1]) @ w[2], b)

        return weights((COLUMNS, 64), (64, 64), (64, 3)), x, c, cost

    def convolution():
        def cost(w, a, b):
            for kernel in w[:2]:
                a = jax.nn.relu(lax.conv_general_dilated(a, kernel, (2, 2), "SAME",
                                                         dimension_numbers=("NHWC", "HWIO", "NHWC")))  # fmt: skip
            return classes(a.reshape(len(a), -1) @ w[2], b)

        return weights((3, 3, 3, 16), (3, 3, 16, 32), (288, 3)), images, c, cost

    def gru():
        def cost(w, a, b):
            def step(h, at):
                gates = jax.nn.sigmoid(at @ w[0] + h @ w[1])
                update, reset = gates[:, :32], gates[:, 32:]
                return update * h + (1 - update) * jnp.tanh(at @ w[2] + (reset * h) @ w[3]), None

            return classes(lax.scan(step, jnp.zeros((len(a), 32)), a.swapaxes(0, 1))[0] @ w[4], b)

        return weights((COLUMNS, 64), (32, 64), (COLUMNS, 32), (32, 32), (32, 3)), texts, c, cost

    def attention():
        def cost(w, a, b):
            query, key, value = (a @ each for each in w[:3])
            scores = jax.nn.softmax(query @ key.swapaxes(1, 2) / 6)
            return classes(jnp.tanh(scores @ value)[:, -1] @ w[3], b)

        return weights((COLUMNS, 32), (COLUMNS, 32), (COLUMNS, 32), (32, 3)), texts, c, cost

    return linear, perceptron, convolution, gru, attention


def jax_models(threads):
    os.environ["NPROC"] = os.environ["PJRT_NPROC"] = str(threads)
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp

    for recipe in jax_recipes():
        parameters, inputs, wanted, cost = recipe()
        states = [[jnp.zeros_like(value) for value in parameters] for _ in range(2)]

        @jax.jit
        def update(parameters, first, second, step, a, b, cost=cost):  # adam
            gradients = jax.grad(cost)(parameters, a, b)
            first = [0.9 * m + 0.1 * g for m, g in zip(first, gradients, strict=True)]
            second = [0.999 * v + 0.001 * g * g for v, g in zip(second, gradients, strict=True)]
            scale = 0.01 * jnp.sqrt(1 - 0.999**step) / (1 - 0.9**step)
            steps = [scale * m / (jnp.sqrt(v) + 1e-8) for m, v in zip(first, second, strict=True)]
            return [p - d for p, d in zip(parameters, steps, strict=True)], first, second

        for step in range(STEPS):
            rows = slice(step * 64 % ROWS, step * 64 % ROWS + 64)
            parameters, *states = update(parameters, *states, step + 1.0, inputs[rows], wanted[rows])
        yield recipe.__name__, digest(parameters)


def lightgbm_models(threads):
    import lightgbm

    x, y, c = tables()
    settings = {"seed": 1, "deterministic": True, "force_row_wise": True, "num_threads": threads, "verbosity": -1}
    for name, more, label, group in (
        ("regression", {"objective": "regression"}, y, None),
        ("binary", {"objective": "binary"}, c > 0, None),
        ("multiclass", {"objective": "multiclass", "num_class": 3}, c, None),
        ("lambdarank", {"objective": "lambdarank"}, c, [16] * (ROWS // 16)),
        ("dart", {"objective": "regression", "boosting": "dart", "linear_tree": False, "bagging_fraction": 0.5,
                  "bagging_freq": 1}, y, None),
    ):  # fmt: skip
        data = lightgbm.Dataset(x, label, group=group)
        text = lightgbm.train({**settings, **more}, data, STEPS).model_to_string()
        yield name, hashlib.sha256(text.split("\nparameters:")[0].encode()).hexdigest()[:8]


def sklearn_models(threads):
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(threads)
    import numpy as np
    from sklearn import cluster, ensemble, linear_model, neural_network

    x, y, c = tables()
    model = linear_model.LogisticRegression().fit(x, c)
    yield "logistic", digest([model.coef_, model.intercept_])
    model = neural_network.MLPClassifier((64, 64), max_iter=STEPS, random_state=1).fit(x, c)
    yield "perceptron", digest([*model.coefs_, *model.intercepts_])
    model = ensemble.RandomForestRegressor(STEPS, random_state=1, n_jobs=threads).fit(x, y)
    trees = [tree.tree_ for tree in model.estimators_]
    yield "forest", digest(array for tree in trees for array in (tree.feature, tree.threshold, tree.value))
    model = ensemble.HistGradientBoostingRegressor(max_iter=STEPS, random_state=1).fit(x, y)
    nodes = [tree.nodes for trees in model._predictors for tree in trees]
    yield "boosting", digest(each[name] for each in nodes for name in ("feature_idx", "num_threshold", "value"))
    model = cluster.KMeans(8, n_init=3, random_state=1).fit(np.tile(x, (4, 1)) + np.repeat(np.eye(4), ROWS, 0) @ x[:4])
    yield "clusters", digest([model.cluster_centers_])


LIBRARIES = {"torch": torch_models, "jax": jax_models, "lightgbm": lightgbm_models, "sklearn": sklearn_models}


def train(library, threads):
    """In a process of its own: prints the digest of each model of a library, and its version."""
    for model, value in LIBRARIES[library](threads):
        print(json.dumps([importlib.import_module(library).__version__, model, value]), flush=True)


def trained(options, library, processor, threads):
    """Returns what `train` prints in a process of its own, as [version, model, digest], and a text that says why not all."""
    program = [*run.PROCESSORS[processor], options.python.get(library, options.python[""]), "-B", __file__]
    command = [*program, "--train", library, "--threads", threads]
    failure = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as training:
        try:
            texts, errors = training.communicate(timeout=options.limit)
        except subprocess.TimeoutExpired:
            training.kill()
            texts, errors = training.communicate()
            failure = f"took more than {options.limit} s"
    if training.returncode != 0 and not failure:
        failure = f"ended with {training.returncode}: {' '.join(errors.split())[-200:]}"
    return [json.loads(line) for line in texts.splitlines() if line.startswith("[")], failure


def report(options, library):
    columns = options.columns.split(",")
    answers = {column: trained(options, library, *column.split("/")) for column in columns}
    values = {(column, model): value for column, (lines, _) in answers.items() for _, model, value in lines}
    versions = sorted({version for lines, _ in answers.values() for version, _, _ in lines})
    print(f"{' '.join([library, *versions]):20}", *(f"{column:>12}" for column in columns), " different")
    same = 0
    names = list(dict.fromkeys(model for _, model in values))
    for name in names:
        digests = [values.get((column, name), "-") for column in columns]
        count = len(set(digests) - {"-"})
        same += count == 1
        print(f"{name:20}", *(f"{each:>12}" for each in digests), f"{count:>10}")
    for column, (_, failure) in answers.items():
        if failure:
            print(f"  {column}: {failure}")
    print(f"{library}: {same} of {len(names)} models are the same in each training", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", default=[], metavar="[LIBRARY=]PATH", help="default: this one")
    parser.add_argument("--columns", default="native/1,native/2,native/3,haswell/1,haswell/3,epyc/1,epyc/3",
                        help="processors and threads, with commas between them")  # fmt: skip
    parser.add_argument("--libraries", default=",".join(LIBRARIES), help="with commas between them")
    parser.add_argument("--limit", type=int, default=1800, help="seconds of a training")
    parser.add_argument("--train", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        return train(options.train, options.threads)
    options.python = {"": sys.executable} | dict(
        text.split("=", 1) if "=" in text else ("", text) for text in options.python)  # fmt: skip
    for library in options.libraries.split(","):
        report(options, library)
    return 0


if __name__ == "__main__":
    sys.exit(main())
