"""Why operators that files often have are not read, and what works in their place. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

_TREES = "no layer is a forest of trees; onnxruntime runs it, and linear models, SVR and MLPs of scikit-learn are read"
_TEXTS = "texts are not computed with; let a reader turn them into numbers, and load what follows"
_INTEGERS = (
    "computes in integers; a model that is quantized with QuantizeLinear and DequantizeLinear (onnxruntime: "
    "quantize_static(..., quant_format=QuantFormat.QDQ)) is read, and so is the one before it was quantized"
)
_OPEN = "the size of its result depends on values; load(..., outputs=...) reads the values before it"
_CHANCE = "draws numbers, which depend on the runtime; load(..., outputs=...) reads the values before it"

_REASONS: dict[str, dict[str, str]] = {
    "": {
        **dict.fromkeys(("QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger"), _INTEGERS),
        "DynamicQuantizeLinear": "its scale is of all samples together; " + _INTEGERS,
        **dict.fromkeys(("NonZero", "Unique", "Compress", "NonMaxSuppression"), _OPEN),
        **dict.fromkeys(("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial",
                         "Bernoulli"), _CHANCE),
        **dict.fromkeys(("StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch", "TfIdfVectorizer"), _TEXTS),
    },
    "ai.onnx.ml": {
        **dict.fromkeys(("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"), _TREES),
        "SVMClassifier": "votes between pairs of classes are not read; SVR, LinearSVC and LogisticRegression are",
        **dict.fromkeys(("CategoryMapper", "DictVectorizer"), _TEXTS),
    },
}  # fmt: skip
_DOMAINS = {
    "com.microsoft": "onnxruntime writes it when it optimizes or quantizes a model; the model before that is read, and one "
                     "that is quantized with quant_format=QuantFormat.QDQ",
    "ai.onnx.preview.training": "trains a model; tenon.train does, once the model is loaded",
}  # fmt: skip


def reason(op: str, domain: str) -> str:
    """Returns why an operator without a conversion is not read, with what is known of it."""
    text = "unknown operator" + (f' of the domain "{domain}"' if domain else "")
    more = _REASONS.get(domain, {}).get(op) or _DOMAINS.get(domain, "")
    return f"{text}: {more}" if more else text
