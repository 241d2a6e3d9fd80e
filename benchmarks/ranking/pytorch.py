"""Row 6 in PyTorch; MODE as on Tenon's side (its nearest to rowwise_adagrad is Adagrad). SPDX-License-Identifier: Apache-2.0"""
import numpy as np
import torch
from torch import nn
from torch.nn import functional

from support import peer, torch_peer

batch, bag, batches = 512, 20, 8
table = nn.EmbeddingBag.from_pretrained(torch_peer.tensor("table.weight", (-1, 64)), freeze=False, mode="sum",
                                        sparse=True)
w1, b1, w2, b2, w3, b3 = dense = torch_peer.layers(("first", 64, 256), ("second", 256, 128), ("logits", 128, 1000))
ids = torch_peer.pinned(torch_peer.on_host("ids", (batches, batch * bag), np.int64))
labels = torch_peer.pinned(torch_peer.on_host("labels", (batches, batch), np.int64))
offsets = torch_peer.feed(torch.arange(0, batch * bag, bag))
sparse = list(table.parameters())
optimizers = {
    "adam": lambda: [torch.optim.SparseAdam(sparse, lr=0.01), torch.optim.Adam(dense, lr=0.01, fused=True)],
    "rowwise_adagrad": lambda: [torch.optim.Adagrad(sparse + dense, lr=0.01)],
}.get(peer.MODE, lambda: [torch.optim.SGD(sparse + dense, lr=0.01)])()
done = 0


def loss_of():
    global done
    at, done = done % batches, done + 1
    fed, wanted = (values[at].to(peer.DEVICE, non_blocking=True) for values in (ids, labels))
    hidden = functional.relu(torch.addmm(b1, table(fed, offsets), w1))
    hidden = functional.relu(torch.addmm(b2, hidden, w2))
    return functional.cross_entropy(torch.addmm(b3, hidden, w3), wanted)


torch_peer.measure(torch_peer.training_step(loss_of, *optimizers), 8, 16, 200)
