"""Types, signatures and completion. SPDX-License-Identifier: Apache-2.0"""

import importlib.util
import inspect
import os
import pydoc
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import tenon

ROOT = Path(__file__).parents[3]
PACKAGE = Path(tenon.__file__).parent  # in the build: with the stubs, which the sources lack
# One cache for the runs of this file: the first of them reads NumPy's types, which takes seconds. A cache from before the
# stubs were made would be wrong.
CACHE = tempfile.TemporaryDirectory()


def mypy(*arguments):
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", CACHE.name, *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=PACKAGE.parent,
                          env={**os.environ, "MYPYPATH": str(PACKAGE.parent)})  # fmt: skip
    return done.returncode, done.stdout + done.stderr


pytest.importorskip("mypy")
if not (PACKAGE / "_core.pyi").exists():
    pytest.skip("the build wrote no type stubs", allow_module_level=True)


def test_the_package_passes():
    code, report = mypy("-p", "tenon")
    assert code == 0, report


def test_the_examples_pass():
    programs = sorted((ROOT / "examples/python").glob("*.py"))
    for program in programs:  # each alone, since they have modules of one name
        code, report = mypy(program)
        assert code == 0, report


RIGHT = """
import numpy as np
import tenon

x = tenon.layer.data("x", tenon.data_type.dense_vector(3))
y: tenon.Layer = tenon.layer.fc(x, size=3, act="relu", param={"weight": {"l2": 1e-4}}) * 2 + "x"
parameters = tenon.parameters.create(tenon.layer.fc(input=[x, y], size=3))
tenon.train(tenon.layer.sum_cost(y), parameters, tenon.reader.csv(files="data.csv").shuffle(),
            updater=tenon.updater.Adam(learning_rate=0.1, schedule={"type": "constant"}), passes=3)
rows: int = np.argmax(parameters["weight"], 1).shape[0]
with tenon.Team("zmq", rank=0, processes=1) as team:
    tenon.trainer.SGD().train(y, parameters, tenon.reader.csv(files="data.csv"), shards=4, team=team)
    tenon.dist_train(y, parameters, tenon.reader.csv(files="data.csv"), processes=team.processes, comm=team.comm)
"""


def test_a_right_program_passes(tmp_path):
    (tmp_path / "right.py").write_text(RIGHT)
    assert mypy(tmp_path / "right.py") == (0, "Success: no issues found in 1 source file\n")


CLASSES = """
import numpy as np
from numpy.typing import NDArray

import tenon

Array = NDArray[np.float32]


class Scale(tenon.layer.Base):
    parameters = ("factor",)

    def __init__(self, first: float = 1.0) -> None:
        self.first = first

    def shape(self, x: tenon.layer.Shape) -> tenon.layer.Shape:
        return x

    def initial_parameters(self, x: tenon.layer.Shape) -> dict[str, tenon.layer.Parameter]:
        return {"factor": tenon.layer.Parameter((x[-1],), constant=self.first)}

    def forward(self, x: Array, factor: Array) -> Array:
        return x * factor

    def backward(self, gradient: Array, x: Array, factor: Array) -> tuple[Array, Array]:
        return gradient * factor, (gradient * x).sum(0)


class Largest(tenon.metric.Base):
    def update(self, value: Array) -> float:
        return float(value.max(initial=0))

    def finalize(self, value: float) -> float:
        return value


scaled: tenon.Layer = Scale(first=2)("x", act="relu")
largest = Largest()(scaled)
"""
WRONG_CLASSES = """
Scale(frst=2)
Scale("no")
Scale()(3)
"""


def test_classes_of_layers_and_metrics_pass(tmp_path):
    (tmp_path / "classes.py").write_text(CLASSES)
    assert mypy(tmp_path / "classes.py") == (0, "Success: no issues found in 1 source file\n")
    (tmp_path / "wrong.py").write_text(CLASSES + WRONG_CLASSES)
    _, report = mypy(tmp_path / "wrong.py")
    for message in ('Unexpected keyword argument "frst" for "Scale"', 'to "Scale" has incompatible type "str"',
                    'to "__call__" of "Kernel" has incompatible type "int"'):  # fmt: skip
        assert message in report


