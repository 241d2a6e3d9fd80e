# The same model and minibatches in PyTorch, from the parameters that bench_ranking wrote. SPDX-License-Identifier:
# Apache-2.0
#   peer.py THREADS FOLDER [sgd|adam|adagrad]
import json
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

threads, folder, updater = int(sys.argv[1]), sys.argv[2], (sys.argv[3:] or ["sgd"])[0]
torch.set_num_threads(threads)
batch, bag, size, classes, batches = 512, 20, 64, 1000, 8


def read(name, shape, dtype=np.float32):
    return torch.from_numpy(np.fromfile(f"{folder}/{name}", dtype).reshape(shape).copy())


table = nn.EmbeddingBag.from_pretrained(read("table.weight", (-1, size)), freeze=False, mode="sum", sparse=True)
dense = []
for name, inputs, outputs in (("first", size, 256), ("second", 256, 128), ("logits", 128, classes)):
    dense += [read(f"{name}.weight", (inputs, outputs)).requires_grad_(), read(f"{name}.bias", (outputs,)).requires_grad_()]
ids = read("ids", (batches, batch * bag), np.int64)
labels = read("labels", (batches, batch), np.int64)
offsets = torch.arange(0, batch * bag, bag)
if updater == "sgd":
    optimizers = [torch.optim.SGD(list(table.parameters()) + dense, lr=0.01)]
elif updater in ("adagrad", "rowwise_adagrad"):  # the nearest that the peer has
    optimizers = [torch.optim.Adagrad(list(table.parameters()) + dense, lr=0.01)]
else:
    optimizers = [torch.optim.SparseAdam(list(table.parameters()), lr=0.01), torch.optim.Adam(dense, lr=0.01, fused=True)]
done = 0


def steps(count):
    global done
    for _ in range(count):
        at = done % batches
        done += 1
        hidden = functional.relu(torch.addmm(dense[1], table(ids[at], offsets), dense[0]))
        hidden = functional.relu(torch.addmm(dense[3], hidden, dense[2]))
        loss = functional.cross_entropy(torch.addmm(dense[5], hidden, dense[4]), labels[at])
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
    return loss


loss = steps(24).item()
began = time.perf_counter()
steps(200)
print(json.dumps({"unit": "us/step", "value": (time.perf_counter() - began) * 1e6 / 200, "loss": loss}))
