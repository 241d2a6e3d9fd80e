"""Tests the cluster that the other tests use: python -m pytest tests/cluster/test_fake.py

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
from collections.abc import Iterator

import pytest
import yaml

from fake_user import JOBS, JOBSETS, ROOT, Client, condition, execute, job, jobset, over, pod, running, terminated

KUBECTL = os.environ.get("KUBECTL") or shutil.which("kubectl")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("fake")
    image = folder / "image"
    (image / "bin").mkdir(parents=True)
    program = image / "bin" / "greet"
    program.write_text("#!/bin/sh\necho greetings $*\n")
    program.chmod(0o755)
    with running(folder / "cluster", "--image", f"img:1={image}", "--claim", "training", "--restart-delay", "0.1") as found:
        yield found


@pytest.fixture(autouse=True)
def clean(client: Client) -> Iterator[None]:
    """Each test leaves nothing: what it created goes, and nothing goes wrong on purpose any more."""
    yield
    client.control("reset")
    plain = [f"{ROOT}/{plural}" for plural in ("pods", "configmaps", "secrets", "services", "events")]
    for path in [JOBSETS, JOBS, *plain]:
        client("DELETE", f"{path}?propagationPolicy=Background&gracePeriodSeconds=0")
    end = time.monotonic() + 10
    left = {"persistentvolumeclaims"}
    while (counts := client.control("counts"))["processes"] or set(counts["objects"]) - left:
        client("DELETE", f"{ROOT}/events")
        assert time.monotonic() < end, counts
        time.sleep(0.05)


def run_pod(client: Client, found: dict) -> str:
    """What a pod prints, which has to succeed."""
    client("POST", f"{ROOT}/pods", found)
    path = f"{ROOT}/pods/{found['metadata']['name']}"
    ended = client.until(path, over)
    text = client.text(path + "/log")
    assert ended["status"]["phase"] == "Succeeded", (text, terminated(ended).get("message"), terminated(ended)["exitCode"])
    return text


def test_users(client: Client) -> None:
    assert Client(client.folder, "certificate")("GET", f"{ROOT}/pods")["kind"] == "PodList"
    for context in ("wrong-token", "expired-certificate"):
        answer = Client(client.folder, context)("GET", f"{ROOT}/pods", code=401)
        assert (answer["kind"], answer["reason"]) == ("Status", "Unauthorized")
    for version in ("v1", "v1beta1"):
        plugin = Client(client.folder, f"exec-{version}").user["exec"]
        api = f"client.authentication.k8s.io/{version}"
        environment = {**os.environ, "KUBERNETES_EXEC_INFO": json.dumps({"apiVersion": api, "kind": "ExecCredential"})}
        command = [plugin["command"], *plugin["args"]]
        answer = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
        assert answer["apiVersion"] == api
        assert answer["status"]["token"] == client.user["token"]
    with socket.create_connection(("127.0.0.1", client.port)) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert b"400" in plain.recv(100)
    assert client.control("counts")["plain"] == 1
    client.control("forbid", verb="list", resource="pods")
    answer = client("GET", f"{ROOT}/pods", code=403)
    why = 'User "me" cannot list resource "pods" in API group "" in the namespace "default"'
    assert answer["message"] == f"pods is forbidden: {why}"


def test_objects(client: Client) -> None:
    labels = {"app": "x", "tier": "a"}
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": labels}, "stringData": {"k": "text"}}
    assert client("POST", f"{ROOT}/secrets", made)["data"] == {"k": base64.b64encode(b"text").decode()}
    answer = client("POST", f"{ROOT}/secrets", made, code=409)
    assert (answer["reason"], answer["message"]) == ("AlreadyExists", 'secrets "s" already exists')
    for selector, count in (("app=x,tier!=b", 1), ("tier+in+(a,b)", 1), ("tier", 1), ("!tier", 0), ("tier==b", 0)):
        assert len(client("GET", f"{ROOT}/secrets?labelSelector={selector}")["items"]) == count, selector
    assert len(client("GET", f"{ROOT}/secrets?fieldSelector=metadata.name%3Ds")["items"]) == 1
    client("GET", f"{ROOT}/secrets?fieldSelector=data.k%3Ds", code=400)
    patched = client("PATCH", f"{ROOT}/secrets/s", {"metadata": {"labels": {"tier": None}}})
    assert patched["metadata"]["labels"] == {"app": "x"}
    for change, code in (
        ({"metadata": {"name": "Not_a_name"}}, 422),
        ({"dataa": {}}, 400),
        ({"data": {"k": "***"}}, 422),
        ({"stringData": {"k": "x" * (1 << 20 | 1)}}, 422),
        ({"metadata": {"name": "t", "labels": {"app": "a b"}}}, 422),
    ):
        client("POST", f"{ROOT}/secrets", {**made, "metadata": {"name": "t"}, **change}, code=code)
    client("POST", "/api/v1/namespaces/none/secrets", made, code=404)
    wrong = job("j", "true")
    wrong["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    assert "restartPolicy" in client("POST", JOBS, wrong, code=422)["message"]
    wrong["spec"]["template"]["spec"]["containers"][0]["imagee"] = "x"
    client("POST", JOBS, wrong, code=400)
    wrong_set = jobset("js", {"a": job("x", "true")})
    wrong_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]["imagee"] = "x"
    client("POST", JOBSETS, wrong_set, code=400)
    client("POST", JOBSETS, jobset("js", {"a": job("x", "true")}, networkk={}), code=400)
    assert client("DELETE", f"{ROOT}/secrets/s")["status"] == "Success"
    assert client("GET", f"{ROOT}/secrets/s", code=404)["message"] == 'secrets "s" not found'


def test_what_a_container_finds(client: Client) -> None:
    data = {"a": "first", "b": "second"}
    client("POST", f"{ROOT}/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": "hidden"}}
    client("POST", f"{ROOT}/secrets", secret)
    script = """set -e
