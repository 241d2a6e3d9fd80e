"""Trainings of three processes, of which one after another is killed, stopped or cut off at random moments:
faults.py BUILD [--kills N] [--stops N] [--partitions N] [--seed N]

Prints a table of how long it took until the fault was noticed and until a minibatch was trained again, by role. Each
training has a table whose rows all processes own, or, in every other one, the last process as a server. It must save the
file of one process, and train each minibatch once in each start, with the cost that it has there.
The numbers are those of all roles together: process 0, another process, the agent of a machine, the launcher.
SPDX-License-Identifier: Apache-2.0"""
import argparse
import collections
import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import queue
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import jobs
import nodes

PROCESSES = 3
PATIENCE = 120  # seconds for what must happen at some time
PAUSE = 3  # seconds for which the launcher is stopped
ROLES = ("process 0", "another process", "agent", "launcher")
MACHINES = {"process 0": 0, "another process": 1, "launcher": PROCESSES}  # that are cut off for these roles
SHORT, LONG = 60, 600  # passes of 15 minibatches
ITEMS = 300
# A table whose rows the processes own.
TABLE = """[[layer]]
name = "item_vector"
type = "embedding"
inputs = "item"
vocabulary = 300
size = 4
parameter_name = "items"

[[updater_group]]
parameters = ["items"]
type = "rowwise_adagrad"
learning_rate = 0.1

"""


class Wrong(Exception):
    """What should not have happened."""


@dataclasses.dataclass
class Times:
    noticed: float
    again: float


class Launch:
    """One start of the launcher, and what it prints."""

    def __init__(self, command, folder, environment):
        self.process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines, self.said, self.folder, self.end = queue.Queue(), [], folder, None
        self.streams = {"stdout", "stderr"}
        for name in self.streams:
            threading.Thread(target=self.read, args=[name], daemon=True).start()

    def read(self, name):
        for line in getattr(self.process, name):
            self.lines.put((time.monotonic(), name, line))
        self.lines.put((time.monotonic(), name, None))

    def next(self):
        """(moment, kind, what): an "event" of the training, a line that the launcher has "said", or the "end"."""
        end = time.monotonic() + PATIENCE
        while self.end is None:
            try:
                moment, name, line = self.lines.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                raise Wrong(f"nothing happens for {PATIENCE} s: {''.join(self.said)}") from None
            if line is None:
                self.streams.discard(name)
                if not self.streams:
                    self.process.wait(PATIENCE)
                    self.end = moment, "end", self.process.returncode
            elif name == "stderr":
                self.said.append(line)
                return moment, "said", line
            else:
                # A process that is killed may have printed a part of a line.
                with contextlib.suppress(ValueError):
                    return moment, "event", json.loads(line[line.rindex('{"batch"'):])
        return self.end

    def pids(self):
        """The processes of the training by their number, and "agent"."""
        result = {}
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (entry / "cwd").resolve() != self.folder.resolve():
                    continue
                words = (entry / "cmdline").read_bytes().split(b"\0")
                variables = (entry / "environ").read_bytes().split(b"\0")
                if b"--node" in words:
                    result["agent"] = int(entry.name)
                for variable in variables:
                    if variable.startswith(b"TENON_TEAM_RANK="):
                        result[int(variable[16:])] = int(entry.name)
        return result


