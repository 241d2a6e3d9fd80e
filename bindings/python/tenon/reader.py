"""Readers: where samples come from. Those of plugins, and of Python functions, composed alike.

A reader is a recipe: it can be used in several trainings and tests, each of which reads it from the beginning. Readers
of plugins are functions of this module, such as tenon.reader.csv(files=["data.csv"]). Any function that returns an
iterable of samples is a reader, too; a sample is a dict by data layer, or a tuple in the order of the data layers.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from tenon import _core, error
from tenon._base import functions as _functions
from tenon._base import host as _host
from tenon._base.arrays import Sparse, from_core, is_frame, opened
from tenon._base.columns import Types, Wanted, converted, packed_column
from tenon.data_type import DataType, layout_code, of_options

__all__ = ["Reader", "arrays", "as_reader", "batch", "buffered", "chain", "compose", "first_n", "firstn", "interleave",
           "map_readers", "shuffle", "typed", "types"]  # fmt: skip

ReaderLike = Union["Reader", Callable[[], Iterable[Any]], Mapping[str, Any], Sequence[Any], Iterable[Any]]


def _and_slot(types: Types | None, name: str) -> Types | None:
    return types.and_slot(name) if isinstance(types, Wanted) else types


class Ahead(enum.IntEnum):
    """When trainings and tests may read a recipe ahead, so that nobody can tell that they do."""

    NEVER = 0  # it runs functions of the application, or reads ahead itself
    ALONE = 1  # where nothing of the application runs in between, which may change its arrays
    ALWAYS = 2


class Reader:
    """A recipe of a stream of samples, or of minibatches."""

    def __init__(
        self, open: Callable[[Types | None], Any], batched: bool = False, ahead: Ahead = Ahead.NEVER
    ) -> None:
        self._open = open
        self.batched = batched
        self.ahead = ahead

    def open(self, types: Types | None = None) -> Any:
        """Opens the stream. types: of the slots of samples that have none of their own."""
        return self._open(types)

    def _then(self, wrap: Callable[[Any], Any], batched: bool | None = None) -> Reader:
        return Reader(lambda types: wrap(self._open(types)), self.batched if batched is None else batched, self.ahead)

    def shuffle(self, buffer: int = 0, seed: int = 0) -> Reader:
        """A new order of samples in each pass. buffer: samples that are mixed; 0: all, or 65536 of a stream whose
        length is not known."""

        def wrap(core: Any) -> Any:
            unknown = buffer == 0 and json.loads(core.describe())["samples"] < 0
            return core.shuffle(seed, 65536 if unknown else buffer)

        return self._then(wrap)

    def batch(self, size: int, drop_last: bool = False) -> Reader:
        """Minibatches of `size` samples."""
        return self._then(lambda core: core.batch(size, drop_last), True)

    def bucket(self, slot: str, window: int, size: int = 0, rows: int = 0, seed: int = 0) -> Reader:
        """Minibatches of samples of similar length, of at most `size` samples and `rows` rows."""
        return Reader(lambda types: self._open(_and_slot(types, slot)).bucket(slot, window, size, rows, seed), True, self.ahead)

    def buffered(self, minibatches: int = 4) -> Reader:
        """Reads so many minibatches ahead, in the background, as trainings and tests do with 2 where that cannot be told;
        0: none."""
        if minibatches == 0:
            return Reader(self._open, self.batched)
        return Reader(lambda types: self._open(types).buffered(minibatches), self.batched)

    def first_n(self, samples: int) -> Reader:
        """The first samples of each pass."""
        return self._then(lambda core: core.first_n(samples))

    def shard(self, number: int, shards: int) -> Reader:
        """The samples i with i % shards == number."""
        return self._then(lambda core: core.shard(number, shards))

    def split(self, fraction: float, seed: int = 0) -> tuple[Reader, Reader]:
        """Two readers of different samples: all but `fraction` of them, and those, for validation. The division depends
        on fraction, seed and number of samples alone. For data that is read by index."""

        def part(held_out: bool) -> Reader:
            return self._then(lambda core: core.split(fraction, seed, held_out))

        return part(False), part(True)

    def augment(
        self,
        slot: str,
        pad: int = 0,
        crop: tuple[int, int] | None = None,
        flip: bool = False,
        centre: bool = False,
        brightness: float = 0.0,
        contrast: float = 0.0,
        saturation: float = 0.0,
        layout: str = "channels_last",
        seed: int = 0,
    ) -> Reader:
        """Changes the images of a slot at random, by seed, pass and sample: a crop of [height, width] of the image with
        `pad` pixels of zeros around it, or with `centre` of its middle; a mirror image, with probability 1/2; colours,
        each by a factor of [1 - x, 1 + x]. Put it before shard and shuffle."""
        size, colours = crop or (0, 0), (brightness, contrast, saturation)
        code = layout_code(layout)

        def open(types: Types | None) -> Any:
            return self._open(_and_slot(types, slot)).augment(slot, code, pad, size, flip, centre, colours, seed)

        return Reader(open, self.batched, self.ahead)

    def choose(self, *slots: str, **renamed: str) -> Reader:
        """Selects slots; choose(new="old") renames."""
        pairs = [(slot, slot) for slot in slots] + [(old, new) for new, old in renamed.items()]

        def open(types: Types | None) -> Any:
            if not isinstance(types, Wanted):
                return self._open(types).choose(pairs)
            taken = [(old, new) for old, new in pairs if new in types or not types.alone] or pairs
            return self._open(types.renamed(taken)).choose(taken)

        return Reader(open, self.batched, self.ahead)

    def map(self, function: Callable[[dict[str, Any]], Any], types: Types | None = None) -> Reader:
        """Samples computed from samples: function(sample) gets a dict by slot. types: of the new slots, where they
        differ from those of this reader."""

        def open(known: Types | None) -> Any:
            source = Wanted(known, False, True) if isinstance(known, Wanted) else known  # the function reads any slot
            given = dict(types) if types is not None else self.types(source)
            return _iterated(lambda: map(function, self.samples(source)), given, known)

        if self.batched:
            raise error.MisuseError("map works on samples: call it before batch")
        return Reader(open)

    def types(self, known: Types | None = None) -> dict[str, DataType]:
        """Returns the types of the slots."""
        return {slot["name"]: of_options(slot) for slot in self._open(known).slots()}

    def samples(self, known: Types | None = None) -> Iterator[dict[str, Any]]:
        """The samples of one pass."""
        for minibatch in _one_pass(self._open(known) if self.batched else self._open(known).batch(256, False)):
            for number in range(_samples_of(minibatch)):
                yield {name: _sample(values, number) for name, values in minibatch.items()}

    def read(self, passes: int | None = 1) -> Iterator[tuple[dict[str, Any], bool]]:
        """Yields (minibatch, whether the pass ends with it). passes None: without end. A minibatch is a dict of arrays.
        Of a reader without minibatches a minibatch is one sample."""
        if passes is not None and (not isinstance(passes, (int, np.integer)) or passes < 0):
            raise error.InvalidError(f"passes is {passes!r}; expected an integer from 0 on, or None", "reader", "passes")
        return self._read(passes)

    def _read(self, passes: int | None) -> Iterator[tuple[dict[str, Any], bool]]:
        core = self._open(None) if self.batched else self._open(None).batch(1, False)
        count = 0
        while passes is None or count < passes:
            last = None
            for minibatch in _one_pass(core):
                if last is not None:
                    yield last, False
                last = minibatch
            if last is None:
                return
            count += 1
            yield last, True

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The minibatches, or samples, of one pass."""
        return _one_pass(self._open(None)) if self.batched else self.samples()

    def describe(self) -> dict[str, Any]:
        """Returns slots, number of samples and size of minibatches."""
        described: dict[str, Any] = json.loads(self._open(None).describe())
        return described


