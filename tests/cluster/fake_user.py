"""A user of the fake cluster, for its tests: starts one, and speaks to it without any client of Kubernetes.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import pathlib
import socket
import ssl
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = "/api/v1/namespaces/default"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"


class Client:
    """A user of the cluster, by one context of its kubeconfig."""

    def __init__(self, folder: pathlib.Path, context: str = "token"):
        self.folder = folder
        config = yaml.safe_load((folder / "kubeconfig").read_text())
        names = next(x["context"] for x in config["contexts"] if x["name"] == context)
        cluster = next(x["cluster"] for x in config["clusters"] if x["name"] == names["cluster"])
        self.user = next(x["user"] for x in config["users"] if x["name"] == names["user"])
        self.port = int(cluster["server"].rsplit(":", 1)[1])
        self.tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        if "client-key-data" in self.user:
            pem = folder / f"{context}.pem"
            pem.write_bytes(b"".join(base64.b64decode(self.user[x]) for x in ("client-key-data", "client-certificate-data")))
            self.tls.load_cert_chain(pem)
        self.headers = {"Authorization": f"Bearer {self.user['token']}"} if "token" in self.user else {}

    def open(self, method: str, path: str, body: object = None, kind: str = "application/json") -> http.client.HTTPResponse:
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.tls, timeout=20)
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {**self.headers, "Content-Type": kind})
        return connection.getresponse()

    def __call__(self, method: str, path: str, body: object = None, code: int | None = None) -> dict:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        with self.open(method, path, body, kind) as response:
            answer = json.loads(response.read())
            wanted = (200, 201) if code is None else (code,)
            assert response.status in wanted, answer
            return answer

    def text(self, path: str) -> str:
        with self.open("GET", path) as response:
            return response.read().decode()

    def control(self, command: str, **arguments: object) -> object:
        url = (self.folder / "control").read_text()
        request = urllib.request.Request(f"{url}/{command}", json.dumps(arguments).encode())
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.loads(response.read())

    def until(self, path: str, test, seconds: float = 10) -> dict:
        end = time.monotonic() + seconds
        while True:
            found = self("GET", path)
            if test(found):
                return found
            assert time.monotonic() < end, found
            time.sleep(0.05)

    def absent(self, path: str, seconds: float = 10) -> None:
        end = time.monotonic() + seconds
        while self.open("GET", path).status != 404:
            assert time.monotonic() < end, path
            time.sleep(0.05)

    def pods(self, job: str) -> list[dict]:
        return self("GET", f"{ROOT}/pods?labelSelector=job-name={job}")["items"]


@contextlib.contextmanager
def running(folder: pathlib.Path, *options: str) -> Iterator[Client]:
    for name in ("TENON_MUTANT", "TENON_MUTANTS_REACHED"):  # of tests/mutants, for the programs in pods, too
        options += (f"--pass-env={name}",) if name in os.environ else ()
    if marks := os.environ.get("TENON_MUTANTS_REACHED"):
        options += (f"--share={marks}",)
    process = subprocess.Popen([sys.executable, str(HERE / "fake"), str(folder), *options])
    try:
        while not (folder / "ready").exists():
            assert process.poll() is None
            time.sleep(0.02)
        yield Client(folder)
    finally:
        process.terminate()
        assert process.wait(10) == 0
    assert not (folder / "pods").exists()
    assert str(folder) not in pathlib.Path("/proc/self/mountinfo").read_text()


def pod(name: str, script: str, **spec: object) -> dict:
    container = {"name": "main", "image": "img:1", "command": ["sh", "-c", script], **spec.pop("container", {})}
    spec = {"restartPolicy": "Never", "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def job(name: str, script: str, **spec: object) -> dict:
    template = {"spec": pod("x", script, **spec.pop("pod", {}))["spec"]}
    job_spec = {
        "completionMode": "Indexed",
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": 0,
        "template": template,
        **spec,
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": job_spec}


def jobset(name: str, jobs: dict[str, dict], **spec: object) -> dict:
    replicated = [{"name": key, "replicas": 1, "template": {"spec": value["spec"]}} for key, value in jobs.items()]
    metadata = {"name": name, "labels": {"app": "x"}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata,
        "spec": {"replicatedJobs": replicated, **spec},
    }


def condition(found: dict, name: str) -> dict | None:
    return next((x for x in found["status"].get("conditions", []) if (x["type"], x["status"]) == (name, "True")), None)


def terminated(found: dict) -> dict:
    return found["status"]["containerStatuses"][0]["state"]["terminated"]


def over(found: dict) -> bool:
    return found["status"]["phase"] in ("Succeeded", "Failed")


def frames(stream: socket.socket) -> Iterator[bytes]:
    """The messages of a server of WebSocket, which are short."""
    with stream.makefile("rb") as reader:
        while head := reader.read(2):
            size = head[1] if head[1] < 126 else struct.unpack(">H", reader.read(2))[0]
            data = reader.read(size)
            if head[0] & 0x0F == 8:
                return
            yield data


def execute(client: Client, protocol: str, command: list[str], stdin: bytes) -> dict[int, bytes]:
    words = "".join(f"&command={word}" for word in command)
    raw = client.tls.wrap_socket(socket.create_connection(("127.0.0.1", client.port)), server_hostname="127.0.0.1")
    lines = [f"GET {ROOT}/pods/p/exec?stdin=true&stdout=true&stderr=true{words} HTTP/1.1", "Host: x", "Connection: Upgrade"]
    lines += ["Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="]
    lines += [f"Sec-WebSocket-Protocol: {protocol}", f"Authorization: Bearer {client.user['token']}", "", ""]
    raw.sendall("\r\n".join(lines).encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += raw.recv(1)
    assert b"101" in head.split(b"\r\n")[0], head
    for message in ([b"\0" + stdin] if stdin else []) + ([b"\xff\0"] if "v5" in protocol else []):
        raw.sendall(bytes([0x82, 0x80 | len(message), 0, 0, 0, 0]) + message)
    channels: dict[int, bytes] = {}
    for message in frames(raw):
        channels[message[0]] = channels.get(message[0], b"") + message[1:]
    raw.close()
    return channels
