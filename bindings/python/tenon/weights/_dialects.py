"""How modules of PyTorch and models of Hugging Face keep what are several parameters here, or one: recurrent layers, attention,
GPT-2 and BERT. What comes in gets the names of one Linear, Embedding or LayerNorm for each part of a layer.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenon import error

Array = NDArray[Any]
FORMS = ("torch", "gpt2", "bert")
_PARTS = ("query", "key", "value")
_RECURRENT = re.compile(r"(?:(.*)\.)?(weight|bias)_(ih|hh)_l(\d+)(_reverse)?")
_BERT = (("attention.self.", "attention."), ("attention.output.dense.", "attention.output."),
         ("cls.predictions.bias", "cls.predictions.decoder.bias"))  # fmt: skip
_TIED = {"lm_head.weight": "wte.weight", "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight"}


@dataclass
class Tensor:
    """A tensor that is computed of those of a state dict when it is read."""

    shape: list[int]
    read: Callable[[], Array]
    of: str  # the names in the state dict, for messages


Tensors = dict[str, Tensor]


def gathered(given: Mapping[str, Tensor], wanted: Set[str]) -> Tensors:
    """Returns tensors under the names of single modules. wanted: of those that a topology has; where the tensors have all of
    them, attention is taken as it is."""
    tensors = dict(given)
    if wanted <= {name.rpartition(".")[0] for name in tensors}:
        return _recurrent(tensors)
    if any(name.endswith("attn.c_attn.weight") for name in tensors):
        tensors = _gpt2(tensors)
    elif any(".attention.self.query." in name for name in tensors):
        tensors = _bert(tensors)
    _tie(tensors, wanted)
    return _recurrent(_attention(tensors))


def _part(tensor: Tensor, number: int, count: int, axis: int = 0) -> Tensor:
    """Returns one of the parts of equal size of a tensor."""
    if len(tensor.shape) <= axis or tensor.shape[axis] % count:
        raise error.InvalidError(
            f"{tensor.of} {tensor.shape}: dimension {axis} is no multiple of {count}", "load_pytorch", tensor.of
        )
    shape = list(tensor.shape)
    shape[axis] //= count
    return Tensor(shape, lambda: np.split(tensor.read(), count, axis)[number], tensor.of)


def _transposed(tensor: Tensor) -> Tensor:
    return Tensor(tensor.shape[::-1], lambda: tensor.read().T, tensor.of)


def _attention(tensors: Tensors) -> Tensors:
    """nn.MultiheadAttention: query, key and value below each other, or as matrices of their own."""
    result: Tensors = {}
    for name, tensor in tensors.items():
        module, _, last = name.rpartition(".")
        below = f"{module}." if module else ""
        if last in ("in_proj_weight", "in_proj_bias"):
            for number, part in enumerate(_PARTS):
                result[f"{below}{part}.{last[8:]}"] = _part(tensor, number, 3)
        elif (found := re.fullmatch(r"([qkv])_proj_weight", last)) is not None:
            result[f"{below}{_PARTS['qkv'.index(found[1])]}.weight"] = tensor
        elif module.endswith("out_proj") and any(
            f"{module[:-8]}{each}" in tensors for each in ("in_proj_weight", "q_proj_weight")
        ):
            result[f"{module[:-8]}output.{last}"] = tensor
        else:
            result[name] = tensor
    return result


def _gpt2(tensors: Tensors) -> Tensors:
    """GPT-2: matrices are transposed, query, key and value side by side; masks are stored, too."""
    result: Tensors = {}
    for full, tensor in tensors.items():
        name = full.removeprefix("transformer.")
        module, _, last = name.rpartition(".")
        if re.search(r"\.attn\.(masked_)?bias$", name):
            continue
        matrix = last == "weight" and module.rpartition(".")[2] in ("c_attn", "c_proj", "c_fc")
        if module.endswith("attn.c_attn"):
            for number, part in enumerate(_PARTS):
                piece = _part(tensor, number, 3, len(tensor.shape) - 1)
                result[f"{module[:-6]}{part}.{last}"] = _transposed(piece) if matrix else piece
            continue
        if module.endswith("attn.c_proj"):
            module = f"{module[:-6]}output"
        result[f"{module}.{last}"] = _transposed(tensor) if matrix else tensor
    return result


def _bert(tensors: Tensors) -> Tensors:
    result: Tensors = {}
    for full, tensor in tensors.items():
        name = full.removeprefix("bert.")
        for theirs, ours in _BERT:
            name = name.replace(theirs, ours)
        if not name.endswith("position_ids"):
            result.setdefault(name, tensor)
    return result


def _tie(tensors: Tensors, wanted: Collection[str]) -> None:
    """A matrix that is a table of words as well is stored once or twice, and is here one parameter or two."""
    for matrix, table in _TIED.items():
        module = matrix.rpartition(".")[0]
        if table not in tensors:
            continue
        if module in wanted:
            tensors.setdefault(matrix, tensors[table])
        elif matrix in tensors and np.array_equal(tensors[matrix].read(), tensors[table].read()):
            del tensors[matrix]


def _recurrent(tensors: Tensors) -> Tensors:
    """nn.LSTM, GRU and RNN: module "rnn" is that of a single layer, "rnn.l1" and "rnn.l0_reverse" are those of several."""
    groups: dict[str, dict[str, dict[str, Tensor]]] = {}  # by module and by layer
    result: Tensors = {}
    for name, tensor in tensors.items():
        found = _RECURRENT.fullmatch(name)
        if found is None:
            result[name] = tensor
        else:
            layer = groups.setdefault(found[1] or "", {}).setdefault(f"l{found[4]}{found[5] or ''}", {})
            layer[f"{found[2]}_{found[3]}"] = tensor
    for module, layers in groups.items():
        for number, parts in layers.items():
            below = ".".join(each for each in (module, number if len(layers) > 1 else "") if each)
            result.update({f"{below}.{last}": tensor for last, tensor in _gates(parts, below).items()})
    return result


def _gates(parts: Mapping[str, Tensor], module: str) -> Tensors:
    """Returns the tensors of a recurrent layer, its gates in the order of Tenon."""
    if not {"weight_ih", "weight_hh"} <= parts.keys() or len(parts["weight_hh"].shape) != 2:
        raise error.InvalidError(
            f'module "{module}": expected weight_ih and weight_hh, got {", ".join(parts)}', "load_pytorch", module
        )
    rows, size = parts["weight_hh"].shape
    is_gru = rows == 3 * size

    def ordered(tensor: Tensor) -> Array:
        """u is 1 - z, so that its sums have the other sign: reset, update, candidate to update, reset, candidate."""
        reset, update, candidate = np.split(tensor.read(), 3)
        return np.concatenate([-update, reset, candidate])

    def both() -> Array:
        """The two biases of an LSTM are one; of a GRU the candidate's second one stays apart."""
        first, second = parts["bias_ih"].read(), np.array(parts["bias_hh"].read())
        second[2 * size if is_gru else len(second) :] = 0
        total: Array = first + second
        return total

    result: Tensors = {}
    for last in ("weight_ih", "weight_hh"):
        tensor = parts[last]
        result[last] = Tensor(tensor.shape, partial(ordered, tensor), tensor.of) if is_gru else tensor
    if {"bias_ih", "bias_hh"} <= parts.keys():
        of = f"{parts['bias_ih'].of}, {parts['bias_hh'].of}"
        summed = Tensor(parts["bias_ih"].shape, both, of)
        result["bias"] = Tensor(summed.shape, partial(ordered, summed), of) if is_gru else summed
        if is_gru:
            result["candidate_bias"] = Tensor([size], lambda: parts["bias_hh"].read()[2 * size :], parts["bias_hh"].of)
    elif is_gru:  # without biases, of which the layer has one
        result["candidate_bias"] = Tensor([size], lambda: np.zeros(size, np.float32), "no bias")
    return result


