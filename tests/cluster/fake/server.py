"""The HTTPS server: connections, paths, and how requests become those that the API answers.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import collections
import contextlib
import json
import re
import select
import socket
import ssl
import sys
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from .api import Api, Request
from .cluster import Cluster
from .errors import ApiError
from .kinds import REVIEW
from .streams import Broken, Streams
from .websocket import WebSocket, accept_key

PATH = re.compile(
    r"/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/.))?/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[^/]+))?"
)
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
SUBRESOURCES = {"pods": ("log", "exec", "status"), "jobs": ("status",), "jobsets": ("status",)}
TLS_HANDSHAKE = b"\x16"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True
    server: Server

    def log_message(self, *words: object) -> None:
        """Nothing: the control interface has the requests."""

    # Connections.

    def setup(self) -> None:
        first = self.request.recv(1, socket.MSG_PEEK)
        self.plain = first != TLS_HANDSHAKE
        if not self.plain:
            self.request = self.server.context.wrap_socket(self.request, server_side=True)
            self.server.open.add(self.request)
        super().setup()

    def handle(self) -> None:
        if self.plain:
            self.server.counts["plain"] += 1
            text = b"Client sent an HTTP request to an HTTPS server.\n"
            self.wfile.write(b"HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n" + text)
            return
        super().handle()

    def finish(self) -> None:
        self.server.open.discard(self.request)
        with contextlib.suppress(OSError):
            super().finish()

    def abort(self) -> None:
        """Ends the connection in the middle of what it was to say."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)

    # What streams use.

    def header(self, name: str) -> str:
        return self.headers.get(name, "")

    def begin_chunks(self, kind: str) -> None:
        self.chunked = True
        self.record(200)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def chunk(self, data: bytes) -> None:
        self.server.cluster.faults.keep_silent()
        if data:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

    def check(self) -> None:
        """Ends a stream whose client is gone. One that streams has nothing more to say."""
        if select.select([self.connection], [], [], 0)[0]:
            raise Broken

    def upgrade(self, protocol: str) -> WebSocket:
        self.record(101)
        self.chunked = True
        self.close_connection = True
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", accept_key(self.header("Sec-WebSocket-Key")))
        self.send_header("Sec-WebSocket-Protocol", protocol)
        self.end_headers()
        self.wfile.flush()
        return WebSocket(self.rfile, self.wfile)

    # Requests.

    def record(self, code: int) -> None:
        self.server.record(self.what | {"code": code})

    def send(self, code: int, body: dict | bytes, kind: str = "application/json") -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode() + b"\n"
        self.record(code)
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if isinstance(body, dict) and (delay := (body.get("details") or {}).get("retryAfterSeconds")):
            self.send_header("Retry-After", str(delay))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def _body(self) -> bytes:
        if self.header("Transfer-Encoding").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def serve(self) -> None:
        self.chunked = False
        body = self._body()
        url = urlsplit(self.path)
        self.what = {"method": self.command, "path": url.path, "query": url.query, "time": time.time()}
        self.what["agent"] = self.header("User-Agent")
        try:
            self._answer(url.path, {key: values[-1] for key, values in parse_qs(url.query, True).items()}, body)
            if self.chunked and not self.close_connection:
                self.wfile.write(b"0\r\n\r\n")
                self.wfile.flush()
        except ApiError as error:
            self.send(error.code, error.status())
        except (Broken, OSError):
            self.abort()
        except Exception:  # noqa: BLE001  what a real server calls a panic
            traceback.print_exc()
            self.send(500, ApiError(500, "Internal error occurred").status())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve

    def _answer(self, path: str, query: dict[str, str], body: bytes) -> None:
        cluster = self.server.cluster
        user = cluster.authority.user_of(self.connection.getpeercert(), self.header("Authorization"))
        self.what["user"] = user
        document = cluster.catalog.documents.get(path.rstrip("/"))
        if document or path == "/openapi/v2":
            cluster.faults.before("get", "discovery")
            # An empty description, in the form of protocol buffers: old kubectls then check nothing themselves.
            self.send(200, document or b"", "application/json" if document else "application/octet-stream")
            return
        request = self._request(path, query)
        request.body, request.content_type, request.user = body, self.header("Content-Type"), user
        self.what |= {"verb": request.verb, "resource": request.resource, "name": request.name}
        self.what["namespace"] = request.namespace
        lost = cluster.faults.before(request.verb, request.resource)
        if request.kind is not REVIEW:
            cluster.authority.authorize(user, request.verb, request.kind, request.name, request.sub, request.namespace)
        self._dispatch(request, lost)

    def _dispatch(self, request: Request, lost: bool) -> None:
        streams = Streams(self.server.api, self)
        if request.verb == "watch":
            streams.watch(request)
        elif request.sub == "log":
            streams.log(request)
        elif request.sub == "exec":
            if self.header("Upgrade").lower() != "websocket":
                raise ApiError(400, "Upgrade request required")
            streams.execute(request, parse_qs(urlsplit(self.path).query).get("command", []))
        else:
            code, answer = self.server.api.answer(request)
            if lost:
                self.record(0)
                raise Broken
            self.send(code, answer)

    def _request(self, path: str, query: dict[str, str]) -> Request:
        match = PATH.fullmatch(path.rstrip("/"))
        catalog = self.server.cluster.catalog
        kind = match and catalog.find(match["group"] or "", match["core"] or match["version"], match["plural"])
        if match and path.rstrip("/") == REVIEW.path:
            kind = REVIEW
        namespace, name, sub = (match[x] or "" for x in ("namespace", "name", "sub")) if match else ("", "", "")
        if kind and not kind.namespaced:
            namespace = ""
        known = kind and (not sub or sub in SUBRESOURCES.get(kind.plural, ()))
        if not known or (name and kind.namespaced and not namespace):
            raise ApiError(404, "the server could not find the requested resource", details={})
        watch = query.get("watch") in ("true", "1")
        verb = VERBS.get(self.command)
        if self.command == "GET":
            verb = "watch" if watch and not sub else "get" if name else "list"
        elif self.command == "DELETE":
            verb = "delete" if name else "deletecollection"
        if (verb == "create" and name and sub != "exec") or (verb in ("update", "patch") and not name):
            raise ApiError(405, "the server does not allow this method on the requested resource")
        if watch and name and not sub:
            name, query["fieldSelector"] = "", f"metadata.name={name}"
        return Request(verb, kind, namespace, name, sub, query)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, cluster: Cluster, context: ssl.SSLContext, port: int, records: Records):
        self.cluster = cluster
        self.context = context
        self.api = Api(cluster)
        self.open: set[ssl.SSLSocket] = set()
        self.counts = records.counts
        self.record = records.add
        super().__init__(("127.0.0.1", port), Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that breaks off, or wants no such certificate, is its own affair."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def close(self) -> None:
        """Refuses connections from now on, and breaks those that there are."""
        self.shutdown()
        self.server_close()
        for connection in list(self.open):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)


class Records:
    """What was asked."""

    def __init__(self):
        self.requests: list[dict] = []
        self.counts: collections.Counter[str] = collections.Counter()

    def add(self, request: dict) -> None:
        self.requests.append(request)


class Front:
    """The server as long as the cluster lives, though it may be gone at times."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.context = cluster.authority.server_context()
        self.records = Records()
        self.lock = threading.Lock()
        self.server: Server | None = None
        self.port = 0

    def open(self) -> None:
        with self.lock:
            if self.server is None:
                self.server = Server(self.cluster, self.context, self.port, self.records)
                self.port = self.server.server_port
                threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        with self.lock:
            if self.server:
                self.server.close()
            self.server = None

    def be_gone(self, seconds: float) -> None:
        self.close()
        timer = threading.Timer(seconds, self.open)
        timer.daemon = True
        timer.start()
