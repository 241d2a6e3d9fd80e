"""Models of PyTorch for make.py: small networks, with inputs of both signs. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Text(nn.Module):
    """Words, a recurrence, and the classes of a text."""

    def __init__(self, cell, **options):
        super().__init__()
        self.words = nn.Embedding(30, 6)
        self.cell = cell(6, 5, batch_first=True, **options)
        self.out = nn.Linear(10 if options.get("bidirectional") else 5, 3)

    def forward(self, ids):
        rows, _ = self.cell(self.words(ids))
        return self.out(rows[:, -1])


class States(nn.Module):
    """A recurrence that takes a first state and returns its last one."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(4, 5, num_layers=2, batch_first=True)
        self.first = nn.Linear(4, 10)

    def forward(self, x):
        h = self.first(x[:, 0]).reshape(-1, 2, 5).transpose(0, 1).contiguous()
        rows, (last, cell) = self.cell(x, (h, torch.tanh(h)))
        return rows.mean(1), last[-1] + cell[0]


class Bag(nn.Module):
    """The mean of words that are no padding."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(40, 8, padding_idx=0)
        self.out = nn.Linear(8, 2)

    def forward(self, ids):
        mask = (ids != 0).float().unsqueeze(-1)
        total = (self.words(ids) * mask).sum(1)
        return self.out(total / mask.sum(1).clamp(min=1))


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(20, 4), nn.Embedding(25, 4)
        self.bias = nn.Embedding(25, 1)
        self.top = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 1))

    def forward(self, user, item):
        a, b = self.user(user), self.item(item)
        score = (a * b).sum(-1, keepdim=True) + self.bias(item) + self.top(torch.cat([a, b], -1))
        return torch.sigmoid(score).squeeze(-1)


class Attention(nn.Module):
    """Attention written with einsum, with a mask of what comes later."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.register_buffer("later", torch.triu(torch.ones(6, 6), 1).bool())

    def forward(self, x):
        q, k, v = (each.reshape(-1, 6, 2, 4) for each in self.qkv(x).chunk(3, -1))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * 0.5
        scores = scores.masked_fill(self.later, -1e9).softmax(-1)
        return self.out(torch.einsum("bhqk,bkhd->bqhd", scores, v).reshape(-1, 6, 8))


class Patches(nn.Module):
    """A small vision transformer with a class token."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 8, 4, 4)
        self.token, self.place = nn.Parameter(torch.randn(1, 1, 8)), nn.Parameter(torch.randn(1, 5, 8))
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x):
        rows = self.patch(x).flatten(2).transpose(1, 2)
        rows = torch.cat([self.token.expand(x.shape[0], -1, -1), rows], 1) + self.place
        return self.head(self.norm(self.layer(rows))[:, 0])


class Upscaled(nn.Module):
    """A way down and up again: pooling, sizes, a joined shortcut, moved channels."""

    def __init__(self):
        super().__init__()
        self.down, self.deep, self.up = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(12, 8, 1)

    def forward(self, x):
        a = torch.relu(self.down(x))
        b = torch.relu(self.deep(functional.max_pool2d(a, 2)))
        b = functional.interpolate(b, scale_factor=2.0, mode="bilinear", align_corners=False)
        return functional.pixel_shuffle(self.up(torch.cat([a, b], 1)), 2)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 6, 3, 2, 1, bias=False), nn.BatchNorm2d(6), nn.ReLU6())
        self.thin = nn.Sequential(nn.Conv2d(6, 6, 3, 1, 1, groups=6, bias=False), nn.BatchNorm2d(6), nn.Hardswish(),
                                  nn.Conv2d(6, 6, 1))  # fmt: skip
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(6, 3, 1), nn.ReLU(), nn.Conv2d(3, 6, 1), nn.Hardsigmoid())
        self.out = nn.Linear(6, 4)

    def forward(self, x):
        x = self.stem(x)
        y = self.thin(x)
        return self.out((x + y * self.gate(y)).mean((2, 3)))


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.group, self.instance = nn.Conv2d(3, 8, 3), nn.GroupNorm(4, 8), nn.InstanceNorm2d(8, affine=True)
        self.prelu, self.out = nn.PReLU(8), nn.Linear(8 * 16, 2)

    def forward(self, x):
        return self.out(self.prelu(self.instance(self.group(self.conv(x)))).flatten(1))


class Lengths(nn.Module):
    """Lengths of vectors, tiles, what is larger, and rounded numbers."""

    def forward(self, x):
        unit = functional.normalize(x, dim=-1)
        most = torch.where(x > 0.3, x, unit.repeat(1, 1, 1))
        return torch.cat([most.amax(1), unit.norm(p=1, dim=1), torch.ceil(x[:, 0]), torch.round(x[:, 1] * 3),
                          x.logsumexp(1), torch.cumsum(x, -1)[:, 2]], -1)  # fmt: skip


class Pixels(nn.Module):
    """Bytes of a picture, standardized inside of the model."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([120.0, 110, 100]).reshape(3, 1, 1))
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, 2), nn.SiLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 3))

    def forward(self, x):
        return self.body((x.float() - self.mean) / 58.0).softmax(-1)


