"""Ratings of movies, as in the book's chapter "Recommender system": five times the cosine between a user and a movie.

A user is a number, gender, age and job; a movie is a number, categories (a sparse binary vector) and the words of its
title (a sequence). The data is made by examples/recommender/generate. Prints the squared error on the test part beside
that of the mean rating, and one rating that is predicted from a dict of features.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import tenon

USERS, GENDERS, AGES, JOBS, MOVIES, CATEGORIES, WORDS = 2000, 2, 7, 21, 400, 18, 300
folder = tempfile.TemporaryDirectory()
generate = Path(__file__).parents[1] / "recommender/generate"
subprocess.run([sys.executable, "-B", str(generate), folder.name], check=True)


def ratings(part: str) -> tenon.reader.Reader:
    """A reader of a part: the numbers of its samples are in one file, categories and titles in one each."""
    path = f"{folder.name}/{part}"
    columns = [f"user: i64 < {USERS}", f"gender: i64 < {GENDERS}", f"age: i64 < {AGES}", f"job: i64 < {JOBS}",
               f"movie = item: i64 < {MOVIES}"]  # fmt: skip
    numbers = tenon.reader.csv(files=[f"{path}.csv"], columns=columns)
    categories = tenon.reader.libsvm(files=[f"{path}.categories"], width=CATEGORIES)
    titles = tenon.reader.text(files=[f"{path}.titles"], vocabulary=f"{folder.name}/words.txt")
    return tenon.reader.compose(numbers, categories.choose(rating="label", categories="features"),
                                titles.choose(title="words"))  # fmt: skip


def number(name: str, limit: int, size: int) -> tenon.Layer:
    """The vector of a number."""
    data = tenon.layer.data(name, tenon.data_type.integer_value(limit))
    return tenon.layer.embedding(data, vocabulary=limit, size=size)


# fc of several inputs is the sum of one for each.
user = tenon.layer.fc(number("user", USERS, 32), number("gender", GENDERS, 16), number("age", AGES, 16),
                      number("job", JOBS, 16), size=32)  # fmt: skip

categories = tenon.layer.data("categories", tenon.data_type.sparse_binary_vector(CATEGORIES))
title = tenon.layer.data("title", tenon.data_type.integer_value_sequence(WORDS))
words = tenon.layer.sequence_pool(tenon.layer.embedding(title, vocabulary=WORDS, size=32), kind="sum")
movie = tenon.layer.fc(number("movie", MOVIES, 32), tenon.layer.fc(categories, size=32), words, size=32)

predicted = tenon.layer.cos_sim(user, movie, scale=5)
cost = tenon.layer.square_error(predicted, tenon.layer.data("rating", tenon.data_type.dense_array([])))

parameters = tenon.parameters.create(cost)
tenon.train(cost, parameters, ratings("train").shuffle(), passes=10, test=ratings("test"),
            updater=tenon.updater.Adam(learning_rate=0.004))  # fmt: skip

error = tenon.test(cost, parameters, ratings("test")).cost
given = np.array([sample["rating"] for sample in ratings("test").samples()])
print(f"squared error: {error:.2f}; of the mean rating {given.var():.2f}")

rating = tenon.infer(predicted, parameters, {"user": [14], "gender": [0], "age": [0], "job": [13], "movie": [120],
                                             "categories": [[1, 2, 15]], "title": [[218, 237, 13, 31]]})  # fmt: skip
print(f"user 14 will give movie 120 a rating of {float(rating[0]):.2f}")
