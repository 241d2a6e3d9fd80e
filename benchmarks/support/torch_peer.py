"""PyTorch's side of the benchmarks. SPDX-License-Identifier: Apache-2.0"""
import re

import numpy as np
import torch

from support import peer

torch.set_num_threads(peer.THREADS)
GRAPH = "graph" in peer.WORDS  # steps are captured once, and replayed
# Products and convolutions in float32 throughout, unless the mode says otherwise; the fastest of several algorithms.
torch.backends.cuda.matmul.allow_tf32 = "tf32" in peer.WORDS
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True


feeds = []  # (on the host, on the device): copied at the beginning of each step, also of those that a graph replays


def on_host(name, shape, dtype=np.float32):
    """An array that Tenon's side wrote, as a tensor of the host."""
    return torch.from_numpy(peer.read(name, shape, dtype))


def tensor(name, shape, dtype=np.float32, trained=False):
    return on_host(name, shape, dtype).to(peer.DEVICE).requires_grad_(trained)


def pinned(values):
    """A tensor of the host in memory from which a GPU copies while the host goes on."""
    return values if peer.DEVICE == "cpu" else values.pin_memory()


def feed(values):
    """The tensor on the device that each step is fed with, from one of the host: Tenon uploads its feeds in each step,
    so the steps here do."""
    if peer.DEVICE == "cpu":
        return values
    feeds.append((pinned(values), values.to(peer.DEVICE)))
    return feeds[-1][1]


def layers(*sizes):
    """Weight and bias of each (name, inputs, outputs)."""
    values = []
    for name, inputs, outputs in sizes:
        values += [tensor(f"{name}.weight", (inputs, outputs), trained=True),
                   tensor(f"{name}.bias", (outputs,), trained=True)]
    return values


def adam(values):
    return torch.optim.Adam(values, lr=1e-3, fused=True, capturable=GRAPH)


def training_step(loss_of, *optimizers):
    """A function that makes one step and returns the loss before it. Modes with "compile": the loss and its gradients
    are compiled; with "graph": steps after the second are one CUDA graph."""
    if "compile" in peer.WORDS:
        loss_of = torch.compile(loss_of)

    def step():
        for host, device in feeds:
            device.copy_(host, non_blocking=True)
        loss = loss_of()
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return loss

    return captured(step, optimizers) if GRAPH else step


def captured(step, optimizers):
    """The same step; from its third call on as a CUDA graph. The first two choose algorithms and allocate states, in a
    stream of their own, as https://docs.pytorch.org/docs/stable/notes/cuda.html asks for."""
    calls, stream, graph, loss = 0, torch.cuda.Stream(), torch.cuda.CUDAGraph(), None

    def replayed():
        nonlocal calls, loss
        calls += 1
        if calls <= 2:
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                loss = step()
            torch.cuda.current_stream().wait_stream(stream)
            return loss
        if calls == 3:
            for optimizer in optimizers:  # so that the graph has gradients in memory of its own
                optimizer.zero_grad(set_to_none=True)
            with torch.cuda.graph(graph):
                loss = step()
        graph.replay()
        return loss

    return replayed


def library():
    """What computes the products of float32 on cpu, and what the convolutions and recurrences: "MKL 2024.2, oneDNN 3.13"."""
    if peer.DEVICE != "cpu":
        return None
    built = torch.__config__.show()
    mkl, dnn, blas = (re.search(pattern, built) for pattern in
                      (r"Math Kernel Library Version ([\d.]+)", r"MKL-DNN v([\d.]+)", r"BLAS_INFO=(\w+)|$"))
    products = f"MKL {mkl[1]}" if mkl else f"the BLAS \"{blas[1]}\""
    return products + (f", oneDNN {dnn[1]}" if dnn else "")


def wait():
    if peer.DEVICE != "cpu":
        torch.cuda.synchronize()


def measure(step, compared, warm_up, count):
    """Reports the loss after the steps that are compared, and the seconds of a step after some more: of `count` steps
    on cpu, else of as many as take the time that bench.h states."""
    for _ in range(compared):
        loss = step()
    loss = loss.item()
    if peer.DEVICE == "cpu":
        for _ in range(warm_up):
            step()
        seconds = peer.mean_seconds(count, step)
    else:
        peer.long_mean_seconds(peer.WARM_UP_SECONDS, step, wait)
        seconds = peer.long_mean_seconds(peer.MEASURED_SECONDS, step, wait)
    peer.report(library(), seconds=seconds, loss=loss)
