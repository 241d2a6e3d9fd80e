"""Refusals, as the Status objects that an API server answers with.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from .kinds import Kind

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class ApiError(Exception):
    def __init__(self, code: int, message: str, reason: str | None = None, details: dict | None = None):
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason or REASONS.get(code, "Unknown")
        self.details = details or {}

    def status(self) -> dict:
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message}
        if self.details:
            status["details"] = self.details
        return {**status, "reason": self.reason, "code": self.code}


def details_of(kind: Kind, name: str) -> dict:
    return {"name": name, "kind": kind.plural} | ({"group": kind.group} if kind.group else {})


def not_found(kind: Kind, name: str) -> ApiError:
    return ApiError(404, f'{kind.resource} "{name}" not found', details=details_of(kind, name))


def already_exists(kind: Kind, name: str) -> ApiError:
    return ApiError(409, f'{kind.resource} "{name}" already exists', "AlreadyExists", details_of(kind, name))


def conflict(kind: Kind, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return ApiError(409, message, details=details_of(kind, name))


def forbidden(kind: Kind, name: str, why: str) -> ApiError:
    subject = f'{kind.resource} "{name}" is forbidden' if name else f"{kind.resource} is forbidden"
    return ApiError(403, f"{subject}: {why}", details=details_of(kind, name))


def invalid(kind: Kind, name: str, causes: list[str]) -> ApiError:
    """Causes are texts such as 'spec.replicas: Invalid value: ...'."""
    text = causes[0] if len(causes) == 1 else "[" + ", ".join(causes) + "]"
    fields = [{"reason": "FieldValueInvalid", "field": x.split(": ")[0], "message": x.split(": ", 1)[-1]} for x in causes]
    details = {**details_of(kind, name), "kind": kind.name, "causes": fields}
    return ApiError(422, f'{kind.typed} "{name}" is invalid: {text}', details=details)
