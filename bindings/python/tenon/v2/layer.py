"""Layers of Paddle v2: paddle.layer.fc(input=hidden, size=10, act=paddle.activation.Softmax()).

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tenon import error
from tenon._model import scan as _scan
from tenon._model.layer import Layer
from tenon._model.scan import StaticInput, SubsequenceInput  # noqa: F401 (names of v2)
from tenon._run import generation as _generation
from tenon.data_type import DataType
from tenon.v2 import _make
from tenon.v2._make import Attr, Input, Named, Projection, biased, joined, listed, made, parameter, weights
from tenon.v2._refused import refuse
from tenon.v2.activation import Base as Activation
from tenon.v2.activation import Relu, Sigmoid, Tanh
from tenon.v2.attr import Extra
from tenon.v2.pooling import Base as Pooling
from tenon.v2.pooling import Max

StaticInputV2 = StaticInput


class GeneratedInput(_generation.GeneratedInput):
    """The embedding of the id that the step before has chosen, by the parameter embedding_name."""

    def shared(self) -> dict[str, Any]:
        return {"param.weight.name": self.embedding_name}


GeneratedInputV2 = GeneratedInput


class AggregateLevel:
    """Whose rows pooling puts together."""

    TO_NO_SEQUENCE = EACH_TIMESTEP = "sample"
    TO_SEQUENCE = EACH_SEQUENCE = "sequence"


def data(name: str, type: DataType, height: int | None = None, width: int | None = None, layer_attr: Any = None) -> Layer:
    """An input. height, width: of an image that is fed as a vector; without them it is square."""
    return Input(name, type, (height, width) if height and width else None)


def fc(
    input: Any, size: int, act: Activation | None = None, name: str | None = None, param_attr: Any = None,
    bias_attr: Attr = None, layer_attr: Extra | None = None,
) -> Layer:  # fmt: skip
    """Fully connected; act: default Tanh()."""
    inputs = listed(input)
    own = {"size": size, **biased(bias_attr), **weights(param_attr, len(inputs))}
    return made("fc", inputs, own, name, act or Tanh(), layer_attr)


def embedding(
    input: Layer, size: int, name: str | None = None, param_attr: Attr = None, layer_attr: Extra | None = None
) -> Layer:
    """The vectors of the ids of a data layer."""
    own = {"vocabulary": _make.limit(input), "size": size, **parameter("weight", param_attr)}
    return made("embedding", [input], own, name, None, layer_attr)


class _Mixed(Named):
    """A mixed layer whose projections are added: with mixed(size=8) as m: m += full_matrix_projection(x)."""

    def __init__(self, name: str | None, **options: Any) -> None:
        self._type, self._name, self._place = "mixed", name or "", ""
        self._ports, self._inputs, self._attributes = (), (), {}
        self._core = self._model = None
        self._parts: list[Projection] = []
        self._options = options

    def __enter__(self) -> _Mixed:
        return self

    def __iadd__(self, part: Any) -> _Mixed:
        self._parts.append(_part(part))
        return self

    def __exit__(self, kind: Any, *failure: Any) -> None:
        if kind is None:
            layer = joined(_make.mixed(self._parts, name=self._name, **self._options))[0]
            self._core, self._ports, self._inputs = layer._core, layer._ports, layer._inputs


def _part(value: Any) -> Projection:
    """Returns a projection; a layer is one that adds itself."""
    return value if isinstance(value, Projection) else Projection("identity", value, int(joined(value)[0].shape[-1]))


def mixed(
    size: int = 0, input: Any = None, name: str | None = None, act: Activation | None = None, bias_attr: Attr = False,
    layer_attr: Extra | None = None,
) -> Layer:  # fmt: skip
    """The sum of projections. Without input: of those that are added in a with block."""
    options: dict[str, Any] = {
        "size": size,
        "act": act,
        "bias": False if bias_attr is None else bias_attr,
        "layer_attr": layer_attr,
    }
    if input is None:
        return _Mixed(name, **options)
    return _make.mixed([_part(each) for each in listed(input)], name=name, **options)


def full_matrix_projection(input: Any, size: int = 0, param_attr: Attr = None) -> Projection:
    """x W."""
    return Projection("full_matrix", input, size, param_attr)


def trans_full_matrix_projection(input: Any, size: int = 0, param_attr: Attr = None) -> Projection:
    """x W^T."""
    return Projection("transposed", input, size, param_attr)


def table_projection(input: Any, size: int = 0, param_attr: Attr = None) -> Projection:
    """The vectors of ids."""
    return Projection("table", input, size, param_attr)


def identity_projection(input: Any, offset: int | None = None, size: int | None = None) -> Projection:
    """x, or `size` numbers of it from `offset` on."""
    width = int(joined(input)[0].shape[-1])
    if offset is None:
        return Projection("identity", input, width)
    length = width - offset if size is None else size
    return Projection("identity", made("slice", [input], {"axis": 1, "start": offset, "length": length}), length)


def dotmul_projection(input: Any, param_attr: Attr = None) -> Projection:
    """x times a weight, element by element."""
    return Projection("dotmul", input, int(joined(input)[0].shape[-1]), param_attr)


def scaling_projection(input: Any, param_attr: Attr = None) -> Projection:
    """x times one number that is learned."""
    return Projection("scaling", input, int(joined(input)[0].shape[-1]), param_attr)


def context_projection(
    input: Any, context_len: int, context_start: int | None = None, padding_attr: Attr = False
) -> Projection:
    """The rows around each row."""
    start = -((context_len - 1) // 2) if context_start is None else context_start
    own = {"length": context_len, "start": start, "trainable_padding": padding_attr not in (False, None)}
    windows = made("context_projection", joined(input), {**own, **parameter("weight", padding_attr)})
    return Projection("identity", windows, int(windows.shape[-1]))


def dotmul_operator(a: Any, b: Any, scale: float = 1.0) -> Projection:
    """a b scale, element by element."""
    product = made("mul", [a, b]) * scale
    return Projection("identity", product, int(product.shape[-1]))


def concat(input: Any, act: Activation | None = None, name: str | None = None, layer_attr: Extra | None = None) -> Layer:
    """Inputs, or projections of them, side by side."""
    return made("concat", listed(input), {"axis": -1}, name, act, layer_attr)


def addto(
    input: Any, act: Activation | None = None, name: str | None = None, bias_attr: Attr = None, layer_attr: Extra | None = None
) -> Layer:
    """The sum of inputs."""
    inputs = joined(*listed(input))
    while len(inputs) > 2:
        inputs[:2] = [made("add", inputs[:2])]
    if len(inputs) < 2:
        return made("scale_shift", inputs, {}, name, act, layer_attr)
    return made("add", inputs, {}, name, act, layer_attr)


def dropout(input: Any, dropout_rate: float, name: str | None = None) -> Layer:
    """Values that are 0 at random in trainings."""
    return made("dropout", [input], {"rate": dropout_rate}, name)


def _image(input: Any, channels: int | None) -> Layer:
    """Returns images with their channels last, of vectors that have them first."""
    layer = joined(input)[0]
    if len(layer.shape) > 2:
        return layer
    count = channels or 1
    pixels = int(layer.shape[-1]) // count
    height, width = getattr(layer, "image", None) or [math.isqrt(pixels)] * 2
    if count * height * width != layer.shape[-1]:
        raise error.InvalidError(
            f'layer "{layer.name}": {layer.shape[-1]} numbers are no square image of {count} channels; expected num_channels, '
            "and height and width of the data layer",
            "v2",
            "num_channels",
        )
    return made("transpose", [made("reshape", [layer], {"shape": [count, height, width]})], {"axes": [0, 2, 3, 1]})


def _pair(x: Any, y: int | None) -> list[int]:
    """Returns height and width of one number, of (width, height), or of both."""
    across, down = x if isinstance(x, (list, tuple)) else (x, x if y is None else y)
    return [down, across]


def img_conv(
    input: Any, filter_size: Any, num_filters: int, name: str | None = None, num_channels: int | None = None,
    act: Activation | None = None, groups: int = 1, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    bias_attr: Attr = None, param_attr: Attr = None, shared_biases: bool = True, layer_attr: Extra | None = None,
    filter_size_y: int | None = None, stride_y: int | None = None, padding_y: int | None = None, trans: bool = False,
) -> Layer:  # fmt: skip
    """A convolution, with trans a transposed one; act: default Relu()."""
    own = {"filters": num_filters, "kernel": _pair(filter_size, filter_size_y), "stride": _pair(stride, stride_y),
           "padding": _pair(padding, padding_y), "groups": groups, **biased(bias_attr),
           **parameter("weight", param_attr)}  # fmt: skip
    if not trans:
        own["dilation"] = _pair(dilation, None)
    type = "conv_transpose" if trans else "conv"
    return made(type, [_image(input, num_channels)], own, name, act or Relu(), layer_attr)


def img_pool(
    input: Any, pool_size: Any, name: str | None = None, num_channels: int | None = None, pool_type: Pooling | None = None,
    stride: Any = 1, padding: Any = 0, layer_attr: Extra | None = None, pool_size_y: int | None = None,
    stride_y: int | None = None, padding_y: int | None = None, ceil_mode: bool = True, exclude_mode: bool | None = None,
) -> Layer:  # fmt: skip
    """Pooling of images; pool_type: default Max()."""
    own = {"kind": (pool_type or Max()).over_image, "kernel": _pair(pool_size, pool_size_y), "stride": _pair(stride, stride_y),
           "padding": _pair(padding, padding_y), "ceil": ceil_mode, "count_padding": exclude_mode is False}  # fmt: skip
    return made("pool", [_image(input, num_channels)], own, name, None, layer_attr)


def batch_norm(
    input: Any, act: Activation | None = None, name: str | None = None, num_channels: int | None = None,
    bias_attr: Attr = None, param_attr: Attr = None, layer_attr: Extra | None = None, use_global_stats: bool | None = None,
    moving_average_fraction: float = 0.9, epsilon: float = 1e-5,
) -> Layer:  # fmt: skip
    """Batch normalisation of channels, or of the numbers of a vector; act: default Relu()."""
    own = {"momentum": moving_average_fraction, "epsilon": epsilon, "frozen": bool(use_global_stats),
           **parameter("scale", param_attr), **parameter("shift", bias_attr)}  # fmt: skip
    layer = input if num_channels is None else _image(input, num_channels)
    return made("batch_norm", [layer], own, name, act or Relu(), layer_attr)


def pooling(
    input: Any, pooling_type: Pooling | None = None, name: str | None = None, bias_attr: Attr = None,
    agg_level: str = AggregateLevel.TO_NO_SEQUENCE, stride: int = -1, layer_attr: Extra | None = None,
) -> Layer:  # fmt: skip
    """One value of the rows of a sequence; pooling_type: default Max()."""
    if stride != -1:
        raise error.UnsupportedError("pooling: stride of windows; slices of sequences are sequence_slice", "v2", "stride")
    return _over_rows(input, (pooling_type or Max()).over_time, agg_level, name, layer_attr)


def _over_rows(input: Any, kind: str, agg_level: str, name: str | None, layer_attr: Extra | None) -> Layer:
    own = {"kind": kind, "level": agg_level}
    return made("sequence_pool", joined(input), own, name, None, layer_attr)


def first_seq(input: Any, name: str | None = None, agg_level: str = "sample", layer_attr: Extra | None = None) -> Layer:
    """The first row of a sequence."""
    return _over_rows(input, "first", agg_level, name, layer_attr)


def last_seq(input: Any, name: str | None = None, agg_level: str = "sample", layer_attr: Extra | None = None) -> Layer:
    """The last row of a sequence."""
    return _over_rows(input, "last", agg_level, name, layer_attr)


def _with_bias(input: Any, size: int, bias_attr: Attr) -> Layer:
    rows = joined(input)[0]
    return rows if bias_attr is False else _make.mixed([Projection("identity", rows, size)], bias=bias_attr)


def _size(input: Any, size: int | None, gates: int) -> int:
    width = int(joined(input)[0].shape[-1])
    if width % gates or size not in (None, width // gates):
        raise error.InvalidError(
            f"the input has {width} numbers; expected {gates} times the size {size or ''}".rstrip(), "v2", "size"
        )
    return width // gates


def lstmemory(
    input: Any, size: int | None = None, name: str | None = None, reverse: bool = False, act: Activation | None = None,
    gate_act: Activation | None = None, state_act: Activation | None = None, bias_attr: Attr = None, param_attr: Attr = None,
    layer_attr: Extra | None = None,
) -> Layer:  # fmt: skip
    """LSTM with peepholes of an input that is projected to the 4 gates; act, state_act: default Tanh(), gate_act Sigmoid()."""
    size = _size(input, size, 4)
    acts = [act or Tanh(), gate_act or Sigmoid(), state_act or Tanh()]

    def step(gates: Layer) -> Layer:
        before, cell = _scan.memory(size=size), _scan.memory(size=size)
        if [each.type for each in acts] == ["tanh", "sigmoid", "tanh"]:
            own = {"peepholes": bias_attr is not False, **parameter("recurrent_weight", param_attr)}
            output: Layer = Named("lstm_step", [gates, cell, before], own)
            after = output.output(1)
        else:
            output, after = _lstm_step(gates, cell, before, acts, bias_attr is not False, param_attr)
        before.set_input(output)
        cell.set_input(after)
        return output

    return _steps(step, _with_bias(input, 4 * size, bias_attr), reverse, name, layer_attr)


def _lstm_step(
    gates: Layer, cell: Layer, before: Layer, acts: list[Activation], peepholes: bool, attr: Attr
) -> tuple[Layer, Layer]:
    """Returns output and cell of a step of an LSTM with any activations; gates: candidate, input, forget, output."""
    size = int(cell.shape[-1])
    summed = made("add", [gates, _make.mixed([Projection("full_matrix", before, 4 * size, attr)])])
    candidate, *numbers = list(made("split", [summed], {"parts": 4, "axis": 1}))

    def of(act: Activation, x: Layer) -> Layer:
        return made("scale_shift", [x], {}, None, act)

    def opened(number: Layer, seen: Layer) -> Layer:
        part = made("parameter", [seen], {"shape": [size], "param.value.init": "constant", "param.value.init_value": 0.0})
        return of(acts[1], number + seen * part if peepholes else number)

    after = of(acts[0], candidate) * opened(numbers[0], cell) + opened(numbers[1], cell) * cell
    return opened(numbers[2], after) * of(acts[2], after), after


def _steps(step: Callable[..., Any], input: Layer, reverse: bool, name: str | None, layer_attr: Extra | None) -> Layer:
    """Returns the rows of a step over sequences, under a name."""
    rows = recurrent_group(step, input, reverse)
    return made("scale_shift", [rows], {}, name, None, layer_attr) if name or layer_attr else rows


def gru_step(
    input: Any, output_mem: Layer, size: int | None = None, act: Activation | None = None, name: str | None = None,
    gate_act: Activation | None = None, bias_attr: Attr = None, param_attr: Attr = None, layer_attr: Extra | None = None,
) -> Layer:  # fmt: skip
    """A step of a GRU of an input that is projected to the 3 gates."""
    size = _size(input, size, 3)
    if (act or Tanh()).type != "tanh" or (gate_act or Sigmoid()).type != "sigmoid":
        raise error.UnsupportedError("gru_step: act and gate_act are Tanh() and Sigmoid() alone", "v2", "act")
    own = parameter("recurrent_weight", param_attr)
    return made("gru_step", [_with_bias(input, 3 * size, bias_attr), output_mem], own, name, None, layer_attr)


def grumemory(
    input: Any, size: int | None = None, name: str | None = None, reverse: bool = False, act: Activation | None = None,
    gate_act: Activation | None = None, bias_attr: Attr = None, param_attr: Attr = None, layer_attr: Extra | None = None,
) -> Layer:  # fmt: skip
    """GRU of an input that is projected to the 3 gates."""
    size = _size(input, size, 3)

    def step(gates: Layer) -> Layer:
        before = _scan.memory(size=size)
        after = gru_step(gates, before, size, act, None, gate_act, False, param_attr)
        before.set_input(after)
        return after

    return _steps(step, _with_bias(input, 3 * size, bias_attr), reverse, name, layer_attr)


def recurrent(
    input: Any, act: Activation | None = None, bias_attr: Attr = None, param_attr: Attr = None, name: str | None = None,
    reverse: bool = False, layer_attr: Extra | None = None,
) -> Layer:  # fmt: skip
    """act(x + h W + b) of each row; act: default Tanh()."""
    size = _size(input, None, 1)

    def step(row: Layer) -> Layer:
        before = _scan.memory(size=size)
        after = made("add", [row, _make.mixed([Projection("full_matrix", before, size, param_attr)])], {}, None, act or Tanh())
        before.set_input(after)
        return after

    return _steps(step, _with_bias(input, size, bias_attr), reverse, name, layer_attr)


def recurrent_group(step: Callable[..., Any], input: Any, reverse: bool = False, name: str | None = None) -> Any:
    """Layers at each step of sequences."""
    given = listed(input)
    rows = iter(joined(*[each for each in given if not isinstance(each, StaticInput)]))
    inputs = [each if isinstance(each, StaticInput) else next(rows) for each in given]
    outside = _scan.recurrent_group(step, inputs, reverse, name or "")
    return tuple(map(_named, outside)) if isinstance(outside, tuple) else _named(outside)


def _named(layer: Layer) -> Layer:
    return Named._wrap(layer._made())


memory = _scan.memory


def beam_search(
    step: Callable[..., Any], input: Any, bos_id: int, eos_id: int, beam_size: int, max_length: int = 500,
    name: str | None = None, num_results_per_sample: int | None = None,
) -> _generation.BeamSearch:  # fmt: skip
    """The most probable sequences of ids that step writes; paddle.infer has the results."""
    return _generation.beam_search(step, listed(input), bos_id, eos_id, beam_size, max_length, name or "beam_search",
                                   num_results_per_sample)  # fmt: skip


def get_output(input: Layer, arg_name: str, name: str | None = None, layer_attr: Any = None) -> Layer:
    """Another output of a layer: "state" of an LSTM step."""
    if arg_name != "state":
        raise error.UnsupportedError(f'get_output: arg_name="{arg_name}"; expected "state"', "v2", "arg_name")
    return input.output(1)


def cos_sim(a: Any, b: Any, scale: float = 1, size: int = 1, name: str | None = None, layer_attr: Extra | None = None) -> Layer:
    """The cosine of the angle of two vectors, [samples, 1], times scale."""
    column = made("reshape", [made("cos_sim", [a, b])], {"shape": [1]})
    return made("scale_shift", [column], {"scale": float(scale)}, name, None, layer_attr)


def classification_cost(
    input: Any, label: Any, weight: Any = None, name: str | None = None, layer_attr: Extra | None = None, coeff: float = 1.0
) -> Layer:
    """Cross-entropy of probabilities, with the metric classification_error_evaluator."""
    inputs = [input, label] if weight is None else [input, label, weight]
    layer = made("cross_entropy", inputs, {"coefficient": coeff}, name, None, layer_attr)
    assert isinstance(layer, Named)
    layer.evaluators = (made("classification_error", layer._inputs[:2], {}, "classification_error_evaluator"),)
    return layer


def crf_decoding(
    input: Any, size: int, label: Any = None, param_attr: Attr = None, name: str | None = None, layer_attr: Extra | None = None
) -> Layer:
    """The best tags of sequences; with a label 1 for each wrong one."""
    own = parameter("transitions", param_attr)
    if label is None:
        return made("crf_decoding", joined(input), own, name, None, layer_attr)
    scores, tags = joined(input, label)
    return made("not_equal", [made("crf_decoding", [scores], own), tags], {}, name, None, layer_attr)


_COST = {"coeff": "coefficient"}
# By name: the type, its inputs, what its arguments are here ("": nothing), and the parameter that param_attr is of.
_SIMPLE: dict[str, tuple[str, str, dict[str, str], str]] = {
    "crf": ("crf", "input label weight", {**_COST, "size": ""}, "transitions"),
    "cross_entropy_cost": ("cross_entropy", "input label weight", _COST, ""),
    "dot_prod": ("dot", "input1 input2", {}, ""),
    "expand": ("sequence_expand", "input expand_as", {"expand_level": ""}, ""),
    "hsigmoid": ("hierarchical_sigmoid", "input label", {"num_classes": "num_classes"}, "weight"),
    "huber_regression_cost": ("huber", "input label", {**_COST, "delta": "delta"}, ""),
    "max_id": ("argmax", "input", {}, ""),
    "multi_binary_label_cross_entropy_cost": ("binary_cross_entropy", "input label", _COST, ""),
    "nce": ("nce", "input label", {"num_classes": "num_classes", "num_neg_samples": "num_negative"}, "weight"),
    "rank_cost": ("rank_cost", "left right label weight", _COST, ""),
    "row_l2_norm": ("normalize", "input", {}, ""),
    "sampling_id": ("draw_class", "input", {}, ""),
    "scaling": ("mul", "input weight", {}, ""),
    "seq_concat": ("sequence_concat", "a b", {}, ""),
    "slope_intercept": ("scale_shift", "input", {"slope": "scale", "intercept": "shift"}, ""),
    "smooth_l1_cost": ("smooth_l1", "input label", _COST, ""),
    "square_error_cost": ("square_error", "input label weight", _COST, ""),
    "sum_cost": ("sum_cost", "input", {}, ""),
}
_ALIASES = {"cross_entropy": "cross_entropy_cost", "mse_cost": "square_error_cost", "regression_cost": "square_error_cost",
            "square_cost": "square_error_cost",
            "multi_binary_label_cross_entropy": "multi_binary_label_cross_entropy_cost"}  # fmt: skip


def _simple(name: str) -> Callable[..., Layer]:
    type, inputs, arguments, suffix = _SIMPLE[name]

    def layer(*args: Any, name: str | None = None, layer_attr: Extra | None = None, **kwargs: Any) -> Layer:
        ports = dict(zip(inputs.split(), args, strict=False))
        ports.update({each: kwargs.pop(each) for each in inputs.split() if each in kwargs})
        own = parameter(suffix, kwargs.pop("param_attr", None)) if suffix else {}
        bias = kwargs.pop("bias_attr", None)
        own.update(biased(bias) if bias is not None else {})
        for each, value in kwargs.items():
            if each not in arguments:
                raise TypeError(f'{function}() got an unknown argument "{each}"{error.suggestion(each, arguments)}')
            own.update({arguments[each]: value} if arguments[each] else {})
        missing = [each for each in inputs.split() if ports.get(each) is None and each != "weight"]
        if missing:
            raise TypeError(f'{function}() needs the input "{missing[0]}"; its inputs are {inputs.replace(" ", ", ")}')
        return made(type, [each for each in ports.values() if each is not None], own, name, None, layer_attr)

    function = f"paddle.layer.{name}"
    layer.__name__ = layer.__qualname__ = name
    layer.__doc__ = f"The layer {type}."
    return layer


globals().update({name: _simple(name) for name in _SIMPLE})
globals().update({alias: globals()[name] for alias, name in _ALIASES.items()})

__getattr__ = refuse(__name__, globals())
