"""Adds to a wheel the licence texts of the Debian packages whose code it has: wheel_licences.py WHEEL [PACKAGE...]

The packages are those of the libraries that auditwheel has copied into it, and those stated, which were linked statically.
The texts go into licenses/third_party of its .dist-info, each with the name of its package,
and the texts to which these refer.
SPDX-License-Identifier: Apache-2.0"""
import re
import subprocess
import sys
from pathlib import Path

from auditwheel.wheeltools import InWheel


def package_of(library: Path) -> str:
    """The package that a library is from, whose name has got a part of its digest."""
    name = re.sub(r"-[0-9a-f]{8}(?=\.)", "", library.name)
    printed = subprocess.run(["dpkg", "-S", f"*/{name}"], check=True, capture_output=True, text=True).stdout
    return printed.split(":")[0]


def main(wheel: Path, packages: list[str]) -> None:
    with InWheel(wheel, wheel):
        copied = [package_of(library) for library in Path().glob("*.libs/*.so*")]
        folder = next(Path().glob("*.dist-info")) / "licenses/third_party"
        folder.mkdir(parents=True)
        for package in {*copied, *packages}:
            text = Path("/usr/share/doc", package, "copyright").read_bytes()
            (folder / package).write_bytes(text)
            for common in re.findall(rb"/usr/share/common-licenses/([\w.-]*\w)", text):
                name = common.decode()
                (folder / name).write_bytes(Path("/usr/share/common-licenses", name).read_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
