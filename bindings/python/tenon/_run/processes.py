"""The other processes of a training that dist_train has started: they run the program of this one again.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import pickle
import queue
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
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from tenon import _core, error
from tenon._base import launcher
from tenon._run.team import secret_pipe

# Messages: of a process that comes to the call, its answer, an error, and what process 0 elsewhere has to give.
READY, GO, FAILED, RESULT = "ready", "go", "failed", "result"
PATIENCE = 2.0  # seconds, between the request to end and the end by force
LOST = 200  # the exit code of a process that has lost the one that started it
_OF_SSH = 255  # the exit code of an ssh that has no connection
_SIGNALLED = 128  # and the number of a signal: the exit code on another machine
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
    """One other process. begin: starts it, with the other end of a connection with it. node: the machine on which it is, if
    that is another one."""

    def __init__(self, rank: int, begin: Callable[[Connection], subprocess.Popen[bytes]], node: str = "") -> None:
        self.rank, self.node = rank, node
        self.place: str | None = None  # of the call in the program, once it has come there
        self.address = ""  # where it would listen for the others
        self.version = ""  # of its package
        self.failed: Failure | None = None
        self.results: list[Any] = []  # that it has sent, and nobody has taken
        self.lines = _Lines(f"[process {rank}] ")  # of standard error
        self.connection, theirs = Pipe()
        try:
            self.process = begin(theirs)
        except BaseException:
            self.connection.close()
            raise
        finally:
            theirs.close()

    def look(self) -> None:
        """Takes what the process has said."""
        try:
            while self.connection.poll():
                message = self.connection.recv()
                if message[0] == READY:
                    _, self.place, self.address, self.version = message
                elif message[0] == RESULT:
                    self.results.append(message[1])
                elif message[0] == FAILED and self.failed is None:
                    self.failed = from_message(self.rank, message)
        except (EOFError, OSError, pickle.UnpicklingError):  # it has ended, perhaps amid a message
            pass

    def ending(self) -> str | None:
        """Returns how the process has ended: "was ended by signal 9 (Killed)"; None if it has not, or has ended well."""
        code = self.process.poll()
        if code is None or (code == 0 and self.place is not None):
            return None
        before = "" if self.place is not None else " before it came to the call"
        if self.node and code == _OF_SSH:
            self.lines.over.wait(PATIENCE)
            return f"cannot be reached on {self.node}, or was lost: ssh has ended with exit code {code}: {self.lines.last}"
        if self.node and code > _SIGNALLED:
            code = _SIGNALLED - code
        where = f" on {self.node}" if self.node else ""
        if code < 0:
            return f"{where} was ended by signal {-code} ({signal.strsignal(-code)}){before}".lstrip()
        return f"{where} ended with code {code}{before}".lstrip()

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to the process, and to those that it has started."""
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)


class Workers:
    """The other processes of a training, process 0 of which is this one. begin: makes each one, when it is called."""

    caller = "process 0"

    def __init__(self, begin: Iterable[Callable[[], Worker]]) -> None:
        self.all: list[Worker] = []
        self.lost: list[Worker] = []  # without which the training went on
        self._pump: threading.Thread | None = None
        try:
            for each in begin:
                self.all.append(each())
            self._pump = threading.Thread(target=_pass_on, args=[self.all], daemon=True)
            self._pump.start()
        except BaseException:
            self.end()
            raise

    def gather(self, place: str) -> None:
        """Returns when all processes have come to the call at this place, and lets them go on. Raises the error of one
        that does not come."""
        own = os.path.basename(place)  # on another machine the program may be in another folder
        while any(each.place is None for each in self.all):
            self.wait_for_any()
            if (failed := self.first(None)) is not None:
                raise failed.failure
        for each in self.all:
            if os.path.basename(each.place or "") != own:
                raise error.MisuseError(
                    f"process {each.rank} came to dist_train at {each.place}, {self.caller} at {place}: all processes must run "
                    "the program alike up to its first dist_train, which ends the others",
                    "dist_train",
                    f"process {each.rank}",
                )
            if each.version != _core.version():
                raise error.InvalidError(
                    f"process {each.rank} on {each.node} has tenon {each.version}, {self.caller} {_core.version()}; they must "
                    "be the same",
                    "dist_train",
                    f"process {each.rank}",
                )
        for each in self.all:
            each.connection.send((GO, self.all[0].address))

    def wait_for_any(self) -> None:
        """Waits a moment for messages, and takes them."""
        wait([each.connection for each in self.all if each.process.poll() is None], _LOOK)
        self._look()

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
        self.lose(spare, True)
        if (failed := self.first(None)) is not None:
            raise failed.failure

    def lose(self, spare: range, must_have_ended: bool = False) -> None:
        """Goes on without those of the processes that have failed, or have not ended although they must."""
        for each in [each for each in self.all if each.rank in spare and each not in self.lost]:
            how = "does not end" if must_have_ended and each.process.poll() is None else each.ending()
            if how is not None or each.failed is not None:
                why = how if each.failed is None else f"has failed: {each.failed.failure}"
                warnings.warn(f"process {each.rank} {why}; the training went on without it", RuntimeWarning, stacklevel=2)
                self.lost.append(each)

    def end(self) -> None:
        """Ends the processes that have not ended."""
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

    def _look(self) -> None:
        for each in self.all:
            each.look()


