"""Predictors: one model for many threads, data of every form, names of classes. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import tenon
from arrow_export import Exported, categories, numbers, struct, vectors
from tenon import data_type

COLOURS, ANIMALS = ["red", "blue"], ["cat", "dog", "eel"]


class Model:
    """A model of a vector and a category, whose label has names. Its scores prefer a class by the vector."""

    def __init__(self):
        tenon.use(tenon.Host())
        x, colour = tenon.layer.data("x", data_type.dense_vector(3)), tenon.layer.data("colour", data_type.integer_value(2))
        table = tenon.layer.embedding(colour, vocabulary=2, size=3, name="table")
        self.score = tenon.layer.fc(tenon.layer.add(x, table), size=3, name="score")
        self.share = tenon.layer.softmax(self.score, name="share")
        self.best = tenon.layer.argmax(self.score, name="best")
        label = tenon.layer.data("animal", data_type.integer_value(3))
        self.cost = tenon.layer.cross_entropy(self.score, label, from_logits=True, name="cost")
        self.accuracy = tenon.layer.accuracy(self.score, label, name="accuracy")
        self.parameters = tenon.parameters.create([self.cost, self.accuracy])
        self.parameters.core.set_names([("colour", COLOURS), ("animal", ANIMALS)])
        self.parameters["score.weight"] = np.eye(3) * 4
        self.parameters["table.weight"] = [[0, 0, 0], [0, 0, 1]]

    def save(self, path, *outputs):
        self.parameters.save(path, outputs or [self.share, self.best, self.cost, self.accuracy])
        return str(path)


X = np.array([[1, 0, 0], [0, 2, 0], [0, 0, 1], [1.5, 0, 1]], np.float32)
CODES = np.array([0, 1, 0, 1])
BEST = ["cat", "dog", "eel", "eel"]


@pytest.fixture
def model():
    before = tenon.host()
    yield Model()
    tenon.use(before)


@pytest.fixture
def path(model, tmp_path):
    return model.save(tmp_path / "m.safetensors")


def batches():
    names = [COLOURS[code] for code in CODES]
    rows = [{"x": x.tolist(), "colour": int(code), "note": object()} for x, code in zip(X, CODES, strict=True)]
    yield "dict of arrays", {"x": X, "colour": CODES, "note": object()}
    yield "dict of lists", {"x": X.tolist(), "colour": CODES.tolist()}
    yield "names", {"x": X.astype(np.float64), "colour": names}
    yield "array of names", {"x": X, "colour": np.array(names)}
    yield "list of dicts", rows
    yield "list of tuples", [(row["x"], row["colour"]) for row in rows]
    yield "function", lambda: iter(rows)
    yield "reader", tenon.batch(rows, 3)
    structured = np.zeros(4, [("note", object), ("colour", np.int16), ("x", np.float64, 3)])
    structured["x"], structured["colour"] = X, CODES
    yield "structured array", structured
    yield "records", structured.view(np.recarray)
    kinds = categories([1, 0, 1, 0], ["blue", "red"])
    yield "Arrow", Exported(struct(note=numbers([1] * 4, "f2"), x=vectors(3, numbers(X.reshape(-1), "f4")), colour=kinds))
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"note": ["a"] * 4, "colour": pandas.Categorical(names, COLOURS[::-1]), "x": list(X)})
    yield "frame", frame
    yield "frame of texts", frame.assign(colour=names)
    yield "dict of series", {"x": X, "colour": frame["colour"]}


BATCHES = [pytest.param(each, id=name) for name, each in batches()]


@pytest.mark.parametrize("data", BATCHES)
@pytest.mark.parametrize("max_samples", [1, 3, 256])
def test_batches_of_every_form(model, path, data, max_samples):
    expected = tenon.infer(model.share, model.parameters, {"x": X, "colour": CODES})
    with tenon.Predictor(path, outputs="share", max_samples=max_samples) as predictor:
        if isinstance(data, tenon.Reader) and max_samples < 3:
            with pytest.raises(tenon.error.InvalidError, match="minibatch of the reader has 3 samples.*max_samples=1"):
                predictor(data)
            return
        assert list(predictor.inputs) == ["x", "colour"]
        assert np.array_equal(predictor(data), expected)
        assert predictor.argmax(data).tolist() == [ANIMALS.index(each) for each in BEST]
        assert predictor.argmax(data, names=True).tolist() == BEST
        classes, scores = predictor.top_k(data, 2, names=True)
        assert classes[:, 0].tolist() == BEST and classes[3].tolist() == ["eel", "cat"]
        assert np.array_equal(scores, np.sort(expected, 1)[:, :0:-1])
        assert predictor.top_k(data, 3)[0][3].tolist() == [2, 0, 1]


def samples():
    yield "dict", {"x": [1.5, 0, 1], "colour": 1, "note": object()}
    yield "name", {"x": X[3], "colour": "blue"}
    yield "numbers of NumPy", {"x": X[3].astype(np.float64), "colour": np.int8(1)}
    yield "tuple", (X[3], 1)
    pandas = pytest.importorskip("pandas")
    yield "row", pandas.DataFrame({"x": list(X), "colour": [COLOURS[code] for code in CODES], "note": "a"}).iloc[3]
    yield "record", np.array([(X[3], 1)], [("x", np.float32, 3), ("colour", np.int64)])[0]


@pytest.mark.parametrize("sample", [pytest.param(each, id=name) for name, each in samples()])
def test_one_sample(model, path, sample):
    share, best = tenon.Predictor(path).one(sample, names=True)
    assert share.shape == (3,) and share.argmax() == 2 and best == "eel"
    assert tenon.Predictor(model.share, model.parameters).one(sample).tolist() == share.tolist()


def test_values_of_the_only_data_layer(model):
    words = tenon.layer.data("words", data_type.integer_value_sequence(5))
    mean = tenon.layer.sequence_pool(tenon.layer.embedding(words, vocabulary=5, size=2, name="words_table"), kind="mean")
    vector = tenon.layer.data("v", data_type.dense_vector(2)) * 2
    predictor = tenon.Predictor(mean, tenon.parameters.create(mean))
    assert predictor.one([1, 2]).shape == (2,) and predictor([[1, 2], [3]]).shape == (2, 2)
    assert np.array_equal(predictor([[1, 2], [3]])[0], predictor.one(np.array([1, 2])))
    doubled = tenon.Predictor(vector, tenon.parameters.create(vector))
    assert doubled.one([1, 2]).tolist() == [2, 4] and doubled.one(np.float32([1, 2])).tolist() == [2, 4]
    assert doubled([[1, 2]]).tolist() == doubled(np.array([[1, 2]])).tolist() == [[2, 4]]
    each_word = tenon.layer.embedding(words, vocabulary=5, size=2, name="rows")
    rows = tenon.Predictor(each_word, tenon.parameters.create(each_word), max_samples=2)
    assert [len(each) for each in rows([[1, 2], [3], [4, 4, 4]])] == [2, 1, 3] and len(rows.one([1, 2])) == 2


def test_sparse_vectors(model):
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.random(40, 9, 0.3, format="csr", random_state=1, dtype=np.float32)
    layer = tenon.layer.fc(tenon.layer.data("v", data_type.sparse_float_vector(9)), size=2, name="of_sparse")
    parameters = tenon.parameters.create(layer)
    expected = tenon.infer(layer, parameters, matrix)
    for max_samples in (7, 256):
        predictor = tenon.Predictor(layer, parameters, max_samples=max_samples)
        for data in (matrix, matrix.tocoo(), {"v": matrix}, tenon.Sparse(9, matrix.indptr, matrix.indices, matrix.data)):
            assert np.array_equal(predictor(data), expected)
        pairs = list(zip(matrix[3].indices.tolist(), matrix[3].data.tolist(), strict=True))
        for sample in (matrix[3], {"v": matrix[3]}, pairs, {"v": dict(pairs)}):
            assert np.array_equal(predictor.one(sample), expected[3])


def test_outputs_of_a_file_are_predictions(model, path, tmp_path):
    assert [each.name for each in tenon.Predictor(path).outputs] == ["share", "best"]
    trained = model.save(tmp_path / "trained.safetensors", model.cost, model.accuracy)
    assert tenon.Predictor(trained).argmax({"x": X, "colour": CODES}, names=True).tolist() == BEST
    both = tenon.Predictor(path, outputs=["best", "score"])({"x": X, "colour": CODES})
    assert both[0].tolist() == both[1].argmax(1).tolist()
    assert isinstance(tenon.Predictor(path, outputs=["score"])({"x": X, "colour": CODES}), np.ndarray) is False
    assert tenon.Predictor(path, outputs="cost")({"x": X, "colour": CODES, "animal": BEST}).shape == (4,)


def test_names_belong_to_the_scores_of_their_label(model, path):
    data = {"x": X, "colour": CODES}
    predictor = tenon.Predictor(path)
    assert predictor.predict(data, names=True)[1].tolist() == BEST
    assert predictor.class_names("share") == predictor.class_names("best") == ANIMALS
    assert tenon.Predictor(model.score, model.parameters).class_names() == ANIMALS
    other = tenon.layer.fc(model.score, size=3, name="other")  # of three numbers, but no scores of the label
    colour = tenon.layer.data("colour", data_type.integer_value(2))
    table = tenon.layer.embedding(colour, vocabulary=2, size=3, name="table")
    apart = tenon.layer.fc(tenon.layer.data("z", data_type.dense_vector(1)), size=3, name="apart")
    for layer, given in ((table, {"colour": [0]}), (apart, [[1.0]])):
        alone = tenon.Predictor(layer, model.parameters if layer is table else tenon.parameters.create(layer))
        with pytest.raises(tenon.error.NotFoundError, match="no names for the classes of"):
            alone.argmax(given, names=True)
    assert tenon.Predictor(other, tenon.parameters.create(other)).argmax(data).shape == (4,)


def test_tables_carry_columns_and_names(model, path):
    pyarrow, pandas = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": ["a", "b", "c", "d"], "colour": [COLOURS[code] for code in CODES], "x": list(X),
                              "when": pandas.to_datetime(["2020-01-01", "2020-01-02", None, "2020-01-04"])})  # fmt: skip
    predictor = tenon.Predictor(path)
    answers = pyarrow.table(predictor.table(frame, keep=["id", "when", "colour"]))
    assert answers.column_names == ["id", "when", "colour", "share", "share.class", "best", "best.class"]
    assert answers["share.class"].to_pylist() == answers["best.class"].to_pylist() == BEST
    assert answers["id"].to_pylist() == ["a", "b", "c", "d"] and answers["when"].null_count == 1
    given = pyarrow.table({"id": [7, 8, 9, 10], "colour": answers["colour"].dictionary_encode(), "x": X.tolist()})
    again = pyarrow.table(predictor.table(given.to_reader(3), keep=["colour", "id"]))
    assert again["share"].to_pylist() == answers["share"].to_pylist() and again["id"].to_pylist() == [7, 8, 9, 10]
    assert again["colour"].to_pylist() == answers["colour"].to_pylist()
    assert pandas.DataFrame.from_arrow(predictor.table(frame))["best"].tolist() == [0, 1, 2, 2]
    with pytest.raises(tenon.error.NotFoundError, match='no column "idd"; it has'):
        predictor.table(frame, keep="idd")


def test_readers_that_leave_out_records_say_so(tmp_path):
    tenon.use(tenon.Host())
    (tmp_path / "train.csv").write_text("id,a,b,kind\n" + "1,5,0,cat\n2,0,5,dog\n" * 8)
    (tmp_path / "new.csv").write_text("id,a,b\nx,5,0\ny,,5\nz é,0,5\n")  # no labels, and one value is missing
    columns = ["x = a, b: f32", "label = kind: category"]

    def reader(name, **more):
        return tenon.reader.csv(files=[str(tmp_path / name)], columns=columns, **more)

    score = tenon.layer.fc(tenon.layer.data("x", data_type.dense_vector(2)), size=2, name="score")
    cost = tenon.layer.cross_entropy(score, tenon.layer.data("label", data_type.integer_value(2)), from_logits=True)
    parameters = tenon.parameters.create(cost)
    tenon.train(cost, parameters, reader("train.csv"), passes=20, updater=tenon.updater.SGD(learning_rate=0.5))
    predictor = tenon.Predictor(score, parameters)
    with pytest.raises(tenon.error.BadDataError, match="new.csv"):
        predictor(reader("new.csv"))
    skipping = reader("new.csv", missing="skip")
    for call in (predictor, predictor.argmax, lambda data: tenon.infer(score, parameters, data)):
        with pytest.warns(UserWarning, match="1 record of the data is left out"):
            assert len(call(skipping)) == 2
    for data in (skipping, tenon.batch(skipping, 1)):
        table = predictor.table(data, keep=["id", "b"])
        assert table["record"].tolist() == [0, 2] and table["id"] == ["x", "z é"] and table["b"] == ["0", "5"]
        assert table["score.class"].texts().tolist() == ["cat", "dog"]
    whole = predictor.table(reader("train.csv"))
    assert whole["record"].tolist() == list(range(16)) and whole.names == ["record", "score", "score.class"]
    with pytest.raises(tenon.error.NotFoundError, match="idd"):
        predictor.table(skipping, keep="idd")
    (tmp_path / "new.csv").write_bytes(b"id,a,b\n1,2,3\nf\xe9,0,5\n")
    with pytest.raises(tenon.error.BadDataError, match='sample 1: column "id".*not UTF-8'):
        predictor.table(reader("new.csv"), keep="id")


WRONG = [
    ({"x": X}, r'nothing for data layer "colour"; it has \[.x.\]'),
    ({"x": X[:, :2], "colour": CODES}, r'"x": expected float32 \[samples, 3\], got float32 \[4, 2\]'),
    ({"x": X[:3], "colour": CODES}, 'data layer "colour" has 4 samples, data layer "x" has 3'),
    ({"x": X, "colour": CODES + 1}, '"colour".*expected integers from 0 to 1|"colour".*2 is not below 2|"colour".* 2'),
    ({"x": X, "colour": CODES + 0.5}, '"colour" has floats; expected int64'),
    ({"x": X, "colour": ["red", "blue", "green", "red"]}, 'sample 2: .*"colour" has the category "green".*it has red, blue'),
    ({"x": X * np.nan, "colour": CODES}, r'"x" is nan at \[0, 0\]'),
    ({"x": [["a", "b", "c"]], "colour": [0]}, '"x"'),
    ([{"x": X[0], "colour": 0}, {"colour": 0}], 'sample 1 has no slot "x"'),
    ([(X[0], 0, 5)], "sample 0 has 3 values; expected 2"),
    ([(X[0], 0), (X[0][:2], 0)], r'sample 1: slot "x" is float32 \[3\], but its value is ndarray of float32 \[2\]'),
    ([], "no samples"),
]


@pytest.mark.parametrize("data, what", WRONG)
def test_errors_name_slot_expected_and_found(path, data, what):
    predictor = tenon.Predictor(path)
    with pytest.raises(tenon.error.Error, match=what):
        predictor(data)
    assert predictor({"x": X, "colour": CODES})[1].tolist() == [0, 1, 2, 2]  # still works


def test_wrong_calls(model, path, tmp_path):
    data = {"x": X, "colour": CODES}
    calls = [
        (lambda: tenon.Predictor(tmp_path / "none.safetensors"), tenon.error.NotFoundError, "none.safetensors"),
        (lambda: tenon.Predictor(path, outputs="shares"), tenon.error.NotFoundError, 'no layer "shares"; did you mean "share"'),
        (lambda: tenon.Predictor(model.score), tenon.error.InvalidError, "expected a path"),
        (lambda: tenon.Predictor(model.score, {}), tenon.error.InvalidError, "expected a set of parameters"),
        (lambda: tenon.Predictor(model.accuracy, model.parameters), tenon.error.InvalidError, "is a metric"),
        (lambda: tenon.Predictor(model.score, model.parameters, outputs="x"), tenon.error.InvalidError, "outputs is 'x'"),
        (lambda: tenon.Predictor(path, machines=-1), tenon.error.InvalidError, "machines is -1"),
        (lambda: tenon.Predictor(path, max_samples=0), tenon.error.InvalidError, "max_samples is 0"),
        (lambda: tenon.Predictor(path, nan=True), tenon.error.InvalidError, "nan is True"),
        (lambda: tenon.Predictor(path).top_k(data, 4, output="share"), tenon.error.InvalidError, "k is 4"),
        (lambda: tenon.Predictor(path).argmax(data), tenon.error.InvalidError, "one of share, best"),
        (lambda: tenon.Predictor(path).argmax(data, output="best"), tenon.error.InvalidError, "expected scores"),
        (lambda: tenon.Predictor(path).one({"x": X[0]}), tenon.error.InvalidError, 'nothing for data layer "colour"'),
        (lambda: tenon.Predictor(path).one({"x": X[0][:2], "colour": 0}), tenon.error.InvalidError, "expected float32"),
    ]  # fmt: skip
    for call, kind, what in calls:
        with pytest.raises(kind, match=what):
            call()


def test_closed_predictors_refuse(path):
    with tenon.Predictor(path) as predictor:
        predictor({"x": X, "colour": CODES})
    for call in (lambda: predictor({"x": X, "colour": CODES}), predictor.refresh, predictor.__enter__):
        with pytest.raises(tenon.error.MisuseError, match="closed"):
            call()
    predictor.close()


def test_pickles_are_the_path(model, path):
    predictor = tenon.Predictor(path, outputs="share", max_samples=2)
    again = pickle.loads(pickle.dumps(predictor))
    assert np.array_equal(again({"x": X, "colour": CODES}), predictor({"x": X, "colour": CODES}))
    program = "import pickle, sys; p = pickle.load(sys.stdin.buffer); print(p.one({'x': [0, 2, 0], 'colour': 'red'}).argmax())"
    done = subprocess.run([sys.executable, "-B", "-c", program], input=pickle.dumps(predictor), capture_output=True, check=True)
    assert done.stdout == b"1\n"
    with pytest.raises(tenon.error.MisuseError, match="made of layers"):
        pickle.dumps(tenon.Predictor(model.share, model.parameters))


def test_a_snapshot_until_it_is_refreshed(model):
    data = {"x": X, "colour": CODES}
    predictor = tenon.Predictor(model.score, model.parameters)
    before = predictor(data)
    model.parameters["score.bias"] = [1, 2, 3]
    assert np.array_equal(predictor(data), before)
    predictor.refresh()
    assert np.allclose(predictor(data), before + np.array([1, 2, 3]))


def test_threads_share_a_predictor_while_it_is_trained_refreshed_and_closed(model):
    data = {"x": X, "colour": CODES}
    predictor = tenon.Predictor(model.share, model.parameters, machines=2)
    done, failed = threading.Event(), []

    def serve():
        while not done.is_set():
            try:
                rows = predictor(data)
                one = predictor.one({"x": X[0], "colour": "red"})
                if not (np.allclose(rows.sum(1), 1, atol=1e-5) and one.shape == (3,)):
                    failed.append(rows)
            except tenon.error.MisuseError:
                if not done.is_set():
                    failed.append("closed too early")

    threads = [threading.Thread(target=serve) for _ in range(6)]
    for each in threads:
        each.start()
    for _ in range(10):
        tenon.train(model.cost, model.parameters, {**data, "animal": [0, 1, 2, 2]}, passes=3)
        predictor.refresh()
    done.set()
    predictor.close()
    for each in threads:
        each.join()
    assert not failed
