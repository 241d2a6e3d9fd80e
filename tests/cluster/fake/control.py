"""The control interface: a plain HTTP server, by which a test makes things go wrong and counts what is left.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import collections
import json
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .cluster import Cluster
from .faults import Failure
from .server import Front


class Control:
    """Each public function is a command: POST /NAME with its arguments as a JSON object."""

    def __init__(self, cluster: Cluster, front: Front):
        self.cluster = cluster
        self.front = front
        self.images = dict(cluster.settings.images)  # of the beginning

    def _pod(self, name: str, namespace: str) -> dict:
        found = self.cluster.store.get("pods", namespace, name)
        if found is None:
            raise ValueError(f"no pod {namespace}/{name}")
        return found

    def delay(self, seconds: float) -> None:
        """Makes each answer late."""
        self.cluster.faults.delay = seconds

    def fail(self, count: int, code: int | str, verb: str = "*", resource: str = "*", retryAfter: int = 1) -> None:
        """Answers the next requests by an error; by the code "lost" does what they ask, and never says so."""
        self.cluster.faults.failures.append(Failure(count, code, verb, resource, retryAfter))

    def silence(self, seconds: float) -> None:
        """Takes connections and sends nothing, as a machine that has stopped."""
        self.cluster.faults.silent_until = time.monotonic() + seconds

    def drop(self, streams: str, clean: bool = False) -> None:
        """Breaks the streams that there are: watch, log, exec. Clean: a watch or log ends as if it were complete."""
        self.cluster.faults.clean = clean
        self.cluster.faults.drops[streams] += 1

    def gone(self, seconds: float) -> None:
        """Refuses connections for a time, and breaks all that there are."""
        self.front.be_gone(seconds)

    def kill(self, pod: str, signal: int = signal.SIGKILL, namespace: str = "default", container: str = "") -> int:
        """Sends a signal to the first process of a pod's containers. Answers how many got it."""
        runner = self.cluster.kubelet.runner_of(self._pod(pod, namespace))
        if runner is None:
            return 0
        found = [x for name, x in runner.processes.items() if container in ("", name) and not x.ended.is_set()]
        for process in found:
            process.kill(signal)
        return len(found)

    def lose(self, pod: str, namespace: str = "default") -> None:
        """Loses the node that a pod runs on."""
        self.cluster.kubelet.lose(self._pod(pod, namespace))

    def expire_token(self) -> None:
        """Ends the validity of the user's token. Plugins and tokenFile have a new one, the kubeconfig does not."""
        self.cluster.authority.renew_token()

    def forbid(self, verb: str = "*", resource: str = "*", namespace: str = "*") -> None:
        self.cluster.authority.rules.append({"verb": verb, "resource": resource, "namespace": namespace})

    def allow(self) -> None:
        """Forbids nothing more."""
        self.cluster.authority.rules.clear()

    def pull(self, image: str, folder: str = "") -> None:
        """Has an image in a folder from now on; without one it cannot be pulled for new containers."""
        self.cluster.settings.images[image] = folder

    def unschedulable(self, on: bool = True, selector: str = "") -> None:
        """Gives new pods, or those with some labels, no node."""
        self.cluster.kubelet.unschedulable = selector if on else None
        with self.cluster.store.changed:
            self.cluster.store.changed.notify_all()

    def quota(self, **most: int) -> None:
        """Bounds how many objects of a kind a namespace may have: {"pods": 3}. {} lifts all bounds."""
        self.cluster.quota = most

    def compact(self) -> None:
        """Forgets the history, so that a watch of the past gets 410."""
        self.cluster.store.compact()

    def reset(self) -> None:
        """Ends all that was made to go wrong and goes on."""
        self.cluster.faults.reset()
        self.allow()
        self.quota()
        self.unschedulable(False)
        self.cluster.settings.images.update(self.images)

    def counts(self) -> dict:
        """Objects by kind, but for namespaces and nodes; processes of pods; requests that came without TLS."""
        store = self.cluster.store
        with store.lock:
            objects = collections.Counter(key[0] for key in store.objects if key[0] not in ("namespaces", "nodes"))
        processes = self.cluster.kubelet.processes()
        return {"objects": objects, "processes": len(processes), "plain": self.front.records.counts["plain"]}

    def processes(self) -> list[int]:
        """The process ids of pods, as this machine has them."""
        return [process.pid for process in self.cluster.kubelet.processes()]

    def requests(self) -> list[dict]:
        """All requests so far, in the order of their answers. A code of 0 is that of an answer that was lost."""
        return self.front.records.requests


class Handler(BaseHTTPRequestHandler):
    control: Control

    def log_message(self, *words: object) -> None:
        """Nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        name = self.path.strip("/").replace("-", "_")
        command = None if name.startswith("_") else getattr(self.control, name, None)
        if not callable(command):
            self._send(404, f"no command {name}")
            return
        try:
            self._send(200, command(**(json.loads(body) if body else {})))
        except (TypeError, ValueError) as error:
            self._send(400, str(error))

    do_GET = do_POST

    def _send(self, code: int, answer: object) -> None:
        data = json.dumps(answer).encode() + b"\n"
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def serve(control: Control) -> str:
    """Starts the interface. Returns its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("ControlHandler", (Handler,), {"control": control}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
