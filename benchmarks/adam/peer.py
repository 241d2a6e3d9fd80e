# Adam over 100 million parameters in PyTorch. SPDX-License-Identifier: Apache-2.0
#   peer.py THREADS FOLDER TENSORS
import json
import sys
import time

import torch

threads, tensors = int(sys.argv[1]), int(sys.argv[3])
torch.set_num_threads(threads)
parameters = [torch.rand(100_000_000 // tensors).requires_grad_() for _ in range(tensors)]
for parameter in parameters:
    parameter.grad = torch.rand_like(parameter)
best = {}
for form in ({"fused": True}, {"foreach": True}):
    optimizer = torch.optim.Adam(parameters, lr=1e-3, **form)
    optimizer.step()
    times = []
    for _ in range(3):
        began = time.perf_counter()
        optimizer.step()
        times.append(time.perf_counter() - began)
    best[next(iter(form))] = min(times) * 1e3
    del optimizer
form = min(best, key=best.get)
print(json.dumps({"unit": "ms", "value": best[form], "form": form}))
