"""All objects of the cluster, with the history that watches read, finalizers, owners and garbage collection.

An object in the store is never changed in place: a change puts a new one there, so that readers need no copies.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import copy
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from . import errors
from .kinds import Catalog, Kind

Key = tuple[str, str, str]  # plural, namespace, name

FOREGROUND = "foregroundDeletion"
SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # what generated names end in: nothing that spells a word


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_since(stamp: str) -> float:
    return time.time() - datetime.fromisoformat(stamp).timestamp()


def suffix() -> str:
    return "".join(random.choices(SUFFIX, k=5))


def reference(owner: dict) -> dict:
    """An entry of ownerReferences, as a controller writes it."""
    names = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
    return {**names, "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}


def owned_by(found: dict, uid: str) -> bool:
    return any(owner["uid"] == uid for owner in found["metadata"].get("ownerReferences", []))


def condition_of(found: dict, name: str) -> dict | None:
    """A condition that is true."""
    conditions = found.get("status", {}).get("conditions", [])
    return next((x for x in conditions if x["type"] == name and x["status"] == "True"), None)


def set_condition(found: dict, name: str, value: bool, reason: str = "", message: str = "") -> None:
    """Sets one condition in an object that is being changed; its time moves only when its value does."""
    conditions = found["status"].setdefault("conditions", [])
    old = next((x for x in conditions if x["type"] == name), None)
    new = {"type": name, "status": str(value), "lastTransitionTime": now()}
    new |= {key: text for key, text in (("reason", reason), ("message", message)) if text}
    if old:
        if old["status"] == new["status"]:
            new["lastTransitionTime"] = old["lastTransitionTime"]
        conditions[conditions.index(old)] = new
    else:
        conditions.append(new)


class Store:
    def __init__(self, catalog: Catalog):
        self.catalog = catalog
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.objects: dict[Key, dict] = {}
        self.version = 100
        self.oldest = 100  # the version after which the history is complete
        self.history: list[tuple[int, str, Key, dict]] = []
        self.forgotten = 0  # how many entries the history had before those that it has

    # Reading.

    def get(self, plural: str, namespace: str, name: str) -> dict | None:
        return self.objects.get((plural, namespace, name))

    def list(self, plural: str, namespace: str = "") -> list[dict]:
        with self.lock:
            return [x for (kind, where, _), x in self.objects.items() if kind == plural and namespace in ("", where)]

    def owned(self, plural: str, owner: dict) -> list[dict]:
        uid = owner["metadata"]["uid"]
        return [x for x in self.list(plural, owner["metadata"].get("namespace", "")) if owned_by(x, uid)]

    def since(self, version: int, place: int) -> tuple[int, list[tuple[int, str, Key, dict]]]:
        """The history after a version, and the place where a later call is to go on. The lock is held."""
        if version < self.oldest:
            raise errors.ApiError(410, f"too old resource version: {version} ({self.oldest})")
        events = [event for event in self.history[max(0, place - self.forgotten) :] if event[0] > version]
        return self.forgotten + len(self.history), events

    def compact(self) -> None:
        """Forgets the history: a watch that starts at an old version, or still has to catch up, is told so by 410."""
        with self.lock:
            self.forgotten += len(self.history)
            self.history.clear()
            self.oldest = self.version

    # Writing.

    def _put(self, event: str, key: Key, found: dict) -> None:
        self.version += 1
        found["metadata"]["resourceVersion"] = str(self.version)
        if event == "DELETED":
            del self.objects[key]
        else:
            self.objects[key] = found
        self.history.append((self.version, event, key, found))
        self.changed.notify_all()

    def key(self, found: dict) -> Key:
        kind = self.catalog.by_name(found["kind"])
        return kind.plural, found["metadata"].get("namespace", ""), found["metadata"]["name"]

    def create(self, kind: Kind, found: dict, *, keep: bool = True) -> dict:
        """Keeps a copy of an object that has been checked and completed; a dry run does not keep it."""
        found = copy.deepcopy(found)
        metadata = found["metadata"]
        metadata |= {"creationTimestamp": now(), "generation": 1}
        with self.lock:
            key = self.key(found)
            if key in self.objects:
                raise errors.already_exists(kind, metadata["name"])
            if keep:
                self._put("ADDED", key, found)
        return found

    def change(self, key: Key, mutate: Callable[[dict], None]) -> dict | None:
        """Changes an object by a function that gets a copy of it. Nothing happens to an object that is gone."""
        with self.lock:
            old = self.objects.get(key)
            if old is None:
                return None
            new = copy.deepcopy(old)
            mutate(new)
            if new == old:
                return old
            if new.get("spec") != old.get("spec"):
                new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
            self._put("MODIFIED", key, new)
            self._settle(key)
            return new

    def _settle(self, key: Key) -> None:
        """Removes what is being deleted and has nothing left to wait for. A pod waits for its processes."""
        found = self.objects[key]
        metadata = found["metadata"]
        if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
            return
        if key[0] == "pods" and metadata["deletionGracePeriodSeconds"] > 0:
            return
        self._put("DELETED", key, copy.deepcopy(found))

    def delete(self, key: Key, policy: str = "Background", grace: int | None = None) -> dict:
        """Starts the deletion of an object that exists. Returns it, as it was last."""
        with self.lock:
            found = self.objects[key]
            if policy == "Orphan":
                self._orphan(found)
            if key[0] == "pods":
                grace = found["spec"].get("terminationGracePeriodSeconds", 30) if grace is None else grace
                grace = grace if found["spec"].get("nodeName") else 0
                grace = 0 if found["status"]["phase"] in ("Succeeded", "Failed") else grace
            else:
                grace = 0

            def mark(new: dict) -> None:
                metadata = new["metadata"]
                metadata.setdefault("deletionTimestamp", now())
                # A second deletion may shorten the time that a pod has, never lengthen it.
                metadata["deletionGracePeriodSeconds"] = min(grace, metadata.get("deletionGracePeriodSeconds", grace))
                if policy == "Foreground" and FOREGROUND not in metadata.get("finalizers", []):
                    metadata.setdefault("finalizers", []).append(FOREGROUND)

            self.change(key, mark)
            if key in self.objects:  # a mark that changed nothing settles nothing
                self._settle(key)
            return self.objects.get(key, found)

    def _orphan(self, owner: dict) -> None:
        uid = owner["metadata"]["uid"]
        for key, found in list(self.objects.items()):
            if owned_by(found, uid):
                self.change(key, lambda new: _disown(new, uid))

    def drop_finalizer(self, key: Key, finalizer: str) -> None:
        def drop(new: dict) -> None:
            kept = [x for x in new["metadata"].get("finalizers", []) if x != finalizer]
            if kept:
                new["metadata"]["finalizers"] = kept
            else:
                new["metadata"].pop("finalizers", None)

        self.change(key, drop)

    def remove_pod(self, key: Key) -> None:
        """A pod whose processes are gone may go as soon as its finalizers do."""

        def mark(new: dict) -> None:
            new["metadata"]["deletionGracePeriodSeconds"] = 0

        self.change(key, mark)

    # Garbage collection.

    def collect(self) -> None:
        """Deletes what has lost all its owners, and lets owners go that waited for their dependents."""
        with self.lock:
            uids = {found["metadata"]["uid"]: found for found in self.objects.values()}
            for key, found in list(self.objects.items()):
                owners = found["metadata"].get("ownerReferences", [])
                waiting = any(x["uid"] in uids and _waits(uids[x["uid"]]) for x in owners)
                lost = bool(owners) and all(x["uid"] not in uids for x in owners)
                if (lost or waiting) and "deletionTimestamp" not in found["metadata"]:
                    deep = waiting and any(owned_by(x, found["metadata"]["uid"]) for x in self.objects.values())
                    self.delete(key, "Foreground" if deep else "Background")
            for key, found in list(self.objects.items()):
                if _waits(found) and not any(self._blocking(found["metadata"]["uid"])):
                    self.drop_finalizer(key, FOREGROUND)

    def _blocking(self, uid: str) -> Iterator[bool]:
        for found in self.objects.values():
            for owner in found["metadata"].get("ownerReferences", []):
                if owner["uid"] == uid and owner.get("blockOwnerDeletion"):
                    yield True

    # Events.

    def event(self, about: dict, reason: str, message: str, *, warning: bool = False, source: str = "kubelet") -> None:
        """Records an event; one that repeats is counted."""
        metadata = about["metadata"]
        involved = {"kind": about["kind"], "apiVersion": about["apiVersion"]}
        involved |= {key: metadata[key] for key in ("name", "namespace", "uid")}
        with self.lock:
            for found in self.list("events", metadata["namespace"]):
                if (found["involvedObject"], found["reason"], found["message"]) == (involved, reason, message):
                    self.change(self.key(found), lambda new: new.update(count=new["count"] + 1, lastTimestamp=now()))
                    return
            stamp = now()
            name = f"{metadata['name']}.{uuid.uuid4().hex[:16]}"
            record = {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": name, "namespace": metadata["namespace"], "uid": str(uuid.uuid4())},
                "involvedObject": involved,
                "reason": reason,
                "message": message,
                "type": "Warning" if warning else "Normal",
                "source": {"component": source},
                "firstTimestamp": stamp,
                "lastTimestamp": stamp,
                "count": 1,
            }
            self.create(self.catalog.by_plural["events"], record)


def _waits(found: dict) -> bool:
    metadata = found["metadata"]
    return "deletionTimestamp" in metadata and FOREGROUND in metadata.get("finalizers", [])


def _disown(new: dict, uid: str) -> None:
    kept = [owner for owner in new["metadata"]["ownerReferences"] if owner["uid"] != uid]
    if kept:
        new["metadata"]["ownerReferences"] = kept
    else:
        del new["metadata"]["ownerReferences"]
