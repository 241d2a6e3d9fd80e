"""The names of the classes that outputs of a model are about, by the rule of `tenon infer`.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenon._model.layer import Layer, in_order

Labels = list[tuple[Sequence[str], int, set[str]]]  # names, number of classes, and the layers that are their scores


def labels_of(saved: Sequence[Layer], names: Mapping[str, Sequence[str]]) -> Labels:
    """Returns the data layers with names that costs and metrics read, with the scores that these read beside them."""
    labels: Labels = []
    for layer in in_order(saved):
        inputs = layer.inputs if layer.role != "layer" else ()
        for each in inputs:
            if each.type == "data" and names.get(each.name):
                limit = each._made().data_options()["index_limit"]
                scores: set[str] = set()
                for other in inputs:
                    _add_scores(other, scores)
                labels.append((names[each.name], limit if limit > 0 else len(names[each.name]), scores))
    return labels


def _add_scores(layer: Layer, scores: set[str]) -> None:
    """Adds a layer, and those before it up to one that has parameters: probabilities, and the scores that they are of."""
    if layer.type == "data" or layer.name in scores:
        return
    scores.add(layer.name)
    for each in layer.inputs if not layer._made().parameters() else ():
        _add_scores(each, scores)


def names_of(output: Layer, labels: Labels) -> tuple[list[str], bool] | None:
    """Returns the names of the classes of an output, and whether its values are numbers of classes; else it has one value
    for each class. None if it has nothing to do with named classes."""
    numbers = output.dtype.kind in "iu"
    inputs = output.inputs
    if numbers and not inputs:
        return None
    shape = inputs[0].shape if numbers else output.shape
    classes = shape[-1] if shape else -1
    before = {each.name for each in in_order([output])}
    fitting = [list(texts) for texts, count, scores in labels if count == classes and scores & before]
    return (fitting[0], numbers) if fitting and all(each == fitting[0] for each in fitting) else None
