"""One cluster: its objects, the controllers that act on them, and what the command line says about it.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import pathlib
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from . import errors, selectors
from .auth import Authority
from .container import abilities
from .defaults import complete, without_nulls
from .faults import Faults
from .jobs import Jobs
from .jobsets import JobSets
from .kinds import Catalog, Kind
from .kubelet import Kubelet
from .store import Store
from .validation import Validator

TICK = 0.1  # seconds between looks at what depends on time alone


@dataclass
class Settings:
    folder: pathlib.Path
    images: dict[str, str] = field(default_factory=dict)
    passed: list[str] = field(default_factory=list)  # names of variables of this process that containers get
    shared: list[str] = field(default_factory=list)  # folders that containers share with the machine
    limit_memory: bool = False
    restart_delay: float = 1.0
    backoff: float = 0.1
    account_files: Callable[[str], dict[str, str]] = lambda namespace: {}  # of a service account
    port: int = 0

    @property
    def network(self) -> str:
        """The first three numbers of the addresses of pods: other clusters of this machine have other ones."""
        return f"127.{self.port >> 8}.{self.port & 255}"

    def claim_folder(self, namespace: str, name: str) -> pathlib.Path:
        path = self.folder / "claims" / namespace / name
        if not path.exists():
            path.mkdir(parents=True)
            path.chmod(0o777)  # as a storage class makes it whose pods may have any user
        return path


class Cluster:
    def __init__(self, settings: Settings, catalog: Catalog, versions: list[str]):
        self.settings = settings
        self.catalog = catalog
        self.store = Store(catalog)
        self.authority = Authority(settings.folder)
        settings.account_files = self.authority.account_files
        self.validator = Validator(versions)
        self.faults = Faults()
        self.quota: dict[str, int] = {}  # the most objects of a kind, by plural
        self.kubelet = Kubelet(self.store, settings, settings.folder / "pods", abilities(settings.folder))
        self.jobs = Jobs(self.store, self._create_pod, settings.backoff)
        self.jobsets = JobSets(self.store)
        self.stopping = False
        self.manager = threading.Thread(target=self._manage, daemon=True)

    def start(self, namespaces: list[str], claims: list[str]) -> None:
        for name in namespaces:
            self._add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for index in range(3):
            status = {"conditions": [{"type": "Ready", "status": "True"}], "capacity": {"cpu": "8", "memory": "32Gi"}}
            self._add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{index}"}, "status": status})
        for name in claims:
            spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
            metadata = {"name": name, "namespace": namespaces[0]}
            self._add({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
            self.settings.claim_folder(namespaces[0], name)
        self.manager.start()

    def stop(self) -> None:
        self.stopping = True
        with self.store.changed:
            self.store.changed.notify_all()
        self.manager.join()
        self.kubelet.close()

    def _add(self, found: dict) -> None:
        kind = self.catalog.by_name(found["kind"])
        self.store.create(kind, complete(kind, found))

    def _manage(self) -> None:
        seen = -1
        while not self.stopping:
            with self.store.changed:
                if seen == self.store.version:
                    self.store.changed.wait(TICK)
                seen = self.store.version
                try:
                    self.store.collect()
                    self.jobsets.reconcile()
                    self.jobs.reconcile()
                    self.kubelet.reconcile()
                except Exception:  # noqa: BLE001  one bad object must not stop the others
                    traceback.print_exc()

    # Objects, as requests have them created.

    def _create_pod(self, found: dict) -> dict:
        return self.admit(self.catalog.by_plural["pods"], found)

    def admit(self, kind: Kind, found: dict, *, keep: bool = True) -> dict:
        """Creates an object, if it is valid and there is room for it."""
        found = without_nulls(found)
        self.validator.check(kind, found)
        found = complete(kind, found)
        with self.store.lock:
            self._check_quota(kind, found)
            return self.store.create(kind, found, keep=keep)

    def _check_quota(self, kind: Kind, found: dict) -> None:
        limit = self.quota.get(kind.plural)
        if limit is None:
            return
        items = self.store.list(kind.plural, found["metadata"].get("namespace", ""))
        used = sum(1 for x in items if selectors.value_at(x, "status.phase") not in ("Succeeded", "Failed"))
        if used >= limit:
            what = kind.plural if kind.plural == "pods" else f"count/{kind.resource}"
            name = found["metadata"].get("name", "")
            why = f"exceeded quota: fake, requested: {what}=1, used: {what}={used}, limited: {what}={limit}"
            raise errors.forbidden(kind, name, why)
