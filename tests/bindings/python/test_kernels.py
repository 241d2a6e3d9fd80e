"""Layers and metrics written in Python. SPDX-License-Identifier: Apache-2.0"""

import traceback

import numpy as np
import pytest

import tenon
from models import classifier, labels, pixels

ARRAYS = {"pixel": pixels, "label": labels}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Swish(tenon.layer.Base):
    """x sigmoid(beta x)."""

    def __init__(self, beta: float = 1.0):
        self.beta = beta

    def forward(self, x):
        return x * sigmoid(self.beta * x)

    def backward(self, gradient, x, output):
        s = sigmoid(self.beta * x)
        return gradient * (s + self.beta * output * (1 - s))


class Affine(tenon.layer.Base):
    """x weight + bias."""

    parameters = ("weight", "bias")

    def __init__(self, size: int):
        self.size = size

    def shape(self, x):
        return x[0], self.size

    def initial_parameters(self, x):
        return {
            "weight": tenon.layer.Parameter((x[1], self.size), uniform=(-0.5, 0.5)),
            "bias": tenon.layer.Parameter((self.size,), constant=0.25),
        }

    def forward(self, x, weight, bias):
        return x @ weight + bias

    def backward(self, x, weight, gradient):
        return gradient @ weight.T, x.T @ gradient, gradient.sum(0)


class Polar(tenon.layer.Base):
    """Length and angle of points."""

    outputs = ("length", "angle")

    def shape(self, x, y):
        return [x, y]

    def forward(self, x, y):
        return np.hypot(x, y), np.arctan2(y, x)

    def backward(self, gradient, x, y, length):
        along, across = gradient
        return along * x / length - across * y / length**2, along * y / length + across * x / length**2


class CrossEntropy(tenon.layer.Base):
    """-log of the probability of the label."""

    role = "cost"

    def forward(self, probabilities, label, weight=None):
        cost = -np.log(np.take_along_axis(probabilities, label[:, None], 1))[:, 0]
        return cost if weight is None else cost * weight[:, 0]

    def backward(self, gradient, probabilities, label, weight):
        at = (np.arange(len(label)), label)
        result = np.zeros_like(probabilities)
        result[at] = -gradient / probabilities[at] * (1 if weight is None else weight[:, 0])
        return result, None, (-np.log(probabilities[at]) * gradient)[:, None]


class Confusion(tenon.metric.Base):
    """Shares of right and wrong answers, and the number of samples."""

    def __init__(self, scale: float = 1.0):
        self.scale = scale

    def update(self, score, label):
        right = (score.argmax(1) == label).sum()
        return right, len(label)

    def finalize(self, right, count):
        return {"right": self.scale * right / max(count, 1), "count": count}


class Hits(tenon.metric.Base):
    """The number of right answers."""

    def update(self, score, label):
        return (score.argmax(1) == label).sum()

    def finalize(self, hits):
        return hits


def vector(name, size=3):
    return tenon.layer.data(name, tenon.data_type.dense_vector(size))


def classes():
    return tenon.layer.data("label", tenon.data_type.integer_value(3))


def infer(layer, *arrays):
    names = [each.name for each in layer.inputs]
    return tenon.infer(layer, tenon.parameters.create(layer), dict(zip(names, arrays, strict=True)))


def test_a_layer_computes_what_the_class_says():
    x = pixels[:7, :3]
    assert np.array_equal(infer(Swish(beta=2)(vector("x")), x), x * sigmoid(2 * x))
    layer = Swish(3.0)(vector("x"), name="here")
    assert (layer.name, layer.type, layer.role, layer.shape) == ("here", "python.swish", "layer", ("samples", 3))
    assert layer.describe()["attributes"] == {"beta": 3.0}


