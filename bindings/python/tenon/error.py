"""Errors of the library: each has a code, and names the component and the subject it is about.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import difflib

from tenon import _core


class Error(Exception):
    """The base of all errors of the library.

    code: the status of the C interface; component: such as 'layer "hidden" (fc)'; subject: the name of the attribute,
    port, parameter or file at fault. Both are "" where unknown.
    """

    code: int = _core.INTERNAL

    def __init__(self, message: str, component: str = "", subject: str = "") -> None:
        super().__init__(message)
        self.component = component
        self.subject = subject


class InvalidError(Error, ValueError):
    """An argument, attribute or shape is wrong."""

    code = _core.INVALID


class MisuseError(Error, RuntimeError):
    """A call out of order."""

    code = _core.MISUSE


class NotFoundError(Error, LookupError):
    """There is no such file, type or name."""

    code = _core.NOT_FOUND


class UnsupportedError(Error, NotImplementedError):
    """Understood, but not offered here."""

    code = _core.UNSUPPORTED


class BadDataError(Error, ValueError):
    """Data or a model file is damaged, or of another form than expected."""

    code = _core.BAD_DATA


class BadConfigError(Error, ValueError):
    """A job file is wrong."""

    code = _core.BAD_CONFIG


class OutOfMemoryError(Error, MemoryError):
    """The memory is not enough."""

    code = _core.OUT_OF_MEMORY


class FileError(Error, OSError):
    """The system refused to read or write."""

    code = _core.IO


class RefusedError(Error):
    """A plugin was not admitted."""

    code = _core.REFUSED


class CancelledError(Error):
    """The call was cancelled."""

    code = _core.CANCELLED


class NotKeptError(Error, LookupError):
    """The value exists while a step runs, but was not declared as kept."""

    code = _core.NOT_KEPT


class PluginFaultError(Error):
    """A plugin broke its contract."""

    code = _core.PLUGIN_FAULT


class InternalError(Error):
    """A defect of the library."""

    code = _core.INTERNAL


def _make(code: int, message: str, component: str, subject: str) -> Error:
    for kind in Error.__subclasses__():
        if kind.code == code:
            return kind(message, component, subject)
    return Error(message, component, subject)


def suggestion(name: str, known: object) -> str:
    """Returns '; did you mean "..."?' for the most similar known name, else ""."""
    near = difflib.get_close_matches(name, [str(each) for each in known], 1)  # type: ignore[attr-defined]
    return f'; did you mean "{near[0]}"?' if near else ""
