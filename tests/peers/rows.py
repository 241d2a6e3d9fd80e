"""What a row of the peer test's table is made of. SPDX-License-Identifier: Apache-2.0"""
import dataclasses
import math
import struct


def to_float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


@dataclasses.dataclass(frozen=True)
class Draw:
    """Random values of an input or a parameter. `lengths` are those of sequences, whose rows are shape[0]; integers are
    below `limit`."""
    shape: tuple
    number: callable  # of a random.Random
    limit: int = None
    lengths: tuple = None
    sequence: str = ""  # inputs of one name have the same sequences

    def values(self, source):
        return [self.number(source) for _ in range(math.prod(self.shape))]


@dataclasses.dataclass(frozen=True)
class Distributions(Draw):
    """Values above 0 whose sum over the last dimension is 1."""

    def values(self, source):
        result = []
        for _ in range(math.prod(self.shape[:-1])):
            weights = [source.uniform(0.2, 2) for _ in range(self.shape[-1])]
            result += [to_float32(weight / sum(weights)) for weight in weights]
        return result


def off_kinks(source):
    """A normal number that is at least 0.03 from the multiples of 1/2, where layers have kinks and jumps."""
    value = source.gauss(0, 1.5)
    nearest = round(2 * value) / 2
    if abs(value - nearest) < 0.03:
        value = nearest + math.copysign(0.03 + source.random() / 16, value - nearest)
    return to_float32(value)


def real(*shape):
    return Draw(shape, off_kinks)


def between(low, high, *shape):
    return Draw(shape, lambda source: to_float32(source.uniform(low, high)))


def positive(*shape):
    return between(0.1, 3, *shape)


def share(*shape):
    """Probabilities, none of them near 0 or 1."""
    return between(0.05, 0.95, *shape)


def distribution(*shape):
    return Distributions(shape, None)


def one_of(numbers, *shape):
    return Draw(shape, lambda source: float(source.choice(numbers)))


def truth(*shape):
    return one_of((0, 1), *shape)


def integers(limit, *shape):
    """Integers from 0 to limit - 1."""
    return Draw(shape, lambda source: source.randrange(limit), limit=limit)


def sequences(lengths, *shape, draw=real, sequence="s"):
    """Sequences of rows of `shape`; the expression sees a list with one tensor for each."""
    rows = draw(sum(lengths), *shape)
    return dataclasses.replace(rows, lengths=tuple(lengths), sequence=sequence)


@dataclasses.dataclass(frozen=True)
class Row:
    """A layer, cost or metric, and what PyTorch says that it computes."""
    type: str
    attributes: dict
    inputs: dict  # variable of the expression: Draw, or None for an optional input that is absent
    torch: str  # the output, or a list of them; of a cost the costs of the samples, of a metric its values
    parameters: dict = dataclasses.field(default_factory=dict)  # name: Draw
    buffers: dict = dataclasses.field(default_factory=dict)  # the same, without gradients; the expression changes them
    training: bool = True
    tolerance: float = 1.0  # factor; see peers.py

    def __str__(self):
        return " ".join([self.type, *(f"{name}={value}" for name, value in self.attributes.items())])


@dataclasses.dataclass(frozen=True)
class UpdaterRow:
    """An updater, and the optimizer of PyTorch that makes the same steps from the same gradients."""
    type: str
    attributes: dict
    torch: str  # the optimizer of the list `p`, one parameter
    before: str = "None"  # runs before each step: changes p[0].grad
    schedule: str = ""  # a scheduler of `optimizer`; Tenon counts steps from 1, so it makes a step before each update
    shape: tuple = (3, 4)
    steps: int = 8
    since: int = 1  # major version of PyTorch whose formula is right
    tolerance: float = 1.0

    def __str__(self):
        return " ".join([self.type, *(f"{name}={value}" for name, value in self.attributes.items())])


def row(layer, attributes, inputs, torch, **options):
    return Row(layer, attributes, inputs, torch, **options)


def updater(name, attributes, torch, **options):
    return UpdaterRow(name, attributes, torch, **options)
