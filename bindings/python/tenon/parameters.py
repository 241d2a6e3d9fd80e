"""Sets of parameters: what topologies share, training changes, and files keep.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from tenon import _core, error
from tenon import reader as readers
from tenon._base import check as _check
from tenon._base import host as _host
from tenon._base.arrays import Shared, allows_nan, numbers, plain, to_core
from tenon._model import kernels as _kernels
from tenon._model import layer as layers
from tenon._model.layer import Layer, LayerLike
from tenon.data_type import DataType, numpy_dtype

__all__ = ["ParameterSet", "create", "load"]


class _Training:
    """The training of a set, by updaters of plugins or of Python: its thread alone views and writes the set."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread = 0  # none

    def begin(self, of: object) -> None:
        with self._lock:
            if self._thread:
                raise error.MisuseError(f"{of}: a training of these parameters has not ended", "parameters")
            self._thread = threading.get_ident()

    def end(self) -> None:
        self._thread = 0

    def require_none_elsewhere(self, of: object, advice: str) -> None:
        if self._thread and self._thread != threading.get_ident():
            raise error.MisuseError(f"{of}: a training on another thread writes the parameters{advice}", "parameters")


class ParameterSet(Mapping[str, NDArray[Any]]):
    """A mapping from names to the parameters of one or several topologies.

    p["w"] is a read-only array on the set's own memory: it shows the present values, also while a training goes on.
    p["w"] = x and `with p.edit("w") as w` write. These raise MisuseError while another thread trains the set; an array
    taken before stays, and p.read("w") copies the values between two steps.
    """

    def __init__(self, core: Any, outputs: Iterable[Layer] = (), tables: Iterable[str] = ()) -> None:
        """tables: parameters whose rows lie with the processes of a team."""
        self.core = core
        self._tables = frozenset(tables)
        self.host = _host.host()
        self._outputs = list(outputs)
        self._entries = {each["name"]: each for each in core.entries()}
        self._joined: list[ParameterSet] = []  # sets that have the same memory
        self._training = _Training()
        self.updater_states: WeakKeyDictionary[Any, dict[str, dict[str, Any]]] = WeakKeyDictionary()  # of Python's

    @property
    def outputs(self) -> list[Layer]:
        """The topologies that the set was made for, or loaded with."""
        return list(self._outputs)

    def __getitem__(self, name: str) -> NDArray[Any]:
        self._entry(name)
        self._training.require_none_elsewhere(self, f"; parameters.read({name!r}) copies the values between two steps")
        values: NDArray[Any] = _core.Lease(self.core, name, 0).values()
        return values

    def __setitem__(self, name: str, values: Any) -> None:
        given = self.values_for(name, values)
        self.require_writable()
        self.core.set(name, given)

    def values_for(self, name: str, values: Any) -> Any:
        """Returns values for a parameter as the library takes them. InvalidError if their shape is another one."""
        entry = self._entry(name)
        dtype, shape = numpy_dtype(entry["dtype"]), tuple(entry["shape"])
        given = np.asarray(plain(values))
        if given.shape != shape:
            raise error.InvalidError(
                f'parameter "{name}" has shape {list(shape)}; the given values have {list(given.shape)}', "", name
            )
        type = DataType(str(dtype), shape[1:])
        given = numbers(plain(values), type, f'parameter "{name}"', name)
        return to_core(np.asarray(given, dtype, order="C"), type, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __len__(self) -> int:
        return len(self._entries)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def get(self, name: Any, default: Any = None) -> Any:
        """Returns p[name], or the default where the set has no such parameter."""
        return self[name] if name in self else default  # noqa: SIM401 (this is get)

    @contextmanager
    def training(self) -> Iterator[None]:
        """The time of a training by the calling thread. MisuseError if the set is trained already."""
        training = self._training
        training.begin(self)
        try:
            yield
        finally:
            training.end()

    def require_writable(self) -> None:
        """MisuseError while another thread trains the set."""
        self._training.require_none_elsewhere(self, ", which cannot be written before it has ended")

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def read(self, name: str) -> NDArray[Any]:
        """Returns a copy of the values of a parameter; while another thread trains the set those after a step."""
        self._entry(name)
        values: NDArray[Any] = self.core.read(name)
        return values

    def dlpack(self, name: str, write: bool = False) -> Shared:
        """Returns the memory of a parameter for from_dlpack of NumPy, PyTorch and others, without a copy.

        write: their tensor may be written. While it lives, it must be the only view of the set, and trainings and calls
        of other threads on the set are MisuseErrors. Otherwise it must not be written, which not all of them check.
        """
        self._entry(name)

        def capsule(versioned: bool) -> Any:
            self._training.require_none_elsewhere(self, f"; parameters.read({name!r}) copies the values between two steps")
            return self.core.dlpack(name, int(write), versioned)

        return Shared(capsule)

    @contextmanager
    def edit(self, name: str) -> Iterator[NDArray[Any]]:
        """Gives a copy of the values of a parameter, which replaces them at the end of the block, unless that raises."""
        values = self[name].copy()
        yield values
        self[name] = values

    def shape(self, name: str) -> tuple[int, ...]:
        """Returns the shape of a parameter."""
        return tuple(self._entry(name)["shape"])

    def is_buffer(self, name: str) -> bool:
        """Returns whether it is a buffer: kept with the model, but without a gradient."""
        return bool(self._entry(name)["buffer"])

    def copy_from(
        self,
        source: ParameterSet,
        rename: Mapping[str, str] | None = None,
        skip: Iterable[str] = (),
        partial: bool = False,
    ) -> dict[str, Any]:
        """Copies values by name. rename: {name in the source: name here}; partial: parameters that are missing or have
        another shape keep their values. Returns the report of what was copied and what was not."""
        _check.instance(source, ParameterSet, "a set of parameters", "source", "copy_from")
        renames = list(_check.mapping(rename or {}, "rename", "copy_from").items())
        for each in renames:
            _check.texts(each, "rename", "copy_from")
        self.require_writable()
        report: dict[str, Any] = json.loads(
            self.core.copy_from(source.core, renames, _check.texts(skip, "skip", "copy_from"), bool(partial))
        )
        return report

    def save(
        self,
        path: str | os.PathLike[str],
        outputs: LayerLike | Iterable[LayerLike] | None = None,
        *,
        nan: str = "refuse",
    ) -> None:
        """Writes the set and a topology as one model file, safetensors. outputs: default the topologies of the set.
        nan: "allow" writes values that are not finite, which are an error otherwise."""
        chosen = layers.make(self._outputs if outputs is None else layers.as_layers(outputs))
        if not allows_nan(nan, "save"):
            self.require_finite(chosen, "save")
        self.core.save(chosen, _check.path(path, "path", "save"))

    def require_finite(self, made: Sequence[Any], component: str) -> None:
        """InvalidError if a value that layers, given by their handles, depend on is not finite."""
        for name in [each["name"] for each in self.host.core.declare(made).entries()]:
            if name in self and name not in self._tables and not self.core.is_finite(name):
                raise error.InvalidError(
                    f'{component}: parameter "{name}" has values that are not finite; nan="allow" writes them. A training '
                    "on a host with check_finite=True ends at the first such number and names its layer",
                    component,
                    name,
                )

    def names(self) -> dict[str, list[str]]:
        """Returns the names of the integers of data layers in training, such as words or classes."""
        return {slot: texts for slot, texts, _ in self.core.names()}

    def columns(self) -> dict[str, list[str]]:
        """Returns the names of the columns of data layers in training, in the order of their vectors."""
        return {each.slot: each.columns for each in self.core.known() if each.columns}

    def take_the_place_of(self, sets: Iterable[ParameterSet]) -> None:
        """Gives the sets the memory and parameters of this one, and those that were given theirs before."""
        self._joined = [peer for each in sets for peer in (each, *each._joined)]
        for each in self._joined:
            own = each._outputs
            each.__dict__.update(self.__dict__)
            each._outputs = own + [output for output in self._outputs if all(output is not known for known in own)]

    def __getstate__(self) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            self.save(path, nan="allow")
            with open(path, "rb") as file:
                return {"model": file.read()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(_load(memoryview(state["model"]), "the pickled set").__dict__)

    def __repr__(self) -> str:
        values = sum(int(np.prod(each["shape"])) for each in self._entries.values())
        return f"<tenon.ParameterSet of {len(self)} parameters, {values} values>"

    def _entry(self, name: str) -> dict[str, Any]:
        if name not in self._entries:
            shown = f'"{name}"' if isinstance(name, str) else repr(name)
            raise error.NotFoundError(
                f"the set has no parameter {shown}{error.suggestion(str(name), self._entries)}", "parameters", str(name)
            )
        entry: dict[str, Any] = self._entries[name]
        return entry


def create(
    outputs: LayerLike | Iterable[LayerLike],
    reader: Any = None,
    seed: int = 0,
    feeding: Any = None,
    *,
    tables: str | Iterable[str] = (),
    team: Any = None,
) -> ParameterSet:
    """Makes the parameters of one or several topologies and draws their initial values.

    Layers with one parameter_name share a parameter, within a topology and between topologies. reader: types data
    layers that have no type by its slots of the same name; feeding: {slot: data layer} where the names differ.

    tables: names of parameters, such as the weights of embeddings, whose rows the processes of `team` own between them,
    so that each has a part of them in its memory; team: that of tenon.train. All processes call save then, to which
    process 0 writes the file; values of tables can be set but not read. Without a team, or with one of one process, the
    set has all rows.
    """
    chosen = layers.as_layers(outputs)
    types = None if reader is None else readers.types(reader, feeding, layers.untyped(chosen))
    cores = layers.make(chosen, types)
    layers.require_host(cores, _host.host().core, "create")
    names, joined = _check.texts(tables, "tables", "create"), None
    if team is not None:
        joined = _check.instance(getattr(team, "core", None), _core.Team, "a tenon.Team", "team", "create")
    made = _host.host().core.team_parameters(cores, _check.seed(seed, "create"), names, joined)
    return ParameterSet(made, chosen, names if team is not None and team.processes > 1 else ())


def load(source: Any) -> ParameterSet:
    """Reads a model: a path, the bytes of a model file (of any object with a buffer), or an open binary file.

    The set's `outputs` are the layers of the model. Errors of bytes call them "the model in memory".
    """
    if isinstance(source, (str, os.PathLike)):
        file = _check.path(source, "path", "load")
        return _load(file, file)
    data = source.read() if hasattr(source, "read") else source
    try:
        view = memoryview(data)
    except TypeError:
        _check.refuse(source, "a path, bytes or an open binary file", "source", "load")
    if not view.c_contiguous:
        _check.refuse(source, "bytes without gaps", "source", "load")
    return _load(view, "the model in memory")


def _load(source: str | memoryview, what: str) -> ParameterSet:
    """Reads a model file, or its bytes. what: its name in errors."""
    host = _host.host()

    def read() -> Any:
        return host.core.load(source) if isinstance(source, str) else host.core.load_memory(source)

    try:
        outputs, core = read()
    except error.NotFoundError:
        if not _register_types(host, source, what):
            raise
        outputs, core = read()
    loaded = ParameterSet(core, [Layer._wrap(each) for each in outputs])
    for output in loaded.outputs:
        output._model = loaded
    return loaded


def _register_types(host: _host.Host, source: str | memoryview, what: str) -> bool:
    """Gives the host the classes written in Python that layers of a file are made of; whether there are any."""
    if isinstance(source, str):
        if not os.path.exists(source):
            return False
        topology = json.loads(host.core.describe_model(source))["topology"] or {"layers": []}
    else:  # of a checked file: the length of the header, in 8 bytes, and the header
        data = source.cast("B")
        header = json.loads(bytes(data[8 : 8 + int.from_bytes(data[:8], "little")]))
        topology = json.loads(header["__metadata__"]["tenon.topology"])
    return _kernels.register_types(host, [(each["name"], each["type"]) for each in topology["layers"]], what)


def __dir__() -> list[str]:
    return sorted(__all__)
