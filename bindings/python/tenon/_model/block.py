"""Blocks of programs, with their operators, variables and parameters; tenon.program has them.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from tenon import error
from tenon._base import check as _check
from tenon._model.layer import Layer

if TYPE_CHECKING:
    from tenon.program import Program

VariableLike = Union["Variable", Sequence["Variable"]]

_KINDS = ("global", "step", "branch")  # of blocks, by TN_BLOCK_*


class _Part:
    """A part of a program. Equal parts are equal objects, as they are made anew by each call that returns one."""

    __slots__ = ("_core", "program")

    def __init__(self, program: Program, core: Any) -> None:
        self.program = program
        self._core = core

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and bool(self._core.same(other._core))

    def __hash__(self) -> int:
        return hash((type(self), self._core.number()))


class _Named(_Part):
    """A part that has a name and belongs to a block."""

    @property
    def name(self) -> str:
        """Unique in the program. "" of a variable without a name of its own before its operator is appended."""
        return str(self._core.name())

    @property
    def block(self) -> Block:
        """The block that it belongs to."""
        return Block(self.program, self._core.block())


class Variable(_Named):
    """An output of an operator, a place for one, or a Parameter."""

    @property
    def op(self) -> Operator | None:
        """The operator that writes it; None before that is appended, and of parameters."""
        op = self._core.op()
        return None if op is None else Operator(self.program, op)

    @property
    def layer(self) -> Layer:
        """What the other functions of tenon take. MisuseError without an operator."""
        return Layer._wrap(self._core.layer())

    @property
    def shape(self) -> tuple[Any, ...] | None:
        """Numbers, and texts such as "samples" for dimensions that vary. None before an operator determines it."""
        return None if self.op is None else self.layer.shape

    @property
    def dtype(self) -> Any:
        """The element type, as NumPy has it. MisuseError without an operator."""
        return self.layer.dtype

    def __repr__(self) -> str:
        shape = "of yet unknown shape" if self.shape is None else str(list(self.shape))
        return f"<{type(self).__name__.lower()} {self.name!r} {shape}>"


class Parameter(Variable):
    """A parameter or buffer: a variable of the global block, whichever block asked for it."""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """None before an operator determines it."""
        found = self._core.shape()
        return None if found is None else tuple(found)

    @property
    def is_buffer(self) -> bool:
        """Whether it is stored with the model and not trained."""
        return bool(self._core.is_buffer())

    @property
    def attributes(self) -> dict[str, Any]:
        """How it begins, and its multipliers, such as {"init": "normal", "init_std": 0.1}; only what is stated."""
        return dict(self._core.attributes())

    @property
    def users(self) -> list[Operator]:
        """The operators with it."""
        return [Operator(self.program, each) for each in self._core.users()]


class Operator(_Named):
    """A layer; or, of the types "initialize" and "load", how a parameter begins."""

    @property
    def type(self) -> str:
        return str(self._core.type())

    @property
    def inputs(self) -> dict[str, list[Variable]]:
        """By port; absent ones are left out."""
        result: dict[str, list[Variable]] = {}
        for port, variables in self._core.inputs():
            result.setdefault(port, []).extend(variables_of(self.program, variables))
        return result

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Parameters and buffers as its type calls them, such as "weight"."""
        return {path: Parameter(self.program, core) for path, core in self._core.parameters()}

    @property
    def outputs(self) -> list[Variable]:
        """In order; a metric has none."""
        return variables_of(self.program, self._core.outputs())

    @property
    def attributes(self) -> dict[str, Any]:
        """Those of its type, defaults included, and those of the host that were given."""
        return dict(self._core.attributes())

    @property
    def blocks(self) -> list[Block]:
        """Those whose results it gives outside: the steps of a scan, the branches of a cond."""
        return [Block(self.program, each) for each in self._core.blocks()]

    def __repr__(self) -> str:
        return f"<operator {self.name!r} ({self.type})>"


