"""The scheduler and the kubelet: gives pods a node, runs their containers and reports how they are.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import signal
import subprocess
import threading
import time
import uuid

from . import names
from .container import Log, Process
from .environment import Environment, NotYet, hostname
from .selectors import labels
from .store import Store, now, set_condition

LOST = "Taint manager: deleting due to NoExecute taint"


class Runner:
    """The containers of one pod, followed by a thread."""

    def __init__(self, kubelet: Kubelet, pod: dict, address: str):
        self.kubelet = kubelet
        self.store = kubelet.store
        self.pod = pod
        self.key = self.store.key(pod)
        self.address = address
        self.folder = kubelet.folder / pod["metadata"]["uid"]
        self.environment = Environment(self.store, kubelet.settings, pod, self.folder)
        self.wake = threading.Event()
        self.deadline: float | None = None  # when the processes are killed, once the pod is to end
        self.processes: dict[str, Process] = {}
        self.logs: dict[str, Log] = {}
        self.old_logs: dict[str, Log] = {}  # of the processes that were before
        self.statuses: dict[str, dict] = {}
        self.done = False
        self.volumes: dict[str, dict] = {}
        self.names = ""  # what its hosts file says
        self.thread = threading.Thread(target=self._run, daemon=True)

    # Called by others.

    def stop(self, grace: float) -> None:
        """Asks the processes to end, and has them killed after a time. A later call may only shorten it."""
        deadline = time.monotonic() + grace
        if self.deadline is None:
            self.deadline = deadline
            for name in list(self.processes):
                self._ask_to_end(name)
        self.deadline = min(self.deadline, deadline)
        self.wake.set()

    def write_names(self, records: list[str]) -> None:
        text = names.text_for(self.pod, records)
        with contextlib.suppress(FileNotFoundError):  # the folder is there from the pod's start to its end
            if text != self.names:
                names.write(self.folder, text)
                self.names = text

    def exec_spec(self, name: str, command: list[str]) -> dict:
        """The description of a further process of a container for the sandbox."""
        container = self._container(name)
        env = self.environment.variables(container)
        rights = self.environment.rights(container)
        spec = {**self.kubelet.abilities, **rights, "argv": command, "env": env}
        return {**spec, "cwd": container.get("workingDir") or "/", "join": self.processes[name].pid}

    def _container(self, name: str) -> dict:
        specs = self.pod["spec"]
        return next(x for x in (*specs["containers"], *specs.get("initContainers", [])) if x["name"] == name)

    def _ask_to_end(self, name: str) -> None:
        """Sends SIGTERM, once the hook before it has ended, for which the grace period does not wait."""
        hook = self._container(name).get("lifecycle", {}).get("preStop", {}).get("exec")
        process = self.processes[name]
        if hook is None or not process.pid:
            process.kill(signal.SIGTERM)
        else:
            threading.Thread(target=self._run_hook, args=(name, hook["command"], process), daemon=True).start()

    def _run_hook(self, name: str, command: list[str], process: Process) -> None:
        with contextlib.suppress(NotYet):
            none = subprocess.DEVNULL
            hook = Process(self.exec_spec(name, command), none, none, none, lambda: None)
            hook.ended.wait()
            if hook.code and not process.ended.is_set():
                why = hook.error or f"exit status {hook.code}"
                self.store.event(self.pod, "FailedPreStopHook", f"PreStopHook failed: {why}", warning=True)
        process.kill(signal.SIGTERM)

    # The thread.

    def _run(self) -> None:
        try:
            self.folder.mkdir(parents=True)
            self._begin()
            specs = self.pod["spec"]
            fine = all(self._run_one(container) for container in specs.get("initContainers", []))
            if fine and self.deadline is None:
                self._run_all(specs["containers"])
        finally:
            for process in self.processes.values():
                process.close()
            self._finish()
            self.done = True
            shutil.rmtree(self.folder, ignore_errors=True)
            self.kubelet.ended(self)

    def _begin(self) -> None:
        for group in ("initContainers", "containers"):
            for container in self.pod["spec"].get(group, []):
                self.statuses[container["name"]] = {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "",
                    "ready": False,
                    "started": False,
                    "restartCount": 0,
                    "state": {"waiting": {"reason": "ContainerCreating"}},
                    "lastState": {},
                }
        self._report()
        self.write_names(names.records(self.store, self.key[1]))

    def _run_one(self, container: dict) -> bool:
        """An init container, to its success."""
        while self._start(container):
            while not self._ended(container["name"]):
                self._pause(None)
            if self._note_end(container) == 0:
                return True
            if self.pod["spec"]["restartPolicy"] == "Never" or not self._wait_to_restart(container):
                return False
        return False

    def _run_all(self, containers: list[dict]) -> None:
        running = {x["name"]: x for x in containers if self._start(x)}
        policy = self.pod["spec"]["restartPolicy"]
        while running:
            ended = [name for name in running if self._ended(name)]
            for name in ended:
                container = running.pop(name)
                code = self._note_end(container)
                again = policy == "Always" or (policy == "OnFailure" and code != 0)
                if again and self.deadline is None and self._wait_to_restart(container) and self._start(container):
                    running[name] = container
            if not ended:
                self._pause(None)

    def _pause(self, seconds: float | None) -> None:
        """Waits until something may have happened; kills what has had its time."""
        left = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
        if left == 0.0:
            for process in self.processes.values():
                process.kill()
            left = None
        times = [x for x in (left, seconds) if x is not None]
        self.wake.wait(min(times) if times else None)
        self.wake.clear()

    def _sleep(self, seconds: float) -> bool:
        """Whether the pod is still to run after a time."""
        end = time.monotonic() + seconds
        while self.deadline is None and time.monotonic() < end:
            self._pause(end - time.monotonic())
        return self.deadline is None

    def _start(self, container: dict) -> bool:
        """Starts a container, as soon as it has what it needs. False: the pod is to end, or nothing can be started."""
        name = container["name"]
        while self.deadline is None:
            try:
                if not self.kubelet.settings.images.get(container["image"]):
                    self._no_image(container)
                spec = self._spec(container)
            except NotYet as missing:
                about = "FailedMount" if missing.reason == "ContainerCreating" else "Failed"
                self._set_state(name, {"waiting": {"reason": missing.reason, "message": str(missing)}})
                self.store.event(self.pod, about, str(missing), warning=True)
                self._sleep(0.2)
                continue
            return self._spawn(container, spec)
        return False

    def _no_image(self, container: dict) -> None:
        image = container["image"]
        text = f'failed to pull and unpack image "{image}": not found'
        name = container["name"]
        self.store.event(self.pod, "Failed", f'Failed to pull image "{image}": {text}', warning=True)
        if self.statuses[name]["state"].get("waiting", {}).get("reason") == "ContainerCreating":
            self._set_state(name, {"waiting": {"reason": "ErrImagePull", "message": text}})
            self._sleep(self.kubelet.settings.restart_delay)
        raise NotYet("ImagePullBackOff", f'Back-off pulling image "{image}"')

    def _spec(self, container: dict) -> dict:
        """The description for the sandbox."""
        if not self.volumes:
            self.volumes = self.environment.make_volumes()
        env = self.environment.variables(container)
        scratch = self.folder / "scratch"
        scratch.mkdir(exist_ok=True)
        return {
            **self.kubelet.abilities,
            **self.environment.rights(container),
            "scratch": str(scratch),
            "hosts": str(self.folder),
            "hostname": hostname(self.pod),
            "argv": self.environment.command(container, env),
            "env": env,
            "cwd": container.get("workingDir") or "/",
            "mounts": self.environment.mounts(container, self.volumes),
        }

    def _spawn(self, container: dict, spec: dict) -> bool:
        name = container["name"]
        log = Log()
        if name in self.logs:
            self.old_logs[name] = self.logs[name]
        process = Process(spec, subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT, self.wake.set)
        threading.Thread(target=log.read, args=(process.output,), daemon=True).start()
        self.logs[name] = log
        self.processes[name] = process
        if process.error:
            process.ended.wait()
            text = f"failed to create containerd task: {process.error}: unknown"
            self._set_state(name, {"terminated": _terminated("StartError", 128, text, now())})
            self.store.event(self.pod, "Failed", f"Error: {text}", warning=True)
            return True
        self._set_state(name, {"running": {"startedAt": now()}}, ready=True)
        self.store.event(self.pod, "Started", f"Started container {name}")
        if self.deadline is not None:  # asked to end while it was being started
            self._ask_to_end(name)
        return True

    def _ended(self, name: str) -> bool:
        return self.processes[name].ended.is_set()

    def _note_end(self, container: dict) -> int:
        name = container["name"]
        state = self.statuses[name]["state"]
        if "terminated" in state:
            return state["terminated"]["exitCode"]
        process = self.processes[name]
        with self.logs[name].changed:  # the last lines are there when the end is known
            self.logs[name].changed.wait_for(lambda: self.logs[name].closed, 2)
        code = process.code
        message = self._last_words(container, code)
        ended = _terminated("Error" if code else "Completed", code, message, state["running"]["startedAt"])
        self._set_state(name, {"terminated": ended})
        return code

    def _last_words(self, container: dict, code: int) -> str:
        """What a container left for its status."""
        data = self.environment.last_words(container).read_bytes()[:4096]
        if not data and code and container["terminationMessagePolicy"] == "FallbackToLogsOnError":
            data = b"".join(line for _, line in self.logs[container["name"]].lines[-80:])[-2048:]
        return data.decode(errors="replace")

    def _wait_to_restart(self, container: dict) -> bool:
        status = self.statuses[container["name"]]
        last = status["state"]
        status["restartCount"] += 1
        waiting = {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}
        status["lastState"] = last
        self._set_state(container["name"], {"waiting": waiting})
        return self._sleep(self.kubelet.settings.restart_delay)

    # The status.

    def _set_state(self, name: str, state: dict, *, ready: bool = False) -> None:
        self.statuses[name] |= {"state": state, "ready": ready, "started": ready}
        self._report()

    def _report(self, phase: str = "") -> None:
        spec = self.pod["spec"]
        inits = [x["name"] for x in spec.get("initContainers", [])]
        mains = [x["name"] for x in spec["containers"]]
        states = [self.statuses[name] for name in mains]
        ready = all(status["ready"] for status in states)
        started = any("waiting" not in x["state"] or x["restartCount"] for x in states)

        def report(new: dict) -> None:
            status = new["status"]
            if status["phase"] not in ("Succeeded", "Failed"):
                status["phase"] = phase or ("Running" if started else "Pending")
            status |= {"podIP": self.address, "podIPs": [{"ip": self.address}], "hostIP": "127.0.0.1"}
            status.setdefault("startTime", now())
            status["containerStatuses"] = [dict(self.statuses[name]) for name in mains]
            if inits:
                status["initContainerStatuses"] = [dict(self.statuses[name]) for name in inits]
            why = "" if ready else "PodCompleted" if phase == "Succeeded" else "ContainersNotReady"
            for name in ("ContainersReady", "Ready"):
                set_condition(new, name, ready, why)

        changed = self.store.change(self.key, report)
        self.pod = changed or self.pod

    def _finish(self) -> None:
        states = [self.statuses[x["name"]]["state"] for x in self.pod["spec"]["containers"]]
        fine = all(state.get("terminated", {}).get("exitCode") == 0 for state in states)
        self._report("Succeeded" if fine else "Failed")


def _terminated(reason: str, code: int, message: str, started: str) -> dict:
    found = {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": now()}
    found["containerID"] = f"containerd://{uuid.uuid4().hex}"
    return {**found, "message": message} if message else found


class Kubelet:
    def __init__(self, store: Store, settings, folder: pathlib.Path, abilities: dict):
        self.store = store
        self.settings = settings
        self.folder = folder
        self.abilities = abilities
        folder.mkdir(mode=0o700, exist_ok=True)  # secrets are in it
        self.runners: dict[str, Runner] = {}
        self.free = list(range(250, 0, -1))
        self.unschedulable = None  # a selector of the pods that get no node
        self.scheduled = 0

    def reconcile(self) -> None:
        for pod in self.store.list("pods"):
            uid = pod["metadata"]["uid"]
            runner = self.runners.get(uid)
            if runner is None:
                if "deletionTimestamp" in pod["metadata"]:
                    self.store.remove_pod(self.store.key(pod))
                elif pod["status"]["phase"] == "Pending":
                    self._schedule(pod)
            elif "deletionTimestamp" in pod["metadata"]:
                runner.stop(pod["metadata"]["deletionGracePeriodSeconds"])
                if runner.done:
                    self.store.remove_pod(self.store.key(pod))
        uids = {pod["metadata"]["uid"] for pod in self.store.list("pods")}
        for uid, runner in list(self.runners.items()):
            if uid not in uids:
                runner.stop(0)
                if runner.done:
                    del self.runners[uid]
        self._write_names()

    def _write_names(self) -> None:
        records: dict[str, list[str]] = {}
        for runner in self.runners.values():
            namespace = runner.key[1]
            if namespace not in records:
                records[namespace] = names.records(self.store, namespace)
            if not runner.done:
                runner.write_names(records[namespace])

    def _schedule(self, pod: dict) -> None:
        why = self._no_node(pod)
        key = self.store.key(pod)
        if why:
            self.store.change(key, lambda new: set_condition(new, "PodScheduled", False, "Unschedulable", why))
            seen = any(x["type"] == "PodScheduled" for x in pod["status"]["conditions"])
            if not seen:
                self.store.event(pod, "FailedScheduling", why, warning=True, source="default-scheduler")
            return
        node = f"node-{self.scheduled % 3}"
        self.scheduled += 1

        def bind(new: dict) -> None:
            new["spec"]["nodeName"] = node
            set_condition(new, "PodScheduled", True)

        address = f"{self.settings.network}.{self.free.pop()}"
        new = self.store.change(key, bind)
        text = f"Successfully assigned {key[1]}/{key[2]} to {node}"
        self.store.event(new, "Scheduled", text, source="default-scheduler")
        runner = Runner(self, new, address)
        self.runners[pod["metadata"]["uid"]] = runner
        self.store.change(key, lambda new: new["status"].update(podIP=address))
        runner.pod = self.store.get(*key)
        runner.thread.start()

    def _no_node(self, pod: dict) -> str:
        if self.unschedulable is not None and labels(self.unschedulable)(pod["metadata"].get("labels", {})):
            return "0/3 nodes are available: insufficient cpu."
        for volume in pod["spec"].get("volumes", []):
            claim = volume.get("persistentVolumeClaim", {}).get("claimName")
            if claim and not self.store.get("persistentvolumeclaims", pod["metadata"]["namespace"], claim):
                return f'0/3 nodes are available: persistentvolumeclaim "{claim}" not found.'
        return "" if self.free else "0/3 nodes are available: too many pods."

    def ended(self, runner: Runner) -> None:
        self.free.insert(0, int(runner.address.rsplit(".", 1)[1]))
        with self.store.changed:
            self.store.changed.notify_all()

    def runner_of(self, pod: dict) -> Runner | None:
        return self.runners.get(pod["metadata"]["uid"])

    def processes(self) -> list[Process]:
        found = [process for runner in list(self.runners.values()) for process in list(runner.processes.values())]
        return [process for process in found if not process.ended.is_set()]

    def lose(self, pod: dict) -> None:
        """The node of a pod is gone: its processes end at once, and the pod is taken away."""
        runner = self.runner_of(pod)
        for process in list(runner.processes.values()) if runner else []:
            process.kill()

        def fail(new: dict) -> None:
            new["status"] |= {"phase": "Failed", "reason": "NodeLost"}
            set_condition(new, "DisruptionTarget", True, "DeletionByTaintManager", LOST)

        self.store.change(self.store.key(pod), fail)
        self.store.delete(self.store.key(pod), grace=0)

    def close(self) -> None:
        for runner in list(self.runners.values()):
            runner.stop(0)
        for runner in list(self.runners.values()):
            if runner.thread.ident:
                runner.thread.join(10)
        shutil.rmtree(self.folder, ignore_errors=True)
