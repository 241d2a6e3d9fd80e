"""Data sets that Debian packages ship, and readers of files that the user has. Nothing is ever downloaded.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import gzip
import importlib.util
import math
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenon import _core, error
from tenon import reader as readers
from tenon._base import check as _check
from tenon._base import host as _host
from tenon.data_type import DataType, dense_array, dense_vector, integer_value, integer_value_sequence
from tenon.reader import Reader

__all__ = ["Dataset", "Reviews", "Texts", "amazon", "digits", "fashion_mnist", "housing", "licences", "wikipedia"]

_FASHION_MNIST = "/usr/share/datasets/fashion-mnist"
_SKLEARN = "/usr/lib/python3/dist-packages/sklearn"
_LICENCES = "/usr/share/common-licenses"


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
    """Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017): 60,000 images of 28 x 28 pixels for training and 10,000 for
    tests, of 10 kinds of clothes. Slots: image, of bytes that become numbers in [0, 1], and label.

    folder: of the four files as they are distributed; default that of the Debian package dataset-fashion-mnist.
    """

    def part(name: str) -> Reader:
        files = [Path(folder) / f"{name}-{what}-ubyte.gz" for what in ("images-idx3", "labels-idx1")]
        _check_exist("Fashion-MNIST", files, "dataset-fashion-mnist", "the folder of the four files")
        made: Reader = readers.make("idx", {"files": [str(file) for file in files], "names": ["image", "label"]})
        return made

    types = {"image": dense_array([28, 28], "uint8", scale=1 / 255), "label": DataType("uint8", (), 10)}
    return Dataset(part("train"), part("t10k"), types)


def digits(file: str | os.PathLike[str] | None = None) -> Dataset:
    """Handwritten digits (Alpaydin and Kaynak, 1998): 1797 images of 8 x 8 pixels, of 13 writers. Every fifth is a test
    sample: 1438 for training, 359 for tests; the writers of both parts are the same. Slots: image, of grey levels 0 to
    16 that become numbers in [0, 1], and label.

    file: digits.csv.gz as scikit-learn distributes it; default that of the Debian package python3-sklearn, or else of
    the package scikit-learn of this interpreter.
    """
    path = _of_sklearn("digits", "digits.csv.gz", file)
    table = _table(path, int, [17] * 64 + [10]).astype(np.uint8)
    types = {"image": dense_array([8, 8], "uint8", scale=1 / 16), "label": DataType("uint8", (), 10)}
    test = _every_fifth(len(table))
    return _parts({"image": table[:, :64].reshape(-1, 8, 8), "label": table[:, 64]}, test, types)


def housing(file: str | os.PathLike[str] | None = None, with_b: bool = False) -> Dataset:
    """Prices of houses in Boston (Harrison and Rubinfeld, 1978): 506 districts, of which every fifth is a test sample:
    405 for training, 101 for tests. Slots: features, the columns CRIM, ZN, INDUS, CHAS, NOX, RM, AGE, DIS, RAD, TAX,
    PTRATIO and LSTAT, and price, in thousands of dollars. Features are standardised: mean 0 and deviation 1 over the
    training part, whose statistics also scale the test part.

    The file has one more column, B = 1000 (Bk - 0.63)^2, where Bk is the share of Black residents. It encodes the
    contested and racist assumption that segregation raises prices, and the share cannot be computed back where two of
    them have one B; so it is left out. Do not use this data for more than exercises in regression.

    file: boston_house_prices.csv as scikit-learn distributed it until 1.2; default that of the Debian package
    python3-sklearn. with_b: include B, as the features' column before the last, to compare with published results.
    """
    path = _of_sklearn("housing", "boston_house_prices.csv", file)
    table = _table(path, float, [math.inf] * 14, headings=2)
    test = _every_fifth(len(table))
    features = table[:, :13] if with_b else np.delete(table[:, :13], 11, 1)
    deviation = features[~test].std(0)
    features = (features - features[~test].mean(0)) / np.where(deviation > 0, deviation, 1)
    types = {"features": dense_vector(features.shape[1]), "price": dense_vector(1)}
    return _parts({"features": features, "price": table[:, 13:]}, test, types)


def _check_exist(what: str, files: Iterable[Path], package: str, instead: str) -> None:
    for file in files:
        if not file.exists():
            raise error.NotFoundError(
                f"{what}: there is no file {file}; the Debian package {package} has it, or give {instead}",
                "dataset",
                str(file),
            )


def _of_sklearn(what: str, name: str, given: str | os.PathLike[str] | None) -> Path:
    """Returns the path of a file of scikit-learn, which is not imported: that would take seconds."""
    found = importlib.util.find_spec("sklearn")
    folders = [_SKLEARN, *(found.submodule_search_locations or [] if found else [])]
    paths = [Path(folder) / "datasets/data" / name for folder in folders] if given is None else [Path(given)]
    path = next((path for path in paths if path.exists()), paths[0])
    _check_exist(what, [path], "python3-sklearn", "the file")
    return path


def _table(
    path: Path, number: Callable[[str], float], limits: Sequence[float], headings: int = 0
) -> NDArray[np.float64]:
    """Returns the numbers of a file that has as many as `limits` between the commas of each line, each of [0, limit).

    headings: lines before the first one of numbers.
    """
    rows = []
    for place, line in enumerate(_lines(path), 1):
        if place > headings:
            fields = line.split(",")
            if len(fields) != len(limits):
                raise _bad(path, f"{len(fields)} fields between commas; expected {len(limits)}", place)
            rows.append([_number(*each, place, path, number) for each in zip(fields, limits, strict=True)])
    if len(rows) < 5:
        raise _bad(path, f"{len(rows)} lines of numbers; expected at least 5")
    return np.array(rows, np.float64)


def _number(text: str, limit: float, place: int, path: Path, number: Callable[[str], float]) -> float:
    try:
        value = number(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < limit:
        kind = "a whole number" if number is int else "a number"
        most = f" and below {limit}" if limit < math.inf else ""
        raise _bad(path, f'expected {kind} of at least 0{most}, got "{text.strip()}"', place)
    return value


def _lines(path: Path) -> Iterator[str]:
    """Yields the lines of a file, plain or gzip."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            yield from file
    except (EOFError, UnicodeDecodeError, gzip.BadGzipFile, zlib.error) as damage:
        raise _bad(path, str(damage)) from damage


