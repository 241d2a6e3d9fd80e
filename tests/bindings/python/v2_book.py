"""The programs of the Paddle book of 2017 in its own spelling, on data that is drawn; each returns what it reached.

SPDX-License-Identifier: Apache-2.0
"""

import gzip
import math

import numpy as np

import tenon.v2 as paddle
from tenon.v2.reader import shuffle

random = np.random.default_rng(7)


def fit_a_line(folder):
    paddle.init(use_gpu=False, trainer_count=1)
    x = paddle.layer.data(name="x", type=paddle.data_type.dense_vector(13))
    y_predict = paddle.layer.fc(input=x, size=1, act=paddle.activation.Linear())
    y = paddle.layer.data(name="y", type=paddle.data_type.dense_vector(1))
    cost = paddle.layer.square_error_cost(input=y_predict, label=y)
    parameters = paddle.parameters.create(cost)
    optimizer = paddle.optimizer.Momentum(momentum=0)
    trainer = paddle.trainer.SGD(cost=cost, parameters=parameters, update_equation=optimizer)
    with open(folder / "model.proto", "w") as f:
        f.write(str(trainer.__topology_in_proto__))
    feeding = {"x": 0, "y": 1}
    costs = []

    def event_handler(event):
        if isinstance(event, paddle.event.EndPass):
            if event.pass_id % 10 == 0:
                with open(folder / f"params_pass_{event.pass_id}.tar", "w") as f:
                    parameters.to_tar(f)
            result = trainer.test(reader=paddle.batch(paddle.dataset.uci_housing.test(), batch_size=2), feeding=feeding)
            costs.append(result.cost)

    trainer.train(
        reader=paddle.batch(shuffle(paddle.dataset.uci_housing.train(), buf_size=500), batch_size=2),
        feeding=feeding,
        event_handler=event_handler,
        num_passes=21,
    )
    test_data = [(item[0],) for item in paddle.dataset.uci_housing.test()()][:5]
    probs = paddle.infer(output_layer=y_predict, parameters=parameters, input=test_data)
    with open(folder / "params_pass_20.tar") as f:
        read = paddle.parameters.Parameters.from_tar(f)
    assert np.array_equal(paddle.infer(output_layer=y_predict, parameters=read, input=test_data), probs)
    assert probs.shape == (5, 1)
    return costs


def digits(image=8, classes=3, samples=300):
    """Images, vectors of [1, image, image] numbers, with a bright square whose place is the class."""
    label = random.integers(0, classes, samples)
    pixels = random.normal(size=(samples, image, image)) * 0.3
    for number, each in enumerate(label):
        pixels[number, each * 2 : each * 2 + 3, 1:4] += 1
    return lambda: zip(pixels.reshape(samples, -1).astype(np.float32), label.tolist(), strict=True)


def convolutional_neural_network(img):
    conv_pool_1 = paddle.networks.simple_img_conv_pool(
        input=img, filter_size=3, num_filters=4, num_channel=1, pool_size=2, pool_stride=2, act=paddle.activation.Relu()
    )
    return paddle.layer.fc(input=conv_pool_1, size=3, act=paddle.activation.Softmax())


def recognize_digits(folder):
    paddle.init(use_gpu=False, trainer_count=1)
    images = paddle.layer.data(name="pixel", type=paddle.data_type.dense_vector(64))
    label = paddle.layer.data(name="label", type=paddle.data_type.integer_value(3))
    predict = convolutional_neural_network(images)
    cost = paddle.layer.classification_cost(input=predict, label=label)
    parameters = paddle.parameters.create(cost)
    optimizer = paddle.optimizer.Momentum(
        learning_rate=0.1 / 16.0, momentum=0.9, regularization=paddle.optimizer.L2Regularization(rate=0.0005 * 16)
    )
    trainer = paddle.trainer.SGD(cost=cost, parameters=parameters, update_equation=optimizer)
    test, lists = digits(), []

    def event_handler(event):
        if isinstance(event, paddle.event.EndIteration):
            assert set(event.metrics) == {"classification_error_evaluator"}
        if isinstance(event, paddle.event.EndPass):
            with open(folder / f"params_pass_{event.pass_id}.tar", "w") as f:
                trainer.save_parameter_to_tar(f)
            result = trainer.test(reader=paddle.batch(test, batch_size=16))
            lists.append((event.pass_id, result.cost, result.metrics["classification_error_evaluator"]))

    trainer.train(reader=paddle.batch(paddle.reader.shuffle(digits(), buf_size=8192), batch_size=16),
                  event_handler=event_handler, num_passes=8)  # fmt: skip
    best = min(lists, key=lambda list: float(list[1]))
    probs = paddle.infer(output_layer=predict, parameters=parameters, input=[(each[0],) for each in test()][:4])
    lab = np.argsort(-probs)
    assert lab.shape == (4, 3)
    return 1 - float(best[2])


