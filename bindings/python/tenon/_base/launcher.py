"""What a launcher has said to this process by its environment: that it is one of several.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from tenon import _core, error

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
    """Returns what the first launcher that is found has said: Tenon's, Open MPI's, MPICH's and others with its variables,
    srun; None if the process was started alone. InvalidError for a number that is none."""
    try:
        place = _core.launched_place()
    except ValueError as failure:
        raise error.InvalidError(str(failure), "dist_train", str(failure).split(" ", 1)[0]) from None
    if place is None:
        return None
    by, comm, rank, processes, local, address, epoch = place
    if epoch < 0 and not address:
        return Start(by, rank, processes, local, comm)
    stated = {name: os.environ.get(PREFIX + name, "") for name in ("COMM", "ADDRESS", "LISTEN", "SECRET")}
    parent = os.environ.get(PARENT, "")
    return Start(
        by, rank, processes, local, comm or stated["COMM"], stated["ADDRESS"] or address, stated["LISTEN"], stated["SECRET"],
        max(epoch, 0), int(parent.removeprefix("fd:")) if parent else -1,
    )  # fmt: skip


def threads(usable: int) -> int:
    """Returns the compute threads of a host of its own choice, of cores that this process may use: its share of them, if it
    was started as one of several, unless a launcher of others has given it cores of its own."""
    start = of_environment()
    if start is None or (start.by != "tenon" and usable < (os.cpu_count() or 1)):
        return usable
    return max(usable // start.local, 1)
