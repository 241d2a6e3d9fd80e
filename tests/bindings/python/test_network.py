"""Networks declared by a decorated function. SPDX-License-Identifier: Apache-2.0"""

import numpy as np
import pytest

import tenon
from models import labels, pixels
from tenon.config_helpers import (
    LinearActivation,
    SoftmaxActivation,
    classification_cost,
    dense_vector,
    fc_layer,
    integer_value,
    regression_cost,
)


def declared(files=("first", "second")):
    @tenon.network(input_types={"img": dense_vector(20), "label": integer_value(3)})
    def digits(img, label):
        hidden = fc_layer(input=img, size=16)
        return classification_cost(input=fc_layer(input=hidden, size=3, act=SoftmaxActivation()), label=label)

    @digits.train_data(files=files)
    @digits.test_data(files="all")
    def provider(filename):
        chosen = {"first": slice(200), "second": slice(200, 400), "all": slice(None)}[filename]
        yield from ((row, int(label)) for row, label in zip(pixels[chosen], labels[chosen], strict=True))

    return digits, provider


def test_passes_train_and_test():
    digits, provider = declared()
    assert len(list(provider("first"))) == 200
    network = digits()
    trainer = network.createLocalTrainer("cpu").withSGDOptimizer(learning_rate=0.5, batch_size=50)
    seen = []
    results = [trainer.trainOnePass(seen.append) for _ in range(6)]
    assert [result.samples for result in results] == [400] * 6
    assert results[-1].cost < results[0].cost / 2 and results[-1].metrics["accuracy"] > 0.9
    assert trainer.testOnePass().metrics["accuracy"] > 0.9
    assert {type(each).__name__ for each in seen} > {"BeginPass", "EndIteration", "EndPass"}


def test_each_pass_has_its_own_order_and_momentum_stays():
    orders = []
    for shuffled in (True, False):
        digits, provider = declared()
        digits.train_data(files=["first"], shuffle=shuffled)(provider)
        trainer = digits().createLocalTrainer().withOptimizer("sgd", batch_size=200)
        network = trainer.network
        score = network.outputs[-1].inputs[1]

        def handler(event, score=score):
            if isinstance(event, tenon.event.EndIteration):
                orders.append(event.machine.output(score).tolist())

        network.outputs.append(score)
        for _ in range(2):
            trainer.trainOnePass(handler)
    assert orders[0] != orders[1] and orders[2] == orders[3] == labels[:200].tolist()
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(orders[2])


def test_a_network_is_called_with_layers_too():
    digits, _ = declared()
    img = tenon.layer.data("img", dense_vector(20))
    assert digits(img, label="label").type == "cross_entropy"
    linear = fc_layer(input=[img, img], size=1, act=LinearActivation())
    cost = regression_cost(linear, linear * 2)
    assert tenon.infer(cost, tenon.parameters.create(cost), pixels[:3]).shape == (3,)


def test_what_is_missing_is_said():
    digits, _ = declared()
    network = digits()
    with pytest.raises(tenon.error.NotFoundError, match='device "tpu" not found'):
        network.createLocalTrainer("tpu").trainOnePass()
    with pytest.raises(tenon.error.Error, match='devices "cuda:0", "cuda:1": '):
        network.createLocalTrainer("gpu0, gpu1").trainOnePass()

    @tenon.network(input_types={"img": dense_vector(2)})
    def bare(img):
        return regression_cost(img, img)

    def plain(img):
        return img

    with pytest.raises(tenon.error.MisuseError, match=r"bare has no data of train_data: decorate .* @bare.train_data"):
        bare().createLocalTrainer().trainOnePass()
    with pytest.raises(tenon.error.InvalidError, match="needs at least one file"):
        bare.test_data(files=[])
    with pytest.raises(tenon.error.InvalidError, match=r"inputs of plain\(img\) are not those of input_types, image"):
        tenon.network(input_types={"image": dense_vector(2)})(plain)
    with pytest.raises(TypeError, match="'img' is one of tenon.data_type"):
        tenon.network(input_types={"img": 3})(lambda img: img)


def test_an_exception_of_a_provider_comes_out_as_itself():
    digits, _ = declared()

    @digits.train_data(files=["nowhere.txt"])
    def provider(filename):
        with open(filename) as file:
            yield np.array(file.read()), 0

    with pytest.raises(FileNotFoundError, match="nowhere.txt"):
        digits().createLocalTrainer().trainOnePass()
