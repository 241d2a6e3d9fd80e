"""Tensors of PyTorch as feeds and parameters, memory shared with it. SPDX-License-Identifier: Apache-2.0"""

import pytest

import tenon
from sharing import Kept, check_sharing, doubled
from tenon import data_type

torch = pytest.importorskip("torch")


def test_tensors_of_pytorch():
    assert doubled({"a": torch.tensor([1.0, 2, 3])}) == [2, 4, 6]
    layer = tenon.layer.fc(tenon.layer.data("x", data_type.dense_vector(2)), size=1, name="f")
    parameters = tenon.parameters.create(layer)
    parameters["f.weight"] = torch.tensor([[3.0], [4.0]])
    assert torch.from_dlpack(parameters["f.weight"].copy()).ravel().tolist() == [3, 4]


def test_memory_is_shared_with_pytorch():
    def from_dlpack(value):
        tensor = torch.from_dlpack(value)
        return Kept(tensor.numpy(), tensor)

    check_sharing(from_dlpack)
