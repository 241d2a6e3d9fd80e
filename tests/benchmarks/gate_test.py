"""The gate of instruction counts: with valgrind, over programs that count to a number. SPDX-License-Identifier: Apache-2.0

gate_test.py SOURCES
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
STEPS = 200_000
# Loads what the linker finds, works before and after, and calls tenon_counted as benchmarks/support/bench.h does.
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
static void work(long steps) { for (volatile long i = 0; i < steps; ++i) {} }
__attribute__((noinline, used)) void tenon_counted(void (*calls)(void*), void* data) { calls(data); __asm__ volatile(""); }
static void calls(void* data) { for (int i = 0; i < *(int*)data; ++i) work(STEPS); }
int main(int argc, char** argv) {
  int count = argc == 6 ? atoi(argv[5]) : 0;
  if (count == 0) return 3;
  work(OTHERS);
  tenon_counted(calls, &count);
  work(OTHERS);
  return puts("{\\"seconds\\": 0}") < 0;
}
"""


class Gate(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "bin").mkdir()
        self.kept = self.folder / "gate.txt"

    def build(self, row, steps=STEPS, others=1000):
        subprocess.run([os.environ.get("CC", "cc"), "-O1", f"-DSTEPS={steps}", f"-DOTHERS={others}", "-x", "c", "-", "-o",
                        self.folder / f"bin/bench_{row}"], input=PROGRAM, text=True, check=True)

    def gate(self, *words, environment=()):
        return subprocess.run([sys.executable, "-B", ROOT / "benchmarks/gate", "--build", self.folder, "--kept", self.kept,
                               *words], capture_output=True, text=True, check=False,
                              env=os.environ | dict(environment))

    def count(self, row):
        return int([line for line in self.kept.read_text().splitlines() if line.startswith(row)][-1].split()[1])

    @unittest.skipUnless(shutil.which("valgrind"), "no valgrind")
    def test_a_row_that_takes_five_percent_more_is_named(self):
        for row in "adam", "tiny_answer":
            self.build(row)
        done = self.gate("adam", "tiny_answer", "--record", "first counts")
        self.assertEqual(done.returncode, 0, done.stderr)

        self.build("tiny_answer", steps=STEPS * 105 // 100)
        done = self.gate("adam", "tiny_answer")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?m)^adam +[\d,]+ +[+-]0.00%$")
        self.assertRegex(done.stdout, r"(?m)^tiny_answer +[\d,]+ +\+5.0\d%  FAILED: gate.txt allows 3% above ")
        self.assertIn("more instructions than before: tiny_answer. If that is meant", done.stderr)

        before = self.kept.read_text()
        done = self.gate("adam", "tiny_answer", "--record", "a row has more to do")
        self.assertIn("1 rows recorded", done.stdout)
        self.assertEqual(self.kept.read_text().removeprefix(before).split(maxsplit=2)[::2],
                         ["tiny_answer", "a row has more to do\n"])

        self.build("tiny_answer", steps=STEPS * 107 // 100)  # 2 % more than what is kept now
        self.assertEqual(self.gate("tiny_answer").returncode, 0)
        self.build("tiny_answer")
        self.assertRegex(self.gate("tiny_answer").stdout, r"-4.7\d%  faster: keep it by --record")

    @unittest.skipUnless(shutil.which("valgrind"), "no valgrind")
    def test_counts_are_of_the_calls_alone(self):
        self.build("adam")
        self.gate("adam", "--record", "first count")
        first = self.count("adam")
        self.build("adam", others=STEPS)
        self.gate("adam", "--record", "same", environment={"LD_BIND_NOW": "1", "FILLS_THE_STACK": "x" * 5000}.items())
        self.assertEqual(self.count("adam"), first)
        self.assertGreater(first, STEPS)
        self.assertLess(first, 10 * STEPS)

    def test_mistakes_are_named(self):
        for words, text in ((["addam"], 'no row "addam"; there are: mlp'), (["adam", "--record", " "], "why the counts"),
                            (["adam"], "bench_adam does not exist; scripts/test gate builds it")):
            done = self.gate(*words)
            self.assertEqual(done.returncode, 64)
            self.assertIn(text, done.stderr)
        for line in "adam 12", "adam x why", "adam 0 why", "nobody 12 why":
            self.kept.write_text(f"# comment\n\n{line}\n")
            done = self.gate("adam")
            self.assertEqual(done.returncode, 64)
            self.assertIn('gate.txt:3: expected "ROW INSTRUCTIONS REASON"', done.stderr)
            self.assertIn(f'not "{line}"', done.stderr)

    @unittest.skipUnless(shutil.which("valgrind"), "no valgrind")
    def test_rows_without_a_count_fail(self):
        self.build("adam")
        done = self.gate("adam")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED: gate.txt has no line of it", done.stdout)
        (self.folder / "bin/bench_adam").write_text("#!/bin/sh\necho broken >&2; exit 3\n")
        done = self.gate("adam")
        self.assertEqual(done.returncode, 64)
        self.assertIn("adam: bench_adam ended with 3", done.stderr)


if __name__ == "__main__":
    unittest.main()
