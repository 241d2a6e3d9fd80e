"""Shards, teams and dist_train: several processes have the results of one. SPDX-License-Identifier: Apache-2.0"""

import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tenon
from conftest import needs_communicator
from models import classifier, labels, pixels, samples
from tenon._base import host as hosts
from tenon._base import launcher
from tenon._run import processes

ARRAYS = {"pixel": pixels, "label": labels}
ENGINE = "zmq"


def needs_engine():
    needs_communicator(ENGINE)


def trained(**options):
    model = classifier()
    parameters = tenon.parameters.create([model.cost, model.accuracy])
    tenon.train([model.cost, model.accuracy], parameters, ARRAYS, updater="adam", batch_size=50, **options)
    return model, parameters


def bits(parameters):
    return {name: parameters[name].tobytes() for name in parameters}


# ---- shards


def test_results_depend_on_shards_and_not_on_devices():
    model, one = trained(shards=6)
    assert bits(one) == bits(trained(shards=6, device=["cpu", "cpu", "cpu"])[1])
    assert bits(one) != bits(trained()[1])
    measured = [tenon.test(model.cost, one, ARRAYS, shards=4, device=device).cost for device in ("cpu", ("cpu", "cpu"))]
    assert measured[0] == measured[1]
    machines = [tenon.gradient_machine.new(model.cost, one, shards=3, device=device) for device in ("", ("cpu", "cpu"))]
    for machine in machines:
        machine.feed({"pixel": pixels[:7], "label": labels[:7]})
    assert machines[0].cost == machines[1].cost
    np.testing.assert_array_equal(*[machine.gradient("hidden.weight") for machine in machines])
    assert tenon.plan(model.cost, 12, shards=4).max_samples == 12


@pytest.mark.parametrize(
    ("shards", "words"),
    [(-1, "train: shards is -1; expected a whole number from 0"), ("two", "shards is 'two'"), (1, "fewer than the devices")],
)
def test_wrong_shards(shards, words):
    with pytest.raises(tenon.error.InvalidError, match=words):
        trained(shards=shards, device=["cpu", "cpu"])


# ---- teams


