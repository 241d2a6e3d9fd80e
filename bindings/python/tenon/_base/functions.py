"""Functions made from the manifests of plugins: signature, defaults and documentation.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import inspect
import keyword
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tenon import error
from tenon._base import check as _check
from tenon._base import foreign
from tenon._base import host as _host

BOOL, INT, FLOAT, STRING, INTS, FLOATS, STRINGS = range(1, 8)
_TYPES = {BOOL: "bool", INT: "int", FLOAT: "float", STRING: "str", INTS: "list[int]", FLOATS: "list[float]",
          STRINGS: "list[str]"}  # fmt: skip
_HOST_TYPES = {"act": "str", "clip_norm": "float", "clip_value": "float", "coefficient": "float", "drop_rate": "float",
               "l1": "float", "l2": "float", "param": "Mapping[str, Mapping[str, object]]", "parameter_name": "str",
               "schedule": "Mapping[str, object]"}  # fmt: skip
OPTIONAL, _VARIADIC = 1, 2


def python_name(name: str) -> str:
    """Returns a name that a program can write."""
    return name + "_" if keyword.iskeyword(name) else name


def flatten(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns {"a.b": value} for {"a": {"b": value}}: dotted names are written as dicts."""
    result: dict[str, Any] = {}
    for name, value in attributes.items():
        if isinstance(value, Mapping):
            result.update({f"{name}.{inner}": each for inner, each in flatten(value).items()})
        elif value is not None:
            result[name] = _plain(value)
    return result


def _plain(value: Any) -> Any:
    """Returns what the library takes: arrays as lists of their numbers, tuples as lists, paths as texts."""
    if hasattr(value, "tolist"):
        return (value.ravel() if getattr(value, "ndim", 0) > 1 else value).tolist()
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(each) for each in value]
    return value


