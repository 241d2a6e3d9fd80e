"""tenon.v2: the programs of the book of 2017 as they were written, conversions, and names that are refused.

SPDX-License-Identifier: Apache-2.0
"""

import io
import tarfile

import numpy as np
import pytest

import tenon
import tenon.v2 as paddle
import v2_book
import v2_book_sequences


@pytest.fixture(autouse=True)
def own_host():
    before = tenon.host()
    yield
    tenon.use(before)


def test_chapter_1(tmp_path):
    costs = v2_book.fit_a_line(tmp_path)
    assert costs[-1] < 40 < costs[0] / 2


def test_chapter_2(tmp_path):
    assert v2_book.recognize_digits(tmp_path) > 0.95


@pytest.mark.parametrize("network", [v2_book.vgg_bn_drop, v2_book.resnet_cifar10])
def test_chapter_3(tmp_path, network):
    assert v2_book.image_classification(tmp_path, network) > 0.9


def test_chapter_4(tmp_path):
    assert v2_book.word2vec(tmp_path) < 0.1


def test_chapter_5(tmp_path):
    assert v2_book.recommender_system(tmp_path) < 0.3


@pytest.mark.parametrize("network", [v2_book_sequences.convolution_net, v2_book_sequences.stacked_lstm_net])
def test_chapter_6(tmp_path, network):
    assert v2_book_sequences.understand_sentiment(tmp_path, network) > 0.95


def test_chapter_7(tmp_path):
    errors = v2_book_sequences.label_semantic_roles(tmp_path)
    assert errors[-1] < 0.1 < 0.4 < errors[0]


def test_chapter_8(tmp_path):
    assert v2_book_sequences.machine_translation(tmp_path) > 0.8


def line(size=2):
    x = paddle.layer.data(name="x", type=paddle.data_type.dense_vector(size))
    y = paddle.layer.data(name="y", type=paddle.data_type.dense_vector(1))
    out = paddle.layer.fc(
        x, 1, paddle.activation.Linear(), bias_attr=False, param_attr=paddle.attr.Param("w", initial_mean=1.0)
    )
    return out, paddle.layer.square_error_cost(input=out, label=y)


