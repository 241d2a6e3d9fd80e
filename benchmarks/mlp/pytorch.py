"""Row 1 in PyTorch. SPDX-License-Identifier: Apache-2.0"""
import numpy as np
import torch
from torch.nn import functional

from support import torch_peer

w1, b1, w2, b2 = torch_peer.layers(("hidden", 784, 128), ("logits", 128, 10))
images = torch_peer.feed(torch_peer.on_host("images", (128, 784), np.uint8))
labels = torch_peer.feed(torch_peer.on_host("labels", (128,), np.uint8))


def loss_of():
    hidden = functional.relu(torch.addmm(b1, images.float() * (1.0 / 255), w1))
    return functional.cross_entropy(torch.addmm(b2, hidden, w2), labels.long())


optimizer = torch_peer.adam([w1, b1, w2, b2])
torch_peer.measure(torch_peer.training_step(loss_of, optimizer), 10, 100, 1000)
