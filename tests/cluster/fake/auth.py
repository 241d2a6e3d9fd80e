"""Who may ask the server: certificates, tokens, and the kubeconfig whose contexts use them rightly and wrongly.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import base64
import pathlib
import secrets
import ssl
import time
from datetime import UTC, datetime, timedelta

import trustme
import yaml

from .errors import ApiError, forbidden
from .kinds import Kind

USER = "me"
NO_CHECK_TIME = 0x200000  # of OpenSSL: the server itself refuses an expired certificate, with 401, as real ones do
CLIENT = "client.authentication.k8s.io"

PLUGIN = """#!/bin/sh
# A credential plugin: credential VERSION, the version that its kubeconfig names.
case "$KUBERNETES_EXEC_INFO" in
  *'"'{client}/$1'"'*) ;;
  *) echo "KUBERNETES_EXEC_INFO is not that of {client}/$1" >&2; exit 1 ;;
esac
echo "$1" >> {folder}/credential.log
printf '{{"apiVersion":"{client}/%s","kind":"ExecCredential","status":{{"token":"%s"}}}}\\n' "$1" "$(cat {folder}/token)"
"""


class Authority:
    """The folder gets ca.pem, token and the kubeconfig with what its contexts name."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.ca = trustme.CA()
        self.ca_pem = self.ca.cert_pem.bytes()
        self.tokens: dict[str, str] = {}
        self.rules: list[dict] = []  # what is forbidden: verb, resource, namespace, each any where it is not given
        (folder / "ca.pem").write_bytes(self.ca_pem)
        self.renew_token()

    def renew_token(self) -> None:
        """The token of the user is no longer good. A new one is where the plugins and tokenFile find it."""
        self.tokens = {token: user for token, user in self.tokens.items() if user != USER}
        self.token = secrets.token_urlsafe(24)
        self.tokens[self.token] = USER
        write_private(self.folder / "token", self.token.encode())

    def account_files(self, namespace: str) -> dict[str, str]:
        """What a pod finds of its service account. It may do nothing, as those of real clusters."""
        token = secrets.token_urlsafe(24)
        self.tokens[token] = f"system:serviceaccount:{namespace}:default"
        return {"token": token, "ca.crt": self.ca_pem.decode(), "namespace": namespace}

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert("127.0.0.1", "localhost").configure_cert(context)
        context.load_verify_locations(cadata=self.ca_pem.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        context.verify_flags |= NO_CHECK_TIME
        return context

    def user_of(self, certificate: dict | None, authorization: str) -> str:
        kind, _, token = authorization.partition(" ")
        if kind.lower() == "bearer" and token in self.tokens:
            return self.tokens[token]
        if certificate and ssl.cert_time_to_seconds(certificate["notAfter"]) > time.time():
            return next(value for part in certificate["subject"] for name, value in part if name == "commonName")
        raise ApiError(401, "Unauthorized")

    def allowed(self, user: str, verb: str, resource: str, namespace: str) -> bool:
        if user.startswith("system:serviceaccount:"):
            return False
        asked = {"verb": verb, "resource": resource, "namespace": namespace}
        return not any(all(rule.get(key, asked[key]) in (asked[key], "*") for key in asked) for rule in self.rules)

    def authorize(self, user: str, verb: str, kind: Kind, name: str, sub: str, namespace: str) -> None:
        resource = f"{kind.plural}/{sub}" if sub else kind.plural
        if self.allowed(user, verb, resource, namespace):
            return
        why = f'User "{user}" cannot {verb} resource "{resource}" in API group "{kind.group}"'
        where = f' in the namespace "{namespace}"' if namespace else " at the cluster scope"
        raise forbidden(kind, name, why + where)

    # The kubeconfig.

    def write_kubeconfig(self, port: int) -> None:
        folder = self.folder
        scripts = {"credential": PLUGIN.format(folder=folder, client=CLIENT), "hang": "#!/bin/sh\nexec sleep 600\n"}
        for name, text in scripts.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        server = f"https://127.0.0.1:{port}"
        other = trustme.CA().cert_pem.bytes()
        clusters = {
            "fake": {"server": server, "certificate-authority-data": _encoded(self.ca_pem)},
            "files": {"server": server, "certificate-authority": "ca.pem"},
            "http": {"server": f"http://127.0.0.1:{port}"},
            "insecure": {"server": server, "insecure-skip-tls-verify": True},
            "other-ca": {"server": server, "certificate-authority-data": _encoded(other)},
        }
        users = self._users()
        pairs = {name: ("fake", name) for name in users if name != "certificate-files"}
        pairs |= {"certificate-files": ("files", "certificate-files")}
        pairs |= {name: (name, "token") for name in ("http", "insecure", "other-ca")}
        contexts = {name: {"cluster": c, "user": u, "namespace": "default"} for name, (c, u) in pairs.items()}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "token",
            "clusters": [{"name": name, "cluster": value} for name, value in clusters.items()],
            "users": [{"name": name, "user": value} for name, value in users.items()],
            "contexts": [{"name": name, "context": value} for name, value in contexts.items()],
        }
        write_private(folder / "kubeconfig", yaml.safe_dump(config, sort_keys=False).encode())

    def _users(self) -> dict[str, dict]:
        now = datetime.now(UTC)
        expired = {"not_before": now - timedelta(days=2), "not_after": now - timedelta(days=1)}
        key, chain = self._certificate()
        write_private(self.folder / "client.key", key)
        (self.folder / "client.pem").write_bytes(chain)
        return {
            "token": {"token": self.token},
            "token-file": {"tokenFile": str(self.folder / "token")},
            "wrong-token": {"token": "wrong"},
            "certificate": _inline(self._certificate()),
            "certificate-files": {"client-certificate": "client.pem", "client-key": "client.key"},
            "expired-certificate": _inline(self._certificate(**expired)),
            "exec-v1": {"exec": self._plugin("credential", "v1")},
            "exec-v1beta1": {"exec": self._plugin("credential", "v1beta1")},
            "exec-hangs": {"exec": self._plugin("hang", "v1")},
            "exec-missing": {"exec": self._plugin("no-such-plugin", "v1")},
        }

    def _certificate(self, **when: datetime) -> tuple[bytes, bytes]:
        leaf = self.ca.issue_cert(common_name=USER, organization_name="system:masters", **when)
        return leaf.private_key_pem.bytes(), b"".join(blob.bytes() for blob in leaf.cert_chain_pems)

    def _plugin(self, name: str, version: str) -> dict:
        plugin = {"apiVersion": f"{CLIENT}/{version}", "command": str(self.folder / name), "args": [version]}
        return plugin | ({"interactiveMode": "Never"} if version == "v1" else {})


def write_private(path: pathlib.Path, data: bytes) -> None:
    path.touch(0o600)
    path.write_bytes(data)


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _inline(pair: tuple[bytes, bytes]) -> dict:
    return {"client-key-data": _encoded(pair[0]), "client-certificate-data": _encoded(pair[1])}
