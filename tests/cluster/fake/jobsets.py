"""The controller of JobSets.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import copy
import hashlib

from .defaults import complete
from .errors import ApiError
from .jobs import finished
from .store import Store, condition_of, reference, seconds_since, set_condition

PREFIX = "jobset.sigs.k8s.io/"
ATTEMPT = PREFIX + "restart-attempt"


def ended(jobset: dict) -> dict | None:
    return condition_of(jobset, "Completed") or condition_of(jobset, "Failed")


def attempt_of(job: dict) -> int:
    return int(job["metadata"]["labels"][ATTEMPT])


class JobSets:
    def __init__(self, store: Store):
        self.store = store

    def reconcile(self) -> None:
        for jobset in self.store.list("jobsets"):
            if "deletionTimestamp" not in jobset["metadata"]:
                self._reconcile(jobset)

    def _reconcile(self, jobset: dict) -> None:
        end = ended(jobset)
        if end:
            ttl = jobset["spec"].get("ttlSecondsAfterFinished")
            if ttl is not None and seconds_since(end["lastTransitionTime"]) >= ttl:
                self.store.delete(self.store.key(jobset), "Foreground")
            else:
                self._stop(job for job in self.store.owned("jobs", jobset) if not finished(job))
                self._count(jobset)
            return
        self._serve_names(jobset)
        jobset = self._judge(jobset)
        if not ended(jobset):
            self._start(jobset)
        self._count(jobset)

    def _serve_names(self, jobset: dict) -> None:
        network = jobset["spec"]["network"]
        name = network.get("subdomain") or jobset["metadata"]["name"]
        namespace = jobset["metadata"]["namespace"]
        if not network["enableDNSHostnames"] or self.store.get("services", namespace, name):
            return
        spec = {
            "clusterIP": "None",
            "publishNotReadyAddresses": network["publishNotReadyAddresses"],
            "selector": {PREFIX + "jobset-name": jobset["metadata"]["name"]},
        }
        metadata = {"name": name, "namespace": namespace, "ownerReferences": [reference(jobset)]}
        kind = self.store.catalog.by_plural["services"]
        service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
        self.store.create(kind, complete(kind, service))

    def _judge(self, jobset: dict) -> dict:
        """Ends a JobSet, or has it restarted, by the Jobs of its present attempt."""
        restarts = jobset["status"]["restarts"]
        jobs = [job for job in self.store.owned("jobs", jobset) if attempt_of(job) == restarts]
        failed = [job for job in jobs if condition_of(job, "Failed")]
        if failed:
            return self._fail(jobset, min(failed, key=lambda job: condition_of(job, "Failed")["lastTransitionTime"]))
        policy = jobset["spec"]["successPolicy"]
        targets = policy.get("targetReplicatedJobs") or [job["name"] for job in jobset["spec"]["replicatedJobs"]]
        wanted = sum(x["replicas"] for x in jobset["spec"]["replicatedJobs"] if x["name"] in targets)
        names = [x["metadata"]["labels"][PREFIX + "replicatedjob-name"] for x in jobs if condition_of(x, "Complete")]
        done = sum(1 for name in names if name in targets)
        if done >= wanted or (done and policy["operator"] == "Any"):
            return self._end(jobset, "Completed", "AllJobsCompleted", "jobset completed successfully")
        return jobset

    def _fail(self, jobset: dict, job: dict) -> dict:
        policy = jobset["spec"].get("failurePolicy")
        first = f"(first failed job: {job['metadata']['name']})"
        if not policy:
            return self._end(jobset, "Failed", "FailedJobs", f"jobset failed due to one or more job failures {first}")
        action = _action(policy, job)
        if action == "FailJobSet":
            text = f"applying FailJobSet failure policy action {first}"
            return self._end(jobset, "Failed", "FailJobSetFailurePolicyAction", text)
        counted = jobset["status"].get("restartsCountTowardsMax", 0)
        if action == "RestartJobSet" and counted >= policy["maxRestarts"]:
            text = f"jobset failed due to reaching max number of restarts {first}"
            return self._end(jobset, "Failed", "ReachedMaxRestarts", text)

        def restart(new: dict) -> None:
            new["status"]["restarts"] += 1
            if action == "RestartJobSet":
                new["status"]["restartsCountTowardsMax"] = counted + 1

        new = self.store.change(self.store.key(jobset), restart)
        text = f"restarting jobset, attempt {new['status']['restarts']} {first}"
        self.store.event(jobset, "RestartJobSetFailurePolicyAction", text, warning=True, source="jobset-controller")
        return new

    def _end(self, jobset: dict, name: str, reason: str, message: str) -> dict:
        def end(new: dict) -> None:
            set_condition(new, name, True, reason, message)
            new["status"]["terminalState"] = name

        self.store.event(jobset, reason, message, warning=name == "Failed", source="jobset-controller")
        return self.store.change(self.store.key(jobset), end)

    def _stop(self, jobs) -> None:
        for job in list(jobs):
            if "deletionTimestamp" not in job["metadata"]:
                self.store.delete(self.store.key(job), "Foreground")

    def _start(self, jobset: dict) -> None:
        """Removes the Jobs of earlier attempts, and creates those that are not there, of the present one."""
        restarts = jobset["status"]["restarts"]
        jobs = self.store.owned("jobs", jobset)
        old = [job for job in jobs if attempt_of(job) < restarts]
        self._stop(old)
        blocking = jobset["spec"].get("failurePolicy", {}).get("restartStrategy") == "BlockingRecreate"
        if old and blocking:
            return
        kind = self.store.catalog.by_plural["jobs"]
        names = {job["metadata"]["name"] for job in jobs}
        for job in _jobs_of(jobset):
            old_job = self.store.get("jobs", jobset["metadata"]["namespace"], job["metadata"]["name"])
            if old_job is None:
                try:
                    self.store.create(kind, complete(kind, job))
                except ApiError as error:
                    self.store.event(jobset, "JobCreationFailed", error.message, warning=True, source="jobset-controller")
            elif job["metadata"]["name"] in names and old_job["spec"]["suspend"] != job["spec"]["suspend"]:
                suspend = job["spec"]["suspend"]
                self.store.change(self.store.key(job), lambda new, on=suspend: new["spec"].update(suspend=on))

    def _count(self, jobset: dict) -> None:
        jobs = self.store.owned("jobs", jobset)
        states = []
        for replicated in jobset["spec"]["replicatedJobs"]:
            mine = [x for x in jobs if x["metadata"]["labels"][PREFIX + "replicatedjob-name"] == replicated["name"]]
            state = {"name": replicated["name"], "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}
            for job in mine:
                spec, status = job["spec"], job["status"]
                needed = min(spec["parallelism"], spec.get("completions", spec["parallelism"]))
                state["succeeded"] += bool(condition_of(job, "Complete"))
                state["failed"] += bool(condition_of(job, "Failed"))
                state["active"] += bool(status.get("active")) and not finished(job)
                state["suspended"] += bool(spec["suspend"])
                state["ready"] += status.get("ready", 0) + status.get("succeeded", 0) >= needed and not finished(job)
            states.append(state)
        suspended = bool(jobset["spec"].get("suspend"))

        def count(new: dict) -> None:
            new["status"]["replicatedJobsStatus"] = states
            if suspended:
                set_condition(new, "Suspended", True, "SuspendedJobs", "jobset is suspended")
            elif any(x["type"] == "Suspended" for x in new["status"].get("conditions", [])):
                set_condition(new, "Suspended", False, "ResumeJobs", "jobset is resumed")

        self.store.change(self.store.key(jobset), count)


def _action(policy: dict, job: dict) -> str:
    """The action of the first rule that fits a failed Job."""
    reason = condition_of(job, "Failed").get("reason", "")
    name = job["metadata"]["labels"][PREFIX + "replicatedjob-name"]
    for rule in policy.get("rules", []):
        reasons, targets = rule.get("onJobFailureReasons"), rule.get("targetReplicatedJobs")
        if (not reasons or reason in reasons) and (not targets or name in targets):
            return rule["action"]
    return "RestartJobSet"


def _jobs_of(jobset: dict) -> list[dict]:
    """The Jobs of the present attempt."""
    metadata, spec = jobset["metadata"], jobset["spec"]
    jobs = []
    for replicated in spec["replicatedJobs"]:
        for index in range(replicated["replicas"]):
            template = copy.deepcopy(replicated["template"])
            name = f"{metadata['name']}-{replicated['name']}-{index}"
            labels = {
                "jobset-name": metadata["name"],
                "jobset-uid": metadata["uid"],
                "replicatedjob-name": replicated["name"],
                "replicatedjob-replicas": str(replicated["replicas"]),
                "job-index": str(index),
                "job-global-index": str(len(jobs)),
                "job-key": hashlib.sha1(f"{metadata['namespace']}/{name}".encode()).hexdigest(),
                "restart-attempt": str(jobset["status"]["restarts"]),
            }
            labels = {PREFIX + key: value for key, value in labels.items()}
            job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {}, **template}
            job["spec"]["suspend"] = bool(spec.get("suspend"))
            pods = job["spec"]["template"]
            for part in (job["metadata"], pods.setdefault("metadata", {})):
                part.setdefault("labels", {}).update(labels)
                part.setdefault("annotations", {}).update(labels)
            job["metadata"] |= {"name": name, "namespace": metadata["namespace"], "ownerReferences": [reference(jobset)]}
            if spec["network"]["enableDNSHostnames"]:
                pods["spec"]["subdomain"] = spec["network"].get("subdomain") or metadata["name"]
            jobs.append(job)
    return jobs
