"""That rules.py finds calls of the C library, and nothing else. SPDX-License-Identifier: Apache-2.0"""
import pathlib
import unittest

import rules


def calls(path, text):
    return list(rules.library_calls(pathlib.PurePosixPath(path), text))


class LibraryCalls(unittest.TestCase):
    def test_cpp(self):
        self.assertEqual(calls("core/x.cpp", "a\nb = std::exp(c) + std::log1pf(d);"), [(2, "std::exp"), (2, "std::log1pf")])
        for text in ("std::sqrt(x)", "std::fma(a, b, c)", "exp(x) * tanh(x)", "// std::exp(x)", "/* std::pow */",
                     "\"std::log(x)\"", "std::logic_error(x)", "std::expected<int>", "tn_math_exp(x)"):
            self.assertEqual(calls("plugins/x.cpp", text), [], text)

    def test_c(self):
        for path in ("sdk/include/tenon/x.h", "sdk/manifest/x.c"):
            self.assertEqual(calls(path, "y = pow(a, b);"), [(1, "pow")])
            for text in ("tn_math_pow(a, b)", "/* exp(a) */", "a.log(b)", "a->log(b)", "int log;"):
                self.assertEqual(calls(path, text), [], text)

    def test_lines_behind_comments(self):
        self.assertEqual(calls("core/x.cpp", "/* a\n b */\nstd::sin(x)"), [(3, "std::sin")])


if __name__ == "__main__":
    unittest.main()
