"""Row 9 in PyTorch; mode "ragged": as a packed sequence. SPDX-License-Identifier: Apache-2.0"""
import itertools

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from support import peer, torch_peer

WORDS = 10_000
RAGGED = peer.MODE == "ragged"
SIZE = 256 if RAGGED else 650


def trained(name, rows, columns):
    """A matrix of Tenon, [inputs, outputs], as PyTorch has it."""
    return nn.Parameter(torch_peer.tensor(name, (rows, columns)).t().contiguous())


table = nn.Parameter(torch_peer.tensor("table.weight", (WORDS, SIZE)))
lstm = nn.LSTM(SIZE, SIZE, num_layers=2)
for number, name in enumerate(("first", "second")):
    setattr(lstm, f"weight_ih_l{number}", trained(f"{name}.weight", SIZE, 4 * SIZE))
    setattr(lstm, f"weight_hh_l{number}", trained(f"{name}.recurrent_weight", SIZE, 4 * SIZE))
    nn.init.zeros_(getattr(lstm, f"bias_ih_l{number}"))
    nn.init.zeros_(getattr(lstm, f"bias_hh_l{number}")).requires_grad_(False)  # the second of two biases that add
logits = nn.Linear(SIZE, WORDS)
logits.weight = trained("logits.weight", SIZE, WORDS)
nn.init.zeros_(logits.bias)
lstm.to(peer.DEVICE), logits.to(peer.DEVICE)
SPARSE = not torch_peer.GRAPH  # gradients of the table

offsets = np.fromfile(f"{peer.FOLDER}/offsets", np.int64)


def texts(name):
    ids = torch_peer.on_host(name, (-1,), np.int64)
    return [ids[begin:end] for begin, end in itertools.pairwise(offsets)]


if RAGGED:
    word, following = (nn.utils.rnn.pack_sequence(texts(name), enforce_sorted=False).to(peer.DEVICE)
                       for name in ("word", "next"))
else:
    word, following = (torch_peer.feed(torch.stack(texts(name), 1)) for name in ("word", "next"))  # [steps, texts]


def loss():
    if RAGGED:
        vectors = word._replace(data=functional.embedding(word.data, table, sparse=SPARSE))
        return functional.cross_entropy(logits(lstm(vectors)[0].data), following.data)
    output, _ = lstm(functional.embedding(word, table, sparse=SPARSE))
    return functional.cross_entropy(logits(output).flatten(0, 1), following.flatten())


parameters = [table, *lstm.parameters(), *logits.parameters()]
optimizer = torch.optim.SGD([value for value in parameters if value.requires_grad], lr=1.0)
torch_peer.measure(torch_peer.training_step(loss, optimizer), 3, 1, 5)
