"""Networks declared by a decorated function, with their data and trainers.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from tenon import error, reader
from tenon import parameters as sets
from tenon._model import layer as layers
from tenon._model.layer import Data, Layer, LayerLike
from tenon._run.cluster_trainer import ClusterTrainer
from tenon._run.pass_trainer import LocalTrainer
from tenon.data_type import DataType
from tenon.parameters import ParameterSet

Provider = TypeVar("Provider", bound=Callable[[str], Iterable[Any]])


class Declaration:
    """A network declared by @tenon.network: its inputs, the function that builds it, and its data.

    Called without arguments it makes a Network; called with layers it returns what the function builds on them.
    """

    def __init__(self, function: Callable[..., Any], input_types: Mapping[str, DataType]) -> None:
        self.name = function.__name__
        self.input_types = dict(input_types)
        self.readers: dict[str, tuple[reader.Reader, bool]] = {}  # by use; whether it is shuffled
        self._function = function
        self.__doc__ = function.__doc__
        for name, type in self.input_types.items():
            if not isinstance(type, DataType):
                raise TypeError(f"input_types of {self.name}: {name!r} is one of tenon.data_type, not {type!r}")
        try:
            inspect.signature(function).bind(**self.input_types)
        except TypeError as failure:
            raise error.InvalidError(
                f"the inputs of {self.name}{inspect.signature(function)} are not those of input_types, "
                f"{', '.join(self.input_types)}: {failure}",
                self.name,
                "input_types",
            ) from None

    def __call__(self, *args: LayerLike, **named: LayerLike) -> Any:
        if args or named:
            return self._function(*map(layers.as_layer, args), **{n: layers.as_layer(each) for n, each in named.items()})
        built = self._function(**{name: Data(name, type) for name, type in self.input_types.items()})
        return Network(self, layers.as_layers(built))

    def train_data(self, files: str | Sequence[str], shuffle: bool = True) -> Callable[[Provider], Provider]:
        """Decorates provider(file), which yields the samples of a file: dicts, or tuples in the order of input_types.
        shuffle: in another order in each pass."""
        return self._data("train_data", files, shuffle)

    def test_data(self, files: str | Sequence[str]) -> Callable[[Provider], Provider]:
        """Decorates provider(file) of the samples to test with."""
        return self._data("test_data", files, False)

    def _data(self, use: str, files: str | Sequence[str], shuffle: bool) -> Callable[[Provider], Provider]:
        names = [files] if isinstance(files, str) else list(files)
        if not names:
            raise error.InvalidError(f"{self.name}.{use} needs at least one file", self.name, "files")

        def decorate(provider: Provider) -> Provider:
            def samples() -> Iterator[Any]:
                for name in names:
                    yield from provider(name)

            self.readers[use] = reader.typed(samples, self.input_types), shuffle
            return provider

        return decorate


class Network:
    """A network with its parameters: outputs, parameters, and trainers."""

    def __init__(self, declaration: Declaration, outputs: Sequence[Layer]) -> None:
        self.declaration = declaration
        self.outputs = [*outputs, *_accuracies(outputs)]
        self.parameters: ParameterSet = sets.create(self.outputs)

    def createLocalTrainer(self, devices: str = "cpu", shards: int = 0) -> LocalTrainer:
        """Returns a trainer on devices of this machine, such as "cpu" or "gpu0, gpu1": of several, each computes some of the
        shards of every minibatch; 0: one for each."""
        named = [each.strip() for each in devices.split(",")]
        named = [re.sub(r"^gpu(\d*)$", lambda gpu: f"cuda:{gpu[1] or 0}", each) for each in named]
        return LocalTrainer(self, {"device": named, "shards": shards})

    def createClusterTrainer(self, nodes: str, shards: int = 0) -> ClusterTrainer:
        """Returns a trainer on other machines, such as "node0, ann@node1:2", which ssh reaches without a password: with one
        process, or so many, on each.

        They run this program again, up to its first pass of this trainer, which they then train together, and all passes
        after it. The values of `parameters` come back after each pass. Readers, their files and event handlers are those of
        the first machine, those of the first pass. shards: of a minibatch; 0: one for each process. UnsupportedError in a
        notebook or an interactive session, which cannot be run again.
        """
        return ClusterTrainer(self, nodes, shards)

    def data(self, use: str, seed: int = 0) -> reader.Reader:
        """Returns the reader of train_data or test_data. seed: of the order."""
        declaration = self.declaration
        if use not in declaration.readers:
            raise error.MisuseError(
                f"{declaration.name} has no data of {use}: decorate a provider with @{declaration.name}.{use}(files=...)",
                declaration.name,
                use,
            )
        samples, shuffled = declaration.readers[use]
        return samples.shuffle(seed=seed) if shuffled else samples

    def __repr__(self) -> str:
        return f"<tenon network {self.declaration.name} of {', '.join(each.name for each in self.outputs)}>"


def _accuracies(outputs: Sequence[Layer]) -> list[Layer]:
    """Returns the accuracy of each cross_entropy to an integer label, which is reported beside the cost."""
    found = []
    for output in outputs:
        inputs = output.inputs
        if output.type == "cross_entropy" and len(inputs) == 2 and inputs[1].shape == ("samples",):
            found.append(Layer("accuracy", inputs, {}))
    return found


def network(input_types: Mapping[str, DataType]) -> Callable[[Callable[..., Any]], Declaration]:
    """Declares a network by a function of its data layers, which returns a cost, or several outputs.

        @tenon.network(input_types={"img": dense_vector(784), "label": integer_value(10)})
        def mnist(img, label):
            return classification_cost(input=fc_layer(input=img, size=10, act=SoftmaxActivation()), label=label)

        @mnist.train_data(files=["train.txt"])
        @mnist.test_data(files=["test.txt"])
        def provider(filename): ...

        trainer = mnist().createLocalTrainer("cpu").withSGDOptimizer(learning_rate=0.01, batch_size=200)
        trainer.trainOnePass()

    tenon.config_helpers has the names of 2016, such as fc_layer. Beside the cost of a classification its accuracy is
    reported.
    """
    return lambda function: Declaration(function, input_types)
