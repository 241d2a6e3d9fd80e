#!/usr/bin/env python3
"""That released.py notices what breaks plugins and applications of a release: each case changes one thing in a copy of
the headers. SPDX-License-Identifier: Apache-2.0"""
import pathlib
import re
import shutil
import tempfile
import unittest

import declarations
import released

ROOT = pathlib.Path(__file__).resolve().parents[2]
SDK, THEN = ROOT / "sdk/include/tenon", ROOT / "tests/sdk/released"
API, API_THEN = ROOT / "host/include/tenon", ROOT / "tests/host/api/released"
SDK_SIGNED, API_SIGNED = THEN / "clarified.txt", API_THEN / "clarified.txt"

# (header, text, text in its place, name that must be complained about)
BREAKS = [
    ("base.h", "TN_NOT_FOUND = 3", "TN_NOT_FOUND = 13", "TN_NOT_FOUND"),
    ("tensor.h", "#define TN_MAX_RANK 8", "#define TN_MAX_RANK 9", "TN_MAX_RANK"),
    ("base.h", "sizeof((p)->member)", "sizeof(*(p))", "TN_HAS"),
    ("builder.h", "TN_SEGMENT_SUM = 1", "TN_SEGMENT_SUM = 4", "TN_SEGMENT_SUM"),
    ("layer.h", "TN_ROWS_CONCATENATED = 1", "TN_ROWS_CONCATENATED = 9", "TN_ROWS_CONCATENATED"),
    ("kernel.h", "TN_FORWARD = 0, TN_BACKWARD = 1", "TN_BACKWARD = 0, TN_FORWARD = 1", "TN_FORWARD"),
    ("kernel.h", "  uint32_t inputs_count;\n  uint32_t outputs_count;", "  uint32_t outputs_count;\n  uint32_t inputs_count;",
     "tn_kernel_site.inputs_count"),
    ("kernel.h", "  uint32_t draws; ", "  int32_t draws; ", "tn_kernel_needs.draws"),
    ("kernel.h", "tn_status (*supports)(const tn_kernel_site* site, int32_t* score);",
     "tn_status (*supports)(const tn_kernel_site* site, int64_t* score);", "tn_kernel.supports"),
    ("kernel.h", "  void* user;              /* of the kernel's table */\n", "", "tn_kernel_site.user"),
    ("kernel.h", "higher wins among kernels", "lower wins among kernels", "tn_kernel.score"),
    ("device.h", "[setup] Frees the device,", "[any] Frees the device,", "tn_device_type.close"),
    ("device.h", "uint64_t memory_bytes; /* 0 if unknown */", "uint64_t memory_bytes; /* -1 if unknown */",
     "tn_device_properties.memory_bytes"),
    ("tensor.h", "64 in all calls but those of updaters", "16 in all calls but those of updaters", "tn_tensor.alignment"),
    ("program.h", "takes the high", "takes the low", "program.h"),
    ("services.h", "uint64_t seed;", "uint32_t seed;", "tn_random.seed"),
    ("base.h", "/* Traits of a kernel or reader, for", "/* Traits of a kernel, for", "TN_TRAIT_OWN_THREADS"),
    ("services.h", "#else\n  uint32_t reserved;", "#else\n  float reserved;", "tn_shared.reserved"),
    ("updater.h", "TN_GRAIN_ROW = 1", "TN_GRAIN_ROW = 2", "TN_GRAIN_ROW"),
]


