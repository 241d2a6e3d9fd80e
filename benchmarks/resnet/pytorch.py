"""Rows 5a and 5b in PyTorch: modes "20" and "18", then channels_last and compile. SPDX-License-Identifier: Apache-2.0"""
import numpy as np
import torch
from torch import nn
from torch.nn import functional

from support import peer, torch_peer

LARGE = "18" in peer.WORDS
BATCH, FIRST, STAGES, BLOCKS = (32, 64, 4, 2) if LARGE else (128, 16, 3, 3)
FORMAT = torch.channels_last if "last" in peer.WORDS else torch.contiguous_format


def conv(name, channels, filters, kernel, stride):
    made = nn.Conv2d(channels, filters, kernel, stride, kernel // 2, bias=False)
    weight = torch_peer.tensor(f"{name}_conv.weight", (filters, kernel, kernel, channels))
    made.weight = nn.Parameter(weight.permute(0, 3, 1, 2).contiguous())
    return nn.Sequential(made, nn.BatchNorm2d(filters))


class Block(nn.Module):
    def __init__(self, name, channels, filters, stride):
        super().__init__()
        self.first = conv(f"{name}a", channels, filters, 3, stride)
        self.second = conv(f"{name}b", filters, filters, 3, 1)
        self.shortcut = conv(f"{name}s", channels, filters, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        return functional.relu(self.second(functional.relu(self.first(x))) + self.shortcut(x))


def network():
    layers, channels = [conv("stem", 3, FIRST, 3, 1), nn.ReLU()], FIRST
    for stage in range(STAGES):
        for block in range(BLOCKS):
            filters = FIRST << stage
            layers.append(Block(f"block{stage}{block}", channels, filters, 2 if stage > 0 and block == 0 else 1))
            channels = filters
    logits = nn.Linear(channels, 10)
    logits.weight = nn.Parameter(torch_peer.tensor("logits.weight", (channels, 10)).t().contiguous())
    logits.bias = nn.Parameter(torch_peer.tensor("logits.bias", (10,)))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), logits).to(peer.DEVICE, memory_format=FORMAT)


model = network()
images = torch_peer.on_host("images", (BATCH, 32, 32, 3)).permute(0, 3, 1, 2)
x = torch_peer.feed(images.contiguous(memory_format=FORMAT))
labels = torch_peer.feed(torch_peer.on_host("labels", (BATCH,), np.uint8).long())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
step = torch_peer.training_step(lambda: functional.cross_entropy(model(x), labels), optimizer)
torch_peer.measure(step, 3, 1, 5)
