"""A topology with its parameters as a model of ONNX. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tenon import error
from tenon._base import check as _check
from tenon._base.arrays import allows_nan
from tenon._model import layer as layers
from tenon._model.layer import Layer, LayerLike
from tenon.onnx import _names, _values, _write_dense, _write_formula, _write_images, _write_recurrent, _write_select
from tenon.onnx._emit import Emit, Item, Writer, Written, model
from tenon.onnx._values import Refusal, plain
from tenon.parameters import ParameterSet

_FIELDS = (_write_dense, _write_formula, _write_images, _write_recurrent, _write_select)
WRITERS: dict[str, Writer] = {type: writer for field in _FIELDS for type, writer in field.WRITERS.items()}
_SAMPLES = "samples"


def save(
    outputs: LayerLike | Iterable[LayerLike],
    parameters: ParameterSet,
    path: str | os.PathLike[str],
    channels_first: bool = True,
    *,
    nan: str = "refuse",
) -> None:
    """Writes the inference of a topology as a model of ONNX, operators of version 17.

    The first dimension of inputs and outputs is that of the samples, of any number. Images are [samples, channels,
    space...] in the file, unless channels_first is False, which keeps the arrays as Tenon has them. UnsupportedError lists
    every layer that is not supported; then the file is not written. The names of classes and columns that the parameters
    know are metadata of the file, which load reads (docs/python-models.md). nan: "allow" writes values of parameters that
    are not finite, which are an error otherwise.
    """
    file = _check.path(path, "path", "save")
    _check.instance(parameters, ParameterSet, "a set of parameters", "parameters", "save")
    chosen = layers.as_layers(outputs)
    layers.make(chosen)
    made = _Writing(chosen, parameters, channels_first)
    if made.problems:
        raise error.UnsupportedError(
            f"{file}: unsupported layers: {len(made.problems)}; nothing was written:\n  " + "\n  ".join(made.problems),
            file,
            "onnx",
        )
    if not allows_nan(nan, "save"):
        parameters.require_finite(layers.make(chosen), "save")
    to = _check.destination(file, "save")
    written = model(made.emit, made.inputs, made.outputs, "tenon")
    for key, value in _names.metadata(parameters).items():
        written.metadata_props.add(key=key, value=value)
    try:
        onnx.save(written, to)
    except OSError as failure:
        raise error.FileError(f"{file}: {failure}", file, file) from failure


class _Writing:
    """The graph of a topology: inputs and outputs as ONNX describes them, and the layers that have no operators."""

    def __init__(self, chosen: Sequence[Layer], parameters: ParameterSet, first: bool) -> None:
        self.emit = Emit(WRITERS)
        self.problems: list[str] = []
        self.inputs: list[Any] = []
        self._parameters = parameters
        self._values: dict[tuple[str, int], Written] = {}
        order = layers.in_order(chosen)
        images = _images(order) if first else set()
        for layer in order:
            self._add(layer, images)
        self.outputs: list[Any] = []
        for layer in [] if self.problems else chosen:
            self._add_output(layer, first)

    def _add(self, layer: Layer, images: set[str]) -> None:
        name = layer.name
        given = [self._values.get(_key(each)) for each in layer.inputs]
        try:
            if layer.type == "data":
                self._values[name, 0] = self._input(layer, name in images)
            elif layer.type not in WRITERS or layer.role != "layer":
                raise Refusal("unsupported type")
            else:
                item = self._item(layer)
                inputs = [value for value in given if value is not None]
                if len(inputs) == len(given):
                    self._write(layer, item, inputs)
        except Refusal as refusal:
            self.problems.append(f'layer "{name}" ({layer.type}): {refusal}')

    def _write(self, layer: Layer, item: Item, inputs: Sequence[Written]) -> None:
        outputs = [layer.output(number) for number in range(layer._made().info()[5])]
        kept = _write_select.OF_INTEGERS.get(item.type, ())
        if item.type in _write_select.MOVING and outputs[0].dtype.kind in "iub":
            kept = (0,)
        if any(number in kept and (value.scale != 1 or value.offset) for number, value in enumerate(inputs)):
            raise Refusal("reads integers that have a scale, as they are")
        given = [value if number in kept else self.emit.floats(value) for number, value in enumerate(inputs)]
        results = self.emit.write_all(item, given)
        for number, (output, value) in enumerate(zip(outputs, results, strict=True)):
            whole = output.dtype.kind in "iub" and value.numbers is None
            self._values[layer.name, number] = replace(value, dtype=str(output.dtype) if whole else "float32")

    def _item(self, layer: Layer) -> Item:
        attributes = layer.describe()["attributes"]
        start = len(attributes.get("parameter_name", layer.name)) + 1
        values = {}
        for each in layer.parameters:
            if each["name"] not in self._parameters:
                raise Refusal(f'the set has no parameter "{each["name"]}"')
            values[each["name"][start:]] = self._parameters.read(each["name"])
        return Item(layer.name, layer.type, attributes, values, _sizes(layer.output(0)))

    def _input(self, layer: Layer, image: bool) -> Written:
        sizes = _sizes(layer)
        if not layer.shape or layer.shape[0] != _SAMPLES:
            raise Refusal(f"has the shape {list(layer.shape)}; a sample of dense numbers is needed")
        order = _values.channels_first(1 + len(sizes)) if image else plain(1 + len(sizes))
        dims: list[str | int | None] = [_SAMPLES, *(sizes[axis - 1] for axis in order[1:])]
        name = self.emit.free(layer.name)
        self.emit.first = self.emit.first or name
        type, dtype = layer.data_types[layer.name], "float32" if layer.dtype.kind == "f" else str(layer.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), dims))
        return Written(name, order, sizes, dtype=dtype, scale=type.scale, offset=type.offset)

    def _add_output(self, layer: Layer, first: bool) -> None:
        value = self._values[_key(layer)]
        if value.numbers is not None:
            self.problems.append(f'layer "{layer.name}" ({layer.type}): an output must depend on the inputs')
            return
        keeps = first and not value.flat and value.order == _values.channels_first(len(value.order))
        value = value if keeps else self.emit.plain(value)
        dims: list[str | int | None] = [_SAMPLES, *(value.sizes[axis - 1] for axis in value.order[1:])]
        # A name of its own: an output must not be an input, nor be stated twice.
        name = self.emit.node("Identity", [value.name], f"{layer.name}.output")
        dtype = helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype))
        self.outputs.append(helper.make_tensor_value_info(name, dtype, dims))


def _key(layer: Layer) -> tuple[str, int]:
    """Returns a layer's name, and which of its outputs it stands for."""
    return layer.name, int(layer._made().info()[3])


def _sizes(layer: Layer) -> tuple[int, ...]:
    if any(not isinstance(size, int) for size in layer.shape[1:]):
        raise Refusal(f"has the shape {list(layer.shape)}; the sizes of a sample must be known")
    return tuple(layer.shape[1:])


def _images(order: Sequence[Layer]) -> set[str]:
    """Returns the data layers whose channels come first in the file: those that layers of images read as they are."""
    return {each.name for each in order if each.type == "data" and len(each.shape) > 2 and _reaches(each.name, order)}


def _reaches(name: str, order: Sequence[Layer]) -> bool:
    reached = {name}
    for layer in order:
        if reached.intersection(each.name for each in layer.inputs):
            if layer.type in _write_images.IMAGE_TYPES:
                return True
            if layer.shape == layer.inputs[0].shape:
                reached.add(layer.name)
    return False
