"""Training in several processes by one call. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

from tenon import error, trainer
from tenon._base import caller as _caller
from tenon._base import check as _check
from tenon._base import host as _host
from tenon._base import launcher as _launcher
from tenon._model.layer import LayerLike
from tenon._run import cluster as _cluster
from tenon._run import nodes as _nodes
from tenon._run import own_program
from tenon._run.follower import LateTeam, follow, team_options
from tenon._run.network import Network
from tenon._run.processes import Failure, LocalWorkers, Parent, Workers, interruptible
from tenon._run.team import Team
from tenon.parameters import ParameterSet

_MOST = 65536  # processes


def _lead(train: Callable[[Team], None], processes: int, servers: int, comm: str, place: str) -> None:
    """Trains as process 0, and starts the others."""
    command = own_program.command("dist_train")
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
            workers = LocalWorkers(command, processes, comm)
            stack.callback(workers.end)
            spare = range(1, processes - servers) if servers > 0 else range(0)
            stack.push(lambda kind, failure, _: _conclude(team, workers, spare, own or failure))
            stack.enter_context(interruptible(workers))
            workers.gather(place)
            return {"comm": comm, "rank": 0, "processes": processes, "servers": servers, "address": workers.address,
                    "secret": workers.secret}  # fmt: skip

        team = LateTeam(start)
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


def _launch(
    nodes: list[_nodes.Node], parameters: ParameterSet | None, processes: int | None, servers: int, comm: str, place: str
) -> None:
    """Has other machines train, and takes the parameters of process 0."""
    total = sum(node.processes for node in nodes)
    if parameters is None:
        raise error.InvalidError(
            "dist_train: parameters is missing, which takes what the nodes have trained", "dist_train", "parameters"
        )
    if (processes is not None and processes + servers != total) or servers >= total:
        raise error.InvalidError(
            f"dist_train: nodes has {total} processes, {servers} of them parameter servers; expected "
            + ("one at least that trains" if processes is None else f"{processes} that train"),
            "dist_train",
            "nodes",
        )
    with _nodes.started(nodes, servers, comm, place) as workers:
        _nodes.take_values(parameters, workers.result())
        workers.finish_all()


def _servers(number: Any, options: dict[str, Any], is_first: bool) -> int:
    """Returns how many parameter servers there are. is_first: of the call in the program that starts them."""
    servers = _check.whole(number, "num_parameter_servers", "dist_train", 0, _MOST)
    if servers == 0 or options.get("staleness"):
        return servers
    if is_first:
        _caller.warn(
            f"dist_train: num_parameter_servers is {servers}, and none is started: in the exact mode the processes that train "
            "have the parameters between them. With staleness= servers have them, in the bounded mode; rows of tables they "
            "own in `tenon train JOB --servers` and a program with tenon.Team(servers=)",
            RuntimeWarning,
        )
    return 0


def _require_processes(start: _launcher.Start, trainers: int | None, servers: int) -> None:
    """Raises InvalidError if a launcher has started others than the call says."""
    if trainers is not None and trainers + servers != start.processes:
        raise error.InvalidError(
            f"dist_train: processes is {trainers}" + (f" beside {servers} parameter servers" if servers else "") +
            f", but {start.by} has started {start.processes} processes",
            "dist_train",
            "processes",
        )


@_host.follows_parameters
def dist_train(
    topology: LayerLike | Iterable[LayerLike] | Network,
    parameters: ParameterSet | None = None,
    reader: Any = None,
    event_handler: Any = None,
    *,
    processes: int | None = None,
    comm: str = "",
    nodes: str | None = None,
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

    The arguments are those of tenon.train; a network of @tenon.network stands for its outputs, parameters and train_data. And
    processes: how many, of which each computes a part of the shards of each
    minibatch. Results depend on shards= alone, one for each process if it is left out. comm: the communicator, "zmq"
    unless a launcher says otherwise.

        tenon.dist_train(cost, parameters, reader, passes=3, processes=4, num_parameter_servers=2, staleness=4)

    num_parameter_servers: with staleness=, processes beside those, which have the parameters in the bounded mode: they
    apply the gradients of the others as these arrive, so that results depend on time. A process that is lost then, other
    than this one and those, is named by a RuntimeWarning in the end, and the others go on.

    This process becomes process 0, and starts the others, which run the program again: the same interpreter, arguments and
    working folder. Their call of dist_train takes part in the training and ends the process; what the program does before
    runs in all processes, and what it does afterwards in process 0 alone, as do event handlers. Standard output of the
    others is dropped; what they write to standard error is passed on with "[process 2] " before each line. An error of the
    process that fails first is raised here, and names it; the others are ended then, as after Ctrl-C. A program can
    call it once. UnsupportedError in an interactive session or a notebook.

        tenon.dist_train(cost, parameters, reader, nodes="node0,ann@node1:2", shards=8)

    nodes: other machines, which ssh reaches without a password, and their numbers of processes. This process is none of
    them: they run the program as above, process 0 too, on the first machine, where readers, event handlers, checkpoints
    and other files are; its parameters are handed to this process. What it prints goes to standard error. The interpreter
    and tenon are where they are here, or in PATH; a program that is not there is copied, with the modules that it has
    imported from its folder.

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
    if isinstance(topology, Network):
        network, topology = topology, topology.outputs
        parameters, reader = parameters or network.parameters, reader or network.data("train_data")
    asked = _cluster.request(k8s_user, k8s_token, k8s_job, image, k8s_options)
    trainers = None if processes is None else _check.whole(processes, "processes", "dist_train", 1, _MOST)
    _check.text(comm, "comm", "dist_train")
    start = _launcher.of_environment()
    servers = _servers(num_parameter_servers, options, start is None)
    count = None if trainers is None and servers == 0 else (trainers or 1) + servers
    place = f"{_caller.place()}, call {_host.host().joint_trainings + 1}"
    machines = None if nodes is None else _nodes.parse(nodes, "dist_train")
    if machines is not None and asked is not None:
        raise error.InvalidError("dist_train: nodes= and a cluster exclude each other", "dist_train", "nodes")

    if asked is not None and not _cluster.is_pod():
        own_program.command("dist_train")  # refuses what is no program
        _cluster.train(asked, parameters, trainers or 1, servers)
        return

    def train(team: Team | None) -> None:
        trainer.train(topology, parameters, reader, event_handler, team=team, **options)  # type: ignore[arg-type]

    def work(team: Team, parent: Parent | None) -> None:
        train(team)
        if start is not None and start.rank == 0 and parent is not None and parameters is not None:
            parent.give(_nodes.values_of(parameters, topology))

    if start is not None:
        _require_processes(start, trainers, servers)
        if start.rank != 0 or start.parent >= 0:
            follow(start, servers, comm, place, work)
        with LateTeam(lambda: team_options(start, servers, comm)) as team:
            train(team)
        if _cluster.is_pod():
            _cluster.finish(parameters, topology)
    elif machines is not None:
        _launch(machines, parameters, trainers, servers, comm or "zmq", place)
        _host.host().joint_trainings += 1
    elif count is None or count == 1:
        train(None)
    else:
        _lead(train, count, servers, comm or "zmq", place)