greet $ARGUMENT; cat /etc/job/x /run/new/place/key; stat -L -c %a /run/new/place/key; id -u; id -G; echo $NAME $KEY $LIMIT
! touch /etc/job/y 2>/dev/null; ! touch /here 2>/dev/null; echo kept > /data/file; echo x > /empty/file
df -k /dev/shm | tail -1
pwd; hostname; test ! -e /var/run/secrets/kubernetes.io; test $$$$ = 1; getent hosts $HOSTNAME"""
    mounts = {"c": "/etc/job", "s": "/run/new/place", "p": "/data", "e": "/empty", "m": "/dev/shm"}
    container = {
        "args": ["x"],
        "workingDir": "/some/where",
        "env": [
            {"name": "ARGUMENT", "value": "a $(HOSTNAME) $$(x)"},
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "key"}}},
            {"name": "LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
        ],
        "resources": {"limits": {"memory": "512Mi"}},
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in mounts.items()],
        "securityContext": {"readOnlyRootFilesystem": True},
    }
    volumes = [
        {"name": "c", "configMap": {"name": "c", "items": [{"key": "a", "path": "x"}]}},
        {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400}},
        {"name": "p", "persistentVolumeClaim": {"claimName": "training"}},
        {"name": "e", "emptyDir": {}},
        {"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}},
    ]
    user = {"runAsUser": 1234, "runAsGroup": 1235, "fsGroup": 1236}
    found = pod("p", script, container=container, volumes=volumes, securityContext=user, automountServiceAccountToken=False)
    if os.geteuid() != 0:
        found["spec"].pop("securityContext")
    lines = run_pod(client, found).splitlines()
    assert lines[0] == "greetings a p $(x)"
    assert lines[1].startswith("firsthidden")
    if os.geteuid() == 0:
        assert lines[1:4] == ["firsthidden440", "1234", "1235 1236"]
    assert lines[4] == "p hidden 512"
    assert lines[5].split()[1] == "8192"
    assert lines[6:8] == ["/some/where", "p"]
    assert lines[8].split()[0].startswith("127.")
    assert (client.folder / "claims/default/training/file").read_text() == "kept\n"
    assert not pathlib.Path("/run/new").exists()


def test_job(client: Client) -> None:
    script = "echo index $JOB_COMPLETION_INDEX; hostname"
    client("POST", JOBS, job("j", script, completions=3, parallelism=2))
    done = client.until(f"{JOBS}/j", lambda x: condition(x, "Complete"))
    assert (done["status"]["succeeded"], done["status"]["completedIndexes"]) == (3, "0-2")
    pods = client.pods("j")
    assert sorted(x["metadata"]["name"][:4] for x in pods) == ["j-0-", "j-1-", "j-2-"]
    for found in pods:
        index = found["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        assert client.text(f"{ROOT}/pods/{found['metadata']['name']}/log") == f"index {index}\nj-{index}\n"
    client("DELETE", f"{JOBS}/j")  # without a policy: the pods stay
    assert len(client.pods("j")) == 3


def test_restarts(client: Client) -> None:
    """In their pod, which keeps what they wrote in its volumes."""
    mounts = {"volumeMounts": [{"name": "e", "mountPath": "/e"}]}
    init = {"name": "first", "image": "img:1", "command": ["sh", "-c", "echo init > /e/file"], **mounts}
    script = "cat /e/file; echo $(hostname) >> /e/file; [ $(wc -l < /e/file) = 3 ] && echo end > /dev/termination-log"
    volumes = [{"name": "e", "emptyDir": {}}]
    found = pod("p", script, container=mounts, volumes=volumes, initContainers=[init], restartPolicy="OnFailure")
    assert run_pod(client, found) == "init\np\n"
    assert client.text(f"{ROOT}/pods/p/log?previous=true") == "init\n"
    ended = client("GET", f"{ROOT}/pods/p")
    assert ended["status"]["containerStatuses"][0]["restartCount"] == 1
    assert terminated(ended)["message"] == "end\n"


def test_failed_jobs(client: Client) -> None:
    rules = [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [64, 65]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
    policy = {"podFailurePolicy": {"rules": rules}}
    by_index = {"backoffLimit": 9, "backoffLimitPerIndex": 0}
    client("POST", JOBS, job("code", "exit 64", backoffLimit=3, **policy))
    client("POST", JOBS, job("often", "exit 3", backoffLimit=1))
    client("POST", JOBS, job("lost", "trap : TERM; sleep 60 & wait", ttlSecondsAfterFinished=0, **policy))
    client("POST", JOBS, job("index", "exit $JOB_COMPLETION_INDEX", completions=2, parallelism=2, **by_index))
    client("POST", JOBS, job("late", "sleep 60", activeDeadlineSeconds=1, pod={"terminationGracePeriodSeconds": 0}))
    pods = f"{ROOT}/pods?labelSelector=job-name=lost"
    first = client.until(pods, lambda x: x["items"] and condition(x["items"][0], "Ready"))
    name = first["items"][0]["metadata"]["name"]
    client.control("lose", pod=name)
    client.absent(f"{ROOT}/pods/{name}")
    client.until(pods, lambda x: x["items"] and condition(x["items"][0], "Ready"))
    assert "failed" not in client("GET", f"{JOBS}/lost")["status"]
    client.control("kill", pod=client.pods("lost")[0]["metadata"]["name"], signal=signal.SIGTERM)
    client.absent(f"{JOBS}/lost")
    reasons = {
        "code": "PodFailurePolicy",
        "often": "BackoffLimitExceeded",
        "late": "DeadlineExceeded",
        "index": "FailedIndexes",
    }
    for name, reason in reasons.items():
        done = client.until(f"{JOBS}/{name}", lambda x: condition(x, "Failed"))
        assert condition(done, "Failed")["reason"] == reason
    assert client("GET", f"{JOBS}/often")["status"]["failed"] == 2
    found = client.pods("code")[0]
    assert terminated(found)["exitCode"] == 64
    text = f"Container main for pod default/{found['metadata']['name']} failed with exit code 64"
    message = condition(client("GET", f"{JOBS}/code"), "Failed")["message"]
    assert message == f"{text} matching FailJob rule at index 0"


def test_deletion(client: Client) -> None:
    """A pod gets SIGTERM first, behind its hook; one that does not listen goes when its time is over. A Job can wait for its
    pods."""
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "sleep 0.3; echo good >/tmp/said"]}}}
    polite = job("polite", "trap 'echo $(cat /tmp/said)bye; sleep 0.5; exit 0' TERM; sleep 60 & wait",
                 pod={"container": {"lifecycle": hook}})  # fmt: skip
    deaf = job("deaf", "sleep 60", pod={"terminationGracePeriodSeconds": 1})
    for found in (polite, deaf):
        client("POST", JOBS, found)
    ready = {"polite": 1, "deaf": 1}
    for name in ready:
        client.until(f"{JOBS}/{name}", lambda x: x["status"].get("ready") == 1)
    name = client.pods("polite")[0]["metadata"]["name"]
    with client.open("GET", f"{ROOT}/pods/{name}/log?follow=true") as log:
        for which in ready:
            client("DELETE", f"{JOBS}/{which}", {"kind": "DeleteOptions", "propagationPolicy": "Foreground"})
        waiting = client("GET", f"{JOBS}/polite")["metadata"]
        assert waiting["finalizers"] == ["foregroundDeletion"]
        assert "deletionTimestamp" in waiting
        assert log.read() == b"goodbye\n"
    start = time.monotonic()
    for which in ready:
        client.absent(f"{JOBS}/{which}")
    assert time.monotonic() - start < 3
    assert client.control("counts")["processes"] == 0


def test_jobset(client: Client) -> None:
    """The first attempt of the master fails; the second finds the workers by their names."""
    attempt = {"fieldRef": {"fieldPath": "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"}}
    container = {"env": [{"name": "ATTEMPT", "valueFrom": attempt}]}
    script = """[ $ATTEMPT = 1 ] || exit 3
