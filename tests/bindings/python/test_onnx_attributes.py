"""Attributes of ONNX that change nothing for the sizes and inputs of a node, beside onnxruntime; the same attributes where
they do change something are refused by name. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import numpy as np
import onnx
import onnx.defs
import onnxruntime
import pytest
from onnx import TensorProto, helper

import tenon
from test_onnx_operators import IMAGE, check, graph, ints, node, numbers, of_channels

ROW = (1, 6, 5)
SAME = [
    (node("Reshape", "s", allowzero=1), {"s": ints(-1, 120)}),
    (node("Reshape", "s", allowzero=1), {"s": ints(-1, 4, 30)}),
    (node("PRelu", "slope"), {"slope": numbers(1, 4, 1, 1)}),
    (node("PRelu", "slope"), {"slope": numbers(4, 1, 1)}),
    (node("PRelu", "slope"), {"slope": numbers(1, 1, 1, 1)}),
    (node("PRelu", "slope"), {"slope": numbers(1, 1, 6, 1)}),
    (node("PRelu", "slope"), {"slope": numbers(5)}),
    (node("MaxPool", kernel_shape=[2, 2], storage_order=1), {}),
    (node("MaxPool", kernel_shape=[2, 1], strides=[2, 1], ceil_mode=1), {}),
    (node("MaxPool", kernel_shape=[2, 2], auto_pad="VALID", dilations=[1, 1]), {}),
    (node("MaxPool", kernel_shape=[2, 2], auto_pad="NOTSET", pads=[0, 0, 0, 0]), {}),
    (node("AveragePool", kernel_shape=[2, 2], count_include_pad=1), {}),
    (node("AveragePool", kernel_shape=[2, 2], count_include_pad=1, auto_pad="VALID"), {}),
    (node("LpPool", kernel_shape=[2, 2], dilations=[1, 1], ceil_mode=0), {}),
    (node("Conv", "w", auto_pad="NOTSET", dilations=[1, 1], kernel_shape=[3, 2], group=1), {"w": numbers(2, 4, 3, 2)}),
    (node("ConvTranspose", "w", output_padding=[0, 0], dilations=[1, 1], auto_pad="NOTSET"), {"w": numbers(4, 3, 3, 3)}),
    (node("BatchNormalization", "scale", "shift", "mean", "variance", training_mode=0, momentum=0.1), of_channels()),
    (node("LayerNormalization", "scale", "shift", axis=-1, stash_type=1), {"scale": numbers(5), "shift": numbers(5)}),
    (node("LayerNormalization", "scale", axis=3), {"scale": numbers(5)}),
    (node("Clip"), {}),
    (node("Clip", "low", "high"), {"low": np.float32(-np.inf), "high": np.float32(np.inf)}),
    (node("Clip", "low", "high"), {"low": np.float32(-0.5), "high": np.float32(np.inf)}),
    (node("Cast", to=TensorProto.FLOAT, saturate=1), {}),
    (node("Dropout", "rate", "training"), {"rate": np.float32(0.3), "training": np.bool_(False)}),
    (node("Dropout", "rate", "training", seed=3), {"rate": np.float32(0), "training": np.bool_(True)}),
    (node("ReduceMean", "axes", noop_with_empty_axes=1), {"axes": ints(2, 3)}),
    (node("ReduceMean", noop_with_empty_axes=1, keepdims=0), {}),
    (node("Pad", "pads", mode="reflect"), {"pads": ints(0, 0, 0, 0, 0, 0, 0, 0)}),
    (node("Pad", "pads", "value", mode="edge"), {"pads": ints(0, 0, 1, 0, 0, 0, 0, 2), "value": np.float32(4)}),
    (node("Slice", "a", "b", "axes", "steps"), {"a": ints(2), "b": ints(3), "axes": ints(2), "steps": ints(2)}),
    (node("Slice", "a", "b", "axes", "steps"),
     {"a": ints(0, 1), "b": ints(2, 3), "axes": ints(0, 1), "steps": ints(1, 1)}),
    (node("Slice", "a", "b", "axes"), {"a": ints(0), "b": ints(2**40), "axes": ints(-4)}),
    (node("Split", "parts", outputs=("y", "z"), axis=1), {"parts": ints(2, 2)}),
    (node("Split", outputs=("y", "z"), axis=1, num_outputs=2), {}),
    (node("Concat", axis=1), {}),
    (node("Transpose", perm=[0, 1, 2, 3]), {}),
    (node("Resize", "", "scales", mode="nearest"), {"scales": np.float32([1, 1, 0.5, 1])}),
    (node("Resize", "", "scales", mode="nearest", coordinate_transformation_mode="align_corners"),
     {"scales": np.float32([1, 1, 2, 2])}),
    (node("Resize", "", "", "sizes", mode="linear", antialias=1), {"sizes": ints(2, 4, 9, 10)}),
    (node("Resize", "", "", "sizes", mode="linear", keep_aspect_ratio_policy="not_larger", axes=[2, 3]),
     {"sizes": ints(12, 10)}),
    (node("Resize", "", "scales", mode="linear", cubic_coeff_a=-0.5, extrapolation_value=3.0),
     {"scales": np.float32([1, 1, 2, 3])}),
    *((node("Resize", "", "scales", mode=mode, coordinate_transformation_mode=places), {"scales": np.float32([1, 1, 1, 1])})
      for mode in ("nearest", "linear", "cubic")
      for places in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")),
    (node("Resize", "", "", "sizes", mode="linear", coordinate_transformation_mode="pytorch_half_pixel"),
     {"sizes": ints(2, 4, 9, 2)}),
    (node("Resize", "", "scales", mode="linear", coordinate_transformation_mode="half_pixel_symmetric"),
     {"scales": np.float32([1, 1, 2, 2])}),
    (node("Resize", "", "scales", mode="nearest", coordinate_transformation_mode="half_pixel",
          nearest_mode="round_prefer_ceil"),
     {"scales": np.float32([1, 1, 3, 2])}),
    (node("Resize", "", "", "sizes", mode="nearest", coordinate_transformation_mode="asymmetric",
          nearest_mode="round_prefer_floor"),
     {"sizes": ints(2, 4, 3, 5)}),
]  # fmt: skip


@pytest.mark.parametrize("each, constants", SAME, ids=[f"{i}-{each.op_type}" for i, (each, _) in enumerate(SAME)])
def test_attributes_that_change_nothing(each, constants):
    check(graph([each], [IMAGE], outputs=list(each.output), samples=2, version=19, **constants))


OF_ONE = [  # sizes of 1, where more is equal than elsewhere
    (node("Flatten", axis=2), {}, (1, 30)),
    (node("Flatten", axis=-2), {}, (1, 30)),
    (node("Flatten", axis=2), {}, (1,)),
    (node("Squeeze"), {}, (1, 6, 5)),
    (node("LayerNormalization", "scale", axis=2), {"scale": numbers(1, 5)}, (6, 1, 5)),
    (node("Resize", "", "", "sizes", mode="linear", coordinate_transformation_mode="asymmetric"),
     {"sizes": ints(2, 4, 7, 5)}, (4, 1, 5)),
    (node("Resize", "", "", "sizes", mode="nearest", coordinate_transformation_mode="align_corners"),
     {"sizes": ints(2, 4, 7, 5)}, (4, 1, 5)),
    (node("PRelu", "slope"), {"slope": numbers(1, 7)}, (7,)),
    (node("PRelu", "slope"), {"slope": numbers(7)}, (7,)),
    (node("Gemm", "w", "b", alpha=1.0, beta=1.0, transA=0, transB=0), {"w": numbers(7, 3), "b": numbers(1, 3)}, (7,)),
    (node("Gemm", "w", "b", beta=0.0), {"w": numbers(7, 3), "b": numbers(3)}, (7,)),
    (node("Gemm", "w", "b"), {"w": numbers(7, 3), "b": numbers(1)}, (7,)),
]  # fmt: skip


@pytest.mark.parametrize("each, constants, sizes", OF_ONE, ids=[f"{i}-{each[0].op_type}" for i, each in enumerate(OF_ONE)])
def test_attributes_that_change_nothing_for_sizes_of_one(each, constants, sizes):
    check(graph([each], [sizes], outputs=list(each.output), samples=2, **constants))


def test_attributes_that_change_nothing_and_that_onnxruntime_does_not_take():
    scales = {"scales": np.float32([1, 1, 0.5, 3])}
    nearest = node("Resize", "", "scales", mode="nearest", antialias=1, coordinate_transformation_mode="asymmetric",
                   nearest_mode="floor")
    for each, constants in ((nearest, scales), (node("Cast", to=TensorProto.FLOAT, saturate=0), {})):
        assert len(tenon.onnx.load(graph([each], version=19, **constants)).outputs) == 1


def test_attributes_that_change_nothing_in_older_versions():
    for op in ("Softmax", "LogSoftmax"):
        check(graph([node(op, axis=1)], [(7, 1, 1)], version=11))  # as image classifiers end
        check(graph([node(op)], [(1, 1, 7)], version=9))
    check(graph([node("BatchNormalization", "s", "s", "s", "s", spatial=1)], version=8, s=abs(numbers(4))))
    statistics = {each: abs(numbers(7)) for each in ("a", "b", "c", "d")}
    by_column = tenon.onnx.load(graph([node("BatchNormalization", *statistics, spatial=0)], [(7,)], version=8, **statistics))
    assert by_column.outputs[0].type == "batch_norm"


CHANGED = [
    (node("Reshape", "s", allowzero=1), "allowzero is 1", {"s": ints(0, 4, 30)}),
    (node("PRelu", "slope"), "slope has shape", {"slope": numbers(2, 4, 1, 1)}),
    (node("PRelu", "slope"), "slope has shape", {"slope": numbers(1, 4, 6, 1)}),
    (node("PRelu", "slope"), "needs slope of shape", {"slope": numbers(1, 3, 1, 1)}),
    (node("PRelu", "slope"), "slope has shape", {"slope": numbers(1, 1, 4, 1, 1)}),
    (node("MaxPool", kernel_shape=[2, 2], storage_order=1, outputs=["y", "z"]), "indices", {}),
    (node("Flatten", axis=0), "axis is 0", {}),
    (node("LayerNormalization", "s", axis=2), "axis is 2", {"s": numbers(6, 5)}),
    (node("Softmax", axis=7), "axis is 7", {}),
    (node("Softmax", axis=-(2**62)), "axis is -4611", {}),
    (node("Dropout", "rate", "training"), "training_mode", {"rate": np.float32(0.3), "training": np.bool_(True)}),
    (node("Slice", "a", "b", "axes", "steps"), "axis 0 of",
     {"a": ints(0), "b": ints(6), "axes": ints(0), "steps": ints(2)}),
    (node("Slice", "a", "b", "axes"), "as many of each", {"a": ints(0), "b": ints(6, 7), "axes": ints(2)}),
    (node("Split", "parts", outputs=("y", "z"), axis=1), "lengths are", {"parts": ints(1, 2)}),
    (node("Split", outputs=("y", "z"), axis=1, num_outputs=2**40), "num_outputs", {}),
    (node("Resize", "", "scales", mode="linear", antialias=1), "antialias is 1", {"scales": np.float32([1, 1, 0.5, 1])}),
    (node("Resize", "", "", "sizes", mode="linear", keep_aspect_ratio_policy="not_larger"), "keep_aspect_ratio_policy",
     {"sizes": ints(2, 4, 12, 5)}),
    (node("Resize", "", "scales", mode="nearest", coordinate_transformation_mode="align_corners"), "align_corners",
     {"scales": np.float32([1, 1, 3, 1])}),
    (node("Resize", "", "scales", mode="linear"), "no whole numbers", {"scales": np.float32([1, 1, 1.05, 1])}),
    (node("Resize", "", "scales", mode="linear", coordinate_transformation_mode="tf_crop_and_resize"), "tf_crop",
     {"scales": np.float32([1, 1, 1, 1])}),
    (node("ConvTranspose", "w", auto_pad="OTHER"), "auto_pad", {"w": numbers(4, 3, 3, 3)}),
    (node("ConvTranspose", "w", pads=[1, 1]), "pads has 2 numbers", {"w": numbers(4, 3, 3, 3)}),
    (node("ReduceMax", axes=[1], keepdims=7), "keepdims is 7; 0 or 1 is understood", {}),
    (node("Relu", other=1), "attributes that are not understood: other", {}),
]  # fmt: skip


@pytest.mark.parametrize("each, words, constants", CHANGED, ids=[f"{i}-{words}" for i, (_, words, _) in enumerate(CHANGED)])
def test_attributes_that_change_something_are_refused_by_name(each, words, constants):
    model = graph([each], [IMAGE], outputs=list(each.output), samples=2, version=19, **constants)
    with pytest.raises(tenon.error.UnsupportedError, match=words):
        tenon.onnx.load(model)


def test_a_bias_for_each_sample_is_no_bias_for_each_column():
    model = graph([node("Gemm", "w", "b")], [(7,)], samples=3, w=numbers(7, 3), b=numbers(3, 1))
    with pytest.raises(tenon.error.UnsupportedError, match="the bias has shape"):
        tenon.onnx.load(model)


def test_every_attribute_at_its_default_is_accepted():
    """Exporters that write all attributes, also those at the value that they have where they are absent."""
    constants = {"w": numbers(4, 4, 3, 3), **of_channels()}
    inputs = {"Conv": ["w"], "ConvTranspose": ["w"], "BatchNormalization": ["scale", "shift", "mean", "variance"],
              "InstanceNormalization": ["scale", "shift"]}  # fmt: skip
    fixed = {"MaxPool": {"kernel_shape": [2, 2]}, "AveragePool": {"kernel_shape": [2, 2]}, "LpPool": {"kernel_shape": [2, 2]},
             "Cast": {"to": 1}, "ArgMax": {"axis": 1}, "ArgMin": {"axis": 1},
             "DepthToSpace": {"blocksize": 2}, "SpaceToDepth": {"blocksize": 1}, "Concat": {"axis": 1},
             "LRN": {"size": 3}}  # fmt: skip
    unable = {"Flatten", "Gemm", "MatMul", "Pad", "PRelu", "Reshape",
              "Resize", "Slice", "Split", "Squeeze", "Unsqueeze", "Upsample", "LayerNormalization", "Transpose"}  # fmt: skip
    tried = 0
    for op in sorted(set(tenon.onnx._load.OPERATORS) - unable):
        schema = onnx.defs.get_schema(op, 20)
        binary = op in ("Add", "Sub", "Mul", "Div", "Pow")
        if op.startswith("Reduce") or (schema.min_input > 1 and op not in inputs and not binary):
            continue
        defaults = {name: onnx.helper.get_attribute_value(each.default_value)
                    for name, each in schema.attributes.items() if each.default_value.name}  # fmt: skip
        if binary:
            inputs[op] = ["x"]
        if not defaults and op not in fixed:
            continue
        tried += 1
        made = node(op, *inputs.get(op, []), **{**defaults, **fixed.get(op, {})})
        tenon.onnx.load(graph([made], version=20, **{name: constants[name] for name in inputs.get(op, []) if name != "x"}))
    assert tried > 12


def test_shapes_of_an_exporter_load(tmp_path):
    """A convolution, a Flatten as Reshape with allowzero, and a matrix, as PyTorch writes them."""
    nodes = [node("Conv", "k", outputs=["c"]), helper.make_node("PRelu", ["c", "p"], ["q"]),
             helper.make_node("Reshape", ["q", "s"], ["f"], allowzero=1),
             helper.make_node("Gemm", ["f", "w", "b"], ["y"], transB=1)]  # fmt: skip
    model = graph(nodes, [(1, 5, 5)], k=numbers(2, 1, 3, 3), p=numbers(1, 2, 1, 1), s=ints(-1, 18), w=numbers(3, 18),
                  b=numbers(3))
    check(model)
    images = numbers(2, 1, 5, 5)
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": images})[0]
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0, location="m.onnx.data")
    parameters = tenon.onnx.load(tmp_path / "m.onnx", channels_first=True)
    assert np.allclose(tenon.infer(parameters.outputs[0], parameters, images), wanted, rtol=1e-4, atol=1e-5)
