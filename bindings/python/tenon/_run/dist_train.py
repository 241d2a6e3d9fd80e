"""Training in several processes by one call. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import multiprocessing
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any, NoReturn

from tenon import error, trainer
from tenon._base import caller as _caller
from tenon._base import check as _check
from tenon._base import host as _host
from tenon._base import launcher as _launcher
from tenon._model.layer import LayerLike
from tenon._run import cluster as _cluster
from tenon._run.processes import Failure, Parent, Workers, interruptible
from tenon._run.team import Team
from tenon.parameters import ParameterSet

_MOST = 65536  # processes
_INTERRUPTED = 130  # the exit code after Ctrl-C


class _LateTeam(Team):
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


def _lead(train: Callable[[Team], None], processes: int, servers: int, comm: str, place: str) -> None:
    """Trains as process 0, and starts the others."""
    command = _command()
    if "one_per_process" in _host.host().describe("comm", comm)["traits"]:
        starter = f"mpiexec.{comm}" if comm in ("mpich", "openmpi") else "mpiexec"
        raise error.UnsupportedError(
            f'dist_train: comm "{comm}" connects only the processes that its own launcher has started: '
            f"{starter} -n {processes} {shlex.join(command)}",
            "dist_train",
            "comm",
        )
    own: Failure | None = None
    with ExitStack() as stack:

        def start() -> dict[str, Any]:
            workers = Workers(command, processes, comm)
            stack.callback(workers.end)
            spare = range(1, processes - servers) if servers > 0 else range(0)
            stack.push(lambda kind, failure, _: _conclude(team, workers, spare, own or failure))
            stack.enter_context(interruptible(workers))
            workers.gather(place)
            return {"comm": comm, "rank": 0, "processes": processes, "servers": servers, "address": workers.address,
                    "secret": workers.secret}  # fmt: skip

        team = _LateTeam(start)
        stack.callback(team.leave)
        try:
            train(team)
        except Exception as failure:
            own = Failure.now(failure)  # before it leaves, which others notice
            raise
    _host.host().joint_trainings += 1


def _conclude(team: Team, workers: Workers, spare: range, failure: Failure | BaseException | None) -> None:
    """Waits for the other processes after a training. After one that has failed, raises the error of the process that has
    failed first."""
    if failure is None:
        team.leave()
        workers.finish(spare)
    elif isinstance(failure, (Failure, Exception)):
        mine = failure if isinstance(failure, Failure) else Failure.now(failure)
        cause = workers.cause(mine)
        if cause is not mine.failure:
            raise cause from None


def _follow(train: Callable[[Team], None], start: _launcher.Start, servers: int, comm: str, place: str) -> NoReturn:
    """Trains as another process than 0, and ends it."""
    parent = None if start.parent < 0 else Parent(start.parent)
    code = 1
    try:

        def meet() -> dict[str, Any]:
            if parent is not None:
                parent.meet(place)
            return _options(start, servers, comm)

        team = _LateTeam(meet)
        train(team)
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


def _options(start: _launcher.Start, servers: int, comm: str) -> dict[str, Any]:
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


def _command() -> list[str]:
    """Returns the command that runs this program again."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    ipython = sys.modules.get("IPython")
    reason = ""
    if hasattr(sys, "ps1") or (ipython is not None and ipython.get_ipython() is not None):
        reason = "an interactive session or a notebook is not a program"
    elif multiprocessing.parent_process() is not None:
        reason = "this process was started by multiprocessing, and is not the program"
    elif not sys.executable or (file is None and sys.argv[:1] != ["-c"]):
        reason = "the program is not in a file"
    if reason:
        raise error.UnsupportedError(
            f"dist_train runs the program again in other processes, but {reason}: write it into a file, in a notebook by "
            "%%writefile train.py, and run that by python train.py or python -m train",
            "dist_train",
            "processes",
        )
    arguments = sys.orig_argv[1:]
    if file is not None and getattr(main, "__spec__", None) is None and sys.argv[0] in arguments:
        arguments[arguments.index(sys.argv[0])] = file  # absolute: the program may have changed its working folder
    return [sys.executable, *arguments]


def _refuse(nodes: Any) -> None:
    """Raises UnsupportedError for what is not offered."""
    if nodes is not None:
        raise error.UnsupportedError(
            "dist_train: nodes is not offered: a program in Python is not started on other machines. `tenon train JOB "
            '--nodes "node0,node1"` trains a job there, `mpirun -host node0,node1 python train.py` starts a program, whose '
            "dist_train then trains in these processes, and k8s_job= does so in a cluster",
            "dist_train",
            "nodes",
        )


