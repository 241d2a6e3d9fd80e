"""Scans: a step of ordinary layers, as functions and as recurrent groups. SPDX-License-Identifier: Apache-2.0"""

import numpy as np
import pytest

import tenon

SIZE = 4
SEQUENCES = [np.random.default_rng(i).uniform(-1, 1, (length, 3)).astype(np.float32) for i, length in enumerate([3, 0, 5, 1])]


@pytest.fixture
def x():
    return tenon.layer.data("x", tenon.data_type.dense_vector_sequence(3))


def values(outputs, parameters):
    return tenon.infer(outputs, parameters, SEQUENCES)


def rows(array):
    return np.concatenate([np.asarray(each) for each in array])


def step(row, h, c):
    h, c = tenon.layer.lstm_step(tenon.layer.fc([row, h], size=4 * SIZE, parameter_name="lstm"), c)
    return h, {"h": h, "c": c}


def of_lstm(parameters, outputs):
    """Parameters of a scan with the values of an lstm."""
    result = tenon.parameters.create(outputs)
    for name, other in (("weight", "weight"), ("weight_1", "recurrent_weight"), ("bias", "bias")):
        result[f"lstm.{name}"] = parameters[f"lstm.{other}"]
    return result


@pytest.mark.parametrize("reverse", [False, True])
def test_a_step_of_ordinary_layers_equals_the_layer(x, reverse):
    layer = tenon.layer.lstm(x, size=SIZE, reverse=reverse, name="lstm")
    parameters = tenon.parameters.create(layer)
    states, last = tenon.scan(step, x, {"h": SIZE, "c": SIZE}, reverse=reverse, name="cells")
    outputs = [states, last["h"], last["c"]]
    found = values(outputs, of_lstm(parameters, outputs))
    expected = values([layer, layer.output(1), layer.output(2)], parameters)
    np.testing.assert_allclose(rows(found[0]), rows(expected[0]), atol=1e-6)
    for i in (1, 2):
        np.testing.assert_allclose(found[i], expected[i], atol=1e-6)


def test_a_recurrent_group_equals_the_layer(x):
    layer = tenon.layer.lstm(x, size=SIZE, name="lstm")
    parameters = tenon.parameters.create(layer)

    def group(row):
        h = tenon.memory(name="made", size=SIZE)
        c = tenon.memory(name="made:1", size=SIZE)
        gates = tenon.layer.fc([row, h], size=4 * SIZE, parameter_name="lstm")
        return tenon.layer.lstm_step(gates, c, name="made").output(0)

    states = tenon.recurrent_group(step=group, input=x)
    np.testing.assert_allclose(
        rows(values(states, of_lstm(parameters, states))), rows(values(layer, parameters)), atol=1e-6
    )


def test_memories_begin_with_numbers_or_layers(x):
    mean = tenon.layer.sequence_pool(x, kind="sum")

    def add(row, a, b):
        return (row + a, b), {"a": row + a, "b": row + b}

    (a, b), last = tenon.scan(add, [x], {"a": {"shape": [3], "value": 2.0}, "b": mean})
    found = values([a, b, last["a"]], tenon.parameters.create([a, b, last["a"]]))
    for i, each in enumerate(SEQUENCES):
        np.testing.assert_allclose(found[0][i], 2 + np.cumsum(each, axis=0), atol=1e-5)
        before = each.sum(axis=0) + np.cumsum(each, axis=0) - each
        np.testing.assert_allclose(found[1][i], before, atol=1e-5)
        np.testing.assert_allclose(found[2][i], 2 + each.sum(axis=0), atol=1e-5)


def test_a_group_reads_static_inputs_and_set_inputs(x):
    total = tenon.layer.sequence_pool(x, kind="sum")

    def group(row, whole):
        count = tenon.memory(boot_layer=whole)
        count.set_input(count + row)
        return count, whole

    before, whole = tenon.recurrent_group(step=group, input=[x, tenon.StaticInput(total)], reverse=True)
    found = values([before, whole], tenon.parameters.create([before, whole]))
    for i, each in enumerate(SEQUENCES):
        after = np.cumsum(each[::-1], axis=0)[::-1] - each
        np.testing.assert_allclose(found[0][i], each.sum(axis=0) + after, atol=1e-5)
        np.testing.assert_allclose(found[1][i], np.broadcast_to(each.sum(axis=0), each.shape), atol=1e-5)


