"""Readers of Paddle v2: functions without arguments that return the samples, and what is made of them.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tenon import error
from tenon.v2._refused import refuse

Function = Callable[[], Iterable[Any]]


class ComposeNotAligned(ValueError):
    """Composed readers have different numbers of samples."""


class Batches:
    """A reader of minibatches, lists of samples."""

    def __init__(self, reader: Function, batch_size: int, drop_last: bool = False) -> None:
        self.reader, self.batch_size, self.drop_last = reader, batch_size, drop_last

    def __call__(self) -> Iterator[list[Any]]:
        samples = iter(self.reader())
        while chosen := list(itertools.islice(samples, self.batch_size)):
            if len(chosen) == self.batch_size or not self.drop_last:
                yield chosen


def batch(reader: Function, batch_size: int, drop_last: bool = False) -> Batches:
    """Minibatches of so many samples; the last one may be shorter."""
    if not callable(reader):
        raise error.InvalidError(
            f"batch: {type(reader).__name__} is no reader; expected a function of samples", "batch", "reader"
        )
    return Batches(reader, batch_size, drop_last)


def shuffle(reader: Function, buf_size: int) -> Function:
    """Samples in another order in each pass, of which so many are mixed."""
    order = random.Random(0)

    def mixed() -> Iterator[Any]:
        samples = iter(reader())
        while chosen := list(itertools.islice(samples, buf_size)):
            order.shuffle(chosen)
            yield from chosen

    return mixed


def buffered(reader: Function, size: int) -> Function:
    """The reader itself: trainings read ahead."""
    return reader


def chain(*readers: Function) -> Function:
    """One reader after the other."""
    return lambda: itertools.chain.from_iterable(each() for each in readers)


def firstn(reader: Function, n: int) -> Function:
    """The first samples."""
    return lambda: itertools.islice(reader(), n)


def map_readers(func: Callable[..., Any], *readers: Function) -> Function:
    """Samples computed from those of several readers."""
    return lambda: map(func, *(each() for each in readers))


def cache(reader: Function) -> Function:
    """The samples of a first pass, from memory."""
    samples: list[Any] = []

    def cached() -> Iterable[Any]:
        samples.extend(() if samples else reader())
        return samples

    return cached


def compose(*readers: Function, check_alignment: bool = True) -> Function:
    """Samples of several readers side by side."""

    missing = object()

    def joined() -> Iterator[Any]:
        passes = [each() for each in readers]
        for parts in itertools.zip_longest(*passes, fillvalue=missing) if check_alignment else zip(*passes, strict=False):
            if any(part is missing for part in parts):
                raise ComposeNotAligned("compose: the readers have different numbers of samples")
            yield tuple(itertools.chain.from_iterable(part if isinstance(part, tuple) else (part,) for part in parts))

    return joined


__getattr__ = refuse(__name__, globals())
