"""Generation with models that were trained on whole sequences. SPDX-License-Identifier: Apache-2.0"""

import signal

import numpy as np
import pytest

import tenon

WORDS, SIZE, BEGIN, END = 6, 8, 0, 1


def step(vector, state, topic):
    state = tenon.layer.fc([vector, state, topic], size=SIZE, act="tanh", name="state")
    return tenon.layer.fc(state, size=WORDS, act="softmax", name="score"), {"state": state}


@pytest.fixture(scope="module")
def model():
    """A model that answers the topic [1, 0] with the ids 2, 3, 4 and the topic [0, 1] with 5, 4, 3, 2."""
    tenon.use(tenon.Host())
    words = tenon.layer.data("words", tenon.data_type.integer_value_sequence(WORDS))
    following = tenon.layer.data("next", tenon.data_type.sequence(tenon.data_type.integer_value(WORDS), lengths_of="words"))
    topic = tenon.layer.data("topic", tenon.data_type.dense_vector(2))
    vectors = tenon.layer.embedding(words, vocabulary=WORDS, size=SIZE, name="vectors")
    scores, _ = tenon.scan(lambda x, state: step(x, state, topic), vectors, {"state": SIZE}, name="cells")
    cost = tenon.layer.cross_entropy(scores, following)
    parameters = tenon.parameters.create(cost, seed=1)
    answers = {(1.0, 0.0): [2, 3, 4], (0.0, 1.0): [5, 4, 3, 2]}
    samples = [{"words": [BEGIN, *ids], "next": [*ids, END], "topic": topic} for topic, ids in answers.items()]
    updater = tenon.updater.Adam(learning_rate=0.05)
    tenon.train(cost, parameters, reader=tenon.batch(lambda: iter(samples), 2), passes=80, updater=updater)
    return scores, parameters, answers


TOPICS = np.array([[1, 0], [0, 1], [1, 0]], np.float32)


def test_greedy_beams_and_draws_give_the_trained_answers(model):
    scores, parameters, answers = model
    generator = tenon.Generator(scores, parameters)
    assert generator.ids == "words"
    expected = [[*answers[tuple(map(float, topic))], END] for topic in TOPICS]
    options = {"begin_id": BEGIN, "end_id": END, "max_length": 10}
    for more in ({}, {"method": "beam", "beam_size": 3}, {"method": "sample", "temperature": 0.05}):
        made = generator.generate({"topic": TOPICS}, **options, **more)
        assert [results[0].ids.tolist() for results in made] == expected, more
        assert all(-0.5 < results[0].score < 0 for results in made)
    made = generator.generate({"topic": TOPICS, "words": [[2, 3], [5], []]}, **options)
    assert [results[0].ids.tolist() for results in made] == [[4, END], [4, 3, 2, END], expected[2]]
    assert made[2][0].score == tenon.generate(scores, parameters, {"topic": TOPICS}, **options)[0][0].score


def test_beams_are_ranked_and_draws_are_reproducible(model):
    scores, parameters, _ = model
    generator = tenon.Generator(scores, parameters, "words", max_samples=2, compute="float64")
    options = {"begin_id": BEGIN, "end_id": END, "max_length": 6}
    made = generator.generate({"topic": TOPICS}, method="beam", beam_size=4, results=4, **options)
    for results in made:
        assert len({tuple(each.ids) for each in results}) == 4
        assert [each.score for each in results] == sorted((each.score for each in results), reverse=True)
    draws = {"method": "sample", "results": 3, "temperature": 3.0, "top_k": 5, "top_p": 0.9, "seed": 5}
    first = generator.generate({"topic": TOPICS}, **draws, **options, streams=[7, 8, 9])
    again = generator.generate({"topic": TOPICS[::-1]}, **draws, **options, streams=[9, 8, 7])[::-1]
    listed = [[each.ids.tolist() for each in results] for results in first]
    assert listed == [[each.ids.tolist() for each in results] for results in again]
    assert listed != [
        [each.ids.tolist() for each in results] for results in generator.generate({"topic": TOPICS}, **draws, **options)
    ]


