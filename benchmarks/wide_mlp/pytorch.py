"""Row 2 in PyTorch; modes "bf16" and "tf32": products rounded so. SPDX-License-Identifier: Apache-2.0"""
import numpy as np
import torch
from torch.nn import functional

from support import peer, torch_peer

w1, b1, w2, b2, w3, b3 = values = torch_peer.layers(("first", 1024, 4096), ("second", 4096, 4096),
                                                    ("logits", 4096, 1000))
x = torch_peer.feed(torch_peer.on_host("x", (1024, 1024)))
labels = torch_peer.feed(torch_peer.on_host("labels", (1024,), np.int64))


def loss_of():
    with torch.autocast(peer.DEVICE.split(":")[0], torch.bfloat16, enabled="bf16" in peer.WORDS):
        return loss_in_full()


def loss_in_full():
    hidden = functional.relu(torch.addmm(b1, x, w1))
    hidden = functional.relu(torch.addmm(b2, hidden, w2))
    return functional.cross_entropy(torch.addmm(b3, hidden, w3), labels)


optimizer = torch.optim.SGD(values, lr=0.01, momentum=0.9, fused=True)
torch_peer.measure(torch_peer.training_step(loss_of, optimizer), 3, 0, 3)
