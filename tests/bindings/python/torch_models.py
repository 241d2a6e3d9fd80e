"""Small models of PyTorch, as files of ONNX by its exporter, with their weights and what they compute.

torch_models.py FOLDER, by a Python that has PyTorch: NAME.onnx for one number of samples, NAME_any.onnx for any, and
NAME.npz: images, output, and the state dict in its order as state.0.NAME, state.1.NAME, ...

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

SAMPLES = 3


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 4, 5, padding=2), nn.Conv2d(4, 6, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(6 * 4 * 4, 20), nn.Linear(20, 12), nn.Linear(12, 10)

    def forward(self, x):
        x = functional.max_pool2d(torch.tanh(self.conv1(x)), 2)
        x = functional.avg_pool2d(torch.relu(self.conv2(x)), 2)
        x = x.view(x.size(0), -1)
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


class Residual(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer)
        self.conv2, self.norm2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer)
        self.short = nn.Identity()
        if stride > 1 or inner != outer:
            self.short = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        inner = self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(x)))))
        return torch.relu(inner + self.short(x))


class Reshape(nn.Module):
    def forward(self, x):
        return x.view(-1, 6, 4, 4)


def vgg():
    def convs(inner, outer):
        return [nn.Conv2d(inner, outer, 3, padding=1), nn.BatchNorm2d(outer), nn.ReLU(),
                nn.Conv2d(outer, outer, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]  # fmt: skip

    return nn.Sequential(*convs(3, 5), *convs(5, 6), nn.Flatten(), nn.Linear(6 * 3 * 4, 16), nn.BatchNorm1d(16), nn.ReLU(),
                         nn.Dropout(), nn.Linear(16, 10), nn.Softmax(1))  # fmt: skip


def resnet():
    return nn.Sequential(nn.Conv2d(3, 4, 7, 2, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
                         Residual(4, 4, 1), Residual(4, 6, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(6, 10))  # fmt: skip


def mlp():
    return nn.Sequential(
        nn.Flatten(), nn.Linear(60, 16), nn.BatchNorm1d(16), nn.ELU(), nn.Linear(16, 10), nn.LogSoftmax(1)
    )


def generator():
    return nn.Sequential(nn.Linear(8, 96), nn.BatchNorm1d(96), nn.ReLU(), Reshape(),
                         nn.ConvTranspose2d(6, 4, 3, 2, 1, output_padding=1, groups=2), nn.BatchNorm2d(4), nn.LeakyReLU(0.2),
                         nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
                         nn.Conv2d(4, 4, 3, groups=4), nn.PReLU(4), nn.Conv2d(4, 2, (3, 1), dilation=2), nn.Tanh())  # fmt: skip


MODELS = {"mlp": (mlp, (3, 4, 5)), "lenet": (LeNet, (1, 24, 24)), "vgg": (vgg, (3, 12, 16)), "resnet": (resnet, (3, 24, 32)),
          "generator": (generator, (8,))}  # fmt: skip


def drawn(make):
    """Returns a model whose normalisations are not those of a new one."""
    model = make()
    for each in model.modules():
        if isinstance(each, (nn.BatchNorm1d, nn.BatchNorm2d)):
            for values in (each.weight, each.bias, each.running_mean):
                nn.init.normal_(values)
            nn.init.uniform_(each.running_var, 0.5, 2)
        if isinstance(each, nn.PReLU):
            nn.init.uniform_(each.weight, 0.1, 0.5)
    return model.eval()


def main(folder):
    torch.manual_seed(0)
    new = {} if torch.__version__ < "2" else {"dynamo": False}
    for name, (make, sizes) in MODELS.items():
        model, images = drawn(make), torch.randn(SAMPLES, *sizes)
        for suffix, axes in (("", None), ("_any", {"image": {0: "samples"}})):
            torch.onnx.export(model, (images,), str(folder / f"{name}{suffix}.onnx"), input_names=["image"],
                              dynamic_axes=axes, opset_version=13, **new)  # fmt: skip
        state = {f"state.{i}.{key}": value.numpy() for i, (key, value) in enumerate(model.state_dict().items())}
        with torch.no_grad():
            np.savez(folder / f"{name}.npz", image=images.numpy(), output=model(images).numpy(), **state)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
