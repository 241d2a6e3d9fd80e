"""LeNet-5 in PyTorch, from the parameters that Tenon's program wrote. SPDX-License-Identifier: Apache-2.0"""
import torch
from torch.nn import functional

from support import peer, torch_peer

FORMAT = torch.channels_last if "last" in peer.WORDS else torch.contiguous_format
SIZES = {"fc1": (256, 120), "fc2": (120, 84), "fc3": (84, 10)}


def images(samples):
    values = torch_peer.on_host("images", (samples, 28, 28, 1)).permute(0, 3, 1, 2)
    return torch_peer.feed(values.contiguous(memory_format=FORMAT))


def parameters(trained):
    values = {}
    for name, filters, channels in (("conv1", 6, 1), ("conv2", 16, 6)):
        weight = torch_peer.tensor(f"{name}.weight", (filters, 5, 5, channels)).permute(0, 3, 1, 2)
        values[f"{name}.weight"] = weight.contiguous(memory_format=FORMAT)
        values[f"{name}.bias"] = torch_peer.tensor(f"{name}.bias", (filters,))
    for name, (inputs, outputs) in SIZES.items():
        weight = torch_peer.tensor(f"{name}.weight", (inputs, outputs))
        if name == "fc1":  # its rows are places, then channels; PyTorch flattens channels first
            weight = weight.view(4, 4, 16, outputs).permute(2, 0, 1, 3).reshape(inputs, outputs)
        values[f"{name}.weight"] = weight.contiguous()
        values[f"{name}.bias"] = torch_peer.tensor(f"{name}.bias", (outputs,))
    return {name: value.detach().requires_grad_(trained) for name, value in values.items()}


def logits(values, x):
    for name in ("conv1", "conv2"):
        x = functional.relu(functional.conv2d(x, values[f"{name}.weight"], values[f"{name}.bias"]))
        x = functional.max_pool2d(x, 2)
    x = x.reshape(x.shape[0], -1)
    for name in ("fc1", "fc2"):
        x = functional.relu(torch.addmm(values[f"{name}.bias"], x, values[f"{name}.weight"]))
    return torch.addmm(values["fc3.bias"], x, values["fc3.weight"])
