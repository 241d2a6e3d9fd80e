"""Answers that go on: watches, the logs that are followed, and programs that are run in a container.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time

from . import errors
from .api import Api, Request
from .container import Process
from .environment import NotYet
from .errors import ApiError
from .websocket import Closed, WebSocket

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, STATUS, CLOSE = 0, 1, 2, 3, 255
POLL = 0.2  # seconds between looks at whether a stream is to end


class Broken(Exception):
    """A stream that is to break off."""


class Streams:
    """The stream of one request. The connection takes chunks."""

    def __init__(self, api: Api, connection):
        self.api = api
        self.cluster = api.cluster
        self.store = api.store
        self.connection = connection

    # Watches.

    def watch(self, request: Request) -> None:
        test = self.api.test(request)
        query = request.query
        kind = request.kind
        if "sendInitialEvents" in query:  # a client then lists and watches, as it does with servers that cannot either
            raise errors.invalid(kind, "", ["sendInitialEvents: Forbidden: the WatchList feature gate is not enabled"])
        end = time.monotonic() + float(query.get("timeoutSeconds") or 1800)
        breaks = self.cluster.faults.drops["watch"]
        given = query.get("resourceVersion") or "0"
        if not given.isdigit():
            raise ApiError(400, f'Invalid value: "{given}": strconv.ParseUint: parsing: invalid syntax')
        with self.store.lock:
            first = self.store.list(kind.plural, request.namespace) if given == "0" else []
            version = self.store.version if given == "0" else int(given)
        self.connection.begin_chunks("application/json")
        for found in filter(test, first):
            self._send_event("ADDED", found)
        place = 0
        while time.monotonic() < end:
            if breaks != self.cluster.faults.drops["watch"]:
                if self.cluster.faults.clean:
                    return
                self.connection.chunk(b'{"type":"MODIFIED","object":{"kind"')
                raise Broken
            try:
                with self.store.changed:
                    place, events = self.store.since(version, place)
                    if not events:
                        self.store.changed.wait(min(POLL, max(0.0, end - time.monotonic())))
            except ApiError as error:
                self._send_event("ERROR", error.status())
                return
            for _, event, key, found in events:
                if key[0] == kind.plural and request.namespace in ("", key[1]) and test(found):
                    self._send_event(event, found)
            version = events[-1][0] if events else version
            self.connection.check()
        if query.get("allowWatchBookmarks") == "true":
            metadata = {"resourceVersion": str(version), "creationTimestamp": None}
            self._send_event("BOOKMARK", {"kind": kind.name, "apiVersion": kind.api_version, "metadata": metadata})

    def _send_event(self, event: str, found: dict) -> None:
        self.connection.chunk(json.dumps({"type": event, "object": found}).encode() + b"\n")

    # Logs.

    def log(self, request: Request) -> None:
        query = request.query
        pod = self.api.found(request)
        name = self._container(request, pod, query.get("container"))
        runner = self.cluster.kubelet.runner_of(pod)
        if query.get("previous") == "true":
            log = runner.old_logs.get(name) if runner else None
            if log is None:
                raise ApiError(400, f'previous terminated container "{name}" in pod "{request.name}" not found')
        else:
            log = runner.logs.get(name) if runner else None
        if log is None:
            statuses = pod["status"].get("containerStatuses", []) + pod["status"].get("initContainerStatuses", [])
            states = [x["state"] for x in statuses if x["name"] == name]
            why = states[0].get("waiting", {}).get("reason", "ContainerCreating") if states else "ContainerCreating"
            where = f'container "{name}" in pod "{request.name}" is waiting to start: {why}'
            raise ApiError(400, where)
        follow = query.get("follow") == "true"
        breaks = self.cluster.faults.drops["log"]
        since = time.time() - float(query["sinceSeconds"]) if "sinceSeconds" in query else 0.0
        with log.changed:
            lines = [line for line in log.lines if line[0] >= since]
            next_line = len(log.lines)
        if "tailLines" in query:
            lines = lines[len(lines) - min(int(query["tailLines"]), len(lines)) :]
        self.connection.begin_chunks("text/plain")
        while True:
            for stamp, line in lines:
                self.connection.chunk(_stamp(stamp) + line if query.get("timestamps") == "true" else line)
            with log.changed:
                if not log.closed and follow and next_line == len(log.lines):
                    log.changed.wait(POLL)
                lines = log.lines[next_line:] if follow else []
                next_line += len(lines)
                over = not lines and (log.closed or not follow)
            dropped = breaks != self.cluster.faults.drops["log"]
            if dropped and not self.cluster.faults.clean:
                raise Broken
            if over or dropped:
                return
            self.connection.check()

    def _container(self, request: Request, pod: dict, name: str | None) -> str:
        spec = pod["spec"]
        names = [x["name"] for x in spec["containers"]] + [x["name"] for x in spec.get("initContainers", [])]
        if not name and len(spec["containers"]) > 1:
            text = f"a container name must be specified for pod {request.name}, choose one of: [{' '.join(names)}]"
            raise ApiError(400, text)
        if name and name not in names:
            raise ApiError(400, f"container {name} is not valid for pod {request.name}")
        return name or names[0]

    # Exec.

    def execute(self, request: Request, command: list[str]) -> None:
        pod = self.api.found(request)
        query = request.query
        name = self._container(request, pod, query.get("container"))
        runner = self.cluster.kubelet.runner_of(pod)
        process = runner.processes.get(name) if runner else None
        if not command:
            raise ApiError(400, "you must specify at least one command for the container")
        if process is None or process.ended.is_set() or process.error:
            raise ApiError(500, f'container not found ("{name}")')
        offered = [x.strip() for x in self.connection.header("Sec-WebSocket-Protocol").split(",")]
        protocol = next((x for x in PROTOCOLS if x in offered), None)
        if protocol is None:
            raise ApiError(400, f"unable to upgrade: no common protocol of {offered}")
        try:
            spec = runner.exec_spec(name, command)
        except NotYet as missing:  # what the container had when it was started is gone since
            raise ApiError(500, str(missing)) from missing
        socket = self.connection.upgrade(protocol)
        Exec(socket, protocol, spec, query, self.cluster.faults.drops).run()


class Exec:
    """A program in a container, whose channels share a WebSocket."""

    def __init__(self, socket: WebSocket, protocol: str, spec: dict, query: dict[str, str], drops):
        self.socket = socket
        self.half_close = protocol == PROTOCOLS[0]
        self.spec = spec
        self.query = query
        self.drops = drops
        self.breaks = drops["exec"]

    def run(self) -> None:
        pipes = {channel: os.pipe() for channel in (STDIN, STDOUT, STDERR)}
        merged = self.query.get("tty") == "true"
        ends = (pipes[STDIN][0], pipes[STDOUT][1], pipes[STDOUT if merged else STDERR][1])
        process = Process(self.spec, *ends, lambda: None)
        for end in (pipes[STDIN][0], pipes[STDOUT][1], pipes[STDERR][1]):
            os.close(end)
        writers = [threading.Thread(target=self._output, args=(pipes[x][0], x), daemon=True) for x in (STDOUT, STDERR)]
        threading.Thread(target=self._input, args=(pipes[STDIN][1], process), daemon=True).start()
        for writer in writers:
            writer.start()
        while not process.ended.wait(POLL):
            if self.breaks != self.drops["exec"]:
                process.kill()
                raise Broken
        for writer in writers:
            writer.join()
        with contextlib.suppress(Closed):
            self.socket.send(bytes([STATUS]) + json.dumps(_outcome(process)).encode())
            self.socket.close()

    def _output(self, source: int, channel: int) -> None:
        self._send(channel, b"")  # real servers say so which channels there are
        with os.fdopen(source, "rb") as reader:
            while block := reader.read1(1 << 15):
                self._send(channel, block)

    def _send(self, channel: int, data: bytes) -> None:
        with contextlib.suppress(Closed):
            self.socket.send(bytes([channel]) + data)

    def _input(self, target: int, process: Process) -> None:
        """Passes stdin on. A client that goes takes the program with it only by the end of its input."""
        with os.fdopen(target, "wb", buffering=0) as writer, contextlib.suppress(Closed, OSError, ValueError):
            while message := self.socket.receive():
                if message[0] == STDIN and len(message) > 1:
                    writer.write(message[1:])
                elif self.half_close and message[0] == CLOSE and message[1:] == bytes([STDIN]):
                    writer.close()
        process.ended.wait()


def _outcome(process: Process) -> dict:
    if process.error:
        text = f"error executing command in container: {process.error}: unknown"
        return {"metadata": {}, "status": "Failure", "reason": "InternalError", "message": text, "code": 500}
    if process.code == 0:
        return {"metadata": {}, "status": "Success"}
    text = f"command terminated with non-zero exit code: exit status {process.code}"
    details = {"causes": [{"reason": "ExitCode", "message": str(process.code)}]}
    return {"metadata": {}, "status": "Failure", "message": text, "reason": "NonZeroExitCode", "details": details}


def _stamp(seconds: float) -> bytes:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1e9):09d}Z ".encode()