def together(work, folder, processes=2):
    """Calls work(rank, team) in threads, each a process of a team as far as the library can tell."""
    failures, results = [], {}

    def process(rank):
        try:
            host = tenon.Host(threads=1)
            hosts._present.set(host)  # of this thread
            address = f"ipc://{folder}/team"
            with tenon.Team(ENGINE, address=address, rank=rank, processes=processes, secret=bytes(32), host=host) as team:
                results[rank] = work(rank, team)
        except BaseException as failure:  # noqa: BLE001 (is raised in the main thread)
            failures.append(failure)

    threads = [threading.Thread(target=process, args=[rank]) for rank in range(processes)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for each in failures:
        raise each
    return [results[rank] for rank in range(processes)]


def test_a_team_trains(tmp_path):
    needs_engine()
    model, alone = trained(shards=3)
    tenon.parameters.create([model.cost, model.accuracy]).save(tmp_path / "model.safetensors")

    def work(rank, team):
        assert (team.rank, team.processes, team.comm, team.refused) == (rank, 2, ENGINE, 0)
        assert repr(team) == f"<tenon.Team: process {rank} of 2, joined by {ENGINE}>"
        seen = []
        mine = tenon.load(tmp_path / "model.safetensors")
        tenon.train(mine.outputs, mine, ARRAYS, seen.append, updater="adam", batch_size=50, shards=3, team=team,
                    verify_every=2)  # fmt: skip
        assert bool(seen) == (rank == 0)
        return bits(mine)

    with pytest.raises(tenon.error.InvalidError, match="joined on another host than that of the parameters"):
        together(lambda rank, team: tenon.train(model.cost, alone, ARRAYS, team=team), tmp_path)

    assert together(work, tmp_path) == [bits(alone)] * 2


def test_any_thread_sees_the_step_and_for_whom_a_process_waits(tmp_path):
    needs_engine()
    model = classifier()
    tenon.parameters.create([model.cost, model.accuracy]).save(tmp_path / "model.safetensors")
    waits, seen = threading.Event(), []

    def work(rank, team):
        assert (team.step, team.waits_for) == (-1, -1)

        def reader():
            for number, sample in enumerate(samples()):
                if rank == 1 and number == 100:
                    waits.wait(60)
                yield sample

        def watch():
            until = time.monotonic() + 60
            while (team.step, team.waits_for) != (2, 1) and time.monotonic() < until:
                time.sleep(0.01)
            seen.append((team.step, team.waits_for))
            waits.set()

        observer = threading.Thread(target=watch)
        if rank == 0:
            observer.start()
        mine = tenon.load(tmp_path / "model.safetensors")
        tenon.train(mine.outputs, mine, reader, updater="adam", batch_size=50, shards=2, team=team)
        if rank == 0:
            observer.join()
        assert (team.step, team.waits_for) == (-1, -1)

    together(work, tmp_path)
    assert seen == [(2, 1)]


def test_a_team_of_one_and_one_that_was_left(tmp_path):
    needs_engine()
    (tmp_path / "secret").write_bytes(bytes(20))
    (tmp_path / "secret").chmod(0o600)
    team = tenon.Team(ENGINE, address=f"ipc://{tmp_path}/team", rank=0, processes=1, secret=tmp_path / "secret")
    assert bits(trained(team=team, shards=2)[1]) == bits(trained(shards=2)[1])
    team.leave()
    team.leave()
    assert (team.rank, team.processes, team.comm, team.refused, team.step) == (0, 1, ENGINE, 0, -1)
    with pytest.raises(tenon.error.MisuseError, match="the team was left"):
        trained(team=team)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"comm": "zqm"}, tenon.error.NotFoundError, "zqm"),
        ({"comm": 3}, tenon.error.InvalidError, "team: comm is 3; expected a text"),
        ({"rank": -2}, tenon.error.InvalidError, "rank is -2; expected a whole number from -1"),
        ({"rank": 2, "processes": 2}, tenon.error.InvalidError, "rank is 2; expected less than the 2 processes"),
        ({"processes": 0}, tenon.error.InvalidError, "processes is 0; expected 1"),
        ({"deadline_seconds": -1}, tenon.error.InvalidError, "deadline_seconds is -1; expected a number from 0"),
        ({"silence_seconds": 1e9}, tenon.error.InvalidError, "silence_seconds is 1e"),
        ({"attributes": 3}, tenon.error.InvalidError, "attributes is 3; expected a dict"),
        ({"secret": 3}, tenon.error.InvalidError, "secret is 3; expected a path"),
        ({"secret": bytes(5000)}, tenon.error.InvalidError, "at most 4096 bytes"),
        ({"host": 3}, tenon.error.InvalidError, "host is 3; expected a tenon.Host"),
    ],
)
def test_wrong_teams(options, kind, words):
    with pytest.raises(kind, match=words):
        tenon.Team(**options)


def test_secrets_and_wrong_teams_of_trainings(tmp_path):
    with pytest.raises(tenon.error.InvalidError, match="team is 3; expected a tenon.Team"):
        trained(team=3)
    needs_engine()
    (tmp_path / "open").write_bytes(bytes(20))
    (tmp_path / "open").chmod(0o644)
    for secret, kind, words in (
        (tmp_path / "none", tenon.error.FileError, "none"),
        (tmp_path / "open", tenon.error.RefusedError, "chmod 600"),
        (bytes(3), tenon.error.BadDataError, "has 3 bytes; expected 16"),
    ):
        with pytest.raises(kind, match=words):
            tenon.Team(ENGINE, address=f"ipc://{tmp_path}/team", rank=0, processes=1, secret=secret)


# ---- what launchers say


