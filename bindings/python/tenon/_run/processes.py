"""The other processes of a training that dist_train has started: they run the program of this one again.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import pickle
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from tenon import error
from tenon._base import launcher
from tenon._run.team import secret_pipe

READY, GO, FAILED = "ready", "go", "failed"  # messages: of a process that comes to the call, its answer, and an error
PATIENCE = 2.0  # seconds, between the request to end and the end by force
LOST = 200  # the exit code of a process that has lost process 0
_LONGEST = 80  # bytes of a path in which sockets can be, whose paths have 107
_LOOK = 0.1  # seconds between two looks at what cannot be waited for


@dataclass
class Failure:
    """The error of a process. when: by the monotonic clock, which all processes of a machine share. blamed: the process
    of which it says that it has failed or is lost, which the launching process may notice later; None: it says so of none."""

    when: float
    failure: BaseException
    blamed: int | None = None

    @classmethod
    def now(cls, failure: BaseException) -> Failure:
        """The error of this process, which was just raised."""
        return cls(time.monotonic(), failure, _blamed(str(failure)) if isinstance(failure, error.Error) else None)


def _blamed(words: str) -> int | None:
    found = re.match(r"process (\d+)(: | is lost)", words)
    return None if found is None else int(found[1])


def first_of(failures: dict[int, Failure]) -> Failure | None:
    """Returns the error of the process that has failed first. failures: by process. One that fails is lost to others, which
    may say so before it has said why."""
    return min(failures.values(), key=lambda each: (each.blamed in failures, each.blamed is not None, each.when), default=None)


def to_message(failed: Failure) -> tuple[Any, ...]:
    """Returns what a process says of its error: also as text, since not every exception can be sent."""
    of = failed.failure
    kind = type(of)
    try:
        sent: bytes | None = pickle.dumps(of)
    except Exception:  # noqa: BLE001 (of an exception of any class)
        sent = None
    told = (of.code, str(of), of.component, of.subject) if isinstance(of, error.Error) else None
    lines = "".join(traceback.format_exception(of))
    return (FAILED, failed.when, told, sent, f"{kind.__module__}.{kind.__qualname__}: {of}", lines[-(1 << 14) :])


def from_message(rank: int, message: tuple[Any, ...]) -> Failure:
    """Returns the error of another process, which names it."""
    _, when, told, sent, text, lines = message
    failure: BaseException | None = None
    if told is not None:
        code, words, component, subject = told
        failure = error._make(code, f"process {rank}: {words}", component, subject)
    elif sent is not None:
        try:
            failure = pickle.loads(sent)  # of this program, as another process runs it
        except Exception:  # noqa: BLE001 (of an exception of any class)
            failure = None
    if not isinstance(failure, Exception):  # also for what would end this program, such as SystemExit
        failure = error.Error(f"process {rank}: {text}", f"process {rank}")
    if hasattr(failure, "__notes__"):  # which the lines have
        del failure.__notes__
    failure.add_note(f"in process {rank}:\n{lines.rstrip()}")
    return Failure(when, failure, None if told is None else _blamed(told[1]))


class Worker:
    """One other process."""

    def __init__(self, rank: int, command: list[str], variables: dict[str, str], secret: bytes) -> None:
        self.rank = rank
        self.place: str | None = None  # of the call in the program, once it has come there
        self.failed: Failure | None = None
        self.connection, theirs = Pipe()
        read = secret_pipe(secret)
        try:
            variables = {**os.environ, **variables, launcher.PREFIX + "RANK": str(rank),
                         launcher.PREFIX + "SECRET": f"fd:{read}", launcher.PARENT: f"fd:{theirs.fileno()}"}  # fmt: skip
            # A group of its own: Ctrl-C at a terminal is for this process, which ends the others.
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=subprocess.PIPE, pass_fds=(read, theirs.fileno()), env=variables,
                                            process_group=0)  # fmt: skip
        except BaseException:
            self.connection.close()
            raise
        finally:
            os.close(read)
            theirs.close()

    def look(self) -> None:
        """Takes what the process has said."""
        try:
            while self.connection.poll():
                message = self.connection.recv()
                if message[0] == READY:
                    self.place = message[1]
                elif message[0] == FAILED and self.failed is None:
                    self.failed = from_message(self.rank, message)
        except (EOFError, OSError, pickle.UnpicklingError):  # it has ended, perhaps amid a message
            pass

    def ending(self) -> str | None:
        """Returns how the process has ended: "was ended by signal 9 (Killed)"; None if it has not, or has ended well."""
        code = self.process.poll()
        if code is None or (code == 0 and self.place is not None):
            return None
        before = "" if self.place is not None else " before it came to dist_train"
        if code < 0:
            return f"was ended by signal {-code} ({signal.strsignal(-code)}){before}"
        return f"ended with code {code}{before}"

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to the process, and to those that it has started."""
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)


