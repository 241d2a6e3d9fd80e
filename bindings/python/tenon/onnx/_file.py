"""Files of ONNX, with the data beside them. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from typing import Any

import onnx
from onnx import inliner

from tenon import error

_MOST_NODES = 1_000_000  # after the functions of a model took the place of their calls


def read(source: Any) -> tuple[Any, str]:
    """Returns a model with all its data, and what it is called in messages. Functions of the model are written out."""
    folder = None
    if isinstance(source, onnx.ModelProto):
        model, path = source, "the model"
    elif isinstance(source, bytes):
        model, path = _parsed(lambda: onnx.load_from_string(source), "the model"), "the model"
    elif isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        model = _parsed(lambda: onnx.load(path, load_external_data=False), path)
        folder = os.path.realpath(os.path.dirname(path))
    else:
        raise error.InvalidError(f"a model is a path, bytes or an onnx.ModelProto, not {source!r}", "onnx", "source")
    if not model.graph.node and not model.graph.output:
        raise error.BadDataError(f"{path}: not a model of ONNX: the graph is empty", path, path)
    for tensor in _tensors([model.graph, *model.functions]):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            _fill(tensor, path, folder)
    if model.functions:
        _require_few_nodes(model, path)
        model = _parsed(lambda: inliner.inline_local_functions(model), path)
    return model, path


def _parsed(read: Any, path: str) -> Any:
    try:
        return read()
    except FileNotFoundError as failure:
        raise error.NotFoundError(f"{path}: file not found: {failure.filename}", path, path) from None
    except OSError as failure:
        raise error.FileError(f"{path}: {failure}", path, path) from failure
    except Exception as failure:  # of protobuf and others
        raise error.BadDataError(f"{path}: not a model of ONNX: {failure}", path, path) from failure


def _tensors(graphs: Sequence[Any]) -> Iterator[Any]:
    """Returns all tensors of graphs and functions, and of what is inside of their nodes."""
    stack = list(graphs)
    while stack:
        graph = stack.pop()
        yield from getattr(graph, "initializer", ())
        for sparse in getattr(graph, "sparse_initializer", ()):
            yield from (sparse.values, sparse.indices)
        for attribute in (each for node in graph.node for each in node.attribute):
            yield from (attribute.t, *attribute.tensors)
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)
            if attribute.HasField("g"):
                stack.append(attribute.g)
            stack.extend(attribute.graphs)


def _fill(tensor: Any, path: str, folder: str | None) -> None:
    """Reads the data of a tensor that lie in a file beside that of the model."""
    entries = {each.key: each.value for each in tensor.external_data}
    location = entries.get("location", "")
    what = f'{path}: the data of tensor "{tensor.name}" are in the file "{location}"'
    if folder is None:
        raise error.BadDataError(f"{what}; a model that is not read from a path has no folder of such files", path, location)
    try:
        file = os.path.realpath(os.path.join(folder, location))
        if os.path.commonpath([folder, file]) != folder:
            raise error.BadDataError(f"{what}, which is not in the folder of the model, {folder}", path, location)
        if not os.path.exists(file):
            raise error.NotFoundError(f"{what}: file not found: {file}", path, location)
        if not os.path.isfile(file):
            raise error.BadDataError(f"{what}, which is not a file", path, location)
        size = os.path.getsize(file)
        offset = int(entries.get("offset") or 0)
        length = int(entries.get("length") or size - offset)
        most = _most_bytes(tensor)
        if length > most:
            raise error.BadDataError(f"{what}, {length} bytes; {list(tensor.dims)} has at most {most}", path, location)
        if offset < 0 or length < 0 or offset + length > size:
            raise error.BadDataError(f"{what} of {size} bytes, from {offset} on, {length} bytes", path, location)
        with open(file, "rb") as opened:
            opened.seek(offset)
            tensor.raw_data = opened.read(length)
    except error.Error:
        raise
    except ValueError as failure:
        raise error.BadDataError(f"{what}: {failure}", path, location) from failure
    except MemoryError:
        raise error.OutOfMemoryError(f"{what}, {length} bytes: out of memory", path, location) from None
    except OSError as failure:
        raise error.FileError(f"{what}: {failure}", path, location) from failure
    tensor.data_location = onnx.TensorProto.DEFAULT
    del tensor.external_data[:]


def _most_bytes(tensor: Any) -> int:
    """Returns the most bytes that the data of a tensor have: elements are not larger than complex numbers of fp64."""
    try:
        size = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    except (KeyError, TypeError, ValueError):
        size = 16
    return math.prod([max(int(each), 0) for each in tensor.dims]) * int(size)


def _require_few_nodes(model: Any, path: str) -> None:
    """Refuses functions that call themselves, or that many nodes would take the place of: each call may hold many."""
    known = {(each.domain, each.name): each for each in model.functions}
    counts: dict[tuple[str, str], int | None] = {}

    def count(nodes: Sequence[Any]) -> int:
        found = 0
        for node in nodes:
            key = (node.domain, node.op_type)
            found += called(key) if key in known else 1
            graphs = [graph for each in node.attribute for graph in (each.g, *each.graphs)]
            found += sum(count(graph.node) for graph in graphs)
        return found

    def called(key: tuple[str, str]) -> int:
        if key not in counts:
            counts[key] = None
            counts[key] = count(known[key].node)
        found = counts[key]
        if found is None:
            raise error.BadDataError(f'{path}: the function "{key[1]}" calls itself', path, key[1])
        return found

    try:
        total = count(model.graph.node)
    except RecursionError:
        raise error.BadDataError(f"{path}: its functions call one another too deeply", path, path) from None
    if total > _MOST_NODES:
        message = f"{path}: its functions hold {total} nodes where they are called; at most {_MOST_NODES} are read"
        raise error.BadDataError(message, path, path)
