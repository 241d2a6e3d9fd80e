"""Operators of ai.onnx.ml, as pipelines of scikit-learn have them, beside onnxruntime. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import tenon
from others import close
from test_onnx_operators import numbers

make = helper.make_node


def ml(op, inputs=("x",), outputs=("y",), **attributes):
    return make(op, list(inputs), list(outputs), domain="ai.onnx.ml", **attributes)


def graph(nodes, columns=3, outputs=("y",), type=TensorProto.FLOAT, **constants):
    inputs = [helper.make_tensor_value_info("x", type, ["n", columns])]
    values = [helper.make_empty_tensor_value_info(name) for name in outputs]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph(nodes, "test", inputs, values, tensors), opset_imports=opsets, ir_version=8)


def check(model, x, outputs=None, labels=None):
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(outputs, {"x": x})
    parameters = tenon.onnx.load(model, outputs=outputs)
    found = tenon.infer(parameters.outputs, parameters, {"x": x}, nan="allow")
    for got, each in zip(found, wanted, strict=True):
        close(got, np.array([[row[name] for name in labels] for row in each], np.float32) if isinstance(each, list) else each)


def linear(count, **attributes):
    given = {"coefficients": numbers(3 * count), "intercepts": numbers(count), **attributes}
    return ml("LinearClassifier", outputs=("l", "p"), **{name: each for name, each in given.items() if each is not None})


ROWS = [
    ml("Scaler", offset=numbers(3), scale=numbers(3)), ml("Scaler", offset=[0.5], scale=[2.0]),
    ml("Binarizer", threshold=0.2), ml("Binarizer"), *(ml("Normalizer", norm=norm) for norm in ("L1", "L2")),
    ml("ArrayFeatureExtractor", ["x", "i"]), ml("LinearRegressor", coefficients=numbers(3), intercepts=numbers(1)),
    ml("LinearRegressor", coefficients=numbers(6), intercepts=numbers(2), targets=2),
    ml("LinearRegressor", coefficients=numbers(3)),
    ml("FeatureVectorizer", ["x", "x"], inputdimensions=[3, 3]),
    *(ml("SVMRegressor", kernel_type=kernel, n_supports=4, support_vectors=numbers(12), coefficients=numbers(4), rho=[0.3],
         kernel_params=[0.5, 0.2, 2.0]) for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID")),
]  # fmt: skip


@pytest.mark.parametrize("each", ROWS, ids=[f"{i}-{each.op_type}" for i, each in enumerate(ROWS)])
def test_one_operator(each):
    check(graph([each], i=np.int64([2, 0])), numbers(5, 3))


def test_the_largest_normalizes():
    check(graph([ml("Normalizer", norm="MAX")]), abs(numbers(5, 3)))


def test_missing_values_are_filled():
    x = numbers(4, 3)
    x[1, 2] = x[3, 0] = np.nan
    check(graph([ml("Imputer", imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=float("nan"))]), x)
    x = np.float32([[-9, 1, 2], [3, -9, -9]])
    check(graph([ml("Imputer", imputed_value_floats=[4.0], replaced_value_float=-9.0)]), x)


def test_encoders():
    x = np.int64([[1, 4, 7], [4, 1, 9]])
    check(graph([ml("OneHotEncoder", cats_int64s=[1, 4, 7])], type=TensorProto.INT64), x)
    for values in ({"values_floats": [0.5, -1.5], "default_float": 2.5}, {"values_int64s": [30, -40], "default_int64": 7}):
        check(graph([ml("LabelEncoder", keys_int64s=[4, 9], **values)], type=TensorProto.INT64), x)
    check(graph([ml("LabelEncoder", keys_floats=[0.5, -1.0], values_floats=[2.0, 3.0])]), np.float32([[0.5, -1, 4]]))


@pytest.mark.parametrize("count, transform", [(3, "SOFTMAX"), (3, "NONE"), (2, "LOGISTIC"), (3, "LOGISTIC")])
@pytest.mark.parametrize("labels", [[0, 1, 2], [7, -3, 12]])
def test_linear_classifiers(count, transform, labels):
    """With the numbers of classes, and with the names of columns, which fold away."""
    each = linear(count, classlabels_ints=labels[:count], post_transform=transform)
    check(graph([each], outputs=("l", "p")), numbers(6, 3))
    named = graph([each, ml("ZipMap", ["p"], ["y"], classlabels_int64s=labels[:count])])
    check(named, numbers(6, 3), labels=labels[:count])


def test_texts_are_left_out_by_the_choice_of_outputs():
    each = linear(3, classlabels_strings=["a", "b", "c"], post_transform="SOFTMAX")
    made = graph([each], outputs=("l", "p"))
    check(made, numbers(6, 3), ["p"])
    with pytest.raises(tenon.error.UnsupportedError, match=r"classlabels_strings: its labels are texts.*outputs="):
        tenon.onnx.load(made)


def test_the_label_of_a_network():
    """As scikit-learn's MLPClassifier is written: a place, looked up in a list."""
    nodes = [make("MatMul", ["x", "w"], ["h"]), make("Softmax", ["h"], ["p"]), make("ArgMax", ["p"], ["m"], axis=1),
             ml("ArrayFeatureExtractor", ["c", "m"], ["a"]), make("Reshape", ["a", "s"], ["r"]),
             make("Cast", ["r"], ["y"], to=TensorProto.INT64)]  # fmt: skip
    check(graph(nodes, outputs=("y", "p"), w=numbers(3, 4), c=np.int32([5, 3, 8, 1]), s=np.int64([-1])), numbers(6, 3))


@pytest.mark.parametrize("each, words", [
    (ml("TreeEnsembleRegressor", name="forest"),
     r"node \"forest\" \(TreeEnsembleRegressor\): unknown operator of the domain \"ai.onnx.ml\": no layer is a forest"),
    (ml("TreeEnsembleClassifier", outputs=("y", "p")), "onnxruntime runs it, and linear models"),
    (ml("SVMClassifier", outputs=("y", "p")), "SVR, LinearSVC and LogisticRegression are"),
    (ml("DictVectorizer"), "texts are not computed with"),
    (make("FusedMatMul", ["x", "x"], ["y"], domain="com.microsoft"), "onnxruntime writes it when it optimizes"),
    (ml("Normalizer", norm="L7"), "norm is 'L7'; MAX, L1 or L2"),
    (ml("OneHotEncoder", cats_strings=["a", "b"]), "cats_strings: texts are not understood; cats_int64s are"),
    (ml("LinearRegressor", coefficients=numbers(4)), "has 4 coefficients for each of 1 functions"),
    (ml("LinearRegressor", coefficients=numbers(3), post_transform="PROBIT"), "post_transform is 'PROBIT'; only 'NONE'"),
    (ml("SVMRegressor", kernel_type="OTHER", n_supports=1, support_vectors=numbers(3), coefficients=numbers(1)),
     "kernel_type is"),
    (linear(1, classlabels_ints=[0, 1]), "has 1 functions for 2 classes"),
])  # fmt: skip
def test_what_is_refused(each, words):
    with pytest.raises(tenon.error.UnsupportedError, match=words):
        tenon.onnx.load(graph([each], outputs=each.output[:1]))


def test_schema_defaults_are_accepted():
    """Attributes of this domain at their defaults."""
    defaults = {name: onnx.helper.get_attribute_value(each.default_value)
                for name, each in onnx.defs.get_schema("Normalizer", 3, "ai.onnx.ml").attributes.items()}  # fmt: skip
    check(graph([ml("Normalizer", **defaults)]), abs(numbers(5, 3)))
