"""Events of Paddle v2. SPDX-License-Identifier: Apache-2.0"""

from tenon.event import BeginIteration, BeginPass, EndIteration, EndPass  # noqa: F401 (names of v2)
from tenon.trainer import Result as TestResult  # noqa: F401
from tenon.v2._refused import refuse

__getattr__ = refuse(__name__, globals())