class Workers:
    """The processes 1 .. processes - 1 of a training on this machine, process 0 of which is this one."""

    def __init__(self, command: list[str], processes: int, comm: str) -> None:
        long = len(os.fsencode(tempfile.gettempdir())) > _LONGEST
        self.folder = tempfile.mkdtemp(prefix="tenon-", dir="/tmp" if long else None)
        self.secret = os.urandom(32)
        self.address = f"ipc://{self.folder}/team"
        self.all: list[Worker] = []
        self.lost: list[Worker] = []  # without which the training went on
        self._pump: threading.Thread | None = None
        variables = {launcher.PREFIX + name: value for name, value in (
            ("PROCESSES", str(processes)), ("LOCAL", str(processes)), ("COMM", comm), ("ADDRESS", self.address))}  # fmt: skip
        try:
            for rank in range(1, processes):
                self.all.append(Worker(rank, command, variables, self.secret))
            self._pump = threading.Thread(target=_pass_on, args=[self.all], daemon=True)
            self._pump.start()
        except BaseException:
            self.end()
            raise

    def gather(self, place: str) -> None:
        """Returns when all processes have come to the call at this place, and lets them go on. Raises the error of one
        that does not come."""
        while any(each.place is None for each in self.all):
            wait([each.connection for each in self.all if each.process.poll() is None], _LOOK)
            self._look()
            if (failed := self.first(None)) is not None:
                raise failed.failure
        for each in self.all:
            if each.place != place:
                raise error.MisuseError(
                    f"process {each.rank} came to dist_train at {each.place}, process 0 at {place}: all processes must run "
                    "the program alike up to its first dist_train, which ends the others",
                    "dist_train",
                    f"process {each.rank}",
                )
        for each in self.all:
            each.connection.send((GO,))

    def first(self, own: Failure | None) -> Failure | None:
        """Returns the error of the process that has failed first, as far as that is known; own: of this process."""
        present = [each for each in self.all if each not in self.lost]
        for each in present:
            ending = each.ending()
            if ending is not None:
                each.look()  # for what it has said last
            if ending is not None and each.failed is None:
                return Failure.now(error.FileError(f"process {each.rank} {ending}", "dist_train", f"process {each.rank}"))
        failures = {each.rank: each.failed for each in present if each.failed is not None}
        failures |= {} if own is None else {0: own}
        return first_of(failures)

    def cause(self, mine: Failure) -> BaseException:
        """Returns the error that has ended the training, of which that of this process may be a consequence: it loses one
        that ends."""
        until = time.monotonic() + (PATIENCE if isinstance(mine.failure, error.FileError) or mine.blamed is not None else 0)
        while True:
            self._look()
            failed = self.first(mine) or mine
            if (failed is not mine and failed.blamed is None) or time.monotonic() >= until:
                return failed.failure
            time.sleep(_LOOK / 10)

    def finish(self, spare: range) -> None:
        """Waits for the processes to end by themselves after a training. spare: the ranks of those without which it went
        on, of whose failures it warns."""
        for patience, awaited in ((5 * PATIENCE, [each for each in self.all if each.rank not in spare]), (PATIENCE, self.all)):
            until = time.monotonic() + patience
            while any(each.process.poll() is None for each in awaited) and time.monotonic() < until:
                time.sleep(_LOOK / 10)
        self._look()
        for each in [each for each in self.all if each.rank in spare]:
            how = "does not end" if each.process.poll() is None else each.ending()
            if how is not None or each.failed is not None:
                why = how if each.failed is None else f"has failed: {each.failed.failure}"
                warnings.warn(f"process {each.rank} {why}; the training went on without it", RuntimeWarning, stacklevel=2)
                self.lost.append(each)
        if (failed := self.first(None)) is not None:
            raise failed.failure

    def end(self) -> None:
        """Ends the processes that have not ended, and removes what was made for them."""
        try:
            for each in self.all:
                each.send(signal.SIGTERM)
            until = time.monotonic() + PATIENCE
            while any(each.process.poll() is None for each in self.all) and time.monotonic() < until:
                time.sleep(_LOOK / 10)
        finally:
            for each in self.all:
                each.send(signal.SIGKILL)
            for each in self.all:
                each.process.wait()
                each.connection.close()
            if self._pump is not None:
                self._pump.join(PATIENCE)
            for each in self.all:
                if each.process.stderr is not None and self._pump is not None and not self._pump.is_alive():
                    each.process.stderr.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _look(self) -> None:
        for each in self.all:
            each.look()