until getent hosts set-worker-0-1.set.default.svc.cluster.local; do sleep 0.05; done; getent hosts set-worker-0-0.set
! getent hosts set-worker-0-9.set"""
    sleep = job("x", "sleep 60", completions=2, parallelism=2, pod={"terminationGracePeriodSeconds": 0})
    jobs = {"master": job("x", script, pod={"container": container}), "worker": sleep}
    policies = {
        "failurePolicy": {"maxRestarts": 2},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": ["master"]},
        "ttlSecondsAfterFinished": 2,
    }
    client("POST", JOBSETS, jobset("set", jobs, **policies))
    done = client.until(f"{JOBSETS}/set", lambda x: condition(x, "Completed"))
    assert (done["status"]["restarts"], done["status"]["terminalState"]) == (1, "Completed")
    (master,) = client.pods("set-master-0")
    assert master["spec"]["hostname"] == "set-master-0-0"
    assert master["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"] == "master"
    text = client.text(f"{ROOT}/pods/{master['metadata']['name']}/log")
    assert len({line.split()[0] for line in text.splitlines()}) == 2
    client.absent(f"{JOBSETS}/set")
    client.absent(f"{ROOT}/services/set")
    client("POST", JOBSETS, jobset("bad", {"a": job("x", "exit 1")}, failurePolicy={"maxRestarts": 1}))
    done = client.until(f"{JOBSETS}/bad", lambda x: condition(x, "Failed"))
    assert condition(done, "Failed")["reason"] == "ReachedMaxRestarts"


def test_pods_that_do_not_start(client: Client) -> None:
    client("POST", f"{ROOT}/pods", pod("image", "true", container={"image": "none:1"}))
    client("POST", f"{ROOT}/pods", pod("program", "true", container={"command": ["no-such-program"]}))
    missing = {"volumes": [{"name": "c", "configMap": {"name": "late"}}]}
    client(
        "POST",
        f"{ROOT}/pods",
        pod("volume", "cat /c/a", container={"volumeMounts": [{"name": "c", "mountPath": "/c"}]}, **missing),
    )
    client.control("unschedulable", selector="large=yes")
    large = pod("node", "true")
    large["metadata"]["labels"] = {"large": "yes"}
    client("POST", f"{ROOT}/pods", large)
    client.control("quota", pods=3)
    assert "exceeded quota" in client("POST", f"{ROOT}/pods", pod("quota", "true"), code=403)["message"]
    client("POST", JOBS, job("many", "true"))

    def reasons(about: str) -> set[str]:
        events = client("GET", f"{ROOT}/events?fieldSelector=involvedObject.name%3D{about}")
        return {x["reason"] for x in events["items"]}

    def waits(found: dict) -> str:
        return found["status"].get("containerStatuses", [{}])[0].get("state", {}).get("waiting", {}).get("reason", "")

    client.until(f"{ROOT}/pods/image", lambda x: waits(x) == "ImagePullBackOff")
    failed = client.until(f"{ROOT}/pods/program", over)
    assert terminated(failed)["reason"] == "StartError"
    pending = client.until(f"{ROOT}/pods/node", lambda x: x["status"]["conditions"])
    assert pending["status"]["conditions"][0]["message"] == "0/3 nodes are available: insufficient cpu."
    client.until(f"{ROOT}/pods/volume", lambda x: waits(x) == "ContainerCreating")
    assert (reasons("node"), "FailedMount" in reasons("volume")) == ({"FailedScheduling"}, True)
    client.until(f"{ROOT}/events?fieldSelector=involvedObject.name%3Dmany", lambda x: x["items"])
    assert reasons("many") == {"FailedCreate"}
    found = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}, "data": {"a": "here"}}
    client("POST", f"{ROOT}/configmaps", found)
    client.control("reset")
    client.until(f"{ROOT}/pods/volume", over)
    client.until(f"{ROOT}/pods/node", over)
    client.until(f"{JOBS}/many", lambda x: condition(x, "Complete"))


def test_watches_and_logs(client: Client) -> None:
    version = client("GET", f"{ROOT}/pods")["metadata"]["resourceVersion"]
    watch = client.open("GET", f"{ROOT}/pods?watch=true&resourceVersion={version}&labelSelector=x!%3Dy")
    client("POST", f"{ROOT}/pods", pod("p", "for i in 1 2 3 4; do echo $i; done; sleep 60", terminationGracePeriodSeconds=0))
    events = []
    while not (events and condition(events[-1]["object"], "Ready")):
        events.append(json.loads(watch.readline()))
    assert [x["type"] for x in events] == ["ADDED"] + ["MODIFIED"] * (len(events) - 1)
    assert client.text(f"{ROOT}/pods/p/log?tailLines=2&sinceSeconds=60") == "3\n4\n"
    log = client.open("GET", f"{ROOT}/pods/p/log?follow=true")
    for stream, kind in ((watch, "watch"), (log, "log")):
        client.control("drop", streams=kind)
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            while stream.read():
                pass
    with client.open("GET", f"{ROOT}/pods/p/log?follow=true") as log:
        assert log.readline() == b"1\n"
        client.control("drop", streams="log", clean=True)
        assert log.read() == b"2\n3\n4\n"
    client.control("compact")
    with client.open("GET", f"{ROOT}/pods?watch=true&resourceVersion={version}") as late:
        assert json.loads(late.readline())["object"]["code"] == 410
    bookmarks = f"{ROOT}/secrets?watch=true&timeoutSeconds=1&allowWatchBookmarks=true"
    assert json.loads(client.text(bookmarks))["type"] == "BOOKMARK"


def test_exec(client: Client) -> None:
    client("POST", f"{ROOT}/pods", pod("p", "echo here > /mark; sleep 60", terminationGracePeriodSeconds=0))
    client.until(f"{ROOT}/pods/p", lambda x: condition(x, "Ready"))
    found = execute(client, "v5.channel.k8s.io", ["cat", "/mark", "-"], b"typed")
    assert found[1] == b"here\ntyped"
    assert json.loads(found[3])["status"] == "Success"
    found = execute(client, "v4.channel.k8s.io", ["sh", "-c", "echo%20no%20>%262;exit%203"], b"")
    assert found[2] == b"no\n"
    assert json.loads(found[3])["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


def test_faults(client: Client) -> None:
    client.control("fail", count=1, code=429, verb="list", resource="pods", retryAfter=2)
    with client.open("GET", f"{ROOT}/pods") as response:
        assert (response.status, response.headers["Retry-After"]) == (429, "2")
    client("GET", f"{ROOT}/pods")
    client.control("fail", count=1, code="lost", verb="create")
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        client("POST", f"{ROOT}/pods", pod("p", "true"))
    client.until(f"{ROOT}/pods/p", over)
    client.control("delay", seconds=0.3)
    start = time.monotonic()
    client("GET", f"{ROOT}/pods")
    assert time.monotonic() - start >= 0.3
    client.control("reset")
    client.control("silence", seconds=0.3)
    client("GET", f"{ROOT}/pods")
    assert time.monotonic() - start >= 0.6
    client.control("gone", seconds=0.4)
    with pytest.raises(ConnectionRefusedError):
        client("GET", f"{ROOT}/pods")
    time.sleep(0.6)
    client.control("expire-token")
    client("GET", f"{ROOT}/pods", code=401)
    client.headers = {"Authorization": f"Bearer {(client.folder / 'token').read_text()}"}
    assert client.control("requests")[-1]["code"] == 401
    client.user["token"] = (client.folder / "token").read_text()
    with pytest.raises(urllib.error.HTTPError):
        client.control("no-such-command")


@pytest.mark.skipif(not KUBECTL, reason="no kubectl")
def test_kubectl(client: Client, tmp_path: pathlib.Path) -> None:
    def kubectl(*words: str, **options: object) -> str:
        command = [KUBECTL, "--kubeconfig", str(client.folder / "kubeconfig"), "--context", "exec-v1beta1", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20, **options).stdout

    objects = [job("j", "echo one; sleep 0.5; echo two"), jobset("set", {"a": job("x", "true")})]
    text = yaml.safe_dump_all(objects)
    assert kubectl("create", "-f", "-", input=text).splitlines() == [
        "job.batch/j created",
        "jobset.jobset.x-k8s.io/set created",
    ]
    client.until(
        f"{ROOT}/pods?labelSelector=job-name=j", lambda x: x["items"] and x["items"][0]["status"]["phase"] == "Running"
    )
    assert kubectl("logs", "-f", "job/j") == "one\ntwo\n"
    assert yaml.safe_load(kubectl("get", "job", "j", "-o", "yaml"))["spec"]["completions"] == 1
    found = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    for value, word in (("1", "created"), ("2", "configured")):
        found["data"]["a"] = value
        assert word in kubectl("apply", "-f", "-", input=yaml.safe_dump(found))
    assert "deleted" in kubectl("delete", "jobset/set", "job/j")
    assert kubectl("get", "pods", "-o", "name") == ""


def test_nothing_is_left(client: Client, tmp_path: pathlib.Path) -> None:
    with running(tmp_path / "other", "--image", f"img:1={tmp_path}", "--no-jobset") as other:
        assert other.open("GET", JOBSETS).status == 404
        other("POST", f"{ROOT}/pods", pod("p", "sleep 60 & sleep 60"))
        other.until(f"{ROOT}/pods/p", lambda x: condition(x, "Ready"))
        (process,) = other.control("processes")
    assert not pathlib.Path(f"/proc/{process}").exists()
