# The same model and minibatch in PyTorch, from the parameters that bench_mlp wrote. SPDX-License-Identifier: Apache-2.0
#   peer.py THREADS FOLDER [eager|compile]
import json
import sys
import time

import numpy as np
import torch
from torch.nn import functional

threads, folder, mode = int(sys.argv[1]), sys.argv[2], (sys.argv[3:] or ["eager"])[0]
torch.set_num_threads(threads)


def read(name, shape, dtype=np.float32):
    return torch.from_numpy(np.fromfile(f"{folder}/{name}", dtype).reshape(shape).copy())


w1 = read("hidden.weight", (784, 128)).requires_grad_()
b1 = read("hidden.bias", (128,)).requires_grad_()
w2 = read("logits.weight", (128, 10)).requires_grad_()
b2 = read("logits.bias", (10,)).requires_grad_()
images = read("images", (128, 784), np.uint8)
labels = read("labels", (128,), np.uint8)
optimizer = torch.optim.Adam([w1, b1, w2, b2], lr=1e-3, fused=True)


def loss_of(images, labels):
    x = images.float() * (1.0 / 255)
    hidden = functional.relu(torch.addmm(b1, x, w1))
    return functional.cross_entropy(torch.addmm(b2, hidden, w2), labels.long())


if mode == "compile":
    loss_of = torch.compile(loss_of)


def steps(count):
    for _ in range(count):
        loss = loss_of(images, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return loss


loss = steps(100).item()
began = time.perf_counter()
steps(1000)
print(json.dumps({"unit": "us/step", "value": (time.perf_counter() - began) * 1e3, "loss": loss}))