def attribute(kind: str, name: str, make: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function of a type; AttributeError if no plugin offers the type."""
    if name.startswith("__"):
        raise AttributeError(name)
    host = _host.host()
    key = (kind, name)
    if key not in host.functions:
        type = name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name
        try:
            host.describe(kind, type)
        except error.NotFoundError:
            known = host.names(kind)
            meant = [each for each in known if name in host.describe(kind, each)["other_names"]]
            near = f'; did you mean "{meant[0]}"?' if meant else foreign.suggestion(name, known)
            article = "an" if kind[0] in "aeiou" else "a"
            raise AttributeError(f'no plugin offers {article} {kind} "{name}"{near}', name=name) from None
        host.functions[key] = _function(host, kind, type, make)
    return host.functions[key]


def _annotation(kind: int) -> str:
    return _TYPES.get(kind, "object")


def _parameter(each: Mapping[str, Any]) -> inspect.Parameter:
    default = inspect.Parameter.empty if each["required"] else each.get("initial")
    annotation = _annotation(each["kind"]) + ("" if each["required"] or default is not None else " | None")
    return inspect.Parameter(
        python_name(each["name"]), inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def host_parameters(described: Mapping[str, Any]) -> list[str]:
    """Returns the names of the attributes that the host adds, dotted ones by their first part."""
    return list(dict.fromkeys(name.split(".")[0] for name in described.get("host_attributes", [])))


def signature(kind: str, described: Mapping[str, Any]) -> inspect.Signature:
    """Returns the signature of the function of a type."""
    parameters = []
    ports = described.get("inputs", [])
    for port in ports:
        if port["flags"] & _VARIADIC:
            parameters.append(
                inspect.Parameter(python_name(port["name"]), inspect.Parameter.VAR_POSITIONAL, annotation="LayerLike")
            )
            continue
        optional: dict[str, Any] = {"annotation": "LayerLike"}
        if port["flags"] & OPTIONAL:
            optional = {"annotation": "LayerLike | None", "default": None}
        parameters.append(
            inspect.Parameter(python_name(port["name"]), inspect.Parameter.POSITIONAL_OR_KEYWORD, **optional)
        )
    own = [_parameter(each) for each in described["attributes"]]
    taken = {each.name for each in parameters + own}
    own.sort(key=lambda each: each.default is not inspect.Parameter.empty)
    if kind == "layer":
        own.append(inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="str | None"))
    for name in [*host_parameters(described), *(["param"] if kind == "layer" else [])]:
        if name not in taken:
            annotation = f"{_HOST_TYPES.get(name, 'object')} | None"
            own.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation))
    returns = {"layer": "Layer", "updater": "Updater", "reader": "Reader"}[kind]
    return inspect.Signature(parameters + own, return_annotation=returns)


def documentation(kind: str, described: Mapping[str, Any]) -> str:
    """Returns the documentation of the function of a type."""

    def entry(name: str, note: str, doc: str) -> str:
        text = f"{name}{f' ({note})' if note else ''}: {doc}"
        return textwrap.fill(text, 96, initial_indent="    ", subsequent_indent="        ")

    def note(each: Mapping[str, Any]) -> str:
        parts = [_annotation(each["kind"])]
        if each.get("choices"):
            parts.append("one of " + ", ".join(each["choices"]))
        for bound, sign in (("minimum", "from"), ("maximum", "to")):
            if each.get(bound) is not None:
                parts.append(f"{sign} {each[bound]:g}")
        return ", ".join([*parts, "required"] if each["required"] else parts)

    lines = [textwrap.fill(described["doc"], 96)]
    for title, ports in (("Inputs", described.get("inputs", [])), ("Outputs", described.get("outputs", []))):
        if ports:
            lines += ["", title + ":"]
            for port in ports:
                flags = ["optional"] if port["flags"] & OPTIONAL else []
                flags += ["one or more"] if port["flags"] & _VARIADIC else []
                lines.append(entry(port["name"], ", ".join(flags), port["doc"]))
    if described["attributes"]:
        lines += ["", "Attributes:"]
        lines += [entry(python_name(each["name"]), note(each), each["doc"]) for each in described["attributes"]]
    names = host_parameters(described) + (["param", "name"] if kind == "layer" else [])
    if names:
        lines += ["", textwrap.fill("Of every " + kind + ": " + ", ".join(names), 96)]
    return "\n".join(lines)


def _inputs(described: Mapping[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Takes the inputs out of the arguments: by place, by name, or as one list."""
    type, ports = described["type"], described["inputs"]
    given = list(args)
    for word in ("input", "inputs"):  # the only input, or the list of them, under a common name
        if word in kwargs and not given and word not in [port["name"] for port in ports]:
            given.append(kwargs.pop(word))
    if len(given) == 1 and isinstance(given[0], (list, tuple)):
        given = list(given[0])
    found: list[Any] = []
    for port in ports:
        name = python_name(port["name"])
        if port["flags"] & _VARIADIC:
            more = kwargs.pop(name, [])
            given += more if isinstance(more, (list, tuple)) else [more]
            if not given and not port["flags"] & OPTIONAL:
                raise TypeError(f'tenon.layer.{type}() needs at least one input "{name}"')
            found += given
            given = []
        elif given:
            if name in kwargs:
                raise TypeError(f'tenon.layer.{type}() got two values for the input "{name}"')
            found.append(given.pop(0))
        elif kwargs.get(name) is not None:
            found.append(kwargs.pop(name))
        elif port["flags"] & OPTIONAL:
            kwargs.pop(name, None)
            found.append(None)
        else:
            names = ", ".join(python_name(each["name"]) for each in ports)
            raise TypeError(f'tenon.layer.{type}() needs the input "{name}"; its inputs are {names}')
    if given:
        raise TypeError(f"tenon.layer.{type}() takes {len(ports)} inputs; {len(given)} more are given")
    while found and found[-1] is None:
        found.pop()
    return found


def _function(host: _host.Host, kind: str, type: str, make: Callable[..., Any]) -> Callable[..., Any]:
    described = host.describe(kind, type)
    of = signature(kind, described)
    words = [each.name for each in of.parameters.values() if each.kind is inspect.Parameter.KEYWORD_ONLY]
    prefixes = {name.split(".")[0] for name in described.get("host_attributes", [])} | {"param"}

    def check(names: Iterable[str]) -> None:
        for name in names:
            if name not in words and name.split(".")[0] not in prefixes:
                raise TypeError(
                    f'tenon.{kind}.{type}() got an unknown argument "{name}"{error.suggestion(name, words)}'
                )

    def function(*args: Any, **kwargs: Any) -> Any:
        inputs = _inputs(described, args, kwargs) if kind == "layer" else []
        if kind != "layer" and args:
            first = [each for each in words if of.parameters[each].default is inspect.Parameter.empty] or words
            if len(args) > len(first):
                raise TypeError(f"tenon.{kind}.{type}() takes its attributes by name")
            kwargs = {**dict(zip(first, args, strict=False)), **kwargs}
        name = kwargs.pop("name", None) if kind == "layer" else None
        check(kwargs)
        param = kwargs.get("param")
        for inner in () if param is None else _check.mapping(param, "param", f"{kind} ({type})").values():
            _check.mapping(inner, "param", f"{kind} ({type})")
        attributes = flatten({each[:-1] if keyword.iskeyword(each[:-1]) else each: value
                              for each, value in kwargs.items()})  # fmt: skip
        if kind == "layer":
            return make(type, inputs, attributes, name or "")
        return make(type, attributes)

    function.__name__ = python_name(type)
    function.__qualname__ = function.__name__
    function.__module__ = f"tenon.{kind}"
    function.__doc__ = documentation(kind, described)
    function.__signature__ = of  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in of.parameters.values()}
    function.__annotations__["return"] = of.return_annotation
    return function
