"""The server's side of WebSocket (RFC 6455), as far as exec needs it.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import base64
import hashlib
import struct
import threading
from typing import BinaryIO

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


class Closed(Exception):
    """The other side is gone, or says that it goes."""


def accept_key(key: str) -> str:
    return base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()


class WebSocket:
    def __init__(self, reader: BinaryIO, writer: BinaryIO):
        self.reader = reader
        self.writer = writer
        self.lock = threading.Lock()

    def _read(self, size: int) -> bytes:
        data = self.reader.read(size)
        if data is None or len(data) < size:
            raise Closed
        return data

    def _frame(self) -> tuple[bool, int, bytes]:
        first, second = self._read(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack(">H", self._read(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", self._read(8))
        if not second & 0x80:
            self.close(1002)
            raise Closed  # a client has to mask what it sends
        mask = self._read(4)
        data = self._read(size)
        whole = int.from_bytes(data, "big") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        return bool(first & 0x80), first & 0x0F, whole.to_bytes(size, "big")

    def receive(self) -> bytes:
        """The next message of data. Answers pings on the way."""
        message = b""
        while True:
            final, code, data = self._frame()
            if code == CLOSE:
                self.close()
                raise Closed
            if code == PING:
                self._send(PONG, data)
            elif code in (CONTINUATION, TEXT, BINARY):
                message += data
                if final:
                    return message

    def send(self, data: bytes) -> None:
        self._send(BINARY, data)

    def close(self, code: int = 1000) -> None:
        self._send(CLOSE, struct.pack(">H", code))

    def _send(self, code: int, data: bytes) -> None:
        size = len(data)
        if size < 126:
            head = struct.pack(">BB", 0x80 | code, size)
        elif size < 1 << 16:
            head = struct.pack(">BBH", 0x80 | code, 126, size)
        else:
            head = struct.pack(">BBQ", 0x80 | code, 127, size)
        try:
            with self.lock:
                self.writer.write(head + data)
                self.writer.flush()
        except OSError as error:
            raise Closed from error
