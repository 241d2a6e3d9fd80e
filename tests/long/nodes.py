#!/usr/bin/env python3
"""Machines whose network can be cut: namespaces on a bridge, in which connections stay open and carry nothing.

This file is also what stands for ssh there: `nodes.py ADDRESS` runs the commands that come over TCP, and as the program
`ssh` it sends one to a machine. SPDX-License-Identifier: Apache-2.0"""
import contextlib
import os
import pathlib
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

PORT = 2222
CONNECT = 10  # seconds, the ConnectTimeout of the launcher's ssh


def enter_own_network():
    """Runs this program again in a network of its own, in which it may make interfaces. Ends with 77 where it may not."""
    if os.environ.get("TENON_OWN_NETWORK"):
        return
    unshare = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-Urn"]
    if shutil.which("ip") is None or subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        print("no namespaces for a container here")
        sys.exit(77)
    os.environ["TENON_OWN_NETWORK"] = "1"
    os.execvp(unshare[0], [*unshare, sys.executable, "-B", *sys.argv])


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True)


class Network:
    """So many machines, the last of which is the launcher's. A context, whose end ends the machines."""

    def __init__(self, count, folder):
        self.count, self.folder, self.processes = count, folder, []

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.callback(self.end)
            ip("link", "set", "lo", "up")
            ip("link", "add", "hub", "type", "bridge")
            ip("link", "set", "hub", "up")
            for machine in range(self.count):
                self.add(machine)
            stack.pop_all()
        ssh = self.folder / "bin/ssh"
        ssh.parent.mkdir()
        ssh.symlink_to(pathlib.Path(__file__).resolve())
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        for link in ["hub", *(f"port{machine}" for machine in range(self.count))]:
            subprocess.run(["ip", "link", "delete", link], stderr=subprocess.DEVNULL, check=False)
        for process in self.processes:
            process.kill()
            process.wait()

    def add(self, machine):
        self.processes.append(subprocess.Popen(["unshare", "-n", "sleep", "infinity"]))
        number, own = self.processes[-1].pid, os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{number}/ns/net") == own:
            time.sleep(0.01)
        ip("link", "add", f"port{machine}", "type", "veth", "peer", "name", "wire", "netns", number)
        inside = self.inside(machine)
        subprocess.run([*inside, "ip", "address", "add", f"{self.address(machine)}/24", "dev", "wire"], check=True)
        for link in ("lo", "wire"):
            subprocess.run([*inside, "ip", "link", "set", link, "up"], check=True)
        self.join(machine)
        ip("link", "set", f"port{machine}", "up")
        command = [*inside, sys.executable, "-B", __file__, self.address(machine)]
        self.processes.append(subprocess.Popen(command, stdout=subprocess.PIPE))
        self.processes[-1].stdout.readline()  # it listens

    def inside(self, machine):
        """The words before a command that is to run on the machine."""
        return ["nsenter", "-t", str(self.processes[2 * machine].pid), "-n"]

    @staticmethod
    def address(machine):
        return f"10.77.0.{machine + 1}"

    def environment(self):
        return os.environ | {"PATH": f"{self.folder}/bin:{os.environ['PATH']}"}

    def join(self, machine):
        ip("link", "set", f"port{machine}", "master", "hub")

    def cut(self, machine):
        """Takes its wire out of the bridge: all interfaces stay up."""
        ip("link", "set", f"port{machine}", "nomaster")


def serve(address):
    """Runs each command that comes, with the connection as its standard input and output."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.create_server((address, PORT)) as listener:
        print("listens", flush=True)
        while True:
            connection, _ = listener.accept()
            with connection:
                size, = struct.unpack("!I", connection.recv(4, socket.MSG_WAITALL))
                command = connection.recv(size, socket.MSG_WAITALL).decode()
                subprocess.Popen(["sh", "-c", command], stdin=connection, stdout=connection, start_new_session=True)


def call(node, command):
    """Runs a command on a machine, with this program's standard input and output. The exit code, as of ssh."""
    try:
        connection = socket.create_connection((node, PORT), timeout=CONNECT)
    except OSError as error:
        print(f"ssh: connect to host {node} port {PORT}: {error}", file=sys.stderr)
        return 255
    connection.settimeout(None)
    words = command.encode()
    connection.sendall(struct.pack("!I", len(words)) + words)
    with connection, selectors.DefaultSelector() as ready:
        ready.register(0, selectors.EVENT_READ)
        ready.register(connection, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                data = os.read(key.fd, 1 << 16)
                if key.fd == 0 and data:
                    connection.sendall(data)
                elif key.fd == 0:
                    ready.unregister(0)
                    connection.shutdown(socket.SHUT_WR)
                elif data:
                    os.write(1, data)
                else:
                    return 0


if __name__ == "__main__":
    if pathlib.Path(sys.argv[0]).name == "ssh":
        sys.exit(call(*sys.argv[sys.argv.index("--") + 1:]))
    serve(sys.argv[1])
