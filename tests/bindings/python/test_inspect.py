"""Tables and graphs of topologies. SPDX-License-Identifier: Apache-2.0"""

import shutil

import tenon
from models import classifier
from tenon import inspect


def test_a_summary_is_a_table():
    model = classifier()
    table = tenon.summary([model.cost, model.accuracy])
    lines = str(table).splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == ["pixel", "hidden", "score", "label", "cost", "accuracy"]
    hidden = table.rows[1]
    assert hidden.type == "fc" and hidden.inputs == ("pixel",) and hidden.output == "[samples, 16]"
    assert hidden.values == 20 * 16 + 16 and table.values == hidden.values + 16 * 3 + 3
    assert lines[-1] == f"6 layers, {table.values} values of parameters"
    assert "<td>hidden</td>" in table._repr_html_()


def test_shared_parameters_count_once():
    a, b = (tenon.layer.data(name, tenon.data_type.dense_vector(4)) for name in "ab")
    both = [tenon.layer.fc(each, size=2, bias=False, parameter_name="shared") for each in (a, b)]
    assert tenon.summary(both).values == 8


def test_a_graph_is_drawn(tmp_path, monkeypatch):
    model = classifier()
    text = tenon.draw(model.cost, tmp_path / "graph.dot")
    assert text == (tmp_path / "graph.dot").read_text()
    assert '"hidden" -> "score";' in text and '"pixel" [label="pixel\\ndata' in text
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert inspect.draw(model.cost) == text


def test_loaded_models_have_summaries(tmp_path):
    model = classifier()
    tenon.parameters.create(model.score).save(tmp_path / "model.safetensors")
    rows = tenon.summary(tenon.load(tmp_path / "model.safetensors").outputs).rows
    assert [row.name for row in rows] == ["pixel", "hidden", "score"]
