"""Row 13 in PyTorch. SPDX-License-Identifier: Apache-2.0"""
import torch
from torch.nn import functional

from support import peer, torch_peer

w1, b1, w2, b2 = torch_peer.layers(("hidden", 784, 128), ("logits", 128, 10))
x = torch_peer.tensor("x", (1, 784))


def answer():
    return torch.addmm(b2, functional.relu(torch.addmm(b1, x, w1)), w2)


with torch.inference_mode():
    peer.mean_seconds(1000, answer)
    times = peer.single_calls(20000, answer)
    y = answer()
peer.report(**times, loss=float(y[0, 0]) - float(y[0, 1]))
