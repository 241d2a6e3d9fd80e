"""Row 7 in PyTorch. SPDX-License-Identifier: Apache-2.0"""
import numpy as np
import torch
from torch import nn
from torch.nn import functional

from support import torch_peer

batch, batches, targets = 1024, 16, 6


def table(name):
    return nn.Embedding.from_pretrained(torch_peer.tensor(name, (-1, 100)), freeze=False, sparse=True)


near, far = table("centres.weight"), table("targets.weight")
centres = torch_peer.tensor("centres", (batches, batch, 1), np.int64)
others = torch_peer.tensor("targets", (batches, batch, targets), np.int64)
done = 0


def loss_of():
    global done
    at, done = done % batches, done + 1
    score = torch.matmul(near(centres[at]), far(others[at]).transpose(1, 2))[:, 0]
    return functional.softplus(-score[:, 0]).mean() + functional.softplus(score[:, 1:]).sum(1).mean()


optimizer = torch.optim.SGD([near.weight, far.weight], lr=3)
torch_peer.measure(torch_peer.training_step(loss_of, optimizer), 16, 16, 100)
