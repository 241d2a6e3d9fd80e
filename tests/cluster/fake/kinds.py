"""The kinds of objects that are served, and the documents from which clients discover them.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from dataclasses import dataclass

VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


@dataclass(frozen=True)
class Kind:
    group: str
    version: str
    name: str
    plural: str
    short: tuple[str, ...] = ()
    namespaced: bool = True
    # The fields beside metadata.name and metadata.namespace by which a field selector may choose.
    fields: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The name in messages: jobs.batch."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def typed(self) -> str:
        """The name in messages about what an object says: Job.batch."""
        return f"{self.name}.{self.group}" if self.group else self.name

    @property
    def path(self) -> str:
        root = f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"
        return f"{root}/namespaces/{{namespace}}/{self.plural}" if self.namespaced else f"{root}/{self.plural}"


POD_FIELDS = ("spec.nodeName", "spec.restartPolicy", "status.phase", "status.podIP")
EVENT_FIELDS = (*(f"involvedObject.{x}" for x in ("kind", "name", "namespace", "uid")), "reason", "type")

ALL = [
    Kind("", "v1", "Namespace", "namespaces", ("ns",), namespaced=False),
    Kind("", "v1", "Node", "nodes", ("no",), namespaced=False),
    Kind("", "v1", "Pod", "pods", ("po",), fields=POD_FIELDS),
    Kind("", "v1", "ConfigMap", "configmaps", ("cm",)),
    Kind("", "v1", "Secret", "secrets", fields=("type",)),
    Kind("", "v1", "Service", "services", ("svc",)),
    Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", ("pvc",)),
    Kind("", "v1", "Event", "events", ("ev",), fields=EVENT_FIELDS),
    Kind("batch", "v1", "Job", "jobs"),
    Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", ("netpol",)),
    Kind("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"),
]

REVIEW = Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)


class Catalog:
    """The kinds of one cluster."""

    def __init__(self, version: str, jobsets: bool):
        self.version = version
        self.kinds = [kind for kind in ALL if jobsets or kind.plural != "jobsets"]
        self.by_plural = {kind.plural: kind for kind in self.kinds}
        self.documents = self._documents()

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        kind = self.by_plural.get(plural)
        return kind if kind and (kind.group, kind.version) == (group, version) else None

    def by_name(self, name: str) -> Kind | None:
        return next((kind for kind in self.kinds if kind.name == name), None)

    def _documents(self) -> dict[str, dict]:
        served = [*self.kinds, REVIEW]
        groups = sorted({kind.group for kind in served if kind.group})
        documents = {
            "/version": self._version(),
            "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
            "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(group, served) for group in groups]},
            "/openapi/v3": {"paths": {}},
        }
        for group in groups:
            documents[f"/apis/{group}"] = {"kind": "APIGroup", "apiVersion": "v1", **_group(group, served)}
        for api_version in sorted({kind.api_version for kind in served}):
            kinds = [kind for kind in served if kind.api_version == api_version]
            path = f"api/{api_version}" if "/" not in api_version else f"apis/{api_version}"
            documents[f"/{path}"] = {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": api_version,
                "resources": [resource for kind in kinds for resource in _resources(kind)],
            }
            documents["/openapi/v3"]["paths"][path] = {"serverRelativeURL": f"/openapi/v3/{path}"}
            documents[f"/openapi/v3/{path}"] = _openapi(kinds)
        return documents

    def _version(self) -> dict:
        major, minor = self.version.split(".")[:2]
        return {"major": major, "minor": minor, "gitVersion": f"v{major}.{minor}.0", "platform": "linux/amd64"}


def _group(group: str, kinds: list[Kind]) -> dict:
    names = sorted({kind.version for kind in kinds if kind.group == group})
    versions = [{"groupVersion": f"{group}/{name}", "version": name} for name in names]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resources(kind: Kind) -> list[dict]:
    base = {"singularName": kind.name.lower(), "namespaced": kind.namespaced, "kind": kind.name}
    if kind is REVIEW:
        return [{"name": kind.plural, **base, "verbs": ["create"]}]
    resources = [{"name": kind.plural, **base, "shortNames": list(kind.short), "verbs": VERBS}]
    if kind.plural in ("pods", "services", "jobs"):
        resources[0]["categories"] = ["all"]
    if kind.plural == "pods":
        resources.append({"name": "pods/log", **base, "verbs": ["get"]})
        resources.append({"name": "pods/exec", **base, "kind": "PodExecOptions", "verbs": ["create", "get"]})
    if kind.plural in ("pods", "jobs", "jobsets"):
        resources.append({"name": f"{kind.plural}/status", **base, "verbs": ["get", "patch", "update"]})
    return resources


def _openapi(kinds: list[Kind]) -> dict:
    """Says only that the server checks fields itself, which is what makes kubectl leave that to it."""
    parameters = [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}]
    paths = {}
    for kind in kinds:
        gvk = {"group": kind.group, "version": kind.version, "kind": kind.name}
        paths[kind.path + "/{name}"] = {"patch": {"parameters": parameters, "x-kubernetes-group-version-kind": gvk}}
    return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "unversioned"}, "paths": paths}
