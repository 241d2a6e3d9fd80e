"""Data sets. SPDX-License-Identifier: Apache-2.0"""

import gzip
from pathlib import Path

import numpy as np
import pytest

import tenon
from tenon import dataset


def column(reader, slot):
    return np.array([sample[slot] for sample in reader.samples()])


def test_fashion_mnist():
    data = dataset.fashion_mnist()
    assert data.train.describe()["samples"] == 60000 and data.test.describe()["samples"] == 10000
    minibatch = next(iter(data.new()))
    assert minibatch["image"].shape == (128, 28, 28) and minibatch["label"].max() < 10
    with pytest.raises(tenon.error.NotFoundError, match="/nowhere/train-images.*dataset-fashion-mnist"):
        dataset.fashion_mnist("/nowhere")


DIGIT = ",".join(["0"] * 62 + ["16", "1", "7"]) + "\n"
HOUSE = ",".join(["1"] * 13 + ["24.5"]) + "\n"
HEADINGS = "506,13\nCRIM,ZN\n"


def test_digits():
    data = dataset.digits()
    assert data.train.describe()["samples"] == 1438 and data.test.describe()["samples"] == 359
    images, labels = column(data.train, "image"), column(data.train, "label")
    assert images.shape == (1438, 8, 8) and images.max() == 16 and sorted(set(labels)) == list(range(10))
    assert len({*map(bytes, images), *map(bytes, column(data.test, "image"))}) == 1797  # no image is in both parts
    minibatch = next(iter(data.new()))
    assert minibatch["image"].shape == (128, 8, 8)
    image = tenon.layer.data("image", data.types["image"])
    pixels = tenon.infer(image * 1, tenon.parameters.create(image * 1), images[:5])
    assert np.array_equal(pixels, images[:5] / 16)


def test_digits_of_a_file(tmp_path):
    file = tmp_path / "digits.csv"
    file.write_text(DIGIT * 6)
    data = dataset.digits(file)
    assert data.train.describe()["samples"] == 5 and column(data.test, "label").tolist() == [7]
    assert column(data.test, "image")[0, 7].tolist() == [0] * 6 + [16, 1]


