"""What goes wrong on purpose: answers that are late, refused or lost, and streams that break.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import collections
import threading
import time
from dataclasses import dataclass

from .errors import REASONS, ApiError

LOST = "lost"  # a code: the request is done, and its answer never arrives


@dataclass
class Failure:
    count: int
    code: int | str
    verb: str = "*"
    resource: str = "*"
    retryAfter: int = 1

    def fits(self, verb: str, resource: str) -> bool:
        return self.count > 0 and self.verb in ("*", verb) and self.resource in ("*", resource)


class Faults:
    def __init__(self):
        self.lock = threading.Lock()
        self.delay = 0.0
        self.silent_until = 0.0
        self.failures: list[Failure] = []
        self.drops: collections.Counter[str] = collections.Counter()  # how often streams of a sort were broken
        self.clean = False  # they end as if they were complete

    def reset(self) -> None:
        with self.lock:
            self.delay = self.silent_until = 0.0
            self.failures.clear()

    def keep_silent(self) -> None:
        """Waits where nothing is to be sent for now."""
        while time.monotonic() < self.silent_until:
            time.sleep(0.05)

    def before(self, verb: str, resource: str) -> bool:
        """Waits, and raises what a request is to fail by. True: its answer is to be lost."""
        time.sleep(self.delay)
        self.keep_silent()
        with self.lock:
            failure = next((x for x in self.failures if x.fits(verb, resource)), None)
            if failure is None:
                return False
            failure.count -= 1
        if failure.code == LOST:
            return True
        details = {"retryAfterSeconds": failure.retryAfter} if failure.code in (429, 503) else {}
        raise ApiError(failure.code, f"{REASONS.get(failure.code, 'error')} on purpose", details=details)
