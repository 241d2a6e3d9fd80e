#!/usr/bin/env python3
"""What abi_history.py sees and what not, on copies of the headers. SPDX-License-Identifier: Apache-2.0"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent


class AbiHistory(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.headers, self.history = pathlib.Path(folder.name) / "tenon", pathlib.Path(folder.name) / "abi_history.txt"
        shutil.copytree(HERE.parents[1] / "sdk/include/tenon", self.headers)
        self.history.write_text("# comment\n0.1 refused\n")
        self.change("base.h", r"(#define TN_ABI_MINOR) \d+", r"\1 2")
        self.done("--update")
        self.done()

    def run_script(self, *options):
        return subprocess.run([sys.executable, HERE / "abi_history.py", "--headers", self.headers, "--history",
                               self.history, *options], check=False, capture_output=True, text=True)

    def done(self, *options):
        ended = self.run_script(*options)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def fails(self, text, *options):
        before = self.history.read_text()
        ended = self.run_script(*options)
        self.assertEqual(ended.returncode, 1)
        self.assertIn(text, ended.stderr)
        self.assertEqual(self.history.read_text(), before)

    def change(self, header, old, new):
        path = self.headers / header
        text, count = re.subn(old, new, path.read_text(), count=1)
        self.assertEqual(count, 1, f"{header} has no {old}")
        path.write_text(text)

    def release(self):
        self.history.write_text(self.history.read_text().rstrip("\n") + " released\n")
        self.done()

    def test_layout_and_comments_do_not_count(self):
        self.change("layer.h", r"typedef struct tn_port \{\n  uint32_t size;",
                    "/* new */ typedef struct\ntn_port\n{ uint32_t\tsize ;//x")
        self.change("base.h", r"/\* Reserved[^*]*\*/|/\* True if", "/* another comment */ /* True if")
        self.done()

    def test_declarations_count(self):
        changes = [("layer.h", r"(uint32_t reserved;\n\} tn_layer_description;)", r"uint32_t more; \1"),
                   ("kernel.h", r"TN_FORWARD = 0", "TN_FORWARD = 2"),
                   ("plugin.h", r"#define TN_NOTE_LIMIT \d+", "#define TN_NOTE_LIMIT 5"),
                   ("device.h", r"\"tenon.gemm/1\"\n", '"tenon. gemm/1"\n'),
                   ("builder.h", r"int32_t", "uint32_t"),
                   ("attribute.h", r"\Z", "int tn_more(void);\n")]
        for header, old, new in changes:
            with self.subTest(header=header):
                kept = (self.headers / header).read_text()
                self.change(header, old, new)
                self.fails("the declarations changed: raise TN_ABI_MINOR and add a line")
                (self.headers / header).write_text(kept)
                self.done()
        (self.headers / "new.h").write_text("int tn_new(void);\n")
        self.fails("the declarations changed")

    def test_the_end_of_a_directive_counts(self):
        (self.headers / "new.h").write_text("#define TN_A\nTN_B\n")
        self.done("--update")
        (self.headers / "new.h").write_text("#define TN_A TN_B\n")
        self.fails("the declarations changed")

    def test_a_version_in_development_is_written_anew(self):
        self.change("kernel.h", r"TN_FORWARD = 0", "TN_FORWARD = 2")
        self.fails("0.2 is not released: tests/sdk/abi_history.py --update")
        self.done("--update")
        self.done()

    def test_a_released_version_is_not(self):
        self.release()
        self.done("--update")
        self.change("kernel.h", r"TN_FORWARD = 0", "TN_FORWARD = 2")
        self.fails("the declarations changed: raise TN_ABI_MINOR and add a line")
        self.fails("0.2 is released", "--update")

    def test_a_draft_states_its_digest(self):
        (self.headers / "draft").mkdir(exist_ok=True)
        draft, text = self.headers / "draft/new.h", "/* a */\n#define TN_NEW_DRAFT 0x00000000u\nint tn_new(void);\n"
        draft.write_text(text)
        self.fails("the declarations of draft/new.h changed: it states the digest 00000000")
        self.done("--update")
        self.done()
        written = draft.read_text()
        draft.write_text(written.replace("/* a */", "/* other words */"))
        self.done()
        draft.write_text(written.replace("int tn_new", "long tn_new"))
        self.fails("the declarations of draft/new.h changed")
        draft.write_text("int tn_new(void);\n")
        self.fails("draft/new.h has 0 lines")

    def test_a_new_version_has_a_line(self):
        self.change("base.h", r"(#define TN_ABI_MINOR) 2", r"\1 3")
        self.fails("0.3, which is not the last line")
        self.fails("0.2 is not marked as released", "--update")
        self.change("base.h", r"(#define TN_ABI_MINOR) 3", r"\1 2")
        self.release()
        before = self.history.read_text()
        self.change("base.h", r"(#define TN_ABI_MINOR) 2", r"\1 3")
        self.fails("0.3, which is not the last line")
        self.done("--update")
        self.done()
        self.assertRegex(self.history.read_text(), re.escape(before) + r"0\.3 [0-9a-f]{16}\n\Z")

    def test_the_file_is_checked(self):
        for text, message in (("0.1 refused\n0.3 0123456789abcdef\n", "0.3 does not follow 0.1"),
                              ("0.2 xyz\n", '"0.2 xyz" is not'),
                              ("0.1 0123456789abcdef\n0.2 0123456789abcdef\n", "0.1 is not marked as released")):
            self.history.write_text(text)
            self.fails(message)


if __name__ == "__main__":
    unittest.main()
