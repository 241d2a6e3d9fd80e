#!/usr/bin/env python3
"""Trainings over two machines by the real ssh: ssh.py BUILD. Each machine is an sshd with a host key of its own, at a high port
of an address of this machine; keys, settings and known hosts are in a temporary folder, and no service of the system is used.

Connections and sshd are killed and stopped while a training runs, which must end with the bytes of one process, each minibatch
trained once in each start; wrong keys, hosts and ports must be refused with a message that names the machine.
SPDX-License-Identifier: Apache-2.0"""
import argparse
import contextlib
import getpass
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import faults

ADDRESSES = ("127.0.0.1", "127.0.0.2")
NODES = f"{ADDRESSES[0]},{ADDRESSES[1]}:2"
LONG = 80  # passes of 15 minibatches
BEFORE = 40  # minibatches before a fault: there is a checkpoint then


def find_sshd():
    """The path of sshd. Ends with 77 where a machine has none, or root may not give it the folder that it wants."""
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if sshd is None or shutil.which("ssh") is None:
        print("no sshd on this machine")
        sys.exit(77)
    if os.geteuid() == 0 and not os.path.isdir("/run/sshd"):
        if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0:
            print("no namespaces for a container here")
            sys.exit(77)
        script = 'mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec "$@"'
        os.execvp("unshare", ["unshare", "-m", "sh", "-c", script, "sh", sys.executable, "-B", *sys.argv])
    return sshd