def _require_bounded(servers: int, options: dict[str, Any]) -> None:
    """Raises InvalidError for servers in the exact mode."""
    if servers > 0 and not options.get("staleness"):
        raise error.InvalidError(
            f"dist_train: num_parameter_servers is {servers}, which have the parameters in the bounded mode: state staleness=. "
            "In the exact mode servers own the rows of tables, in `tenon train JOB --servers 2` and a program with "
            "tenon.Team(servers=2)",
            "dist_train",
            "num_parameter_servers",
        )


@_host.follows_parameters
def dist_train(
    topology: LayerLike | Iterable[LayerLike],
    parameters: ParameterSet | None = None,
    reader: Any = None,
    event_handler: Any = None,
    *,
    processes: int | None = None,
    comm: str = "",
    nodes: Any = None,
    k8s_user: Any = None,
    k8s_token: Any = None,
    k8s_job: Any = None,
    image: Any = None,
    k8s_options: Any = (),
    num_parameter_servers: int = 0,
    **options: Any,
) -> None:
    """Trains in several processes, with the results of one.

        tenon.dist_train(cost, parameters, reader, passes=3, processes=4, shards=8)

    The arguments are those of tenon.train, and processes: how many, of which each computes a part of the shards of each
    minibatch. Results depend on shards= alone, one for each process if it is left out. comm: the communicator, "zmq"
    unless a launcher says otherwise.

        tenon.dist_train(cost, parameters, reader, passes=3, processes=4, num_parameter_servers=2, staleness=4)

    num_parameter_servers: processes beside those, which have the parameters in the bounded mode, with staleness=: they
    apply the gradients of the others as these arrive, so that results depend on time. A process that is lost then, other
    than this one and those, is named by a RuntimeWarning in the end, and the others go on.

    This process becomes process 0, and starts the others, which run the program again: the same interpreter, arguments and
    working folder. Their call of dist_train takes part in the training and ends the process; what the program does before
    runs in all processes, and what it does afterwards in process 0 alone, as do event handlers. Standard output of the
    others is dropped; what they write to standard error is passed on with "[process 2] " before each line. An error of the
    process that fails first is raised here, and names it; the others are ended then, as after Ctrl-C. A program can
    call it once. UnsupportedError in an interactive session or a notebook.

        tenon.dist_train(cost, parameters, reader, processes=4, k8s_user="yi", k8s_token="kube.pem", k8s_job="hello")

    With k8s_job or image the processes are pods of a cluster of Kubernetes, by the current context of the kubeconfig
    (docs/kubernetes.md), and this one is none of them: pods run the program, with its arguments and the modules that it
    has imported from its folder, up to this call, which trains, hands the parameters of process 0 to this process, and ends
    the pod. So readers and event handlers are those of pods, which see no file of this machine. image: that of the pods,
    which has python3 and tenon; USER/JOB if it is left out. k8s_token: a file with a certificate and its key, or a token,
    instead of the kubeconfig's. k8s_options: further options of `tenon train --cluster`, such as "--claim=work". What pods
    print goes to standard error. FileError with the exit code of a training that has failed; after Ctrl-C all is removed.

    A process that a launcher has started as one of several joins these instead: mpirun -n 4 python train.py. processes may
    then be left out. Without a launcher and processes the process trains alone.
    """
    _refuse(nodes)
    asked = _cluster.request(k8s_user, k8s_token, k8s_job, image, k8s_options)
    servers = _check.whole(num_parameter_servers, "num_parameter_servers", "dist_train", 0, _MOST)
    trainers = None if processes is None else _check.whole(processes, "processes", "dist_train", 1, _MOST)
    _require_bounded(servers, options)
    count = None if trainers is None and servers == 0 else (trainers or 1) + servers
    _check.text(comm, "comm", "dist_train")
    start = _launcher.of_environment()
    place = f"{_caller.place()}, call {_host.host().joint_trainings + 1}"

    if asked is not None and not _cluster.is_pod():
        _command()  # refuses what is no program
        _cluster.train(asked, parameters, trainers or 1, servers)
        return

    def train(team: Team | None) -> None:
        trainer.train(topology, parameters, reader, event_handler, team=team, **options)  # type: ignore[arg-type]

    if start is not None:
        if trainers is not None and count != start.processes:
            raise error.InvalidError(
                f"dist_train: processes is {trainers}" + (f" beside {servers} parameter servers" if servers else "") +
                f", but {start.by} has started {start.processes} processes",
                "dist_train",
                "processes",
            )
        if start.rank != 0:
            _follow(train, start, servers, comm, place)
        with _LateTeam(lambda: _options(start, servers, comm)) as team:
            train(team)
        if _cluster.is_pod():
            _cluster.finish(parameters, topology)
    elif count is None or count == 1:
        train(None)
    else:
        _lead(train, count, servers, comm or "zmq", place)