def _one_pass(core: Any) -> Iterator[dict[str, Any]]:
    names = [slot["name"] for slot in core.slots()]
    while (values := core.next()) is not None:
        yield dict(zip(names, map(from_core, values), strict=True))


def _samples_of(minibatch: Mapping[str, Any]) -> int:
    return len(next(iter(minibatch.values())))


def _sample(values: Any, number: int) -> Any:
    if not isinstance(values, Sparse):
        return values[number]
    begin, end = values.offsets[number], values.offsets[number + 1]
    numbers = np.ones(end - begin) if values.values is None else values.values[begin:end]
    return list(zip(values.columns[begin:end].tolist(), numbers.tolist(), strict=True))


def _slots(types: Types, wanted: Types | None) -> tuple[list[dict[str, Any]], str]:
    """Returns the options of slots, and why samples that are tuples are refused. wanted: of the data layers."""
    if not isinstance(wanted, Wanted):
        return [{**type.options(name), "nan": True} for name, type in types.items()], ""
    own = types is wanted
    slots = [{**type.options(name), "nan": wanted.nan} for name, type in types.items()]
    if own and wanted.places:
        wanted.by_place = True
        for slot in slots:
            slot["place"] = wanted.places[slot["name"]]
    return slots, wanted.no_tuples if own else ""


def _iterated(function: Callable[[], Iterable[Any]], types: Types, wanted: Types | None) -> Any:
    slots, no_tuples = _slots(types, wanted)
    return _core.open_iterated(_host.host().core, slots, function, no_tuples)


