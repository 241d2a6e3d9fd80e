"""The trainer of a network on other machines, pass by pass. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import sys
import weakref
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from tenon import error, trainer
from tenon._base import caller as _caller
from tenon._base import check as _check
from tenon._base import host as _host
from tenon._base import launcher as _launcher
from tenon._run import nodes as _nodes
from tenon._run import own_program
from tenon._run.follower import LateTeam, follow
from tenon._run.pass_trainer import LocalTrainer
from tenon._run.processes import Parent

if TYPE_CHECKING:
    from tenon._run.network import Network

_CALL = "createClusterTrainer"
_COMM = "zmq"
_END = "end"  # in the place of the name of a method that the processes call


class ClusterTrainer(LocalTrainer):
    """Trains and tests a network on other machines, whose processes run the program again up to the first call of this
    trainer, and from then on do what the calls in this process ask for."""

    def __init__(self, network: Network, nodes: str, shards: int) -> None:
        super().__init__(network, {"device": "cpu", "shards": _check.whole(shards, "shards", _CALL, 0, 1 << 20)})
        self._nodes = _nodes.parse(nodes, _CALL)
        self._start = _launcher.of_environment()
        self._workers: _nodes.NodeWorkers | None = None
        self._stack = ExitStack()  # of what has to end with this trainer, or the program
        self._has_failed = False
        if self._start is None:
            own_program.command(_CALL)  # refuses what is no program
        elif self._start.parent < 0:
            raise error.MisuseError(
                f"{_CALL}: {self._start.by} has started this process as one of {self._start.processes}; the nodes are for a "
                "program that was started alone, and tenon.dist_train trains in these processes",
                _CALL,
            )
        self._values = _nodes.values_of(network.parameters, network.outputs)  # those of the nodes
        weakref.finalize(self, self._stack.close)

    def trainOnePass(self, event_handler: Any = None) -> trainer.Result:
        """As of other trainers, but for event_handler: that of the first call is called, on the first machine."""
        return self._ask("trainOnePass", event_handler)

    def testOnePass(self) -> trainer.Result:
        """As of other trainers, by the first machine, over its files."""
        return self._ask("testOnePass", None)

    def _ask(self, method: str, event_handler: Any) -> trainer.Result:
        """Has the nodes call a method, and takes the values that they then have. Ends them after an error."""
        place = f"{_caller.place()}, call {_host.host().joint_trainings + 1}"
        if self._start is not None:
            start = self._start
            follow(start, 0, _COMM, place, lambda team, parent: self._serve(team, parent, start.rank, event_handler))
        if self._has_failed:
            raise error.MisuseError(f"{_CALL}: the nodes have ended after an error of an earlier call", _CALL)
        try:
            if self._workers is None:
                self._workers = self._stack.enter_context(_nodes.started(self._nodes, 0, _COMM, place, _CALL))
                self._stack.push(partial(_dismiss, self._workers))
                _host.host().joint_trainings += 1
            parameters, outputs = self.network.parameters, self.network.outputs
            values = _nodes.values_of(parameters, outputs)
            self._workers.tell((method, values if values != self._values else None))
            result, self._values = self._workers.result()
            _nodes.take_values(parameters, self._values)
        except BaseException:
            self._has_failed = True
            self._stack.pop_all().__exit__(*sys.exc_info())
            raise
        self.passes += method == "trainOnePass"
        checked: trainer.Result = result
        return checked

    def _serve(self, team: LateTeam, parent: Parent | None, rank: int, event_handler: Any) -> None:
        """Does in a process of the nodes what the program that has started it asks for."""
        assert parent is not None
        assert team.core is not None  # joins
        self.options["team"] = team
        parameters, outputs = self.network.parameters, self.network.outputs
        while (asked := parent.receive())[0] != _END:
            method, values = asked
            if values is not None:
                _nodes.take_values(parameters, values)
            if method == "trainOnePass":
                result = self.train_pass(event_handler)
            elif rank == 0:
                result = super().testOnePass()
            if rank == 0:
                parent.give((result, _nodes.values_of(parameters, outputs)))


def _dismiss(workers: _nodes.NodeWorkers, kind: type[BaseException] | None, *_: object) -> None:
    """Lets the processes end by themselves, but after an error."""
    if kind is None:
        workers.tell((_END,))
        workers.finish_all()