def _pass_on(workers: list[Worker]) -> None:
    """Writes what the processes write to standard error to that of this one, with "[process 2] " before each line."""
    with selectors.DefaultSelector() as selector:
        for each in workers:
            assert each.process.stderr is not None
            selector.register(each.process.stderr, selectors.EVENT_READ, _Lines(f"[process {each.rank}] "))
        while selector.get_map():
            for key, _ in selector.select():
                part = os.read(key.fd, 1 << 16)
                key.data.add(part)
                if not part:
                    selector.unregister(key.fileobj)


class _Lines:
    """Bytes of a process as lines."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._rest = b""

    def add(self, part: bytes) -> None:
        """Writes the whole lines so far; at the end, of no bytes, also what is left."""
        *lines, self._rest = (self._rest + part).split(b"\n")
        if not part and self._rest:
            lines, self._rest = [self._rest], b""
        text = "".join(f"{self._prefix}{line.decode(errors='replace')}\n" for line in lines)
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):  # it is closed
            pass


class Parent:
    """Process 0, as one of the processes that it has started sees it."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._connection = Connection(descriptor)

    def meet(self, place: str) -> None:
        """Says that this process has come to the call, and returns when all have. From then on this process ends when
        process 0 has ended."""
        try:
            self._connection.send((READY, place))
            self._connection.recv()
        except (EOFError, OSError):
            os._exit(LOST)
        threading.Thread(target=self._watch, daemon=True).start()

    def tell(self, failed: Failure) -> bool:
        """Sends the error of this process. Returns whether process 0 is there."""
        try:
            self._connection.send(to_message(failed))
        except OSError:
            return False
        return True

    def _watch(self) -> None:
        try:
            self._connection.recv()
        except (EOFError, OSError):
            os._exit(LOST)


@contextmanager
def interruptible(workers: Workers) -> Iterator[None]:
    """Ends the other processes some time after Ctrl-C, if this one still waits for them: inside of the library the main
    thread sees a signal at the next event alone, which never comes while another process is stuck."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    except ValueError:  # another thread than the main one, which gets no signals
        before = None
    over = threading.Event()
    thread = threading.Thread(target=_end_when_interrupted, args=[read, over, workers], daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        if before is not None:
            signal.set_wakeup_fd(before)
        os.close(write)
        thread.join()
        os.close(read)


def _end_when_interrupted(signals: int, over: threading.Event, workers: Workers) -> None:
    while part := os.read(signals, 64):
        if signal.SIGINT in part and not over.wait(2 * PATIENCE):
            for each in workers.all:
                each.send(signal.SIGKILL)
