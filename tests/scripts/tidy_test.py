"""What scripts/tidy gives to clang-tidy and records of it, in a small repository: tidy_test.py ROOT
SPDX-License-Identifier: Apache-2.0"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
# Finds fault with each line "bad", of a header too, and reads no unit with two lines of "int same;".
CLANG_TIDY = """#!/usr/bin/env python3
import pathlib, re, sys
def read(file, seen):
    for name in re.findall('#include "(.*)"', file.read_text()):
        for path in (pathlib.Path(name), ROOT / name):
            if path.is_file() and path not in seen:
                seen.append(path)
                read(path, seen)
ROOT, seen = pathlib.Path.cwd(), []
read(pathlib.Path(sys.argv[-1]), seen)
with open(ROOT / "build/units", "a") as units:
    units.write(" ".join(str(path.relative_to(ROOT)) for path in seen if path.suffix != ".h") + "\\n")
texts = {path: path.read_text() for path in seen}
found = [f"{path}:1:1: error: bad [some-check]" for path, text in texts.items() if "bad" in text]
same = [path for path, text in texts.items() if "int same;" in text]
found += [f"{path}:1:1: error: redefinition [clang-diagnostic-error]" for path in same[1:]]
print("\\n".join(found))
sys.exit(bool(found))
"""


class Tidy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        for name in ("scripts/tidy", "scripts/changed", "scripts/rooms.py", ".clang-tidy"):
            (self.root / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self.write("build/clang-tidy", CLANG_TIDY).chmod(0o755)
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1000, 1000))
        return path

    def tidy(self, sources, *options):
        """Returns the units that a run over these files looked at, and the files that are left."""
        for name, text in sources.items():
            self.write(name, text)
        entries = [{"file": str(self.root / name), "command": f"c++ -std=c++20 -o x -c {name}"} for name in sources]
        self.write("build/compile_commands.json", json.dumps(entries))
        units = self.write("build/units", "")
        environment = os.environ | {"PATH": f"{self.root / 'build'}:{os.environ['PATH']}"}
        run = subprocess.run([str(self.root / "scripts/tidy"), *options], env=environment, capture_output=True, text=True,
                             check=False)
        self.assertEqual(run.stderr, "")
        left = subprocess.run([str(self.root / "scripts/changed"), "tidy", "--least"], capture_output=True, text=True,
                              check=True).stdout.split()
        return sorted(units.read_text().splitlines()), left

    def test_files_are_one_unit_unless_hidden_names_meet(self):
        hidden = "namespace {\nint first() {\n  return 1;\n}\nint second() { return 1; }\n}  // namespace\n"
        hidden = f"namespace tenon {{\n{hidden}}}\n"
        units, left = self.tidy({"core/a.cpp": hidden, "core/b.cpp": "namespace tenon {\nint other() { return second(); }\n}\n",
                                 "core/c.cpp": hidden.replace("first", "third")})
        self.assertEqual((units, left), (["core/a.cpp core/b.cpp", "core/c.cpp"], []))

    def test_a_unit_that_cannot_be_read_is_halved(self):
        text = "namespace tenon {\nint same;\n}\n"
        units, left = self.tidy({"core/a.cpp": text, "core/b.cpp": text})
        self.assertEqual((units, left), (["core/a.cpp", "core/a.cpp core/b.cpp", "core/b.cpp"], []))

    def test_a_finding_leaves_its_file_alone(self):
        sources = {"core/a.cpp": '#include "core/a.h"\n', "core/b.cpp": "bad\n", "core/c.cpp": "int c;\n"}
        self.write("core/a.h", "bad\n")
        _, left = self.tidy(sources)
        self.assertEqual(left, ["core/b.cpp", "core/a.cpp"])
        self.write("core/a.h", "int mended;\n")
        units, left = self.tidy(sources | {"core/b.cpp": "int mended;\n"}, "--least")
        self.assertEqual((units, left), (["core/b.cpp core/a.cpp"], []))

    def test_without_time_nothing_is_clean(self):
        self.assertEqual(self.tidy({"core/a.cpp": "int a;\n"}, "--minutes", "0"), ([], ["core/a.cpp"]))


if __name__ == "__main__":
    unittest.main()
