"""What a container finds: its command line, variables, volumes and rights, as the kubelet makes them from a pod.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import base64
import os
import pathlib
import re
from decimal import Decimal

from .store import Store

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
IMAGE = "/image"  # where a container finds the folder that stands for its image
TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"
UNITS = {"m": Decimal("0.001"), "": Decimal(1)}
UNITS |= {unit + "i": Decimal(1024) ** (power + 1) for power, unit in enumerate("KMGTPE")}
UNITS |= {unit: Decimal(1000) ** (power + 1) for power, unit in enumerate("kMGTPE")}


class NotYet(Exception):
    """Something that a container needs is missing: the reason that its status gives, and the text."""

    def __init__(self, reason: str, text: str):
        super().__init__(text)
        self.reason = reason


def quantity(text: str) -> Decimal:
    number, unit = re.fullmatch(r"([\d.eE+-]+?)(m|[kMGTPE]|[KMGTPE]i)?", str(text)).groups()
    return Decimal(number) * UNITS[unit or ""]


def decoded(kind: str, found: dict) -> dict[str, bytes]:
    """The data of a ConfigMap or Secret."""
    if kind == "secrets":
        return {key: base64.b64decode(value) for key, value in found.get("data", {}).items()}
    data = {key: value.encode() for key, value in found.get("data", {}).items()}
    return data | {key: base64.b64decode(value) for key, value in found.get("binaryData", {}).items()}


class Environment:
    """Of the containers of one pod. The pod's folder holds its volumes."""

    def __init__(self, store: Store, settings, pod: dict, folder: pathlib.Path):
        self.store = store
        self.settings = settings
        self.pod = pod
        self.folder = folder

    # The command line and its variables.

    def command(self, container: dict, variables: dict[str, str]) -> list[str]:
        image = pathlib.Path(self.settings.images[container["image"]])
        command, args = container.get("command", []), container.get("args", [])
        if not command and (image / "entrypoint").exists():
            command = [f"{IMAGE}/entrypoint"]
        argv = [_expand(text, variables) for text in command + args]
        if not argv:
            raise NotYet("RunContainerError", "no command specified")
        return argv

    def variables(self, container: dict) -> dict[str, str]:
        found = {
            "PATH": f"{IMAGE}/bin:{PATH}",
            "HOME": "/root",
            "HOSTNAME": hostname(self.pod),
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.settings.port),
        }
        found |= {name: os.environ[name] for name in self.settings.passed if name in os.environ}
        for source in container.get("envFrom", []):
            for field, plural in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
                if field in source:
                    data = self._data(plural, source[field], "CreateContainerConfigError")
                    found |= {source.get("prefix", "") + key: value.decode() for key, value in data.items()}
        for entry in container.get("env", []):
            value = self._value(entry, container, found)
            if value is not None:
                found[entry["name"]] = value
        return found

    def _value(self, entry: dict, container: dict, known: dict[str, str]) -> str | None:
        source = entry.get("valueFrom")
        if not source:
            return _expand(entry.get("value", ""), known)
        if "fieldRef" in source:
            return self._field(source["fieldRef"]["fieldPath"])
        if "resourceFieldRef" in source:
            return self._resource(source["resourceFieldRef"], container)
        plural, wanted = next(iter(source.items()))
        plural = {"secretKeyRef": "secrets", "configMapKeyRef": "configmaps"}[plural]
        data = self._data(plural, wanted, "CreateContainerConfigError")
        if wanted["key"] in data:
            return data[wanted["key"]].decode()
        if wanted.get("optional"):
            return None
        text = f"couldn't find key {wanted['key']} in {plural} {self.namespace}/{wanted['name']}"
        raise NotYet("CreateContainerConfigError", text)

    def _field(self, path: str) -> str:
        pod = self.store.get("pods", self.namespace, self.pod["metadata"]["name"]) or self.pod
        match = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
        if match:
            return pod["metadata"].get(match[1], {}).get(match[2], "")
        found: object = pod
        for key in path.split("."):
            found = found.get(key, "") if isinstance(found, dict) else ""
        return str(found)

    def _resource(self, wanted: dict, container: dict) -> str:
        part, name = wanted["resource"].split(".", 1)
        value = container.get("resources", {}).get(part, {}).get(name)
        if value is None:  # what the node has
            value = str(os.cpu_count()) if name == "cpu" else "8Gi"
        divisor = quantity(wanted.get("divisor") or "1") or Decimal(1)
        return str(int((quantity(value) / divisor).to_integral_value("ROUND_CEILING")))

    @property
    def namespace(self) -> str:
        return self.pod["metadata"]["namespace"]

    def _data(self, plural: str, wanted: dict, reason: str) -> dict[str, bytes]:
        name = wanted.get("name") or wanted.get("secretName")
        found = self.store.get(plural, self.namespace, name)
        if found:
            return decoded(plural, found)
        if wanted.get("optional"):
            return {}
        raise NotYet(reason, f'{plural[:-1]} "{name}" not found')

    # Volumes.

    def make_volumes(self) -> dict[str, dict]:
        """Where each volume is on this machine, or how much memory it has."""
        made = {}
        for volume in self.pod["spec"].get("volumes", []):
            kind = next(key for key in volume if key != "name")
            folder = self.folder / "volumes" / volume["name"]
            maker = getattr(self, f"_volume_{kind}", None)
            if not maker:
                raise NotYet("ContainerCreating", f"volume {volume['name']}: volumes of {kind} are not played")
            made[volume["name"]] = maker(volume[kind], folder)
        return made

    def _volume_emptyDir(self, source: dict, folder: pathlib.Path) -> dict:
        if source.get("medium") == "Memory":
            return {"memory": int(quantity(source.get("sizeLimit", 0)))}
        folder.mkdir(parents=True, exist_ok=True)
        group = self._group()
        if group is not None and os.geteuid() == 0:
            os.chown(folder, 0, group)
        folder.chmod(0o2777)
        return {"source": str(folder)}

    def _volume_hostPath(self, source: dict, folder: pathlib.Path) -> dict:
        path = pathlib.Path(source["path"])
        kind = source.get("type", "")
        if kind == "DirectoryOrCreate":
            path.mkdir(parents=True, exist_ok=True)
        elif (kind == "Directory" and not path.is_dir()) or not path.exists():
            raise NotYet("ContainerCreating", f"hostPath type check failed: {path} is not a directory")
        return {"source": str(path.resolve())}

    def _volume_persistentVolumeClaim(self, source: dict, folder: pathlib.Path) -> dict:
        path = self.settings.claim_folder(self.namespace, source["claimName"])
        return {"source": str(path.resolve()), "readOnly": source.get("readOnly", False)}

    def _volume_configMap(self, source: dict, folder: pathlib.Path) -> dict:
        return self._files(self._data("configmaps", source, "ContainerCreating"), source, folder)

    def _volume_secret(self, source: dict, folder: pathlib.Path) -> dict:
        return self._files(self._data("secrets", source, "ContainerCreating"), source, folder)

    def _group(self) -> int | None:
        return self.pod["spec"].get("securityContext", {}).get("fsGroup")

    def _files(self, data: dict[str, bytes], source: dict, folder: pathlib.Path) -> dict:
        """Files behind links, as the kubelet lays them out to change all of them at once."""
        items = source.get("items") or [{"key": key, "path": key} for key in data]
        hidden = folder / "..data-1"
        hidden.mkdir(parents=True, exist_ok=True)
        for item in items:
            if item["key"] not in data:
                if source.get("optional"):
                    continue
                raise NotYet("ContainerCreating", f"references non-existent config key: {item['key']}")
            self._file(hidden / item["path"], data[item["key"]], item.get("mode", source.get("defaultMode", 0o644)))
        _link(folder / "..data", hidden.name)
        for entry in hidden.iterdir():
            _link(folder / entry.name, f"..data/{entry.name}")
        return {"source": str(folder), "readOnly": True}

    def _file(self, path: pathlib.Path, data: bytes, mode: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        group = self._group()
        if group is not None and os.geteuid() == 0:
            os.chown(path, 0, group)
            mode |= 0o440
        path.chmod(mode)

    def _tokens(self) -> list[dict]:
        if self.pod["spec"].get("automountServiceAccountToken") is False:
            return []
        folder = self.folder / "serviceaccount"
        folder.mkdir(exist_ok=True)
        for name, text in self.settings.account_files(self.namespace).items():
            (folder / name).write_text(text)
        return [{"source": str(folder), "target": TOKENS, "readOnly": True}]

    def mounts(self, container: dict, volumes: dict[str, dict]) -> list[dict]:
        image = pathlib.Path(self.settings.images[container["image"]]).resolve()
        found = [{"source": str(image), "target": IMAGE, "readOnly": True}]
        found += [{"source": path, "target": path, "readOnly": False} for path in self.settings.shared]
        found += self._tokens()
        last_words = self.last_words(container)
        last_words.write_bytes(b"")  # those of an earlier process are gone
        last_words.chmod(0o666)
        found.append({"source": str(last_words), "target": container["terminationMessagePath"], "readOnly": False})
        for mount in sorted(container.get("volumeMounts", []), key=lambda mount: mount["mountPath"]):
            volume = volumes[mount["name"]]
            if "memory" in volume:
                found.append({"target": mount["mountPath"], **volume})
                continue
            source = volume["source"]
            if mount.get("subPath"):
                below = pathlib.Path(source, mount["subPath"])
                if not below.exists():
                    below.mkdir(parents=True)
                source = str(below.resolve())
            read_only = mount.get("readOnly", False) or volume.get("readOnly", False)
            found.append({"source": source, "target": mount["mountPath"], "readOnly": read_only})
        return found

    def last_words(self, container: dict) -> pathlib.Path:
        """The file in which a container leaves a message for its status."""
        return self.folder / f"last-words-{container['name']}"

    # Rights.

    def rights(self, container: dict) -> dict:
        """The part of the sandbox's description that the security contexts decide."""
        context = {**self.pod["spec"].get("securityContext", {}), **container.get("securityContext", {})}
        uid = context.get("runAsUser", 0)
        if context.get("runAsNonRoot") and uid == 0:
            raise NotYet("CreateContainerConfigError", "container has runAsNonRoot and image will run as root")
        group = self._group()
        groups = list(context.get("supplementalGroups", [])) + ([] if group is None else [group])
        limits = container.get("resources", {}).get("limits", {})
        return {
            "uid": uid,
            "gid": context.get("runAsGroup", 0),
            "groups": groups,
            "readOnlyRoot": context.get("readOnlyRootFilesystem", False),
            "noNewPrivileges": context.get("allowPrivilegeEscalation") is False,
            "dropAll": "ALL" in context.get("capabilities", {}).get("drop", []),
            "memory": int(quantity(limits.get("memory", 0))) if self.settings.limit_memory else 0,
        }


def hostname(pod: dict) -> str:
    return pod["spec"].get("hostname") or pod["metadata"]["name"][:63]


def _link(path: pathlib.Path, target: str) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def _expand(text: str, known: dict[str, str]) -> str:
    """Replaces $(NAME) by a known variable; $$ stands for one $."""

    def replace(match: re.Match) -> str:
        if match[0] == "$$":
            return "$"
        return known.get(match[1], match[0])

    return re.sub(r"\$\$|\$\(([-\w.]+)\)", replace, text)
