"""Row 4 in PyTorch, channels first or last, eager or compiled. SPDX-License-Identifier: Apache-2.0"""
import numpy as np
from torch.nn import functional

from support import lenet_torch, torch_peer

values = lenet_torch.parameters(trained=True)
x = lenet_torch.images(128)
labels = torch_peer.feed(torch_peer.on_host("labels", (128,), np.uint8).long())
optimizer = torch_peer.adam(list(values.values()))
step = torch_peer.training_step(lambda: functional.cross_entropy(lenet_torch.logits(values, x), labels), optimizer)
torch_peer.measure(step, 5, 20, 100)
