"""Recurrences and control flow of ONNX that become a layer for each step, beside onnxruntime.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import tenon
from others import close
from test_onnx_operators import check, graph, ints, numbers

make = helper.make_node
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, FEATURES, SIZE, SAMPLES = 5, 3, 4, 2
TURNED = make("Transpose", ["x"], ["t"], perm=[1, 0, 2])


def weights(op, directions=1, bias=True):
    gates = GATES[op]
    found = {"w": numbers(directions, gates * SIZE, FEATURES), "r": 0.5 * numbers(directions, gates * SIZE, SIZE)}
    return {**found, "b": numbers(directions, 2 * gates * SIZE)} if bias else found


def outputs(op):
    return ["a", "h", "c"] if op == "LSTM" else ["a", "h"]


def ends(op):
    """Nodes that move the samples of all outputs to the first place."""
    nodes = [make("Transpose", ["a"], ["y"], perm=[2, 0, 1, 3]), make("Transpose", ["h"], ["z"], perm=[1, 0, 2])]
    return nodes + ([make("Transpose", ["c"], ["v"], perm=[1, 0, 2])] if op == "LSTM" else [])


def results(op):
    return ("y", "z", "v") if op == "LSTM" else ("y", "z")


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("attributes", [{}, {"bias": False}, {"linear_before_reset": 1}], ids=["", "no_bias", "reset_after"])
def test_recurrences(op, direction, attributes):
    attributes = dict(attributes)
    bias = attributes.pop("bias", True)
    if attributes and op != "GRU":
        attributes = {}
    given = weights(op, 2 if direction == "bidirectional" else 1, bias)
    cell = make(op, ["t", *given], outputs(op), direction=direction, hidden_size=SIZE, **attributes)
    check(graph([TURNED, cell, *ends(op)], [(STEPS, FEATURES)], outputs=results(op), **given))


@pytest.mark.parametrize("op", GATES)
def test_first_states_and_lengths(op):
    """States that are constant, zero, and values; lengths that are values, in both directions."""
    given, names = weights(op, 2), ["t", "w", "r", "b", "", "h0"] + (["c0"] if op == "LSTM" else [])
    cell = make(op, names, outputs(op), direction="bidirectional", hidden_size=SIZE)
    for state in (numbers(2, 1, SIZE).repeat(SAMPLES, 1), np.zeros((2, SAMPLES, SIZE), np.float32)):
        check(graph([TURNED, cell, *ends(op)], [(STEPS, FEATURES)], outputs=results(op), samples=SAMPLES, **given,
                    h0=state, c0=state))  # fmt: skip
    moved = make("Transpose", ["x1"], ["h0"], perm=[1, 0, 2])
    same = make("Neg", ["h0"], ["c0"])
    check(graph([TURNED, moved, same, cell, *ends(op)], [(STEPS, FEATURES), (2, SIZE)], outputs=results(op), **given))
    whole = make("Cast", ["x1"], ["n"], to=TensorProto.INT32)
    timed = make(op, ["t", "w", "r", "b", "n"], outputs(op), direction="bidirectional", hidden_size=SIZE)
    feeds = {"x": numbers(3, STEPS, FEATURES), "x1": np.float32([5, 1, 3])}
    check(graph([TURNED, whole, timed, *ends(op)], [(STEPS, FEATURES), ()], outputs=results(op), **given), feeds)
    full = make(op, ["t", "w", "r", "b", "n"], outputs(op), direction="bidirectional", hidden_size=SIZE)
    check(graph([TURNED, full, *ends(op)], [(STEPS, FEATURES)], outputs=results(op), samples=SAMPLES, **given,
                n=np.int32([STEPS] * SAMPLES)))  # fmt: skip


@pytest.mark.parametrize("op, activations", [
    ("LSTM", ["HardSigmoid", "Relu", "Tanh"]), ("GRU", ["HardSigmoid", "Softsign"]), ("RNN", ["Relu"]),
    ("RNN", ["LeakyRelu"]), ("LSTM", ["sigmoid", "tanh", "tanh"]), ("RNN", ["Elu"]),
])  # fmt: skip
def test_other_activations(op, activations):
    given = weights(op)
    cell = make(op, ["t", *given], outputs(op), hidden_size=SIZE, activations=activations,
                activation_alpha=[0.3] * len(activations), activation_beta=[0.4] * len(activations),
                **({"linear_before_reset": 1} if op == "GRU" else {}))  # fmt: skip
    check(graph([TURNED, cell, *ends(op)], [(STEPS, FEATURES)], outputs=results(op), **given))


def test_peepholes():
    given = {**weights("LSTM"), "p": numbers(1, 3 * SIZE)}
    cell = make("LSTM", ["t", "w", "r", "b", "", "", "", "p"], outputs("LSTM"), hidden_size=SIZE)
    check(graph([TURNED, cell, *ends("LSTM")], [(STEPS, FEATURES)], outputs=results("LSTM"), **given))


def test_what_exporters_put_around_a_recurrence():
    """A batch first, one direction taken out, both of them beside each other, two layers, and the last step."""
    one, two = weights("LSTM"), {f"{name}2": each for name, each in weights("GRU", 2).items()}
    two["w2"] = numbers(2, 3 * SIZE, SIZE)
    nodes = [TURNED, make("LSTM", ["t", "w", "r", "b"], ["a"], hidden_size=SIZE), make("Squeeze", ["a", "one"], ["s"]),
             make("GRU", ["s", "w2", "r2", "b2"], ["g"], hidden_size=SIZE, direction="bidirectional"),
             make("Transpose", ["g"], ["m"], perm=[0, 2, 1, 3]), make("Reshape", ["m", "shape"], ["f"]),
             make("Transpose", ["f"], ["q"], perm=[1, 0, 2]), make("Gather", ["q", "last"], ["l"], axis=1),
             make("Gemm", ["l", "k"], ["y"])]  # fmt: skip
    check(graph(nodes, [(STEPS, FEATURES)], one=ints(1), shape=ints(0, 0, -1), last=np.int64(-1), k=numbers(2 * SIZE, 2),
                **one, **two))  # fmt: skip


@pytest.mark.parametrize("attributes, names, words", [
    ({"clip": 1.0}, (), "clip is 1.0"), ({"direction": "sideways"}, (), "direction is 'sideways'"),
    ({"activations": ["Sigmoid", "Sinus", "Tanh"]}, (), "activation 'Sinus'; Affine"),
    ({"input_forget": 1}, (), "input_forget is 1"), ({"layout": 1}, (), "with layout 1 the samples first"),
    ({}, ("b", "n"), "sequence_lens are"),
])  # fmt: skip
def test_recurrences_that_are_refused(attributes, names, words):
    given = {**weights("LSTM"), "n": np.int32([1, 2])}
    cell = make("LSTM", ["t", "w", "r", *names], ["a"], hidden_size=SIZE, **attributes)
    with pytest.raises(tenon.error.UnsupportedError, match=words):
        tenon.onnx.load(graph([TURNED, cell, make("Transpose", ["a"], ["y"], perm=[2, 0, 1, 3])], [(STEPS, FEATURES)], **given))


def body(nodes, inputs, outputs, initializers=()):
    kinds = {"i": TensorProto.INT64, "j": TensorProto.INT64, "on": TensorProto.BOOL}
    values = [helper.make_tensor_value_info(name, kinds.get(name, TensorProto.FLOAT), [] if name in kinds else None)
              for name in inputs]  # fmt: skip
    found = [helper.make_empty_tensor_value_info(name) for name in outputs]
    return helper.make_graph(nodes, "body", values, found, list(initializers))


def test_branches_of_a_constant_condition():
    def branch(op, name):
        inner = make(op, ["x"], ["inner"])
        return body([inner, make("Add", ["inner", "c"], [name])], [], [name])

    for taken in (True, False):
        nodes = [make("Identity", ["flag"], ["f"]),
                 make("If", ["f"], ["r"], then_branch=branch("Relu", "p"), else_branch=branch("Tanh", "q")),
                 make("If", ["f"], ["y"], then_branch=body([make("Neg", ["r"], ["p"])], [], ["p"]),
                      else_branch=body([make("Identity", ["r"], ["q"])], [], ["q"]))]  # fmt: skip
        check(graph(nodes, [(4,)], flag=np.bool_(taken), c=numbers(4)))
    depends = [make("ReduceMax", ["x"], ["m"], keepdims=0, axes=[1]), make("Cast", ["m"], ["f"], to=9),
               make("If", ["f"], ["y"], then_branch=branch("Relu", "p"), else_branch=branch("Tanh", "q"),
                    name="either")]  # fmt: skip
    with pytest.raises(tenon.error.UnsupportedError, match=r'"either" \(If\): the condition, input 0, is computed of values'):
        tenon.onnx.load(graph(depends, [(4,)], version=13, c=numbers(4)))


def test_loops_of_a_known_number_of_steps():
    """With a state, a value from outside, and rows of each step; with a condition that becomes false."""
    step = body([make("Mul", ["s", "w"], ["m"]), make("Tanh", ["m"], ["next"]), make("Cast", ["i"], ["f"], to=1),
                 make("Add", ["next", "f"], ["row"]), make("Identity", ["on"], ["more"])],
                ["i", "on", "s"], ["more", "next", "row"])  # fmt: skip
    nodes = [make("Loop", ["n", "", "x"], ["last", "rows"], body=step), make("Transpose", ["rows"], ["y"], perm=[1, 0, 2])]
    check(graph(nodes, [(4,)], outputs=("y", "last"), n=np.int64(3), w=numbers(4)))
    until = body([make("Tanh", ["s"], ["next"]), make("Less", ["i", "two"], ["more"])], ["i", "on", "s"], ["more", "next"])
    check(graph([make("Loop", ["", "yes", "x"], ["y"], body=until)], [(4,)], two=np.int64(2), yes=np.bool_(True)))
    nested = body([make("Loop", ["k", "", "s"], ["next", "rows"], body=step), make("Identity", ["on"], ["more"])],
                  ["j", "on", "s"], ["more", "next"])  # fmt: skip
    nested.node[0].input[2] = "t"
    nested.input[2].name = "t"
    check(graph([make("Loop", ["n", "", "x"], ["y"], body=nested)], [(4,)], n=np.int64(2), k=np.int64(2), w=numbers(4)))
    endless = graph([make("Loop", ["n", "", "x"], ["y"], body=until)], [(4,)], n=np.int64(2**40), two=np.int64(2**40))
    with pytest.raises(tenon.error.UnsupportedError, match="more than 5000 nodes"):
        tenon.onnx.load(endless)


def test_scans():
    step = body([make("MatMul", ["h", "r"], ["m"]), make("Add", ["m", "v"], ["a"]), make("Tanh", ["a"], ["next"]),
                 make("Identity", ["next"], ["row"])], ["h", "v"], ["next", "row"])  # fmt: skip
    for way in (0, 1):
        nodes = [TURNED, make("ReduceSum", ["x", "one"], ["h0"], keepdims=0),
                 make("Scan", ["h0", "t"], ["last", "rows"], body=step, num_scan_inputs=1, scan_input_directions=[way],
                      scan_output_directions=[way]),
                 make("Transpose", ["rows"], ["y"], perm=[1, 0, 2])]  # fmt: skip
        check(graph(nodes, [(STEPS, 3)], outputs=("y", "last"), one=ints(1), r=0.5 * numbers(3, 3)))


def test_samples_that_are_no_first_dimension_are_moved_to_the_front():
    """As a recurrence alone has them: [steps, samples, features]; the only dimension of the input that may differ."""
    given = weights("LSTM")
    cell = make("LSTM", ["x", *given], ["a", "h"], hidden_size=SIZE)
    model = graph([cell], [(FEATURES,)], outputs=("a", "h"), **given)
    del model.graph.input[0].type.tensor_type.shape.dim[:]
    for size in (STEPS, "samples", FEATURES):
        name = {"dim_param": size} if isinstance(size, str) else {"dim_value": size}
        model.graph.input[0].type.tensor_type.shape.dim.add(**name)
    x = numbers(STEPS, 2, FEATURES)
    steps, last = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    parameters = tenon.onnx.load(model)
    assert parameters.outputs[0].data_types["x"].shape == (STEPS, FEATURES)
    found = tenon.infer(parameters.outputs, parameters, {"x": x.swapaxes(0, 1)})
    close(found[0], np.moveaxis(steps, 2, 0))
    close(found[1], np.moveaxis(last, 1, 0))
