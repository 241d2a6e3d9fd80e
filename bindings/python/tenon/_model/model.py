"""Models: a topology and its parameters, known by the output layer. Finding, joining and connecting them.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tenon import _core, error
from tenon._base import host as _host
from tenon._model import layer as layers
from tenon._model.layer import Layer
from tenon.parameters import ParameterSet


def parameter_names(outputs: Iterable[Layer]) -> list[str]:
    """Returns the names of the parameters that the outputs depend on, buffers not included."""
    declared = _host.host().core.declare([each._made() for each in outputs])
    return [entry["name"] for entry in declared.entries() if not entry["buffer"]]


def attach(outputs: Iterable[Layer], parameters: ParameterSet) -> None:
    """Makes the set that of the outputs and of all layers that they depend on."""
    for layer in _expression(outputs):
        layer._model = parameters


def parameters_of(outputs: Sequence[Layer], seed: int = 0) -> ParameterSet:
    """Returns one set for the outputs: that of their layers where there is one, else a new one.

    Where their layers have several sets, or parameters are missing, these sets become one: its values are those of the
    sets, of equal names those of the first; what is missing is drawn with the seed. All machines that use one of the
    sets use the joined one from then on, and so do the sets themselves.
    """
    models: list[ParameterSet | None] = [each._model for each in _expression(outputs)]
    found = list({id(each): each for each in models if each is not None}.values())
    missing = [name for name in parameter_names(outputs) if not found or name not in found[0]]
    if not found or missing or len({id(each.core) for each in found}) > 1:
        of = [*outputs, *(each for part in found for each in part.outputs)]
        joined = ParameterSet(_host.host().core.parameters([each._made() for each in of], seed), of)
        for part in reversed(found):
            joined.copy_from(part, partial=True)
        joined.take_the_place_of(found)
        found = found or [joined]
    attach(outputs, found[0])
    return found[0]


def _expression(outputs: Iterable[Layer]) -> list[Layer]:
    """Returns the layers of an expression, outputs first: of a file's topology only its outputs, and no data layers,
    which models may have in common."""
    order: list[Layer] = []
    done: set[int] = set()
    stack = list(outputs)[::-1]
    while stack:
        layer = stack.pop()
        if id(layer) not in done:
            done.add(id(layer))
            if layer.type != "data":
                order.append(layer)
            stack.extend(reversed(layer._inputs))
    return order


def connect(output: Layer, sources: Mapping[str, Layer]) -> Layer:
    """Returns the output of the same layers, with the same parameters, fed by other layers in place of data layers.

    sources: {data layer: layer}. Layers that depend on none of these data layers stay as they are.
    """
    made: dict[str, Layer | None] = dict(sources)  # by name; None: does not depend on the sources
    stack = [output._made()]
    while stack:
        core = stack[-1]
        name, type, _, _, count, _ = core.info()
        ports = [core.input(number) for number in range(count)]
        inputs = [each for each in ports if each is not None]
        waiting = [each for each in inputs if each.info()[0] not in made]
        if name in made:
            stack.pop()
        elif waiting:
            stack.extend(waiting)
        elif all(made[each.info()[0]] is None for each in inputs):
            made[name] = None
        else:
            given = [None if each is None else _output(each, made[each.info()[0]]) for each in ports]
            made[name] = Layer(type, given, core.attributes(), name)
    return _output(output._made(), made[output.name])


def _output(core: object, rebuilt: Layer | None) -> Layer:
    """Returns the layer that takes the place of a handle: itself, or the same output of the rebuilt layer."""
    old = Layer._wrap(core)
    if rebuilt is None:
        return old
    number, outputs = old._core.info()[3], old._core.info()[5]
    return rebuilt.output(number) if outputs > 1 and rebuilt.name == old.name else rebuilt


def entry_of(earlier: Layer, later: Layer) -> str:
    """Returns the data layer of the later output that takes the earlier output: the only one of its type and shape."""
    types = layers.data_types([later])
    own = layers.data_types([earlier])
    shape, floats, dtype = earlier.shape[1:], earlier.dtype.kind == "f", earlier.dtype.name
    fitting = [
        name
        for name, type in types.items()
        if name not in own and type.shape == shape and type.storage == _core.DENSE
        and (type.dtype.startswith("float") if floats else type.dtype == dtype)
    ]  # fmt: skip
    if len(fitting) != 1:
        listed = ", ".join(f'"{name}" ({type})' for name, type in types.items())
        raise error.InvalidError(
            f'output "{earlier.name}" {list(shape)} fits {len(fitting)} data layers of output "{later.name}": {listed}'
            f'; say which, as compose(..., connect={{"{next(iter(types))}": layer}})',
            "compose",
            later.name,
        )
    return fitting[0]
