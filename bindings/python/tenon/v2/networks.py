"""Networks of several layers of Paddle v2: paddle.networks.simple_img_conv_pool.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

from tenon._model.layer import Layer
from tenon.v2 import layer as _layer
from tenon.v2._make import Attr, joined, made, parameter
from tenon.v2._refused import refuse
from tenon.v2.activation import Base as Activation
from tenon.v2.activation import Linear, Relu
from tenon.v2.attr import Extra
from tenon.v2.pooling import Base as Pooling


def simple_img_conv_pool(
    input: Any, filter_size: Any, num_filters: int, pool_size: Any, name: str | None = None, pool_type: Pooling | None = None,
    act: Activation | None = None, groups: int = 1, conv_stride: Any = 1, conv_padding: Any = 0, bias_attr: Attr = None,
    num_channel: int | None = None, param_attr: Attr = None, shared_bias: bool = True, conv_layer_attr: Extra | None = None,
    pool_stride: Any = 1, pool_padding: Any = 0, pool_layer_attr: Extra | None = None,
) -> Layer:  # fmt: skip
    """A convolution and a pooling."""
    images = _layer.img_conv(input, filter_size, num_filters, num_channels=num_channel, act=act, groups=groups,
                             stride=conv_stride, padding=conv_padding, bias_attr=bias_attr, param_attr=param_attr,
                             layer_attr=conv_layer_attr)  # fmt: skip
    return _layer.img_pool(images, pool_size, name, None, pool_type, pool_stride, pool_padding, pool_layer_attr)


def img_conv_group(
    input: Any, conv_num_filter: list[int], pool_size: Any, num_channels: int | None = None, conv_padding: Any = 1,
    conv_filter_size: Any = 3, conv_act: Activation | None = None, conv_with_batchnorm: Any = False,
    conv_batchnorm_drop_rate: Any = 0, pool_stride: Any = 1, pool_type: Pooling | None = None, param_attr: Attr = None,
) -> Layer:  # fmt: skip
    """Convolutions, perhaps normalised, and a pooling."""

    def each_of(value: Any) -> list[Any]:
        return list(value) if isinstance(value, (list, tuple)) else [value] * len(conv_num_filter)

    columns = map(
        each_of, (conv_num_filter, conv_padding, conv_filter_size, conv_act, conv_with_batchnorm, conv_batchnorm_drop_rate)
    )
    images = input
    for number, (filters, padding, size, act, norm, rate) in enumerate(zip(*columns, strict=True)):
        channels = None if number else num_channels
        images = _layer.img_conv(images, size, filters, num_channels=channels, padding=padding, param_attr=param_attr,
                                 act=Linear() if norm else act or Relu())  # fmt: skip
        if norm:
            images = _layer.batch_norm(images, act or Relu(), layer_attr=Extra(drop_rate=rate))
    return _layer.img_pool(images, pool_size, stride=pool_stride, pool_type=pool_type)


def sequence_conv_pool(
    input: Any, context_len: int, hidden_size: int, name: str | None = None, context_start: int | None = None,
    pool_type: Pooling | None = None, context_proj_param_attr: Attr = False, fc_param_attr: Attr = None,
    fc_bias_attr: Attr = None, fc_act: Activation | None = None,
) -> Layer:  # fmt: skip
    """The maximum over time of a convolution of so many rows."""
    windows = _layer.context_projection(input, context_len, context_start, context_proj_param_attr)
    rows = _layer.fc(windows, hidden_size, fc_act, None, fc_param_attr, fc_bias_attr)
    return _layer.pooling(rows, pool_type, name)


text_conv_pool = sequence_conv_pool


def _projected(input: Any, size: int, param_attr: Attr, bias_attr: Attr = False) -> Layer:
    return _layer.mixed(size, [_layer.full_matrix_projection(input, param_attr=param_attr)], bias_attr=bias_attr)


def simple_lstm(
    input: Any, size: int, name: str | None = None, reverse: bool = False, mat_param_attr: Attr = None,
    bias_param_attr: Attr = None, inner_param_attr: Attr = None, act: Activation | None = None,
    gate_act: Activation | None = None, state_act: Activation | None = None,
) -> Layer:  # fmt: skip
    """An LSTM with the product of its input."""
    gates = _projected(input, 4 * size, mat_param_attr)
    return _layer.lstmemory(gates, size, name, reverse, act, gate_act, state_act, bias_param_attr, inner_param_attr)


def simple_gru(
    input: Any, size: int, name: str | None = None, reverse: bool = False, mixed_param_attr: Attr = None,
    mixed_bias_param_attr: Attr = False, gru_bias_attr: Attr = None, gru_param_attr: Attr = None, act: Activation | None = None,
    gate_act: Activation | None = None,
) -> Layer:  # fmt: skip
    """A GRU with the product of its input."""
    gates = _projected(input, 3 * size, mixed_param_attr, mixed_bias_param_attr)
    return _layer.grumemory(gates, size, name, reverse, act, gate_act, gru_bias_attr, gru_param_attr)


def _both_ways(network: Any, input: Any, size: int, name: str | None, return_seq: bool) -> Layer:
    forward, backward = network(input, size), network(input, size, reverse=True)
    parts = [forward, backward] if return_seq else [_layer.last_seq(forward), _layer.first_seq(backward)]
    return _layer.concat(parts, name=name)


def bidirectional_lstm(input: Any, size: int, name: str | None = None, return_seq: bool = False) -> Layer:
    """LSTMs in both directions: their rows, or their last states."""
    return _both_ways(simple_lstm, input, size, name, return_seq)


def bidirectional_gru(input: Any, size: int, name: str | None = None, return_seq: bool = False) -> Layer:
    """GRUs in both directions: their rows, or their last states."""
    return _both_ways(simple_gru, input, size, name, return_seq)


def simple_attention(
    encoded_sequence: Any, encoded_proj: Any, decoder_state: Any, transform_param_attr: Attr = None,
    softmax_param_attr: Attr = None, name: str | None = None,
) -> Layer:  # fmt: skip
    """The sum of a sequence, weighted by additive attention."""
    own = {**parameter("query.weight", transform_param_attr), **parameter("score.weight", softmax_param_attr)}
    return made("additive_attention", joined(decoder_state, encoded_proj, encoded_sequence), own, name)


__getattr__ = refuse(__name__, globals())
