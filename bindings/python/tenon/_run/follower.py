"""A process of a team, as the training that has started it has it work. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

from tenon import error
from tenon._base import launcher as _launcher
from tenon._run.processes import Failure, Parent
from tenon._run.team import Team

_INTERRUPTED = 130  # the exit code after Ctrl-C


class LateTeam(Team):
    """A team that is joined when the training, whose arguments are right, asks for it. options: returns the arguments of
    Team when the other processes are about to join."""

    def __init__(self, options: Callable[[], dict[str, Any]]) -> None:
        self._options = options
        self._core: Any = None

    @property
    def core(self) -> Any:
        if self._core is None:
            super().__init__(**self._options())
        return self._core


def follow(
    start: _launcher.Start, servers: int, comm: str, place: str, work: Callable[[LateTeam, Parent | None], None]
) -> NoReturn:
    """Works as a process that others wait for, and ends it. work: gets the team, which it joins when it uses that, and the
    process that has started this one, if that is a program as this one is. place: of the call."""
    parent = None if start.parent < 0 else Parent(start.parent)
    code = 1
    try:

        def meet() -> dict[str, Any]:
            address = start.address if parent is None else parent.meet(place, start.address)
            return team_options(replace(start, address=address), servers, comm)

        team = LateTeam(meet)
        work(team, parent)
        team.leave()
        code = 0
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BaseException as failure:  # noqa: BLE001 (whatever it is, the process ends)
        if parent is None or not parent.tell(Failure.now(failure)):
            lines = "".join(traceback.format_exception(failure)).splitlines()
            print("\n".join(f"[process {start.rank}] {line}" for line in lines), file=sys.stderr)
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)  # without what the program has registered for its end, which is for process 0


def team_options(start: _launcher.Start, servers: int, comm: str) -> dict[str, Any]:
    """Returns the arguments of Team for a process that a launcher has started."""
    if start.by == "srun" and start.address and not start.secret:
        raise error.InvalidError(
            f"dist_train: srun has started {start.processes} processes without PMI: they train together if TENON_TEAM_SECRET "
            "is the path of a file of 16 random bytes or more, which only its owner may read, and each alone with "
            "TENON_TEAM_PROCESSES=1",
            "dist_train",
            "TENON_TEAM_SECRET",
        )
    given = {"comm": comm or start.comm, "rank": start.rank, "processes": start.processes, "servers": servers,
             "address": start.address, "listen": start.listen, "secret": start.secret or None,
             "epoch": start.epoch}  # fmt: skip
    if start.by == "tenon" and start.rank != 0:  # programs that this process runs from now on are not of the team
        for name in [each for each in os.environ if each.startswith(_launcher.PREFIX)]:
            del os.environ[name]
    return given
