"""Row 13 for LeNet-5 in PyTorch. SPDX-License-Identifier: Apache-2.0"""
import torch

from support import lenet_torch, peer

values = lenet_torch.parameters(trained=False)
x = lenet_torch.images(1)
with torch.inference_mode():
    peer.mean_seconds(1000, lambda: lenet_torch.logits(values, x))
    times = peer.single_calls(5000, lambda: lenet_torch.logits(values, x))
    y = lenet_torch.logits(values, x)
peer.report(**times, loss=float(y[0, 0]) - float(y[0, 1]))
