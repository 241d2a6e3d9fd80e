"""Data sets. SPDX-License-Identifier: Apache-2.0"""

import pytest

import tenon
from tenon import dataset


def test_fashion_mnist():
    data = dataset.fashion_mnist()
    assert data.train.describe()["samples"] == 60000 and data.test.describe()["samples"] == 10000
    minibatch = next(iter(data.new()))
    assert minibatch["image"].shape == (128, 28, 28) and minibatch["label"].max() < 10
    with pytest.raises(tenon.error.NotFoundError, match="/nowhere/train-images.*dataset-fashion-mnist"):
        dataset.fashion_mnist("/nowhere")


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
    with pytest.raises(FileNotFoundError):
        dataset.wikipedia.articles.new(tmp_path / "missing")


def test_articles_are_lines(tmp_path):
    file = tmp_path / "articles.txt"
    file.write_text("the cat\nthe dog sat\n")
    articles = dataset.wikipedia.articles.new(file)
    assert sorted(articles.types) == ["words"] and len(articles.vocabulary) == 5
    assert [len(sample["words"]) for sample in articles.reader.samples()] == [2, 3]