@pytest.mark.parametrize("make", [
    lambda: Swish(beta=0.5)(tenon.layer.fc(vector("x"), size=4)),
    lambda: Affine(5)(Affine(4)(vector("x"), act="tanh")),
    lambda: tenon.layer.fc(tenon.layer.concat(*Polar()(vector("x"), vector("y"))), size=2),
    lambda: Polar()(vector("x"), vector("y")).output(1),
    lambda: CrossEntropy()(tenon.layer.softmax(vector("x"), size=3), classes(), vector("w", 1)),
])  # fmt: skip
def test_gradients_are_those_of_finite_differences(make):
    report = tenon.check_gradient(make())
    assert report and max(report.values()) < 1e-5


@pytest.mark.parametrize("compute", ["float32", "float64"])
def test_gradients_add_up(compute):
    """Those of a layer over minibatches, and those of layers that share a parameter."""
    x, ones = vector("x"), np.ones((2, 3))
    for shared in (False, True):
        layer = Affine(3)(x, parameter_name="w")
        cost = tenon.layer.sum_cost(Affine(3)(layer, parameter_name="w") if shared else layer)
        parameters = tenon.parameters.create(cost)
        machine = tenon.gradient_machine.new(cost, parameters, compute=compute)
        weight, bias = parameters["w.weight"], parameters["w.bias"]
        expected = ones.T @ ones / 2  # of the mean cost of two samples
        if shared:
            expected = ((ones @ weight + bias).T @ ones + ones.T @ (ones @ weight.T)) / 2
        for times in (1, 2):
            machine.feed({"x": ones})
            np.testing.assert_allclose(machine.gradient("w.weight"), times * expected, rtol=1e-5)


def test_a_wrong_gradient_is_found():
    class Wrong(Swish):
        type = "python.wrong_swish"

        def backward(self, gradient, x, output):
            return 2 * super().backward(gradient, x, output)

    with pytest.raises(tenon.Error, match='the gradient of "x" at .* but the slope there is'):
        tenon.check_gradient(Wrong()(vector("x")))


def test_python_and_native_layers_train_alike():
    """The same network of native layers and of classes ends with the same parameters."""
    results = []
    for native in (True, False):
        pixel = vector("pixel", 20)
        label = classes()
        if native:
            hidden = tenon.formula(lambda x: x * tenon.math.sigmoid(x))(tenon.layer.fc(pixel, size=8, name="a"))
            score = tenon.layer.softmax(hidden, size=3, name="b")
            cost, metric = tenon.layer.cross_entropy(score, label), tenon.layer.accuracy(score, label)
        else:
            hidden = Swish()(Affine(8)(pixel, name="a"))
            score = tenon.layer.softmax(hidden, size=3, name="b")
            cost, metric = CrossEntropy()(score, label), Confusion()(score, label)
        parameters = tenon.parameters.create([cost, metric], seed=1)
        random = np.random.default_rng(3)
        for name in sorted(parameters):
            parameters[name] = random.uniform(-0.3, 0.3, parameters[name].shape)
        tenon.train([cost, metric], parameters, ARRAYS, passes=3, updater=tenon.updater.Adam(learning_rate=0.01))
        tested = tenon.test([cost, metric], parameters, ARRAYS)
        results.append((tested, {name: parameters[name].copy() for name in parameters}))
    (first, values), (second, others) = results
    assert first.cost == pytest.approx(second.cost, rel=1e-4)
    assert second.metrics["count"] == 400 and second.metrics["right"] == pytest.approx(first.metrics["accuracy"])
    assert values.keys() == others.keys()
    for name in values:
        np.testing.assert_allclose(values[name], others[name], rtol=1e-3, atol=1e-5)


def test_metrics_are_summed_over_minibatches():
    model = classifier()
    parameters = tenon.parameters.create([model.cost])
    metrics = [model.accuracy, Hits()(model.score, "label"), Confusion(scale=100)(model.score, "label")]
    found = tenon.test([model.cost, *metrics], parameters, ARRAYS, batch_size=37).metrics
    assert found["hits"] == round(400 * found["accuracy"])
    assert found["right"] == pytest.approx(100 * found["accuracy"])
    seen = []
    tenon.train([model.cost, *metrics], parameters, ARRAYS, lambda event: seen.append(event.metrics), passes=1)
    assert seen[-1]["count"] == 400


