"""Refuses objects that a real API server would refuse: by the published schemas, strictly, and by what they cannot say.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
from collections.abc import Iterator

from .errors import ApiError, invalid
from .kinds import Kind

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
SERVICE = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
SUBDOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?")
VALUE = re.compile(r"([A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?)?")
DATA_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
VARIABLE = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
QUANTITY = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([numkKMGTPE]i?|[eE][+-]?\d+)?")
MIB = 1 << 20


class Validator:
    def __init__(self, versions: list[str]):
        self.versions = versions

    def check(self, kind: Kind, found: dict) -> None:
        """Raises what the server answers with."""
        try:
            why = _jobset_schema(found, self.versions) if kind.name == "JobSet" else _schema(found, self.versions)
            causes = [] if why else [*_metadata(kind, found["metadata"]), *_BY_KIND.get(kind.name, lambda _: ())(found)]
        except (AttributeError, KeyError, TypeError) as error:  # what schemas let pass, and the types of a server do not
            why, causes = f"json: cannot unmarshal: {error}", []
        if why:
            raise ApiError(400, f"{kind.name} in version {kind.version!r} cannot be handled as a {kind.name}: {why}")
        if causes:
            metadata = found["metadata"]
            raise invalid(kind, metadata.get("name") or metadata.get("generateName", ""), causes)


def _schema(found: dict, versions: list[str]) -> str | None:
    """What the schema of the oldest version says that refuses an object."""
    import kubernetes_validate

    for version in versions:
        try:
            kubernetes_validate.validate(found, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            where = ".".join(str(x) for x in error.path)
            return f"strict decoding error: {where or 'object'}: {error.message} (Kubernetes {version})"
        except kubernetes_validate.SchemaNotFoundError as error:
            return error.message
    return None


@functools.cache
def _jobset_model() -> type:
    from kubeflow_trainer_api.models import JobsetV1alpha2JobSet

    return JobsetV1alpha2JobSet


def _jobset_schema(found: dict, versions: list[str]) -> str | None:
    try:
        read = _jobset_model().from_dict(found)
    except ValueError as error:
        return " ".join(str(error).split())
    lost = list(_lost(found, read.to_dict(), ""))
    if lost:
        return f'strict decoding error: unknown field "{lost[0]}"'
    for index, replicated in enumerate(found.get("spec", {}).get("replicatedJobs") or []):
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": replicated["template"]["spec"]}
        why = _schema(job, versions)
        if why:
            return f"spec.replicatedJobs[{index}].template: {why}"
    return None


def _lost(given: object, kept: object, at: str) -> Iterator[str]:
    """The paths of what a model did not keep."""
    if isinstance(given, dict):
        for key, value in given.items():
            path = f"{at}.{key}" if at else key
            if not isinstance(kept, dict) or key not in kept:
                yield path
            else:
                yield from _lost(value, kept[key], path)
    elif isinstance(given, list):
        for index, value in enumerate(given):
            if not isinstance(kept, list) or index >= len(kept):
                yield f"{at}[{index}]"
            else:
                yield from _lost(value, kept[index], f"{at}[{index}]")


def _metadata(kind: Kind, metadata: dict) -> Iterator[str]:
    name = metadata.get("name") or metadata.get("generateName", "").rstrip("-.") + "-x"
    pattern = {"Service": SERVICE, "Namespace": LABEL}.get(kind.name, SUBDOMAIN)
    if not metadata.get("name") and not metadata.get("generateName"):
        yield "metadata.name: Required value: name or generateName is required"
    elif not pattern.fullmatch(name):
        yield f'metadata.name: Invalid value: "{name}": must be a lowercase RFC 1123 name'
    yield from _labels(metadata.get("labels"), "metadata.labels")
    for key in metadata.get("annotations") or {}:
        if not KEY.fullmatch(key.lower()):
            yield f'metadata.annotations: Invalid value: "{key}": name part must consist of alphanumeric characters'
    for owner in metadata.get("ownerReferences") or []:
        if not owner["uid"]:
            yield "metadata.ownerReferences.uid: Required value: uid must not be empty"


def _labels(labels: dict | None, at: str) -> Iterator[str]:
    for key, value in (labels or {}).items():
        if not KEY.fullmatch(key):
            yield f'{at}: Invalid value: "{key}": name part must consist of alphanumeric characters'
        if not VALUE.fullmatch(value or ""):
            yield f'{at}: Invalid value: "{value}": a valid label must be empty or consist of alphanumeric characters'


def _configmap(found: dict) -> Iterator[str]:
    texts = {key: (value or "").encode() for key, value in (found.get("data") or {}).items()}
    yield from _data({**texts, **(found.get("binaryData") or {})})
    for key, value in (found.get("binaryData") or {}).items():
        yield from _base64(f"binaryData[{key}]", value)


def _secret(found: dict) -> Iterator[str]:
    for key, value in (found.get("data") or {}).items():
        yield from _base64(f"data[{key}]", value or "")
    texts = {key: (value or "").encode() for key, value in (found.get("stringData") or {}).items()}
    yield from _data({**(found.get("data") or {}), **texts})


def _base64(at: str, value: str) -> Iterator[str]:
    try:
        base64.b64decode(value, validate=True)
    except binascii.Error:
        yield f"{at}: Invalid value: illegal base64 data"


def _data(data: dict) -> Iterator[str]:
    for key in data:
        if not DATA_KEY.fullmatch(key) or key in (".", ".."):
            yield f'data[{key}]: Invalid value: "{key}": a valid config key must consist of alphanumeric characters'
    sizes = [len(x) if isinstance(x, bytes) else len(x) * 3 // 4 for x in data.values()]
    if sum(sizes) > MIB:
        yield f"data: Too long: may not be more than {MIB} bytes"


def _service(found: dict) -> Iterator[str]:
    spec = found.get("spec") or {}
    yield from _labels(spec.get("selector"), "spec.selector")
    if spec.get("clusterIP") != "None" and spec.get("type", "ClusterIP") != "ExternalName" and not spec.get("ports"):
        yield "spec.ports: Required value"


def _network_policy(found: dict) -> Iterator[str]:
    yield from _labels(found["spec"].get("podSelector", {}).get("matchLabels"), "spec.podSelector.matchLabels")


def _claim(found: dict) -> Iterator[str]:
    spec = found.get("spec") or {}
    if not spec.get("accessModes"):
        yield "spec.accessModes: Required value: at least 1 access mode is required"
    if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
        yield "spec.resources[storage]: Required value"


def _pod(found: dict) -> Iterator[str]:
    yield from pod_spec(found["spec"], "spec")


def pod_spec(spec: dict, at: str) -> Iterator[str]:
    for field in ("hostname", "subdomain"):
        if spec.get(field) and not LABEL.fullmatch(spec[field]):
            yield f'{at}.{field}: Invalid value: "{spec[field]}": must be a lowercase RFC 1123 label'
    volumes = [volume["name"] for volume in spec.get("volumes") or []]
    if len(set(volumes)) < len(volumes):
        yield f"{at}.volumes: Duplicate value"
    names = []
    if not spec.get("containers"):
        yield f"{at}.containers: Required value"
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group) or []):
            where = f"{at}.{group}[{index}]"
            names.append(container["name"])
            if not LABEL.fullmatch(container["name"]):
                yield f'{where}.name: Invalid value: "{container["name"]}": must be a lowercase RFC 1123 label'
            if not container.get("image"):
                yield f"{where}.image: Required value"
            yield from _container(container, volumes, where)
    if len(set(names)) < len(names):
        yield f"{at}.containers: Duplicate value"


def _container(container: dict, volumes: list[str], at: str) -> Iterator[str]:
    paths = []
    for index, mount in enumerate(container.get("volumeMounts") or []):
        if mount["name"] not in volumes:
            yield f'{at}.volumeMounts[{index}].name: Not found: "{mount["name"]}"'
        if mount["mountPath"] in paths:
            yield f'{at}.volumeMounts[{index}].mountPath: Invalid value: "{mount["mountPath"]}": must be unique'
        paths.append(mount["mountPath"])
    for index, variable in enumerate(container.get("env") or []):
        if not VARIABLE.fullmatch(variable["name"]):
            yield f'{at}.env[{index}].name: Invalid value: "{variable["name"]}"'
        if variable.get("value") and variable.get("valueFrom"):
            yield f"{at}.env[{index}].valueFrom: Invalid value: may not be specified when `value` is not empty"
    resources = container.get("resources") or {}
    for part in ("requests", "limits"):
        for name, value in (resources.get(part) or {}).items():
            if not QUANTITY.fullmatch(str(value)):
                yield f'{at}.resources.{part}[{name}]: Invalid value: "{value}": quantities must match a regular expression'


def _job(found: dict) -> Iterator[str]:
    yield from job_spec(found["metadata"].get("name", ""), found["spec"], "spec")


def job_spec(name: str, spec: dict, at: str) -> Iterator[str]:
    template = spec["template"]["spec"]
    restart = template.get("restartPolicy", "Always")
    if restart not in ("Never", "OnFailure"):
        yield f'{at}.template.spec.restartPolicy: Unsupported value: "{restart}": supported values: "OnFailure", "Never"'
    indexed = spec.get("completionMode") == "Indexed"
    if indexed:
        if spec.get("completions") is None:
            yield f"{at}.completions: Required value: when completion mode is Indexed"
        longest = f"{name}-{max(0, (spec.get('completions') or 1) - 1)}"
        if not LABEL.fullmatch(longest):
            yield f'metadata.name: Invalid value: "{longest}": will not be able to create pod with invalid DNS label'
    if spec.get("backoffLimitPerIndex") is not None and not indexed:
        yield f"{at}.backoffLimitPerIndex: Invalid value: requires indexed completion mode"
    for field in ("parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished", "activeDeadlineSeconds"):
        if (spec.get(field) or 0) < 0:
            yield f"{at}.{field}: Invalid value: {spec[field]}: must be greater than or equal to 0"
    yield from _labels((spec["template"].get("metadata") or {}).get("labels"), f"{at}.template.labels")
    yield from pod_spec(template, f"{at}.template.spec")
    yield from _failure_policy(spec, template, f"{at}.podFailurePolicy")


def _failure_policy(spec: dict, template: dict, at: str) -> Iterator[str]:
    policy = spec.get("podFailurePolicy")
    if not policy:
        return
    if template.get("restartPolicy") != "Never":
        yield f"{at}: Invalid value: only 'Never' is supported as restartPolicy when podFailurePolicy is specified"
    names = [x["name"] for x in (template.get("containers") or []) + (template.get("initContainers") or [])]
    for index, rule in enumerate(policy["rules"]):
        where = f"{at}.rules[{index}]"
        codes = rule.get("onExitCodes")
        if bool(codes) == bool(rule.get("onPodConditions")):
            yield f"{where}: Invalid value: specifying one of OnExitCodes and OnPodConditions is required"
        if rule["action"] == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            yield f'{where}.action: Invalid value: "FailIndex": requires the backoffLimitPerIndex'
        if not codes:
            continue
        if not codes["values"] or codes["values"] != sorted(set(codes["values"])):
            yield f"{where}.onExitCodes.values: Invalid value: must be ordered, unique and not empty"
        if codes["operator"] == "In" and 0 in codes["values"]:
            yield f"{where}.onExitCodes.values: Invalid value: 0: must not be 0 for the In operator"
        if codes.get("containerName") and codes["containerName"] not in names:
            name = codes["containerName"]
            yield f'{where}.onExitCodes.containerName: Invalid value: "{name}": must be one of the containers'


def _jobset(found: dict) -> Iterator[str]:
    name, spec = found["metadata"].get("name", ""), found["spec"]
    if not SERVICE.fullmatch((spec.get("network") or {}).get("subdomain") or name):
        yield f'metadata.name: Invalid value: "{name}": must be a DNS-1035 label, the name of the headless service'
    names = [job["name"] for job in spec.get("replicatedJobs") or []]
    if len(set(names)) < len(names):
        yield "spec.replicatedJobs: Duplicate value"
    targets = list((spec.get("successPolicy") or {}).get("targetReplicatedJobs") or [])
    for rule in (spec.get("failurePolicy") or {}).get("rules") or []:
        targets += rule.get("targetReplicatedJobs") or []
    for target in targets:
        if target not in names:
            yield f'spec: Invalid value: "{target}" does not appear in .spec.ReplicatedJobs'
    for index, job in enumerate(spec.get("replicatedJobs") or []):
        longest = f"{name}-{job['name']}-{max(0, job.get('replicas', 1) - 1)}"
        if not LABEL.fullmatch(longest):
            yield f'spec.replicatedJobs[{index}]: Invalid value: "{longest}": must be no more than 63 characters'
        yield from job_spec(longest, jobset_defaults(job["template"]["spec"]), f"spec.replicatedJobs[{index}].template.spec")


def jobset_defaults(spec: dict) -> dict:
    """What the webhook of JobSet adds to the Jobs in it."""
    template = spec["template"]
    pod = {"restartPolicy": "OnFailure", **template["spec"]}
    defaults = {"completionMode": "Indexed"}
    if "completions" not in spec and "parallelism" not in spec:
        defaults |= {"completions": 1, "parallelism": 1}
    return {**defaults, **spec, "template": {**template, "spec": pod}}


_BY_KIND = {
    "ConfigMap": _configmap,
    "Job": _job,
    "JobSet": _jobset,
    "NetworkPolicy": _network_policy,
    "PersistentVolumeClaim": _claim,
    "Pod": _pod,
    "Secret": _secret,
    "Service": _service,
}
