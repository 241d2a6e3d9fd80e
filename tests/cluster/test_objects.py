"""The objects of a training: those that are checked in, and that a server would refuse each of them with a mistake in it.

SPDX-License-Identifier: Apache-2.0
"""

import copy
import os
import re
from pathlib import Path

import pytest

import fake_user
from fake import kinds, validation

HERE = Path(__file__).parent  # objects.yaml, objects-jobset.yaml: TENON_RECORD=1 writes them anew
FREE = {"labels", "annotations", "data", "stringData", "matchLabels", "selector", "nodeSelector", "requests", "limits"}
OF_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "deletionTimestamp", "finalizers")
KINDS = ("jobsets", "configmaps", "services", "networkpolicies", "secrets")
LEAST = 397  # mutants


@pytest.mark.parametrize(("kind", "name"), [("jobs", "objects.yaml"), ("jobset", "objects-jobset.yaml")])
def test_the_objects_are_those_that_were_reviewed(laptop, kind, name):
    options = (f"--dry-run={kind}", "--processes", "3", "--servers", "1", "--claim", "work", "--memory", "2Gi")
    options += ("--namespace", "team")
    laptop.data = Path("/data")
    options += ("--pull-secret", "registry", "--node-selector", "disk=ssd", "--toleration", "gpu=yes:NoSchedule")
    code, output = laptop.run(*options, "--toleration", "spot", "--label", "kueue.x-k8s.io/queue-name=team")
    assert code == 0, output
    output = re.sub("job-[a-z0-9]{5}", "job-xxxxx", output)
    if os.environ.get("TENON_RECORD"):
        (HERE / name).write_text(output)
    assert output == (HERE / name).read_text()


def created(laptop, cluster):
    """What a training creates, as the server has it."""
    laptop.cluster = cluster
    cluster.control("unschedulable", on=True)
    process = laptop.begin("--processes", "3", "--servers", "1", "--claim", "work", "--label", "a/b=c", "--pull-secret", "r",
                           "--node-selector", "disk=ssd", "--toleration", "gpu=yes:NoExecute")  # fmt: skip
    cluster.until(f"{fake_user.ROOT}/secrets", lambda found: found["items"], seconds=20)
    return process


def without_servers_part(item):
    item.pop("status", None)
    for name in OF_SERVER:
        item["metadata"].pop(name, None)
    return item


def places(value, path=()):
    """The paths of all members and entries."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield (*path, key)
            yield from places(member, (*path, key))
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield (*path, number)
            yield from places(entry, (*path, number))


def at(value, path):
    for step in path:
        value = value[step]
    return value


def mutants(item):
    """(what, object): each key renamed, and each value of another type."""
    for path in places(item):
        free = any(step in FREE for step in path[:-1])
        if isinstance(path[-1], str) and not free:
            renamed = copy.deepcopy(item)
            parent = at(renamed, path[:-1])
            parent[path[-1] + "x"] = parent.pop(path[-1])
            yield (".".join(map(str, path)) + " renamed", renamed)
        retyped = copy.deepcopy(item)
        parent = at(retyped, path[:-1])
        parent[path[-1]] = "text" if isinstance(parent[path[-1]], list) else [parent[path[-1]]]
        yield (".".join(map(str, path)) + " retyped", retyped)


def test_mistakes_are_refused(laptop, cluster):
    process = created(laptop, cluster)
    items = []
    for kind in [each for each in kinds.ALL if each.plural in KINDS]:
        listed = cluster("GET", kind.path.format(namespace="default"))["items"]
        items += [(kind, without_servers_part({"apiVersion": kind.api_version, "kind": kind.name, **item})) for item in listed]
    process.terminate()
    process.communicate(timeout=60)
    cluster.control("unschedulable", on=False)
    assert {kind.plural for kind, _ in items} >= {"jobsets", "configmaps", "networkpolicies", "secrets"}
    check = validation.Validator(["1.37"])
    count, missed = 0, []
    for kind, item in items:
        validation.Validator(["1.29", "1.33", "1.37"]).check(kind, copy.deepcopy(item))
        for what, mutant in mutants(item):
            count += 1
            try:
                check.check(kind, mutant)
                missed.append(f"{kind.name}: {what}")
            except Exception as refused:  # noqa: BLE001 (of a server)
                assert refused
    assert not missed
    assert count >= LEAST
