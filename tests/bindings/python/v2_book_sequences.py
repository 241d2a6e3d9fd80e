"""The programs of the Paddle book of 2017 on sequences in its own spelling, on data that is drawn; each returns what it
reached.

SPDX-License-Identifier: Apache-2.0
"""

import math

import numpy as np

import tenon.v2 as paddle
import tenon.v2.evaluator as evaluator

random = np.random.default_rng(11)


def convolution_net(input_dim, class_dim=2, emb_dim=16, hid_dim=16):
    data = paddle.layer.data("word", paddle.data_type.integer_value_sequence(input_dim))
    emb = paddle.layer.embedding(input=data, size=emb_dim)
    conv_3 = paddle.networks.sequence_conv_pool(input=emb, context_len=3, hidden_size=hid_dim)
    conv_4 = paddle.networks.sequence_conv_pool(input=emb, context_len=4, hidden_size=hid_dim)
    output = paddle.layer.fc(input=[conv_3, conv_4], size=class_dim, act=paddle.activation.Softmax())
    lbl = paddle.layer.data("label", paddle.data_type.integer_value(2))
    return paddle.layer.classification_cost(input=output, label=lbl), output


def stacked_lstm_net(input_dim, class_dim=2, emb_dim=16, hid_dim=32, stacked_num=3):
    fc_para_attr = paddle.attr.Param(learning_rate=1e-1)
    lstm_para_attr = paddle.attr.Param(initial_std=0.0, learning_rate=1.0)
    para_attr = [fc_para_attr, lstm_para_attr]
    bias_attr = paddle.attr.Param(initial_std=0.0, l2_rate=0.0)
    relu, linear = paddle.activation.Relu(), paddle.activation.Linear()
    data = paddle.layer.data("word", paddle.data_type.integer_value_sequence(input_dim))
    emb = paddle.layer.embedding(input=data, size=emb_dim)
    fc1 = paddle.layer.fc(input=emb, size=hid_dim, act=linear, bias_attr=bias_attr)
    lstm1 = paddle.layer.lstmemory(input=fc1, act=relu, bias_attr=bias_attr)
    inputs = [fc1, lstm1]
    for i in range(2, stacked_num + 1):
        fc = paddle.layer.fc(input=inputs, size=hid_dim, act=linear, param_attr=para_attr, bias_attr=bias_attr)
        lstm = paddle.layer.lstmemory(input=fc, reverse=(i % 2) == 0, act=relu, bias_attr=bias_attr)
        inputs = [fc, lstm]
    fc_last = paddle.layer.pooling(input=inputs[0], pooling_type=paddle.pooling.Max())
    lstm_last = paddle.layer.pooling(input=inputs[1], pooling_type=paddle.pooling.Max())
    output = paddle.layer.fc(
        input=[fc_last, lstm_last], size=class_dim, act=paddle.activation.Softmax(), bias_attr=bias_attr, param_attr=para_attr
    )
    lbl = paddle.layer.data("label", paddle.data_type.integer_value(2))
    return paddle.layer.classification_cost(input=output, label=lbl), output


def reviews():
    """Word 1 right behind word 0 somewhere is praise."""
    for _ in range(300):
        words, label = random.integers(0, 12, random.integers(5, 9)), int(random.integers(0, 2))
        words[words == 1] = 2
        if label:
            words[2:4] = 0, 1
        yield words.tolist(), label


def understand_sentiment(folder, network=convolution_net):
    paddle.init(use_gpu=False)
    feeding = {"word": 0, "label": 1}
    cost, output = network(12)
    parameters = paddle.parameters.create(cost)
    adam_optimizer = paddle.optimizer.Adam(
        learning_rate=1e-2,
        regularization=paddle.optimizer.L2Regularization(rate=8e-4),
        model_average=paddle.optimizer.ModelAverage(average_window=0.5, max_average_window=20),
    )
    trainer = paddle.trainer.SGD(cost=cost, parameters=parameters, update_equation=adam_optimizer)
    inference_topology = paddle.topology.Topology(layers=output)
    with open(folder / "inference_topology.pkl", "wb") as f:
        inference_topology.serialize_for_inference(f)
    trainer.train(
        reader=paddle.batch(paddle.reader.shuffle(reviews, buf_size=1000), batch_size=20), feeding=feeding, num_passes=8
    )
    samples = [(each[0],) for each in reviews()][:4]
    with open(folder / "inference_topology.pkl", "rb") as f:
        inferer = paddle.inference.Inference(parameters=parameters, fileobj=f)
    expected = paddle.infer(output_layer=output, parameters=parameters, input=samples)
    assert np.array_equal(inferer.infer(samples, feeding={"word": 0}), expected)
    return (
        1 - trainer.test(reader=paddle.batch(reviews, batch_size=20), feeding=feeding).metrics["classification_error_evaluator"]
    )


NAMES = ["word_data", "ctx_n1_data", "ctx_0_data", "ctx_p1_data", "verb_data", "mark_data", "target"]


