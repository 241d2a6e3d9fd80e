"""The sides of benchmarks/tables: each takes a folder, the rows for training and test, and the table; each returns the
accuracy or R2 on the test. SPDX-License-Identifier: Apache-2.0"""
import csv
import subprocess
import warnings

import numpy as np
import pandas as pd

warnings.filterwarnings("ignore")


def score(table, right, predicted):
    if not table.quantity:
        return float(np.mean([str(a) == str(b) for a, b in zip(right, predicted, strict=True)]))
    right, predicted = np.asarray(right, float), np.asarray(predicted, float)
    return float(1 - np.sum((right - predicted) ** 2) / np.sum((right - np.mean(right)) ** 2))


def tenon(build, changes, folder, train, test, table):
    """The job that `tenon new job` writes, unchanged but for `changes`, which is empty in what docs/tables.md shows."""
    program = str(build / "bin/tenon")
    train.to_csv(folder / "train.csv", index=False)
    test.drop(columns=table.target).to_csv(folder / "test.csv", index=False)

    def run(*command):
        result = subprocess.run([program, *command], cwd=folder, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise RuntimeError(f"tenon {' '.join(command)}: {result.stderr}")
        return result.stdout

    run("new", "job", "train.csv", "--target", table.target, *table.options)
    sets = [word for change in changes for word in ("--set", change)]
    run("train", "train.toml", "--quiet", *sets)
    output = "prediction" if table.quantity else "class"
    lines = run("infer", "train.toml", "--data", "test.csv", "--output", output, "--format", "csv", *sets)
    predicted = [row[-1] for row in csv.reader(lines.splitlines()[1:])]
    return score(table, as_texts(test[table.target]), predicted)


def as_texts(column):
    """As the file states them, so that 1.0 stays 1.0."""
    return [line[0] for line in csv.reader(column.to_csv(index=False, header=False).splitlines())]


def parts(train, test, table):
    """Features and labels. Dates are their parts, other texts categories; texts that are mostly different are left out."""
    both = pd.concat([train, test], ignore_index=True).drop(columns=table.target)
    columns = {}
    for name in both.columns:
        column = both[name]
        if column.dtype.kind in "iuf":
            columns[name] = column
            continue
        texts = column.astype("str").where(column.notna())
        dates = pd.to_datetime(texts, format="ISO8601", errors="coerce")
        if dates.notna().equals(texts.notna()):
            columns |= {f"{name} {part}": getattr(dates.dt, part) for part in ("year", "month", "day", "weekday")}
        elif texts.nunique() * 2 <= texts.notna().sum():
            columns[name] = texts.fillna("missing").astype("category")
    both, right = pd.DataFrame(columns), train[table.target]
    return both[: len(train)], right if table.quantity else right.astype(str), both[len(train):], test[table.target]


def of_model(make, prepare=lambda table, features: features):
    def side(folder, train, test, table):
        features, labels, new, right = parts(train, test, table)
        both = prepare(table, pd.concat([features, new]))
        model = make(table.quantity).fit(both[: len(features)], labels)
        return score(table, right, model.predict(both[len(features):]))
    return side


def numbers_alone(table, features):
    """One-hot categories of at most 50 texts, numbers of the others; medians for what is missing; standardised."""
    columns = {}
    for name in features.columns:
        column = features[name]
        if column.dtype.kind in "iuf":
            columns[name] = column.fillna(column.median())
        elif len(column.cat.categories) > 50:
            columns[name] = column.cat.codes
        else:
            columns |= {f"{name}={text}": (column == text).astype(float) for text in column.cat.categories}
    frame = pd.DataFrame(columns).to_numpy(float)
    return (frame - frame.mean(0)) / np.where(frame.std(0) > 0, frame.std(0), 1)


def fewer_categories(table, features):
    """The classes of scikit-learn take at most 255 categories: numbers of the others."""
    return features.apply(lambda column: column.cat.codes if column.dtype.kind not in "iuf"
                          and len(column.cat.categories) > 250 else column)


def lightgbm(quantity):
    import lightgbm as package
    return (package.LGBMRegressor if quantity else package.LGBMClassifier)(verbosity=-1, n_jobs=1)


def boosting(quantity):
    from sklearn import ensemble
    make = ensemble.HistGradientBoostingRegressor if quantity else ensemble.HistGradientBoostingClassifier
    return make(categorical_features="from_dtype", random_state=0)


def forest(quantity):
    from sklearn import ensemble
    return (ensemble.RandomForestRegressor if quantity else ensemble.RandomForestClassifier)(random_state=0)


def linear(quantity):
    from sklearn import linear_model
    return linear_model.Ridge() if quantity else linear_model.LogisticRegression(max_iter=1000)


def mlp(quantity):
    from sklearn import neural_network
    return (neural_network.MLPRegressor if quantity else neural_network.MLPClassifier)(random_state=0)


PEERS = {"LightGBM": of_model(lightgbm), "HistGradientBoosting": of_model(boosting, fewer_categories),
         "RandomForest": of_model(forest, numbers_alone), "linear": of_model(linear, numbers_alone),
         "MLP": of_model(mlp, numbers_alone)}