def _filled(types: Types | None, samples: Callable[[], Iterable[Any]]) -> Types:
    """Returns the types of all slots: those that are not known are guessed from a sample."""
    if not types:
        return _guessed(samples)
    unknown = [name for name, type in types.items() if type is None]
    if isinstance(types, Wanted) and unknown:
        guessed = _guessed(samples, unknown)
        for name in unknown:
            if name in guessed:
                types[name] = guessed[name]
            else:
                del types[name]
    return types


def _guess(value: Any, name: str) -> DataType:
    """Returns the type of a slot from one value, where only one is meant."""
    if isinstance(value, (bool, np.bool_)):
        return DataType("bool")
    if isinstance(value, (int, np.integer)):
        return DataType("int64")
    if isinstance(value, (float, np.floating)):
        return DataType("float32")
    if isinstance(value, np.ndarray):
        return DataType("float32" if value.dtype == np.float64 else str(value.dtype), value.shape)
    raise error.InvalidError(
        f'the type of slot "{name}" cannot be told from {type(value).__name__} values: give the data layer a type, or '
        "the reader, as tenon.reader.typed(function, {...})",
        "reader",
        name,
    )


def _guessed(function: Callable[[], Iterable[Any]], names: Sequence[str] | None = None) -> Types:
    """Returns the types of the samples of a function by its first sample. names: of the slots that are wanted."""
    for sample in function():
        if not isinstance(sample, Mapping):
            raise error.InvalidError(
                "the samples of the reader are no dicts, so that the names of their slots are not known: give the data "
                "layers types, or the reader, as tenon.reader.typed(function, {...})",
                "reader",
            )
        chosen = [name for name in sample if name != "end_pass"] if names is None else names
        return {name: _guess(sample[name], name) for name in chosen if name in sample}
    raise error.BadDataError("the reader gave no samples", "reader")


def typed(function: Callable[[], Iterable[Any]], types: Types) -> Reader:
    """A reader of the samples that function() returns, with types of its slots: the names of its data layers in the
    order of its tuples."""
    return Reader(lambda known: _iterated(function, types, known))


def arrays(columns: Mapping[str, Any]) -> Reader:
    """A reader of the rows of arrays, one array for each slot, all of equal length. Also of pandas frames and Arrow
    tables (each column a slot), scipy.sparse matrices and lists of sequences, as tenon.Ragged. Columns of arrays of equal
    length are vectors, categories are integers with names."""

    def open(types: Types | None) -> Any:
        found = converted(columns, {} if types is None else types)
        lengths = {name: len(values) for name, (values, _) in found.items()}
        if len(set(lengths.values())) > 1:
            raise error.InvalidError(f"the arrays of a reader differ in length: {lengths}", "reader")
        nan = not isinstance(types, Wanted) or types.nan
        slots = [{**options, "nan": nan} for _, options in found.values()]
        rows = [packed_column(values, name) for name, (values, _) in found.items()]
        if None not in rows:
            return _core.open_rows(_host.host().core, slots, rows)
        listed = [[_sample(values, number) for number in range(len(values))] for values, _ in found.values()]
        return _core.open_indexed(_host.host().core, slots, list(zip(*listed, strict=True)))

    return Reader(open, ahead=Ahead.ALONE)


def as_reader(value: ReaderLike) -> Reader:
    """Returns a reader of: a reader; a function that returns samples; a dict of arrays, a frame or table; a list of
    samples; an iterator, for one pass."""
    if isinstance(value, Reader):
        return value
    columns = opened(value)
    if isinstance(columns, Mapping) or is_frame(columns):
        return arrays(columns)
    if columns is not value:
        raise TypeError(f"expected a table, not one column of Arrow, {type(value).__name__}")
    if callable(value):
        function: Any = value
        return Reader(lambda types: _iterated(function, _filled(types, function), types))
    if isinstance(value, Sequence) and not isinstance(value, str):
        samples = value

        def open(types: Types | None) -> Any:
            slots, no_tuples = _slots(_filled(types, lambda: samples), types)
            return _core.open_indexed(_host.host().core, slots, samples, no_tuples)

        return Reader(open)
    if hasattr(value, "__iter__") and not isinstance(value, str):
        return Reader(_once(value))
    raise TypeError(f"expected a reader or a function that returns samples, not {type(value).__name__}")


