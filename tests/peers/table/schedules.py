"""Schedules of the learning rate against torch.optim.lr_scheduler. SPDX-License-Identifier: Apache-2.0"""
from rows import updater

SCHEDULER = "torch.optim.lr_scheduler"


def schedule(kind, keys, torch, **options):
    attributes = {"learning_rate": 0.5, "schedule.type": kind, **{f"schedule.{key}": keys[key] for key in keys}}
    return updater("sgd", attributes, "torch.optim.SGD(p, 0.5)", schedule=torch, **options)


# Not one_cycle: its first step is PyTorch's before a step of the scheduler.
ROWS = [
    schedule("step", {"steps": 3, "rate": 0.5}, f"{SCHEDULER}.StepLR(optimizer, 3, 0.5)"),
    schedule("multi_step", {"milestones": [2, 5], "rate": 0.5}, f"{SCHEDULER}.MultiStepLR(optimizer, [2, 5], 0.5)"),
    schedule("exponential", {"steps": 1, "rate": 0.9}, f"{SCHEDULER}.ExponentialLR(optimizer, 0.9)"),
    schedule("inverse", {"steps": 2}, f"{SCHEDULER}.LambdaLR(optimizer, lambda n: 1 / (1 + n / 2))"),
    schedule("linear", {"steps": 5, "start": 0.25, "end": 0.75}, f"{SCHEDULER}.LinearLR(optimizer, 0.25, 0.75, 5)"),
    schedule("polynomial", {"steps": 5, "power": 2}, f"{SCHEDULER}.PolynomialLR(optimizer, 5, 2)"),
    schedule("cosine", {"steps": 8, "end": 0.2}, f"{SCHEDULER}.CosineAnnealingLR(optimizer, 8, 0.1)"),
    schedule("cosine_restarts", {"steps": 2, "multiplier": 2, "end": 0.2},
             f"{SCHEDULER}.CosineAnnealingWarmRestarts(optimizer, 2, 2, 0.1)"),
    schedule("cyclic", {"steps": 5, "rise": 0.4, "start": 0.2},
             f"{SCHEDULER}.CyclicLR(optimizer, 0.1, 0.5, 2, 3, cycle_momentum=False)"),
    schedule("cyclic", {"steps": 5, "rise": 0.4, "start": 0.2, "mode": "triangular2"},
             f"{SCHEDULER}.CyclicLR(optimizer, 0.1, 0.5, 2, 3, 'triangular2', cycle_momentum=False)"),
    schedule("cyclic", {"steps": 5, "start": 0.2, "mode": "exponential", "rate": 0.9 ** 5},
             f"{SCHEDULER}.CyclicLR(optimizer, 0.1, 0.5, 2.5, None, 'exp_range', 0.9, cycle_momentum=False)"),
    # PyTorch multiplies rate by rate, here 1 at the milestone, which is the end of the first phase and the beginning
    # of the second.
    schedule("chained", {"phases": ["up", "down"],
                         "up.type": "linear", "up.length": 4, "up.steps": 4, "up.start": 0.25, "up.end": 1,
                         "down.type": "exponential", "down.steps": 1, "down.rate": 0.9},
             f"{SCHEDULER}.SequentialLR(optimizer, [{SCHEDULER}.LinearLR(optimizer, 0.25, 1, 4), "
             f"{SCHEDULER}.ExponentialLR(optimizer, 0.9)], [4])"),
    schedule("product", {"parts": ["one", "two"], "one.type": "step", "one.steps": 3, "one.rate": 0.5,
                         "two.type": "exponential", "two.steps": 1, "two.rate": 0.9},
             f"{SCHEDULER}.ChainedScheduler([{SCHEDULER}.StepLR(optimizer, 3, 0.5), "
             f"{SCHEDULER}.ExponentialLR(optimizer, 0.9)])"),
]
