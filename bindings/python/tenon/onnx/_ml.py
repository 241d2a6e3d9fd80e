"""Operators of the domain ai.onnx.ml, as pipelines of scikit-learn have them. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tenon._model.layer import Layer
from tenon.onnx._build import Build, Made, Operator
from tenon.onnx._graph import Node
from tenon.onnx._select import embedded
from tenon.onnx._shapes import selected
from tenon.onnx._values import Array, Refusal, Value, float32, plain

_TRANSFORMS = {"NONE": "", "SOFTMAX": "softmax", "LOGISTIC": "sigmoid"}
_MOST_KEYS = 4096  # of an encoder, each of which is compared


def _columns(build: Build, node: Node, number: int = 0) -> Value:
    """Returns an input with its columns last."""
    value = build.unflattened(node, build.value(node, number))
    if value.rank < 2:
        raise Refusal(f"reads {value.text}; [samples, columns] is understood")
    return value if value.order[-1] == value.rank - 1 else build.as_plain(node, value)


def _row(build: Build, node: Node, like: Layer, values: Any) -> Layer:
    return build.fixed(node, like, float32(np.asarray(values)).reshape(-1))


def _scaler(build: Build, node: Node) -> Made:
    value = _columns(build, node)
    offset, scale = node.get("offset") or [0.0], node.get("scale") or [1.0]
    layers = [value.layer, _row(build, node, value.layer, offset), _row(build, node, value.layer, scale)]
    return value.like(build.formula(node, "(x - y) * z", layers))


def _imputer(build: Build, node: Node) -> Made:
    value = _columns(build, node)
    floats, integers = node.get("imputed_value_floats"), node.get("imputed_value_int64s")
    missing = node.get("replaced_value_float", 0.0) if floats else node.get("replaced_value_int64", 0)
    for name in ("replaced_value_float", "replaced_value_int64"):
        node.get(name)
    if not (floats or integers):
        raise Refusal("imputed_value_floats or imputed_value_int64s must be there")
    layers = [value.layer, _row(build, node, value.layer, floats or integers)]
    test = "x != x" if np.isnan(missing) else f"x == ({float(missing)})"
    return value.like(build.formula(node, f"where({test}, y, x)", layers))


def _binarizer(build: Build, node: Node) -> Made:
    value = build.value(node)
    return value.like(build.formula(node, f"x > ({float(node.get('threshold', 0.0))})", [value.layer]))


def _normalizer(build: Build, node: Node) -> Made:
    value, kind = _columns(build, node), node.get("norm", "MAX")
    types: dict[str, tuple[str, dict[str, Any]]] = {"MAX": ("max", {}),
                                                    "L1": ("norm", {"order": 1}), "L2": ("norm", {"order": 2})}  # fmt: skip
    if kind not in types:
        raise Refusal(f"norm is {kind!r}; MAX, L1 or L2 is understood")
    type, attributes = types[kind]
    size = build.layer(node, type, [value.layer], {"axis": -1, "keep_dimensions": True, **attributes}, ".norm")
    return value.like(build.formula(node, "x / where(y == 0, 1, y)", [value.layer, size]))


def _categories(node: Node, *names: str) -> Array:
    """Returns numbers of the first of these attributes that is there. Texts have none."""
    for name in names:
        if node.get(name) is not None:
            return np.asarray(node.get(name))
    texts = [name for name in node.attributes if name.endswith("strings")]
    for name in texts:
        node.get(name)
    raise Refusal(f"{', '.join(texts) or names[0]}: texts are not understood; {' or '.join(names)} are")


def _matches(build: Build, node: Node, value: Value, keys: Array) -> Layer:
    """Returns whether each element of a value is each of some keys, along one more dimension."""
    if keys.size > _MOST_KEYS:
        raise Refusal(f"has {keys.size} keys; at most {_MOST_KEYS} are understood")
    column = build.layer(node, "reshape", [build.plain(node, value)], {"shape": [*value.dims, 1]}, ".column")
    return build.layer(node, "equal", [column, _row(build, node, column, keys)], suffix=".match")


def _one_hot(build: Build, node: Node) -> Made:
    value = build.unflattened(node, build.value(node))
    keys = _categories(node, "cats_int64s")
    node.get("zeros")  # whether other ids are an error of the runtime, or have no column, as here
    return Value(_matches(build, node, value, keys), plain(value.rank + 1), samples=value.samples)


def _label_encoder(build: Build, node: Node) -> Made:
    value = build.unflattened(node, build.value(node))
    keys = _categories(node, "keys_int64s", "keys_floats")
    values = _categories(node, "values_int64s", "values_floats")
    whole = node.attributes.get("values_int64s") is not None
    default = float(node.get("default_int64", -1) if whole else node.get("default_float", 0.0))
    for name in ("default_int64", "default_float", "default_string"):
        node.get(name)
    match = _matches(build, node, value, keys)
    layer = build.layer(node, "fc", [match], {"size": 1, "bias": False, "axis": -1}, ".values")
    build.set(layer, weight=(values.astype(np.float64) - default).reshape(-1, 1))
    layer = build.layer(node, "reshape", [layer], {"shape": list(value.dims)}, ".shape")
    shifted = build.layer(node, "scale_shift", [layer], {"shift": default})
    return Value(shifted, plain(value.rank), samples=value.samples, kind="int" if whole else "float")


def _extractor(build: Build, node: Node) -> Made:
    if build.is_constant(node, 0):
        return _looked_up(build, node)
    value, places = build.unflattened(node, build.value(node)), build.constant(node, 1, "places")
    if value.samples == value.rank - 1:
        raise Refusal(f"chooses samples of {value.text}")
    axis = value.rank - 1
    indices = [int(each) for each in places.ravel()]
    if not indices or min(indices) < 0 or max(indices) >= value.dims[axis - 1]:
        raise Refusal(f"chooses places {indices} of {value.text}")
    return selected(build, node, value, axis, indices)


def _looked_up(build: Build, node: Node) -> Value:
    """Returns an element of a constant list for each sample, [1, samples]."""
    table, ids = build.constant(node, 0, "list"), build.value(node, 1)
    if table.size != table.shape[-1] or int(np.prod(ids.dims)) != 1:
        raise Refusal(f"chooses places {ids.text} of constants of shape {list(table.shape)}; one of a list is understood")
    if table.dtype.kind in "OSTU":
        raise Refusal(f"its list has texts, which are not understood; {_CHOOSE}")
    single = build.layer(node, "reshape", [build.plain(node, ids)], {"shape": []}, ".place")
    layer = embedded(build, node, single, table.reshape(-1, 1))
    return Value(layer, plain(2), samples=1, kind="int" if table.dtype.kind in "iu" else "float")


_CHOOSE = "load(..., outputs=[...]) reads only outputs that do not need it"


def _linear(build: Build, node: Node, count: int) -> tuple[Value, Layer]:
    """Returns the columns, and `count` linear functions of them."""
    value = _columns(build, node)
    weight = float32(node.get("coefficients")).reshape(count, -1)
    if value.rank != 2 or weight.shape[1] != value.dims[0]:
        raise Refusal(f"has {weight.shape[1]} coefficients for each of {count} functions of {value.text}")
    intercepts = node.get("intercepts")
    layer = build.layer(node, "fc", [value.layer], {"size": count, "bias": bool(intercepts)}, ".linear")
    build.set(layer, weight=weight.T, bias=np.asarray(intercepts) if intercepts else None)
    return value, layer


def _transformed(build: Build, node: Node, layer: Layer) -> Layer:
    kind = node.get("post_transform", "NONE")
    if kind not in _TRANSFORMS:
        raise Refusal(f"post_transform is {kind!r}; {', '.join(_TRANSFORMS)} are understood")
    return build.layer(node, _TRANSFORMS[kind], [layer], suffix=".scores") if _TRANSFORMS[kind] else layer


def _regressor(build: Build, node: Node) -> Made:
    _, layer = _linear(build, node, int(node.get("targets", 1)))
    node.require("post_transform", "NONE", "NONE")
    return Value(layer, plain(2))


def _classifier(build: Build, node: Node) -> Made:
    node.get("multi_class")  # of no effect
    labels = node.get("classlabels_ints")
    texts = node.get("classlabels_strings")
    count = len(labels or texts or ())
    functions = len(node.get("intercepts") or ()) or count
    if count < 2 or functions != count:
        raise Refusal(f"has {functions} functions for {count} classes; one for each class is understood")
    _, layer = _linear(build, node, count)
    scores = Value(_transformed(build, node, layer), plain(2))
    if not (node.outputs[0] and build.uses[node.outputs[0]]):
        return [scores, scores]
    if texts:
        raise Refusal(f"classlabels_strings: its labels are texts, which are not understood; {_CHOOSE}")
    place = build.layer(node, "argmax", [layer], {"axis": -1}, ".place")
    if list(labels) == list(range(count)):
        return [Value(place, plain(1), kind="int"), scores]
    label = embedded(build, node, place, np.asarray(labels).reshape(-1, 1))
    return [Value(build.layer(node, "reshape", [label], {"shape": []}, ".label"), plain(1), kind="int"), scores]


def _svm_regressor(build: Build, node: Node) -> Made:
    count, kernel = int(node.get("n_supports", 0)), node.get("kernel_type", "LINEAR")
    node.require("post_transform", "NONE", "NONE")
    node.require("one_class", 0, 0)
    shift, coefficients = float((node.get("rho") or [0.0])[0]), float32(node.get("coefficients"))
    value, vectors = _columns(build, node), node.get("support_vectors")
    gamma, offset, degree = (float(each) for each in [*(node.get("kernel_params") or ()), 0.0, 0.0, 0.0][:3])
    if count == 0:
        weight, product = coefficients.reshape(-1, 1), value.layer
    else:
        vectors = float32(vectors).reshape(count, -1)
        product = build.layer(node, "fc", [value.layer], {"size": count, "bias": False}, ".product")
        build.set(product, weight=vectors.T)
        product, weight = (
            _kernel(build, node, kernel, value, product, vectors, (gamma, offset, degree)),
            coefficients.reshape(-1, 1),
        )
    layer = build.layer(node, "fc", [product], {"size": 1})
    build.set(layer, weight=weight, bias=np.array([shift]))
    return Value(layer, plain(2))


def _kernel(build: Build, node: Node, kernel: str, value: Value, product: Layer, vectors: Array,
            numbers: tuple[float, float, float]) -> Layer:  # fmt: skip
    """Returns the kernel of the input and each support vector, of whose products it is a function."""
    gamma, offset, degree = numbers
    inner = f"({gamma} * x + ({offset}))"
    texts = {"POLY": f"{inner} ** {degree}", "SIGMOID": f"tanh({inner})"}
    if kernel == "LINEAR":
        return product
    if kernel in texts:
        return build.formula(node, texts[kernel], [product], ".kernel")
    if kernel != "RBF":
        raise Refusal(f"kernel_type is {kernel!r}; LINEAR, POLY, RBF and SIGMOID are understood")
    square = build.layer(node, "sum", [build.formula(node, "x * x", [value.layer], ".square")],
                         {"axis": -1, "keep_dimensions": True}, ".length")  # fmt: skip
    own = _row(build, node, value.layer, (vectors * vectors).sum(1))
    return build.formula(node, f"exp(-{gamma} * max(0, y + z - 2 * x))", [product, square, own], ".kernel")


def _same(build: Build, node: Node) -> Made:
    """ZipMap, which gives the columns of probabilities names: the columns stay."""
    for name in ("classlabels_int64s", "classlabels_strings"):
        node.get(name)
    return build.value(node)


def _vectorizer(build: Build, node: Node) -> Made:
    values = [_columns(build, node, number) for number in range(len(node.inputs))]
    node.get("inputdimensions")
    return replace(values[0].like(build.layer(node, "concat", [each.layer for each in values], {"axis": -1})), kind="float")


OPERATORS: dict[str, Operator] = {
    "ArrayFeatureExtractor": _extractor, "Binarizer": _binarizer, "FeatureVectorizer": _vectorizer, "Imputer": _imputer,
    "LabelEncoder": _label_encoder, "LinearClassifier": _classifier, "LinearRegressor": _regressor,
    "Normalizer": _normalizer, "OneHotEncoder": _one_hot, "SVMRegressor": _svm_regressor, "Scaler": _scaler, "ZipMap": _same,
}  # fmt: skip
