"""Event files of TensorBoard: records of TFRecord, each a protobuf message Event.

Written by hand, since the two messages that scalars need have five fields, and the packages that write them bring
TensorFlow, PyTorch or protobuf with them. SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping


def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC_TABLE = _crc_table()


def masked_crc(data: bytes) -> int:
    """Returns the CRC-32C of the data (RFC 3720), rotated by 15 bits and shifted by a constant, as TFRecord has it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return (crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8 & 0xFFFFFFFF


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def _bytes_field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(value)) + value


def _value(tag: str, number: float) -> bytes:
    """Returns Summary.Value: tag = 1, simple_value = 2, a float."""
    return _bytes_field(1, tag.encode()) + b"\x15" + struct.pack("<f", number)


class EventFile:
    """An event file in a folder, which is made where it is missing. Its name and the time are those of now."""

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        name = f"events.out.tfevents.{time.time_ns() // 10**9}.{socket.gethostname()}.{os.getpid()}.{time.time_ns()}"
        self._file = open(os.path.join(folder, name), "xb", buffering=0)  # noqa: SIM115, stays open
        self._write(_bytes_field(3, b"brain.Event:2"))  # file_version = 3

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Writes numbers of a step from 0 by tag, as float32."""
        summary = b"".join(_bytes_field(1, _value(tag, number)) for tag, number in values.items())
        self._write(b"\x10" + _varint(step) + _bytes_field(5, summary))  # step = 2, summary = 5

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _write(self, fields: bytes) -> None:
        event = b"\x09" + struct.pack("<d", time.time()) + fields  # wall_time = 1
        length = struct.pack("<Q", len(event))
        crcs = [struct.pack("<I", masked_crc(part)) for part in (length, event)]
        self._file.write(length + crcs[0] + event + crcs[1])
