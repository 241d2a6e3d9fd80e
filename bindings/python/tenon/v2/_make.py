"""How layers of Paddle v2 are made of those of Tenon.

In v2 nothing states which sequences are of one length. Here data layers say so, so that those of sequences stay open until
a layer reads them together with others: then they have the lengths of those.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from tenon import _core, error
from tenon._model import layer as _layer
from tenon._model.layer import Data, Layer, as_layers
from tenon.data_type import DataType
from tenon.v2.activation import Base as Activation
from tenon.v2.attr import Extra, Param

Attr = Param | bool | None
seed: ContextVar[int] = ContextVar("tenon v2 seed", default=0)  # of first values


class Named(Layer):
    """A layer of tenon.v2. evaluators: the metrics of trainings that depend on it."""

    evaluators: tuple[Layer, ...] = ()


class Input(Data):
    """A data layer of tenon.v2. form: its type; image: height and width, where they are stated."""

    evaluators: tuple[Layer, ...] = ()

    def __init__(self, name: str, form: DataType, image: tuple[int, int] | None) -> None:
        super().__init__(name, None if form.levels == 1 else form)
        self.form, self.image = form, image


class Projection:
    """A part of a mixed layer: how one input is projected."""

    def __init__(self, kind: str, input: Any, size: int, attr: Attr = None) -> None:
        self.kind, self.input, self.size, self.attr = kind, input, size, attr

    def options(self, suffix: str) -> dict[str, Any]:
        """Returns the attributes of its weight."""
        return parameter(suffix, self.attr) if self.kind != "identity" else {}


def as_named(value: Any) -> Layer:
    """Returns a layer of one, or of the projection that stands for a mixed layer of it alone."""
    return mixed([value]) if isinstance(value, Projection) else _layer.as_layer(value)


def mixed(parts: Sequence[Projection], size: int = 0, bias: Attr = False, **common: Any) -> Layer:
    """Returns the sum of projections."""
    own: dict[str, Any] = {"size": size or parts[0].size, "projections": [each.kind for each in parts]}
    tables = [limit(each.input) for each in parts if each.kind == "table"]
    if tables:
        own["vocabularies"] = tables
    for number, each in enumerate(parts):
        own.update(each.options(f"weight_{number}" if number else "weight"))
    return made("mixed", [each.input for each in parts], {**own, **biased(bias)}, **common)


def limit(ids: Layer) -> int:
    """Returns how many ids a data layer may have."""
    if not isinstance(ids, Input) or ids.form.index_limit < 1:
        raise error.InvalidError(f'embedding of layer "{ids.name}": expected a data layer of integers', "v2", "input")
    return ids.form.index_limit


def joined(*given: Any) -> list[Layer]:
    """Returns layers that one layer reads: of open sequences with the lengths of the others."""
    inputs = [as_named(each) for each in given]
    pending = [each for each in _layer.walk(inputs) if isinstance(each, Input) and each._core is None]
    if pending:
        lengths = [found for each in inputs if (found := _lengths_of(each))]
        for each in pending:
            form = replace(each.form, sequence=lengths[0] if lengths else pending[0].name)
            each._core = _layer.defined_data(each.name, form, each._number)
        _layer.make(inputs)
    return inputs


def _lengths_of(layer: Layer) -> str:
    """Returns what the data layer is called whose lengths a layer's sequences have; "" if it has none, or is open."""
    if layer._core is None or not layer.shape or not str(layer.shape[0]).startswith("rows"):
        return ""
    for each in _core.data_layers([layer._core]):
        if Layer._wrap(each).shape[:1] == layer.shape[:1]:
            options = each.data_options()
            return str(options["sequence"] or options["name"])
    return ""


def listed(input: Any) -> list[Any]:
    """Returns the inputs of a layer: one, or several."""
    return list(input) if isinstance(input, (list, tuple)) else [input]


def parameter(suffix: str, attr: Attr) -> dict[str, Any]:
    """Returns the attributes of one parameter."""
    return {f"param.{suffix}.{key}": value for key, value in attr.options.items()} if isinstance(attr, Param) else {}


def weights(attr: Any, count: int) -> dict[str, Any]:
    """Returns the attributes of the weights of several inputs. attr: of all, or a list of one for each."""
    attrs = listed(attr) if isinstance(attr, (list, tuple)) else [attr] * count
    return {
        key: value
        for number, each in enumerate(attrs)
        for key, value in parameter(f"weight_{number}" if number else "weight", each).items()
    }


def biased(attr: Attr, suffix: str = "bias") -> dict[str, Any]:
    """Returns the attributes of a bias. attr: False: there is none."""
    return {"bias": attr is not False, **parameter(suffix, attr)}


def made(
    type: str,
    inputs: Sequence[Any],
    own: Mapping[str, Any] | None = None,
    name: str | None = None,
    act: Activation | None = None,
    layer_attr: Extra | None = None,
) -> Layer:
    """Returns a layer. act: None: the identity."""
    attributes = {**(own or {}), **(layer_attr.options if layer_attr else {})}
    given = joined(*inputs) if len(inputs) != 1 else [as_named(inputs[0])]
    if act is None or not act.type:
        return Named(type, given, attributes, name or "")
    if not act.attributes and act.type != "sequence_softmax":
        return Named(type, given, {**attributes, "act": act.type}, name or "")
    return Named(act.type, [Named(type, given, attributes)], act.attributes, name or "")


def topology(outputs: Any, extra: Any = None) -> list[Layer]:
    """Returns the outputs of a topology, extra layers, and the evaluators of what they depend on, all made."""
    given = [joined(each)[0] for each in as_layers(outputs) + (as_layers(extra) if extra else [])]
    seen: dict[int, Layer] = {}
    stack = list(given)
    while stack:
        layer = stack.pop()
        if id(layer) not in seen:
            seen[id(layer)] = layer
            stack.extend(layer._inputs)
    metrics = {each.name: each for layer in seen.values() for each in getattr(layer, "evaluators", ())}
    return [*given, *metrics.values()]
