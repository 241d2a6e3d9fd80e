"""Programs: topologies as operators in blocks.

    program = tenon.program.Program()
    x = program.data("x", tenon.data_type.dense_vector(13))
    block = program.global_block()
    w = block.create_parameter("w", shape=[13, 1], init="normal", init_std=0.1)
    out = block.create_var("out")
    block.append_op("fc", inputs={"inputs": x, "weight": w}, outputs={"output": out}, size=1, bias=False)
    print(program)
    parameters = program.parameters(out)

A program is a view of a topology: operators are layers, variables are their outputs, and blocks are the steps of scans
and the branches of conds. `variable.layer` is what all other functions of tenon take, and Program(outputs) is the program
of any layers. One thread at a time uses a program.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

from tenon import _check, _core, _host, _layer, error
from tenon._layer import Layer, LayerLike
from tenon.data_type import DataType
from tenon.parameters import ParameterSet

__all__ = ["Block", "LayerHelper", "Operator", "Parameter", "Program", "Variable"]

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


class Variable(_Part):
    """An output of an operator, a place for one, or a Parameter."""

    @property
    def name(self) -> str:
        """Unique in the program. "" of a variable without a name of its own before its operator is appended."""
        return str(self._core.name())

    @property
    def block(self) -> Block:
        """The block that it belongs to."""
        return Block(self.program, self._core.block())

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


class Operator(_Part):
    """A layer; or, of the types "initialize" and "load", how a parameter begins."""

    @property
    def name(self) -> str:
        return str(self._core.name())

    @property
    def type(self) -> str:
        return str(self._core.type())

    @property
    def block(self) -> Block:
        """The block that it belongs to."""
        return Block(self.program, self._core.block())

    @property
    def inputs(self) -> dict[str, list[Variable]]:
        """By port; absent ones are left out."""
        result: dict[str, list[Variable]] = {}
        for port, variables in self._core.inputs():
            result.setdefault(port, []).extend(_variables(self.program, variables))
        return result

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Parameters and buffers as its type calls them, such as "weight"."""
        return {path: Parameter(self.program, core) for path, core in self._core.parameters()}

    @property
    def outputs(self) -> list[Variable]:
        """In order; a metric has none."""
        return _variables(self.program, self._core.outputs())

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
        found = _variables(self.program, self._core.variables())
        return {each.name: each for each in found if each.name}

    def var(self, name: str) -> Variable:
        """Returns a variable or parameter of this block or one around it. NotFoundError if there is none."""
        return _variable(self.program, self._core.find(_check.text(name, "name", "block")))

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
            elif all(each.op is None and not isinstance(each, Parameter) for each in _listed(value, key, who)):
                written[key] = value
            else:
                read[key] = value
        _check.attributes(attributes, who)
        core = add(
            _check.text(type, "type", "operator"),
            [(port, [each._core for each in _listed(value, port or "inputs", who)]) for port, value in read.items()],
            [(port, [each._core for each in _listed(value, port, who)]) for port, value in written.items()],
            attributes,
            _check.text(name, "name", "operator"),
        )
        return Operator(self.program, core)

    def input(self, variable: Variable) -> Variable:
        """The row of each step, or the rows of the branch, of a variable from outside. Until rollback, as what follows."""
        return Variable(self.program, self._core.input(_one(variable, "variable")))

    def memory(self, shape: int | Sequence[int] | None = None, initial: Variable | None = None, value: float = 0.0) -> Variable:
        """What the step before left, in the block of a scan. It begins with `initial`, which has one value for each
        sequence, or with `value` in all elements of the shape."""
        if initial is not None:
            return Variable(self.program, self._core.memory_from(_one(initial, "initial")))
        if shape is None:
            raise error.InvalidError("memory: shape is missing, or initial", "memory", "shape")
        sizes = [shape] if isinstance(shape, int) else list(shape)
        sizes = [_check.whole(each, "shape", "memory", 1) for each in sizes]
        return Variable(self.program, self._core.memory(sizes, _check.number(value, "value", "memory")))

    def next(self, memory: Variable, value: Variable) -> None:
        """States what each step leaves in a memory."""
        self._core.next(_one(memory, "memory"), _one(value, "value"))

    def output(self, *results: Variable) -> None:
        """States what the block gives the block around it."""
        self._core.output([_one(each, "results") for each in results])

    @property
    def left(self) -> list[Variable]:
        """What the block gave the one around it, after rollback (of a cond that of its last branch): the results, then
        for each memory its last value."""
        return _variables(self.program, self._core.left())

    def __repr__(self) -> str:
        return f"<block {self.number} ({self.kind})>"


