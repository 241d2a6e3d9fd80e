"""That lengths.py sees long files and long functions, in C++ and Python, and leaves tables and docstrings alone.
SPDX-License-Identifier: Apache-2.0"""
import pathlib
import tempfile
import unittest

import lengths


def lines_of(text, count):
    return "".join(text.format(number) + "\n" for number in range(count))


def switch(rows):
    return f"int f(int x) {{\n  switch (x) {{\n{lines_of('    case {0}: return {0};', rows)}  }}\n}}\n"


class Lengths(unittest.TestCase):
    def complaints(self, name, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True)
            path.write_text(text, encoding="utf-8")
            return list(lengths.check(pathlib.Path(folder)))

    def test_files(self):
        self.assertEqual(self.complaints("core/a.h", lines_of("int a{};", 500)), [])
        self.assertEqual(self.complaints("core/a.h", lines_of("int a{};", 501)),
                         ["core/a.h: 501 lines; expected at most 500"])
        self.assertEqual(self.complaints("scripts/a", "#!/usr/bin/env python3\n" + "a = 1\n" * 500),
                         ["scripts/a: 501 lines; expected at most 500"])
        self.assertEqual(self.complaints("tests/sdk/released/0.2/a.h", lines_of("int a{};", 501)), [])

    def test_folders(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for room, sources in (("core", 36), ("core/graph", 35), ("host/include/tenon", 36), ("tests/core", 36)):
                (folder / room).mkdir(parents=True, exist_ok=True)
                for number in range(sources):
                    (folder / room / f"a{number}.h").write_text("int a;\n", encoding="utf-8")
            self.assertEqual(list(lengths.check(folder)), ["core: 36 sources; expected at most 35"])

    def test_functions_of_c(self):
        body = "  g();\n"
        for name in ("a.c", "a.cpp", "a.cu", "a.h"):
            with self.subTest(name):
                self.assertEqual(self.complaints(f"core/{name}", f"void f(void) {{\n{body * 58}}}\n"), [])
                self.assertEqual(self.complaints(f"core/{name}", f"\nvoid f(void) {{\n{body * 59}}}\n"),
                                 [f"core/{name}:2: f has 61 lines; expected at most 60"])
        member = f"struct S {{\n  void f() {{\n{body * 59}  }}\n}};\n"
        self.assertEqual(self.complaints("host/a.cpp", member), ["host/a.cpp:2: f has 61 lines; expected at most 60"])
        test = f"TEST(A, B) {{\n{body * 59}}}\n"
        self.assertEqual(self.complaints("tests/a.cpp", test), ["tests/a.cpp:1: TEST has 61 lines; expected at most 60"])

    def test_functions_of_python(self):
        for name, first in (("tests/a.py", ""), ("tests/a", "#!/usr/bin/env python3\n")):
            with self.subTest(name):
                line = first.count("\n") + 1
                docstring = f'    """{"text" * 5}\n{lines_of("    line {}", 80)}    """\n'
                self.assertEqual(self.complaints(name, first + "def f():\n" + docstring + "    g()\n" * 59), [])
                self.assertEqual(self.complaints(name, first + "def f():\n" + docstring + "    g()\n" * 60),
                                 [f"{name}:{line}: f has 61 lines; expected at most 60"])

    def test_tables(self):
        self.assertEqual(self.complaints("core/a.cpp", switch(100)), [])
        rows = lines_of('    {{{0}, "{0}"}},', 100)
        self.assertEqual(self.complaints("core/a.cpp", f"int f() {{\n  static const Row rows[] = {{\n{rows}  }};\n}}\n"), [])
        mixed = switch(30).replace("return 1;", "\n" + "g();\n" * 60)
        self.assertEqual(self.complaints("core/a.cpp", mixed), ["core/a.cpp:1: f has 95 lines; expected at most 60"])


if __name__ == "__main__":
    unittest.main()