def vgg_bn_drop(input):
    def conv_block(ipt, num_filter, groups, dropouts, num_channels=None):
        return paddle.networks.img_conv_group(
            input=ipt, num_channels=num_channels, pool_size=2, pool_stride=2, conv_num_filter=[num_filter] * groups,
            conv_filter_size=3, conv_act=paddle.activation.Relu(), conv_with_batchnorm=True,
            conv_batchnorm_drop_rate=dropouts, pool_type=paddle.pooling.Max(),
        )  # fmt: skip

    conv1 = conv_block(input, 8, 2, [0.3, 0], 3)
    conv2 = conv_block(conv1, 16, 2, [0.4, 0])
    drop = paddle.layer.dropout(input=conv2, dropout_rate=0.5)
    fc1 = paddle.layer.fc(input=drop, size=64, act=paddle.activation.Linear())
    bn = paddle.layer.batch_norm(input=fc1, act=paddle.activation.Relu(), layer_attr=paddle.attr.Extra(drop_rate=0.5))
    return paddle.layer.fc(input=bn, size=64, act=paddle.activation.Linear())


def conv_bn_layer(input, ch_out, filter_size, stride, padding, active_type=None, ch_in=None):
    tmp = paddle.layer.img_conv(
        input=input, filter_size=filter_size, num_channels=ch_in, num_filters=ch_out, stride=stride, padding=padding,
        act=paddle.activation.Linear(), bias_attr=False,
    )  # fmt: skip
    return paddle.layer.batch_norm(input=tmp, act=active_type or paddle.activation.Relu())


def resnet_cifar10(ipt):
    def basicblock(ipt, ch_in, ch_out, stride):
        tmp = conv_bn_layer(ipt, ch_out, 3, stride, 1)
        tmp = conv_bn_layer(tmp, ch_out, 3, 1, 1, paddle.activation.Linear())
        short = ipt if ch_in == ch_out else conv_bn_layer(ipt, ch_out, 1, stride, 0, paddle.activation.Linear())
        return paddle.layer.addto(input=[tmp, short], act=paddle.activation.Relu())

    conv1 = conv_bn_layer(ipt, ch_in=3, ch_out=4, filter_size=3, stride=1, padding=1)
    res = basicblock(basicblock(conv1, 4, 4, 1), 4, 8, 2)
    return paddle.layer.img_pool(input=res, pool_size=4, stride=1, pool_type=paddle.pooling.Avg())


def pictures(samples=240):
    """Pictures [3, 8, 8] of a colour each."""
    label = random.integers(0, 3, samples)
    pixels = random.normal(size=(samples, 3, 8, 8)) * 0.5
    pixels[np.arange(samples), label] += 1
    return lambda: zip(pixels.reshape(samples, -1).astype(np.float32), label.tolist(), strict=True)


def image_classification(folder, network=vgg_bn_drop):
    paddle.init(use_gpu=False, trainer_count=1)
    image = paddle.layer.data(name="image", type=paddle.data_type.dense_vector(3 * 8 * 8))
    out = paddle.layer.fc(input=network(image), size=3, act=paddle.activation.Softmax())
    lbl = paddle.layer.data(name="label", type=paddle.data_type.integer_value(3))
    cost = paddle.layer.classification_cost(input=out, label=lbl)
    parameters = paddle.parameters.create(cost)
    momentum_optimizer = paddle.optimizer.Momentum(
        momentum=0.9,
        regularization=paddle.optimizer.L2Regularization(rate=0.0002 * 16),
        learning_rate=0.05 / 16.0,
        learning_rate_decay_a=0.1,
        learning_rate_decay_b=240 * 100,
        learning_rate_schedule="discexp",
    )

    def event_handler(event):
        if isinstance(event, paddle.event.EndPass):
            with gzip.open(folder / f"params_pass_{event.pass_id}.tar.gz", "w") as f:
                parameters.to_tar(f)

    feeding = {"image": 0, "label": 1}
    trainer = paddle.trainer.SGD(cost=cost, parameters=parameters, update_equation=momentum_optimizer)
    trainer.train(reader=paddle.batch(paddle.reader.shuffle(pictures(), buf_size=50000), batch_size=16), num_passes=20,
                  event_handler=event_handler, feeding=feeding)  # fmt: skip
    result = trainer.test(reader=paddle.batch(pictures(), batch_size=16), feeding=feeding)
    with gzip.open(folder / "params_pass_19.tar.gz", "r") as f:
        read = paddle.parameters.Parameters.from_tar(f)
    samples = [(each[0],) for each in pictures(4)()]
    assert np.array_equal(*(paddle.infer(output_layer=out, parameters=each, input=samples) for each in (parameters, read)))
    return 1 - result.metrics["classification_error_evaluator"]