def test_metrics_beside_a_machine():
    model = classifier()
    machine = tenon.gradient_machine.new(model.score)
    native = tenon.metric.accuracy()
    metrics = [Hits().over(), Hits().over(model.score), Confusion(scale=2).over(None, "truth")]
    for begin in range(0, 400, 100):
        rows = slice(begin, begin + 100)
        machine.forward({"pixel": pixels[rows]})
        for each in (native, *metrics):
            each.append(machine, {"label": labels[rows], "truth": labels[rows]})
    hits = round(400 * native.read())
    assert [each.read() for each in metrics] == [hits, hits, {"right": 2 * hits / 400, "count": 400}]


def test_absent_inputs_are_none():
    label = classes()
    scores = np.full((2, 3), 1 / 3)
    assert infer(CrossEntropy()(vector("p"), label), scores, [0, 1]) == pytest.approx(np.log([3, 3]))
    weighted = CrossEntropy()(vector("p"), label, vector("w", 1))
    assert infer(weighted, scores, [0, 1], [[0], [2]]) == pytest.approx([0, 2 * np.log(3)])
    with pytest.raises(TypeError, match="CrossEntropy takes the inputs probabilities, label, weight; 1 are given"):
        CrossEntropy()("p")


def test_arrays_may_be_kept_and_changed():
    kept = []

    class Keeper(tenon.layer.Base):
        def forward(self, x):
            kept.append(x)
            x *= 2
            return x

    x = vector("x")
    layer = tenon.layer.concat(Keeper()(x), x)
    parameters = tenon.parameters.create(layer)
    for value in (1, 5):
        assert tenon.infer(layer, parameters, {"x": np.full((1, 3), value)}).tolist() == [[2 * value] * 3 + [value] * 3]
    assert [each.tolist() for each in kept] == [[[2] * 3], [[10] * 3]]


def test_sequences_come_as_rows():
    words = tenon.layer.data("x", tenon.data_type.dense_vector_sequence(2))
    layer = Swish()(words)
    assert layer.shape[1] == 2 and layer.shape[0] != "samples"
    rows = np.arange(10, dtype=np.float32).reshape(5, 2)
    result = tenon.infer(layer, tenon.parameters.create(layer), {"x": tenon.Ragged(rows, [0, 2, 2, 5])})
    assert np.array_equal(result.values, rows * sigmoid(rows)) and result.offsets.tolist() == [0, 2, 2, 5]


class Mean(tenon.layer.Base):
    """The mean of each sequence."""

    def shape(self, x):
        return "samples", x[1]

    def forward(self, x: tenon.Ragged):
        return np.stack([each.sum(0) / max(len(each), 1) for each in x]) if len(x) else np.zeros((0, x.values.shape[1]))

    def backward(self, x: tenon.Ragged, gradient):
        lengths = np.diff(x.offsets)
        return np.repeat(gradient / np.maximum(lengths, 1)[:, None], lengths, 0)


def test_layers_over_sequences():
    words = tenon.layer.data("x", tenon.data_type.dense_vector_sequence(2))
    rows = np.arange(10, dtype=np.float32).reshape(5, 2)
    feeds = {"x": tenon.Ragged(rows, [0, 2, 2, 5])}
    layer = Mean()(tenon.layer.fc(words, size=2, name="fc"))
    assert layer.shape == ("samples", 2)
    parameters = tenon.parameters.create(layer)
    parameters["fc.weight"] = np.eye(2)
    assert tenon.infer(layer, parameters, feeds).tolist() == [[1, 2], [0, 0], [6, 7]]
    assert set(tenon.check_gradient(layer, feeds=feeds)) == {"fc.weight", "fc.bias"}
    with pytest.raises(tenon.error.InvalidError, match=r"Mean: the input .x. is \['samples', 3\]; expected sequences"):
        Mean()(vector("x"))


