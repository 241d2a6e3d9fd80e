#!/usr/bin/env python3
"""With TN_TARGET_MINOR the headers declare the structs of that version, and nothing newer compiles:
target_minor_test.py C_COMPILER CXX_COMPILER [COMPILER_OPTION...]

SPDX-License-Identifier: Apache-2.0"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PRESENT = HERE.parents[1] / "sdk/include"
RELEASED = {int(folder.name.split(".")[1]): folder for folder in (HERE / "released").glob("0.*")}
APPLICATION = HERE.parents[1] / "host/include"
C, CXX, *OPTIONS = sys.argv[1:]
STRUCT = re.compile(r"^typedef struct (tn_\w+) \{", re.MULTILINE)


def compiled(compiler, source, target=None, include=PRESENT):
    """The process of a compiler that stops after the check of `source`."""
    language = ["-xc++", "-std=c++17"] if compiler == CXX else ["-xc", "-std=c11"]
    defined = [] if target is None else [f"-DTN_TARGET_MINOR={target}"]
    return subprocess.run([compiler, *language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{include}",
                           f"-I{APPLICATION}", *OPTIONS, *defined, "-"], input=source, capture_output=True, text=True,
                          check=False)


class TargetMinor(unittest.TestCase):
    def test_structs_end_where_those_of_the_version_end(self):
        for minor, folder in RELEASED.items():
            structs = sorted({name for header in folder.glob("*.h") for name in STRUCT.findall(header.read_text())})
            self.assertGreater(len(structs), 60)
            with tempfile.TemporaryDirectory() as place:
                (pathlib.Path(place) / "tenon").symlink_to(folder)
                released = self.sizes(structs, place)
            self.assertEqual(self.sizes(structs, PRESENT, minor), released, f"0.{minor}")

    def sizes(self, structs, include, target=None):
        header = "device_host.h" if (pathlib.Path(include) / "tenon/device_host.h").exists() else "device.h"
        lines = "".join(f"char (*at_{name})[sizeof({name})] = (int*)0;\n" for name in structs)
        found = compiled(C, f"#include <tenon/{header}>\n#include <tenon/plugin.h>\n{lines}", target, include)
        stated = re.findall(r"error: .*?\u2018?char \(\*\)\[(\d+)\]", found.stderr)
        self.assertEqual(len(stated), len(structs), found.stderr)
        return dict(zip(structs, map(int, stated), strict=True))

    def newer(self, minor, compiler, use, message):
        header = "plugin.hpp" if compiler == CXX else "plugin.h"
        source = f"#include <tenon/{header}>\n{use}\n"
        for target in range(2, minor):
            found = compiled(compiler, source, target)
            self.assertNotEqual(found.returncode, 0, f"{use} compiles for hosts of 0.{target}")
            self.assertIn(message, found.stderr)
        for target in (minor, None):
            found = compiled(compiler, source, target)
            self.assertEqual(found.returncode, 0, found.stderr)

    def test_newer_members_and_numbers_do_not_compile_in_c(self):
        for minor, use, name in [
                (3, "tn_ref f(const tn_builder* b) { return b->prefix_sum(b->self, 0, 0); }", "prefix_sum"),
                (3, "tn_status f(const tn_builder* b) { return b->scan_end(b->self); }", "scan_end"),
                (3, "tn_status f(const tn_planner* p) { return p->index_exempt(p->self, 0, 0); }", "index_exempt"),
                (3, "const int64_t* f(const tn_execution* e) { return e->host_symbols; }", "host_symbols"),
                (3, "uint32_t f(const tn_plugin* p) { return p->options_count; }", "options_count"),
                (3, "int f(void) { return TN_TRAIT_HOST_SIZES + TN_GRAIN_MATRIX; }", "TN_TRAIT_HOST_SIZES"),
                (4, "int f(void) { return TN_TRAIT_ANY_ALIGNMENT; }", "TN_TRAIT_ANY_ALIGNMENT"),
                (4, "uint32_t f(const tn_kernel* k) { return k->inputs_known; }", "inputs_known"),
                (4, "uint32_t f(const tn_shared* s) { return s->flags; }", "flags")]:
            self.newer(minor, C, use, name)

    def test_wrappers_of_newer_members_do_not_compile(self):
        for minor, use, name in [
                (3, "tn::Tensor f(tn::Builder& b, const tn::Tensor& x) { return b.argsort(x); }", "argsort"),
                (3, "void f(tn::Builder& b) { b.scan_end(); }", "scan_end"),
                (3, "void f(tn::Planner& p) { p.index_exempt(0, 0); }", "index_exempt"),
                (3, "void f(tn::Plugin& p, const tn::Attribute& a) { p.option(a); }", "option"),
                (3, "auto f(const tn_services* s) { return tn::options(s, \"a.b\"); }", "newer than TN_TARGET_MINOR"),
                (4, "void f(tn::KernelDescription& d) { d.knows_ports(1, 1, 0); }", "knows_ports")]:
            self.newer(minor, CXX, use, name)

    def test_applications_may_have_components_for_older_hosts(self):
        for target in (2, 3):
            found = compiled(CXX, "#include <tenon/plugin.hpp>\n#include <tenon/tenon.hpp>\n", target)
            self.assertEqual(found.stderr, "")

    def test_deprecated_names_warn_who_asks_for_it(self):
        for old, new in [("void f(tn_host* h) { tn_host_destroy(h); }", "tn_host_release"),
                         ("tn_status f(tn_host* h, tn_host_counters* c) { return tn_host_count(h, c, 0); }",
                          "tn_host_inspect"),
                         ("tn_status f(tn_host* h, tn_predictor p) { return tn_predict(h, p, 0, 0, 0, 0, 0); }",
                          "tn_predictor_predict")]:
            for compiler, header in ((C, "tenon_predictor.h"), (CXX, "tenon_predictor.hpp")):
                source = f"#include <tenon/tenon.h>\n#include <tenon/{header}>\n{old}\n"
                self.assertEqual(compiled(compiler, source).stderr, "")
                asked = compiled(compiler, f"#define TENON_WARN_DEPRECATED\n{source}")
                self.assertIn(f"use {new}", asked.stderr)
                self.assertEqual(asked.stderr.count("error:"), 1, asked.stderr)

    def test_a_target_that_does_not_exist_is_refused(self):
        for target in (1, 99):
            found = compiled(C, "#include <tenon/plugin.h>\n", target)
            self.assertIn("TN_TARGET_MINOR must be", found.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
