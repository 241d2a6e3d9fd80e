"""The controller of Jobs.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import copy
import time

from .errors import ApiError
from .store import Store, condition_of, now, reference, seconds_since, set_condition, suffix

TRACKING = "batch.kubernetes.io/job-tracking"  # keeps a pod until its end has been counted
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
MAX_DELAY = 36  # times the first delay between a failure and the pod that replaces the failed one


class Retry(Exception):
    """A pod could not be created, and will be tried again."""


def finished(found: dict) -> dict | None:
    return condition_of(found, "Complete") or condition_of(found, "Failed")


def ranges(indexes: set[int]) -> str:
    """Indexes as a Job's status spells them: 0-2,4."""
    spans: list[list[int]] = []
    for index in sorted(indexes):
        if spans and spans[-1][1] == index - 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def indexes_of(text: str) -> set[int]:
    spans = (span.split("-") for span in text.split(",") if span)
    return {index for span in spans for index in range(int(span[0]), int(span[-1]) + 1)}


def index_of(pod: dict) -> int:
    return int(pod["metadata"]["annotations"][INDEX])


class Jobs:
    def __init__(self, store: Store, create_pod, backoff: float):
        self.store = store
        self.create_pod = create_pod
        self.backoff = backoff
        self.not_before: dict[str, float] = {}  # when a Job that had failures may have its next pod, by uid

    def reconcile(self) -> None:
        for job in self.store.list("jobs"):
            self._reconcile(job)
        self._release_pods()

    def _release_pods(self) -> None:
        """Pods whose Job is gone are nobody's to count."""
        uids = {job["metadata"]["uid"] for job in self.store.list("jobs")}
        for pod in self.store.list("pods"):
            owners = pod["metadata"].get("ownerReferences", [])
            if TRACKING in pod["metadata"].get("finalizers", []) and not any(x["uid"] in uids for x in owners):
                self.store.drop_finalizer(self.store.key(pod), TRACKING)

    def _reconcile(self, job: dict) -> None:
        key = self.store.key(job)
        if self._expired(job):
            self.store.delete(key, "Foreground")
            return
        if "startTime" not in job["status"] and not job["spec"]["suspend"]:
            job = self.store.change(key, lambda new: new["status"].update(startTime=now()))
        for pod in self.store.owned("pods", job):
            if TRACKING in pod["metadata"].get("finalizers", []) and self._over(pod, job):
                job = self._count(job, pod)
        if not finished(job):
            job = self._decide(job)
        self._follow(job)

    def _expired(self, job: dict) -> bool:
        end = finished(job)
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if not end or ttl is None or "deletionTimestamp" in job["metadata"]:
            return False
        return seconds_since(end["lastTransitionTime"]) >= ttl

    def _over(self, pod: dict, job: dict) -> bool:
        if pod["status"]["phase"] in ("Succeeded", "Failed"):
            return True
        if "deletionTimestamp" not in pod["metadata"]:
            return False
        # A pod that ends by being deleted counts at once, unless the Job wants to see how it ends.
        gone = pod["metadata"]["deletionGracePeriodSeconds"] == 0
        return gone or job["spec"]["podReplacementPolicy"] == "TerminatingOrFailed"

    def _count(self, job: dict, pod: dict) -> dict:
        action = "Count"
        why = ""
        if pod["status"]["phase"] != "Succeeded" and not job["spec"]["suspend"] and not _ending(job):
            action, why = _policy_action(job, pod)

        def count(new: dict) -> None:
            status = new["status"]
            if pod["status"]["phase"] == "Succeeded":
                _count_success(new, pod)
            elif action != "Ignore" and not new["spec"]["suspend"] and not _ending(new):
                status["failed"] = status.get("failed", 0) + 1
                if action == "FailJob":
                    set_condition(new, "FailureTarget", True, "PodFailurePolicy", why)
                elif "backoffLimitPerIndex" in new["spec"]:
                    _count_index_failure(new, pod, action)

        new = self.store.change(self.store.key(job), count)
        self.store.drop_finalizer(self.store.key(pod), TRACKING)
        if pod["status"]["phase"] != "Succeeded" and action == "Count":
            failures = min(new["status"].get("failed", 1), 6)
            self.not_before[job["metadata"]["uid"]] = time.monotonic() + self.backoff * min(2 ** (failures - 1), MAX_DELAY)
        return new

    def _decide(self, job: dict) -> dict:
        """Finds whether a Job is to end. It ends as soon as none of its pods is left running."""
        spec, status = job["spec"], job["status"]
        target, reason, message = "", "", ""
        done = indexes_of(status.get("completedIndexes", ""))
        lost = indexes_of(status.get("failedIndexes", ""))
        active = [pod for pod in self.store.owned("pods", job) if not self._over(pod, job)]
        if _ending(job):
            pass
        elif status.get("failed", 0) > spec["backoffLimit"]:
            target, reason = "FailureTarget", "BackoffLimitExceeded"
            message = "Job has reached the specified backoff limit"
        elif "startTime" in status and seconds_since(status["startTime"]) >= spec.get("activeDeadlineSeconds", 1e9):
            target, reason, message = "FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline"
        elif lost and len(lost) > spec.get("maxFailedIndexes", 1e9):
            target, reason = "FailureTarget", "MaxFailedIndexesExceeded"
            message = "Job has exceeded the specified maximal number of failed indexes"
        elif lost and len(done | lost) >= spec["completions"]:
            target, reason, message = "FailureTarget", "FailedIndexes", "Job has failed indexes"
        elif _complete(spec, status, bool(active)):
            target, reason, message = "SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods"
        if target:
            job = self.store.change(self.store.key(job), lambda new: set_condition(new, target, True, reason, message))
        ending = _ending(job)
        if ending and not self._stop_pods(job):
            name = "Failed" if ending["type"] == "FailureTarget" else "Complete"
            self.not_before.pop(job["metadata"]["uid"], None)
            job = self.store.change(self.store.key(job), lambda new: _end(new, name, ending))
            if name == "Complete":
                self.store.event(job, "Completed", "Job completed", source="job-controller")
            else:
                self.store.event(job, ending["reason"], ending["message"], warning=True, source="job-controller")
        return job

    def _stop_pods(self, job: dict) -> int:
        """Deletes the pods that have not ended. Returns how many are left."""
        left = [x for x in self.store.owned("pods", job) if x["status"]["phase"] not in ("Succeeded", "Failed")]
        for pod in left:
            if "deletionTimestamp" not in pod["metadata"]:
                self.store.delete(self.store.key(pod))
        return len(left)

    def _follow(self, job: dict) -> None:
        """Starts and stops pods, and keeps the counts of the status."""
        job = self.store.get(*self.store.key(job))
        if job is None:
            return
        spec = job["spec"]
        pods = self.store.owned("pods", job)
        active = [pod for pod in pods if not self._over(pod, job) and "deletionTimestamp" not in pod["metadata"]]
        if spec["suspend"] and not finished(job):
            self._stop_pods(job)
            active = []
        elif not _ending(job) and not finished(job) and "deletionTimestamp" not in job["metadata"]:
            self._start_pods(job, [pod for pod in pods if not self._over(pod, job)])
            active = [x for x in self.store.owned("pods", job) if not self._over(x, job)]
        ready = sum(1 for pod in active if condition_of(pod, "Ready"))

        def count(new: dict) -> None:
            new["status"] |= {"active": len(active), "ready": ready}
            for field in ("active", "succeeded", "failed"):
                if not new["status"].get(field):
                    new["status"].pop(field, None)
            if spec["suspend"] and not finished(new):
                set_condition(new, "Suspended", True, "JobSuspended", "Job suspended")
                new["status"].pop("startTime", None)
            elif any(x["type"] == "Suspended" for x in new["status"].get("conditions", [])):
                set_condition(new, "Suspended", False, "JobResumed", "Job resumed")

        self.store.change(self.store.key(job), count)

    def _start_pods(self, job: dict, active: list[dict]) -> None:
        spec, status = job["spec"], job["status"]
        if time.monotonic() < self.not_before.get(job["metadata"]["uid"], 0):
            return
        room = spec["parallelism"] - len(active)
        wanted: list[int | None]
        if spec["completionMode"] == "Indexed":
            taken = indexes_of(status.get("completedIndexes", "")) | indexes_of(status.get("failedIndexes", ""))
            taken |= {index_of(pod) for pod in active}
            wanted = [index for index in range(spec["completions"]) if index not in taken]
        else:
            left = spec["completions"] - status.get("succeeded", 0) if "completions" in spec else spec["parallelism"]
            wanted = [None] * (left - len(active) if "completions" in spec or not status.get("succeeded") else 0)
        for index in wanted[: max(room, 0)]:
            try:
                self._start_pod(job, index)
            except Retry:
                break

    def _start_pod(self, job: dict, index: int | None) -> None:
        pod = _pod_of(job, index)
        if index is not None and "backoffLimitPerIndex" in job["spec"]:
            failures = job["metadata"].get("annotations", {}).get(f"{FAILURES}-{index}", "0")
            pod["metadata"]["annotations"][FAILURES] = failures
        try:
            made = self.create_pod(pod)
        except ApiError as error:
            self.not_before[job["metadata"]["uid"]] = time.monotonic() + max(self.backoff, 0.5)
            text = f"Error creating: {error.message}"
            self.store.event(job, "FailedCreate", text, warning=True, source="job-controller")
            raise Retry from error
        text = f"Created pod: {made['metadata']['name']}"
        self.store.event(job, "SuccessfulCreate", text, source="job-controller")


