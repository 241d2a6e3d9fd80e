#!/usr/bin/env python3
"""The conformance kit lends every struct of the interface that may grow, through every function of a plugin, as other
hosts would (check/watch). What the headers gain must come to its lists. SPDX-License-Identifier: Apache-2.0"""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WATCH = ROOT / "check/watch"
# What plugins make, whose sizes the host looks at.
OF_PLUGINS = {
    "tn_comm_description", "tn_device_description", "tn_error_report", "tn_expansion_layer", "tn_fusion_pattern",
    "tn_layer_description", "tn_library", "tn_numbers", "tn_parameter", "tn_plugin", "tn_pointwise", "tn_port", "tn_provider",
    "tn_reader_description", "tn_reader_schema", "tn_requirement", "tn_rows_rule", "tn_slot", "tn_state",
    "tn_step_memory", "tn_stored_tensor", "tn_update", "tn_updater_description"}
# Their tables, of functions that the host calls.
TABLES = {"tn_kernel", "tn_layer_numbers", "tn_migrate", "tn_parallel_read", "tn_pass", "tn_records", "tn_shared", "tn_step"}
OTHERWISE = {"tn_shared.open"}  # lent by a function of its own
STRUCT = re.compile(r"typedef struct (tn_\w+) \{\n\s*uint32_t size;(.*?)\n\} \1;", re.DOTALL)
FUNCTION = re.compile(r"\(\*(\w+)\)\(([^()]*(?:\([^()]*\)[^()]*)*)\);")


def growing():
    """By name the bodies of the structs of the SDK that begin with a size, without comments."""
    result = {}
    for header in sorted((ROOT / "sdk/include/tenon").rglob("*.h")):
        result.update(STRUCT.findall(re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.DOTALL)))
    return result


def is_table(name):
    return name in TABLES or re.fullmatch(r"tn_\w+_(table|type)", name) is not None


def newer_members(body):
    """The members behind the first `#if TN_TARGET_MINOR` of a struct that are not reserved."""
    later = body.partition("#if TN_TARGET_MINOR")[2].partition("\n")[2].partition("#else")[0]
    members = re.findall(r"(?:\(\*(\w+)\)\(|(\w+);)", later)
    return [name for pair in members for name in pair if name and "reserved" not in name]


class Lent(unittest.TestCase):
    structs = growing()
    listed = re.findall(r"TENON_LENT\((\w+)\)\n", (WATCH / "lent_structs.h").read_text(encoding="utf-8"))
    code = (WATCH / "other_host.cpp").read_text(encoding="utf-8")
    loans = (WATCH / "loans.cpp").read_text(encoding="utf-8")

    def test_every_struct_that_may_grow_is_lent_or_of_plugins(self):
        self.assertGreater(len(self.structs), 90)
        lent = {name for name in self.structs if name not in OF_PLUGINS and not is_table(name)}
        self.assertEqual(sorted(lent), sorted(self.listed))
        self.assertLessEqual(OF_PLUGINS | TABLES, set(self.structs))

    def test_every_function_that_gets_one_hands_on_copies(self):
        for table in filter(is_table, self.structs):
            names = [table] + (["Type"] if f"using Type = {table};" in self.code else [])
            for function, parameters in FUNCTION.findall(self.structs[table]):
                gets = set(re.findall(r"tn_\w+(?= *\*)", parameters)) & set(self.listed)
                if gets and f"{table}.{function}" not in OTHERWISE:
                    self.assertTrue(any(re.search(rf"&{name}::{function}\b", self.code) for name in names),
                                    f"{table}.{function} gets {', '.join(sorted(gets))}")

    def test_messages_know_the_members_of_each_version(self):
        for struct in self.listed:
            for member in newer_members(self.structs[struct]):
                self.assertTrue(f"TENON_NEWER({struct}, {member})" in self.loans, f"{struct}.{member} in loans.cpp")

    def test_traits_that_came_later_are_told_from_the_first(self):
        base = (ROOT / "sdk/include/tenon/base.h").read_text(encoding="utf-8")
        for trait in set(re.findall(r"^  (TN_TRAIT_\w+) =", base.partition("#if TN_TARGET_MINOR >= 3")[2], re.MULTILINE)):
            self.assertTrue(f'{{"prepare sets {trait}", {trait},' in self.code, f"{trait} in other_host.cpp")


if __name__ == "__main__":
    unittest.main()
