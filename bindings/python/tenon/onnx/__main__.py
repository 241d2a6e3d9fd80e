"""Converts between model files and ONNX, for `tenon model convert`: python -m tenon.onnx IN OUT

One of the two files ends with ".onnx". Standard output gets a line "lost: ..." for each thing that OUT cannot hold.
Errors end with the exit codes of the program (docs/formats.md).

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import sys

import onnx

import tenon
from tenon._model import layer as layers
from tenon.onnx import _graph

_EXIT = {tenon.error.BadDataError: 65, tenon.error.NotFoundError: 66, tenon.error.OutOfMemoryError: 71,
         tenon.error.FileError: 74, tenon.error.RefusedError: 77}  # fmt: skip
_SHOWN = 20


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _read(source: str, target: str) -> list[str]:
    """Writes a model file of one of ONNX. Returns what it lacks."""
    parameters = tenon.onnx.load(source)
    parameters.save(target, parameters.outputs)
    model = onnx.load(source, load_external_data=False)
    kept = "tenon."  # what save wrote of names, load reads
    metadata = [each.key for each in model.metadata_props if not each.key.startswith(kept)]
    lost = [f"metadata: {_listed(metadata)}"] if metadata else []
    if model.doc_string or model.graph.doc_string:
        lost.append("descriptions")
    types = {onnx.TensorProto.DataType.Name(each.data_type).lower() for each in model.graph.initializer}
    if other := sorted(types & {"float16", "bfloat16", "double"}):
        lost.append(f"element types, which are float32 now: {_listed(other)}")
    read = {name for node in _graph.load(source).nodes for name in node.outputs}
    unread = [node.name or node.output[0] for node in model.graph.node if node.output and not read.intersection(node.output)]
    return [*lost, f"nodes that no output needs: {_listed(unread)}"] if unread else lost


def _write(source: str, target: str) -> list[str]:
    """Writes a model of ONNX of a model file. Returns what it lacks."""
    parameters = tenon.parameters.load(source)
    outputs = [each for each in parameters.outputs if each.role == "layer"]
    if not outputs:
        raise tenon.error.UnsupportedError(f"{source}: all outputs are costs and metrics, which ONNX does not have", source)
    tenon.onnx.save(outputs, parameters, target)
    left = [each.name for each in parameters.outputs if each.role != "layer"]
    lost = [f"outputs that are costs or metrics: {_listed(left)}"] if left else []
    needed = layers.in_order(outputs)
    written = {each["name"] for layer in needed for each in layer.parameters}
    if unwritten := [name for name in parameters if name not in written]:
        lost.append(f"parameters of other outputs: {_listed(unwritten)}")
    training = [each.name for each in needed if each.type != "data" and _trains(each)]
    if training:
        lost.append(f"what training alone reads of layers (dropout, multipliers): {_listed(training)}")
    names = [slot for slot, texts in parameters.names().items() if texts]
    if names and not onnx.load(target, load_external_data=False).metadata_props:
        lost.append(f"names of integers: {_listed(names)}")
    return lost


def _trains(layer: tenon.layer.Layer) -> bool:
    attributes = layer.describe()["attributes"]
    return layer.type == "dropout" or any(key == "drop_rate" or key.startswith("param.") for key in attributes)


def main(source: str, target: str) -> int:
    """Converts, prints what is lost, and returns the exit code."""
    try:
        lost = _read(source, target) if source.endswith(".onnx") else _write(source, target)
    except tenon.error.Error as failure:
        print(failure, file=sys.stderr)
        return next((code for type, code in _EXIT.items() if isinstance(failure, type)), 78)
    print("".join(f"lost: {line}\n" for line in lost), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
