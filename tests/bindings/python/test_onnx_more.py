"""Operators that choose, compare, reduce and multiply, beside onnxruntime. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import tenon
from test_onnx_operators import IMAGE, check, graph, ints, node, numbers

make = helper.make_node
INT64, UINT8, BOOL = TensorProto.INT64, TensorProto.UINT8, TensorProto.BOOL
PLACES = np.random.default_rng(1)


def ids(*shape, below=5):
    return PLACES.integers(0, below, shape)


ROWS = [
    *((node(op, axis=axis, keepdims=keep), {}) for op in ("ArgMax", "ArgMin") for axis in (1, -1) for keep in (0, 1)),
    *((node(op, "axes", keepdims=keep), {"axes": ints(*axes)})
      for op in ("ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
                 "ReduceSumSquare")
      for axes, keep in (((1, -1), 1), ((2,), 0), ((-3, -2, -1), 0), ((1, 2, 3), 1))),
    *((node(op, noop_with_empty_axes=1), {}) for op in ("ReduceMax", "ReduceSum")),
    (node("CumSum", "axis"), {"axis": np.int64(1)}),
    (node("CumSum", "axis", exclusive=1, reverse=1), {"axis": np.int64(-1)}),
    (node("TopK", "k", outputs=("y", "z"), axis=1), {"k": ints(2)}),
    (node("TopK", "k", outputs=("y", "z"), axis=-1, largest=0), {"k": ints(3)}),
    *((node("DepthToSpace", blocksize=2, mode=mode), {}) for mode in ("DCR", "CRD")),
    (node("Gather", "i", axis=1), {"i": ints(2, -1, 0)}),
    (node("Gather", "i", axis=2), {"i": np.int64(3)}),
    (node("Gather", "i", axis=-1), {"i": ints(*range(5))}),
    (node("Gather", "i", axis=2), {"i": np.array([[0, 1], [5, 2]])}),
    (node("Slice", "a", "b", "axes", "steps"), {"a": ints(0, -1), "b": ints(6, -9), "axes": ints(2, 3), "steps": ints(2, -1)}),
    (node("Expand", "s"), {"s": ints(2, 4, 6, 5)}),
    (node("Expand", "s"), {"s": ints(1)}),
    (node("Tile", "r"), {"r": ints(1, 2, 1, 3)}),
    (node("Mod", "c", fmod=1), {"c": np.float32(0.7)}),
    (make("Mod", ["c", "x"], ["y"], fmod=1), {"c": numbers(6, 1)}),
    (make("Where", ["c", "x", "d"], ["y"]), {"c": numbers(6, 5) > 0, "d": np.float32(-9)}),
    (make("Where", ["c", "d", "x"], ["y"]), {"c": numbers(4, 1, 1) > 0, "d": numbers(5)}),
    *((node(op), {}) for op in ("Ceil", "Round", "Sinh", "Cosh", "Tan")),
    (node("MatMul", "w"), {"w": numbers(4, 5, 3)}),
    (make("MatMul", ["w", "x"], ["y"]), {"w": numbers(3, 6)}),
    (make("MatMul", ["w", "x"], ["y"]), {"w": numbers(1, 4, 3, 6)}),
    (node("Softmax", axis=1), {}),
    *((node("Einsum", "w", equation=equation), {"w": numbers(*sizes)})
      for equation, sizes in (("bcij,jk->bcik", (5, 3)), ("b...j,jk->b...k", (5, 3)), ("bcij,ki->bkc", (3, 6)),
                              ("bcij,c->bij", (4,)), ("bcij,cij", (4, 6, 5)), ("...ij, ij -> ...", (6, 5)))),
    (node("Einsum", equation="bcij->bjc"), {}),
    (node("Einsum", "x", equation="bcij,bkij->bck"), {}),
    (node("GroupNormalization", "s", "t", num_groups=2, epsilon=1e-3), {"s": numbers(4), "t": numbers(4)}),
]  # fmt: skip


@pytest.mark.parametrize("each, constants", ROWS, ids=[f"{i}-{each.op_type}" for i, (each, _) in enumerate(ROWS)])
def test_one_operator(each, constants):
    version = 21 if each.op_type == "GroupNormalization" else 18
    check(graph([each], [IMAGE], outputs=list(each.output), samples=2, version=version, **constants))


@pytest.mark.parametrize("each, constants", ROWS, ids=[f"{i}-{each.op_type}" for i, (each, _) in enumerate(ROWS)])
def test_one_operator_of_a_value_in_another_layout(each, constants):
    before = make("MaxPool", ["x"], ["v"], kernel_shape=[1, 1])
    reads = make(each.op_type, ["v" if name == "x" else name for name in each.input], list(each.output))
    reads.attribute.extend(each.attribute)
    version = 21 if each.op_type == "GroupNormalization" else 18
    check(graph([before, reads], [IMAGE], outputs=list(each.output), samples=2, version=version, **constants))


def test_comparisons_and_truth_values():
    for op in ("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"):
        check(graph([node(op, "c", outputs=["t"]), make("Cast", ["t"], ["y"], to=1)], c=numbers(5)))
        nodes = [node(op, "x1", outputs=["t"]), make("Where", ["t", "x", "x1"], ["y"])]
        check(graph(nodes, [IMAGE, (1, 6, 1)]))
    for op in ("And", "Or", "Xor"):
        nodes = [node("Greater", "z", outputs=["a"]), node("Less", "c", outputs=["b"]), make("Not", ["b"], ["n"]),
                 make(op, ["a", "n"], ["t"]), make("Cast", ["t"], ["y"], to=1)]  # fmt: skip
        check(graph(nodes, z=np.float32(0), c=numbers(6, 5)))
    feeds = {"x": np.float32([[np.nan, 1, np.inf, -np.inf]])}
    for op, more in (("IsNaN", {}), ("IsInf", {}), ("IsInf", {"detect_negative": 0}), ("IsInf", {"detect_positive": 0})):
        made = graph([node(op, outputs=["t"], **more), make("Cast", ["t"], ["y"], to=1)], [(4,)])
        wanted = onnxruntime.InferenceSession(made.SerializeToString()).run(None, feeds)[0]
        parameters = tenon.onnx.load(made)
        assert np.array_equal(tenon.infer(parameters.outputs[0], parameters, feeds, nan="allow"), wanted)


def test_ids_and_what_is_computed_of_them():
    """Tables, ids as floats, sums of ids, and ids of one number a sample."""
    table, more = {"t": numbers(7, 3)}, {"o": ints(1, 2)}
    feeds = {"x": ids(3, 2)}
    check(graph([make("Gather", ["t", "x"], ["y"])], [(2,)], type=INT64, **table), feeds)
    check(graph([make("Gather", ["t", "x"], ["y"])], [()], type=INT64, **table), {"x": ids(3)})
    check(graph([make("Gather", ["t", "x"], ["y"])], [(2, 2)], type=INT64, t=numbers(6, 2, 3)), {"x": ids(3, 2, 2)})
    check(graph([make("Gather", ["t", "x"], ["y"])], [(2,)], type=INT64, t=numbers(6)), feeds)
    check(graph([node("Cast", to=6, outputs=["i"]), make("Gather", ["t", "i"], ["y"])], [(2,)], type=INT64, **table), feeds)
    check(
        graph([node("Add", "o", outputs=["i"]), make("Gather", ["t", "i"], ["y"])], [(2,)], type=INT64, **table, **more), feeds
    )
    check(graph([node("Cast", to=1, outputs=["f"]), make("Mul", ["f", "c"], ["y"])], [(2,)], type=INT64, c=numbers(2)), feeds)
    check(graph([node("Div", "o", outputs=["d"]), make("Cast", ["d"], ["y"], to=1)], [(2,)], type=INT64, o=ints(2, -3)),
          {"x": ids(40, 2) - 2})  # fmt: skip
    check(graph([node("Mod", "o", outputs=["d"]), make("Cast", ["d"], ["y"], to=1)], [(2,)], type=INT64, o=ints(2, -3)),
          {"x": ids(40, 2) - 2})  # fmt: skip
    for axis in (-1, 1):
        check(graph([node("OneHot", "n", "v", axis=axis)], [(2,)], type=INT64, n=np.int64(5), v=np.float32([-1, 2])), feeds)
    chosen = [node("ArgMax", axis=-1, keepdims=0, outputs=["i"]), make("Gather", ["t", "i"], ["y"])]
    check(graph(chosen, [(4, 7)], **table))


def test_bytes_and_truth_values_are_fed():
    scaled = [node("Cast", to=1, outputs=["f"]), make("Div", ["f", "c"], ["y"])]
    check(graph(scaled, [(2, 3)], type=UINT8, c=np.float32(255)), {"x": PLACES.integers(0, 256, (3, 2, 3)).astype(np.uint8)})
    images = [node("Cast", to=1, outputs=["f"]), make("Conv", ["f", "k"], ["y"])]
    check(
        graph(images, [(2, 4, 5)], type=UINT8, k=numbers(3, 2, 2, 2)),
        {"x": PLACES.integers(0, 256, (2, 2, 4, 5)).astype(np.uint8)},
    )
    check(graph([make("Where", ["x", "a", "b"], ["y"])], [(3,)], type=BOOL, a=numbers(3), b=numbers(3)),
          {"x": ids(4, 3, below=2).astype(bool)})  # fmt: skip


def test_numbers_become_whole():
    nodes = [node("Cast", to=7, outputs=["i"]), make("Cast", ["i"], ["y"], to=1)]
    check(graph(nodes, [(9,)]), {"x": 5 * numbers(4, 9)})
    nodes = [node("Cast", to=9, outputs=["i"]), make("Cast", ["i"], ["y"], to=1)]
    check(graph(nodes, [(3,)]), {"x": np.float32([[0, -0.5, 3]])})


def test_places_of_the_samples():
    """Values whose samples are not the first dimension."""
    turned = node("Transpose", perm=[1, 0, 2], outputs=["t"])
    back = make("Transpose", ["r"], ["y"], perm=[1, 0, 2])
    for nodes, given in (
        ([make("Relu", ["t"], ["r"])], {}),
        ([make("MatMul", ["t", "w"], ["r"])], {"w": numbers(5, 3)}),
        ([make("Add", ["t", "c"], ["r"])], {"c": numbers(4, 1, 5)}),
        ([make("Softmax", ["t"], ["r"], axis=0)], {}),
        ([make("Concat", ["t", "t"], ["r"], axis=0)], {}),
        ([make("Slice", ["t", "a", "b"], ["r"])], {"a": ints(1), "b": ints(3)}),
        ([make("Split", ["t"], ["r", "rest"], axis=0, num_outputs=2)], {}),
        (
            [make("Reshape", ["t", "s"], ["u"]), make("Reshape", ["u", "z"], ["r"])],
            {"s": ints(2, 2, -1, 5), "z": ints(4, -1, 5)},
        ),
        ([make("Unsqueeze", ["t", "a"], ["u"]), make("Squeeze", ["u", "a"], ["r"])], {"a": ints(1)}),
        ([make("ReduceMean", ["t", "a"], ["r"])], {"a": ints(0)}),
    ):
        check(graph([turned, *nodes, back], [(4, 5)], samples=2, **given))
    check(graph([turned, make("Gather", ["t", "i"], ["y"])], [(4, 5)], i=np.int64(-1)))
    check(graph([turned, make("ReduceSum", ["t", "a"], ["y"], keepdims=0)], [(4, 5)], a=ints(0)))
    check(graph([turned, make("Add", ["t", "x1"], ["r"]), back], [(4, 5), (5,)], samples=2))
    with pytest.raises(tenon.error.UnsupportedError, match=r"reads \[4, samples, 5\]; its samples must be the first"):
        tenon.onnx.load(graph([turned, make("Gemm", ["t", "w"], ["y"])], [(4, 5)], w=numbers(5, 3)))


def test_constants_that_are_as_many_as_the_samples():
    """What exporters make of the number of samples, as a class token or zeros."""
    count = [node("Shape", outputs=["s"], end=1), make("Concat", ["s", "rest"], ["shape"], axis=0)]
    token = [*count, make("Expand", ["token", "shape"], ["e"]), make("Concat", ["e", "x"], ["y"], axis=1)]
    check(graph(token, [(4, 5)], rest=ints(1, 5), token=numbers(1, 1, 5)))
    zeros = [*count, make("ConstantOfShape", ["shape"], ["z"]), make("Cos", ["z"], ["c"]), make("Add", ["x", "c"], ["y"])]
    check(graph(zeros, [(4, 5)], rest=ints(4, 5)))
    kept = [*count, make("Equal", ["shape", "minus"], ["e"]), make("Where", ["e", "ones", "shape"], ["w"]),
            make("Expand", ["x", "w"], ["y"])]  # fmt: skip
    check(graph(kept, [(1, 5)], rest=ints(-1, 5), minus=ints(-1), ones=ints(1, 1, 1)))
    turned = [*count, make("Expand", ["token", "shape"], ["e"]), make("Transpose", ["e"], ["t"], perm=[2, 0, 1]),
              make("Slice", ["t", "zero", "two"], ["c"]), make("ReduceSum", ["c", "zero"], ["u"], keepdims=0),
              make("Unsqueeze", ["u", "two"], ["v"]), make("Add", ["x", "v"], ["y"])]  # fmt: skip
    check(graph(turned, [(4, 5)], rest=ints(4, 5), token=numbers(1, 1, 5), zero=ints(0), two=ints(2)))
    for op, more, words in (("Add", {"c": ints(1, 0, 0)}, "calculates"), ("Range", {}, "calculates"),
                            ("Mul", {"c": ints(2, 1, 1)}, "reshapes")):  # fmt: skip
        inputs = ["zero", "n", "one"] if op == "Range" else ["shape", "c"]
        nodes = [*count, make("Squeeze", ["s", "z"], ["n"]), make(op, inputs, ["r"]), make("Reshape", ["x", "r"], ["y"])]
        with pytest.raises(tenon.error.UnsupportedError, match=words):
            tenon.onnx.load(graph(nodes, [(4, 5)], rest=ints(4, 5), zero=np.int64(0), one=np.int64(1), z=ints(0), **more))


def test_softmax_of_older_versions_is_over_all_dimensions():
    for op in ("Softmax", "LogSoftmax"):
        check(graph([node(op)], version=11))
        check(graph([node(op, axis=2)], version=9))


def test_one_output_of_a_graph():
    """What the outputs that are wanted do not need may be of any kind."""
    nodes = [node("Relu", outputs=["r"]), make("NonZero", ["r"], ["n"]), make("Tanh", ["r"], ["y"])]
    made = graph(nodes, outputs=("n", "y"))
    with pytest.raises(tenon.error.UnsupportedError, match="NonZero"):
        tenon.onnx.load(made)
    images = numbers(2, *IMAGE)
    for wanted, function in (("y", lambda x: np.tanh(np.maximum(x, 0))), ("r", lambda x: np.maximum(x, 0))):
        parameters = tenon.onnx.load(made, outputs=wanted)
        assert np.allclose(tenon.infer(parameters.outputs[0], parameters, images), function(images), atol=1e-6)
    assert len(tenon.onnx.load(made, outputs=["y", "r", "y"]).outputs) == 3
    with pytest.raises(tenon.error.NotFoundError, match='no value "z"; the outputs are n, y'):
        tenon.onnx.load(made, outputs=["z"])
    unread = graph([node("Relu")], [IMAGE, ("any",)])
    assert list(tenon.onnx.load(unread).outputs[0].data_types) == ["x"]


def test_sizes_that_the_file_leaves_open():
    made = graph([make("Gather", ["t", "x"], ["e"]), make("ReduceMean", ["e", "a"], ["y"], keepdims=0)], [("length",)],
                 type=INT64, t=numbers(5, 3), a=ints(1))  # fmt: skip
    for sizes in ({"length": 4}, {"x": [4]}):
        check(made, {"x": ids(3, 4)}, sizes=sizes)
    with pytest.raises(tenon.error.UnsupportedError, match=r"its shape is \[n, length\]"):
        tenon.onnx.load(made)
    with pytest.raises(tenon.error.NotFoundError, match=r"the open ones are \['length', 'n'\]"):
        tenon.onnx.load(made, sizes={"width": 4})


def test_rows_of_all_samples():
    """Samples that are one dimension with others, before and after them, as a matrix or heads of attention."""
    rows = [node("Reshape", "s", outputs=["r"]), make("MatMul", ["r", "w"], ["m"]), make("Add", ["m", "b"], ["a"]),
            make("Relu", ["a"], ["q"]), make("Reshape", ["q", "back"], ["y"])]  # fmt: skip
    given = {"s": ints(-1, 5), "w": numbers(5, 3), "b": numbers(3), "back": ints(-1, 4, 3)}
    check(graph(rows, [(4, 5)], **given))
    check(graph([node("Flatten", axis=2, outputs=["r"]), *rows[1:]], [(4, 5)], **given))
    gemm = [rows[0], make("Gemm", ["r", "w", "b"], ["m"]), make("Softmax", ["m"], ["q"], axis=1), rows[-1]]
    check(graph(gemm, [(4, 5)], **given))
    heads = [node("Transpose", perm=[1, 0, 2], outputs=["t"]), make("Reshape", ["t", "apart"], ["h"]),
             make("Transpose", ["h"], ["q"], perm=[1, 0, 2]), make("Transpose", ["q"], ["k"], perm=[0, 2, 1]),
             make("MatMul", ["q", "k"], ["p"]), make("Mul", ["p", "mask"], ["o"]), make("Softmax", ["o"], ["c"]),
             make("MatMul", ["c", "q"], ["v"]), make("Transpose", ["v"], ["u"], perm=[1, 0, 2]),
             make("Reshape", ["u", "all"], ["f"]), make("Gemm", ["f", "w"], ["g"]), make("Reshape", ["g", "steps"], ["e"]),
             make("Transpose", ["e"], ["y"], perm=[1, 0, 2])]  # fmt: skip
    check(graph(heads, [(5, 6)], apart=ints(5, -1, 3), mask=numbers(1, 5, 5), all=ints(-1, 6), w=numbers(6, 2),
                steps=ints(5, -1, 2)))  # fmt: skip
    check(graph(heads, [(5, 6)], samples=2, apart=ints(5, 4, 3), mask=numbers(5, 5), all=ints(10, 6), w=numbers(6, 2),
                steps=ints(5, 2, 2)))  # fmt: skip
    for nodes, words in (([rows[0]], r'"r": is \[4 samples, 5\]'),
                         ([rows[0], make("CumSum", ["r", "one"], ["r2"])], r"reads \[4 samples, 5\]; the samples must be"),
                         ([rows[0], make("Add", ["r", "x"], ["r2"])], r"its inputs are \[4 samples, 5\] and")):  # fmt: skip
        with pytest.raises(tenon.error.UnsupportedError, match=words):
            tenon.onnx.load(graph(nodes, [(4, 5)], outputs=nodes[-1].output, one=np.int64(1), **given))


def test_steps_are_reversed():
    check(graph([node("ReverseSequence", "n", time_axis=1, batch_axis=0)], [(4, 5)], samples=2, n=ints(4, 4)))
    with pytest.raises(tenon.error.UnsupportedError, match=r"reverses \[4, 2\] steps"):
        tenon.onnx.load(graph([node("ReverseSequence", "n", time_axis=1, batch_axis=0)], [(4, 5)], samples=2, n=ints(4, 2)))


def test_groups_of_an_older_version_have_one_scale():
    given = {"s": numbers(2), "t": numbers(2)}
    old = tenon.onnx.load(graph([node("GroupNormalization", "s", "t", num_groups=2)], version=18, **given))
    each = node("GroupNormalization", "s", "t", num_groups=2)
    new = graph([each], version=21, **{name: values.repeat(2) for name, values in given.items()})
    images = numbers(2, 6, 5, 4)
    parameters = tenon.onnx.load(new)
    assert np.array_equal(tenon.infer(old.outputs[0], old, images), tenon.infer(parameters.outputs[0], parameters, images))
