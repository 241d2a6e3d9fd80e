"""Generation in PyTorch: a step per id with states or a cache; the ids are compared before the time is taken.
SPDX-License-Identifier: Apache-2.0"""
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from support import peer, torch_peer

WORDS, LENGTH, HEADS = 1000, 128, 4
MODEL, SAMPLES, BEAM = peer.MODE.split("_")
SAMPLES, BEAM = int(SAMPLES), int(BEAM)
SIZE = 256 if MODEL == "lstm" else 128


def tensor(name, *shape):
    return torch_peer.tensor(name, shape)


def linear(name, inputs, outputs):
    layer = nn.Linear(inputs, outputs)
    layer.weight = nn.Parameter(tensor(f"{name}.weight", inputs, outputs).t().contiguous())
    layer.bias = nn.Parameter(tensor(f"{name}.bias", outputs))
    return layer


class Lstm:
    """Cells: nn.LSTM takes three times as long for one step, since oneDNN orders the weights anew in each call."""
    def __init__(self):
        self.cells = []
        for name in ("first", "second"):
            cell = nn.LSTMCell(SIZE, SIZE)
            for part, of in (("weight_ih", "weight"), ("weight_hh", "recurrent_weight")):
                setattr(cell, part, nn.Parameter(tensor(f"{name}.{of}", SIZE, 4 * SIZE).t().contiguous()))
            cell.bias_ih = nn.Parameter(tensor(f"{name}.bias", 4 * SIZE))
            nn.init.zeros_(cell.bias_hh)
            self.cells.append(cell)

    def begin(self, rows):
        self.states = [(torch.zeros(rows, SIZE), torch.zeros(rows, SIZE)) for _ in self.cells]

    def step(self, vectors, position):
        for k, cell in enumerate(self.cells):
            self.states[k] = cell(vectors, self.states[k])
            vectors = self.states[k][0]
        return vectors

    def reorder(self, rows):
        self.states = [tuple(part.index_select(0, rows) for part in state) for state in self.states]


class Block:
    def __init__(self, name):
        self.qkv = nn.Linear(SIZE, 3 * SIZE)  # query, key and value in one product
        parts = [linear(f"{name}.{part}", SIZE, SIZE) for part in ("query", "key", "value")]
        self.qkv.weight = nn.Parameter(torch.cat([part.weight for part in parts]))
        self.qkv.bias = nn.Parameter(torch.cat([part.bias for part in parts]))
        self.output = linear(f"{name}.output", SIZE, SIZE)
        self.up, self.down = linear(f"{name}up", SIZE, 4 * SIZE), linear(f"{name}down", 4 * SIZE, SIZE)
        self.norms = [[tensor(f"{name}{k}.{part}", SIZE) for part in ("scale", "shift")] for k in (1, 2)]

    def begin(self, rows):
        self.keys, self.values = (torch.empty(rows, HEADS, LENGTH, SIZE // HEADS) for _ in range(2))

    def step(self, x, position):
        parts = self.qkv(functional.layer_norm(x, (SIZE,), *self.norms[0])).view(-1, 3, HEADS, SIZE // HEADS)
        self.keys[:, :, position] = parts[:, 1]
        self.values[:, :, position] = parts[:, 2]
        seen = functional.scaled_dot_product_attention(
            parts[:, 0].unsqueeze(2), self.keys[:, :, :position + 1], self.values[:, :, :position + 1])
        x = x + self.output(seen.reshape(-1, SIZE))
        return x + self.down(functional.gelu(self.up(functional.layer_norm(x, (SIZE,), *self.norms[1]))))

    def reorder(self, rows, position):
        for cache in (self.keys, self.values):
            cache[:, :, :position + 1] = cache[:, :, :position + 1].index_select(0, rows)


class Transformer:
    def __init__(self):
        self.places = tensor("places.weight", LENGTH, SIZE)
        self.blocks = [Block(name) for name in ("a", "b")]

    def begin(self, rows):
        for block in self.blocks:
            block.begin(rows)

    def step(self, vectors, position):
        self.position = position
        x = vectors + self.places[position]
        for block in self.blocks:
            x = block.step(x, position)
        return x

    def reorder(self, rows):
        for block in self.blocks:
            block.reorder(rows, self.position)


model = Lstm() if MODEL == "lstm" else Transformer()
table, score = tensor("table.weight", WORDS, SIZE), linear("score", SIZE, WORDS)


def greedy():
    model.begin(SAMPLES)
    ids, sums = torch.arange(1, SAMPLES + 1), torch.zeros(SAMPLES)
    chosen = []
    for position in range(LENGTH):
        log_p = functional.log_softmax(score(model.step(table[ids], position)), 1)
        most, ids = log_p.max(1)
        sums += most
        chosen.append(ids)
    return torch.stack(chosen, 1), sums


def beams():
    rows = SAMPLES * BEAM
    model.begin(rows)
    ids = torch.arange(1, SAMPLES + 1).repeat_interleave(BEAM)
    sums = torch.full((SAMPLES, BEAM), -torch.inf)
    sums[:, 0] = 0  # all beams of a sample begin alike
    first = torch.arange(SAMPLES).unsqueeze(1) * BEAM
    texts = torch.empty(rows, 0, dtype=torch.int64)
    for position in range(LENGTH):
        log_p = functional.log_softmax(score(model.step(table[ids], position)), 1)
        all_sums = (sums.view(-1, 1) + log_p).view(SAMPLES, BEAM * WORDS)
        sums, places = all_sums.topk(BEAM, 1)
        parents = (first + places // WORDS).flatten()
        ids = (places % WORDS).flatten()
        model.reorder(parents)
        texts = torch.cat([texts.index_select(0, parents), ids.unsqueeze(1)], 1)
    return texts.view(SAMPLES, BEAM, -1)[:, 0], sums[:, 0]


write = greedy if BEAM == 1 else beams
with torch.inference_mode():
    texts, sums = write()
    same = (texts.numpy() == peer.read("ids", (SAMPLES, LENGTH), np.int64)).all(1).sum()
    # Sums of float32 in another order may turn a choice of a beam search, and all that follows it.
    if same < (SAMPLES if BEAM == 1 else 0.9 * SAMPLES):
        sys.exit(f"{same} of {SAMPLES} texts are those of Tenon")
    seconds = peer.mean_seconds(20 if SAMPLES == 1 else 5, write) / LENGTH
peer.report(seconds=seconds, loss=-sums.double().mean() / LENGTH)