def test_the_first_launcher_counts(environment):
    assert launcher.of_environment() is None and launcher.threads(8) == 8
    environment(PMI_RANK="1", PMI_SIZE="3", MPI_LOCALNRANKS="2")
    start = launcher.of_environment()
    assert (start.by, start.rank, start.processes, start.local, start.comm) == ("MPICH", 1, 3, 2, "mpich")
    cores = os.cpu_count()
    assert launcher.threads(cores) == max(cores // 2, 1) and launcher.threads(0) == 0
    environment(OMPI_COMM_WORLD_RANK="2", OMPI_COMM_WORLD_SIZE="4")
    assert launcher.of_environment().comm == "openmpi"
    environment(TENON_TEAM_RANK="4", TENON_TEAM_PROCESSES="5", TENON_TEAM_LOCAL="5", TENON_TEAM_COMM="x",
                TENON_TEAM_ADDRESS="a", TENON_TEAM_LISTEN="l", TENON_TEAM_SECRET="fd:3", TENON_TEAM_EPOCH="7")  # fmt: skip
    start = launcher.of_environment()
    assert (start.by, start.rank, start.processes, start.comm, start.address, start.listen, start.secret, start.epoch,
            start.parent) == ("tenon", 4, 5, "x", "a", "l", "fd:3", 7, -1)  # fmt: skip
    assert launcher.threads(11) == 2


def test_worlds_of_one_are_no_team(environment):
    environment(PMI_RANK="0", PMI_SIZE="1")
    assert launcher.of_environment() is None


# ---- dist_train, refused


def refused(kind, words, **options):
    model = classifier()
    parameters = tenon.parameters.create(model.cost)
    with pytest.raises(kind, match=words):
        tenon.dist_train(model.cost, parameters, ARRAYS, **options)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"processes": 0}, tenon.error.InvalidError, "processes is 0; expected a whole number from 1 to 65536"),
        ({"processes": 1 << 40}, tenon.error.InvalidError, "expected a whole number from 1 to 65536"),
        ({"processes": 2.5}, tenon.error.InvalidError, "processes is 2.5"),
        ({"processes": 2, "comm": "zqm"}, tenon.error.NotFoundError, "zqm"),
        ({"comm": 3}, tenon.error.InvalidError, "comm is 3; expected a text"),
        ({"nodes": "node0,node1:0"}, tenon.error.InvalidError, 'nodes is "node0,node1:0"; expected names of machines'),
        ({"nodes": "a:3", "processes": 2}, tenon.error.InvalidError, "nodes has 3 processes, .* expected 2 that train"),
        ({"nodes": "a", "num_parameter_servers": 1, "staleness": 2}, tenon.error.InvalidError, "expected one at least that"),
        ({"nodes": "a", "image": "b"}, tenon.error.InvalidError, "nodes= and a cluster exclude each other"),
        ({"k8s_job": "hello"}, tenon.error.InvalidError, "which image pods have is missing: state image="),
        ({"num_parameter_servers": -1}, tenon.error.InvalidError, "num_parameter_servers is -1"),
        ({"passes": -1}, tenon.error.InvalidError, "passes is -1"),
        ({"sharts": 2}, TypeError, "sharts"),
    ],
)
def test_wrong_calls(environment, options, kind, words):
    refused(kind, words, **options)


def test_a_launcher_with_other_processes(environment):
    environment(TENON_TEAM_RANK="0", TENON_TEAM_PROCESSES="3")
    refused(tenon.error.InvalidError, "processes is 2, but tenon has started 3 processes", processes=2)
    environment(TENON_TEAM_PROCESSES="three")
    refused(tenon.error.InvalidError, 'TENON_TEAM_PROCESSES is "three"; expected a number')


def test_an_mpi_has_its_own_launcher(environment):
    needs_communicator("mpich")
    refused(tenon.error.UnsupportedError, 'comm "mpich" .*: mpiexec.mpich -n 3 .*python', processes=3, comm="mpich")


def test_servers_of_the_exact_mode_are_not_started(environment):
    model = classifier()
    parameters = tenon.parameters.create([model.cost, model.accuracy])
    with pytest.warns(RuntimeWarning, match="num_parameter_servers is 15, and none is started: in the exact mode") as told:
        tenon.dist_train([model.cost, model.accuracy], parameters, ARRAYS, updater="adam", batch_size=50, shards=2,
                         num_parameter_servers=15)  # fmt: skip
    assert [each.filename for each in told] == [__file__]
    assert bits(parameters) == bits(trained(shards=2)[1])


def test_one_process_trains_alone(environment):
    expected = bits(trained(shards=2)[1])
    for options in ({}, {"processes": 1}):
        model = classifier()
        parameters = tenon.parameters.create([model.cost, model.accuracy])
        tenon.dist_train([model.cost, model.accuracy], parameters, ARRAYS, updater="adam", batch_size=50, shards=2, **options)
        assert bits(parameters) == expected


def test_what_is_no_program(environment, cell, monkeypatch):
    needs_engine()
    refused(tenon.error.UnsupportedError, "a notebook is not a program: .* %%writefile train.py", processes=2)