def test_modules_imported_late_are_known(tmp_path):
    there = sorted(name for name in tenon._LATE if importlib.util.find_spec(f"tenon.{name}"))
    (tmp_path / "late.py").write_text("import tenon\n" + "".join(f"print(tenon.{name})\n" for name in there))
    code, report = mypy(tmp_path / "late.py")
    assert code == 0, report + "import it in tenon/__init__.py where TYPE_CHECKING"


WRONG = {
    'tenon.layer.fc("x", sise=3)': 'Unexpected keyword argument "sise" for "fc"',
    'tenon.layer.fc("x")': 'Missing named argument "size" for "fc"',
    'tenon.layer.fc("x", size="wide")': 'Argument "size" to "fc" has incompatible type "str"; expected "int"',
    "tenon.layer.fc(3, size=3)": 'Argument 1 to "fc" has incompatible type "int"',
    'tenon.layer.fcc("x")': 'Module has no attribute "fcc"',
    "tenon.updater.Adam(learning_rat=0.1)": 'Unexpected keyword argument "learning_rat"',
    'tenon.reader.csv(header="yes", files=["a"])': 'Argument "header" to "csv" has incompatible type "str"',
    'tenon.metric.auc(binz=3)': 'Unexpected keyword argument "binz" for "auc"',
    'tenon.dist_train("x", processes="two")': 'Argument "processes" to "dist_train" has incompatible type "str"',
    "tenon.trian()": 'Module has no attribute "trian"',
}


def test_wrong_programs_fail(tmp_path):
    (tmp_path / "wrong.py").write_text("import tenon\n" + "".join(line + "\n" for line in WRONG))
    code, report = mypy(tmp_path / "wrong.py")
    assert code == 1
    lines = report.splitlines()
    for number, message in enumerate(WRONG.values(), 2):
        assert any(f"wrong.py:{number}: error: " in line and message in line for line in lines), (message, report)


def test_signatures_and_documentation():
    signature = inspect.signature(tenon.layer.fc)
    assert str(signature).startswith("(*inputs: 'LayerLike', size: 'int', axis: 'int | None' = None, bias: 'bool' = ")
    assert signature.parameters["act"].annotation == "str | None"
    assert str(inspect.signature(tenon.layer.cross_entropy)).startswith(
        "(input: 'LayerLike', label: 'LayerLike', weight: 'LayerLike | None' = None, *, "
    )
    assert str(inspect.signature(tenon.metric.top_k_accuracy)).startswith("(input: 'LayerLike | None' = None, label: ")
    text = pydoc.plain(pydoc.render_doc(tenon.layer.fc))
    for words in ("fc in module tenon.layer", "output = x weight + bias", "size (int, from 1, required): number"):
        assert words in text
    assert tenon.layer.fc is tenon.layer.fc


def test_completion():
    expected = {tenon.layer: {"fc", "data", "softmax"}, tenon.updater: {"Adam", "adam", "Base"},
                tenon.reader: {"csv", "shuffle", "Reader"}, tenon: {"train", "metric", "layer"}}  # fmt: skip
    for module, names in expected.items():
        assert names <= set(dir(module))
        assert all(hasattr(module, name) for name in names)


def test_completion_in_ipython():
    completer = pytest.importorskip("IPython.core.completer")
    with completer.provisionalcompleter():
        for use_jedi in (False, True):
            found = completer.IPCompleter(namespace={"tenon": tenon})
            found.use_jedi = use_jedi
            texts = {each.text.rsplit(".")[-1] for each in found.completions("tenon.layer.soft", 16)}
            assert {"softmax", "softplus", "softsign"} <= texts
            names = {each.text for each in found.completions("tenon.layer.fc(x, si", 20)}
            assert "size=" in names


@pytest.mark.parametrize("type", [tenon.data_type.integer_value(5), tenon.data_type.DataType("int64")], ids=str)
def test_compose_connects_values_of_one_type(type):
    """Of data layers of one shape floats take floats, and integers take integers, with a limit or without one."""
    layer = tenon.layer
    weight, x = layer.data("weight", tenon.data_type.dense_array([])), layer.data("x", tenon.data_type.dense_vector(5))
    chosen = layer.one_hot(layer.data("row", type), classes=5)
    later = layer.fc(chosen, layer.reshape(weight, shape=[1]), size=2)
    for earlier, rest in ((layer.argmax(x), ["weight", "x"]), (layer.sum(x, axis=1), ["row", "x"])):
        assert sorted(tenon.gradient_machine.compose(earlier, later).types) == rest
