"""As many bytes without any format: what the disk and the system allow. SPDX-License-Identifier: Apache-2.0"""
import numpy as np

from support import model_file


def save(tensors, path):
    with open(path, "wb") as file:
        file.writelines(tensors.values())


def load(path):
    values = np.fromfile(path, np.float32).reshape(model_file.LAYERS, -1)
    return {f"layer{number}.weight": row for number, row in enumerate(values)}


model_file.measure(load, save)