def test_layers_over_sequences_of_sequences():
    class Counts(tenon.layer.Base):
        def shape(self, x):
            return "samples", 2

        def forward(self, x: tenon.Ragged):
            return np.array([[len(each), sum(map(len, each))] for each in x])

    texts = tenon.layer.data("x", tenon.data_type.dense_vector_sub_sequence(1))
    feed = tenon.Ragged(np.ones((6, 1)), [0, 1, 4], [0, 2, 3, 3, 6])
    layer = Counts()(texts)
    assert tenon.infer(layer, tenon.parameters.create(layer), {"x": feed}).tolist() == [[1, 2], [3, 4]]


def test_layers_know_whether_the_machine_trains():
    class Noise(tenon.layer.Base):
        """Adds one in a training. The second output is for backward."""

        outputs = ("noisy", "noise")

        def shape(self, x):
            return [x, x]

        def forward(self, x):
            noise = np.ones_like(x) if self.training else np.zeros_like(x)
            return x + noise, noise

        def backward(self, gradient, noise):
            return gradient[0] * noise

    layer = Noise()(vector("x")).output(0)
    assert infer(layer, np.zeros((2, 3))).sum() == 0
    machine = tenon.gradient_machine.new(layer, data_gradients=True)
    assert machine.forward({"x": np.zeros((2, 3))}).sum() == 6
    machine.backward({layer: np.full((2, 3), 5)})
    assert machine.data_gradient("x").tolist() == [[5] * 3] * 2


class Mixture(tenon.layer.Base):
    """The sum of weight[i] inputs[i] gate."""

    parameters = "weight"

    def initial_parameters(self, gate, *inputs):
        return {"weight": tenon.layer.Parameter((len(inputs),), uniform=(0, 1))}

    def forward(self, gate, *inputs, weight):
        return gate * sum(w * each for w, each in zip(weight, inputs, strict=True))

    def backward(self, gate, inputs, weight, gradient):
        total = sum(w * each for w, each in zip(weight, inputs, strict=True))
        part = gradient * gate
        return gradient * total, *[w * part for w in weight], np.array([(part * each).sum() for each in inputs])


class Sum(tenon.layer.Base):
    def forward(self, *inputs):
        return sum(inputs)

    def backward(self, gradient, inputs):
        return [gradient] * len(inputs)


def test_layers_of_any_number_of_inputs():
    x, y, z = map(vector, "xyz")
    for inputs in ([x, y], [x, y, z], [x, y, z, tenon.layer.fc(x, size=3)]):
        layer = Mixture()(*inputs)
        report = tenon.check_gradient(layer)
        assert set(report) >= {each.name for each in inputs[:3]} | {f"{layer.name}.weight"}
    for inputs in ([x], [x, y, z]):
        report = tenon.check_gradient(Sum()(*inputs))
        assert set(report) == {each.name for each in inputs}
    with pytest.raises(TypeError, match=r"Mixture takes the inputs gate, \*inputs; 1 are given"):
        Mixture()(x)


class Broken(tenon.layer.Base):
    """Fails at a place."""

    def __init__(self, at: str = ""):
        self.at = at
        self.fail("__init__")

    def fail(self, place):
        if self.at == place:
            raise ZeroDivisionError(f"in {place}")

    def shape(self, x):
        self.fail("shape")
        return x

    def forward(self, x):
        self.fail("forward")
        return x

    def backward(self, gradient):
        self.fail("backward")
        return gradient


@pytest.mark.parametrize("place", ["__init__", "shape", "forward", "backward"])
def test_an_exception_comes_out_as_itself(place):
    model = classifier()
    with pytest.raises(ZeroDivisionError, match=f"^in {place}") as caught:
        broken = Broken(at=place)(model.score, name="broken")
        cost = tenon.layer.cross_entropy(broken, model.cost.inputs[1], from_logits=True)
        tenon.train(cost, tenon.parameters.create(cost), ARRAYS)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fail"
    if place in ("forward", "backward"):
        assert 'layer "broken"' in caught.value.__notes__[0]


