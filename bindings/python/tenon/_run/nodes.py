"""The processes of a training on other machines, which ssh starts: each runs the program of this one again.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from tenon import error
from tenon import parameters as sets
from tenon._base import check as _check
from tenon._run import own_program
from tenon._run.processes import PATIENCE, Failure, Worker, Workers
from tenon.parameters import ParameterSet

MOST = 1024  # processes
_NODE = re.compile(r"((?:[\w.][\w.-]*@)?(?:\[[\w:.%-]+\]|[\w.][\w.-]*))(?::(\d{1,9}))?", re.ASCII)


@dataclass(frozen=True)
class Node:
    """A machine, as ssh takes it, and the processes there."""

    name: str
    processes: int
    first: int  # the number of its first process

    @property
    def host(self) -> str:
        """The name without a user."""
        return self.name.rpartition("@")[2].strip("[]")


def parse(text: str, call: str) -> list[Node]:
    """Returns the nodes of "node0,node1:2", whose processes are numbered in their order."""
    result: list[Node] = []
    for part in _check.text(text, "nodes", call).split(","):
        found = _NODE.fullmatch(part.strip())
        name, count = (found[1], int(found[2] or 1)) if found else ("", 0)
        if not 1 <= count <= MOST:
            expected = f"names of machines, or NAME:PROCESSES with 1 to {MOST}, as in node0,node1:2"
            raise error.InvalidError(f'{call}: nodes is "{text}"; expected {expected}', call, "nodes")
        if any(each.name == name for each in result):
            why = f'{call}: nodes has "{name}" twice; {name}:2 has two processes on that machine'
            raise error.InvalidError(why, call, "nodes")
        result.append(Node(name, count, sum(each.processes for each in result)))
    return result


def values_of(parameters: ParameterSet, outputs: Any) -> bytes:
    """Returns the bytes of a model file."""
    with tempfile.TemporaryDirectory(prefix="tenon-") as folder:
        path = os.path.join(folder, "values.safetensors")
        parameters.save(path, outputs, nan="allow")
        with open(path, "rb") as file:
            return file.read()


def take_values(parameters: ParameterSet, values: bytes) -> None:
    """Copies the values of a model file."""
    parameters.copy_from(sets.load(values))


def _ssh(node: Node) -> list[str]:
    """Returns the command that runs tenon._run.node on a machine: by the interpreter of here, or that in PATH. `sh` reads it
    because the user's shell may be any other one."""
    path = os.environ.get("PYTHONPATH", "")
    script = f'p={shlex.quote(sys.executable)}; [ -x "$p" ] || p=python3; '
    script += f"export PYTHONPATH={shlex.quote(path)}; " if path else ""
    script += 'exec "$p" -m tenon._run.node'
    machine = node.name.replace("[", "").replace("]", "")  # which ssh does not know
    return ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "--", machine, f"exec sh -c {shlex.quote(script)}"]


class NodeWorkers(Workers):
    """The processes of a training on other machines, process 0 included: this one only starts and watches them."""

    caller = "this program"

    def __init__(self, nodes: list[Node], servers: int, comm: str, call: str) -> None:
        command = own_program.command(call)
        files = [{"path": str(path), "text": path.read_text()} for path in own_program.files(call)]
        total = sum(node.processes for node in nodes)
        self._spare = range(1, total - servers) if servers > 0 else range(0)
        start = {"secret": os.urandom(32).hex(), "command": command[1:], "files": files, "arguments": sys.argv[1:],
                 "folder": os.getcwd()}  # fmt: skip

        def begin(node: Node, rank: int, theirs: Connection) -> subprocess.Popen[bytes]:
            # A group of its own: Ctrl-C at a terminal is for this process, which ends the others.
            return subprocess.Popen(_ssh(node), stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=subprocess.PIPE,
                                    process_group=0)  # fmt: skip

        def worker(node: Node, rank: int) -> Worker:
            result = Worker(rank, partial(begin, node, rank), node.name)
            place = {"PROCESSES": str(total), "LOCAL": str(node.processes), "COMM": comm, "RANK": str(rank)}
            with suppress(OSError):  # it has ended, which is noticed later
                result.connection.send_bytes(json.dumps({**start, "place": place, "host": node.host}).encode())
            return result

        def all_workers() -> Iterator[partial[Worker]]:
            for node in nodes:
                for rank in range(node.first, node.first + node.processes):
                    yield partial(worker, node, rank)

        super().__init__(all_workers())

    def tell(self, message: Any) -> None:
        """Sends a message to all processes that are there."""
        for each in self.all:
            if each not in self.lost:
                with suppress(OSError):  # likewise
                    each.connection.send(message)

    def result(self) -> Any:
        """Waits for the next result of process 0. Raises the error of the process that has failed first."""
        first = self.all[0]
        while not first.results:
            over = first.process.poll() is not None
            self.wait_for_any()
            self.lose(self._spare)
            if not first.results and (failed := self.first(None)) is not None:
                raise self._settled(failed).failure
            if not first.results and over:
                raise error.FileError(f"process 0 on {first.node} has ended without a result", "dist_train", "process 0")
        return first.results.pop(0)

    def finish_all(self) -> None:
        """Waits for the processes to end by themselves."""
        self.finish(self._spare)

    def _settled(self, failed: Failure) -> Failure:
        """Returns the cause of a failure that may be a consequence: a process that loses another one fails, too."""
        until = time.monotonic() + PATIENCE
        while failed.blamed is not None and time.monotonic() < until:
            self.wait_for_any()
            failed = self.first(None) or failed
        return failed


@contextmanager
def started(nodes: list[Node], servers: int, comm: str, place: str, call: str = "dist_train") -> Iterator[NodeWorkers]:
    """Yields the processes, once all have come to the call at this place. Ends them."""
    workers = NodeWorkers(nodes, servers, comm, call)
    try:
        workers.gather(place)
        yield workers
    finally:
        workers.end()