def attended(query, keys):
    scores = keys @ query
    shares = np.exp(scores - scores.max()) if len(keys) else scores
    return (shares / shares.sum()) @ keys if len(keys) else np.zeros_like(query)


def test_a_step_attends_over_a_whole_sequence(x):
    other = tenon.layer.data("other", tenon.data_type.dense_vector_sequence(3))
    keys = [np.random.default_rng(9 + i).uniform(-1, 1, (length, 3)).astype(np.float32) for i,
            length in enumerate([2, 4, 0, 3])]

    def step(row, h):
        h = row + tenon.layer.dot_attention(h, other)
        return h, {"h": h}

    def group(row, others):
        before = tenon.memory(name="state", size=3)
        return tenon.layer.add([row, tenon.layer.dot_attention(before, others)], name="state")

    states, _ = tenon.scan(step, x, {"h": 3})
    same = tenon.recurrent_group(step=group, input=[x, tenon.StaticInput(other, is_seq=True)])
    found = tenon.infer([states, same], tenon.parameters.create([states, same]), list(zip(SEQUENCES, keys, strict=True)))
    for i, (rows_of, keys_of) in enumerate(zip(SEQUENCES, keys, strict=True)):
        h = np.zeros(3, np.float32)
        for t, row in enumerate(rows_of):
            h = row + attended(h, keys_of)
            np.testing.assert_allclose(found[0][i][t], h, atol=1e-5)
            np.testing.assert_allclose(found[1][i][t], h, atol=1e-5)


def test_a_step_sees_a_sub_sequence():
    nested = tenon.layer.data("nested", tenon.data_type.dense_vector_sub_sequence(3))

    def group(part):
        before = tenon.memory(name="state", size=3)
        return tenon.layer.add([tenon.layer.sequence_pool(part, kind="sum"), before], name="state")

    sums = tenon.recurrent_group(step=group, input=tenon.SubsequenceInput(nested), reverse=True)
    samples = [[SEQUENCES[0], SEQUENCES[1], SEQUENCES[2]], [], [SEQUENCES[3]]]
    found = tenon.infer(sums, tenon.parameters.create(sums), samples)
    for i, parts in enumerate(samples):
        for t in range(len(parts)):
            np.testing.assert_allclose(found[i][t], sum(part.sum(axis=0) for part in parts[t:]), atol=1e-5)


def word_step(word, before, name):
    return tenon.layer.fc([word, before], size=SIZE, act="tanh", parameter_name="words", name=name)


