"""The options of teams, by struct. Written by host/api/spec/generate_options.py.

SPDX-License-Identifier: Apache-2.0
"""

from tenon._base.check import Option

TEAM = {
    "comm": Option("text", ""),
    "attributes": Option("text", ""),
    "rank": Option("int64", -1, -1),
    "processes": Option("int64", -1, -1),
    "epoch": Option("uint32", 0),
    "address": Option("text", ""),
    "listen": Option("text", ""),
    "secret": Option("text", ""),
    "deadline_seconds": Option("double", 30.0, 0),
    "servers": Option("int64", 0, 0),
    "silence_seconds": Option("double", 1.5, 0),
}