def test_sessions_without_a_file(environment, monkeypatch):
    needs_engine()
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    refused(tenon.error.UnsupportedError, "an interactive session .* is not a program", processes=2)
    monkeypatch.delattr(sys, "ps1")
    monkeypatch.setattr(sys.modules["__main__"], "__file__", None, raising=False)
    monkeypatch.setattr(sys, "argv", ["-"])
    refused(tenon.error.UnsupportedError, "the program is not in a file", processes=2)


# ---- dist_train

PROGRAM = '''
import os, sys, time
print("begun")
print("a warning", file=sys.stderr)
import numpy as np
import tenon
from models import classifier, samples

rank = int(os.environ.get("TENON_TEAM_RANK", 0))


def reader():
    for number, sample in enumerate(samples()):
        if number == 170 and rank == 1:
            happen(os.environ.get("SCENARIO"))
        yield sample


def happen(scenario):
    if scenario == "killed":
        os.kill(os.getpid(), 9)
    if scenario == "stopped":
        os.kill(os.getpid(), 19)
    if scenario == "raises":
        raise KeyError("mine")
    if scenario == "ends":
        sys.exit(3)
    if scenario == "stuck":
        open("stuck", "w").write(str(os.getpid()))
        time.sleep(1000)


def dist_train(processes, handler=None, **options):
    model = classifier()
    parameters = tenon.parameters.create([model.cost, model.accuracy])
    tenon.dist_train([model.cost, model.accuracy], parameters, reader, handler, updater="adam", batch_size=50,
                     processes=processes, **options)
    return parameters
'''


def run(program, folder, words=("train.py",), **options):
    (folder / "train.py").write_text(PROGRAM + program)
    path = os.pathsep.join([str(Path(__file__).parent), os.environ["PYTHONPATH"]])
    variables = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder), **options}
    done = subprocess.run([sys.executable, *words], check=False, capture_output=True, text=True, timeout=100, cwd=folder,
                          env=variables, stdin=subprocess.DEVNULL)  # fmt: skip
    assert list(folder.glob("tenon-*")) == [], done.stderr
    return done


@pytest.mark.parametrize(("processes", "words"), [(2, ("-m", "train")), (3, ("train.py", "more"))])
def test_processes_have_the_bits_of_one(environment, tmp_path, processes, words):
    needs_engine()
    temporary = tmp_path / ("t" * 100 if words[0] == "-m" else "t")
    temporary.mkdir()
    done = run(f"""
events = []
if sys.argv[1:] == ["more"]:
    os.chdir("/")
parameters = dist_train({processes}, events.append, shards=6, passes=2)
assert rank == 0 and len(events) == 2 + 2 * (2 + 2 * 8)
np.savez({str(tmp_path / "trained.npz")!r}, **{{name: parameters[name] for name in parameters}})
if sys.argv[1:] == ["more"]:
    try:
        dist_train(3)
    except tenon.error.MisuseError as refused:
        print(refused)
""", tmp_path, words, TMPDIR=str(temporary))  # fmt: skip
    assert list(temporary.iterdir()) == []
    ranks = [*range(1, processes)] * (2 if "more" in words else 1)  # of the second call, too
    others = [f"[process {rank}] a warning" for rank in ranks]
    assert done.returncode == 0 and sorted(done.stderr.splitlines()) == sorted(["a warning", *others]), done.stderr
    told = r"process 1 came to dist_train at \S+train.py:(\d+), call 1, process 0 at \S+train.py:\1, call 2: all .*\n"
    assert re.fullmatch("begun\n" + (told if "more" in words else ""), done.stdout), done.stdout
    expected = trained(shards=6, passes=2)[1]
    with np.load(tmp_path / "trained.npz") as stored:
        assert {name: stored[name].tobytes() for name in stored} == bits(expected)


