"""Updaters against torch.optim. SPDX-License-Identifier: Apache-2.0"""
from rows import updater

ROWS = [
    updater("sgd", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
            "torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.1)"),
    updater("adam", {"learning_rate": 0.1}, "torch.optim.Adam(p, 0.1)"),
    updater("adam", {"learning_rate": 0.1, "decoupled": True, "weight_decay": 0.1},
            "torch.optim.AdamW(p, 0.1, weight_decay=0.1)"),
    updater("adamax", {"learning_rate": 0.1}, "torch.optim.Adamax(p, 0.1)"),
    # A large momentum_decay makes the share of the momentum constant. PyTorch 1.13 counts the share of the next step
    # twice; 2 does not.
    updater("nadam", {"learning_rate": 0.1}, "torch.optim.NAdam(p, 0.1, momentum_decay=1e5)", since=2),
    updater("radam", {"learning_rate": 0.1}, "torch.optim.RAdam(p, 0.1)"),
    updater("adafactor", {"learning_rate": 0.1, "weight_decay": 0.1},
            "torch.optim.Adafactor(p, 0.1, weight_decay=0.1)", since=2),
    updater("adagrad", {"learning_rate": 0.1}, "torch.optim.Adagrad(p, 0.1)"),
    updater("adadelta", {"rho": 0.9}, "torch.optim.Adadelta(p)"),
    updater("rmsprop", {"learning_rate": 0.01, "rho": 0.9, "centered": True, "momentum": 0.5},
            "torch.optim.RMSprop(p, 0.01, alpha=0.9, centered=True, momentum=0.5)"),
]
