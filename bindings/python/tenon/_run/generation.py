"""Generation: sequences of ids from models that were trained on whole sequences.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenon import _core, data_type, error
from tenon._base import arrays as _arrays
from tenon._base import check as _check
from tenon._base import host as _host
from tenon._model import layer as _layer
from tenon._model import scan as _scan
from tenon._model.layer import Layer, LayerLike, as_layer
from tenon._model.scan import StaticInput
from tenon.parameters import ParameterSet

_METHODS = {"greedy": _core.GENERATE_GREEDY, "sample": _core.GENERATE_SAMPLE, "beam": _core.GENERATE_BEAM}


class Generation(NamedTuple):
    """One result of a sample."""

    ids: NDArray[np.int64]  # without begin_id and prompt; the last one is end_id, unless max_length ended it
    score: float  # sum of the logarithms of the probabilities, divided for the length


class Generator:
    """Generates ids with a model that was trained on whole sequences: fed with the ids so far, it gives scores of the
    one that comes next. Layers between ids and scores compute each row by itself, or are steps of scans."""

    @_host.follows_parameters
    def __init__(
        self,
        scores: LayerLike,
        parameters: ParameterSet,
        ids: str | None = None,
        *,
        from_logits: bool = False,
        max_samples: int = 32,
        compute: str = "float32",
    ) -> None:
        """scores: a layer with a row of scores for each id. ids: the data layer of the ids; None: the only one with
        sequences of integers. from_logits: whether the scores are numbers before a softmax, not probabilities.
        max_samples: that are generated at once."""
        layer = as_layer(scores)
        cores = _layer.make([layer])
        _check.instance(parameters, ParameterSet, "a set of parameters", "parameters", "generate")
        _layer.require_host(cores, parameters.host.core, "generate")
        self._types, self._names = _layer.data_types([layer]), parameters.names
        self.ids = _ids(layer, self._types) if ids is None else _check.text(ids, "ids", "generate")
        if compute not in ("float32", "float64"):
            _check.refuse(compute, '"float32" or "float64"', "compute", "generate")
        wide = compute == "float64"
        most = _check.whole(max_samples, "max_samples", "generate", 1)
        logits = bool(_check.instance(from_logits, (bool, np.bool_), "True or False", "from_logits", "generate"))
        self._core = _core.Generator(parameters.core, cores[0], self.ids, logits, most, wide)

    def generate(
        self,
        input: Any = None,
        *,
        max_length: int,
        method: str = "greedy",
        begin_id: int | None = None,
        end_id: int | None = None,
        results: int = 1,
        beam_size: int = 1,
        length_penalty: float = 0.0,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        streams: Iterable[int] | None = None,
        sink: Callable[[int, int, int], Any] | None = None,
    ) -> list[list[Generation]]:
        """Returns the results of each sample, the best first.

        input: values of all samples by data layer, of the ids the prompts; a list of prompts if there is no other data
        layer; None: one empty prompt. max_length: of prompt and result together. method: "greedy", the most probable id;
        "sample", draws, of which each sample gets `results`; "beam", beam search of beam_size with the best `results`.
        begin_id: fed before each prompt. end_id: ends a result; beam search needs it. length_penalty: results are ranked
        by the sum of their logarithms divided by ((5 + ids) / 6) ** length_penalty. temperature, top_k, top_p: of draws,
        applied in this order. streams: of draws, a number for each sample; None: 0, 1, 2 and so on. sink: called with
        sample, result and id as each id is chosen, not with beam search; False ends all results.
        """
        of = "generate"
        if method not in _METHODS:
            _check.refuse(method, " or ".join(f'"{each}"' for each in _METHODS), "method", of)
        options = {
            "method": _METHODS[method],
            "begin_id": -1 if begin_id is None else _check.whole(begin_id, "begin_id", of),
            "end_id": -1 if end_id is None else _check.whole(end_id, "end_id", of),
            "max_length": _check.whole(max_length, "max_length", of, 1),
            "results": _check.whole(results, "results", of, 1),
            "beam_size": _check.whole(beam_size, "beam_size", of, 1),
            "length_penalty": _check.number(length_penalty, "length_penalty", of),
            "temperature": _positive(temperature, "temperature"),
            "top_k": _check.whole(top_k, "top_k", of),
            "top_p": _positive(top_p, "top_p"),
            "seed": _check.seed(seed, of),
            "streams": [] if streams is None else [_check.whole(each, "streams", of) for each in streams],
            "sink": None if sink is None else lambda *chosen: sink(*chosen) is not False,
        }
        made = self._core.generate(self._feeds(input), options)
        return [[Generation(ids, score) for ids, score in sample] for sample in made]

    def _feeds(self, given: Any) -> list[tuple[str, Any]]:
        if given is None:
            given = [[]]
        if not isinstance(given, Mapping):
            if len(self._types) > 1:
                names = ", ".join(f'"{name}"' for name in self._types)
                _check.refuse(given, f"a dict of values by data layer: {names}", "input", "generate")
            given = {self.ids: given}
        types = {name: type for name, type in self._types.items() if name in given}
        if not types:
            _check.mapping(given, "input", "generate", self._types)
        return _arrays.feeds({name: given[name] for name in types}, types, names=self._names)[0]


def generate(
    scores: LayerLike,
    parameters: ParameterSet,
    input: Any = None,
    *,
    ids: str | None = None,
    from_logits: bool = False,
    **options: Any,
) -> list[list[Generation]]:
    """Generates ids once; the arguments are those of Generator and of Generator.generate. Keep a Generator for many
    calls."""
    return Generator(scores, parameters, ids, from_logits=from_logits).generate(input, **options)


class GeneratedInput:
    """An input of the step of beam_search: the embedding of the id that the step before has chosen. size: the number of
    ids. embedding_name: the parameter_name of the layer that embeds the true ids in training. embedding_size: of a
    vector."""

    def __init__(self, size: int, embedding_name: str, embedding_size: int) -> None:
        self.size = _check.whole(size, "size", "GeneratedInput", 1)
        self.embedding_name = _check.text(embedding_name, "embedding_name", "GeneratedInput")
        self.embedding_size = _check.whole(embedding_size, "embedding_size", "GeneratedInput", 1)

    def shared(self) -> dict[str, Any]:
        """Returns the attribute by which the embedding has the parameter of the training."""
        return {"parameter_name": self.embedding_name}


class BeamSearch:
    """What beam_search makes; tenon.infer(it, parameters, input) runs it. scores: the layer of the probabilities."""

    def __init__(self, scores: Layer, ids: str, from_logits: bool, options: dict[str, Any]) -> None:
        self.scores = scores
        self.ids = ids
        self._from_logits = from_logits
        self._options = options

    def infer(self, parameters: ParameterSet, input: Any = None) -> list[list[Generation]]:
        """Returns the results of each sample, the best first. input: values by data layer."""
        return generate(self.scores, parameters, input, ids=self.ids, from_logits=self._from_logits, **self._options)


def beam_search(
    step: Callable[..., Any],
    input: GeneratedInput | StaticInput | Sequence[GeneratedInput | StaticInput],
    bos_id: int,
    eos_id: int,
    beam_size: int,
    max_length: int = 500,
    name: str = "beam_search",
    num_results_per_sample: int | None = None,
    from_logits: bool = False,
    length_penalty: float = 0.0,
) -> BeamSearch:
    """Beam search with the step of a recurrent_group, as the configurations of 2016 describe it: step takes the inputs
    in their order and returns the probabilities of all ids. One input is a GeneratedInput; the others are StaticInputs.
    num_results_per_sample: default beam_size. from_logits: whether step returns numbers before a softmax."""
    given = [input] if isinstance(input, (GeneratedInput, StaticInput)) else list(input)
    generated = [each for each in given if isinstance(each, GeneratedInput)]
    if len(generated) != 1 or any(not isinstance(each, (GeneratedInput, StaticInput)) for each in given):
        _check.refuse(input, "one GeneratedInput, and StaticInputs", "input", "beam_search")
    one = generated[0]
    ids = f"{name}.ids"
    fed = _layer.Data(ids, data_type.integer_value_sequence(one.size))
    own = {"vocabulary": one.size, "size": one.embedding_size, **one.shared()}
    vectors = Layer("embedding", [fed], own, f"{name}.vectors")
    inputs = [vectors if isinstance(each, GeneratedInput) else each for each in given]
    scores = _scan.recurrent_group(step, inputs, name=name)
    if not isinstance(scores, Layer):
        raise error.InvalidError("beam_search: step returned several layers; expected the probabilities", "beam_search", "step")
    size = _check.whole(beam_size, "beam_size", "beam_search", 1)
    results = size if num_results_per_sample is None else num_results_per_sample
    options = {"method": "beam", "begin_id": bos_id, "end_id": eos_id, "beam_size": size, "max_length": max_length,
               "results": results, "length_penalty": length_penalty}  # fmt: skip
    return BeamSearch(scores, ids, from_logits, options)


def _positive(value: Any, name: str) -> float:
    number = _check.number(value, name, "generate")
    if not number > 0:
        _check.refuse(value, "a number above 0", name, "generate")
    return number


def _ids(scores: Layer, types: Mapping[str, data_type.DataType]) -> str:
    found = [
        name
        for name, type in types.items()
        if type.storage == _core.RAGGED and type.levels == 1 and np.dtype(type.dtype).kind in "iu" and type.shape == ()
    ]
    if len(found) != 1:
        listed = ", ".join(f'"{name}"' for name in found)
        seen = f"these sequences of integers: {listed}; name one as ids" if found else "no sequences of integers"
        raise error.InvalidError(f'generate: layer "{scores.name}" depends on {seen}', "generate", "ids")
    return found[0]