def spread(state: Mapping[str, Array], types: Mapping[str, str], form: str) -> dict[str, Array]:
    """Returns the state dict of a form, of tensors under the names of single modules. types: {module: type of its layer}."""
    result: dict[str, Array] = dict(state)
    for module, type in types.items():
        if type in ("gru", "lstm", "rnn"):
            _spread_gates(result, module)
    heads = [
        each.removesuffix(".query")
        for each in types
        if each.endswith(".query") and f"{each.removesuffix('query')}output" in types
    ]
    for module in heads:
        for last in ("weight", "bias"):
            _spread_heads(result, module, last, form)
    if form == "gpt2":
        matrices = [each for each in result if re.search(r"\.(c_attn|c_proj|c_fc)\.weight$", each)]
        result.update({name: result[name].T for name in matrices})
    return {name: np.ascontiguousarray(values) for name, values in result.items()}


def _spread_heads(result: dict[str, Array], module: str, last: str, form: str) -> None:
    names = [f"{module}.{each}.{last}" for each in (*_PARTS, "output")]
    if names[0] not in result:
        return
    query, key, value, output = (result.pop(each) for each in names)
    if form == "bert":
        result.update({f"{module}.self.{each}.{last}": part for each, part in zip(_PARTS, (query, key, value), strict=True)})
        result[f"{module}.output.dense.{last}"] = output
        return
    if form == "torch" and not query.shape == key.shape == value.shape:  # as nn.MultiheadAttention with kdim
        result.update({f"{module}.{each}_proj_weight": part for each, part in zip("qkv", (query, key, value), strict=True)})
    else:
        result[f"{module}.{'c_attn.' if form == 'gpt2' else 'in_proj_'}{last}"] = np.concatenate([query, key, value])
    result[f"{module}.{'c_proj' if form == 'gpt2' else 'out_proj'}.{last}"] = output


def _spread_gates(result: dict[str, Array], module: str) -> None:
    found = re.fullmatch(r"(?:(.*)\.)?(l\d+(?:_reverse)?)", module)
    below, layer = (found[1] or "", found[2]) if found else (module, "l0")
    parts = {last: result.pop(f"{module}.{last}") for last in ("weight_ih", "weight_hh", "bias", "candidate_bias")
             if f"{module}.{last}" in result}  # fmt: skip
    if parts["weight_hh"].shape[0] == 3 * parts["weight_hh"].shape[1]:
        if "bias" in parts and "candidate_bias" not in parts:
            raise error.UnsupportedError(f'layer "{module}" (gru): PyTorch has reset_after=True alone', "save_pytorch", module)
        for last in ("weight_ih", "weight_hh", "bias"):
            if last in parts:
                update, reset, candidate = np.split(parts[last], 3)
                parts[last] = np.concatenate([reset, -update, candidate])
    for last, values in parts.items():
        if last in ("weight_ih", "weight_hh"):
            result[".".join(filter(None, (below, f"{last}_{layer}")))] = values
    if "bias" in parts:
        state = np.zeros_like(parts["bias"])
        if "candidate_bias" in parts:
            state[-len(parts["candidate_bias"]) :] = parts["candidate_bias"]
        result.update({".".join(filter(None, (below, f"bias_{last}_{layer}"))): values
                       for last, values in (("ih", parts["bias"]), ("hh", state))})  # fmt: skip
