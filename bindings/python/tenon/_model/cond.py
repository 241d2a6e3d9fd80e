"""Branches: layers that run for some samples alone.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tenon import _core, error
from tenon._base import check as _check
from tenon._base import host as _host
from tenon._model import layer as _layer
from tenon._model.layer import Layer, LayerLike, as_layer

BranchFunction = Callable[..., Any]


def cond(
    predicate: LayerLike,
    then: BranchFunction,
    otherwise: BranchFunction,
    inputs: LayerLike | Iterable[LayerLike] = (),
    name: str = "",
) -> Any:
    """Runs layers for the samples in which a predicate holds, and others for the rest.

        def small(x):
            return tenon.layer.fc(x, size=8)

        def large(x):
            return tenon.layer.fc(tenon.layer.fc(x, size=64, act="relu"), size=8)

        score = tenon.cond(is_hard, large, small, x)

    predicate: one number for each sample, or for each row of sequences; it holds where it is above 0. then and otherwise
    take the inputs by position, each with the values of those samples alone, and return a layer or a tuple of layers, of
    equal shapes. Layers from outside with a value for each sample are read at those samples, simply by using them. Inputs
    may be sequences, one for each sample. Returns what they return, with a value for each sample.
    """
    return _run(_Branches(predicate, 0, name), [then, otherwise], inputs)


def cases(
    choice: LayerLike, functions: Sequence[BranchFunction], inputs: LayerLike | Iterable[LayerLike] = (), name: str = ""
) -> Any:
    """Runs functions[i] for the samples in which `choice`, integers, is i. As cond otherwise."""
    functions = list(functions)
    if not functions:
        raise error.InvalidError("cases need at least one function", "cases", "functions")
    return _run(_Branches(choice, len(functions), name), functions, inputs)


class IfElse:
    """Branches as Fluid describes them:

        branches = tenon.IfElse(is_hard)
        with branches.true_block():
            branches.output(tenon.layer.fc(branches.input(x), size=8))
        with branches.false_block():
            branches.output(tenon.layer.fc(branches.input(x), size=8))
        (score,) = branches()
    """

    def __init__(self, cond: LayerLike, name: str = "") -> None:
        self._branches = _Branches(cond, 0, name)
        self._results: list[list[Layer] | None] = [None, None]
        self._number: int | None = None

    @contextmanager
    def true_block(self) -> Iterator[None]:
        """The layers for the samples in which the predicate holds."""
        with self._block(0):
            yield

    @contextmanager
    def false_block(self) -> Iterator[None]:
        """The layers for the other samples."""
        with self._block(1):
            yield

    @contextmanager
    def _block(self, number: int) -> Iterator[None]:
        if self._number is not None:
            raise error.MisuseError("IfElse: a block begins inside of another one", "IfElse")
        self._number = number
        try:
            yield
        finally:
            self._number = None

    def _present(self) -> int:
        if self._number is None:
            raise error.MisuseError("IfElse: input and output are for true_block and false_block", "IfElse")
        return self._number

    def input(self, x: LayerLike) -> Layer:
        """Returns the values of x for the samples of the block."""
        return self._branches.input(self._present(), x)

    def output(self, *outputs: LayerLike) -> None:
        """States the results of the block."""
        self._results[self._present()] = [as_layer(each) for each in outputs]

    def __call__(self) -> list[Layer]:
        """Returns the results, with a value for each sample."""
        for block, results in zip(("true_block", "false_block"), self._results, strict=True):
            if results is None:
                raise error.InvalidError(f"IfElse: {block} has no output", "IfElse", block)
        return self._branches.end([each or [] for each in self._results])


class _Branches:
    """Branches that are being made."""

    def __init__(self, choice: LayerLike, cases: int, name: str) -> None:
        who = f'cond "{name}"' if name else "cond"
        core = as_layer(choice)._made()
        _layer.require_host([core], _host.host().core, who)
        self._core = _core.begin_cases(core, cases, _check.text(name, "name", who))
        self.who = who

    def input(self, branch: int, value: LayerLike) -> Layer:
        return Layer._wrap(self._core.input(branch, as_layer(value)._made()))

    def end(self, results: list[list[Layer]]) -> list[Layer]:
        return [Layer._wrap(each) for each in self._core.end([[each._made() for each in branch] for branch in results])]


def _run(branches: _Branches, functions: list[BranchFunction], inputs: LayerLike | Iterable[LayerLike]) -> Any:
    values = _layer.as_layers(inputs) if isinstance(inputs, (Layer, str)) or (inputs := list(inputs)) else []
    results: list[list[Layer]] = []
    several: list[bool] = []
    for number, function in enumerate(functions):
        returned = function(*[branches.input(number, each) for each in values])
        if returned is None:
            raise error.InvalidError(f"{branches.who}: the function of branch {number} returns nothing", branches.who)
        several.append(isinstance(returned, (tuple, list)))
        results.append([as_layer(each) for each in returned] if several[-1] else [as_layer(returned)])
    if len(set(several)) > 1:
        raise error.InvalidError(f"{branches.who}: some functions return a layer, others a tuple of layers", branches.who)
    outside = branches.end(results)
    return tuple(outside) if several[0] else outside[0]