class Released(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name, "tenon")

    def complaints(self, source, then, clarified, header, before, after):
        shutil.copytree(source, self.folder, dirs_exist_ok=True)
        text = (self.folder / header).read_text(encoding="utf-8")
        self.assertTrue(before in text, f"{header}: {before}")
        (self.folder / header).write_text(text.replace(before, after, 1), encoding="utf-8")
        return list(released.check(self.folder, then, clarified))

    def test_today_keeps_what_was_released(self):
        self.assertEqual(list(released.check(SDK, THEN, SDK_SIGNED)), [])
        self.assertEqual(list(released.check(API, API_THEN, API_SIGNED)), [])

    def test_breaks_of_the_plugin_interface(self):
        for header, before, after, name in BREAKS:
            with self.subTest(header + ": " + before):
                found = self.complaints(SDK, THEN, SDK_SIGNED, header, before, after)
                self.assertTrue(any(f" {name}:" in line for line in found), found)

    def test_breaks_of_ids_and_inline_functions(self):
        for name, declaration in declarations.of_folder(THEN / "0.3").items():
            if not declaration.code.startswith(('"tenon.', "static inline")):
                continue
            with self.subTest(name):
                today = declarations.of_folder(SDK)
                today[name] = declarations.Declaration(name, declaration.code.replace("/1", "/2").replace("}", "; }"),
                                                       declaration.comment)
                old = {name: declaration}
                self.assertTrue(list(released.compare("0.3", old, (today, today), {}, True)))

    def test_breaks_of_the_applications_interface(self):
        for header, before, after, name in (
                ("tenon.h", "int64_t samples;", "int32_t samples;", "tn_event.samples"),
                ("tenon.h", "TN_END_TRAINING = 1", "TN_END_TRAINING = 2", "TN_END_TRAINING"),
                ("tenon.h", "TENON_API const char* tn_version(void);\n", "", "tn_version"),
                ("tenon_training_options.h", "int64_t passes;", "int64_t epochs;", "tn_train_options.passes"),
                ("tenon_machine.h", "int32_t (*sink)(void* user, int64_t first,", "int32_t (*sink)(void* user, int32_t first,",
                 "tn_infer_parts"),
                ("tenon_base.h", "1, also 0: host memory", "1: host memory", "tn_array.device_type"),
                ("tenon_generate_options.h", 'Null: "cpu"', "Null: refused", "tn_generator_options.device"),
                ("tenon_machine_options.h", "uint32_t reserved2; /* 0 */", "uint32_t reserved2;",
                 "tn_machine_options.reserved2")):
            with self.subTest(name):
                found = self.complaints(API, API_THEN, API_SIGNED, header, before, after)
                self.assertTrue(any(f" {name}:" in line for line in found), found)

    def test_each_function_has_the_version_that_brought_it(self):
        text = (ROOT / "host/libtenon.map").read_text(encoding="utf-8")
        exported = {version: set(re.findall(r"(tn_\w+);", body))
                    for version, body in re.findall(r"TENON_(\d+\.\d+) \{(.*?)\}", text, re.DOTALL)}
        before = set()
        for version, present in exported.items():
            folder = API_THEN / version if (API_THEN / version).is_dir() else API
            functions = {name for name, each in declarations.of_folder(folder).items() if each.code.startswith("TENON_API")}
            self.assertEqual(present, functions - before, version)
            before |= functions
        self.assertEqual({*exported} - {f"0.{minor}" for minor in range(2, 5)}, set())

    def test_appending_is_allowed(self):
        self.assertEqual(self.complaints(SDK, THEN, SDK_SIGNED, "kernel.h", "  uint32_t reserved2;\n",
                                         "  uint32_t reserved2;\n  uint64_t another;\n"), [])

    def test_a_struct_without_size_is_frozen(self):
        for source, then, signed, header, member in (
                (SDK, THEN, SDK_SIGNED, "program.h", "  double number;\n"),
                (API, API_THEN, API_SIGNED, "tenon_base.h", "  int64_t samples; ")):
            with self.subTest(header):
                found = self.complaints(source, then, signed, header, member, "  int64_t another;\n" + member)
                self.assertTrue(any("frozen" in line for line in found), found)

    def test_a_signature_is_for_one_wording(self):
        found = self.complaints(SDK, THEN, SDK_SIGNED, "tensor.h", "in the steps of scans", "anywhere")
        self.assertEqual([line.split(":")[0] for line in found], ["0.2 tn_tensor.alignment", "0.3 tn_tensor.alignment"])


if __name__ == "__main__":
    unittest.main()
