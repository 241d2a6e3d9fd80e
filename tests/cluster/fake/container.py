"""Processes of containers, and what they print.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import BinaryIO

SANDBOX = pathlib.Path(__file__).with_name("sandbox.py")


class Log:
    """The lines that a container printed, with their times."""

    def __init__(self):
        self.lines: list[tuple[float, bytes]] = []
        self.closed = False
        self.changed = threading.Condition()

    def read(self, source: BinaryIO) -> None:
        """Reads until the end of what a process prints."""
        rest = b""
        with source:
            while block := source.read1(1 << 16):
                *whole, rest = (rest + block).split(b"\n")
                self._add([line + b"\n" for line in whole])
        self._add([rest] if rest else [])
        self.close()

    def _add(self, lines: list[bytes]) -> None:
        with self.changed:
            self.lines += [(time.time(), line) for line in lines]
            self.changed.notify_all()

    def close(self) -> None:
        with self.changed:
            self.closed = True
            self.changed.notify_all()


class Process:
    """A process in a sandbox. Reports its end by a call from another thread."""

    def __init__(self, spec: dict, stdin: int, stdout: int, stderr: int, on_end: Callable[[], None]):
        self.pid = 0
        self.error = ""
        self.code: int | None = None
        self.ended = threading.Event()
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-I", "-S", str(SANDBOX), str(theirs.fileno())]
        self._helper = subprocess.Popen(
            command, stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=[theirs.fileno()], start_new_session=True
        )
        self.output = self._helper.stdout
        theirs.close()
        self._line = ours
        with contextlib.suppress(BrokenPipeError):
            ours.sendall(json.dumps(spec).encode() + b"\n")
        self._reader = ours.makefile()
        answer = json.loads(self._reader.readline() or '{"error": "the sandbox could not be set up"}')
        self.error = answer.get("error", "")
        self.pid = answer.get("pid", 0)
        threading.Thread(target=self._wait, args=(on_end,), daemon=True).start()

    def _wait(self, on_end: Callable[[], None]) -> None:
        answer = json.loads(self._reader.readline() or '{"exit": 128}')
        self._helper.wait()
        self._reader.close()
        self._line.close()
        self.code = answer["exit"]
        self.ended.set()
        on_end()

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.pid and not self.ended.is_set():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def close(self) -> None:
        """Kills, without a program's own end to wait for."""
        self.kill()
        self.ended.wait(10)


def abilities(folder: pathlib.Path) -> dict:
    """What sandboxes of this machine can have: tried with the weakest demand last."""
    user = os.geteuid() != 0
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for pids in (True, False):
            spec = {**plain_spec(scratch), "user": user, "pids": pids}
            process = Process(spec, subprocess.DEVNULL, subprocess.DEVNULL, subprocess.DEVNULL, lambda: None)
            process.ended.wait()
            if not process.error:
                return {"user": user, "pids": pids}
    raise SystemExit(f"no namespaces for containers: {process.error}")


def plain_spec(folder: str) -> dict:
    """The least that the sandbox has to be told."""
    pathlib.Path(folder, "scratch").mkdir(exist_ok=True)
    return {
        "scratch": f"{folder}/scratch",
        "hosts": folder,
        "hostname": "probe",
        "argv": ["true"],
        "env": {"PATH": "/usr/bin:/bin"},
        "cwd": "/",
        "mounts": [],
        "readOnlyRoot": False,
        "uid": 0,
        "gid": 0,
        "groups": [],
        "memory": 0,
        "dropAll": False,
        "noNewPrivileges": False,
    }
