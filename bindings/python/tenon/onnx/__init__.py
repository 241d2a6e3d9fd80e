"""Models of ONNX: load reads one as layers with their parameters, save writes one.

    parameters = tenon.onnx.load("resnet18.onnx")
    tenon.infer(parameters.outputs, parameters, images)
    tenon.onnx.save(score, parameters, "mine.onnx")

Needs the package onnx of PyPI: pip install tenon[onnx].

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

try:
    import onnx as _onnx  # noqa: F401
except ImportError as _failure:
    raise ImportError("tenon.onnx needs the package onnx of PyPI: pip install onnx", name="onnx") from _failure

from tenon.onnx._load import load
from tenon.onnx._save import save

__all__ = ["load", "save"]