class Best(nn.Module):
    """A class number beside the probabilities."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 4))

    def forward(self, x):
        scores = self.body(x)
        return scores.argmax(-1), scores.softmax(-1), scores.topk(2, -1).values


class Expanded(nn.Module):
    """Pairs of rows, by expand, and chosen columns."""

    def __init__(self):
        super().__init__()
        self.score = nn.Linear(6, 1)

    def forward(self, x):
        a, b = x.unsqueeze(1).expand(-1, 4, -1, -1), x.unsqueeze(2).expand(-1, -1, 4, -1)
        pairs = self.score(torch.cat([a, b], -1)).squeeze(-1)
        return pairs.softmax(-1) @ x[..., [2, 0]]


def signal():
    return nn.Sequential(nn.Conv1d(2, 5, 3, padding=1, dilation=1), nn.LeakyReLU(0.1), nn.MaxPool1d(2), nn.Conv1d(5, 4, 3, 2),
                         nn.ELU(), nn.Flatten(), nn.Linear(16, 2))  # fmt: skip


def dense():
    return nn.Sequential(nn.Linear(6, 9), nn.LayerNorm(9), nn.GELU(), nn.Dropout(0.3), nn.Linear(9, 4), nn.Softplus(),
                         nn.Linear(4, 2), nn.LogSoftmax(-1))  # fmt: skip


def generator():
    return nn.Sequential(nn.Linear(5, 24), nn.Unflatten(1, (6, 2, 2)), nn.BatchNorm2d(6), nn.ReLU(),
                         nn.ConvTranspose2d(6, 4, 4, 2, 1), nn.Upsample(scale_factor=2), nn.Conv2d(4, 1, 3, padding=1),
                         nn.Tanh())  # fmt: skip


def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True), 2, enable_nested_tensor=False)


def ids(*shape, below=20):
    return torch.randint(0, below, shape)


def bytes_of(*shape):
    return torch.randint(0, 256, shape, dtype=torch.uint8)


# Name: the model, and what makes inputs of a number of samples.
MODELS = {
    "dense": (dense, lambda n: [torch.randn(n, 6)]),
    "signal": (signal, lambda n: [torch.randn(n, 2, 20)]),
    "residual": (Residual, lambda n: [torch.randn(n, 3, 12, 10)]),
    "norms": (Norms, lambda n: [torch.randn(n, 3, 6, 6)]),
    "upscaled": (Upscaled, lambda n: [torch.randn(n, 2, 8, 6)]),
    "generator": (generator, lambda n: [torch.randn(n, 5)]),
    "patches": (Patches, lambda n: [torch.randn(n, 3, 8, 8)]),
    "encoder": (encoder, lambda n: [torch.randn(n, 5, 8)]),
    "attention": (Attention, lambda n: [torch.randn(n, 6, 8)]),
    "lstm": (lambda: Text(nn.LSTM), lambda n: [ids(n, 7)]),
    "gru": (lambda: Text(nn.GRU, bidirectional=True), lambda n: [ids(n, 6)]),
    "rnn": (lambda: Text(nn.RNN, num_layers=2), lambda n: [ids(n, 5)]),
    "states": (States, lambda n: [torch.randn(n, 6, 4)]),
    "bag": (Bag, lambda n: [ids(n, 8, below=40)]),
    "recommender": (Recommender, lambda n: [ids(n), ids(n)]),
    "lengths": (Lengths, lambda n: [torch.randn(n, 4, 5)]),
    "pixels": (Pixels, lambda n: [bytes_of(n, 3, 10, 10)]),
    "best": (Best, lambda n: [torch.randn(n, 5)]),
    "expanded": (Expanded, lambda n: [torch.randn(n, 4, 3)]),
}  # fmt: skip