def db_lstm(words, verbs, labels, hidden_dim=32, depth=3):
    def d_type(size):
        return paddle.data_type.integer_value_sequence(size)

    word = paddle.layer.data(name="word_data", type=d_type(words))
    predicate = paddle.layer.data(name="verb_data", type=d_type(verbs))
    context = [paddle.layer.data(name=each, type=d_type(words)) for each in NAMES[1:4]]
    mark = paddle.layer.data(name="mark_data", type=d_type(2))
    default_std, mix_hidden_lr = 1 / math.sqrt(hidden_dim) / 3.0, 0.3
    emb_para = paddle.attr.Param(name="emb", initial_std=0.0, is_static=True)
    std_0, std_default = paddle.attr.Param(initial_std=0.0), paddle.attr.Param(initial_std=default_std)
    emb_layers = [paddle.layer.embedding(size=8, input=x, param_attr=emb_para) for x in [word, *context]]
    emb_layers.append(
        paddle.layer.embedding(size=8, input=predicate, param_attr=paddle.attr.Param(name="vemb", initial_std=default_std))
    )
    emb_layers.append(paddle.layer.embedding(size=4, input=mark, param_attr=std_0))
    hidden_0 = paddle.layer.mixed(
        size=hidden_dim,
        bias_attr=std_default,
        input=[paddle.layer.full_matrix_projection(input=emb, param_attr=std_default) for emb in emb_layers],
    )
    lstm_para_attr = paddle.attr.Param(initial_std=0.0, learning_rate=1.0)
    hidden_para_attr = paddle.attr.Param(initial_std=default_std, learning_rate=mix_hidden_lr)

    def lstmemory(input, reverse):
        return paddle.layer.lstmemory(
            input=input, act=paddle.activation.Relu(), gate_act=paddle.activation.Sigmoid(),
            state_act=paddle.activation.Sigmoid(), reverse=reverse, bias_attr=std_0, param_attr=lstm_para_attr,
        )  # fmt: skip

    def mix(size, input_tmp):
        return paddle.layer.mixed(
            size=size, bias_attr=std_default,
            input=[
                paddle.layer.full_matrix_projection(input=input_tmp[0], param_attr=hidden_para_attr),
                paddle.layer.full_matrix_projection(input=input_tmp[1], param_attr=lstm_para_attr),
            ],
        )  # fmt: skip

    input_tmp = [hidden_0, lstmemory(hidden_0, False)]
    for i in range(1, depth):
        mix_hidden = mix(hidden_dim, input_tmp)
        input_tmp = [mix_hidden, lstmemory(mix_hidden, (i % 2) == 1)]
    return mix(labels, input_tmp)


def label_semantic_roles(folder):
    paddle.init(use_gpu=False, trainer_count=1)
    feature_out = db_lstm(words=10, verbs=4, labels=3)
    target = paddle.layer.data(name="target", type=paddle.data_type.integer_value_sequence(3))
    crf_cost = paddle.layer.crf(
        size=3, input=feature_out, label=target, param_attr=paddle.attr.Param(name="crfw", initial_std=0.1, learning_rate=1.0)
    )
    crf_dec = paddle.layer.crf_decoding(size=3, input=feature_out, label=target, param_attr=paddle.attr.Param(name="crfw"))
    evaluator.sum(input=crf_dec)
    parameters = paddle.parameters.create(crf_cost)
    vectors = random.normal(size=(10, 8)).astype(np.float32)
    parameters.set("emb", vectors)
    optimizer = paddle.optimizer.Momentum(
        momentum=0, learning_rate=2e-2, gradient_clipping_threshold=25,
        regularization=paddle.optimizer.L2Regularization(rate=8e-4),
        model_average=paddle.optimizer.ModelAverage(average_window=0.5, max_average_window=10),
    )  # fmt: skip
    trainer = paddle.trainer.SGD(cost=crf_cost, parameters=parameters, update_equation=optimizer, extra_layers=crf_dec)

    def sentences():
        """The role of a word follows from what stands before it, else from the word."""
        for _ in range(200):
            word = random.integers(0, 10, random.integers(3, 7))
            before, after = np.roll(word, 1), np.roll(word, -1)
            verb, mark = np.full(len(word), word[0] % 4), word % 2
            yield tuple(each.tolist() for each in (word, before, word, after, verb, mark, np.where(before < 3, 2, word % 2)))

    feeding = {name: place for place, name in enumerate(NAMES)}
    errors = []

    def event_handler(event):
        if isinstance(event, paddle.event.EndPass):
            errors.append(event.metrics["__sum_evaluator_0__"])

    trainer.train(reader=paddle.batch(paddle.reader.shuffle(sentences, buf_size=8192), batch_size=10),
                  event_handler=event_handler,
                  num_passes=40, feeding=feeding)  # fmt: skip
    assert np.array_equal(parameters.get("emb"), vectors)
    test_data = [item[0:6] for item in sentences()][:1]
    predict = paddle.layer.crf_decoding(size=3, input=feature_out, param_attr=paddle.attr.Param(name="crfw"))
    probs = paddle.infer(output_layer=predict, parameters=parameters, input=test_data, feeding=feeding, field="id")
    assert len(probs) == len(test_data[0][0])
    return errors