def _bad(path: str | os.PathLike[str], fault: str, line: int = 0) -> error.BadDataError:
    return error.BadDataError(f"{path}:{line}: {fault}" if line else f"{path}: {fault}", "dataset", str(path))


def _every_fifth(rows: int) -> NDArray[np.bool_]:
    """Returns a mask of the rows of the test part."""
    mask = np.zeros(rows, np.bool_)
    mask[4::5] = True
    return mask


def _parts(columns: dict[str, NDArray[Any]], test: NDArray[np.bool_], types: dict[str, DataType]) -> Dataset:
    """Returns the rows of arrays as a training part and those of `test`."""
    train, tested = (readers.arrays({name: rows[part] for name, rows in columns.items()}) for part in (~test, test))
    return Dataset(train, tested, types)


@dataclass(frozen=True)
class Texts(Dataset):
    """Windows of words over texts, for models of the next word.

    vocabulary: the words by their number, from frequent to rare; the first, <unk>, stands for all that it lacks.
    """

    vocabulary: list[str]


def licences(folder: str | os.PathLike[str] = _LICENCES, words: int = 2000, window: int = 5) -> Texts:
    """The texts of licences: eleven for training, 40,000 words in lower case, and the GPL 2 for tests, 3,400. Each
    sample is `window` words that follow one another, signs among them; slots: word_0, word_1 and so on, and next.
    A test shows mostly what a model remembers: nine tenths of the windows of the GPL 2 are in the other texts, too.

    folder: of the texts; default that of the Debian package base-files, which every Debian has. words: entries of the
    vocabulary, the most frequent words of the training part.
    """
    names = [f"word_{place}" for place in range(window - 1)] + ["next"]

    def part(*licences: str) -> dict[str, Any]:
        files = [Path(folder) / name for name in licences]
        _check_exist("licences", files, "base-files", "the folder of the texts")
        return {"files": [str(file) for file in files], "names": names, "window": window, "split": "words",
                "lower_case": True, "most_words": words}  # fmt: skip

    train = readers.make("text", part("Apache-2.0", "Artistic", "GFDL-1.2", "GFDL-1.3", "GPL-1", "GPL-3", "LGPL-2",
                                      "LGPL-2.1", "LGPL-3", "MPL-1.1", "MPL-2.0"))  # fmt: skip
    opened = train.open()
    known = opened.known()
    test = part("GPL-2")
    tests = Reader(lambda types: _core.open_plugin(_host.host().core, "text", test, known=known))
    return Texts(train, tests, train.types(), opened.names()[0][1])


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
    path = _check.path(path, "file", "dataset")
    if not os.path.exists(path):
        raise error.NotFoundError(f'dataset: the file "{path}" does not exist', "dataset", path)
    with _check.files(path, "dataset"), open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            label, tab, text = line.rstrip("\n").partition("\t")
            if labelled and (not tab or not label.isdigit()):
                raise _bad(path, "expected a label, a whole number of at least 0, a tab and a text", number)
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
        raise _bad(path, "has no texts")
    vocabulary = sorted(counts, key=lambda word: (-counts[word], word))[: words - 1]
    vocabulary.append("<other>")
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