def test_gradients_are_sums_and_schedules_count_samples():
    paddle.init()
    _, cost = line()
    parameters = paddle.parameters.create(cost)
    optimizer = paddle.optimizer.Momentum(
        momentum=0.5, learning_rate=0.01, regularization=paddle.optimizer.L2Regularization(0.25),
        learning_rate_schedule="discexp", learning_rate_decay_a=0.5, learning_rate_decay_b=8,
    )  # fmt: skip
    trainer = paddle.trainer.SGD(cost=cost, parameters=parameters, update_equation=optimizer)
    inputs, wanted = np.array([[1.0, 2], [0, 1], [3, 1], [1, 0]]), np.array([[1.0], [2], [0], [1]])
    trainer.train(paddle.batch(lambda: zip(inputs, wanted, strict=True), 4), num_passes=3)
    weight, velocity = np.ones((2, 1)), np.zeros((2, 1))
    for step in range(3):
        gradient = inputs.T @ (2 * (inputs @ weight - wanted)) + 0.25 * weight
        velocity = 0.5 * velocity + gradient
        weight -= 0.01 * 0.5 ** ((step + 1) // 2) * velocity
    assert np.allclose(parameters["w"], weight, rtol=1e-4)


def test_images_are_vectors_with_their_channels_first():
    paddle.init()
    image = paddle.layer.data(name="image", type=paddle.data_type.dense_vector(12), height=2, width=3)
    one = paddle.attr.Param("kernel", initial_mean=0.0)
    conv = paddle.layer.img_conv(image, 1, 1, num_channels=2, act=paddle.activation.Linear(), bias_attr=False, param_attr=one)
    parameters = paddle.parameters.create(conv)
    parameters.set("kernel", [0, 1])  # the second channel
    assert paddle.infer(conv, parameters, [(np.arange(12),)]).reshape(-1).tolist() == [6, 7, 8, 9, 10, 11]
    wrong = paddle.layer.data(name="wrong", type=paddle.data_type.dense_vector(12))
    with pytest.raises(tenon.error.InvalidError, match="12 numbers are no square image of 2 channels"):
        paddle.layer.img_conv(wrong, 1, 1, num_channels=2)


@pytest.mark.parametrize("relu", [False, True])
def test_lstmemory_has_the_formula_of_2017(relu):
    """relu: activations for which the step is written out, gates in the order candidate, input, forget, output."""
    paddle.init()
    rows = paddle.layer.data(name="rows", type=paddle.data_type.dense_vector_sequence(8))
    acts = {"act": paddle.activation.Relu(), "state_act": paddle.activation.Sigmoid()} if relu else {}
    out = paddle.layer.lstmemory(rows, size=2, reverse=True, param_attr=paddle.attr.Param("u"), **acts)
    parameters = paddle.parameters.create(out)
    random = np.random.default_rng(5)
    for name in parameters:
        parameters.set(name, random.normal(size=parameters.get_shape(name)))
    values = random.normal(size=(5, 8)).astype(np.float32)
    got = paddle.infer(out, parameters, [(values,)])
    bias = next(parameters[each] for each in parameters if each.endswith(".bias"))
    parts = [parameters[each] for each in parameters if "parameter" in each or "peepholes" in each]
    peepholes = np.concatenate([each.reshape(-1) for each in parts]).reshape(3, 2)
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    act, state_act = (lambda x: np.maximum(x, 0), sigmoid) if relu else (np.tanh, np.tanh)
    h = c = np.zeros(2)
    for place in range(4, -1, -1):
        z = (values[place] + bias + h @ parameters["u"]).reshape(4, 2)
        candidate, i, f, o = z if relu else (z[2], z[0], z[1], z[3])
        after = act(candidate) * sigmoid(i + peepholes[0] * c) + sigmoid(f + peepholes[1] * c) * c
        h, c = sigmoid(o + peepholes[2] * after) * state_act(after), after
        assert np.allclose(got[place], h, atol=1e-5)


def test_files_of_2017(tmp_path):
    """A message of protobuf with fields of all kinds beside name, size and dims."""
    values = np.array([[1.5], [2.0]], np.float32)
    message = (b"\x0a\x01w\x10\x02" + b"\x19" + np.float64(1).tobytes() + b"\x48\x02\x48\x01" + b"\x50\xff\xff\xff\xff\x0f"
               + b"\x5d" + np.float32(1).tobytes())  # fmt: skip
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, data in (
            ("w.protobuf", message),
            ("w", bytes([0, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]) + values.tobytes()),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    read = paddle.parameters.Parameters.from_tar(io.BytesIO(file.getvalue()))
    assert read.get_shape("w") == (2, 1) and read["w"].tolist() == values.tolist()
    paddle.init()
    out, cost = line()
    assert paddle.infer(out, read, [([1, 2],)]).tolist() == [[5.5]]
    made = paddle.parameters.create(cost)
    made.init_from_tar(io.BytesIO(file.getvalue()))
    assert made.get("w").tolist() == values.tolist()
    for damaged in (file.getvalue()[:1600], b"no tar"):
        with pytest.raises(tenon.error.BadDataError):
            paddle.parameters.Parameters.from_tar(io.BytesIO(damaged))


def test_sequences_read_together_are_of_one_length():
    paddle.init()
    a, b, c = (paddle.layer.data(name=each, type=paddle.data_type.dense_vector_sequence(2)) for each in "abc")
    both = paddle.layer.addto(input=[a, b])
    all_three = paddle.layer.addto(input=[both, c])
    assert all_three.shape[0] == both.shape[0]
    d, e = (paddle.layer.data(name=each, type=paddle.data_type.dense_vector_sequence(2)) for each in "de")
    apart = [paddle.layer.pooling(each) for each in (d, e)]
    assert paddle.layer.addto(input=apart).shape == ("samples", 2)
    with pytest.raises(tenon.error.InvalidError, match="rows"):
        paddle.layer.addto(input=[d, e])


def test_readers():
    reader = paddle.reader
    numbers = lambda: range(5)  # noqa: E731
    assert list(reader.compose(numbers, reader.map_readers(lambda a, b: (a, b), numbers, numbers))())[2] == (2, 2, 2)
    with pytest.raises(reader.ComposeNotAligned):
        list(reader.compose(numbers, reader.firstn(numbers, 2))())
    mixed = reader.shuffle(reader.chain(numbers, numbers), 4)
    assert sorted(mixed()) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4] and list(mixed()) != list(mixed())
    assert list(paddle.batch(reader.cache(numbers), 2)()) == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize(
    "name, instead",
    [
        ("layer.lambda_cost", "lambda_cost"),
        ("layer.interpolation", "mul"),
        ("layer.kmax_seq_score", "sequence_pad"),
        ("layer.fcc", 'did you mean "fc"'),
        ("evaluator.pnpair", "pnpair"),
        ("event.EndForwardBackward", "event.gm"),
        ("dataset.mnist", "fashion_mnist"),
        ("image", "augment"),
        ("master", "dist_train"),
    ],
)
def test_names_without_a_place_say_what_replaces_them(name, instead):
    with pytest.raises(AttributeError, match=instead):
        module, _, last = f"v2.{name}".rpartition(".")
        getattr(paddle if module == "v2" else getattr(paddle, module[3:]), last)


def test_what_is_refused():
    with pytest.raises(tenon.error.UnsupportedError, match="use_gpu"):
        paddle.init(use_gpu=True)
    with pytest.raises(tenon.error.UnsupportedError, match="l2_rate=0.1 of one parameter; expected 0"):
        paddle.attr.Param(l2_rate=0.1)
    with pytest.raises(tenon.error.UnsupportedError, match='learning_rate_schedule="pass_manual"'):
        paddle.optimizer.Adam(learning_rate_schedule="pass_manual").updater(4)
    with pytest.warns(UserWarning, match="error_clipping_threshold has no effect"):
        paddle.attr.Extra(error_clipping_threshold=10.0)
    paddle.init()
    _, cost = line()
    parameters = paddle.parameters.create(cost)
    with pytest.raises(tenon.error.UnsupportedError, match="dist_train"):
        paddle.trainer.SGD(cost, parameters, paddle.optimizer.Adam(), is_local=False)
    with pytest.raises(tenon.Error, match="what paddle.batch returns"):
        paddle.trainer.SGD(cost, parameters, paddle.optimizer.Adam()).train(list)
    x = paddle.layer.data(name="x", type=paddle.data_type.dense_vector(2))
    with pytest.raises(TypeError, match='cross_entropy_cost.. needs the input "label"'):
        paddle.layer.cross_entropy_cost(x)
    with pytest.raises(TypeError, match='unknown argument "coef"; did you mean "coeff"'):
        paddle.layer.square_error_cost(x, x, coef=1)
