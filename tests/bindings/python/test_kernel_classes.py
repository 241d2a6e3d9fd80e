"""What classes of layers in Python declare. SPDX-License-Identifier: Apache-2.0"""

import copy

import numpy as np
import pytest

import tenon
from test_kernels import Affine, infer, vector


@pytest.mark.parametrize(("body", "message"), [
    ("forward = lambda self, X: X", "Wrong.forward: the argument 'X' must be of lower case letters, digits and _"),
    ("forward = lambda self, **x: x", r"Wrong.forward: the argument \*\*x must have a name"),
    ("pass", "the class Wrong must define forward"),
    ("forward = lambda self, x: x; backward = lambda self, gradint: x", "'gradint' is none of gradient, x, output;"),
    ("forward = lambda self, x: x; role = 'costs'", "Wrong.role is 'costs'; expected one of layer, cost, metric"),
    ("forward = lambda self, output: output", "Wrong: 'output' names two things among the gradient, inputs,"),
    ("forward = lambda self, gradient: gradient", "Wrong: 'gradient' names two things"),
    ("forward = lambda self, x, weight: x; parameters = 'weight'", "the class Wrong must define initial_parameters"),
    ("forward = lambda self, x: x; parameters = 'weight'", "the parameter 'weight' of the class is no argument of it"),
    ("forward = lambda self, x: x; outputs = ['The end']", "Wrong.outputs has 'The end'; expected names of lower case"),
    ("forward = lambda self, x: x\n def __init__(self, table): pass", "the type of the argument 'table' is not known"),
])  # fmt: skip
def test_wrong_classes_are_refused(body, message):
    known = {"tenon": tenon}
    exec(f"class Wrong(tenon.layer.Base):\n {body}", known)
    with pytest.raises(TypeError, match=message):
        known["Wrong"](*[1] * ("table" in body))


def test_arguments_are_kept_as_attributes():
    class Many(tenon.layer.Base):
        def __init__(self, size: int, rates: list[float], names: tuple[str, ...] = ("a",), flag: bool = False,
                     mode: str | None = None, factor=2.0):  # fmt: skip
            self.all = (size, rates, names, flag, mode, factor)

        def forward(self, x):
            assert self.all == (3, [1.0, 2.0], ["b", "c"], True, None, 0.5), self.all
            return x

    many = Many(np.int64(3), (1, 2), names=("b", "c"), flag=True, factor=0.5)
    assert repr(many) == "Many(size=3, rates=[1.0, 2.0], names=['b', 'c'], flag=True, factor=0.5)"
    assert infer(many(vector("x", 1)), [[1.0]]) == 1
    assert repr(copy.deepcopy(many)) == repr(many)
    with pytest.raises(TypeError, match="Many: the argument 'size' is 'no'; expected int"):
        Many("no", [])
    with pytest.raises(TypeError, match="missing a required argument: 'rates'"):
        Many(1)


def test_parameters_must_be_declared():
    class Careless(Affine):
        type = "python.careless"

        def initial_parameters(self, x):
            return {"weight": tenon.layer.Parameter((x[1], self.size))}

    message = "Careless.initial_parameters returned .*; expected a dict of tenon.layer.Parameter by weight, bias"
    with pytest.raises(tenon.error.InvalidError, match=message):
        Careless(2)(vector("x"))
    layer = Affine(4)(vector("x"), name="a", param={"bias": {"init": "constant", "init_value": 1}})
    parameters = tenon.parameters.create(layer)
    assert parameters["a.weight"].shape == (3, 4) and abs(parameters["a.weight"]).max() <= 0.5
    assert parameters["a.bias"].tolist() == [1] * 4
