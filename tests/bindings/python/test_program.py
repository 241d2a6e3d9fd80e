"""Programs: topologies as operators in blocks. SPDX-License-Identifier: Apache-2.0"""

import json

import numpy as np
import pytest

import tenon
from tenon.program import LayerHelper, Parameter, Program, Variable

X = np.random.default_rng(2).uniform(-1, 1, (16, 3)).astype(np.float32)


@pytest.fixture
def program():
    return Program()


@pytest.fixture
def x(program):
    return program.data("x", tenon.data_type.dense_vector(3))


def fc_layer(input, size, act="", name=""):
    helper = LayerHelper("fc", input, act=act, name=name)
    w = helper.create_parameter("weight", shape=[input.shape[-1], size], init="normal", init_std=0.1)
    b = helper.create_parameter("bias", shape=[size])
    out = helper.append_op(inputs={"inputs": input, "weight": w, "bias": b}, size=size)
    return helper.append_activation(out)


def refused(kind, subject, text, call, *arguments, **options):
    with pytest.raises(kind) as failure:
        call(*arguments, **options)
    assert failure.value.subject == subject
    assert text in str(failure.value)


def test_layer_functions_are_written_with_a_helper(program, x):
    hidden = fc_layer(x, 8, act="relu", name="hidden")
    out = fc_layer(hidden, 2)
    assert [each.type for each in program.global_block().ops] == ["data", "fc", "relu", "fc"]
    assert (hidden.name, out.name) == ("hidden", "fc_0")
    assert fc_layer(x, 2).name == "fc_1"
    assert [each.name for each in program.all_parameters()][:2] == ["hidden.weight", "hidden.bias"]
    assert program.var("hidden.weight").attributes == {"init": "normal", "init_std": 0.1}
    with_tenon = tenon.layer.fc(tenon.layer.fc(x.layer, size=8, act="relu", parameter_name="hidden"), size=2,
                                parameter_name="fc_0")
    parameters = program.parameters(out, seed=3)
    np.testing.assert_array_equal(tenon.infer(out.layer, parameters, X), tenon.infer(with_tenon, parameters, X))


def test_parts_are_equal_by_what_they_stand_for(program, x):
    out = fc_layer(x, 2)
    assert program.var("x") == x and program.var("x") != out and hash(program.var("x")) == hash(x)
    assert out.op.inputs == {"inputs": [x]}
    assert out.op.parameters["weight"] == program.var("fc_0.weight")
    assert program.var("fc_0.weight").users == [out.op]
    assert out.block == program.current_block() == program.block(0) and out.block.parent is None
    assert isinstance(program.var("fc_0.bias"), Parameter) and not isinstance(out, Parameter)
    assert out.dtype == np.float32 and out.op.attributes["size"] == 2
    assert repr(out) == "<variable 'fc_0' ['samples', 2]>"
    assert repr(out.op) == "<operator 'fc_0' (fc)>" and repr(out.block) == "<block 0 (global)>"
    assert repr(program) == "<program of 2 operators in 1 blocks>"


def test_a_program_is_trained(program, x):
    truth = program.data("truth", tenon.data_type.dense_vector(1))
    price = fc_layer(x, 1, name="price")
    cost = program.global_block().append_op("square_error", [price, truth], name="cost").outputs[0]
    parameters = program.parameters(cost)
    data = {"x": X, "truth": X.sum(1, keepdims=True)}
    tenon.train(cost.layer, parameters, data, passes=60, updater=tenon.updater.adam(learning_rate=0.1))
    assert tenon.test(cost.layer, parameters, data).cost < 0.01
    assert [each.name for each in program.outputs] == ["cost"]


def test_steps_of_a_scan_are_a_block(program):
    words = program.data("words", tenon.data_type.dense_vector_sequence(3))
    step = program.create_block(over=words, reverse=True, name="rnn")
    (word,) = step.vars.values()
    state = step.memory(shape=[2], value=1.0)
    cell = step.append_op("fc", [word, state], size=2, act="tanh", name="cell").outputs[0]
    step.next(state, cell)
    step.output(cell)
    assert program.rollback() == program.global_block()
    states, last = step.left
    assert (step.kind, step.number, step.parent.number) == ("step", 1, 0)
    assert program.var("cell.weight").block.number == 0 and cell.block == step
    assert states.op.type == "scan" and states.op.blocks == [step] and states.op.attributes["reverse"] is True

    def cells(row, h):
        made = tenon.layer.fc(row, h, size=2, act="tanh", parameter_name="cell")
        return made, {"h": made}

    direct = tenon.scan(
        cells, words.layer, {"h": {"shape": 2, "value": 1.0}}, reverse=True,
    )  # fmt: skip
    parameters = program.parameters([states, last], seed=1)
    sequences = [X[:2], X[2:7]]
    found = tenon.infer([last.layer, direct.last["h"]], parameters, {"words": sequences})
    np.testing.assert_array_equal(found[0], found[1])
    # Read from what it gives outside, the program is the same.
    assert str(Program(states.layer)).count("block 1, each step of rnn") == 1


