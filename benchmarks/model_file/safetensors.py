"""A model of 201 MB with the library of safetensors. SPDX-License-Identifier: Apache-2.0"""
from safetensors.numpy import load_file, save_file

from support import model_file

model_file.measure(load_file, save_file)
