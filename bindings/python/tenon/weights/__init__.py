"""Weights of other frameworks for a topology of one's own: names and layouts become those of Tenon. Vectors of words.

    tenon.weights.load_pytorch(parameters, "lenet.safetensors")
    tenon.weights.load_keras(parameters, "vgg.safetensors", {"fc_0": "dense"})
    tenon.weights.load_vectors(parameters, "words", "glove.6B.100d.txt.gz", vocabulary)

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from tenon import _core, error
from tenon._base import check as _check
from tenon._base import host as _host
from tenon._base.arrays import plain
from tenon._model import layer as layers
from tenon.parameters import ParameterSet
from tenon.weights._dialects import FORMS, Tensor, Tensors, gathered, spread

__all__ = ["load_keras", "load_pytorch", "load_vectors", "save_pytorch"]

Source = Union[str, "os.PathLike[str]", Mapping[str, Any]]
Names = Mapping[str, str] | Sequence[str] | str | None
Part = tuple[str, str, bool, dict[str, str]]  # a layer's name and type, whether its layout is known, {last: parameter}
_TITLES = {"pytorch": "PyTorch", "keras": "Keras"}


def load_pytorch(parameters: ParameterSet, source: Source, names: Names = None) -> dict[str, str]:
    """Loads the weights of a module of PyTorch into the topologies of a set. Returns {layer: module}.

    source: a file of safetensors, the index of one in shards, a folder of either, or a state dict. names: {layer: module}
    for those whose names differ, such as {"conv": "features.0"}; a list of modules in the order of the layers that have
    parameters; or "order": the modules of a state dict in its order. The layout follows from the topology, the
    permutation of vectors that were images before they were flattened included. InvalidError lists every name and shape
    that does not fit; then nothing is loaded.
    """
    return _load("pytorch", parameters, source, names)


def load_keras(parameters: ParameterSet, source: Source, names: Names = None) -> dict[str, str]:
    """Loads the weights of a model of Keras into the topologies of a set. Returns {layer: layer of Keras}.

    source: a file of safetensors, or a dict, {weight.path: weight.numpy() for weight in model.weights}. names: as of
    load_pytorch. InvalidError lists every name and shape that does not fit; then nothing is loaded.
    """
    return _load("keras", parameters, source, names)


def save_pytorch(
    parameters: ParameterSet,
    path: str | os.PathLike[str] | None = None,
    names: Mapping[str, str] | None = None,
    form: str = "torch",
) -> dict[str, NDArray[Any]]:
    """Returns the state dict of PyTorch of the topologies of a set, and writes it to a file of safetensors.

    names: {layer: module} as of load_pytorch. form: "torch": recurrent and attention layers are nn.LSTM, GRU, RNN and
    MultiheadAttention; "gpt2", "bert": as models of Hugging Face, below "transformer" and "bert", name them.
    load_pytorch reads what this writes. InvalidError for layers of an unknown layout; then nothing is written.
    """
    _check.instance(parameters, ParameterSet, "a set of parameters", "parameters", "save_pytorch")
    if form not in FORMS:
        _check.refuse(form, ", ".join(map(repr, FORMS)), "form", "save_pytorch")
    layout = _core.Layout("pytorch", layers.make(parameters.outputs))
    state: dict[str, NDArray[Any]] = {}
    types: dict[str, str] = {}
    for number, (name, type, known, held) in enumerate(layout.parts()):
        module = dict(names or {}).get(name, name)
        if not known:
            raise error.InvalidError(f'layer "{name}" ({type}): unknown layout of PyTorch for the type', "save_pytorch", name)
        types[module] = type
        missing = set(held.values())
        for last in ("weight", "bias", "running_mean", "running_var", "weight_ih", "weight_hh", "candidate_bias"):
            place = layout.move(number, last, [])
            if place is None or place.to not in missing:
                continue
            shape = parameters.shape(place.to)
            axes = layout.move(number, last, list(shape)).axes  # type: ignore[union-attr]
            theirs = [shape[axes.index(axis)] for axis in range(len(shape))]
            missing.discard(place.to)
            state[f"{module}.{last}"] = _moved_back(layout.move(number, last, theirs), parameters[place.to])
        if missing:
            raise error.InvalidError(f'layer "{name}" ({type}): PyTorch has no place for {min(missing)}', "save_pytorch", name)
    result = spread(state, types, form)
    if path is not None:
        _write(_check.path(path, "path", "save_pytorch"), result)
    return result


def _moved_back(move: Any, values: NDArray[Any]) -> NDArray[Any]:
    """Undoes _moved."""
    values = np.array(values)
    if move.columns:
        values[..., move.columns] = values.copy()
    if move.rows:
        values[move.rows] = values.copy()
    return values.transpose(np.argsort(move.axes)) if move.axes else values


def _write(path: str, state: Mapping[str, NDArray[Any]]) -> None:
    """Writes float32 tensors as safetensors: a length of 8 bytes, a header of JSON and the numbers."""
    entries, at = {}, 0
    for name, values in state.items():
        entries[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    header = json.dumps({"__metadata__": {"format": "pt"}, **entries}).encode()
    header += b" " * (-len(header) % 8)
    with _check.files(path, "save_pytorch"), open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for values in state.values():
            file.write(values.astype("<f4").tobytes())


def load_vectors(
    parameters: ParameterSet, name: str, path: str | os.PathLike[str], words: Iterable[str] | None = None
) -> list[str]:
    """Gives an embedding the vectors of words. Returns the words without a vector, which keep their values.

    name: of the parameter, [words, size], or of its layer. path: vectors of word2vec (text or binary), GloVe or fastText
    (.vec, .bin), gzipped or not; the file is read once, in memory that does not depend on its length. words: those of the
    rows, in order; by default the names of the integers that the embedding reads, which a set has after a training.
    InvalidError for vectors of another size, or if no word has one; then nothing is changed.
    """
    _check.instance(parameters, ParameterSet, "a set of parameters", "parameters", "load_vectors")
    parameters.require_writable()
    file = _check.path(path, "path", "load_vectors")
    tables = [each for each in parameters if each == name or each.startswith(f"{name}.")]
    tables = [each for each in tables if len(parameters.shape(each)) == 2]
    if len(tables) != 1:
        raise error.InvalidError(
            f'load_vectors: name "{name}": expected one parameter [words, size], got {len(tables)}'
            + error.suggestion(str(name), list(parameters)),
            "load_vectors",
            "name",
        )
    table, (rows, size) = tables[0], parameters.shape(tables[0])
    texts = _words_of(parameters, table) if words is None else _check.texts(list(words), "words", "load_vectors")
    if not 0 < len(texts) <= rows:
        raise error.InvalidError(f"load_vectors: words: expected 1 to {rows}, got {len(texts)}", "load_vectors", "words")
    found = _core.set_vectors(parameters.core, table, file, texts, [rows, size])
    if not any(found):
        raise error.InvalidError(f"{file}: has none of the {len(texts)} words", "load_vectors", file)
    return [word for word, known in zip(texts, found, strict=True) if not known]


def _words_of(parameters: ParameterSet, table: str) -> list[str]:
    names, data = parameters.names(), _core.data_of(layers.make(parameters.outputs), table)
    known = [names[each] for each in data if names.get(each)]
    if not known:
        raise error.InvalidError(
            f'load_vectors: the integers with which "{table}" is read, of {", ".join(data) or "no data layer"}, have no names: '
            "give words",
            "load_vectors",
            "words",
        )
    return known[0]


class _Tensors:
    """Named tensors of others: of files, read when they are needed, or of dicts."""

    def __init__(self, source: Any, component: str) -> None:
        self.is_file = not isinstance(source, Mapping)
        self.shapes: dict[str, list[int]] = {}
        self._arrays: dict[str, NDArray[Any]] = {}
        self._rewritten: Tensors = {}
        if self.is_file:
            self.name = _check.path(source, "source", component)
            self._file = _core.read_tensors(_host.host().core, self.name)
            entries = self._file.entries()
            self._numbers = {name: number for number, (name, _) in enumerate(entries)}
            self.shapes = dict(entries)
            return
        self.name = "the state"
        for name, values in source.items():
            held = values.detach().cpu() if hasattr(values, "detach") else values  # of PyTorch, which may learn
            array = np.asarray(plain(held))
            if array.dtype.kind not in "biuf":
                raise error.InvalidError(f'tensor "{name}": expected numbers, got {array.dtype}', component, name)
            self._arrays[_check.text(name, "source", component)] = array
            self.shapes[name] = list(array.shape)

    def read(self, name: str) -> NDArray[Any]:
        """Returns the numbers of a tensor."""
        return self._rewritten[name].read() if name in self._rewritten else self._stored(name)

    def _stored(self, name: str) -> NDArray[Any]:
        return self._file.read(self._numbers[name]) if self.is_file else self._arrays[name]

    def rewrite(self, change: Callable[[Tensors], Tensors]) -> None:
        """Replaces the tensors by others that are computed of them."""
        given = {name: Tensor(shape, partial(self._stored, name), name) for name, shape in self.shapes.items()}
        changed = change(given)
        self._rewritten = {name: tensor for name, tensor in changed.items() if given.get(name) is not tensor}
        self.shapes = {name: tensor.shape for name, tensor in changed.items()}


def _load(framework: str, parameters: ParameterSet, source: Source, names: Names) -> dict[str, str]:
    component, title = f"load_{framework}", _TITLES[framework]
    _check.instance(parameters, ParameterSet, "a set of parameters", "parameters", component)
    parameters.require_writable()
    tensors = _Tensors(source, component)
    layout = _core.Layout(framework, layers.make(parameters.outputs))
    parts: list[Part] = layout.parts()
    if framework == "pytorch":
        of = dict(names) if isinstance(names, Mapping) else {}
        wanted = {of.get(part[0], part[0]) for part in parts}
        if names is not None and not isinstance(names, Mapping):  # "order", or a list
            wanted = {each for each in names if isinstance(each, str)} if not isinstance(names, str) else set()
        tensors.rewrite(lambda given: gathered(given, wanted))
    modules: dict[str, dict[str, str]] = {}  # {module: {last part of the name: tensor}}, in the order of the tensors
    for name in tensors.shapes:
        module, _, last = name.removesuffix(":0").rpartition("/" if framework == "keras" else ".")
        if not layout.ignores(last):
            modules.setdefault(module, {})[last] = name
    own = [number for number, part in enumerate(parts) if part[2]]
    if isinstance(names, str) and names == "order" and tensors.is_file:
        raise error.InvalidError(
            f"{tensors.name}: a file of safetensors is sorted by name, not in the order of layers; give a list of the modules",
            component,
            "names",
        )
    shapes = {module: _shapes(found, tensors) for module, found in modules.items()}
    pairs, problems = _pairs({parts[each][0]: parts[each][1] for each in own}, shapes, names, component)
    problems += [f'layer "{name}" ({type}): unknown layout of {title} for the type; known: '
                 f"{', '.join(layout.known_types())}" for name, type, known, _ in parts if not known]  # fmt: skip
    moves: dict[str, Any] = {}  # by tensor
    for number in own:
        if parts[number][0] in pairs:
            module = pairs[parts[number][0]]
            problems += _moves(layout, number, parts[number], module, modules[module], tensors, parameters, moves)
    if problems:
        raise error.InvalidError(
            f"{tensors.name} does not fit the topology; nothing was loaded:\n  " + "\n  ".join(problems),
            component,
            tensors.name,
        )
    values = [(move.to, _moved(move, tensors.read(name))) for name, move in moves.items()]
    for name, converted in values:
        parameters[name] = converted
    return pairs


def _pairs(own: Mapping[str, str], shapes: Mapping[str, str], names: Names, component: str) -> tuple[dict[str, str], list[str]]:
    """Returns the layers with their modules, and what is left over on both sides. own: {layer: type}; shapes: texts, by
    module."""
    if isinstance(names, str) and names != "order":
        _check.refuse(names, 'a dict, a list of modules, or "order"', "names", component)
    if names == "order":
        names = list(shapes)
    if names is None or isinstance(names, Mapping):
        given = dict(names or {})
        problems = [f'names: unknown layer "{name}"{error.suggestion(name, list(own))}' for name in given if name not in own]
        wanted = [given.get(each, each) for each in own]
    else:
        wanted, problems = _check.texts(names, "names", component), []
        if len(wanted) != len(own):
            problems.append(f"{len(wanted)} modules are given for {len(own)} layers with parameters: {', '.join(own)}")
    pairs = dict(zip(own, wanted, strict=False))
    problems += [
        f'layer "{layer}" ({own[layer]}): missing module "{module}"{error.suggestion(module, shapes)}'
        for layer, module in pairs.items()
        if module not in shapes
    ]
    taken = set(pairs.values())
    problems += [f'unused module "{name}": {text}' for name, text in shapes.items() if name not in taken]
    return {layer: module for layer, module in pairs.items() if module in shapes}, problems


def _shapes(module: Mapping[str, str], tensors: _Tensors) -> str:
    return ", ".join(f"{last} {tensors.shapes[name]}" for last, name in module.items())


def _moves(
    layout: Any,
    number: int,
    part: Part,
    module: str,
    found: Mapping[str, str],
    tensors: _Tensors,
    parameters: ParameterSet,
    moves: dict[str, Any],
) -> list[str]:
    """Adds how the tensors of a module become parameters. Returns what does not fit."""
    what = f'layer "{part[0]}" ({part[1]})'
    problems, filled = [], set()
    for last, name in found.items():
        theirs = f"{name.removesuffix(':0')} {tensors.shapes[name]}"
        move = layout.move(number, last, tensors.shapes[name])
        if move is None:
            problems.append(f"{what}: unused tensor {theirs}")
            continue
        filled.add(move.to)
        shape = list(parameters.shape(move.to))
        if move.mismatch:
            problems.append(f"{what}: {theirs} {move.mismatch} for {move.to} {shape}")
        elif move.shape != shape:
            problems.append(f"{what}: {theirs} becomes {move.shape}; {move.to} is {shape}")
        moves[name] = move
    missing = [each for each in part[3].values() if each not in filled]
    return problems + [f'{what}: module "{module}" lacks {each}' for each in missing]


def _moved(move: Any, values: NDArray[Any]) -> NDArray[Any]:
    values = values.reshape(move.sizes).transpose(move.axes)
    values = values[move.rows] if move.rows else values
    values = values[..., move.columns] if move.columns else values
    return np.ascontiguousarray(values, np.float32)
