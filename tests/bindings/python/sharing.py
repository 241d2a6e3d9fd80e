"""What the tests of arrays of other packages have in common. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import pytest

import tenon
from tenon import data_type


def doubled(feeds):
    layer = tenon.layer.data("a", data_type.dense_array([])) * 2
    return tenon.infer(layer, tenon.parameters.create(layer), feeds).tolist()


class Kept:
    """An array, and what keeps its memory."""

    def __init__(self, array, keeper):
        self.array, self.keeper = array, keeper
        self.__array_interface__ = array.__array_interface__

    def __setitem__(self, place, value):
        self.array[place] = value

    def tolist(self):
        return self.array.tolist()


def check_sharing(from_dlpack):
    """What either side writes, the other one reads: no copy was made. from_dlpack: returns a Kept."""
    layer = tenon.layer.fc(tenon.layer.data("x", data_type.dense_vector(2)), size=1, bias=False, name="f")
    parameters = tenon.parameters.create(layer)
    parameters["f.weight"] = [[3.0], [4.0]]
    seen = from_dlpack(parameters.dlpack("f.weight"))
    assert seen.__array_interface__["data"][0] == parameters["f.weight"].__array_interface__["data"][0]
    del seen
    written = from_dlpack(parameters.dlpack("f.weight", write=True))
    written[0, 0] = 5
    with pytest.raises(tenon.error.MisuseError):
        parameters.dlpack("f.weight").__dlpack__()  # a writing lease is alone
    del written
    assert parameters["f.weight"].tolist() == [[5], [4]]
    machine = tenon.gradient_machine.new(layer, parameters, training=False)
    machine.forward({"x": [[1.0, 10]]})
    output = from_dlpack(machine.dlpack())
    with pytest.raises(tenon.error.MisuseError):
        machine.forward({"x": [[2.0, 10]]})
    assert output.tolist() == [[45]]
    del output
    machine.forward({"x": [[2.0, 10]]})
    with pytest.raises(BufferError, match="without a copy"):
        parameters.dlpack("f.weight").__dlpack__(copy=True)
    machine.dlpack().__dlpack__()  # a capsule that nothing takes ends its lease
    machine.forward({"x": [[2.0, 10]]})
