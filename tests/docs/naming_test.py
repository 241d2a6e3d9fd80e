"""That naming.py counts what it says, and nothing else. SPDX-License-Identifier: Apache-2.0"""
import unittest

import naming


class Naming(unittest.TestCase):
    def test_names(self):
        for line in ("const auto made = f();", "for (const Node& it : nodes)", "void f(const Layer& of, int known) {",
                     "std::map<int, A> found;", "tn_x_options given = {};", "[&](Host& it) {"):
            self.assertGreater(naming.count(line), 0, line)
        for line in ("const auto layer = f();", "return given;", "// what is made of it;",
                     "/* the same of it,\n * what of it; */", "\"int made = 1;\"", "made.push(1);",
                     "int remade = 1;", "given = 2;"):
            self.assertEqual(naming.count(line), 0, line)

    def test_classes_and_conditions(self):
        self.assertEqual(naming.count("class Run {"), 1)
        self.assertEqual(naming.count("class RunTable {"), 0)
        self.assertEqual(naming.count("x = a ? b : c ? d : e;"), 1)
        self.assertEqual(naming.count("x = a ? b : c;"), 0)

    def test_counts_only_fall(self):
        self.assertEqual(list(naming.check({"core": 2}, {"core": 2})), [])
        self.assertIn("expected at most 2", next(naming.check({"core": 3}, {"core": 2})))
        self.assertIn("expected at most 0", next(naming.check({"new": 1}, {})))
        self.assertIn("are left of 2", next(naming.check({"core": 1}, {"core": 2})))


if __name__ == "__main__":
    unittest.main()
