"""The names that pods can resolve: what a cluster's DNS serves, in a hosts file for each pod.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import pathlib

from .environment import hostname
from .selectors import matches
from .store import Store, condition_of

LOCAL = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n"


def _published(pod: dict, service: dict) -> bool:
    spec = service["spec"]
    if spec.get("clusterIP") != "None" or not spec.get("selector"):
        return False
    if not matches(spec["selector"], pod["metadata"].get("labels", {})):
        return False
    if not pod["status"].get("podIP") or pod["status"]["phase"] in ("Succeeded", "Failed"):
        return False
    if spec.get("publishNotReadyAddresses"):
        return True
    return bool(condition_of(pod, "Ready")) and "deletionTimestamp" not in pod["metadata"]


def _forms(name: str, namespace: str) -> list[str]:
    return [name, f"{name}.{namespace}", f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.cluster.local"]


def records(store: Store, namespace: str) -> list[str]:
    """The lines for the pods of headless Services; a name without a dot is that of the Service, with all addresses."""
    lines = []
    for service in store.list("services", namespace):
        name = service["metadata"]["name"]
        for pod in store.list("pods", namespace):
            if _published(pod, service):
                names = _forms(name, namespace)
                if pod["spec"].get("hostname") and pod["spec"].get("subdomain") == name:
                    names = _forms(f"{pod['spec']['hostname']}.{name}", namespace) + names
                lines.append(f"{pod['status']['podIP']} {' '.join(names)}\n")
    return lines


def text_for(pod: dict, records: list[str]) -> str:
    own = hostname(pod)
    subdomain = pod["spec"].get("subdomain")
    names = ([f"{own}.{subdomain}.{pod['metadata']['namespace']}.svc.cluster.local"] if subdomain else []) + [own]
    return "".join([LOCAL, f"{pod['status']['podIP']} {' '.join(names)}\n", *records])


def write(folder: pathlib.Path, text: str) -> None:
    """Puts a new hosts file in place of the old one, at once."""
    new = folder / "hosts.new"
    new.write_text(text)
    os.replace(new, folder / "hosts")