def word2vec(folder):
    def wordemb(inlayer):
        return paddle.layer.table_projection(
            input=inlayer, size=8, param_attr=paddle.attr.Param(name="_proj", initial_std=0.001, learning_rate=1, l2_rate=0)
        )

    paddle.init(use_gpu=False, trainer_count=3)
    words = paddle.data_type.integer_value(20)
    names = ["firstw", "secondw", "thirdw", "fourthw", "fifthw"]
    firstword, secondword, thirdword, fourthword, nextword = [paddle.layer.data(name=each, type=words) for each in names]
    contextemb = paddle.layer.concat(input=[wordemb(each) for each in (firstword, secondword, thirdword, fourthword)])
    hidden1 = paddle.layer.fc(
        input=contextemb, size=32, act=paddle.activation.Sigmoid(), layer_attr=paddle.attr.Extra(drop_rate=0.1),
        bias_attr=paddle.attr.Param(learning_rate=2),
        param_attr=paddle.attr.Param(initial_std=1.0 / math.sqrt(8 * 8), learning_rate=1),
    )  # fmt: skip
    predictword = paddle.layer.fc(
        input=hidden1, size=20, bias_attr=paddle.attr.Param(learning_rate=2), act=paddle.activation.Softmax()
    )
    cost = paddle.layer.classification_cost(input=predictword, label=nextword)
    parameters = paddle.parameters.create(cost)
    adagrad = paddle.optimizer.AdaGrad(learning_rate=0.1, regularization=paddle.optimizer.L2Regularization(8e-4))
    trainer = paddle.trainer.SGD(cost, parameters, adagrad)

    def grams():
        for _ in range(800):
            first = random.integers(0, 20)
            yield tuple(int((first + 3 * place) % 20) for place in range(5))

    trainer.train(paddle.batch(grams, 32), num_passes=12, event_handler=lambda event: None)
    embeddings = parameters.get("_proj").reshape(20, 8)
    assert parameters.get_shape("_proj") == embeddings.shape
    return trainer.test(paddle.batch(grams, 32)).metrics["classification_error_evaluator"]


def recommender_system(folder):
    paddle.init(use_gpu=False)
    integer = paddle.data_type.integer_value

    def feature(name, count, size=8):
        ids = paddle.layer.data(name=name, type=integer(count))
        return paddle.layer.fc(input=paddle.layer.embedding(input=ids, size=size), size=size)

    usr_combined_features = paddle.layer.fc(
        input=[feature("user_id", 30), feature("gender_id", 2), feature("age_id", 4), feature("job_id", 5)],
        size=16, act=paddle.activation.Tanh(),
    )  # fmt: skip
    mov_fc = feature("movie_id", 20)
    mov_categories = paddle.layer.data(name="category_id", type=paddle.data_type.sparse_binary_vector(6))
    mov_categories_hidden = paddle.layer.fc(input=mov_categories, size=8)
    mov_title_id = paddle.layer.data(name="movie_title", type=paddle.data_type.integer_value_sequence(40))
    mov_title_emb = paddle.layer.embedding(input=mov_title_id, size=8)
    mov_title_conv = paddle.networks.sequence_conv_pool(input=mov_title_emb, hidden_size=8, context_len=3)
    mov_combined_features = paddle.layer.fc(
        input=[mov_fc, mov_categories_hidden, mov_title_conv], size=16, act=paddle.activation.Tanh()
    )
    inference = paddle.layer.cos_sim(a=usr_combined_features, b=mov_combined_features, size=1, scale=5)
    score = paddle.layer.data(name="score", type=paddle.data_type.dense_vector(1))
    cost = paddle.layer.square_error_cost(input=inference, label=score)
    parameters = paddle.parameters.create(cost)
    trainer = paddle.trainer.SGD(cost=cost, parameters=parameters, update_equation=paddle.optimizer.Adam(learning_rate=0.01))
    names = ["user_id", "gender_id", "age_id", "job_id", "movie_id", "category_id", "movie_title", "score"]
    feeding = {name: place for place, name in enumerate(names)}

    def ratings():
        for _ in range(600):
            user, movie = (int(each) for each in random.integers(0, [30, 20]))
            likes = 4.0 if user % 2 == movie % 2 else 1.0
            yield user, user % 2, user % 4, user % 5, movie, [movie % 6], [movie, 20 + movie], [likes]

    trainer.train(
        reader=paddle.batch(paddle.reader.shuffle(ratings, buf_size=8192), batch_size=32), feeding=feeding, num_passes=8
    )
    user, movie = [3, 1, 3, 3], [5, [5], [5, 25]]
    prediction = paddle.infer(
        output_layer=inference, parameters=parameters, input=[user + movie],
        feeding={name: place for name, place in feeding.items() if name != "score"},
    )  # fmt: skip
    assert prediction.shape == (1, 1)
    return trainer.test(paddle.batch(ratings, 32), feeding).cost
