"""What a launcher has said to this process by its environment: that it is one of several.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from tenon import error

# Name, communicator and variables: number of the process, of processes, of those on this machine. That of Tenon has
# more (of_environment).
_LAUNCHERS = (
    ("Open MPI", "openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("MPICH", "mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"),
)
PREFIX = "TENON_TEAM_"
PARENT = PREFIX + "PARENT"  # "fd:5", the descriptor by which a process of dist_train talks to the one that started it


@dataclass(frozen=True)
class Start:
    """How this process was started: as one of several. local: those on this machine. secret, address and listen are as
    in tenon.Team; parent: of the process that dist_train has started, -1 for none."""

    by: str
    rank: int
    processes: int
    local: int
    comm: str = ""
    address: str = ""
    listen: str = ""
    secret: str = ""
    epoch: int = 0
    parent: int = -1


def of_environment() -> Start | None:
    """Returns what the first launcher that is found has said: Tenon's, Open MPI's, MPICH's and others with its variables;
    None if the process was started alone. InvalidError for a number that is none."""
    processes = _number(PREFIX + "PROCESSES", 0)
    if processes:
        parent = os.environ.get(PARENT, "")
        return Start(
            "tenon", _number(PREFIX + "RANK", 0), processes, max(_number(PREFIX + "LOCAL", 1), 1),
            os.environ.get(PREFIX + "COMM", ""), os.environ.get(PREFIX + "ADDRESS", ""),
            os.environ.get(PREFIX + "LISTEN", ""), os.environ.get(PREFIX + "SECRET", ""), _number(PREFIX + "EPOCH", 0),
            int(parent.removeprefix("fd:")) if parent else -1,
        )  # fmt: skip
    for name, comm, rank, size, local in _LAUNCHERS:
        processes = _number(size, 0)
        if processes > 1:
            return Start(name, _number(rank, 0), processes, max(_number(local, 1), 1), comm)
    return None


def threads(usable: int) -> int:
    """Returns the compute threads of a host of its own choice, of cores that this process may use: its share of them, if it
    was started as one of several, unless a launcher of others has given it cores of its own."""
    start = of_environment()
    if start is None or (start.by != "tenon" and usable < (os.cpu_count() or 1)):
        return usable
    return max(usable // start.local, 1)


def _number(variable: str, otherwise: int) -> int:
    text = os.environ.get(variable, "")
    if not text:
        return otherwise
    if not (text.isascii() and text.isdigit()):
        raise error.InvalidError(f'{variable} is "{text}"; expected a number', "dist_train", variable)
    return int(text)
