"""Scans: layers that run at each step of sequences.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from tenon import _core, error
from tenon._base import check as _check
from tenon._base import host as _host
from tenon._model import layer as _layer
from tenon._model.layer import Layer, LayerLike, as_layer

Start = int | Sequence[int] | Layer | Mapping[str, Any]


class Scan(NamedTuple):
    """What a scan leaves outside."""

    results: Any  # sequences, in the form in which the step returned them: a layer, or a tuple of layers
    last: dict[str, Layer]  # the last value of each memory, one for each sequence


def scan(
    step: Callable[..., Any],
    inputs: LayerLike | Iterable[LayerLike],
    memories: Mapping[str, Start] | None = None,
    reverse: bool = False,
    name: str = "",
) -> Scan:
    """Runs layers at each step of sequences.

    step takes the rows of the inputs by position and the memories by name, all of them layers with one value for each
    sequence. It returns what is collected at all steps, a layer, a tuple of them or None, and, if there are memories, a
    dict of what each is left for the next step:

        def step(x, h):
            h = tenon.layer.fc([x, h], size=8, act="tanh")
            return h, {"h": h}

        states, last = tenon.scan(step, words, {"h": 8})

    inputs: sequences of equal lengths, or sequences of sequences, of which a step sees the sub-sequence that belongs to
    it. memories: by name how each begins: with zeros of a size or shape; with a layer that has one value for each
    sequence; with {"shape": 8, "value": 1.0}; or, with {"shape": 8, "carry": True}, with what the minibatch before left
    for the sample of the same number, at first with zeros. Layers from outside are read at every step, simply by
    using them in step: one value for each sequence, or a whole sequence for each. reverse: from the last row to the
    first.
    """
    who = f'scan "{name}"' if name else "scan"
    starts = dict(_check.mapping(memories or {}, "memories", who))
    if not callable(step):
        _check.refuse(step, "a function", "step", who)
    with _Group(_rows(inputs), reverse, name) as group:
        made = {
            each: group.memory(start, f"{name}.{each}" if name else "", f'{who}: memory "{each}"')
            for each, start in starts.items()
        }
        returned = step(*group.rows, **made)
        results: Any = returned
        nexts: Mapping[str, Any] = {}
        if starts:
            if not (isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], Mapping)):
                _check.refuse(returned, "results and a dict of what each memory is left", "step", who)
            results, nexts = returned
        for each in nexts:
            if each not in made:
                known = ", ".join(made)
                message = f'{who}: step leaves a value in "{each}", which is no memory; known: {known}'
                raise error.InvalidError(message + error.suggestion(each, made), who, each)
        for each, memory in made.items():
            if each in nexts:  # a memory without a value is refused by the library
                group.next(memory, nexts[each])
        outside, last = group.end(results)
    return Scan(outside, dict(zip(made, last, strict=True)))


class StaticInput:
    """An input of recurrent_group that is the same at each step: a layer with one value for each sequence, or with a
    sequence for each, which the step sees whole."""

    def __init__(self, input: LayerLike, is_seq: bool = False, size: int | None = None) -> None:
        """is_seq, size: checked by nothing; they were needed in 2016."""
        self.input = as_layer(input)


class SubsequenceInput:
    """An input of recurrent_group of two levels: each step sees a sub-sequence. The layer itself does the same."""

    def __init__(self, input: LayerLike) -> None:
        self.input = as_layer(input)


def recurrent_group(
    step: Callable[..., Any],
    input: LayerLike | StaticInput | SubsequenceInput | Sequence[LayerLike | StaticInput | SubsequenceInput],
    reverse: bool = False,
    name: str = "",
) -> Any:
    """Runs layers at each step of sequences, as the configurations of 2016 describe it: step takes the inputs, of which
    a StaticInput is the same at each step, and makes its memories with tenon.memory. Returns the sequences of what step
    returns, a layer or a tuple."""
    alone = isinstance(input, (Layer, str, StaticInput, SubsequenceInput))
    listed: list[Any] = [input] if alone else list(input)  # type: ignore[arg-type]
    given = [each.input if isinstance(each, SubsequenceInput) else each for each in listed]
    with _Group(_rows([each for each in given if not isinstance(each, StaticInput)]), reverse, name) as group:
        rows = iter(group.rows)
        results = step(*[each.input if isinstance(each, StaticInput) else next(rows) for each in given])
        for memory in group.memories:
            memory._find(group.layers)
        outside, _ = group.end(results)
    return outside


class Memory(Layer):
    """A memory of a recurrent_group: at each step what the step before left."""

    __slots__ = ("_group", "_of")

    _group: _Group
    _of: str | None

    def set_input(self, layer: Layer) -> None:
        """States what each step leaves."""
        self._group.next(self, layer)
        self._of = None

    def _find(self, layers: Mapping[str, Layer]) -> None:
        if self._of is None:
            return
        name, _, number = self._of.partition(":") if self._of not in layers else (self._of, "", "")
        if name not in layers:
            raise error.InvalidError(
                f'memory "{self._of}": step makes no layer of that name{error.suggestion(name, layers)}', "memory", name
            )
        self.set_input(layers[name].output(int(number)) if number.isdigit() else layers[name])


def memory(
    name: str | None = None,
    size: int | None = None,
    boot_layer: LayerLike | None = None,
    shape: Sequence[int] | None = None,
    initial_value: float = 0.0,
    carry: bool = False,
) -> Memory:
    """A memory, inside of the step of a recurrent_group. name: the layer of the step that it remembers, "cell:1" for an
    output other than the first; None: set_input states it. It begins with boot_layer, which has one value for each
    sequence, with initial_value in all elements of `size` or `shape`, or, with carry, with what the minibatch before left
    for the sample of the same number, at first with zeros."""
    group = _present.get()
    if group is None:
        raise error.MisuseError("tenon.memory is for the step of a recurrent_group, and none is made now", "memory")
    who = f'memory "{name}"' if name else "memory"
    start: Start
    if boot_layer is not None:
        if carry:
            raise error.InvalidError(f"{who}: both boot_layer and carry are given; carried memories begin with zeros", who)
        if initial_value != 0:
            raise error.InvalidError(f"{who}: both boot_layer and initial_value are given; expected one", who)
        start = as_layer(boot_layer)
    elif size is None and shape is None:
        raise error.InvalidError(f"{who}: size is missing, or boot_layer", who, "size")
    else:
        start = {"shape": size if shape is None else shape, "value": initial_value, "carry": carry}
    made = Memory._wrap(group.memory(start, "", who)._core)
    assert isinstance(made, Memory)
    made._group, made._of = group, name
    group.memories.append(made)
    return made


def _rows(inputs: LayerLike | Iterable[LayerLike]) -> list[Layer]:
    if not isinstance(inputs, (Layer, str)) and not list(inputs := list(inputs)):
        raise error.InvalidError("a scan needs at least one sequence as its input", "scan", "inputs")
    return _layer.as_layers(inputs)


class _Group:
    """A scan that is being made."""

    def __init__(self, inputs: list[Layer], reverse: bool, name: str) -> None:
        cores = [each._made() for each in inputs]
        who = f'scan "{name}"'
        _layer.require_host(cores, _host.host().core, who)
        self._core = _core.begin_scan(cores, bool(reverse), _check.text(name, "name", who))
        self.rows = [Layer._wrap(self._core.input(number)) for number in range(len(cores))]
        self.memories: list[Memory] = []
        self.layers: dict[str, Layer] = {}  # made in the step, by name

    def __enter__(self) -> _Group:
        self._outer = _present.set(self)
        self._taken = _layer.made_layers.set(self.layers)
        return self

    def __exit__(self, *failure: object) -> None:
        _present.reset(self._outer)
        _layer.made_layers.reset(self._taken)

    def memory(self, start: Start, name: str, who: str) -> Layer:
        if isinstance(start, Layer):
            return Layer._wrap(self._core.memory_from(start._made(), name))
        value, carry = 0.0, False
        if isinstance(start, Mapping):
            unknown = [each for each in start if each not in ("shape", "value", "carry")]
            if unknown or "shape" not in start:
                _check.refuse(dict(start), '{"shape": ..., "value": ...}, or {"shape": ..., "carry": True}', "memories", who)
            value = _check.number(start.get("value", 0.0), "value", who)
            carry = _check.instance(start.get("carry", False), bool, "True or False", "carry", who)
            start = start["shape"]
        sizes = [start] if not isinstance(start, Sequence) or isinstance(start, str) else list(start)
        shape = [_check.whole(each, "shape", who, 1) for each in sizes]
        return Layer._wrap(self._core.memory(shape, value, name, carry))

    def next(self, memory: Layer, value: LayerLike) -> None:
        self._core.next(memory._made(), as_layer(value)._made())

    def end(self, results: Any) -> tuple[Any, list[Layer]]:
        several = isinstance(results, (tuple, list))
        listed = list(results) if several else [] if results is None else [results]
        outputs, last = self._core.end([as_layer(each)._made() for each in listed])
        outside = [Layer._wrap(each) for each in outputs]
        form = tuple(outside) if several else outside[0] if outside else None
        return form, [Layer._wrap(each) for each in last]


_present: ContextVar[_Group | None] = ContextVar("tenon recurrent group", default=None)