def test_ids_arrive_as_they_are_chosen(model):
    scores, parameters, _ = model
    received = []
    generator = tenon.Generator(scores, parameters)
    options = {"begin_id": BEGIN, "end_id": END, "max_length": 10}
    made = generator.generate({"topic": TOPICS[:1]}, sink=lambda *chosen: received.append(chosen), **options)
    assert received == [(0, 0, each) for each in made[0][0].ids.tolist()]
    short = generator.generate({"topic": TOPICS[:1]}, sink=lambda sample, result, id: id != 3, **options)
    assert short[0][0].ids.tolist() == [2, 3]
    with pytest.raises(ZeroDivisionError):
        generator.generate({"topic": TOPICS[:1]}, sink=lambda *chosen: 1 / 0, **options)


def test_a_signal_ends_a_long_call(model):
    scores, parameters, _ = model
    generator = tenon.Generator(scores, parameters)

    def interrupt(signal_number, frame):
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(InterruptedError):
            generator.generate({"topic": TOPICS}, begin_id=BEGIN, max_length=3_000_000)  # many seconds
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_the_names_of_2016(model):
    scores, parameters, answers = model
    topic = tenon.layer.data("topic", tenon.data_type.dense_vector(2))

    def decode(vector, topic):
        before = tenon.memory(name="state", size=SIZE)
        return step(vector, before, topic)[0]

    beams = tenon.beam_search(
        step=decode,
        input=[tenon.GeneratedInput(size=WORDS, embedding_name="vectors", embedding_size=SIZE), tenon.StaticInput(topic)],
        bos_id=BEGIN,
        eos_id=END,
        beam_size=3,
        max_length=6,
    )
    found = tenon.infer(beams, parameters, {"topic": TOPICS})
    expected = tenon.generate(scores, parameters, {"topic": TOPICS}, method="beam", beam_size=3, results=3, begin_id=BEGIN,
                              end_id=END, max_length=6)  # fmt: skip
    assert [[(each.ids.tolist(), each.score) for each in results] for results in found] == [
        [(each.ids.tolist(), each.score) for each in results] for results in expected
    ]
    assert found[0][0].ids.tolist() == [*answers[(1.0, 0.0)], END]


def test_beams_attend_over_whole_sequences():
    source = tenon.layer.data("source", tenon.data_type.integer_value_sequence(WORDS))
    encoded = tenon.layer.embedding(source, vocabulary=WORDS, size=SIZE)
    keys = tenon.layer.fc(encoded, size=SIZE)

    def decode(vector, encoded, keys):
        before = tenon.memory(name="decoder", size=SIZE)
        seen = tenon.layer.additive_attention(before, keys, encoded)
        state = tenon.layer.fc([vector, before, seen], size=SIZE, act="tanh", name="decoder")
        return tenon.layer.fc(state, size=WORDS, act="softmax")

    generated = tenon.GeneratedInput(size=WORDS, embedding_name="target", embedding_size=SIZE)
    whole = [tenon.StaticInput(encoded, is_seq=True), tenon.StaticInput(keys, is_seq=True)]
    beams = tenon.beam_search(decode, [generated, *whole], bos_id=BEGIN, eos_id=END, beam_size=3, max_length=5)
    parameters = tenon.parameters.create(beams.scores, seed=2)
    sources = [[2, 3, 4], [5], [4, 4, 2, 3]]
    together = tenon.infer(beams, parameters, {"source": sources})
    for each, results in zip(sources, together, strict=True):
        alone = tenon.infer(beams, parameters, {"source": [each]})[0]
        assert [(one.ids.tolist(), one.score) for one in results] == [(one.ids.tolist(), one.score) for one in alone]
    assert len({results[0].score for results in together}) == 3


def test_a_model_of_ids_alone_takes_prompts(tmp_path):
    words = tenon.layer.data("words", tenon.data_type.integer_value_sequence(3))
    vectors = tenon.layer.embedding(words, vocabulary=3, size=4)
    score = tenon.layer.fc(vectors, size=3, name="score")
    parameters = tenon.parameters.create(score)
    parameters.save(tmp_path / "model.safetensors", score)
    restored = tenon.load(tmp_path / "model.safetensors")
    made = tenon.generate(restored.outputs[0], restored, [[1, 2], [0]], from_logits=True, max_length=4)
    assert [len(results[0].ids) for results in made] == [2, 3]
    one = tenon.generate(score, parameters, from_logits=True, max_length=3, begin_id=2)
    assert len(one) == 1 and len(one[0][0].ids) == 3


