"""Row 10 in PyTorch: query, key and value in one product, attention fused. SPDX-License-Identifier: Apache-2.0"""
import torch
from torch.nn import functional

from support import torch_peer

batch, length, heads, size = 8, 256, 6, 384


def weight(name, inputs, outputs):
    return torch_peer.tensor(f"{name}.weight", (inputs, outputs))


def norm(name):
    return [torch_peer.tensor(f"{name}.{part}", (size,)) for part in ("scale", "shift")]


qkv = torch.cat([weight(name, size, size) for name in ("query", "key", "value")], 1)
joined, up, down = weight("joined", size, size), weight("up", size, 4 * size), weight("down", 4 * size, size)
first, second = norm("first"), norm("second")
values = [value.requires_grad_() for value in (qkv, joined, up, down, *first, *second)]
x = torch_peer.feed(torch_peer.on_host("x", (batch * length, size)))
target = torch_peer.feed(torch_peer.on_host("target", (batch * length, size)))


def loss_of():
    parts = functional.layer_norm(x, (size,), *first) @ qkv
    query, key, value = parts.view(batch, length, 3, heads, size // heads).permute(2, 0, 3, 1, 4)
    mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    attended = torch.addmm(x, mixed.transpose(1, 2).reshape(batch * length, size), joined)
    bent = functional.gelu(functional.layer_norm(attended, (size,), *second) @ up, approximate="tanh")
    return functional.mse_loss(torch.addmm(attended, bent, down), target, reduction="sum") / batch


optimizer = torch_peer.adam(values)
torch_peer.measure(torch_peer.training_step(loss_of, optimizer), 3, 2, 10)
