"""Networks declared by a decorated function, with their data and trainers.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from tenon import error, event, reader, trainer, updater
from tenon import parameters as sets
from tenon._model import layer as layers
from tenon._model.layer import Data, Layer, LayerLike
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

    def createLocalTrainer(self, devices: str = "cpu") -> LocalTrainer:
        """Returns a trainer on devices of this machine, such as "cpu" or "gpu0, gpu1": of several, each computes a shard
        of every minibatch."""
        named = [each.strip() for each in devices.split(",")]
        return LocalTrainer(self, [re.sub(r"^gpu(\d*)$", lambda gpu: f"cuda:{gpu[1] or 0}", each) for each in named])

    def createClusterTrainer(self, nodes: str = "") -> NoReturn:
        """Raises UnsupportedError: a trainer of which other machines compute a part is not offered."""
        raise error.UnsupportedError(
            f'a trainer on the nodes "{nodes}" is not offered: workers on other machines, to which this program would send '
            "its samples, are missing. tenon.dist_train(..., processes=2) trains in several processes of this machine, "
            '`tenon train JOB --nodes "node0,node1"` trains a job on several machines, and createLocalTrainer("cpu") trains '
            "in this process",
            self.declaration.name,
            "createClusterTrainer",
        )

    def __repr__(self) -> str:
        return f"<tenon network {self.declaration.name} of {', '.join(each.name for each in self.outputs)}>"


class LocalTrainer:
    """Trains and tests a network pass by pass. The state of the updater is kept between passes."""

    def __init__(self, network: Network, devices: Sequence[str]) -> None:
        self.network = network
        self.passes = 0
        self._devices = devices
        self._sgd = trainer.SGD()

    def withSGDOptimizer(
        self, learning_rate: float = 0.01, batch_size: int = trainer.BATCH, momentum: float = 0.0
    ) -> LocalTrainer:
        """Trains by stochastic gradient descent. Returns this trainer."""
        return self.withOptimizer(updater.make("sgd", {"learning_rate": learning_rate, "momentum": momentum}), batch_size)

    def withOptimizer(self, optimizer: Any, batch_size: int = trainer.BATCH) -> LocalTrainer:
        """Trains with any updater. Returns this trainer."""
        self._sgd = trainer.SGD(optimizer, batch_size)
        return self

    def trainOnePass(self, event_handler: Any = None) -> trainer.Result:
        """Trains one pass over train_data, in an order of its own. Returns cost and metrics of the pass."""
        done: list[event.Event] = []

        def keep(each: event.Event) -> None:
            if isinstance(each, event.EndTraining):
                done.append(each)

        handlers = [] if event_handler is None else [event_handler]
        self._sgd.train(self.network.outputs, self.network.parameters, self._data("train_data"), [keep, *handlers],
                        device=self._devices)  # fmt: skip
        self.passes += 1
        return trainer.Result(done[0].cost, done[0].metrics, done[0].samples, done[0].seconds, done[0].costs)

    def testOnePass(self) -> trainer.Result:
        """Measures cost and metrics over test_data."""
        return self._sgd.test(self.network.outputs, self.network.parameters, self._data("test_data"),
                              device=self._devices)  # fmt: skip

    def _data(self, use: str) -> reader.Reader:
        declaration = self.network.declaration
        if use not in declaration.readers:
            raise error.MisuseError(
                f"{declaration.name} has no data of {use}: decorate a provider with @{declaration.name}.{use}(files=...)",
                declaration.name,
                use,
            )
        samples, shuffled = declaration.readers[use]
        return samples.shuffle(seed=self.passes) if shuffled else samples


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