def test_branches_of_a_cond_are_blocks(program, x):
    block = program.global_block()
    first = block.append_op("slice", x, axis=1, start=0, length=1).outputs[0]
    results = []
    then = program.create_block(predicate=first)
    for branch, factor in ((then, 2.0), (None, 3.0)):
        branch = branch or program.create_block(beside=then)
        assert program.current_block() == branch
        results.append(branch.append_op("scale_shift", branch.input(x), scale=factor).outputs[0])
        branch.output(results[-1])
        program.rollback()
    (chosen,) = then.left
    assert [each.block.branch for each in results] == [0, 1] and then.kind == "branch"
    found = tenon.infer(chosen.layer, program.parameters(chosen), X)
    np.testing.assert_allclose(found, np.where(X[:, :1] > 0, 2 * X, 3 * X))
    number = program.data("number", tenon.data_type.integer_value(3))
    case = program.create_block(choice=number, cases=3)
    for _ in range(3):
        case.output(case.append_op("scale_shift", case.input(x), scale=1.0 + case.branch).outputs[0])
        program.rollback()
        case = program.create_block(beside=case) if case.branch < 2 else case
    (chosen,) = case.left
    numbers = np.arange(16) % 3
    found = tenon.infer(chosen.layer, program.parameters(chosen), {"x": X, "number": numbers})
    np.testing.assert_allclose(found, X * (1 + numbers[:, None]), rtol=1e-6)


def test_files_have_the_topology_without_values(program, x, tmp_path):
    out = fc_layer(x, 2, name="out")
    file = tmp_path / "net.json"
    program.save(file)
    assert json.loads(file.read_text())["version"] == 1
    read = Program.load(file)
    assert str(read) == str(program)
    assert read.var("out").op.parameters["weight"].shape == (3, 2)
    parameters = program.parameters(out)
    parameters.save(str(tmp_path / "model.safetensors"), out.layer)
    assert str(Program.load(tmp_path / "model.safetensors")) == str(program)
    refused(tenon.Error, str(tmp_path / "none"), "none", Program.load, tmp_path / "none")
    file.write_text("{")
    refused(tenon.error.BadDataError, str(file), "not valid JSON", Program.load, file)
    file.write_text('{"version": 7, "layers": [], "outputs": []}')
    refused(tenon.error.BadDataError, str(file), "topology version 7; expected 1", Program.load, file)


def test_beginnings_of_parameters(program, x, tmp_path):
    out = fc_layer(x, 2, name="out")
    block, weight = program.global_block(), program.var("out.weight")
    block.prepend_op("initialize", outputs={"out": weight}, init="constant", init_value=0.25)
    assert block.ops[0].type == "initialize" and weight.attributes == {"init": "constant", "init_value": 0.25}
    parameters = program.parameters(out)
    assert (parameters["out.weight"] == 0.25).all()
    parameters.save(str(tmp_path / "m.safetensors"), out.layer)
    other = Program(out.layer)
    other.global_block().prepend_op(
        "load", outputs={"out": other.var("out.bias")}, path=str(tmp_path / "m.safetensors"), name="load bias"
    )
    assert other.parameters("out")["out.bias"].tolist() == [0, 0]
    refused(tenon.error.NotFoundError, "nothing", "there is no parameter \"nothing\"", block.prepend_op,
            "load", outputs={"out": weight}, attrs={"path": str(tmp_path / "m.safetensors"), "name": "nothing"})  # fmt: skip


def test_prune_and_clone(program, x):
    out = fc_layer(fc_layer(x, 4, name="hidden"), 2, name="out")
    assert [each.name for each in program.prune("hidden").global_block().ops] == ["x", "hidden"]
    assert [each.name for each in program.prune([out]).outputs] == ["out"]
    copy = program.clone({"hidden": "other", "out": "end"}, {"hidden": "other"})
    assert {each.name for each in copy.all_parameters()} == {"other.weight", "other.bias", "out.weight", "out.bias"}
    both = program.parameters(out)
    assert set(both) == {"hidden.weight", "hidden.bias", "out.weight", "out.bias"}
    refused(tenon.error.NotFoundError, "nothing", 'no variable "nothing"', program.prune, "nothing")
    refused(tenon.error.NotFoundError, "hiden", 'did you mean "hidden"', program.clone, {"hiden": "a"})


def test_wrong_operators_change_nothing(program, x):
    block = program.global_block()
    w = block.create_parameter("w", shape=[3, 2])
    out = block.append_op("fc", inputs={"inputs": x, "weight": w}, size=2, name="out").outputs[0]
    before = str(program)
    append = block.append_op
    refused(tenon.error.NotFoundError, "", '"fcc" not found; did you mean "fc"?', append, "fcc", x, size=2)
    refused(tenon.error.InvalidError, "sise", "sise", append, "fc", x, size=2, sise=3)
    refused(tenon.error.InvalidError, "w", 'parameter "w" is [3, 5]; expected [3, 2]', append, "fc", x, weight=w, size=5)
    refused(tenon.error.InvalidError, "inputs", "of another program", append, "fc",
            {"inputs": Program().data("z", tenon.data_type.dense_vector(3))}, size=2)  # fmt: skip
    refused(tenon.error.InvalidError, "X", 'unknown input "X"', append, "fc", X=x, size=2)
    refused(tenon.error.InvalidError, "inputs", "expected a variable", append, "fc", {"inputs": x.layer}, size=2)
    refused(tenon.error.InvalidError, "w", "[4, 2] here; expected [3, 2]", block.create_parameter, "w", [4, 2])
    refused(tenon.error.InvalidError, "out", 'named "out" already', block.create_var, "out")
    refused(tenon.error.MisuseError, "block 0", "the global block", program.rollback)
    refused(tenon.error.InvalidError, "", "expected one", program.create_block, over=x, predicate=x)
    refused(tenon.error.InvalidError, "", "expected sequences", program.create_block, over=x)
    assert str(program) == before
    assert isinstance(out, Variable) and program.current_block() == block
