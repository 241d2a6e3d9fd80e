"""Row 8 in PyTorch. SPDX-License-Identifier: Apache-2.0"""
import numpy as np
import torch
from torch import nn
from torch.nn import functional

from support import torch_peer

batch, tables, size = 2048, 26, 64
table = nn.Embedding.from_pretrained(torch_peer.tensor("table.weight", (-1, size)), freeze=False, sparse=True)
dense = torch_peer.feed(torch_peer.on_host("dense", (batch, 13)))
ids = torch_peer.feed(torch_peer.on_host("ids", (batch, tables), np.int64))
bottom = torch_peer.layers(("bottom1", 13, 512), ("bottom2", 512, 256), ("bottom3", 256, size))
top = torch_peer.layers(("top1", size + (tables + 1) ** 2, 512), ("top2", 512, 256), ("score", 256, 1))


def chain(x, values):
    for weight, bias in zip(values[::2], values[1::2], strict=True):
        x = functional.relu(torch.addmm(bias, x, weight))
    return x


def loss_of():
    x = chain(dense, bottom)
    vectors = torch.cat([x[:, None], table(ids)], 1)
    products = torch.bmm(vectors, vectors.transpose(1, 2)).reshape(batch, -1)
    x = chain(torch.cat([x, products], 1), top[:4])
    return functional.softplus(-torch.addmm(top[5], x, top[4])).mean()


optimizer = torch.optim.SGD([table.weight, *bottom, *top], lr=0.01)
torch_peer.measure(torch_peer.training_step(loss_of, optimizer), 5, 5, 20)