def test_mistakes_are_named(model):
    scores, parameters, _ = model
    generator = tenon.Generator(scores, parameters)
    data = {"topic": TOPICS}
    invalid = tenon.error.InvalidError
    for message, options in {
        'option "end_id" is missing': {"method": "beam", "begin_id": 0},
        "is 9; expected an id of 0 to 5": {"begin_id": 9},
        'generate: method is "best"': {"method": "best"},
        "generate: temperature is 0": {"method": "sample", "temperature": 0},
        "generate: top_k is -1": {"method": "sample", "top_k": -1},
        'option "results" is 2': {"results": 2, "begin_id": 0},
        "generate: seed is -1": {"seed": -1},
    }.items():
        with pytest.raises(invalid, match=message.replace('"', "['\"]")):
            generator.generate(data, max_length=5, **options)
    with pytest.raises(invalid, match="max_length is 0; expected a whole number from 1 on"):
        generator.generate(data, max_length=0, begin_id=0)
    with pytest.raises(invalid, match="the prompt of sample 0 has 3 ids"):
        generator.generate({"topic": TOPICS[:1], "words": [[1, 2, 3]]}, max_length=3)
    with pytest.raises(invalid, match='a dict of values by data layer: "words", "topic"'):
        generator.generate([[1]], max_length=3)
    with pytest.raises(invalid, match="expected one GeneratedInput"):
        tenon.beam_search(step, [], 0, 1, 2)
    with pytest.raises(tenon.error.NotFoundError, match="does not depend on a data layer"):
        tenon.Generator(scores, parameters, "word")


def test_generated_texts_begin_with_zeros_where_memories_are_carried():
    words = tenon.layer.data("words", tenon.data_type.integer_value_sequence(WORDS))
    topic = tenon.layer.data("topic", tenon.data_type.dense_vector(2))
    vectors = tenon.layer.embedding(words, vocabulary=WORDS, size=SIZE, name="vectors")

    def scores(start):
        return tenon.scan(lambda x, state: step(x, state, topic), vectors, {"state": start}, name="cells")[0]

    carried, plain = scores({"shape": SIZE, "carry": True}), scores(SIZE)
    parameters = tenon.parameters.create(plain, seed=1)
    options = {"begin_id": BEGIN, "end_id": END, "max_length": 5}
    expected = tenon.generate(plain, parameters, {"topic": TOPICS}, **options)
    generator = tenon.Generator(carried, parameters)
    for _ in range(2):
        made = generator.generate({"topic": TOPICS}, **options)
        assert [each[0].ids.tolist() for each in made] == [each[0].ids.tolist() for each in expected]
        assert [each[0].score for each in made] == [each[0].score for each in expected]


def test_a_scan_inside_of_the_step_is_refused():
    words = tenon.layer.data("words", tenon.data_type.integer_value_sequence(WORDS))
    source = tenon.layer.data("source", tenon.data_type.dense_vector_sequence(SIZE))

    def outer(x, state):
        def inner(row, sum):
            return None, {"sum": tenon.layer.fc([row, sum, state], size=SIZE, act="tanh")}

        spread = tenon.layer.sequence_expand(state, source)
        _, last = tenon.scan(inner, spread, {"sum": SIZE}, name="inner")
        state = tenon.layer.add([x, last["sum"]])
        return tenon.layer.fc(state, size=WORDS, act="softmax"), {"state": state}

    vectors = tenon.layer.embedding(words, vocabulary=WORDS, size=SIZE)
    scores, _ = tenon.scan(outer, vectors, {"state": SIZE})
    parameters = tenon.parameters.create(scores)
    tenon.infer(scores, parameters, [([1, 2], np.ones((3, SIZE), np.float32)), ([], np.ones((1, SIZE), np.float32))])
    with pytest.raises(tenon.error.UnsupportedError, match="a scan inside of another"):
        tenon.Generator(scores, parameters)
