"""What scripts/commit-subject refuses, as a check of commits and as a hook of git: commit_subject_test.py ROOT
SPDX-License-Identifier: Apache-2.0"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
WRONG = {"Update readers": "names no area", "readers: refuse an empty file.": "full stop",
         "readers: The file is empty": "expected a verb", "readers: a file": "expected a verb",
         "docs: " + "x" * 70: "has 76 characters"}
RIGHT = ("core: state the opcodes once", "sdk, host: add a table", "host/layers: bound a list", "Merge branch 'x'",
         "cli: SIGINT ends a verb", 'Revert "core: add"')


class Subjects(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "scripts").mkdir()
        shutil.copy(ROOT / "scripts/commit-subject", self.root / "scripts/commit-subject")
        self.git("init", "-q")

    def run_in_clone(self, *command):
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)

    def git(self, *arguments):
        return self.run_in_clone("git", "-c", "user.name=A", "-c", "user.email=a@b", *arguments)

    def commit(self, subject):
        return self.git("commit", "-q", "--allow-empty", "-m", subject)

    def test_a_range_of_commits(self):
        self.commit("core: begin")
        for subject in RIGHT:
            self.commit(subject)
        self.assertEqual(self.run_in_clone("scripts/commit-subject", "HEAD").returncode, 0)
        for subject, why in WRONG.items():
            with self.subTest(subject=subject):
                self.commit(subject)
                checked = self.run_in_clone("scripts/commit-subject", "HEAD~1..HEAD")
                self.assertEqual(checked.returncode, 1)
                self.assertIn(subject, checked.stderr)
                self.assertIn(why, checked.stderr)

    def test_the_hook_keeps_a_wrong_subject_out(self):
        self.assertEqual(self.run_in_clone("scripts/commit-subject", "--install").returncode, 0)
        self.assertEqual(self.run_in_clone("scripts/commit-subject", "--install").returncode, 0)  # once more
        self.assertEqual(self.commit("core: begin").returncode, 0)
        refused = self.commit("Update readers")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("names no area", refused.stderr)
        self.assertEqual(self.git("log", "--format=%s").stdout, "core: begin\n")

    def test_a_hook_of_somebody_else_stays(self):
        hook = self.root / ".git/hooks/commit-msg"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\n")
        refused = self.run_in_clone("scripts/commit-subject", "--install")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("exists already", refused.stderr)
        self.assertEqual(hook.read_text(), "#!/bin/sh\n")


if __name__ == "__main__":
    unittest.main()
