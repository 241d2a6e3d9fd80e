"""Readers of data of another form than that of the training: the model says what it needs.
SPDX-License-Identifier: Apache-2.0"""

import numpy as np
import pytest

import tenon

ROWS = np.random.default_rng(3).normal(size=(40, 3)).astype(np.float32)


def table(path, columns, label=True):
    """Writes the rows with their columns in an order."""
    lines = [",".join([*columns, "kind"] if label else columns)]
    for row in ROWS:
        values = [repr(float(row["abc".index(column)])) for column in columns]
        lines.append(",".join([*values, "left" if row[0] > row[1] else "right"] if label else values))
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def trained(tmp_path):
    def read(path):
        return tenon.reader.csv(files=path, columns=["x = *: f32", "kind: category"])

    x = tenon.layer.data("x", tenon.data_type.dense_vector(3))
    kind = tenon.layer.data("kind", tenon.data_type.integer_value(2))
    score = tenon.layer.fc(x, size=2)
    outputs = [tenon.layer.cross_entropy(score, kind, from_logits=True), tenon.layer.accuracy(score, kind, name="accuracy")]
    parameters = tenon.parameters.create(outputs)
    reader = read(table(tmp_path / "train.csv", "abc"))
    tenon.train(outputs, parameters, reader, passes=40, updater=tenon.updater.adam(learning_rate=0.1))
    return read, score, outputs, parameters


def test_columns_have_the_order_of_the_model(trained, tmp_path):
    read, score, outputs, parameters = trained
    turned = read(table(tmp_path / "turned.csv", "cab"))
    assert tenon.test(outputs, parameters, turned).metrics["accuracy"] == 1.0
    expected = tenon.infer(score, parameters, {"x": ROWS})
    assert np.array_equal(tenon.infer(score, parameters, turned), expected)
    chosen = turned.choose(x="x", kind="kind")
    assert np.array_equal(tenon.infer(score, parameters, chosen), expected)
    with pytest.raises(tenon.error.InvalidError, match='the files have no column "b"'):
        tenon.infer(score, parameters, read(table(tmp_path / "fewer.csv", "ca")))
    assert parameters.names() == {"kind": ["left", "right"]}


def test_new_data_needs_no_labels(trained, tmp_path):
    read, score, outputs, parameters = trained
    new = read(table(tmp_path / "new.csv", "bca", label=False))
    assert np.array_equal(tenon.infer(score, parameters, new), tenon.infer(score, parameters, {"x": ROWS}))
    assert tenon.infer(score, parameters, new.choose(x="x", kind="kind")).shape == (40, 2)
    fed = new.choose(y="x")
    assert tenon.infer(score, parameters, fed, feeding={"y": "x"}).shape == (40, 2)
    with pytest.raises(tenon.error.InvalidError, match='unknown column "kind"'):
        tenon.test(outputs, parameters, new)