@pytest.mark.parametrize("packaged", [True, False])
def test_digits_are_found_without_debian(packaged, monkeypatch):
    monkeypatch.setattr(dataset, "_SKLEARN", "/nowhere")
    if packaged:
        assert dataset.digits().test.describe()["samples"] == 359
        return
    monkeypatch.setattr(dataset.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(tenon.error.NotFoundError, match="no file /nowhere/.*/digits.csv.gz; .* python3-sklearn"):
        dataset.digits()


def test_housing():
    data = dataset.housing()
    features, prices = column(data.train, "features"), column(data.train, "price")
    assert features.shape == (405, 12) and prices.shape == (405, 1)
    assert np.allclose(features.mean(0), 0, atol=1e-6) and np.allclose(features.std(0), 1, atol=1e-6)
    tests = column(data.test, "features")
    assert tests.shape == (101, 12) and 0.005 < np.abs(tests.mean(0)).max() < 0.5  # by statistics of the training part
    assert prices[:5, 0].tolist() == pytest.approx([24, 21.6, 34.7, 33.4, 28.7])
    assert column(data.test, "price")[0, 0] == pytest.approx(36.2)
    complete = dataset.housing(with_b=True)
    assert complete.types["features"].shape == (13,)
    assert np.array_equal(np.delete(column(complete.train, "features"), 11, 1), features)
    with pytest.raises(tenon.error.NotFoundError, match="housing: there is no file /nowhere; .* python3-sklearn"):
        dataset.housing("/nowhere")


def test_a_constant_feature_is_0(tmp_path):
    file = tmp_path / "houses.csv"
    file.write_text(HEADINGS + HOUSE * 5)
    data = dataset.housing(file)
    assert column(data.train, "features").tolist() == [[0] * 12] * 4 and column(data.test, "price") == [[24.5]]


@pytest.mark.parametrize(
    "make, text, fault",
    [
        (dataset.digits, "", ": 0 lines of numbers; expected at least 5"),
        (dataset.digits, DIGIT * 5 + "1,2\n", ":6: 2 fields between commas; expected 65"),
        (dataset.digits, DIGIT + "\n" + DIGIT * 5, ":2: 1 fields between commas; expected 65"),
        (dataset.digits, DIGIT + DIGIT.replace("16", "17") + DIGIT * 5,
         ':2: expected a whole number of at least 0 and below 17, got "17"'),
        (dataset.digits, DIGIT + DIGIT.replace("7", "10") + DIGIT * 5,
         ':2: expected a whole number of at least 0 and below 10, got "10"'),
        (dataset.digits, DIGIT.replace("16", "0.5") + DIGIT * 5,
         ':1: expected a whole number of at least 0 and below 17, got "0.5"'),
        (dataset.housing, HEADINGS, ": 0 lines of numbers; expected at least 5"),
        (dataset.housing, HEADINGS + HOUSE * 5 + HOUSE[2:], ":8: 13 fields between commas; expected 14"),
        (dataset.housing, HEADINGS + HOUSE + HOUSE.replace("24.5", "cheap"),
         ':4: expected a number of at least 0, got "cheap"'),
        (dataset.housing, HEADINGS + HOUSE.replace("24.5", "nan"), ':3: expected a number of at least 0, got "nan"'),
        (dataset.housing, HEADINGS + HOUSE.replace("24.5", "inf"), ':3: expected a number of at least 0, got "inf"'),
    ],
)  # fmt: skip
def test_broken_tables(make, text, fault, tmp_path):
    file = tmp_path / "table.csv"
    file.write_text(text)
    with pytest.raises(tenon.error.BadDataError) as raised:
        make(file)
    assert str(raised.value) == f"{file}{fault}" and raised.value.subject == str(file)


def test_broken_files(tmp_path):
    packed = gzip.compress(DIGIT.encode() * 5)
    file = tmp_path / "digits.csv.gz"
    for damaged in (packed[:-20], b"no gzip", packed[:20] + b"\xff\xff" + packed[22:], gzip.compress(b"\xff")):
        file.write_bytes(damaged)
        with pytest.raises(tenon.error.BadDataError, match=f"{file}: "):
            dataset.digits(file)


def test_licences():
    data = dataset.licences()
    assert len(data.vocabulary) == 2000 and data.vocabulary[:2] == ["<unk>", "the"]
    names = ["word_0", "word_1", "word_2", "word_3", "next"]
    assert list(data.types) == names and {each.index_limit for each in data.types.values()} == {2000}
    assert data.train.describe()["samples"] > 30000 and data.test.describe()["samples"] > 3000
    first = next(data.test.samples())
    words = [data.vocabulary[int(first[name])] for name in names]
    assert words == ["gnu", "general", "public", "license", "version"]
    assert [*dataset.licences(words=50, window=2).types] == ["word_0", "next"]
    with pytest.raises(tenon.error.NotFoundError, match="there is no file /nowhere/Apache-2.0; .* base-files"):
        dataset.licences("/nowhere")


def test_licences_of_a_folder(tmp_path):
    for file in Path("/usr/share/common-licenses").iterdir():
        (tmp_path / file.name).write_text("The dog, the cat.\n")
    (tmp_path / "GPL-2").write_text("The bird\n")
    data = dataset.licences(tmp_path, window=2)
    assert data.vocabulary == ["<unk>", "the", ",", ".", "cat", "dog"]
    assert [[int(each) for each in sample.values()] for sample in data.test.samples()] == [[1, 0]]
    (tmp_path / "GPL-2").unlink()
    with pytest.raises(tenon.error.NotFoundError, match="GPL-2; .* base-files"):
        dataset.licences(tmp_path)
    (tmp_path / "GPL-2").write_text("The bird\n")
    (tmp_path / "MPL-2.0").write_bytes(b"fine\n\xff\n")
    with pytest.raises(tenon.error.BadDataError, match="MPL-2.0: line 2: "):
        dataset.licences(tmp_path)


def test_reviews_are_read_from_a_file(tmp_path):
    file = tmp_path / "reviews.txt"
    file.write_text("1\tA good good book\n0\tbad\n1\tgood and cheap\n")
    reviews = dataset.amazon.product_review.new(file, words=3)
    assert reviews.vocabulary == ["good", "a", "<other>"]
    assert reviews.types["label"].index_limit == 2
    samples = list(reviews.reader.samples())
    assert [sample["words"].tolist() for sample in samples] == [[1, 0, 0, 2], [2], [0, 2, 2]]
    assert [int(sample["label"]) for sample in samples] == [1, 0, 1]
    file.write_text("1\tgood\nbad\n")
    with pytest.raises(tenon.error.BadDataError, match=r"reviews.txt:2: expected a label"):
        dataset.amazon.product_review.new(file)
    file.write_text("")
    with pytest.raises(tenon.error.BadDataError, match="has no texts"):
        dataset.wikipedia.articles.new(file)
    with pytest.raises(tenon.error.NotFoundError, match="missing"):
        dataset.wikipedia.articles.new(tmp_path / "missing")


def test_articles_are_lines(tmp_path):
    file = tmp_path / "articles.txt"
    file.write_text("the cat\nthe dog sat\n")
    articles = dataset.wikipedia.articles.new(file)
    assert sorted(articles.types) == ["words"] and len(articles.vocabulary) == 5
    assert [len(sample["words"]) for sample in articles.reader.samples()] == [2, 3]
