"""F19: which part of a tuple feeds which data layer. Each case is a line of docs/reports.md.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import tenon

layer, data_type = tenon.layer, tenon.data_type


@pytest.fixture
def tables():
    """A recommender whose topology uses the second data layer first."""
    user = layer.data("user", data_type.integer_value(50))
    movie = layer.data("movie", data_type.integer_value(50))
    rating = layer.data("rating", data_type.dense_vector(1))
    movies = layer.embedding(movie, vocabulary=50, size=4, name="movies")
    users = layer.embedding(user, vocabulary=50, size=4, name="users")
    cost = layer.square_error(layer.dot(movies, users), rating)
    return cost, tenon.parameters.create(cost)


def changed(parameters, before):
    return {name: sorted(np.flatnonzero((parameters[name] != before[name]).any(1))) for name in before}


def trained(tables, samples, **options):
    cost, parameters = tables
    before = {f"{name}.weight": parameters[f"{name}.weight"].copy() for name in ("movies", "users")}
    tenon.train(cost, parameters, tenon.batch(lambda: iter(samples), 4), passes=1, **options)
    return changed(parameters, before)


SAMPLES = [(1, 41, [1.0]), (2, 42, [0.0]), (3, 43, [1.0]), (4, 44, [0.0])]
RIGHT = {"users.weight": [1, 2, 3, 4], "movies.weight": [41, 42, 43, 44]}


def test_order_of_definition(tables):
    """Tuples without names, of a topology that uses the second data layer first: refused, since ids look alike"""
    with pytest.raises(tenon.Error, match='data layers "user" and "movie" take values of one form.*feeding='):
        trained(tables, SAMPLES)


def test_feeding_by_place(tables):
    """Paddle's feeding: places in another order, and parts of the tuple that nothing names"""
    samples = [([rating], "id", movie, user) for user, movie, [rating] in SAMPLES]
    assert trained(tables, samples, feeding={"user": 3, "movie": 2, "rating": 0}) == RIGHT


def test_feeding_by_a_list(tables):
    """Lists and arrays in place of tuples"""
    samples = [[user, movie, np.array(rating)] for user, movie, rating in SAMPLES]
    assert trained(tables, samples, feeding=["user", "movie", "rating"]) == RIGHT


def test_names_of_samples(tables):
    """Dicts, whose order of keys means nothing"""
    samples = [{"rating": rating, "movie": movie, "user": user} for user, movie, rating in SAMPLES]
    assert trained(tables, samples) == RIGHT


def test_shared_layers():
    """One data layer that is read twice counts once"""
    one = layer.data("one", data_type.dense_vector(2))
    two = layer.data("two", data_type.dense_vector(2))
    total = layer.concat(one, two, one)
    made = tenon.parameters.create(total)
    answers = tenon.infer(total, made, [([1, 2], [3, 4])])
    assert answers.tolist() == [[1, 2, 3, 4, 1, 2]]


@pytest.mark.parametrize("feeding, words", [
    ({"user": 0, "movie": 7, "rating": 2}, "7"),
    ({"user": 0, "film": 1, "rating": 2}, "film"), ({"user": 0}, "movie")])  # fmt: skip
def test_wrong_feeding(tables, feeding, words):
    """Places that the tuple lacks, an unknown name and a missing one are refused by name"""
    with pytest.raises((tenon.Error, ValueError, TypeError), match=words):
        trained(tables, SAMPLES, feeding=feeding)


def test_too_few_parts(tables):
    """A tuple that is too short or too long is refused with the names that are expected"""
    for samples in ([(1, 41)], [(1, 41, [1.0], 5)]):
        with pytest.raises(tenon.Error, match="user|movie|rating"):
            trained(tables, samples)
