"""Tables of the Arrow C data interface without any package of Arrow: the structs of its specification, by ctypes.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import ctypes
import errno

import numpy as np


class ArrowSchema(ctypes.Structure):
    pass


class ArrowArray(ctypes.Structure):
    pass


class ArrowStream(ctypes.Structure):
    pass


def pointer(kind):
    return ctypes.POINTER(kind)


RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, pointer(ArrowSchema))
RELEASE_ARRAY = ctypes.CFUNCTYPE(None, pointer(ArrowArray))
RELEASE_STREAM = ctypes.CFUNCTYPE(None, pointer(ArrowStream))
GET_SCHEMA = ctypes.CFUNCTYPE(ctypes.c_int, pointer(ArrowStream), pointer(ArrowSchema))
GET_NEXT = ctypes.CFUNCTYPE(ctypes.c_int, pointer(ArrowStream), pointer(ArrowArray))
GET_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, pointer(ArrowStream))

ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", pointer(pointer(ArrowSchema))), ("dictionary", pointer(ArrowSchema)),
    ("release", RELEASE_SCHEMA), ("private_data", ctypes.c_void_p),
]  # fmt: skip
ArrowArray._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("buffers", pointer(ctypes.c_void_p)), ("children", pointer(pointer(ArrowArray))),
    ("dictionary", pointer(ArrowArray)), ("release", RELEASE_ARRAY), ("private_data", ctypes.c_void_p),
]  # fmt: skip
ArrowStream._fields_ = [
    ("get_schema", GET_SCHEMA), ("get_next", GET_NEXT), ("get_last_error", GET_ERROR), ("release", RELEASE_STREAM),
    ("private_data", ctypes.c_void_p),
]  # fmt: skip

FORMATS = {"i1": "c", "u1": "C", "i2": "s", "u2": "S", "i4": "i", "u4": "I", "i8": "l", "u8": "L", "f2": "e", "f4": "f",
           "f8": "g"}  # fmt: skip


KEPT = []  # the memory of all that was exported: what a consumer has taken may outlive its exporter


class Node:
    """A column: format, length, buffers as arrays or None, children, dictionary."""

    def __init__(self, format, length, buffers, children=(), dictionary=None, name="", nulls=0, offset=0):
        self.format, self.length, self.buffers, self.name = format, length, list(buffers), name
        self.children, self.dictionary, self.nulls, self.offset = list(children), dictionary, nulls, offset

    def called(self, name):
        self.name = name
        return self

    def cut(self, start, stop):
        """The rows from start to stop, by an offset into the same memory."""
        return Node(self.format, stop - start, self.buffers, self.children, self.dictionary, self.name, self.nulls,
                    self.offset + start)  # fmt: skip

    def with_nulls(self, *rows):
        present = np.ones(self.offset + self.length, bool)
        present[[self.offset + row for row in rows]] = False
        bits = np.packbits(present, bitorder="little")
        return Node(self.format, self.length, [bits, *self.buffers[1:]], self.children, self.dictionary, self.name, -1,
                    self.offset)  # fmt: skip


def numbers(values, dtype):
    array = np.ascontiguousarray(values, dtype)
    return Node(FORMATS[array.dtype.str[1:]], len(array), [None, array])


def bools(values):
    return Node("b", len(values), [None, np.packbits(np.array(values, bool), bitorder="little")])


def texts(values, large=False, binary=False):
    parts = [each if isinstance(each, bytes) else each.encode() for each in values]
    offsets = np.cumsum([0, *map(len, parts)]).astype("i8" if large else "i4")
    format = {(False, False): "u", (True, False): "U", (False, True): "z", (True, True): "Z"}[large, binary]
    return Node(format, len(parts), [None, offsets, np.frombuffer(b"".join(parts) or b"\0", np.uint8)])


def viewed(values):
    """Texts as views: 16 bytes each, the long ones in a buffer of their own."""
    views, memory = b"", b""
    for each in (value.encode() for value in values):
        views += np.int32(len(each)).tobytes()
        if len(each) <= 12:
            views += each.ljust(12, b"\0")
        else:
            views += each[:4] + np.array([0, len(memory)], np.int32).tobytes()
            memory += each
    long = np.frombuffer(memory or b"\0", np.uint8)
    return Node("vu", len(values), [None, np.frombuffer(views, np.uint8), long, np.array([len(memory)], np.int64)])


def categories(codes, names, dtype="i4"):
    node = numbers(codes, dtype)
    node.dictionary = names if isinstance(names, Node) else texts(names)
    return node


def lists(lengths, child, large=False):
    offsets = np.cumsum([0, *lengths]).astype("i8" if large else "i4")
    return Node("+L" if large else "+l", len(lengths), [None, offsets], [child])


def vectors(size, child):
    return Node(f"+w:{size}", child.length // size, [None], [child])


def maps(lengths, keys, values):
    entries = struct(keys.called("key"), values.called("value"))
    return Node("+m", len(lengths), [None, np.cumsum([0, *lengths]).astype("i4")], [entries])


def struct(*columns, **named):
    children = [*columns, *(node.called(name) for name, node in named.items())]
    return Node("+s", children[0].length if children else 0, [None], children)


def capsule(value, name):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(value), name, None)


class Exported:
    """Chunks of one type with the methods of Arrow. released: of chunks, how many; alive: those that are not."""

    def __init__(self, *chunks, fail_at=None, passes=None):
        self.chunks, self.fail_at, self.passes = chunks, fail_at, passes
        self.alive, self.released, self.streams = 0, 0, 0

    def _schema(self, node, out):
        # Assigned to the memory of another one, a text is not kept alive.
        out.format, out.name = self._keep(node.format and node.format.encode()), self._keep(node.name.encode())
        out.metadata, out.flags, out.private_data = None, 2, None
        children = [ArrowSchema() for _ in node.children]
        for each, made in zip(node.children, children, strict=True):
            self._schema(each, made)
        out.n_children, out.children = len(children), self._pointers(ArrowSchema, children)
        if node.dictionary is not None:
            inner = ArrowSchema()
            self._schema(node.dictionary, inner)
            out.dictionary = self._keep(ctypes.pointer(inner))

        def release(of):
            of.contents.release = RELEASE_SCHEMA()

        out.release = self._keep(RELEASE_SCHEMA(release))

    def _array(self, node, out, top=True):
        out.length, out.null_count, out.offset, out.private_data = node.length, node.nulls, node.offset, None
        buffers = (ctypes.c_void_p * len(node.buffers))()
        for i, each in enumerate(node.buffers):
            buffers[i] = None if each is None else self._keep(each).ctypes.data
        out.n_buffers, out.buffers = len(buffers), ctypes.cast(self._keep(buffers), pointer(ctypes.c_void_p))
        children = [ArrowArray() for _ in node.children]
        for each, made in zip(node.children, children, strict=True):
            self._array(each, made, False)
        out.n_children, out.children = len(children), self._pointers(ArrowArray, children)
        if node.dictionary is not None:
            inner = ArrowArray()
            self._array(node.dictionary, inner, False)
            out.dictionary = self._keep(ctypes.pointer(inner))
        self.alive += top

        def release(of):
            self.alive -= top
            self.released += top
            of.contents.release = RELEASE_ARRAY()

        out.release = self._keep(RELEASE_ARRAY(release))

    def _pointers(self, kind, made):
        list_ = (pointer(kind) * len(made))(*map(ctypes.pointer, made))
        return ctypes.cast(self._keep((list_, made))[0], pointer(pointer(kind)))

    def _keep(self, value):
        KEPT.append(value)
        return value

    def __arrow_c_stream__(self, requested_schema=None):
        self.streams += 1
        if self.passes is not None and self.streams > self.passes:
            raise RuntimeError("the stream has one pass")
        left = list(self.chunks)

        def get_schema(stream, out):
            self._schema(self.chunks[0], out.contents)
            return 0

        def get_next(stream, out):
            number = len(self.chunks) - len(left)
            if number == self.fail_at:
                return errno.EIO
            if left:
                self._array(left.pop(0), out.contents)
            else:
                out.contents.release = RELEASE_ARRAY()
            return 0

        def release(stream):
            stream.contents.release = RELEASE_STREAM()

        message = self._keep(ctypes.create_string_buffer(b"the disk is gone"))
        stream = self._keep(ArrowStream(
            GET_SCHEMA(get_schema), GET_NEXT(get_next), GET_ERROR(lambda _: ctypes.addressof(message)),
            RELEASE_STREAM(release), None))  # fmt: skip
        return capsule(stream, b"arrow_array_stream")


class ExportedOnce(Exported):
    """One chunk without a stream."""

    def __arrow_c_array__(self, requested_schema=None):
        schema, array = self._keep(ArrowSchema()), self._keep(ArrowArray())
        self._schema(self.chunks[0], schema)
        self._array(self.chunks[0], array)
        return capsule(schema, b"arrow_schema"), capsule(array, b"arrow_array")

    __arrow_c_stream__ = property(lambda self: (_ for _ in ()).throw(AttributeError))
