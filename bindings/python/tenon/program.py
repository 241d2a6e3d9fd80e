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
from typing import Any

from tenon import _core, error
from tenon._base import check as _check
from tenon._base import host as _host
from tenon._model import layer as _layer
from tenon._model.block import Block, Operator, Parameter, Variable, VariableLike, core_of, listed, variable_of
from tenon._model.layer import Layer, LayerLike
from tenon.data_type import DataType
from tenon.parameters import ParameterSet

__all__ = ["Block", "LayerHelper", "Operator", "Parameter", "Program", "Variable"]


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
        return variable_of(self, self._core.find(_check.text(name, "name", "program")))

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
            variables = [each._core for each in listed(over, "over", "create_block")]
            core = self._core.create_step_block(variables, bool(reverse), name)
        elif beside is not None:
            block = _check.instance(beside, Block, "a block", "beside", "create_block")
            core = self._core.create_branch_block_beside(block._core)
        else:
            least = 0 if choice is None else 1
            count = _check.whole(cases, "cases", "create_block", least, 0 if choice is None else 2**31 - 1)
            core = self._core.create_branch_block(core_of(given[0], "choice"), count, name)
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
        chosen: list[Any] = [outputs] if isinstance(outputs, (str, Variable)) else list(outputs)
        return [core_of(self.var(each) if isinstance(each, str) else each, "outputs") for each in chosen]

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
        self.program = listed(input, "input", f"layer function ({type})")[0].program
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
