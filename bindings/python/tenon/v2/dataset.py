"""Data sets of Paddle v2: those that a package of Debian ships. Nothing is ever downloaded.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from tenon import dataset
from tenon.reader import Reader


def _housing(part: str) -> Callable[[], Callable[[], Iterator[Any]]]:
    def creator() -> Callable[[], Iterator[Any]]:
        reader: Reader = getattr(dataset.housing(with_b=True), part)
        return lambda: ((each["features"], each["price"]) for each in reader.samples())

    return creator


uci_housing = SimpleNamespace(train=_housing("train"), test=_housing("test"))

_INSTEAD = {"mnist": "tenon.dataset.fashion_mnist()", "imdb": "tenon.dataset.amazon.product_review.new(file)",
            "sentiment": "tenon.dataset.amazon.product_review.new(file)", "imikolov": "tenon.dataset.licences()",
            "mq2007": "tenon.reader.libsvm(lists=True)"}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    instead = _INSTEAD.get(name, "a reader of your files, such as tenon.reader.text, csv or images")
    raise AttributeError(f'data sets are not downloaded, so there is no "{name}"; in Tenon: {instead}', name=name)
