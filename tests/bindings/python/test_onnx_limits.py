"""Models of ONNX that ask for too much, or that are damaged: errors of the library, in little time and memory.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import random
import resource
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tenon

X = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
Y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
ADD = helper.make_node("Add", ["x", "c"], ["y"])


def model(nodes, version=20, functions=(), **constants):
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    opsets = [helper.make_opsetid("", version), helper.make_opsetid("mine", 1)]
    made = helper.make_graph(nodes, "test", [X], [Y], tensors)
    return helper.make_model(made, opset_imports=opsets, functions=list(functions))


def made(op, *inputs, **attributes):
    return helper.make_node(op, list(inputs), ["c"], **attributes)


def chain(levels, width, values):
    nodes = [helper.make_node("Concat", [f"c{i}"] * width, [f"c{i + 1}"], axis=0) for i in range(levels)]
    return nodes, {"c0": values}


def doubled(levels):
    """Functions each of which calls the one before twice."""
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("mine", 1)]
    found = []
    for level in range(levels):
        domain, called = ("mine", f"f{level - 1}") if level else ("", "Relu")
        nodes = [helper.make_node(called, ["a"], ["b"], domain=domain), helper.make_node(called, ["b"], ["d"], domain=domain)]
        found.append(helper.make_function("mine", f"f{level}", ["a"], ["d"], nodes, opsets))
    return found


LARGE = {
    "ConstantOfShape": model([made("ConstantOfShape", "s"), ADD], s=np.int64([2**33])),
    "ConstantOfShape of many sizes": model([made("ConstantOfShape", "s"), ADD], s=np.int64([2**9] * 7)),
    "Tile": model([made("Tile", "a", "s"), ADD], a=np.ones(4, np.float32), s=np.int64([2**26])),
    "Expand": model([made("Expand", "a", "s"), ADD], a=np.ones(1, np.float32), s=np.int64([2**33])),
    "Range": model([made("Range", "a", "b", "d"), ADD], a=np.float32(0), b=np.float32(2**30), d=np.float32(1)),
    "Range of tiny steps": model([made("Range", "a", "b", "d"), ADD], a=np.float32(0), b=np.float32(1), d=np.float32(1e-30)),
    "Gather": model([made("Gather", "a", "i"), ADD], a=np.ones((1, 10**5), np.float32), i=np.zeros(10**5, np.int64)),
    "Add": model([made("Add", "a", "b"), ADD], a=np.ones((10**5, 1), np.float32), b=np.ones(10**5, np.float32)),
    "Where": model([made("Where", "a", "b", "b"), ADD], a=np.ones((10**5, 1), bool), b=np.ones(10**5, np.float32)),
    "Clip": model([made("Clip", "a", "b"), ADD], a=np.ones((10**5, 1), np.float32), b=np.ones(10**5, np.float32)),
    "MatMul": model([made("MatMul", "a", "b"), ADD], a=np.ones((10**5, 1), np.float32), b=np.ones((1, 10**5), np.float32)),
    "RegexFullMatch": model([made("RegexFullMatch", "t", pattern="(a+)+$"), ADD], t=np.array(["a" * 40 + "!"], object)),
    "Cast to texts": model([made("Cast", "a", to=TensorProto.STRING), ADD], a=np.ones(4, np.float32)),
    "Einsum": model([made("Einsum", "a", "a", equation="ij,kl->ijkl"), ADD], a=np.ones((10**3, 10**3), np.float32)),
    "OneHot": model([made("OneHot", "i", "d", "v"), ADD], i=np.zeros(10**5, np.int64), d=np.int64(10**6), v=np.float32([0, 1])),
    "DequantizeLinear": model([made("DequantizeLinear", "q", "s", block_size=2**40), ADD], version=21,
                              q=np.ones((4, 4), np.int8), s=np.ones((4, 4), np.float32)),
    "Split": model([made("Split", "a", num_outputs=2**40), ADD], a=np.ones(4, np.float32)),
}  # fmt: skip
WIDE = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2**40])
BODY = helper.make_graph([helper.make_node("Neg", ["v"], ["w"])], "body", [helper.make_tensor_value_info("v", 1, [])],
                         [helper.make_tensor_value_info("w", 1, [])])  # fmt: skip


def wide(*nodes, **constants):
    """A model whose input has so many columns that they cannot be counted one by one."""
    found = model(list(nodes), **constants)
    found.graph.input[0].CopyFrom(WIDE)
    return found


LARGE |= {
    "OneHot of values": model([helper.make_node("OneHot", ["x", "d", "v"], ["y"])], d=np.int64(2**40), v=np.float32([0, 1])),
    "Slice backwards": wide(helper.make_node("Slice", ["x", "a", "b", "o", "s"], ["y"]), a=np.int64([-1]),
                            b=np.int64([-(2**50)]), o=np.int64([1]), s=np.int64([-1])),
    "ReverseSequence": wide(helper.make_node("ReverseSequence", ["x", "l"], ["y"], time_axis=1, batch_axis=0),
                            l=np.int64([2**40])),
    "Scan": wide(helper.make_node("Transpose", ["x"], ["t"]),
                 helper.make_node("Scan", ["t"], ["y"], body=BODY, num_scan_inputs=1)),
    "LSTM": wide(helper.make_node("Unsqueeze", ["x", "two"], ["u"]),
                 helper.make_node("Transpose", ["u"], ["t"], perm=[1, 0, 2]),
                 helper.make_node("LSTM", ["t", "w", "r"], ["", "y"], hidden_size=1), two=np.int64([2]),
                 w=np.ones((1, 4, 1), np.float32), r=np.ones((1, 4, 1), np.float32)),
    "constants of samples": model([helper.make_node("Shape", ["x"], ["s"]), made("Expand", "a", "s"), ADD],
                                  a=np.ones((1, 2**22), np.float32)),
    "Gather and Loop": model([helper.make_node("Loop", ["m", ""], ["c"], body=helper.make_graph(
        [helper.make_node("Identity", ["on"], ["more"]), helper.make_node("Concat", ["k"] * 64, ["row"], axis=0)], "body",
        [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("on", 9, [])],
        [helper.make_tensor_value_info("more", 9, []), helper.make_tensor_value_info("row", 1, None)])), ADD],
        m=np.int64(2**40), k=np.ones(2**10, np.float32)),
}  # fmt: skip
nodes, given = chain(8, 16, np.ones(4, np.float32))
LARGE["Concat"] = model([*nodes, helper.make_node("Add", ["x", "c8"], ["y"])], **given)
nodes, given = chain(8, 16, np.ones(4, np.int64))
LARGE["Concat of sizes"] = model([*nodes, helper.make_node("Reshape", ["x", "c8"], ["y"])], **given)
LARGE["functions"] = model([helper.make_node("f59", ["x"], ["y"], domain="mine")], functions=doubled(60))


@pytest.mark.parametrize("name", LARGE)
def test_a_small_file_does_not_ask_for_much(name):
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    with pytest.raises((tenon.error.UnsupportedError, tenon.error.BadDataError)):
        tenon.onnx.load(LARGE[name].SerializeToString())
    assert time.perf_counter() - began < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # KiB


def test_constants_that_exporters_compute():
    """Sizes, and weights that are laid out anew, also large ones."""
    nodes = [helper.make_node("Shape", ["w"], ["s"]), helper.make_node("Gather", ["s", "one"], ["n"]),
             helper.make_node("Range", ["zero", "n", "step"], ["r"]), helper.make_node("Cast", ["r"], ["f"], to=1),
             helper.make_node("Where", ["m", "f", "b"], ["h"]), helper.make_node("Transpose", ["w"], ["t"]),
             helper.make_node("Gemm", ["x", "v", "g"], ["y"]),
             helper.make_node("Unsqueeze", ["h", "axis"], ["u"]), helper.make_node("Expand", ["u", "e"], ["p"]),
             helper.make_node("Mul", ["p", "t"], ["v"]),
             helper.make_node("ReduceSum", ["w", "last"], ["g"], keepdims=0)]  # fmt: skip
    order = [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 6]
    weight = np.arange(12, dtype=np.float32).reshape(3, 4)
    load = tenon.onnx.load(model(
        [nodes[i] for i in order], w=weight, one=np.int64(1), zero=np.int64(0), step=np.int64(1),
        m=np.array([True, False, True, True]),
        b=np.float32([9, 9, 9, 9]), axis=np.int64([1]), e=np.int64([4, 3]), last=np.int64([1])))  # fmt: skip
    factors = np.float32([0, 9, 2, 3])[:, None]
    got = tenon.infer(load.outputs[0], load, np.eye(4, dtype=np.float32))
    assert np.allclose(got, factors * weight.T + weight.sum(1))
    wide = np.ones((4, 3_000_000), np.float32)
    nodes = [made("Transpose", "w"), helper.make_node("MatMul", ["x", "c"], ["y"])]
    written = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(np.ascontiguousarray(wide.T)))
    for turned in (model(nodes, w=wide.T), model([written, *nodes])):
        assert next(iter(tenon.onnx.load(turned).values())).shape == (4, 3_000_000)


def damaged_tensor(**fields):
    tensor = TensorProto(name="c", data_type=1)
    for name, value in fields.items():
        getattr(tensor, name).extend(value) if isinstance(value, list) else setattr(tensor, name, value)
    made = model([ADD])
    made.graph.initializer.append(tensor)
    return made


@pytest.mark.parametrize("broken, words", [
    (damaged_tensor(dims=[4], raw_data=b"abc"), 'tensor "c" is damaged'),
    (damaged_tensor(dims=[4], raw_data=b"abc", data_type=99), 'tensor "c" is damaged'),
    (damaged_tensor(dims=[-4], raw_data=b"abcd" * 4), 'tensor "c" is damaged'),
    (damaged_tensor(dims=[2**40, 2**40], raw_data=b"abcd"), 'tensor "c" is damaged'),
    (model([ADD, ADD], c=np.ones(4, np.float32)), 'make the value "y"'),
    (model([helper.make_node("Concat", [], ["y"], axis=1)]), r'node "Concat_0" \(Concat\) is damaged'),
    (model([helper.make_node("Clip", ["x", "c"], ["y"])], c=np.ones((2, 2), np.float32)), r'node "Clip_0" \(Clip\) is damaged'),
    (model([helper.make_node("Relu", ["x"], [])]), r'node "Relu_0" \(Relu\) is damaged'),
    (model([helper.make_node("Reshape", ["x", "c"], ["y"])], c=np.ones((2, 2), np.int64)),
     r'node "Reshape_0" \(Reshape\) is damaged'),
    (model([helper.make_node("f0", ["x"], ["y"], domain="mine")], functions=[helper.make_function(
        "mine", "f0", ["a"], ["b"], [helper.make_node("f0", ["a"], ["b"], domain="mine")], [helper.make_opsetid("mine", 1)])]),
     '"f0" calls itself'),
])  # fmt: skip
def test_a_damaged_part_is_named(broken, words):
    with pytest.raises(tenon.error.BadDataError, match=words):
        tenon.onnx.load(broken)


def external(location, **entries):
    made = model([ADD])
    tensor = made.graph.initializer.add(name="c", data_type=1, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, "length": "16", **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return made


def in_attribute(location):
    made = external(location)
    tensor = made.graph.initializer.pop()
    made.graph.node.insert(0, helper.make_node("Constant", [], ["c"], value=tensor))
    return made


def test_a_model_from_memory_reads_no_files(tmp_path, monkeypatch):
    (tmp_path / "secret.bin").write_bytes(np.ones(4, np.float32).tobytes())
    monkeypatch.chdir(tmp_path)
    for made in (external("secret.bin"), in_attribute("secret.bin")):
        for source in (made, made.SerializeToString()):
            with pytest.raises(tenon.error.BadDataError, match='of tensor "c" are in the file "secret.bin"'):
                tenon.onnx.load(source)


def test_data_beside_a_file_stay_in_its_folder(tmp_path, monkeypatch):
    folder, outside = tmp_path / "models", tmp_path / "secret.bin"
    (folder / "sub").mkdir(parents=True)
    data = np.arange(4, dtype=np.float32)
    for file in (outside, folder / "own.bin", folder / "sub" / "deep.bin"):
        file.write_bytes(data.tobytes())
    os.symlink(outside, folder / "link.bin")
    os.symlink(tmp_path, folder / "up")
    os.symlink("own.bin", folder / "inner.bin")
    os.mkfifo(folder / "fifo.bin")
    monkeypatch.chdir(folder)
    for location in ("own.bin", "sub/deep.bin", "inner.bin", "sub/../own.bin"):
        for made in (external(location), in_attribute(location)):
            (folder / "m.onnx").write_bytes(made.SerializeToString())
            for path in ("m.onnx", folder / "m.onnx"):
                parameters = tenon.onnx.load(path)
                assert np.array_equal(tenon.infer(parameters.outputs[0], parameters, np.zeros((1, 4), np.float32))[0], data)
    refused = [("../secret.bin", "not in the folder"), (str(outside), "not in the folder"), ("link.bin", "not in the folder"),
               ("up/secret.bin", "not in the folder"), ("sub", "not a file"), ("fifo.bin", "not a file"), ("", "not a file"),
               ("a\0b", 'tensor "c"'), ("/dev/zero", "not in the folder")]  # fmt: skip
    for location, words in refused:
        (folder / "m.onnx").write_bytes(external(location).SerializeToString())
        with pytest.raises(tenon.error.BadDataError, match=words):
            tenon.onnx.load("m.onnx")
    for entries in ({"offset": "-4"}, {"offset": "8"}, {"length": "-1"}, {"length": "99"}, {"length": "x"}, {"length": "8"}):
        (folder / "m.onnx").write_bytes(external("own.bin", **entries).SerializeToString())
        with pytest.raises(tenon.error.BadDataError, match='tensor "c"'):
            tenon.onnx.load("m.onnx")
    for entries in ({"length": ""}, {"length": str(1 << 40)}):  # more than the tensor has is not read
        with open(folder / "large.bin", "wb") as file:
            file.truncate(1 << 40)
        (folder / "m.onnx").write_bytes(external("large.bin", **entries).SerializeToString())
        with pytest.raises(tenon.error.BadDataError, match=r"1099511627776 bytes; \[4\] has at most 16"):
            tenon.onnx.load("m.onnx")
    (folder / "m.onnx").write_bytes(external("none.bin").SerializeToString())
    with pytest.raises(tenon.error.NotFoundError, match="none.bin"):
        tenon.onnx.load("m.onnx")


def valid_models():
    """Models of most operators, which mutations begin with."""
    import test_onnx_attributes
    import test_onnx_operators

    for each, constants in [*test_onnx_operators.ONE, *test_onnx_attributes.SAME]:
        yield test_onnx_operators.graph([each], outputs=list(each.output), samples=2, version=19, **constants)
    yield LARGE["Concat of sizes"]
    yield LARGE["Where"]


def changed_number(dice):
    return dice.choice([0, 1, -1, 2, 3, -(2**31), 2**31, 2**40, 2**62, -(2**63), 2**63 - 1, dice.randrange(-9, 9)])


def mutate(model, dice):
    """Changes one part of a model: an attribute, a name, a size, numbers, or bytes."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    node = dice.choice(list(made.graph.node))
    tensors = list(made.graph.initializer)
    what = dice.randrange(9)
    if what == 0 and node.attribute:
        attribute = dice.choice(list(node.attribute))
        if attribute.ints:
            attribute.ints[dice.randrange(len(attribute.ints))] = changed_number(dice)
        attribute.i = changed_number(dice)
        attribute.f = dice.choice([0.0, -1.0, float("nan"), float("inf"), 1e38])
    elif what == 1 and node.attribute:
        attribute = dice.choice(list(node.attribute))
        del attribute.ints[dice.randrange(3) :]
        attribute.type = dice.randrange(15)
    elif what == 2 and node.input:
        node.input[dice.randrange(len(node.input))] = dice.choice(["", "x", "y", "none", *(each.name for each in tensors)])
    elif what == 3:
        del node.input[dice.randrange(3) :]
    elif what == 4 and tensors:
        tensor = dice.choice(tensors)
        tensor.dims[:] = [changed_number(dice) for _ in range(dice.randrange(4))]
    elif what == 5 and tensors:
        tensor = dice.choice(tensors)
        tensor.raw_data = bytes(dice.randrange(256) for _ in range(min(len(tensor.raw_data), 64))) + tensor.raw_data[64:]
    elif what == 6 and tensors:
        tensor = dice.choice(tensors)
        tensor.data_type = dice.randrange(30)
    elif what == 7:
        node.op_type = dice.choice([*tenon.onnx._load.OPERATORS, *tenon.onnx._fold._COUNTS])
    else:
        raw = bytearray(made.SerializeToString())
        for _ in range(dice.randrange(1, 4)):
            raw[dice.randrange(len(raw))] = dice.randrange(256)
        return bytes(raw)
    return made.SerializeToString()


def fuzz(count, seed):
    """Loads mutants. Returns how many were refused; any exception but one of the library passes."""
    dice, models, refused = random.Random(seed), list(valid_models()), 0
    for number in range(count):
        mutant = mutate(dice.choice(models), dice)
        try:
            with np.errstate(all="ignore"):
                tenon.onnx.load(mutant)
        except tenon.error.Error:
            refused += 1
        except BaseException as failure:
            raise AssertionError(f"mutant {number} of seed {seed}: {failure!r}") from failure
    return refused


def test_mutants_raise_errors_of_the_library():
    assert fuzz(600, 1) > 200
