"""Rows 15 and 16 in PyTorch. SPDX-License-Identifier: Apache-2.0"""
import torch
from torch.nn import functional

from support import peer, torch_peer  # noqa: F401 (it sets the number of threads)

model = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), fused=True)
functional.cross_entropy(model(torch.full((128, 784), 0.5)), torch.full((128,), 3)).backward()
optimizer.step()
peer.report(seconds=0)