def test_an_exception_of_a_metric_comes_out_as_itself():
    class Odd(Hits):
        def finalize(self, hits):
            raise KeyboardInterrupt

    model = classifier()
    with pytest.raises(KeyboardInterrupt):
        tenon.test([model.cost, Odd()(model.score, "label")], tenon.parameters.create(model.cost), ARRAYS)


def returning(result, method="forward"):
    class Returning(tenon.layer.Base):
        def forward(self, x):
            return result if method == "forward" else x

        def backward(self, gradient):
            return result

        def shape(self, x):
            return result if method == "shape" else x

    return Returning()


@pytest.mark.parametrize(("method", "result", "message"), [
    ("forward", None, 'Returning.forward returned None for "output"; expected an array of float32 of shape [2, 3]'),
    ("forward", np.ones((2, 4)), "returned an array of float64 of shape [2, 4] for"),
    ("forward", np.ones((2, 3), complex), "returned an array of complex128 of shape [2, 3] for"),
    ("forward", (1, 2), "Returning.forward returned 2 values; expected 1: output"),
    ("backward", np.ones(3), 'Returning.backward returned an array of float64 of shape [3] for "x"; expected'),
    ("backward", "no", "Returning.backward returned 'no' of type str for \"x\"; expected an array of float"),
    ("shape", ("rows", 3), "shape returned the shape ('rows', 3); expected a tuple of numbers and of 'samples'"),
    ("shape", None, "Returning.shape returned the shape None; expected"),
])  # fmt: skip
def test_wrong_results_are_named(method, result, message):
    with pytest.raises(tenon.error.InvalidError) as caught:
        layer = returning(result, method)(vector("x"))
        if method == "forward":
            infer(layer, np.ones((2, 3)))
        tenon.check_gradient(layer)
    assert message in str(caught.value)
    assert "python.returning" in "".join(caught.value.__notes__) or method == "shape"


def test_a_layer_without_backward_only_answers():
    class Sign(tenon.layer.Base):
        def forward(self, x):
            return np.sign(x)

    layer = Sign()(tenon.layer.fc(vector("x"), size=2))
    assert infer(Sign()(vector("x")), [[-2, 0, 3]]).tolist() == [[-1, 0, 1]]
    with pytest.raises(tenon.error.UnsupportedError, match="the class Sign has no method backward"):
        tenon.check_gradient(layer)


class Centre(tenon.layer.Base):
    """x minus the mean of the minibatch in a training, which moves the buffer; else minus the buffer."""

    buffers = "mean"
    parameters = ("shift",)

    def __init__(self, rate: float = 0.25):
        self.rate = rate

    def initial_parameters(self, x):
        return {"mean": tenon.layer.Parameter((x[1],)), "shift": tenon.layer.Parameter((x[1],), constant=1)}

    def forward(self, x, shift, mean):
        if not self.training:
            return x - mean + shift, mean
        return x - x.mean(0) + shift, mean + self.rate * (x.mean(0) - mean)

    def backward(self, gradient):
        return gradient - gradient.mean(0), gradient.sum(0)


def test_buffers_are_kept_with_the_model():
    layer = Centre()(vector("x"), name="centre")
    parameters = tenon.parameters.create(layer)
    kinds = {name: parameters.is_buffer(name) for name in parameters}
    assert kinds == {"centre.shift": False, "centre.mean": True}
    x = np.array([[1, 2, 3], [3, 2, 1]], np.float32)
    machine = tenon.gradient_machine.new(tenon.layer.sum_cost(layer), parameters)
    machine.feed({"x": x})
    tenon.updater.new_simple(0).update(machine)
    assert parameters["centre.mean"].tolist() == [0.5] * 3
    assert np.array_equal(tenon.infer(layer, parameters, x), x - 0.5 + 1)
    assert parameters["centre.mean"].tolist() == [0.5] * 3
    report = tenon.check_gradient(layer, parameters)
    assert set(report) == {"x", "centre.shift"}
