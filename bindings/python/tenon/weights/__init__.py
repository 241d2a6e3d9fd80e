"""Weights of other frameworks for a topology of one's own: names and layouts become those of Tenon.

    tenon.weights.load_pytorch(parameters, "lenet.safetensors")
    tenon.weights.load_keras(parameters, "vgg.safetensors", {"fc_0": "dense"})

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from tenon import error
from tenon._base import check as _check
from tenon.parameters import ParameterSet
from tenon.weights import _tensors
from tenon.weights._layouts import KERAS, PYTORCH, Framework, Mismatch
from tenon.weights._topology import Part, Topology, parts

__all__ = ["load_keras", "load_pytorch"]

Source = Union[str, "os.PathLike[str]", Mapping[str, Any]]
Names = Mapping[str, str] | Sequence[str] | str | None


def load_pytorch(parameters: ParameterSet, source: Source, names: Names = None) -> dict[str, str]:
    """Loads the weights of a module of PyTorch into the topologies of a set. Returns {layer: module}.

    source: a file of safetensors, or a state dict. names: {layer: module} for those whose names differ, such as
    {"conv": "features.0"}; a list of modules in the order of the layers that have parameters; or "order": the modules of
    a state dict in its order. The layout follows from the topology, the permutation of vectors that were images before
    they were flattened included. InvalidError lists every name and shape that does not fit; then nothing is loaded.
    """
    return _load(PYTORCH, parameters, source, names)


def load_keras(parameters: ParameterSet, source: Source, names: Names = None) -> dict[str, str]:
    """Loads the weights of a model of Keras into the topologies of a set. Returns {layer: layer of Keras}.

    source: a file of safetensors, or a dict, {weight.path: weight.numpy() for weight in model.weights}. names: as of
    load_pytorch. InvalidError lists every name and shape that does not fit; then nothing is loaded.
    """
    return _load(KERAS, parameters, source, names)


def _load(framework: Framework, parameters: ParameterSet, source: Source, names: Names) -> dict[str, str]:
    component = f"load_{framework.name.lower()}"
    _check.instance(parameters, ParameterSet, "a set of parameters", "parameters", component)
    parameters.require_writable()
    tensors, called = _tensors.read(source, component)
    modules = _tensors.modules(tensors, framework.separator)
    for name in list(modules):
        modules[name] = {last: values for last, values in modules[name].items() if last not in framework.ignored}
        if not modules[name]:
            del modules[name]
    topology = Topology(parameters.outputs)
    own: list[Part] = []
    unknown: list[Part] = []
    for part in parts(topology.order):
        (own if part.type in framework.layouts else unknown).append(part)
    if isinstance(names, str) and names == "order" and _tensors.is_file(source):
        raise error.InvalidError(
            f"{called}: a file of safetensors is sorted by name, not in the order of layers; give a list of the modules",
            component,
            "names",
        )
    pairs, problems = _pairs(own, modules, names, component)
    problems += [f'layer "{part.name}" ({part.type}): unknown layout of {framework.name} for the type; known: '
                 f"{', '.join(framework.layouts)}" for part in unknown]  # fmt: skip
    values: dict[str, NDArray[Any]] = {}
    for part, module in pairs:
        problems += _convert(framework, topology, part, module, modules[module], parameters, values)
    if problems:
        raise error.InvalidError(
            f"{called} does not fit the topology; nothing was loaded:\n  " + "\n  ".join(problems), component, called
        )
    for name, converted in values.items():
        parameters[name] = converted
    return {part.name: module for part, module in pairs}


def _pairs(
    own: list[Part], modules: Mapping[str, Any], names: Names, component: str
) -> tuple[list[tuple[Part, str]], list[str]]:
    """Returns the layers with their modules, and what is left over on both sides."""
    if isinstance(names, str) and names != "order":
        _check.refuse(names, 'a dict, a list of modules, or "order"', "names", component)
    if names == "order":
        names = list(modules)
    if names is None or isinstance(names, Mapping):
        given = dict(names or {})
        problems = [f'names: unknown layer "{name}"{error.suggestion(name, [each.name for each in own])}'
                    for name in given if all(name != each.name for each in own)]  # fmt: skip
        wanted = [given.get(each.name, each.name) for each in own]
    else:
        wanted, problems = _check.texts(names, "names", component), []
        if len(wanted) != len(own):
            layers = ", ".join(each.name for each in own)
            problems.append(f"{len(wanted)} modules are given for {len(own)} layers with parameters: {layers}")
    pairs = list(zip(own, wanted, strict=False))
    for part, module in pairs:
        if module not in modules:
            near = error.suggestion(module, modules)
            problems.append(f'layer "{part.name}" ({part.type}): missing module "{module}"{near}')
    taken = {module for _, module in pairs}
    problems += [
        f'unused module "{name}": {_shapes(tensors)}' for name, tensors in modules.items() if name not in taken
    ]
    return [(part, module) for part, module in pairs if module in modules], problems


def _shapes(tensors: Mapping[str, NDArray[Any]]) -> str:
    return ", ".join(f"{name} {list(values.shape)}" for name, values in tensors.items())


def _convert(
    framework: Framework,
    topology: Topology,
    part: Part,
    module: str,
    tensors: Mapping[str, NDArray[Any]],
    parameters: ParameterSet,
    values: dict[str, NDArray[Any]],
) -> list[str]:
    """Adds the converted tensors of a module to the values. Returns what does not fit."""
    layouts = framework.layouts[part.type]
    what = f'layer "{part.name}" ({part.type})'
    problems, filled = [], set()
    for last, tensor in tensors.items():
        theirs = f"{module}{framework.separator}{last}" if module else last
        if last not in layouts or layouts[last][0] not in part.parameters:
            problems.append(f"{what}: unused tensor {theirs} {list(tensor.shape)}")
            continue
        ours, convert = layouts[last]
        name = part.parameters[ours]
        filled.add(ours)
        shape = parameters.shape(name)
        try:
            converted = convert(topology, part, tensor, shape)
        except Mismatch as mismatch:
            problems.append(f"{what}: {theirs} {list(tensor.shape)} {mismatch} for {name} {list(shape)}")
            continue
        if converted.shape != shape:
            problems.append(
                f"{what}: {theirs} {list(tensor.shape)} becomes {list(converted.shape)}; {name} is {list(shape)}"
            )
        values[name] = np.ascontiguousarray(converted, np.float32)
    missing = [each for each in part.parameters if each not in filled]
    return problems + [f'{what}: module "{module}" lacks {part.parameters[each]}' for each in missing]