@pytest.mark.parametrize("engine", ["mpich", "openmpi"])
def test_processes_of_a_launcher_have_the_bits_of_one(environment, tmp_path, engine):
    needs_communicator(engine)
    if shutil.which(f"mpiexec.{engine}") is None:
        pytest.skip(f"no launcher mpiexec.{engine} on this machine")
    (tmp_path / "train.py").write_text(PROGRAM + f"""
parameters = dist_train(None, shards=6, passes=2)
print("after")
np.savez({str(tmp_path / "trained.npz")!r}, **{{name: parameters[name] for name in parameters}})
""")
    path = os.pathsep.join([str(Path(__file__).parent), os.environ["PYTHONPATH"]])
    variables = {**os.environ, "PYTHONPATH": path, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    words = [f"mpiexec.{engine}", "-n", "2", *(["--oversubscribe"] if engine == "openmpi" else [])]
    done = subprocess.run([*words, sys.executable, "train.py"], check=False, capture_output=True, text=True, timeout=100,
                          cwd=tmp_path, env=variables, stdin=subprocess.DEVNULL)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("begun") == 2 and done.stdout.count("after") == 1
    with np.load(tmp_path / "trained.npz") as stored:
        assert {name: stored[name].tobytes() for name in stored} == bits(trained(shards=6, passes=2)[1])


FAILURES = """
def fail(scenario):
    if scenario == "never comes" and rank == 1:
        sys.exit(0)
    if scenario == "other job":
        dist_train(3, passes=1 + rank)
    elif scenario == "handler":
        dist_train(3, lambda event: 1 / 0)
    else:
        dist_train(3)

if "SCENARIO" in os.environ:
    fail(os.environ["SCENARIO"])
for scenario in sys.argv[1:]:
    os.environ["SCENARIO"] = scenario
    try:
        fail(scenario)
    except Exception as failure:
        notes = " ".join(getattr(failure, "__notes__", ())).splitlines()
        print(scenario, "|", type(failure).__name__, "|", failure, "|", *notes[:1])
"""
TOLD = {
    "killed": "FileError | process 1 was ended by signal 9 (Killed) |",
    "stopped": "process 1 is lost: it has ended, or does not answer",
    "raises": "KeyError | 'mine' | in process 1:",
    "ends": "Error | process 1: builtins.SystemExit: 3 | in process 1:",
    "never comes": "FileError | process 1 ended with code 0 before it came to the call |",
    "other job": "has another job, or another place in it, than process 0",
    "handler": "ZeroDivisionError | division by zero |",
}


def test_the_first_failure_is_raised(environment, tmp_path):
    needs_engine()
    done = run(FAILURES, tmp_path, ("train.py", *TOLD))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()[1:]
    for line, (scenario, words) in zip(lines, TOLD.items(), strict=True):
        assert line.startswith(scenario) and words in line, line
    assert "Traceback" not in done.stderr


def test_who_lost_a_process_that_has_failed_is_not_the_first():
    def failure(when, words):
        return dataclasses.replace(processes.Failure.now(tenon.error.FileError(words)), when=when)

    own, echo, other = (failure(2, "process 1 is lost: it has ended"), failure(1, "process 0 is lost: it has ended"),
                        failure(3, "no such file"))  # fmt: skip
    assert processes.first_of({}) is None
    assert processes.first_of({0: own, 2: echo}) is own
    assert processes.first_of({0: own, 2: echo, 1: other}) is other
    assert processes.first_of({2: echo, 3: own}) is echo
    parted = failure(1, "process 2: it has failed")
    assert processes.first_of({0: parted, 2: failure(2, "process 0 is lost: it has ended")}) is parted


def wait_for(path):
    until = time.monotonic() + 60
    while not path.exists() or not path.read_text():
        assert time.monotonic() < until
        time.sleep(0.02)
    return int(path.read_text())


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_behind(environment, tmp_path, number):
    needs_engine()
    (tmp_path / "train.py").write_text(PROGRAM + "dist_train(2)\n")
    path = os.pathsep.join([str(Path(__file__).parent), os.environ["PYTHONPATH"]])
    variables = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path), "SCENARIO": "stuck"}
    with subprocess.Popen([sys.executable, "train.py"], cwd=tmp_path, env=variables, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as process:  # fmt: skip
        other = wait_for(tmp_path / "stuck")
        process.send_signal(number)
        told = process.communicate(timeout=60)[1]
    assert process.returncode == (-signal.SIGKILL if number == signal.SIGKILL else -signal.SIGINT), told
    assert ("KeyboardInterrupt" in told) == (number == signal.SIGINT)
    until = time.monotonic() + 10
    while is_alive(other):
        assert time.monotonic() < until
        time.sleep(0.02)
    assert number == signal.SIGKILL or list(tmp_path.glob("tenon-*")) == []