def _pod_of(job: dict, index: int | None) -> dict:
    template = copy.deepcopy(job["spec"]["template"])
    name = job["metadata"]["name"]
    metadata = template["metadata"]
    labels = metadata["labels"]
    annotations = metadata.setdefault("annotations", {})
    base = name if index is None else f"{name}-{index}"
    if index is not None:
        labels[INDEX] = annotations[INDEX] = str(index)
        template["spec"]["hostname"] = base
        source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
        for container in template["spec"].get("initContainers", []) + template["spec"]["containers"]:
            container.setdefault("env", []).append({"name": "JOB_COMPLETION_INDEX", "valueFrom": source})
    metadata |= {"namespace": job["metadata"]["namespace"], "ownerReferences": [reference(job)], "finalizers": [TRACKING]}
    metadata["name"] = f"{base[:57]}-{suffix()}"
    metadata["generateName"] = f"{base}-"
    return {"apiVersion": "v1", "kind": "Pod", **template}


def _ending(job: dict) -> dict | None:
    return condition_of(job, "FailureTarget") or condition_of(job, "SuccessCriteriaMet")


def _end(new: dict, name: str, cause: dict) -> None:
    set_condition(new, name, True, cause["reason"], cause["message"])
    if name == "Complete":
        new["status"]["completionTime"] = now()


