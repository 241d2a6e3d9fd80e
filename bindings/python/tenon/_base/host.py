"""Hosts: what owns plugins, threads and memory. One default host serves programs that make none.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import functools
import json
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from tenon import _core, error
from tenon._base import check as _check
from tenon._base import launcher

_ARITHMETIC = {None: 0, "portable-0": 1, "native": 2}  # TN_ARITHMETIC_*
KINDS = {"layer": "layers", "updater": "updaters", "reader": "readers"}


class Host:
    """A host with its plugins and threads.

    threads: compute threads, 0 for the cores this process may use; plugin_paths: folders of plugins, in addition to
    those of the environment variable TENON_PLUGIN_PATH (colons between them) and, if standard_plugins, to the standard
    ones; check_finite: every value of a step must be finite; plugin_set: the path of a file that says which plugins may
    load (docs/plugin-sets.md), None for all; arithmetic: "native" also asks providers whose bits follow from the
    processor, "portable-0" refuses calls whose bits are not known to be the same on every one (docs/arithmetic.md).
    NotFoundError for a folder of plugin_paths that does not exist.
    """

    def __init__(
        self,
        threads: int = 0,
        plugin_paths: Sequence[str] = (),
        standard_plugins: bool = True,
        check_finite: bool = False,
        plugin_set: str | None = None,
        arithmetic: str | None = None,
    ) -> None:
        threads = _check.whole(threads, "threads", "host", 0, 2**31 - 1)
        if isinstance(plugin_paths, (str, bytes)) or not isinstance(plugin_paths, Iterable):
            _check.refuse(plugin_paths, "a list of folders", "plugin_paths", "host")
        paths = [_check.path(each, "plugin_paths", "host") for each in plugin_paths]
        for each in paths:
            if not os.path.isdir(each):
                raise error.NotFoundError(f'host: the folder of plugins "{each}" does not exist', "host", each)
        paths += [path for path in os.environ.get("TENON_PLUGIN_PATH", "").split(":") if path]
        chosen = "" if plugin_set is None else _check.path(plugin_set, "plugin_set", "host")
        if plugin_set is not None and not chosen:  # a path that was left out by mistake would admit everything
            _check.refuse(plugin_set, "the path of a file", "plugin_set", "host")
        if arithmetic not in _ARITHMETIC:
            _check.refuse(arithmetic, 'None, "portable-0" or "native"', "arithmetic", "host")
        self.core = _core.Host(threads, paths, bool(standard_plugins), chosen, bool(check_finite), _ARITHMETIC[arithmetic])
        self.functions: dict[tuple[str, str], Callable[..., Any]] = {}  # made of manifests, by kind and name
        self.kernels: dict[str, Any] = {}  # classes of layers and metrics in Python, by type
        self.lock = threading.Lock()  # of kernels
        self.data: dict[tuple[Any, ...], tuple[Any, int, int]] = {}  # data layers, their first and last definition
        self.joint_trainings = 0  # those of dist_train that have returned
        self._types: dict[str, dict[str, dict[str, Any]]] = {}
        self._lists: dict[str, tuple[str, ...]] = {}

    @property
    def threads(self) -> int:
        """The number of compute threads."""
        return self.core.threads()

    def plugins(self) -> list[dict[str, Any]]:
        """Returns everything found in the plugin folders, with the reasons where something was refused."""
        found: list[dict[str, Any]] = json.loads(self.core.plugins())
        return found

    def names(self, kind: str) -> tuple[str, ...]:
        """Returns the types of a kind ("layer", "updater", "reader") that plugins offer, sorted."""
        if kind not in self._lists:
            found: set[str] = set()
            for plugin in self.plugins():
                manifest = plugin["manifest"]
                if plugin["status"] in ("found", "loaded") and manifest:
                    found.update(entry["type"] for entry in manifest[KINDS[kind]])
            self._lists[kind] = tuple(sorted(found))
        return self._lists[kind]

    def describe(self, kind: str, name: str) -> dict[str, Any]:
        """Returns the description of a type in its plugin's manifest."""
        known = self._types.setdefault(kind, {})
        if name not in known:
            known[name] = json.loads(self.core.describe_type(kind, name))
        return known[name]

    def __repr__(self) -> str:
        return f"<tenon.Host with {self.threads} threads>"


_lock = threading.Lock()
_default: Host | None = None
_present: ContextVar[Host] = ContextVar("tenon host")  # of the set that a call works on
_P = ParamSpec("_P")
_R = TypeVar("_R")


def host() -> Host:
    """Returns the default host, made on first use, in one of several processes with a share of the cores; inside of a call
    on a set of parameters the host of the set."""
    global _default
    present = _present.get(None)
    if present is not None:
        return present
    with _lock:
        if _default is None:
            _default = Host()
            threads = launcher.threads(_default.threads)
            if threads < _default.threads:
                _default = Host(threads)
        return _default


def use(replacement: Host) -> Host:
    """Makes another host the default. Layers and parameters made before stay with theirs."""
    global _default
    _check.instance(replacement, Host, "a tenon.Host", "host", "use")
    with _lock:
        _default = replacement
    return replacement


def follows_parameters(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Returns a function that makes readers and updaters on the host of the set of parameters among its arguments."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        hosts = [getattr(each, "host", None) for each in (*args[:3], kwargs.get("parameters"))]
        token = _present.set(next((each for each in hosts if isinstance(each, Host)), host()))
        try:
            return function(*args, **kwargs)
        finally:
            _present.reset(token)

    return call


def _forget() -> None:
    global _default, _lock
    _default, _lock = None, threading.Lock()


# A host does not work in a child process; programs that named none get a new one there.
os.register_at_fork(after_in_child=_forget)
