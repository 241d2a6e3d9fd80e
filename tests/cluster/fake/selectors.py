"""Label selectors and field selectors, as queries spell them.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .errors import ApiError
from .kinds import Kind

Test = Callable[[dict], bool]

_REQUIREMENT = re.compile(
    r"\s*(?:(?P<set>[\w./-]+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)"
    r"|(?P<key>[\w./-]+)\s*(?P<sign>==|=|!=)\s*(?P<value>[\w.-]*)"
    r"|(?P<no>!?)\s*(?P<name>[\w./-]+))\s*(?:,|$)"
)


def _label_test(match: re.Match) -> Test:
    if match["set"]:
        values = {value.strip() for value in match["values"].split(",")}
        wanted = match["op"] == "in"
        return lambda labels: (labels.get(match["set"]) in values) == wanted
    if match["key"]:
        wanted = match["sign"] != "!="
        return lambda labels: (labels.get(match["key"]) == match["value"]) == wanted
    return lambda labels: (match["name"] in labels) != bool(match["no"])


def labels(text: str) -> Test:
    """A test of an object's labels."""
    tests = []
    at = 0
    while at < len(text):
        match = _REQUIREMENT.match(text, at)
        if not match:
            raise ApiError(400, f"unable to parse requirement: {text!r}")
        tests.append(_label_test(match))
        at = match.end()
    return lambda found: all(test(found) for test in tests)


def value_at(found: dict, path: str) -> str:
    for key in path.split("."):
        found = found.get(key, {})
    return found if isinstance(found, str) else ""


def fields(text: str, kind: Kind) -> Test:
    """A test of an object's fields; a server knows only a few of them."""
    terms = []
    for term in filter(None, text.split(",")):
        path, sign, value = re.fullmatch(r"([^=!]*)(==|=|!=|)(.*)", term).groups()
        if not sign:
            raise ApiError(400, f"invalid selector: {text!r}; can't understand {term!r}")
        if path not in ("metadata.name", "metadata.namespace", *kind.fields):
            raise ApiError(400, f"field label not supported: {path}")
        terms.append((path, value, sign != "!="))
    return lambda found: all((value_at(found, path) == value) == wanted for path, value, wanted in terms)


def both(label_text: str, field_text: str, kind: Kind) -> Test:
    by_label, by_field = labels(label_text), fields(field_text, kind)
    return lambda found: by_label(found["metadata"].get("labels", {})) and by_field(found)


def matches(selector: dict, found: dict) -> bool:
    """Whether labels have all of a map, as the selector of a Service has it."""
    return all(found.get(key) == value for key, value in selector.items())
