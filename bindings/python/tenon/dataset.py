"""Data sets that Debian packages ship, and readers of files that the user has. Nothing is ever downloaded.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from tenon import error
from tenon import reader as readers
from tenon.data_type import DataType, dense_array, integer_value, integer_value_sequence
from tenon.reader import Reader

__all__ = ["Dataset", "Reviews", "amazon", "fashion_mnist", "wikipedia"]

_FASHION_MNIST = "/usr/share/datasets/fashion-mnist"


@dataclass(frozen=True)
class Dataset:
    """A training part and a test part, each a reader of samples, and the types of their slots."""

    train: Reader
    test: Reader
    types: dict[str, DataType]

    def new(self) -> Reader:
        """Returns the training part in minibatches of 128 samples, in a new order in each pass."""
        return self.train.shuffle().batch(128)


def fashion_mnist(folder: str | os.PathLike[str] = _FASHION_MNIST) -> Dataset:
    """Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017): 60,000 images of 28 x 28 pixels for training and 10,000 for tests, of
    10 kinds of clothes. Slots: image, of bytes that become numbers in [0, 1], and label.

    folder: of the four files as they are distributed; default that of the Debian package dataset-fashion-mnist.
    """

    def part(name: str) -> Reader:
        files = [Path(folder) / f"{name}-{what}-ubyte.gz" for what in ("images-idx3", "labels-idx1")]
        for file in files:
            if not file.exists():
                raise error.NotFoundError(
                    f"Fashion-MNIST: there is no file {file}; the Debian package dataset-fashion-mnist has it, or give "
                    "the folder of the four files",
                    "dataset",
                    str(file),
                )
        made: Reader = readers.make("idx", {"files": [str(file) for file in files], "names": ["image", "label"]})
        return made

    types = {"image": dense_array([28, 28], "uint8", scale=1 / 255), "label": DataType("uint8", (), 10)}
    return Dataset(part("train"), part("t10k"), types)


@dataclass(frozen=True)
class Reviews:
    """Texts with labels, from a file of the user's. Slots: words, the numbers of the words of a text, and label.

    vocabulary: the words by their number; those that occur seldom have the last number.
    """

    reader: Reader
    types: dict[str, DataType]
    vocabulary: list[str]


def _texts(path: str | os.PathLike[str], labelled: bool) -> Iterator[tuple[int, list[str]]]:
    """Yields the lines of a file, each a text, with its label before a tab where they have one."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            label, tab, text = line.rstrip("\n").partition("\t")
            if labelled and (not tab or not label.isdigit()):
                raise error.BadDataError(
                    f"{path}:{number}: expected a label, a whole number of at least 0, a tab and a text", "dataset",
                    str(path),
                )  # fmt: skip
            yield (int(label), text.lower().split()) if labelled else (0, line.lower().split())


def _read(path: str | os.PathLike[str], labelled: bool, words: int) -> Reviews:
    counts: dict[str, int] = {}
    classes = samples = 0
    for label, text in _texts(path, labelled):
        samples += 1
        classes = max(classes, label + 1)
        for word in text:
            counts[word] = counts.get(word, 0) + 1
    if samples == 0:
        raise error.BadDataError(f"{path} has no texts", "dataset", str(path))
    vocabulary = sorted(counts, key=lambda word: (-counts[word], word))[: words - 1] + ["<other>"]
    numbers = {word: number for number, word in enumerate(vocabulary)}
    other = len(vocabulary) - 1
    types = {"words": integer_value_sequence(len(vocabulary))}
    if labelled:
        types["label"] = integer_value(classes)

    def rows() -> Iterator[dict[str, object]]:
        for label, text in _texts(path, labelled):
            found: dict[str, object] = {"words": [numbers.get(word, other) for word in text]}
            yield {**found, "label": label} if labelled else found

    return Reviews(readers.typed(rows, types), types, vocabulary)


def _product_review(path: str | os.PathLike[str], words: int = 10000) -> Reviews:
    """Reviews of products: each line of the file a label, a tab and a text."""
    return _read(path, True, words)


def _articles(path: str | os.PathLike[str], words: int = 10000) -> Reviews:
    """Articles: each line of the file a text."""
    return _read(path, False, words)


amazon = SimpleNamespace(product_review=SimpleNamespace(new=_product_review))
wikipedia = SimpleNamespace(articles=SimpleNamespace(new=_articles))
