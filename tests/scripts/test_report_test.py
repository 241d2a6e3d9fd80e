"""What scripts/test-report makes of failures, skips and tests that are expected to fail: test_report_test.py ROOT
SPDX-License-Identifier: Apache-2.0"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()


def case(name, status="run", inner=""):
    return f'<testcase name="{name}" time="1" status="{status}">{inner}</testcase>'


class Report(unittest.TestCase):
    def run_report(self, cases, known, quarantine):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "report.xml").write_text("<testsuite>" + "".join(cases) + "</testsuite>")
            (folder / "skips").write_text("no GPU\n")
            (folder / "known").write_text("# a comment\n\n" + known)
            (folder / "quarantine").write_text("# a comment\n" + quarantine)
            files = (folder / file for file in ("report.xml", "skips", "known", "quarantine"))
            return subprocess.run([ROOT / "scripts/test-report", *files], capture_output=True, text=True, check=False)

    def report(self, cases, known="", quarantine=""):
        done = self.run_report(cases, known, quarantine)
        self.assertEqual(done.returncode, 0, done.stderr)
        *lines, counts = done.stdout.splitlines()
        return lines, list(map(int, counts.split()))

    def test_failures_and_skips_are_counted(self):
        skip = '<skipped/><system-out>a.cpp:1: Skipped\n{}</system-out>'
        lines, counts = self.report([case("a"), case("b", "fail", '<failure message="1"/>'),
                                     case("c", "notrun", skip.format("no GPU")), case("d", "notrun", skip.format("tired"))])
        self.assertEqual(counts, [4, 1, 2, 1])
        self.assertIn("failed: b: 1, 1.0 s", lines)
        self.assertIn("SKIPPED WITHOUT LEAVE: d: tired", lines)

    def test_a_known_issue_that_fails_is_no_failure(self):
        lines, counts = self.report([case("a/b.C.D", "fail"), case("b", "fail")], "a/b.C.D: sums are wrong: all of them\n")
        self.assertEqual(counts, [2, 1, 0, 0])
        self.assertIn("known issue: a/b.C.D", lines)

    def test_a_known_issue_that_passes_is_a_failure(self):
        lines, counts = self.report([case("a")], "a: it is wrong\n")
        self.assertEqual(counts, [1, 1, 0, 0])
        self.assertIn("failed: a: it passes, but tests/known_issues.txt expects it to fail", lines)

    def test_a_quarantined_test_may_fail_or_pass(self):
        lines, counts = self.report([case("a", "fail"), case("b"), case("c", "fail")],
                                    quarantine="2026-11-28 a: rarely late\n2026-11-28 b: rarely late\n")
        self.assertEqual(counts, [3, 1, 0, 0])
        self.assertIn("quarantined: a failed, since 2026-11-28: rarely late", lines)

    def test_the_quarantine_is_short_and_dated(self):
        for text, part in (("a: rarely late\n", "expected \"YYYY-MM-DD NAME: what is known\", got \"a: rarely late\""),
                           ("".join(f"2026-11-28 {name}: late\n" for name in "abcdef"), "6 tests; expected at most 5")):
            done = self.run_report([case("a")], "", text)
            self.assertEqual(done.returncode, 1)
            self.assertIn(part, done.stderr)


if __name__ == "__main__":
    unittest.main()
