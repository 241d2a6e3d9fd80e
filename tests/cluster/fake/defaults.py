"""What a server adds to an object that is created: defaults, first status, and the encoding of secrets.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import base64
import copy
import uuid

from .kinds import Kind
from .store import now, suffix
from .validation import jobset_defaults


def without_nulls(value: object) -> object:
    """A null stands for a field that is not there."""
    if isinstance(value, dict):
        return {key: without_nulls(x) for key, x in value.items() if x is not None}
    if isinstance(value, list):
        return [without_nulls(x) for x in value]
    return value


def complete(kind: Kind, found: dict) -> dict:
    """A copy of a checked object with all that the server adds, but for what changes with the time."""
    found = copy.deepcopy(found)
    metadata = found["metadata"]
    for field in ("resourceVersion", "creationTimestamp", "deletionTimestamp", "selfLink", "managedFields"):
        metadata.pop(field, None)
    metadata["uid"] = str(uuid.uuid4())
    if not metadata.get("name"):
        metadata["name"] = metadata["generateName"] + suffix()
    if kind.name not in ("Namespace", "Node", "Event"):
        found.pop("status", None)
    _BY_KIND.get(kind.name, lambda _: None)(found)
    return found


def pod_defaults(spec: dict) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("securityContext", {})
    for container in spec.get("initContainers", []) + spec["containers"]:
        container.setdefault("resources", {})
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        container.setdefault("imagePullPolicy", "IfNotPresent" if ":" in container["image"] else "Always")
    for volume in spec.get("volumes", []):
        for source in ("configMap", "secret"):
            if source in volume:
                volume[source].setdefault("defaultMode", 0o644)


def _pod(found: dict) -> None:
    pod_defaults(found["spec"])
    found["spec"].setdefault("serviceAccountName", "default")
    found["status"] = {"phase": "Pending", "qosClass": "Burstable", "conditions": []}


def _secret(found: dict) -> None:
    found.setdefault("type", "Opaque")
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in found.pop("stringData", {}).items()}
    if encoded:
        found["data"] = {**found.get("data", {}), **encoded}


def _claim(found: dict) -> None:
    spec = found["spec"]
    spec |= {"volumeName": f"pvc-{uuid.uuid4()}", "volumeMode": "Filesystem"}
    spec.setdefault("storageClassName", "standard")
    found["status"] = {"phase": "Bound", "accessModes": spec["accessModes"], "capacity": spec["resources"]["requests"]}


def _service(found: dict) -> None:
    spec = found.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("clusterIP", "10.96.0.10")
    found["status"] = {"loadBalancer": {}}


def _job(found: dict) -> None:
    spec = found["spec"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("backoffLimit", (1 << 31) - 1 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    pod_defaults(spec["template"]["spec"])
    name, uid = found["metadata"]["name"], found["metadata"]["uid"]
    labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
    for prefix in ("", "batch.kubernetes.io/"):
        labels |= {f"{prefix}job-name": name, f"{prefix}controller-uid": uid}
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    found["status"] = {}


def _jobset(found: dict) -> None:
    spec = found["spec"]
    network = spec.setdefault("network", {})
    network.setdefault("enableDNSHostnames", True)
    network.setdefault("publishNotReadyAddresses", True)
    spec.setdefault("successPolicy", {"operator": "All"})
    spec.setdefault("startupPolicy", {"startupPolicyOrder": "AnyOrder"})
    for job in spec["replicatedJobs"]:
        job.setdefault("replicas", 1)
        job["template"]["spec"] = jobset_defaults(job["template"]["spec"])
    if "failurePolicy" in spec:
        spec["failurePolicy"].setdefault("maxRestarts", 0)
        spec["failurePolicy"].setdefault("restartStrategy", "Recreate")
    found["status"] = {"restarts": 0}


def _namespace(found: dict) -> None:
    found["status"] = {"phase": "Active"}


def _event(found: dict) -> None:
    found.setdefault("lastTimestamp", now())


_BY_KIND = {
    "Event": _event,
    "Job": _job,
    "JobSet": _jobset,
    "Namespace": _namespace,
    "PersistentVolumeClaim": _claim,
    "Pod": _pod,
    "Secret": _secret,
    "Service": _service,
}