def _complete(spec: dict, status: dict, active: bool) -> bool:
    if "completions" in spec:
        return status.get("succeeded", 0) >= spec["completions"]
    return status.get("succeeded", 0) > 0 and not active


def _count_success(new: dict, pod: dict) -> None:
    status = new["status"]
    if new["spec"]["completionMode"] == "Indexed":
        done = indexes_of(status.get("completedIndexes", "")) | {index_of(pod)}
        status["completedIndexes"] = ranges(done)
        status["succeeded"] = len(done)
    else:
        status["succeeded"] = status.get("succeeded", 0) + 1


def _count_index_failure(new: dict, pod: dict, action: str) -> None:
    """Counts in an annotation of the Job, for the pods of an index come and go."""
    index = index_of(pod)
    annotations = new["metadata"].setdefault("annotations", {})
    failures = int(annotations.get(f"{FAILURES}-{index}", "0")) + 1
    annotations[f"{FAILURES}-{index}"] = str(failures)
    if action == "FailIndex" or failures > new["spec"]["backoffLimitPerIndex"]:
        lost = indexes_of(new["status"].get("failedIndexes", "")) | {index}
        new["status"]["failedIndexes"] = ranges(lost)


def _policy_action(job: dict, pod: dict) -> tuple[str, str]:
    """The action of the first rule that fits a failed pod, and the message of a Job that fails by it."""
    containers = pod["status"].get("initContainerStatuses", []) + pod["status"].get("containerStatuses", [])
    where = f"pod {pod['metadata']['namespace']}/{pod['metadata']['name']}"
    for at, rule in enumerate(job["spec"].get("podFailurePolicy", {}).get("rules", [])):
        codes = rule.get("onExitCodes")
        for container in containers if codes else []:
            code = container["state"].get("terminated", {}).get("exitCode", 0)
            named = codes.get("containerName", container["name"]) == container["name"]
            if code and named and (code in codes["values"]) == (codes["operator"] == "In"):
                text = f"Container {container['name']} for {where} failed with exit code {code}"
                return rule["action"], f"{text} matching {rule['action']} rule at index {at}"
        for wanted in rule.get("onPodConditions", []):
            for found in pod["status"].get("conditions", []):
                if (found["type"], found["status"]) == (wanted["type"], wanted.get("status", "True")):
                    text = f"Pod {where[4:]} has condition {found['type']}"
                    return rule["action"], f"{text} matching {rule['action']} rule at index {at}"
    return "Count", ""
