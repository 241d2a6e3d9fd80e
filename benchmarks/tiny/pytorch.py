"""Row 3 in PyTorch. SPDX-License-Identifier: Apache-2.0"""
import torch
from torch.nn import functional

from support import torch_peer

w1, b1, w2, b2, w3, b3 = values = torch_peer.layers(("first", 16, 32), ("second", 32, 32), ("logits", 32, 2))
x = torch_peer.feed(torch_peer.on_host("x", (1, 16)))
label = torch_peer.feed(torch.tensor([1]))


def loss_of():
    hidden = functional.relu(torch.addmm(b1, x, w1))
    hidden = functional.relu(torch.addmm(b2, hidden, w2))
    return functional.cross_entropy(torch.addmm(b3, hidden, w3), label)


optimizer = torch.optim.SGD(values, lr=0.01, fused=True)
torch_peer.measure(torch_peer.training_step(loss_of, optimizer), 10, 1000, 3000)
