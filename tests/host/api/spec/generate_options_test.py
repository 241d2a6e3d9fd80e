#!/usr/bin/env python3
"""Tests the generator of the structs of options. SPDX-License-Identifier: Apache-2.0"""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "host/api/spec"))
import generate_options as generator  # noqa: E402

SPEC = (ROOT / "host/api/spec/training.toml").read_text(encoding="utf-8")


class Generator(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def written(self, text):
        (self.folder / "training.toml").write_text(text, encoding="utf-8")
        return generator.outputs(generator.read(self.folder))

    def with_option(self, keys):
        """The files with another option of trainings."""
        return self.written(f'{SPEC.rstrip().removesuffix("]")}{{ name = "probe_steps", {keys} }} ]\n')

    def test_files_are_current(self):
        generator.main(check=True)

    def test_stale_files_are_named(self):
        self.addCleanup(setattr, generator, "ROOT", generator.ROOT)
        generator.ROOT = self.folder
        names = list(generator.outputs(generator.read()))
        for name in names:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        generator.main(check=False)
        generator.main(check=True)
        for name in names:
            text = (self.folder / name).read_text(encoding="utf-8")
            (self.folder / name).write_text(text + "\n", encoding="utf-8")
            with self.assertRaisesRegex(SystemExit, name):
                generator.main(check=True)
            (self.folder / name).write_text(text, encoding="utf-8")

    def test_an_option_is_in_every_file(self):
        files = self.with_option('type = "int64", default = 3, minimum = 1, loop = true, job_minimum = 1, since = "0.4", '
                                 'text = "Steps of a probe. Of no use."')
        for name, text in files.items():
            self.assertIn("probe_steps", text, name)
        c = files["host/include/tenon/tenon_training_options.h"]
        self.assertIn("  /* Steps of a probe. Of no use. Since 0.4. */\n  int64_t probe_steps;\n} tn_train_options;", c)
        self.assertIn("  // Steps of a probe.\n  int64_t probe_steps = 3;\n};",
                      files["host/include/tenon/tenon_training_options.hpp"])
        self.assertIn('to.probe_steps = at_least<int64_t>(1, from.probe_steps, "probe_steps");',
                      files["host/training/loop_options.h"])
        self.assertIn('"probe_steps": Option("int64", 3, 1),', files["bindings/python/tenon/_run/options.py"])

    def test_members_are_appended(self):
        for kind in generator.TYPES:
            before, after = (self.written(SPEC), self.with_option(f'type = "{kind}", default = 0'))
            name = "host/include/tenon/tenon_training_options.h"
            end = "} tn_train_options;"
            self.assertTrue(after[name].startswith(before[name][:before[name].index(end)]), kind)
            count = "  uint32_t probe_steps_count;\n" if generator.TYPES[kind].listed else ""
            self.assertIn(f"{count}{end}", after[name])

    def test_lines_fit(self):
        word = "wordy " * 70
        for name, text in self.with_option(f'type = "texts", text = "{word}"').items():
            self.assertLessEqual(max(map(len, text.split("\n"))), generator.WIDTH, name)

    def test_wrong_descriptions_are_refused(self):
        for keys, error in (('type = "int64", colour = "red"', TypeError), ('type = "int65"', SystemExit),
                            ('type = "tn_none_options"', SystemExit), ('type = "double"', SystemExit)):
            with self.assertRaises(error):
                self.with_option(keys)
        for old, new in (('"min_delta"', '"min_delt"'), ("size keep", "size size keep"),
                         ('"min_delta"', '"patience"'), ("groups_count\n", "\n")):
            self.assertEqual(SPEC.count(old), 1, old)
            with self.assertRaises(SystemExit):
                self.written(SPEC.replace(old, new))


if __name__ == "__main__":
    unittest.main()
