"""What scripts/changed calls changed, in a small repository: changed_test.py ROOT
SPDX-License-Identifier: Apache-2.0"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
ROOMS = ["base", "bindings", "comms", "core", "devices", "host", "launch", "layers", "new_job", "process", "readers",
         "record", "rerun", "sdk", "updaters", "weights"]
FILES = {
    ".clang-tidy": "Checks: all\n",
    "sdk/include/tenon/base.h": "int base;\n",
    "core/a.h": "#include <tenon/base.h>\n",
    "core/a.cpp": '#include "core/a.h"\n',
    "host/b.cpp": '#include "core/a.h"\n',
    "plugins/layers/c.cpp": "#include <tenon/base.h>\n",
    "plugins/readers/d.cpp": "int d;\n",
    "tests/layers/c_test.cpp": "int test;\n",
}
ALL_BUT_HEADERS = ["core/a.cpp", "host/b.cpp", "plugins/layers/c.cpp", "plugins/readers/d.cpp"]


class Changed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, text in FILES.items():
            self.write(name, text)
        (self.root / "scripts").mkdir()
        for name in ("scripts/changed", "scripts/rooms.py"):
            shutil.copy(ROOT / name, self.root / name)
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def changed(self, *arguments):
        command = [str(self.root / "scripts/changed"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    def test_without_a_record_all_is_changed(self):
        self.assertEqual(sorted(self.changed("asan")), ROOMS)
        self.assertEqual(self.changed("tidy"), ["sdk/include/tenon/base.h", *ALL_BUT_HEADERS])

    def test_rooms_change_with_their_sources_and_tests(self):
        for name, rooms in {"plugins/readers/d.cpp": ["readers"], "tests/layers/c_test.cpp": ["layers"],
                            "core/a.cpp": ["core"], "sdk/include/tenon/base.h": ["sdk"], "host/new.h": ["host"],
                            "tests/support/new.h": []}.items():
            with self.subTest(name=name):
                self.changed("asan", "--record")
                self.assertEqual(self.changed("asan"), [])
                self.write(name, "int other;\n")
                self.assertEqual(sorted(self.changed("asan")), rooms)

    def test_files_change_with_their_headers_and_the_settings(self):
        every = ["sdk/include/tenon/base.h", *ALL_BUT_HEADERS]
        for name, files in {"host/b.cpp": ["host/b.cpp"], "core/a.h": ["core/a.cpp", "host/b.cpp"],
                            ".clang-tidy": every}.items():
            with self.subTest(name=name):
                self.changed("tidy", "--record")
                self.assertEqual(self.changed("tidy"), [])
                self.write(name, FILES[name] + "\n")
                self.assertEqual(self.changed("tidy"), files)

    def test_the_least_files_have_each_changed_text(self):
        for names, files in {("host/b.cpp",): ["host/b.cpp"], ("core/a.h",): ["core/a.cpp"],
                             ("core/a.h", "host/b.cpp"): ["host/b.cpp"], (".clang-tidy",): [],
                             ("core/a.h", "sdk/include/tenon/base.h"): ["sdk/include/tenon/base.h", "core/a.cpp"]}.items():
            with self.subTest(names=names):
                self.changed("tidy", "--record")
                self.assertEqual(self.changed("tidy", "--least"), [])
                for name in names:
                    self.write(name, FILES[name] + "\n// other\n")
                self.assertEqual(self.changed("tidy", "--least"), files)
                for name in names:
                    self.write(name, FILES[name])

    def test_a_header_is_clean_with_one_source_that_has_it(self):
        self.changed("tidy", "--record")
        self.write("core/a.h", "#include <tenon/base.h>\nint other;\n")
        self.changed("tidy", "--record", "host/b.cpp")
        self.assertEqual(self.changed("tidy", "--least"), [])
        self.assertEqual(self.changed("tidy"), ["core/a.cpp"])

    def test_a_header_with_a_finding_is_open_and_the_source_that_has_it_is_not(self):
        self.changed("tidy", "--record")
        self.write("core/a.h", "#include <tenon/base.h>\nint other;\n")
        self.write("core/a.cpp", '#include "core/a.h"\nint own;\n')
        self.changed("tidy", "--but", "core/a.h", "--record", "core/a.cpp")
        self.assertEqual(self.changed("tidy"), ["core/a.cpp", "host/b.cpp"])
        self.write("core/a.h", "#include <tenon/base.h>\nint mended;\n")
        self.changed("tidy", "--record", "host/b.cpp")
        self.assertEqual(self.changed("tidy", "--least"), [])

    def test_headers_of_c_and_of_users_are_looked_at_themselves(self):
        self.changed("tidy", "--record")
        self.write("sdk/include/tenon/base.h", "int other;\n")
        self.write("check/include/tenon/check.hpp", "#include <tenon/base.h>\n")
        self.changed("tidy", "--record", *ALL_BUT_HEADERS)
        self.assertEqual(self.changed("tidy"), ["sdk/include/tenon/base.h", "check/include/tenon/check.hpp"])
        self.assertEqual(self.changed("tidy", "--least"), ["sdk/include/tenon/base.h", "check/include/tenon/check.hpp"])

    def test_what_was_written_while_a_check_ran_is_not_recorded(self):
        self.changed("tidy", "--record")
        for name, text in FILES.items():
            self.write(name, f"{text}\n// other\n")
            os.utime(self.root / name, (1000, 3000 if name == "core/a.h" else 1000))
        self.changed("tidy", "--began", "2000", "--record")
        self.assertEqual(self.changed("tidy"), ["core/a.cpp", "host/b.cpp"])

    def test_the_record_is_no_part_of_the_repository_until_it_is_whole(self):
        whole, part = self.root / "tests/clean/tidy.txt", self.root / "build/clean/tidy.txt"
        self.changed("tidy", "--record", *ALL_BUT_HEADERS)
        self.assertEqual((whole.exists(), part.exists()), (False, True))
        self.changed("tidy", "--record", "sdk/include/tenon/base.h")
        self.assertTrue(whole.exists())
        self.write("host/new.cpp", "int new;\n")
        self.changed("tidy", "--record", "core/a.cpp")
        self.assertEqual(self.changed("tidy"), ["host/new.cpp"])

    def test_some_names_are_recorded_and_lost_files_leave_the_record(self):
        self.changed("tidy", "--record", "host/b.cpp", "core/a.cpp")
        self.assertEqual(self.changed("tidy"),
                         ["sdk/include/tenon/base.h", "plugins/layers/c.cpp", "plugins/readers/d.cpp"])
        (self.root / "host/b.cpp").unlink()
        self.changed("tidy", "--record", "core/a.cpp")
        self.assertNotIn("host/b.cpp", (self.root / "build/clean/tidy.txt").read_text())


if __name__ == "__main__":
    unittest.main()
