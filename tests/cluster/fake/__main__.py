"""Runs a cluster until it is told to stop: python -m fake FOLDER, with tests/cluster on the path of Python.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import argparse
import os
import pathlib
import signal
import sys

if not __package__:  # run as a folder: python tests/cluster/fake
    sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

from fake import control
from fake.cluster import Cluster, Settings
from fake.kinds import Catalog
from fake.server import Front

VERSIONS = "1.29,1.33,1.37"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fake", description="A Kubernetes cluster whose pods are local processes.")
    parser.add_argument("folder", type=pathlib.Path, help="gets the kubeconfig, and all that the cluster keeps")
    add = parser.add_argument
    add("--image", action="append", default=[], metavar="IMAGE=FOLDER", help="an image, and what stands for it")
    add("--no-jobset", action="store_true", help="serve no JobSets")
    add("--versions", default=VERSIONS, help=f"of Kubernetes, by whose schemas objects are checked ({VERSIONS})")
    add("--namespace", action="append", default=[], help="a namespace that exists, beside default")
    add("--claim", action="append", default=[], help="a PersistentVolumeClaim that exists in the namespace default")
    add("--share", action="append", default=[], metavar="FOLDER", help="is in containers what it is outside, writable")
    add("--pass-env", action="append", default=[], metavar="NAME", help="a variable that containers get")
    add("--limit-memory", action="store_true", help="bound the address space of containers by their memory limit")
    add("--restart-delay", type=float, default=1.0, metavar="SECONDS", help="before a container is started again")
    add("--backoff", type=float, default=0.1, metavar="SECONDS", help="before a Job replaces its first failed pod")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    stops = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)  # in all threads: the wait below takes them
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ready").unlink(missing_ok=True)
    settings = Settings(
        folder=folder,
        images=dict(image.split("=", 1) for image in options.image),
        passed=options.pass_env,
        shared=[os.path.realpath(path) for path in options.share],
        limit_memory=options.limit_memory,
        restart_delay=options.restart_delay,
        backoff=options.backoff,
    )
    versions = options.versions.split(",")
    cluster = Cluster(settings, Catalog(versions[-1], jobsets=not options.no_jobset), versions)
    front = Front(cluster)
    front.open()
    settings.port = front.port
    cluster.authority.write_kubeconfig(front.port)
    cluster.start(["default", *options.namespace], options.claim)
    (folder / "control").write_text(control.serve(control.Control(cluster, front)))
    (folder / "ready.new").write_text(str(front.port))
    (folder / "ready.new").rename(folder / "ready")
    signal.sigwait(stops)
    front.close()
    cluster.stop()


if __name__ == "__main__":
    main()