class LocalWorkers(Workers):
    """The processes 1 .. processes - 1, on this machine. command: runs the program again."""

    def __init__(self, command: list[str], processes: int, comm: str) -> None:
        long = len(os.fsencode(tempfile.gettempdir())) > _LONGEST
        self.folder = tempfile.mkdtemp(prefix="tenon-", dir="/tmp" if long else None)
        self.secret = os.urandom(32)
        self.address = f"ipc://{self.folder}/team"
        variables = {"PROCESSES": str(processes), "LOCAL": str(processes), "COMM": comm, "ADDRESS": self.address}

        def worker(rank: int) -> Worker:
            started = {**variables, "RANK": str(rank)}
            return Worker(rank, lambda theirs: begin(command, started, self.secret, theirs, stderr=subprocess.PIPE))

        super().__init__(partial(worker, rank) for rank in range(1, processes))

    def end(self) -> None:
        """Also removes what was made for them."""
        try:
            super().end()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def begin(
    command: list[str], place: dict[str, str], secret: bytes, parent: Connection, **options: Any
) -> subprocess.Popen[bytes]:
    """Starts a process of a team on this machine. place: in the team, by the names of the variables that say so. parent: its
    connection with the one that has started it."""
    read = secret_pipe(secret)
    try:
        variables = {**os.environ, **{launcher.PREFIX + name: value for name, value in place.items()},
                     launcher.PREFIX + "SECRET": f"fd:{read}", launcher.PARENT: f"fd:{parent.fileno()}"}  # fmt: skip
        # A group of its own: Ctrl-C at a terminal is for this process, which ends the others.
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(read, parent.fileno()), env=variables,
                                process_group=0, **{"stdout": subprocess.DEVNULL, **options})  # fmt: skip
    finally:
        os.close(read)


def _pass_on(workers: list[Worker]) -> None:
    """Writes what the processes write to standard error to that of this one, with "[process 2] " before each line."""
    with selectors.DefaultSelector() as selector:
        for each in workers:
            assert each.process.stderr is not None
            selector.register(each.process.stderr, selectors.EVENT_READ, each.lines)
        while selector.get_map():
            for key, _ in selector.select():
                part = os.read(key.fd, 1 << 16)
                key.data.add(part)
                if not part:
                    selector.unregister(key.fileobj)


class _Lines:
    """Bytes of a process as lines."""

    def __init__(self, prefix: str) -> None:
        self.last = ""
        self.over = threading.Event()  # set at the end
        self._prefix = prefix
        self._rest = b""

    def add(self, part: bytes) -> None:
        """Writes the whole lines so far; at the end, of no bytes, also what is left."""
        *lines, self._rest = (self._rest + part).split(b"\n")
        if not part and self._rest:
            lines, self._rest = [self._rest], b""
        self.last = lines[-1].decode(errors="replace").strip() if lines else self.last
        if not part:
            self.over.set()
        text = "".join(f"{self._prefix}{line.decode(errors='replace')}\n" for line in lines)
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):  # it is closed
            pass


class Parent:
    """The process that has started this one, as this one sees it."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._connection = Connection(descriptor)
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def meet(self, place: str, address: str) -> str:
        """Says that this process has come to the call, and where it would listen, and returns when all have come, with the
        address of process 0. From then on this process ends when the one that has started it has ended."""
        try:
            self._connection.send((READY, place, address, _core.version()))
            first: str = self._connection.recv()[1]
        except (EOFError, OSError):
            os._exit(LOST)
        threading.Thread(target=self._watch, daemon=True).start()
        return first

    def receive(self) -> Any:
        """Returns the next message behind the answer of meet."""
        return self._messages.get()

    def give(self, result: Any) -> None:
        """Sends what this process has to give."""
        self._connection.send((RESULT, result))

    def tell(self, failed: Failure) -> bool:
        """Sends the error of this process. Returns whether process 0 is there."""
        try:
            self._connection.send(to_message(failed))
        except OSError:
            return False
        return True

    def _watch(self) -> None:
        try:
            while True:
                self._messages.put(self._connection.recv())
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
