"""PyTorch's side of the benchmarks. SPDX-License-Identifier: Apache-2.0"""
import numpy as np
import torch

from support import peer

torch.set_num_threads(peer.THREADS)


def tensor(name, shape, dtype=np.float32, trained=False):
    return torch.from_numpy(peer.read(name, shape, dtype)).requires_grad_(trained)


def layers(*sizes):
    """Weight and bias of each (name, inputs, outputs)."""
    values = []
    for name, inputs, outputs in sizes:
        values += [tensor(f"{name}.weight", (inputs, outputs), trained=True),
                   tensor(f"{name}.bias", (outputs,), trained=True)]
    return values


def training_step(loss_of, *optimizers):
    """A function that makes one step and returns the loss before it."""
    if peer.MODE.endswith("compile"):
        loss_of = torch.compile(loss_of)

    def step():
        loss = loss_of()
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return loss

    return step


def measure(step, compared, warm_up, count):
    """Reports the loss after the steps that are compared, and the seconds of `count` steps after some more."""
    for _ in range(compared):
        loss = step()
    loss = loss.item()
    for _ in range(warm_up):
        step()
    peer.report(seconds=peer.mean_seconds(count, step), loss=loss)