def check_hierarchical(nested, reverse, documents):
    """nested: states of all words, by a network that goes through the sub-sequences of "nested" one after the other."""
    words = tenon.layer.data("words", tenon.data_type.dense_vector_sequence(3))

    def flat(word, before):
        state = word_step(word, before, "flat")
        return state, {"before": state}

    expected, _ = tenon.scan(flat, words, {"before": SIZE}, reverse=reverse)
    parameters = tenon.parameters.create(nested)
    found = tenon.infer(nested, parameters, documents)
    texts = [np.concatenate([np.zeros((0, 3), np.float32), *parts]) for parts in documents]
    for parts, states, whole in zip(documents, found, tenon.infer(expected, parameters, texts), strict=True):
        assert [len(each) for each in states] == [len(part) for part in parts]
        if parts:
            np.testing.assert_allclose(np.concatenate(states), whole, atol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_in_a_scan_goes_on_where_the_last_one_ended(reverse):
    def outer(part, state):
        def inner(word, before):
            after = word_step(word, before, "after")
            return after, {"before": after}

        states, last = tenon.scan(inner, part, {"before": state}, reverse=reverse, name="inner")
        return states, {"state": last["before"]}

    nested = tenon.layer.data("nested", tenon.data_type.dense_vector_sub_sequence(3))
    documents = [[SEQUENCES[0], SEQUENCES[1], SEQUENCES[2]], [], [SEQUENCES[3]], [SEQUENCES[1]]]
    check_hierarchical(tenon.scan(outer, nested, {"state": SIZE}, reverse=reverse).results, reverse, documents)


def test_a_recurrent_group_in_a_recurrent_group():
    def outer(part):
        so_far = tenon.memory(name="so_far", size=SIZE)

        def inner(word):
            return word_step(word, tenon.memory(name="state", boot_layer=so_far), "state")

        states = tenon.recurrent_group(step=inner, input=part)
        tenon.layer.sequence_pool(states, kind="last", name="so_far")
        return states

    nested = tenon.layer.data("nested", tenon.data_type.dense_vector_sub_sequence(3))
    documents = [[SEQUENCES[0], SEQUENCES[3], SEQUENCES[2]], [], [SEQUENCES[3]]]
    check_hierarchical(tenon.recurrent_group(step=outer, input=tenon.SubsequenceInput(nested)), False, documents)


@pytest.mark.parametrize("left", ["other", "same", "outside", "memory"])
def test_a_memory_that_no_step_reads(x, left):
    """`b` has what a step computes, though nothing reads it; `a` has another value, that value, or none of the step's."""
    whole = tenon.layer.data("whole", tenon.data_type.dense_vector(SIZE))

    def step(row, a, b):
        state = tenon.layer.fc([row, a], size=SIZE, name="state")
        return state, {"a": {"other": tenon.layer.tanh(state), "same": state, "outside": whole, "memory": a}[left], "b": state}

    states, last = tenon.scan(step, x, {"a": SIZE, "b": SIZE})
    parameters = tenon.parameters.create(states)
    weight, before, bias = (parameters[f"state.{name}"] for name in ("weight", "weight_1", "bias"))
    wholes = np.random.default_rng(2).normal(size=(4, SIZE)).astype(np.float32)
    feeds = {name: {"x": SEQUENCES, "whole": wholes}[name] for name in states.data_types}
    found = tenon.infer(states, parameters, feeds)
    also = tenon.infer([states, last["b"]], parameters, feeds)
    for i, each in enumerate(SEQUENCES):
        a = state = np.zeros(SIZE)
        for t, row in enumerate(each):
            state = row @ weight + a @ before + bias
            a = {"other": np.tanh(state), "same": state, "outside": wholes[i], "memory": a}[left]
            np.testing.assert_allclose(found[i][t], state, atol=1e-5)
            np.testing.assert_allclose(also[0][i][t], state, atol=1e-5)
        np.testing.assert_allclose(also[1][i], state, atol=1e-5)


@pytest.mark.parametrize("memories", [1, 2, 3])
@pytest.mark.parametrize("reverse", [False, True])
def test_the_gradient_of_an_initial_value_that_others_read(x, memories, reverse):
    """Each memory begins with a layer that the cost reads as well, the first with zeros if there are several."""
    starts = [tenon.layer.fc(tenon.layer.sequence_pool(x, kind="sum"), size=SIZE, name=f"start_{i}") for i in range(memories)]

    def step(row, **states):
        state = tenon.layer.fc([row, *states.values()], size=SIZE, act="tanh", name="state")
        return state, {name: state if name == "m0" else tenon.layer.sin(state) for name in states}

    begin = {f"m{i}": SIZE if i == 0 and memories > 1 else starts[i] for i in range(memories)}
    states, last = tenon.scan(step, x, begin, reverse=reverse)
    parts = [tenon.layer.sequence_pool(states, kind="sum"), *starts, *last.values()]
    total = tenon.layer.concat(*parts)
    parameters = tenon.parameters.create(total)
    random = np.random.default_rng(5)
    for name in parameters:
        parameters[name] = random.uniform(-0.7, 0.7, parameters.shape(name))
    report = tenon.check_gradient(total, parameters, {"x": SEQUENCES})
    assert {f"start_{i}.weight" for i in range(memories)} <= set(report)


def test_a_model_trains_and_is_restored(x, tmp_path):
    label = tenon.layer.data("label", tenon.data_type.integer_value(2))
    _, last = tenon.scan(step, x, {"h": SIZE, "c": SIZE}, name="cells")
    score = tenon.layer.fc(last["h"], size=2, name="score")
    cost = tenon.layer.cross_entropy(score, label, from_logits=True)
    parameters = tenon.parameters.create(cost)
    before = np.array(parameters["lstm.weight_1"])
    samples = [(each, i % 2) for i, each in enumerate(SEQUENCES)]
    tenon.train(cost, parameters, reader=tenon.batch(lambda: iter(samples), 2), passes=2)
    assert not np.array_equal(before, parameters["lstm.weight_1"])
    parameters.save(tmp_path / "model.safetensors", score)
    restored = tenon.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(values(restored.outputs[0], restored), values(score, parameters))


def test_memories_are_carried_from_minibatch_to_minibatch(x):
    def sums(row, h):
        return h + row, {"h": h + row}

    def group(row):
        before = tenon.memory(name="sum", size=3, carry=True)
        return tenon.layer.add([before, row], name="sum")

    carried, _ = tenon.scan(sums, x, {"h": {"shape": 3, "carry": True}})
    same = tenon.recurrent_group(step=group, input=x)
    machine = tenon.gradient_machine.new([carried, same], training=False)
    first, second = SEQUENCES[0], SEQUENCES[2]
    for _ in range(2):
        machine.reset_carried()
        machine.forward({"x": [first, second]})
        expected = [np.cumsum(second, axis=0) + first.sum(axis=0), np.cumsum(first, axis=0) + second.sum(axis=0)]
        for found in machine.forward({"x": [second, first]}):
            np.testing.assert_allclose(rows(found), np.concatenate(expected), atol=1e-5)


def test_mistakes_name_their_layers(x):
    with pytest.raises(tenon.error.InvalidError, match='memory "h": both boot_layer and carry'):
        tenon.recurrent_group(step=lambda row: tenon.memory("h", boot_layer=row, carry=True), input=x)
    with pytest.raises(tenon.error.InvalidError, match="carried memories begin with zeros"):
        tenon.scan(lambda row, h: (row, {"h": h}), x, {"h": {"shape": 3, "value": 1.0, "carry": True}})
    with pytest.raises(tenon.error.InvalidError, match='memory "scan_.*" is never left a value'):
        tenon.scan(lambda row, h: (row, {}), x, {"h": 3})
    with pytest.raises(tenon.error.InvalidError, match='holds .* and is left layer'):
        tenon.scan(lambda row, h: (row, {"h": row}), x, {"h": 4})
    with pytest.raises(tenon.error.InvalidError, match='step leaves a value in "g"'):
        tenon.scan(lambda row, h: (row, {"g": row}), x, {"h": 3})
    with pytest.raises(tenon.error.InvalidError, match="a dict of what each memory is left"):
        tenon.scan(lambda row, h: row, x, {"h": 3})
    with pytest.raises(tenon.error.MisuseError, match="recurrent_group"):
        tenon.memory(name="h", size=3)
    with pytest.raises(tenon.error.InvalidError, match='memory "h": step makes no layer of that name'):
        tenon.recurrent_group(step=lambda row: tenon.memory(name="h", size=3) + row, input=x)
    with pytest.raises(tenon.error.InvalidError, match='rows of "x" at the steps of "x"'):
        tenon.scan(lambda row: row + x, x)  # the row of a step and a whole sequence
    with pytest.raises(ZeroDivisionError):
        tenon.scan(lambda row: 1 / 0, x)
    inside = []
    tenon.scan(lambda row: inside.append(row) or row, x)
    with pytest.raises(tenon.error.InvalidError, match="inside of scan"):
        tenon.layer.fc(inside[0], size=1)
