"""One process of a training on the machine that ssh has reached: runs the program again, and ends it with the connection.

Standard input and output are the connection with the program that has started the training. Its first message says what to
run; what follows is between it and the process.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from tenon._run.processes import LOST, PATIENCE, begin

_SIGNALLED = 128  # and the number of a signal: the exit code


def _program(start: dict[str, Any], folder: str) -> tuple[list[str], str]:
    """Returns the command and its working folder: the program where it is, if it is the same there, else a copy."""
    files = [(Path(each["path"]), each["text"]) for each in start["files"]]
    if all(path.is_file() and path.read_text(errors="replace") == text for path, text in files):
        return start["command"], start["folder"] if os.path.isdir(start["folder"]) else os.getcwd()
    copies = Path(folder)
    for path, text in files:
        copy = copies / path.relative_to(files[0][0].parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text)
    return [str(copies / files[0][0].name), *start["arguments"]], folder


def _address(host: str) -> str:
    """Returns by what the others reach this machine: its name, as the program has it, or if that means nothing here, such as
    one of ssh's settings, the address by which ssh has come."""
    with suppress(OSError):
        socket.getaddrinfo(host, None)
        return host
    came = os.environ.get("SSH_CONNECTION", "").split()  # client, port, server, port
    return came[2] if len(came) == 4 else socket.gethostname()


def _free_port(host: str) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _relay(launcher: tuple[int, int], process: subprocess.Popen[bytes], ours: Connection) -> bool:
    """Passes bytes between the connection and the process. Returns when the process has ended: True, or the connection has."""
    with selectors.DefaultSelector() as selector:
        selector.register(launcher[0], selectors.EVENT_READ, ours.fileno())
        selector.register(ours.fileno(), selectors.EVENT_READ, launcher[1])
        while True:
            for key, _ in selector.select(PATIENCE):
                part = b""
                with suppress(ConnectionError):
                    part = os.read(key.fd, 1 << 20)
                if not part:
                    return bool(key.fd != launcher[0])
                try:
                    _write(key.data, part)
                except OSError:
                    return bool(key.data != launcher[1])
            if process.poll() is not None and not selector.select(0):
                return True


def _write(to: int, part: bytes) -> None:
    while part:
        part = part[os.write(to, part) :]


def _end(process: subprocess.Popen[bytes], is_asked: bool) -> int:
    """Ends the process and what it has started. Returns its exit code. is_asked: it ends by itself."""
    if not is_asked:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
    until = time.monotonic() + PATIENCE
    while process.poll() is None and (is_asked or time.monotonic() < until):
        time.sleep(PATIENCE / 100)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    return code if code >= 0 else _SIGNALLED - code


def _leave(number: int, _: object) -> None:
    signal.signal(number, signal.SIG_IGN)
    sys.exit(_SIGNALLED + number)


def main() -> int:
    """Returns the exit code."""
    launcher = os.dup(0), os.dup(1)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # of what the program prints
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, _leave)
    start = json.loads(Connection(os.dup(launcher[0]), writable=False).recv_bytes())
    place, secret = start["place"], bytes.fromhex(start["secret"])
    host = _address(start["host"])
    where = f"[{host}]" if ":" in host else host
    address = f"tcp://{where}:{_free_port(host)}" if place["RANK"] == "0" else ""  # the others are told that of process 0
    place |= {"LISTEN": host, "ADDRESS": address, "EPOCH": "0"}
    with tempfile.TemporaryDirectory(prefix="tenon-") as folder:
        command, there = _program(start, folder)
        ours, theirs = Pipe()
        output = None if place["RANK"] == "0" else subprocess.DEVNULL
        process = begin([sys.executable, *command], place, secret, theirs, cwd=there, stdout=output)
        theirs.close()
        has_ended = False
        try:
            has_ended = _relay(launcher, process, ours)
        finally:
            code = _end(process, has_ended)
        return code if has_ended else LOST


if __name__ == "__main__":
    sys.exit(main())