def make_key(path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
    return pathlib.Path(f"{path}.pub").read_text().strip()


class Machine:
    """An sshd."""

    def __init__(self, sshd, folder, address):
        self.sshd, self.folder, self.address = sshd, folder, address
        with socket.create_server((address, 0)) as free:
            self.port = free.getsockname()[1]
        self.key = make_key(folder / f"host-{address}")
        (folder / "banner").write_text("Authorised use only.\n")
        (folder / f"sshd-{address}").write_text(
            f"ListenAddress {address}:{self.port}\nHostKey {folder}/host-{address}\nAuthorizedKeysFile {folder}/user.pub\n"
            f"PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            f"Banner {folder}/banner\n")
        self.start()

    def start(self):
        self.log = self.folder / f"log-{self.address}"
        self.process = subprocess.Popen([self.sshd, "-D", "-f", self.folder / f"sshd-{self.address}", "-E", self.log],
                                        stdin=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while not self.log.exists() or "listening on" not in self.log.read_text():
            if self.process.poll() is not None or time.monotonic() > end:
                raise faults.Wrong(f"sshd does not start: {self.log.read_text()}")
            time.sleep(0.02)

    def connections(self):
        """The processes of sshd that serve a connection."""
        return list(map(int, pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()))

    def signal_all(self, number):
        """Signals sshd and its connections: what runs there notices only that nothing comes any more."""
        for pid in (*self.connections(), self.process.pid):
            os.kill(pid, number)

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            self.signal_all(signal.SIGCONT)
            self.signal_all(signal.SIGKILL)
        self.process.wait()
        self.log.unlink(missing_ok=True)


class Trial(faults.Faults):
    """Trainings, and two machines for them."""

    def __init__(self, program, sshd, folder, stack):
        super().__init__(program, 4)  # an even seed: without servers
        self.folder, self.notes = folder, []
        make_key(folder / "user")
        self.machines = [Machine(sshd, folder, address) for address in ADDRESSES]
        for machine in self.machines:
            stack.callback(machine.end)
        (folder / "bin").mkdir()
        (folder / "bin/ssh").write_text(f'#!/bin/sh\nexec "{shutil.which("ssh")}" -F "{folder}/config" "$@"\n')
        (folder / "bin/ssh").chmod(0o755)
        self.write_settings()

    def write_settings(self, key="user", known=None, port=None):
        """Settings of ssh, in place of those in ~/.ssh: all as it should be, but for what is stated of the second machine."""
        hosts = [f"[{machine.address}]:{machine.port} {machine.key}\n" for machine in self.machines]
        if known is not None:
            hosts[1] = known
        (self.folder / "known").write_text("".join(hosts))
        text = ""
        for machine, name, where in zip(self.machines, ("user", key), (None, port), strict=True):
            text += f"Host {machine.address}\n Port {where or machine.port}\n IdentityFile {self.folder}/{name}\n"
        text += f"Host *\n UserKnownHostsFile {self.folder}/known\n GlobalKnownHostsFile none\n IdentitiesOnly yes\n"
        (self.folder / "config").write_text(f"{text} User {getpass.getuser()}\n IdentityAgent none\n UpdateHostKeys no\n")

    @contextlib.contextmanager
    def training(self, passes=LONG):
        """A launch of a job by ssh, which must end as one process does."""
        with self.job(passes) as job:
            job.environment = os.environ | {"PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
            job.options = ["--nodes", NODES]
            launch = job.launch()
            yield job, launch
            while self.trained(job, launch) is not None:
                pass
        self.said = "".join(launch.said)

    def undisturbed(self):
        with self.training(20):
            pass
        if any("Accepted publickey" not in machine.log.read_text() for machine in self.machines):
            raise faults.Wrong(f"a machine was not reached by ssh: {self.said}")

    def hit(self, what, words, deed):
        """Does something to a training that runs; the launcher must say so, and go on from the checkpoint."""
        with self.training() as (job, launch):
            for _ in range(BEFORE):
                self.trained(job, launch)
            began = time.monotonic()
            deed(launch)
            noticed = self.noticed(job, launch)
            again = noticed and self.trained(job, launch, noticed)
            if not again:
                raise faults.Wrong(f"{what}: not noticed: {''.join(launch.said)}")
            self.notes.append((what, noticed - began, again - began))
        if not re.search(words, self.said):
            raise faults.Wrong(f"{what}: expected {words} in: {self.said}")

    def clients(self, launch):
        """The processes of ssh that the launcher has started, by the machine."""
        found = {}
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if words[0].endswith(b"ssh") and (entry / "cwd").resolve() == launch.folder.resolve() and b"--" in words:
                    found[words[words.index(b"--") + 1].decode()] = int(entry.name)
        return found

    def faults_of_connections(self):
        first, second = self.machines
        lost = f"on {re.escape(second.address)} is lost at .*: ssh has ended with "
        without = "the training goes on without it"
        self.hit("ssh of the launcher, killed", lost + "signal 9",
                 lambda launch: os.kill(self.clients(launch)[second.address], signal.SIGKILL))
        self.hit("the connection, killed by a machine", lost + "exit code 255",
                 lambda _: os.kill(second.connections()[0], signal.SIGKILL))
        self.hit("that of process 0, likewise", f"process 0 on {first.address} is lost at .*: ssh has ended with exit code 255",
                 lambda _: os.kill(first.connections()[0], signal.SIGKILL))
        self.hit("sshd and its connections, killed", f"{second.address}: ssh has ended .*Connection refused; {without}",
                 lambda _: second.signal_all(signal.SIGKILL))
        second.end()
        second.start()
        self.hit("sshd and its connections, stopped", f"{second.address}: no answer for 5 s; {without}",
                 lambda _: second.signal_all(signal.SIGSTOP))
        second.end()
        second.start()

    def refused(self, what, words, nodes=NODES, **settings):
        """The training must not begin."""
        self.write_settings(**settings)
        with tempfile.TemporaryDirectory() as name:
            job = faults.Job(self.program, pathlib.Path(name).resolve(), 4, 1)
            words_of_run = [self.program, "train", "job.toml", "--nodes", nodes]
            done = subprocess.run(words_of_run, cwd=job.folder, text=True, capture_output=True, check=False, timeout=60,
                                  env=os.environ | {"PATH": f"{self.folder}/bin:{os.environ['PATH']}"})
        self.write_settings()
        if done.returncode != 74 or not re.search(words, done.stderr):
            raise faults.Wrong(f"{what}: expected 74 and {words}, got {done.returncode}: {done.stderr}")

    def mistakes(self):
        second = self.machines[1]
        failed = f"{re.escape(second.address)}: ssh has ended with exit code 255: "
        other, place = make_key(self.folder / "other"), f"[{second.address}]:{second.port}"
        self.refused("a key that the machine does not know", failed + r".*Permission denied \(publickey\)", key="other")
        self.refused("no key", failed + r".*Permission denied \(publickey\)", key="absent")
        self.refused("a machine with another host key", failed + "(.|\n)*Host key verification failed",
                     known=f"{place} {other}\n")
        self.refused("a machine that is not known", failed + "(.|\n)*Host key verification failed", known="")
        with socket.create_server((second.address, 0)) as taken:
            port = taken.getsockname()[1]
        self.refused("a port at which nothing listens", f"{failed}.*port {port}: Connection refused", port=port)
        self.refused("a name that is none", "nowhere.invalid: ssh has ended with exit code 255: .*Could not resolve hostname",
                     nodes=f"{ADDRESSES[0]},nowhere.invalid")

    def interrupted(self, number):
        """Ctrl-C, or the end by force, leaves no process on the machines."""
        with self.job(1) as job:  # its model is that of the undisturbed launch below
            job.environment = os.environ | {"PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
            job.options = ["--nodes", NODES]
            launch = job.launch("--passes", "100000", "--no-save", "--set", "checkpoint.folder=other")
            while not job.starts or not job.starts[-1][1]:
                self.trained(job, launch)
            pids = [*launch.pids().values(), *(pid for machine in self.machines for pid in machine.connections())]
            if len(pids) != 5:
                raise faults.Wrong(f"expected three processes and two connections, found {pids}")
            launch.process.send_signal(number)
            faults.await_end(pids)
            job.starts.clear()
            launch = job.launch()
            while self.trained(job, launch) is not None:
                pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has programs in the background ignore it
    sshd = find_sshd()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name).resolve()
        trial = Trial(str(arguments.build.resolve() / "bin/tenon"), sshd, folder, stack)
        trial.undisturbed()
        trial.mistakes()
        trial.faults_of_connections()
        for number in (signal.SIGINT, signal.SIGKILL):
            trial.interrupted(number)
        for what, noticed, again in trial.notes:
            print(f"| {what} | {noticed:.1f} | {again:.1f} |")
        print(f"{trial.trainings} trainings with the bytes of one process; {trial.lost} updates lost, {trial.doubled} doubled")
        return 1 if trial.lost + trial.doubled else 0


if __name__ == "__main__":
    sys.exit(main())
