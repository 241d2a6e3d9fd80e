"""What requests do to objects.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import yaml

from . import errors, selectors
from .cluster import Cluster
from .errors import ApiError
from .kinds import REVIEW, Kind
from .store import Key

MERGE = ("application/merge-patch+json", "application/strategic-merge-patch+json")
APPLY = "application/apply-patch+yaml"


@dataclass
class Request:
    """A request, as far as its path says what it is about."""

    verb: str
    kind: Kind
    namespace: str
    name: str
    sub: str
    query: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = ""
    user: str = ""

    @property
    def resource(self) -> str:
        return f"{self.kind.plural}/{self.sub}" if self.sub else self.kind.plural

    @property
    def key(self) -> Key:
        return self.kind.plural, self.namespace, self.name

    def parsed(self) -> dict:
        if self.content_type.startswith("application/vnd.kubernetes.protobuf"):
            raise unknown_format("application/json", "application/yaml")
        try:
            found = yaml.safe_load(self.body) if "yaml" in self.content_type else json.loads(self.body)
        except (ValueError, yaml.YAMLError) as error:
            raise ApiError(400, f"the object provided is unrecognized: {error}") from error
        if not isinstance(found, dict):
            raise ApiError(400, "the object provided is unrecognized")
        return found


class Api:
    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.store = cluster.store

    def answer(self, request: Request) -> tuple[int, dict]:
        return getattr(self, "_" + request.verb)(request)

    def found(self, request: Request) -> dict:
        found = self.store.get(*request.key)
        if found is None:
            raise errors.not_found(request.kind, request.name)
        return found

    def test(self, request: Request) -> selectors.Test:
        query = request.query
        return selectors.both(query.get("labelSelector", ""), query.get("fieldSelector", ""), request.kind)

    def _get(self, request: Request) -> tuple[int, dict]:
        return 200, self.found(request)

    def _list(self, request: Request) -> tuple[int, dict]:
        test = self.test(request)
        with self.store.lock:
            items = [found for found in self.store.list(request.kind.plural, request.namespace) if test(found)]
            metadata = {"resourceVersion": str(self.store.version)}
        items.sort(key=lambda found: (found["metadata"].get("namespace", ""), found["metadata"]["name"]))
        kind = request.kind
        return 200, {"kind": kind.name + "List", "apiVersion": kind.api_version, "metadata": metadata, "items": items}

    def _create(self, request: Request) -> tuple[int, dict]:
        found = request.parsed()
        if request.kind is REVIEW:
            return 201, self._review(request, found)
        self._check_type(request, found)
        return 201, self._admit(request, found)

    def _admit(self, request: Request, found: dict) -> dict:
        metadata = found.setdefault("metadata", {})
        if request.namespace:
            if metadata.setdefault("namespace", request.namespace) != request.namespace:
                raise ApiError(400, "the namespace of the provided object does not match the namespace sent on the request")
            if not self.store.get("namespaces", "", request.namespace):
                raise errors.not_found(self.cluster.catalog.by_plural["namespaces"], request.namespace)
        return self.cluster.admit(request.kind, found, keep="dryRun" not in request.query)

    def _check_type(self, request: Request, found: dict) -> None:
        kind = request.kind
        given = (found.get("apiVersion", kind.api_version), found.get("kind", kind.name))
        if given != (kind.api_version, kind.name):
            text = f"{kind.name} in version {kind.version!r} cannot be handled: the body has {given[1]} of {given[0]}"
            raise ApiError(400, text)
        found |= {"apiVersion": kind.api_version, "kind": kind.name}

    def _review(self, request: Request, found: dict) -> dict:
        """Whether the user may do something: kubectl auth can-i."""
        wanted = found.get("spec", {}).get("resourceAttributes", {})
        resource = "/".join(filter(None, (wanted.get("resource", ""), wanted.get("subresource", ""))))
        allowed = self.cluster.authority.allowed(request.user, wanted.get("verb", ""), resource, wanted.get("namespace", ""))
        return {**found, "status": {"allowed": allowed}}

    def _update(self, request: Request) -> tuple[int, dict]:
        found = request.parsed()
        self._check_type(request, found)
        given = found.get("metadata", {}).get("resourceVersion")
        return 200, self._replace(request, lambda old: {**found, "metadata": {**found["metadata"], **_identity(old)}}, given)

    def _patch(self, request: Request) -> tuple[int, dict]:
        kind = request.content_type.split(";")[0]
        if kind not in (*MERGE, APPLY):
            raise unknown_format(*MERGE, APPLY)
        patch = request.parsed()
        if kind == APPLY and not self.store.get(*request.key):
            return 201, self._admit(request, patch)
        given = patch.get("metadata", {}).pop("resourceVersion", None)
        return 200, self._replace(request, lambda old: merged(old, patch), given)

    def _replace(self, request: Request, make, given: str | None) -> dict:
        with self.store.lock:
            old = self.found(request)
            if given and given != old["metadata"]["resourceVersion"]:
                why = "the object has been modified; please apply your changes to the latest version and try again"
                raise errors.conflict(request.kind, request.name, why)
            new = make(old)
            part, whole = (new, old) if request.sub == "status" else (old, new)
            new = {key: value for key, value in whole.items() if key != "status"}
            new |= {"status": part["status"]} if "status" in part else {}
            self._check_change(request, old, new)

            def put(found: dict) -> None:
                found.clear()
                found.update(new)

            if "dryRun" in request.query:
                return new
            return self.store.change(request.key, put) or new

    def _check_change(self, request: Request, old: dict, new: dict) -> None:
        if request.kind.name in ("ConfigMap", "Secret") and old.get("immutable"):
            raise errors.invalid(request.kind, request.name, ["data: Forbidden: field is immutable when `immutable` is set"])
        fixed = {"Job": ("template", "completions", "completionMode", "podFailurePolicy"), "JobSet": ("replicatedJobs",)}
        fixed["Pod"] = tuple(old.get("spec", {}))
        for part in fixed.get(request.kind.name, ()):
            if old["spec"].get(part) != new["spec"].get(part):
                raise errors.invalid(request.kind, request.name, [f"spec.{part}: Invalid value: field is immutable"])
        if request.kind.name not in ("Job", "JobSet", "Pod"):
            self.cluster.validator.check(request.kind, new)

    # Deletion.

    def _delete(self, request: Request) -> tuple[int, dict]:
        options = self._options(request)
        with self.store.lock:
            found = self.found(request)
            metadata = found["metadata"]
            for field_name, wanted in options.get("preconditions", {}).items():
                if metadata[field_name] != wanted:
                    why = f"Precondition failed: {field_name} in precondition: {wanted}, in object: {metadata[field_name]}"
                    raise errors.conflict(request.kind, request.name, why)
            if "dryRun" not in request.query:
                found = self._start_deletion(request.kind, found, options)
        if self.store.get(*request.key):
            return 200, found
        details = {**errors.details_of(request.kind, request.name), "uid": metadata["uid"]}
        return 200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}

    def _deletecollection(self, request: Request) -> tuple[int, dict]:
        test = self.test(request)
        options = self._options(request)
        with self.store.lock:
            answer = self._list(request)
            for found in filter(test, self.store.list(request.kind.plural, request.namespace)):
                self._start_deletion(request.kind, found, options)
        return answer

    def _options(self, request: Request) -> dict:
        options = request.parsed() if request.body else {}
        query = request.query
        if "propagationPolicy" in query:
            options["propagationPolicy"] = query["propagationPolicy"]
        if "gracePeriodSeconds" in query:
            options["gracePeriodSeconds"] = int(query["gracePeriodSeconds"])
        if options.get("propagationPolicy", "Orphan") not in ("Orphan", "Background", "Foreground"):
            raise ApiError(422, f'DeleteOptions is invalid: propagationPolicy: "{options["propagationPolicy"]}"')
        return options

    def _start_deletion(self, kind: Kind, found: dict, options: dict) -> dict:
        # A Job that is deleted without a word about its pods leaves them: so it was before there was a policy.
        policy = options.get("propagationPolicy") or ("Orphan" if kind.name == "Job" else "Background")
        found = self.store.delete(self.store.key(found), policy, options.get("gracePeriodSeconds"))
        if kind.name == "Pod":
            self.store.event(found, "Killing", f"Stopping pod {found['metadata']['name']}")
        return found


def unknown_format(*known: str) -> ApiError:
    text = f"the body of the request was in an unknown format - accepted media types include: {', '.join(known)}"
    return ApiError(415, text)


def _identity(old: dict) -> dict:
    kept = ("name", "namespace", "uid", "creationTimestamp", "generation", "deletionTimestamp", "resourceVersion")
    return {key: old["metadata"][key] for key in kept if key in old["metadata"]}


def merged(old: object, patch: object) -> object:
    """RFC 7386. Finalizers and owners may be patched so too."""
    if not isinstance(patch, dict):
        return patch
    new = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = merged(new.get(key), value)
    return new