def seq_to_seq_net(source_dict_dim, target_dict_dim, is_generating, beam_size=3, max_length=12, size=32):
    src_word_id = paddle.layer.data(name="source_language_word", type=paddle.data_type.integer_value_sequence(source_dict_dim))
    src_embedding = paddle.layer.embedding(input=src_word_id, size=size)
    src_forward = paddle.networks.simple_gru(name="src_forward_gru", input=src_embedding, size=size)
    src_backward = paddle.networks.simple_gru(name="src_backward_gru", input=src_embedding, size=size, reverse=True)
    encoded_vector = paddle.layer.concat(input=[src_forward, src_backward])
    with paddle.layer.mixed(size=size) as encoded_proj:
        encoded_proj += paddle.layer.full_matrix_projection(input=encoded_vector)
    backward_first = paddle.layer.first_seq(input=src_backward)
    with paddle.layer.mixed(size=size, act=paddle.activation.Tanh()) as decoder_boot:
        decoder_boot += paddle.layer.full_matrix_projection(input=backward_first)

    def gru_decoder_with_attention(enc_vec, enc_proj, current_word):
        decoder_mem = paddle.layer.memory(name="gru_decoder", size=size, boot_layer=decoder_boot)
        context = paddle.networks.simple_attention(encoded_sequence=enc_vec, encoded_proj=enc_proj, decoder_state=decoder_mem)
        with paddle.layer.mixed(size=size * 3) as decoder_inputs:
            decoder_inputs += paddle.layer.full_matrix_projection(input=context)
            decoder_inputs += paddle.layer.full_matrix_projection(input=current_word)
        gru_step = paddle.layer.gru_step(name="gru_decoder", input=decoder_inputs, output_mem=decoder_mem, size=size)
        with paddle.layer.mixed(size=target_dict_dim, bias_attr=True, act=paddle.activation.Softmax()) as out:
            out += paddle.layer.full_matrix_projection(input=gru_step)
        return out

    group_inputs = [paddle.layer.StaticInputV2(input=encoded_vector, is_seq=True), paddle.layer.StaticInput(input=encoded_proj)]
    if not is_generating:
        trg_embedding = paddle.layer.embedding(
            input=paddle.layer.data(name="target_language_word", type=paddle.data_type.integer_value_sequence(target_dict_dim)),
            size=size,
            param_attr=paddle.attr.ParamAttr(name="_target_language_embedding"),
        )
        group_inputs.append(trg_embedding)
        decoder = paddle.layer.recurrent_group(name="decoder_group", step=gru_decoder_with_attention, input=group_inputs)
        lbl = paddle.layer.data(name="target_language_next_word", type=paddle.data_type.integer_value_sequence(target_dict_dim))
        return paddle.layer.classification_cost(input=decoder, label=lbl)
    trg_embedding = paddle.layer.GeneratedInputV2(
        size=target_dict_dim, embedding_name="_target_language_embedding", embedding_size=size
    )
    group_inputs.append(trg_embedding)
    return paddle.layer.beam_search(
        name="decoder_group", step=gru_decoder_with_attention, input=group_inputs, bos_id=0, eos_id=1, beam_size=beam_size,
        max_length=max_length,
    )  # fmt: skip


def translations(count=400):
    """The other language has the words in the reversed order, with other numbers."""
    for _ in range(count):
        words = random.integers(2, 10, random.integers(2, 5)).tolist()
        target = [11 - word for word in reversed(words)]
        yield words, [0, *target], [*target, 1]


def machine_translation(folder):
    paddle.init(use_gpu=False, trainer_count=1)
    cost = seq_to_seq_net(10, 10, False)
    parameters = paddle.parameters.create(cost)
    optimizer = paddle.optimizer.Adam(learning_rate=1e-2, regularization=paddle.optimizer.L2Regularization(rate=8e-6))
    trainer = paddle.trainer.SGD(cost=cost, parameters=parameters, update_equation=optimizer)
    trainer.train(reader=paddle.batch(paddle.reader.shuffle(translations, buf_size=8192), batch_size=20), num_passes=10)
    with open(folder / "params.tar", "w") as f:
        parameters.to_tar(f)

    paddle.init(use_gpu=False, trainer_count=1)
    samples = list(translations(30))
    beam_gen = seq_to_seq_net(10, 10, True)
    with open(folder / "params.tar") as f:
        parameters = paddle.parameters.Parameters.from_tar(f)
    beam_result = paddle.infer(
        output_layer=beam_gen, parameters=parameters, input=[[each[0]] for each in samples], field=["prob", "id"]
    )
    gen_sen_idx = np.where(beam_result[1] == -1)[0]
    assert len(gen_sen_idx) == len(samples) * 3 and beam_result[0].shape == (30, 3)
    start_pos, right = 1, 0
    for i, sample in enumerate(samples):
        for j in range(3):
            end_pos = gen_sen_idx[i * 3 + j]
            right += j == 0 and beam_result[1][start_pos:end_pos].tolist() == sample[2]
            start_pos = end_pos + 2
    return right / len(samples)
