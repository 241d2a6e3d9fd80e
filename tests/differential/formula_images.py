"""The formulas of layers of images, channels last, and of norms over a minibatch. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import itertools
import math

import numpy as np

import formula_dense as dense
import tape as ad


def _all(numbers, space):
    numbers = [numbers] if isinstance(numbers, int) else list(numbers)
    return numbers * space if len(numbers) == 1 else numbers


def _windows(sizes, kernel, stride, dilation, padding, same, ceil=False):
    """Returns the table [places, elements of a window] of numbers of elements of the image, its size where they lie
    outside; the numbers of places; and whether each element lies in the image or its padding."""
    space = len(sizes)
    kernel, dilation = _all(kernel, space), _all(dilation or 1, space)
    stride = _all(stride or 1, space)
    given = _all(padding or 0, space)
    before, after = (given[::2], given[1::2]) if len(given) == 2 * space and space else (given, given)
    along = []
    for k in range(space):
        extent = dilation[k] * (kernel[k] - 1) + 1
        front, back = before[k], after[k]
        if same:
            added = max(0, (-(-sizes[k] // stride[k]) - 1) * stride[k] + extent - sizes[k])
            front, back = added // 2, added - added // 2
        free = sizes[k] + front + back - extent
        count = (-(-free // stride[k]) if ceil else free // stride[k]) + 1
        if ceil and (count - 1) * stride[k] >= sizes[k] + front:
            count -= 1
        first = np.arange(count)[:, None] * stride[k] - front
        positions = first + dilation[k] * np.arange(kernel[k])[None, :]
        along.append((positions, (positions >= -front) & (positions < sizes[k] + back)))
    return _table(along, sizes)


def _table(along, sizes):
    places = [positions.shape[0] for positions, _ in along]
    table, padded = [], []
    for place in itertools.product(*map(range, places)):
        row, inside = [], []
        for element in itertools.product(*(range(positions.shape[1]) for positions, _ in along)):
            number = 0
            for k, (positions, _) in enumerate(along):
                at = positions[place[k], element[k]]
                number = -1 if number < 0 or not 0 <= at < sizes[k] else number * sizes[k] + int(at)
            row.append(math.prod(sizes) if number < 0 else number)
            inside.append(all(valid[place[k], element[k]] for k, (_, valid) in enumerate(along)))
        table.append(row)
        padded.append(inside)
    return np.array(table), places, np.array(padded)


def _flat(x, outside=0.0):
    """Returns an image as [samples, elements + 1, channels], with a value for what is outside."""
    flat = x.reshape(x.shape[0], math.prod(x.shape[1:-1]), x.shape[-1])
    return ad.concat([flat, x.tape.constant(np.full((x.shape[0], 1, x.shape[-1]), outside))], 1)


def conv(call, x, filters, kernel, stride=None, padding=None, same=False, dilation=None, groups=1, bias=True):
    space, channels = len(x.shape) - 2, x.shape[-1]
    table, places, _ = _windows(x.shape[1:-1], kernel, stride, dilation, padding, same)
    weight = call.parameter("weight", (filters, *_all(kernel, space), channels // groups))
    windows = _flat(x).take(table, 1)
    parts = []
    for group in range(groups):
        own = windows.take(range(group * channels // groups, (group + 1) * channels // groups), 3)
        mine = weight.take(range(group * filters // groups, (group + 1) * filters // groups))
        columns = own.reshape(x.shape[0], len(table), own.shape[2] * own.shape[3])
        parts.append(columns @ mine.reshape(filters // groups, -1).transpose(1, 0))
    result = ad.concat(parts, 2).reshape(x.shape[0], *places, filters)
    return result + call.parameter("bias", (filters,)) if bias else result


def conv_transpose(call, x, filters, kernel, stride=None, padding=None, same=False, dilation=None, groups=1, bias=True,
                   output_padding=None):  # fmt: skip
    sizes, channels = x.shape[1:-1], x.shape[-1]
    space = len(sizes)
    kernel, stride, dilation = _all(kernel, space), _all(stride or 1, space), _all(dilation or 1, space)
    more, given = _all(output_padding or 0, space), _all(padding or 0, space)
    extents = [dilation[k] * (kernel[k] - 1) + 1 for k in range(space)]
    before, after = (given[::2], given[1::2]) if len(given) == 2 * space else (given, given)
    if same:
        cut = [max(extents[k] - stride[k], 0) for k in range(space)]
        before, after = [each // 2 for each in cut], [each - each // 2 for each in cut]
        more = [max(stride[k] - extents[k], 0) for k in range(space)]
    larger = [(sizes[k] - 1) * stride[k] - before[k] - after[k] + extents[k] + more[k] for k in range(space)]
    weight = call.parameter("weight", (channels, *kernel, filters // groups))
    adds = _adds(sizes, kernel, stride, dilation, before, larger)
    flat = x.reshape(x.shape[0], math.prod(sizes), channels)
    parts = []
    for group in range(groups):
        mine = range(group * channels // groups, (group + 1) * channels // groups)
        products = flat.take(mine, 2) @ weight.take(mine).reshape(len(mine), -1)
        spread = products.reshape(x.shape[0], -1, filters // groups)
        parts.append(x.tape.constant(adds) @ spread)
    result = ad.concat(parts, 2).reshape(x.shape[0], *larger, filters)
    return result + call.parameter("bias", (filters,)) if bias else result


def _adds(sizes, kernel, stride, dilation, before, larger):
    """Returns the matrix [elements of the output, places times elements of the kernel] of what is added where."""
    matrix = np.zeros((math.prod(larger), math.prod(sizes) * math.prod(kernel)))
    column = 0
    for place in itertools.product(*map(range, sizes)):
        for element in itertools.product(*map(range, kernel)):
            at = [stride[k] * place[k] - before[k] + dilation[k] * element[k] for k in range(len(sizes))]
            if all(0 <= each < most for each, most in zip(at, larger, strict=True)):
                matrix[np.ravel_multi_index(at, larger), column] = 1
            column += 1
    return matrix


def pool(call, x, kind, kernel=None, stride=None, padding=None, same=False, dilation=None, whole=False, ceil=False,
         count_padding=False, power=2.0):  # fmt: skip
    sizes = x.shape[1:-1]
    if whole:
        kernel, stride = list(sizes), [1]
    stride = kernel if stride is None else stride
    table, places, padded = _windows(sizes, kernel, stride, dilation, padding, same, ceil)
    windows = _flat(x, -np.inf if kind == "max" else 0.0).take(table, 1)
    if kind == "max":
        result = ad.largest(windows, 2, "first")
    elif kind == "norm":
        sums = (dense.absolute(call, windows) ** power).sum(2)
        result = ad.exp(ad.log(sums) / power)
    else:
        inside = padded if count_padding else table < math.prod(sizes)
        result = windows.sum(2) / (inside.sum(1)[None, :, None] if kind == "average" else 1)
    return result.reshape(x.shape[0], *places, x.shape[-1])


def batch_norm(call, x, epsilon=1e-5, momentum=0.9, learnable=True, frozen=False):
    features = (x.shape[-1],)
    mean, variance = call.buffer("moving_mean", features, 0.0), call.buffer("moving_variance", features, 1.0)
    axes = tuple(range(len(x.shape) - 1))
    if call.training and not frozen:
        count = math.prod(x.shape[:-1])
        now, before = x.mean(axes), (mean, variance)
        mean, variance = now, ((x - now) ** 2).mean(axes)
        if count > 1:
            unbiased = variance.value * (count / (count - 1))
            call.set_buffer("moving_mean", momentum * before[0] + (1 - momentum) * now.value)
            call.set_buffer("moving_variance", momentum * before[1] + (1 - momentum) * unbiased)
    else:
        mean, variance = x.tape.constant(mean), x.tape.constant(variance)
    return dense._affine(call, (x - mean) / ad.sqrt(variance + epsilon), learnable, learnable)


def group_norm(call, x, groups, epsilon=1e-5, learnable=True):
    cut = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
    centred = cut - cut.mean((1, 3), True)
    result = centred / ad.sqrt((centred * centred).mean((1, 3), True) + epsilon)
    return dense._affine(call, result.reshape(*x.shape), learnable, learnable)


def instance_norm(call, x, epsilon=1e-5, learnable=True):
    return group_norm(call, x, x.shape[-1], epsilon, learnable)


def local_response_norm(call, x, size=5, alpha=1e-4, beta=0.75, k=1.0):
    channels = x.shape[-1]
    number = np.arange(channels)
    near = (number[:, None] >= number[None, :] - size // 2) & (number[:, None] < number[None, :] - size // 2 + size)
    flat = (x * x).reshape(-1, channels) @ x.tape.constant(near)
    return x * (flat.reshape(*x.shape) * (alpha / size) + k) ** -beta


def resize(call, x, size=None, times=None, kind="nearest", align_corners=False):
    for axis, old in enumerate(x.shape[1:-1], 1):
        space = len(x.shape) - 2
        new = _all(size, space)[axis - 1] if times is None else old * _all(times, space)[axis - 1]
        if kind == "nearest":
            x = x.take(np.arange(new) * old // new, axis)
            continue
        at = np.arange(new) * ((old - 1) / max(new - 1, 1)) if align_corners else (np.arange(new) + 0.5) * old / new - 0.5
        at = np.clip(at, 0, old - 1)
        low = np.minimum(np.floor(at).astype(int), old - 1)
        share = (at - low).reshape([-1 if k == axis else 1 for k in range(len(x.shape))])
        x = x.take(low, axis) * (1 - share) + x.take(np.minimum(low + 1, old - 1), axis) * share
    return x


class _Part:
    """The call of a layer inside of a block."""

    def __init__(self, call, name):
        self._call, self._name, self.training, self.tape = call, name, call.training, call.tape

    def parameter(self, suffix, shape, around=0.0):
        return self._call.parameter(f"{self._name}.{suffix}", shape, around)

    def buffer(self, suffix, shape, value):
        return self._call.buffer(f"{self._name}.{suffix}", shape, value)

    def set_buffer(self, suffix, values):
        self._call.set_buffer(f"{self._name}.{suffix}", values)


def simple_img_conv_pool(call, x, filters, kernel, pool_kernel, activation="relu", pool_stride=None, pool_kind="max"):
    x = conv(call, x, filters, kernel)
    x = dense.DENSE[activation](call, x) if activation else x
    return pool(call, x, pool_kind, pool_kernel, pool_stride)


def img_conv_group(call, x, filters, pool_kernel, kernel=3, activation="relu", batch_norm=False, pool_stride=None,
                   pool_kind="max"):  # fmt: skip
    for number, each in enumerate(filters):
        x = conv(_Part(call, f"conv_{number}"), x, each, kernel, same=True, bias=not batch_norm)
        x = IMAGES["batch_norm"](_Part(call, f"norm_{number}"), x) if batch_norm else x
        x = dense.DENSE[activation](call, x) if activation else x
    return pool(call, x, pool_kind, pool_kernel, pool_stride)


def residual_block(call, x, filters, stride=1, bottleneck=False):
    steps = (
        [(filters, 1, 1), (filters, 3, stride), (4 * filters, 1, 1)] if bottleneck else [(filters, 3, stride), (filters, 3, 1)]
    )
    value = x
    for number, (width, kernel, by) in enumerate(steps):
        value = conv(_Part(call, f"conv_{number}"), value, width, kernel, by, same=True, bias=False)
        value = batch_norm(_Part(call, f"norm_{number}"), value)
        value = dense.relu(call, value) if number + 1 < len(steps) else value
    if value.shape != x.shape:
        x = conv(_Part(call, "conv_3"), x, steps[-1][0], 1, stride, same=True, bias=False)
        x = batch_norm(_Part(call, "norm_3"), x)
    return dense.relu(call, value + x)


IMAGES = {each.__name__: each for each in (
    conv, conv_transpose, pool, batch_norm, group_norm, instance_norm, local_response_norm, resize, simple_img_conv_pool,
    img_conv_group, residual_block,
)}  # fmt: skip