class Block(_Part):
    """Operators in order: the global ones, those of each step of a scan, or those of one branch of a cond.

    All names of a program are in one namespace; parameters belong to the global block.
    """

    @property
    def number(self) -> int:
        """0 of the global block."""
        return int(self._core.number())

    @property
    def parent(self) -> Block | None:
        """The block around it; None of the global one."""
        parent = self._core.parent()
        return None if parent is None else Block(self.program, parent)

    @property
    def kind(self) -> str:
        """ "global", "step" or "branch"."""
        return _KINDS[self._core.info()[0]]

    @property
    def branch(self) -> int:
        """The number of a branch, from 0; else 0."""
        return int(self._core.info()[2])

    @property
    def ops(self) -> list[Operator]:
        return [Operator(self.program, each) for each in self._core.ops()]

    @property
    def vars(self) -> dict[str, Variable]:
        """The variables of this block by name, those of the global block with the parameters."""
        found = variables_of(self.program, self._core.variables())
        return {each.name: each for each in found if each.name}

    def var(self, name: str) -> Variable:
        """Returns a variable or parameter of this block or one around it. NotFoundError if there is none."""
        return variable_of(self.program, self._core.find(_check.text(name, "name", "block")))

    def create_var(self, name: str = "") -> Variable:
        """Makes a place for the output of an operator. Without a name it gets that of the operator."""
        return Variable(self.program, self._core.create_var(_check.text(name, "name", "block")))

    def create_global_var(self, name: str = "") -> Variable:
        """Makes a place for an output in the global block, from any block."""
        return self.program.global_block().create_var(name)

    def create_parameter(self, name: str, shape: Sequence[int] | None = None, **attributes: Any) -> Parameter:
        """Makes a parameter of the global block; returns that of this name if there is one.

        shape: None: its first operator determines it. attributes: init and others of it, rate_multiplier,
        decay_multiplier. InvalidError if one of this name has another shape.
        """
        who = f'parameter "{name}"'
        _check.attributes(attributes, who)
        sizes = None if shape is None else [_check.whole(each, "shape", who) for each in shape]
        core = self._core.create_parameter(_check.text(name, "name", "parameter"), sizes, attributes)
        return Parameter(self.program, core)

    def append_op(
        self,
        type: str,
        inputs: Mapping[str, VariableLike] | VariableLike = (),
        outputs: Mapping[str, VariableLike] | None = None,
        attrs: Mapping[str, Any] | None = None,
        name: str = "",
        **further: Any,
    ) -> Operator:
        """Makes a layer. Shapes are derived and checked here.

        inputs: by port, or in the order of the ports; a parameter by the name that the type has for it, such as "weight".
        outputs: by port, variables without an operator; those that are not given are made. The operator has the name of
        its first output. further: attributes, and variables in place of those in inputs and outputs.

        The types "initialize" and "load" take a parameter as output, in the global block: the attributes init and others
        of it say how it begins, or path and name the model file and the parameter there.
        """
        return self._add(self._core.append_op, type, inputs, outputs, attrs, name, further)

    def prepend_op(
        self,
        type: str,
        inputs: Mapping[str, VariableLike] | VariableLike = (),
        outputs: Mapping[str, VariableLike] | None = None,
        attrs: Mapping[str, Any] | None = None,
        name: str = "",
        **further: Any,
    ) -> Operator:
        """The same as append_op, in front of the operators of the block. InvalidError if one of them writes an input."""
        return self._add(self._core.prepend_op, type, inputs, outputs, attrs, name, further)

    def _add(
        self,
        add: Any,
        type: str,
        inputs: Mapping[str, VariableLike] | VariableLike,
        outputs: Mapping[str, VariableLike] | None,
        attrs: Mapping[str, Any] | None,
        name: str,
        further: Mapping[str, Any],
    ) -> Operator:
        who = f'operator "{name}" ({type})' if name else f"operator ({type})"
        read = dict(inputs) if isinstance(inputs, Mapping) else {"": inputs} if inputs else {}
        written = dict(_check.mapping(outputs or {}, "outputs", who))
        attributes = dict(_check.mapping(attrs or {}, "attrs", who))
        for key, value in further.items():
            if not _is_variable(value):
                attributes[key] = value
            elif all(each.op is None and not isinstance(each, Parameter) for each in listed(value, key, who)):
                written[key] = value
            else:
                read[key] = value
        _check.attributes(attributes, who)
        core = add(
            _check.text(type, "type", "operator"),
            [(port, [each._core for each in listed(value, port or "inputs", who)]) for port, value in read.items()],
            [(port, [each._core for each in listed(value, port, who)]) for port, value in written.items()],
            attributes,
            _check.text(name, "name", "operator"),
        )
        return Operator(self.program, core)

    def input(self, variable: Variable) -> Variable:
        """The row of each step, or the rows of the branch, of a variable from outside. Until rollback, as what follows."""
        return Variable(self.program, self._core.input(core_of(variable, "variable")))

    def memory(self, shape: int | Sequence[int] | None = None, initial: Variable | None = None, value: float = 0.0) -> Variable:
        """What the step before left, in the block of a scan. It begins with `initial`, which has one value for each
        sequence, or with `value` in all elements of the shape."""
        if initial is not None:
            return Variable(self.program, self._core.memory_from(core_of(initial, "initial")))
        if shape is None:
            raise error.InvalidError("memory: shape is missing, or initial", "memory", "shape")
        sizes = [shape] if isinstance(shape, int) else list(shape)
        sizes = [_check.whole(each, "shape", "memory", 1) for each in sizes]
        return Variable(self.program, self._core.memory(sizes, _check.number(value, "value", "memory")))

    def next(self, memory: Variable, value: Variable) -> None:
        """States what each step leaves in a memory."""
        self._core.next(core_of(memory, "memory"), core_of(value, "value"))

    def output(self, *results: Variable) -> None:
        """States what the block gives the block around it."""
        self._core.output([core_of(each, "results") for each in results])

    @property
    def left(self) -> list[Variable]:
        """What the block gave the one around it, after rollback (of a cond that of its last branch): the results, then
        for each memory its last value."""
        return variables_of(self.program, self._core.left())

    def __repr__(self) -> str:
        return f"<block {self.number} ({self.kind})>"


def variable_of(program: Program, core: Any) -> Variable:
    return Parameter(program, core.as_parameter()) if core.is_parameter() else Variable(program, core)


def variables_of(program: Program, cores: Iterable[Any]) -> list[Variable]:
    return [variable_of(program, each) for each in cores]


def _is_variable(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(each, Variable) for each in value)
    return isinstance(value, Variable)


def listed(value: Any, name: str, component: str) -> list[Variable]:
    if isinstance(value, Variable):
        return [value]
    if not isinstance(value, (list, tuple)):
        _check.refuse(value, "a variable or several", name, component)
    return [_check.instance(each, Variable, "a variable", name, component) for each in value]


def core_of(value: Any, name: str) -> Any:
    return _check.instance(value, Variable, "a variable", name, "program")._core