def samples_or_feeds(given: Any, types: Mapping[str, Any], feeding: Any = None) -> Any:
    """Returns a reader, or feeds by data layer for values of all samples at once."""
    if feeding and isinstance(given, (Mapping, list, tuple)):
        return as_reader(given)
    if isinstance(given, Mapping):
        missing = [name for name in types if name not in given]
        if missing:
            raise error.InvalidError(
                f'the input has nothing for data layer "{missing[0]}"; it has {list(given)}', "infer", missing[0]
            )
        return {name: value for name, value in given.items() if name in types}
    arrays = not callable(given) and not isinstance(given, (Reader, Mapping))
    if arrays and len(types) == 1 and not is_frame(given):
        dense = all(type.storage == _core.DENSE for type in types.values())
        if isinstance(given, (list, tuple)) and given and isinstance(given[0], (dict, tuple)) and dense:
            return as_reader(given)
        if not hasattr(given, "__next__"):
            return {next(iter(types)): given}
    return as_reader(given)


def _once(iterable: Iterable[Any]) -> Callable[[Types | None], Any]:
    """Opens an iterator, which has one pass alone."""
    started = False

    def samples() -> Iterable[Any]:
        nonlocal started
        if started and iter(iterable) is iterable:
            raise error.MisuseError(
                "the reader is an iterator, which has one pass alone: give a function that returns one", "reader"
            )
        started = True
        return iterable

    def open(types: Types | None) -> Any:
        if not types or None in types.values():
            raise error.InvalidError("the types of an iterator's samples are not known: give the data layers types",
                                     "reader")  # fmt: skip
        return _iterated(samples, types, types)

    return open


def types(
    reader: ReaderLike, feeding: Mapping[str, str | int] | None = None, names: Iterable[str] | None = None
) -> dict[str, DataType]:
    """Returns the types of the slots of a reader, by the data layers that they feed. names: of the data layers whose types
    are wanted; None: of all."""
    slots = feeding.items() if isinstance(feeding, Mapping) else ()
    layer_of = {slot: layer for slot, layer in slots if isinstance(layer, str)}
    if names is None:
        return {layer_of.get(name, name): type for name, type in as_reader(reader).types(Wanted({}, False, True)).items()}
    slot_of = {layer: slot for slot, layer in layer_of.items()}
    wanted = Wanted({slot_of.get(name, name): None for name in names}, True, True)
    if not wanted:
        return {}
    found = as_reader(reader).types(wanted)
    return {layer_of.get(name, name): type for name, type in found.items()}


def shuffle(reader: ReaderLike, buffer: int = 0, seed: int = 0) -> Reader:
    """Reader.shuffle."""
    return as_reader(reader).shuffle(buffer, seed)


def batch(reader: ReaderLike, size: int, drop_last: bool = False) -> Reader:
    """Reader.batch."""
    return as_reader(reader).batch(size, drop_last)


def buffered(reader: ReaderLike, minibatches: int = 4) -> Reader:
    """Reader.buffered."""
    return as_reader(reader).buffered(minibatches)


def first_n(reader: ReaderLike, samples: int) -> Reader:
    """Reader.first_n; also called firstn."""
    return as_reader(reader).first_n(samples)


firstn = first_n


def map_readers(function: Callable[[dict[str, Any]], Any], reader: ReaderLike, types: Types | None = None) -> Reader:
    """Reader.map."""
    return as_reader(reader).map(function, types)


def _joined(kind: str, readers: Sequence[ReaderLike]) -> Reader:
    list_ = [as_reader(each) for each in readers]
    batched, ahead = any(each.batched for each in list_), min((each.ahead for each in list_), default=Ahead.NEVER)
    return Reader(lambda types: _core.join(kind, [each.open(types) for each in list_]), batched, ahead)


def chain(*readers: ReaderLike) -> Reader:
    """One reader after the other."""
    return _joined("chain", readers)


def interleave(*readers: ReaderLike) -> Reader:
    """One sample of each in turn."""
    return _joined("interleave", readers)


def compose(*readers: ReaderLike) -> Reader:
    """The slots of several readers side by side."""
    return _joined("compose", readers)


def make(type: str, attributes: dict[str, Any]) -> Reader:
    """Makes a reader of a plugin."""
    if isinstance(attributes.get("files"), str):
        attributes = {**attributes, "files": [attributes["files"]]}

    def open(types: Types | None) -> Any:
        if not isinstance(types, Wanted):
            return _core.open_plugin(_host.host().core, type, attributes)
        needed = list(types) if types.alone and types else None
        return _core.open_plugin(_host.host().core, type, attributes, known=types.known, needed=needed)

    return Reader(open, ahead=Ahead.ALWAYS)


if TYPE_CHECKING:  # the functions of the plugins in the build, by stubs.py
    from tenon import _readers
    from tenon._readers import *  # noqa: F403 (they list their names)

    __all__ += _readers.__all__
else:

    def __getattr__(name: str) -> Any:
        return _functions.attribute("reader", name, make)


def __dir__() -> list[str]:
    return sorted({*__all__, *_host.host().names("reader")})
