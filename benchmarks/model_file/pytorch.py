"""A model of 201 MB with torch.save and torch.load. SPDX-License-Identifier: Apache-2.0"""
import torch

from support import model_file, torch_peer  # noqa: F401 (it sets the number of threads)


def save(tensors, path):
    torch.save({name: torch.from_numpy(values) for name, values in tensors.items()}, path)


def load(path):
    return {name: tensor.numpy() for name, tensor in torch.load(path).items()}


model_file.measure(load, save)
