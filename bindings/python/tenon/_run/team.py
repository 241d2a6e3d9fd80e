"""Teams: the processes of a training. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from tenon import _core, error
from tenon._base import check as _check
from tenon._base import host as _host
from tenon._run import team_options as _options


class Team:
    """The processes that train together: this one joins the others, and returns when all are there.

        with tenon.Team(address="tcp://10.0.0.4:5000", rank=1, processes=4, secret="secret.key") as team:
            tenon.train(cost, parameters, reader, shards=8, team=team)

    Each process makes a team, and calls tenon.train with it and with equal arguments, from equal values and data.
    Handlers are called, and checkpoints written, in process 0 alone. comm: the type of the communicator; "" for that of
    the MPI whose launcher has started the process, else "zmq". address: where process 0 listens and the others find it,
    such as "tcp://10.0.0.4:5000" or "ipc:///folder/name"; "": the launcher connects the processes. rank: the number of
    this process from 0, processes: of the team; -1: as the launcher says. servers: the last processes of the team, which
    own the rows of tables and compute no samples; 0: all processes do both. secret: of this start: the path of a file that
    its owner alone may read, "fd:7", an inherited descriptor, or bytes; None for none. listen: the name or address of this
    machine for the other processes. epoch: of this start: processes of another one do not join. deadline_seconds: for all
    to join. silence_seconds: a process of which nothing is heard for so long is lost; 0: none is. attributes: of the
    communicator. host: of the sets that are trained; None for the default host. NotFoundError if no plugin has the
    communicator; FileError names the processes that are missing after the deadline.
    """

    def __init__(
        self,
        comm: str = "",
        *,
        address: str = "",
        rank: int = -1,
        processes: int = -1,
        secret: str | os.PathLike[str] | bytes | None = None,
        listen: str = "",
        epoch: int = 0,
        deadline_seconds: float = 30.0,
        silence_seconds: float = 1.5,
        servers: int = 0,
        attributes: Mapping[str, Any] | None = None,
        host: _host.Host | None = None,
    ) -> None:
        self.host = _host.host() if host is None else _check.instance(host, _host.Host, "a tenon.Host", "host", "team")
        given = {"comm": comm, "address": address, "rank": rank, "processes": processes, "listen": listen, "epoch": epoch,
                 "deadline_seconds": deadline_seconds, "silence_seconds": silence_seconds, "servers": servers}  # fmt: skip
        if attributes:
            given["attributes"] = json.dumps(dict(_check.mapping(attributes, "attributes", "team")))
        options = _check.options(_options.TEAM, given, "team")
        with _source(secret) as options["secret"]:
            self._core: Any = _core.Team(self.host.core, options)
        self._info: dict[str, Any] = self._core.info()

    @property
    def core(self) -> Any:
        """The handle; MisuseError after leave."""
        if self._core is None:
            raise error.MisuseError("the team was left", "team")
        return self._core

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""
        return int(self._info["rank"])

    @property
    def processes(self) -> int:
        """The number of processes of the team."""
        return int(self._info["processes"])

    @property
    def servers(self) -> int:
        """The last processes, which own the rows of tables and compute no samples; 0: all processes do both."""
        return int(self._info["servers"])

    @property
    def comm(self) -> str:
        """The type of the communicator."""
        return str(self._info["comm"])

    @property
    def refused(self) -> int:
        """The connections and messages of strangers that were dropped so far."""
        return self._now("refused")

    @property
    def step(self) -> int:
        """The step of the training that uses the team, by the updates of its parameters so far; -1 if none does. Any thread
        may ask, such as one that watches a training."""
        return self._now("step")

    @property
    def waits_for(self) -> int:
        """The number of the process whose bytes this one waits for, or that does not take its own; -1 if there is none."""
        return self._now("waits_for")

    def _now(self, member: str) -> int:
        core = self._core  # another thread may leave the team
        if core is not None:
            self._info = core.info()
        return int(self._info[member])

    def leave(self) -> None:
        """Leaves the team, if that was not done yet. MisuseError while a training uses it."""
        if self._core is not None:
            self._core.leave()
            self._core = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.leave()

    def __repr__(self) -> str:
        return f"<tenon.Team: process {self.rank} of {self.processes}, joined by {self.comm}>"


@contextmanager
def _source(secret: str | os.PathLike[str] | bytes | None) -> Iterator[str]:
    """Yields where the library finds a secret."""
    if not isinstance(secret, bytes):
        yield "" if secret is None else _check.path(secret, "secret", "team")
        return
    read = secret_pipe(secret)
    try:
        yield f"/proc/self/fd/{read}"
    finally:
        os.close(read)


def secret_pipe(secret: bytes) -> int:
    """Returns the descriptor of a pipe that has the secret."""
    most = 4096  # of a secret; a pipe holds as much without a reader
    if len(secret) > most:
        _check.refuse(f"{len(secret)} bytes", f"at most {most} bytes", "secret", "team")
    read, write = os.pipe()
    try:
        os.write(write, secret)
    finally:
        os.close(write)
    return read