class Program:
    """A topology as operators in blocks."""

    def __init__(self, outputs: LayerLike | Iterable[LayerLike] = ()) -> None:
        """outputs: the layers of the program; none: it is empty."""
        given = [outputs] if isinstance(outputs, (Layer, str)) else list(outputs)
        self.host = _host.host()
        if given:
            cores = [each._made() for each in _layer.as_layers(given)]
            _layer.require_host(cores, self.host.core, "program")
            self._core: Any = _core.Program(cores)
        else:
            self._core = _core.Program(self.host.core)

    @classmethod
    def _of(cls, core: Any) -> Program:
        made = cls.__new__(cls)
        made.host, made._core = _host.host(), core
        return made

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Program:
        """Reads a file of `save`, or the topology of a model file."""
        return cls._of(_core.Program.load(_host.host().core, _check.path(file, "file", "program")))

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the topology as JSON, without values."""
        self._core.save(_check.path(file, "file", "program"))

    def global_block(self) -> Block:
        """Block 0, which has the parameters."""
        return Block(self, self._core.global_block())

    def current_block(self) -> Block:
        """The block where layer functions append: the global one, or that which create_block began last. It belongs to
        this program; there is none outside of programs."""
        return Block(self, self._core.current_block())

    @property
    def blocks(self) -> list[Block]:
        """All blocks by number."""
        return [Block(self, each) for each in self._core.blocks()]

    def block(self, number: int) -> Block:
        """The block of a number."""
        blocks = self.blocks
        return blocks[_check.whole(number, "number", "block", 0, len(blocks) - 1)]

    def var(self, name: str) -> Variable:
        """Returns the variable or parameter of a name. NotFoundError if there is none."""
        return _variable(self, self._core.find(_check.text(name, "name", "program")))

    def all_parameters(self) -> list[Parameter]:
        """The parameters and buffers, in the order of their making."""
        return [each for each in self.global_block().vars.values() if isinstance(each, Parameter)]

    def data(self, name: str, type: DataType) -> Variable:
        """Makes an operator of the type "data": an input of the program."""
        _check.instance(type, DataType, "one of tenon.data_type", "type", "data")
        layer = self.host.core.data(**type.options(_check.text(name, "name", "data")))
        return Variable(self, self._core.add_data(layer))

    def create_block(
        self,
        over: VariableLike | None = None,
        predicate: Variable | None = None,
        choice: Variable | None = None,
        cases: int = 0,
        beside: Block | None = None,
        reverse: bool = False,
        name: str = "",
    ) -> Block:
        """Begins a block and makes it the current one; one of over, predicate, choice and beside is given.

        over: sequences of equal lengths: the block is that of each step of a scan, in the order of `reverse`. predicate:
        the first branch of a cond, for the samples in which it is above 0; the second is for the others. choice, cases:
        the first branch, for the value 0 of an integer from 0 to cases - 1. beside: the next branch of the same cond.
        """
        given = [each for each in (over, predicate, choice, beside) if each is not None]
        if len(given) != 1:
            raise error.InvalidError(
                f"create_block: {len(given)} of over, predicate, choice and beside are given; expected one", "create_block"
            )
        name = _check.text(name, "name", "create_block")
        if over is not None:
            variables = [each._core for each in _listed(over, "over", "create_block")]
            core = self._core.create_step_block(variables, bool(reverse), name)
        elif beside is not None:
            core = self._core.create_branch_block_beside(_check.instance(beside, Block, "a block", "beside", "create_block")._core)
        else:
            least = 0 if choice is None else 1
            count = _check.whole(cases, "cases", "create_block", least, 0 if choice is None else 2**31 - 1)
            core = self._core.create_branch_block(_one(given[0], "choice"), count, name)
        return Block(self, core)

    def rollback(self) -> Block:
        """Ends the current block, and returns the block around it, which is current then. That gets the operator "scan",
        or with the last branch "cond". MisuseError for the global block."""
        self._core.rollback()
        return self.current_block()

    def prune(self, outputs: VariableLike | Iterable[str]) -> Program:
        """Returns the program of what some variables depend on, which are given by themselves or by their names."""
        return Program._of(self._core.prune(self._outputs(outputs)))

    def clone(self, layers: Mapping[str, str] | None = None, parameters: Mapping[str, str] | None = None) -> Program:
        """Returns a program of its own under other names.

        layers, parameters: new names by those before; a parameter's includes everything below it. Parameters that are
        not renamed are shared by name with this program.
        """
        renamed = [
            list(_check.mapping(given or {}, name, "program").items())
            for name, given in (("layers", layers), ("parameters", parameters))
        ]
        return Program._of(self._core.clone(*renamed))

    @property
    def outputs(self) -> list[Layer]:
        """The layers of the global block that no operator reads: as outputs of a topology they are the program."""
        return [Layer._wrap(each) for each in self._core.ends()]

    def parameters(self, outputs: VariableLike | Iterable[str], seed: int = 0) -> ParameterSet:
        """Returns a set for the outputs: drawn as initializers say, then loaded where operators "load" say so."""
        cores = self._outputs(outputs)
        core = self._core.parameters(cores, _check.seed(seed, "program"))
        return ParameterSet(core, [Layer._wrap(each.layer()) for each in cores])

    def _outputs(self, outputs: VariableLike | Iterable[str]) -> list[Any]:
        listed: list[Any] = [outputs] if isinstance(outputs, (str, Variable)) else list(outputs)
        return [_one(self.var(each) if isinstance(each, str) else each, "outputs") for each in listed]

    def __str__(self) -> str:
        return str(self._core.print()).rstrip()

    def __repr__(self) -> str:
        blocks = self.blocks
        return f"<program of {sum(len(each.ops) for each in blocks)} operators in {len(blocks)} blocks>"


class LayerHelper:
    """What layer functions have in common: a name for the operator and its parameters, and an activation.

        def fc_layer(input, size, act="", name=""):
            helper = LayerHelper("fc", input, act=act, name=name)
            w = helper.create_parameter("weight", shape=[input.shape[-1], size])
            b = helper.create_parameter("bias", shape=[size], init="constant", init_value=0.0)
            out = helper.append_op(inputs={"inputs": input, "weight": w, "bias": b}, size=size)
            return helper.append_activation(out)
    """

    def __init__(self, type: str, input: VariableLike, act: str = "", name: str = "") -> None:
        """type: of the operator. input: from which the program is known, and in whose current block operators are made.
        act: the type of an activation. name: of the result; "": generated."""
        self.type = type
        self.program = _listed(input, "input", f"layer function ({type})")[0].program
        self.act = act
        self.name = name or self._generated()

    def _generated(self) -> str:
        taken = {name for block in self.program.blocks for name in block.vars}
        numbers = (f"{self.type}_{number}" for number in range(len(taken) + 1))
        return next(each for each in numbers if not any(name == each or name.startswith(f"{each}.") for name in taken))

    @property
    def block(self) -> Block:
        """Where the operators are appended."""
        return self.program.current_block()

    def create_parameter(self, suffix: str, shape: Sequence[int] | None = None, **attributes: Any) -> Parameter:
        """Makes the parameter "<name>.<suffix>" of the global block."""
        return self.block.create_parameter(f"{self.name}.{suffix}", shape, **attributes)

    def create_var(self) -> Variable:
        """Makes a place for an output."""
        return self.block.create_var()

    def append_op(
        self,
        type: str = "",
        inputs: Mapping[str, VariableLike] | VariableLike = (),
        outputs: Mapping[str, VariableLike] | None = None,
        attrs: Mapping[str, Any] | None = None,
        **further: Any,
    ) -> Variable:
        """Appends an operator, by default of the helper's type, and returns its first output."""
        of = type or self.type
        name = f"{self.name}.{of}" if self.act else self.name
        return self.block.append_op(of, inputs, outputs, attrs, name, **further).outputs[0]

    def append_activation(self, out: Variable) -> Variable:
        """Returns the activation of a variable; the variable itself if the helper has none."""
        return self.block.append_op(self.act, [out], name=self.name).outputs[0] if self.act else out


def _variable(program: Program, core: Any) -> Variable:
    return Parameter(program, core.as_parameter()) if core.is_parameter() else Variable(program, core)


def _variables(program: Program, cores: Iterable[Any]) -> list[Variable]:
    return [_variable(program, each) for each in cores]


def _is_variable(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(each, Variable) for each in value)
    return isinstance(value, Variable)


def _listed(value: Any, name: str, component: str) -> list[Variable]:
    if isinstance(value, Variable):
        return [value]
    if not isinstance(value, (list, tuple)):
        _check.refuse(value, "a variable or several", name, component)
    return [_check.instance(each, Variable, "a variable", name, component) for each in value]


def _one(value: Any, name: str) -> Any:
    return _check.instance(value, Variable, "a variable", name, "program")._core
