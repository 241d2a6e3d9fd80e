"""Row 11 in PyTorch, fused. SPDX-License-Identifier: Apache-2.0"""
import torch

from support import peer, torch_peer

tensors = int(peer.MODE or 1)
parameters = [torch.rand(50_000_000 // tensors, device=peer.DEVICE).requires_grad_() for _ in range(tensors)]
for parameter in parameters:
    parameter.grad = torch.rand_like(parameter)
optimizer = torch.optim.Adam(parameters, lr=1e-3, fused=True)
times = [peer.mean_seconds(1, optimizer.step, torch_peer.wait) for _ in range(10)]
peer.report(seconds=min(times[1:]))