def is_there(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def await_end(pids):
    end = time.monotonic() + PATIENCE
    while any(map(is_there, pids)):
        if time.monotonic() > end:
            raise Wrong(f"processes stay behind: {[pid for pid in pids if is_there(pid)]}")
        time.sleep(0.01)
    return time.monotonic()


class Job:
    """A training in a folder of its own, and what one process makes of it."""

    def __init__(self, program, folder, seed, passes):
        self.program, self.folder, self.environment, self.prefix = program, folder, None, []
        draw = random.Random(seed)
        self.servers = ["--servers", str(seed % 2)]  # the last process owns all rows of the table, or all own some
        self.options = ["--processes", str(PROCESSES - seed % 2)]
        rows = [",".join([*(f"{draw.gauss(0, 1):.4g}" for _ in "abcd"), str(draw.randrange(ITEMS)), str(draw.randrange(3))])
                for _ in range(240)]
        (folder / "train.csv").write_text("\n".join(["a,b,c,d,item,label", *rows]) + "\n")
        text = jobs.JOB.format(passes=passes, seed=seed, body=jobs.NORMALISED.format(size=16, act="tanh", drop=0.3),
                               updater=jobs.UPDATERS[1] + "\nclip_norm = 1.0", columns="a, b, c, d", batch=16)
        text = text.replace('"label: i32', f'"item: i32 < {ITEMS}", "label: i32')
        text = text.replace('[[layer]]\nname = "score"', TABLE + '[[layer]]\nname = "score"')
        text = text.replace('inputs = "hidden"\nsize = 3', 'inputs = ["hidden", "item_vector"]\nsize = 3')
        (folder / "job.toml").write_text('threads = 1\nshards = 4\ntables = ["items.weight"]\n' + text)
        alone = subprocess.run([program, "train", "job.toml", "--log-format", "json"], cwd=folder, check=True,
                               stdout=subprocess.PIPE, text=True)
        self.expected = [place for line in alone.stdout.splitlines() if (place := place_of(json.loads(line)))]
        self.digest = jobs.digest(folder / "model.safetensors")
        (folder / "model.safetensors").unlink()
        with (folder / "job.toml").open("a") as file:
            file.write(jobs.CHECKPOINT.format(every=25))
        self.launches, self.starts, self.lost, self.doubled = [], [], 0, 0

    def launch(self, *more):
        command = [*self.prefix, self.program, "train", "job.toml", *self.options, *self.servers, "--log-format", "json",
                   "--restarts", "100000", *more]
        self.launches.append(Launch(command, self.folder, self.environment))
        return self.launches[-1]

    def note(self, event):
        """Keeps what the training says of itself. Whether it has trained a minibatch."""
        if event["event"] == "begin_training":
            self.starts.append((self.done_by(event.get("path")), []))
        place = place_of(event)
        if place is not None:
            self.starts[-1][1].append(place)
        return place is not None

    def done_by(self, checkpoint):
        """How many minibatches a checkpoint has behind it."""
        if checkpoint is None:
            return 0
        passes, batch = map(int, pathlib.Path(checkpoint).stem.split("-")[1:3])
        return passes * sum(place[0] == 1 for place in self.expected) + batch

    def check(self):
        """Wrong unless the file is that of one process, and all minibatches of all starts are those of one."""
        if jobs.digest(self.folder / "model.safetensors") != self.digest:
            raise Wrong("the model has other bytes than that of one process")
        numbers = {place[:2]: number for number, place in enumerate(self.expected)}
        for done, start in self.starts:
            for number, place in ((numbers[place[:2]], place) for place in start):
                if place != self.expected[number]:
                    raise Wrong(f"cost {place} where one process has {self.expected[number]}")
            trained = [done - 1, *(numbers[place[:2]] for place in start)]
            steps = [other - one for one, other in itertools.pairwise(trained)]
            self.lost += sum(step - 1 for step in steps if step > 1)
            self.doubled += sum(step <= 0 for step in steps)


def place_of(event):
    """Pass, minibatch and cost of one that was trained, else None."""
    return (event["pass"], event["batch"], event["cost"]) if event["event"] == "end_iteration" else None


class Faults:
    """Does what was planned, as many trainings as that needs."""

    def __init__(self, program, seed):
        self.program, self.seed, self.draw = program, seed, random.Random(seed)
        self.times, self.trainings, self.lost, self.doubled = collections.defaultdict(list), 0, 0, 0

    @contextlib.contextmanager
    def job(self, passes):
        with tempfile.TemporaryDirectory() as name:
            job = Job(self.program, pathlib.Path(name).resolve(), self.seed + self.trainings, passes)
            try:
                yield job
            finally:
                for launch in job.launches:
                    launch.process.kill()
            job.check()
            self.trainings += 1
            self.lost, self.doubled = self.lost + job.lost, self.doubled + job.doubled

    def trained(self, job, launch, since=None):
        """The moment of the next minibatch; since: of a start behind the next begin of a training. None at the end."""
        begun = since is None
        while True:
            moment, kind, what = launch.next()
            if kind == "end":
                if what != 0:
                    raise Wrong(f"exit code {what}: {''.join(launch.said)}")
                return None
            if kind == "event" and job.note(what) and begun:
                return moment
            begun = begun or (kind == "event" and what["event"] == "begin_training" and moment > since)

    def noticed(self, job, launch):
        """The moment at which the launcher says what happened. None if the training has ended before."""
        while True:
            moment, kind, what = launch.next()
            if kind == "event":
                job.note(what)
            elif kind == "said" and "starts again" in what:
                return moment
            elif kind == "end" and what == 0:
                return None
            elif kind == "end":
                raise Wrong(f"exit code {what}: {''.join(launch.said)}")

    def wait_at_random(self, job, launch):
        """Trains for a moment. Whether the training goes on."""
        end = time.monotonic() + self.draw.uniform(0, 0.6)
        while (moment := self.trained(job, launch)) is not None and moment < end:
            pass
        return moment is not None

    def hurt(self, job, launch, role, number):
        """Sends the signal. The launch that goes on, and the times: None if the training ended before."""
        pids = launch.pids()
        keys = {"process 0": 0, "another process": self.draw.randrange(1, PROCESSES), "agent": "agent"}
        pid = launch.process.pid if role == "launcher" else pids.get(keys[role])
        if pid is None:
            return launch, None
        began = time.monotonic()
        try:
            os.kill(pid, number)
        except ProcessLookupError:  # the training has ended, and what it said is yet to be read
            return launch, None
        if role == "launcher" and number == signal.SIGSTOP:
            time.sleep(PAUSE)
            os.kill(pid, signal.SIGCONT)
            restarts = "".join(launch.said).count("starts again")
            again = self.trained(job, launch)
            if "".join(launch.said).count("starts again") != restarts:
                raise Wrong("a launcher that was stopped started the training again")
            return launch, again and Times(0, max(0, again - began - PAUSE))
        if role == "launcher":
            with contextlib.suppress(Wrong):  # the end, by the signal
                while self.trained(job, launch) is not None:
                    pass
            noticed = await_end(pids.values())
            launch = job.launch("--resume")
        else:
            noticed = self.noticed(job, launch)
        again = noticed and self.trained(job, launch, noticed)
        return launch, Times(noticed - began, again - began) if again else None

    def signals(self, plan):
        """Does the (role, signal) of the plan."""
        plan = list(plan)
        self.draw.shuffle(plan)
        while plan:
            with self.job(LONG) as job:
                launch = job.launch()
                while plan and self.wait_at_random(job, launch):
                    launch, times = self.hurt(job, launch, *plan[-1])
                    if times is not None:
                        self.times[(plan.pop())].append(times)
                while self.trained(job, launch) is not None:
                    pass

    def partition(self, role):
        """Cuts the machine of the role off, in a training of its own, which goes on without that machine. The others
        give up on a launcher after 5 s, in which they train: more passes are needed then."""
        machine = MACHINES[role]
        with self.job(LONG if role == "launcher" else SHORT) as job, nodes.Network(PROCESSES + 1, job.folder) as network:
            job.environment, job.prefix = network.environment(), network.inside(PROCESSES)
            job.options = ["--nodes", ",".join(map(network.address, range(PROCESSES)))]
            launch = job.launch()
            if not self.wait_at_random(job, launch):
                return
            pids, began = launch.pids(), time.monotonic()
            network.cut(machine)
            if role == "launcher":
                noticed = await_end(pids.values())
                with contextlib.suppress(Wrong):  # it finds no machine
                    while self.trained(job, launch) is not None:
                        pass
                network.join(machine)
                launch = job.launch("--resume")
            else:
                noticed = self.noticed(job, launch)
            again = noticed and self.trained(job, launch, noticed)
            if again:
                self.times[role, None].append(Times(noticed - began, again - began))
                while self.trained(job, launch) is not None:
                    pass

    def table(self):
        names = {signal.SIGKILL: "killed", signal.SIGSTOP: "stopped", None: "cut off"}
        yield "| role | fault | number | noticed after s: median, longest | trains again after s: median, longest |"
        yield "|---|---|---:|---:|---:|"
        for (role, number), times in sorted(self.times.items(), key=lambda item: (str(item[0][1]), ROLES.index(item[0][0]))):
            columns = [[time.noticed for time in times], [time.again for time in times]]
            texts = [f"{statistics.median(column):.1f}, {max(column):.1f}" for column in columns]
            yield f"| {role} | {names[number]} | {len(times)} | {texts[0]} | {texts[1]} |"
        yield (f"{self.trainings} trainings, each with the bytes of one process; "
               f"{self.lost} updates lost, {self.doubled} doubled")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=400)
    parser.add_argument("--stops", type=int, default=200)
    parser.add_argument("--partitions", type=int, default=150)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    if arguments.partitions > 0:
        nodes.enter_own_network()
    faults = Faults(str(arguments.build.resolve() / "bin/tenon"), arguments.seed)
    plan = [(ROLES[i % len(ROLES)], signal.SIGKILL) for i in range(arguments.kills)]
    plan += [(ROLES[i % len(ROLES)], signal.SIGSTOP) for i in range(arguments.stops)]
    try:
        faults.signals(plan)
        for i in range(arguments.partitions):
            faults.partition(tuple(MACHINES)[i % len(MACHINES)])
    except Wrong as wrong:
        print(f"seed {arguments.seed}: {wrong}")
        return 1
    finally:
        print("\n".join(faults.table()), flush=True)
    if faults.lost + faults.doubled > 0:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
