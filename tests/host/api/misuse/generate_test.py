#!/usr/bin/env python3
"""Tests the generator of wrong calls: nothing of a header is left out. SPDX-License-Identifier: Apache-2.0"""
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import declarations  # noqa: E402
import generate  # noqa: E402

BASE = """
typedef struct tn_error { uint32_t size; } tn_error;
typedef struct tn_thing { uint32_t index, generation; } tn_thing;
typedef struct tn_layer { uint32_t index, generation; } tn_layer;
/* Makes things. options may be null. */
"""
OPTIONS = """
typedef struct tn_thing_options {
  uint32_t size, count; /* one comment
                           in two lines */
  const char* given;
  /* Null: none. */
  const char* optional;
  void (*call)(void* user, int32_t number); /* or null */
} tn_thing_options;
"""


def generated(header):
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        (place / "sdk").mkdir()
        (place / "tenon_thing.h").write_text(header, encoding="utf-8")
        generate.main(folder, str(place / "sdk"), str(place / "made.cpp"))
        return (place / "made.cpp").read_text(encoding="utf-8")


def function(parameters, result="tn_status"):
    return f"{BASE}TENON_API {result} tn_do({parameters});\n"


def check(condition, what):
    if not condition:
        sys.exit(f"generate_test.py: {what}")


def main():
    # A function whose arguments follow from the table and the types has a case with checks of each.
    made = generated(function("tn_host* host, tn_layer layer, uint32_t* count, tn_error* error"))
    for line in ('misuse.null(host, "host");', 'misuse.handle(layer, "layer", false);', 'misuse.null(count, "count");',
                 "misuse.accepted();", '{"tn_do", &check_tn_do},'):
        check(line in made, f"no line {line} in {made}")

    # Two lists may have one count.
    made = generated(function("tn_host* host, const tn_layer* layers, const tn_layer* others, uint32_t count, "
                              "tn_error* error"))
    for name in ("layers", "others"):
        check(f'misuse.list({name}, count, "{name}", false);' in made, f"{name} is no list in {made}")
    check(made.count("uint32_t count =") == 1, f"not one count in {made}")

    # One whose arguments do not has a case that fails and names what is missing.
    for parameter, result in (("tn_thing thing", "tn_status"), ("const char* unheard", "tn_status"),
                              ("tn_unknown* it", "tn_status"), ("const tn_unknown* it", "tn_status"),
                              ("void* memory", "tn_status"), ("tn_host* host", "int64_t")):
        made = generated(function(f"{parameter}, tn_error* error", result))
        check("FAIL() <<" in made, f"a function with {parameter} that returns {result} does not fail")

    # A declaration that is not understood ends the build.
    try:
        generated("TENON_API tn_status tn_do(tn_host* host) __attribute__((cold));")
        check(False, "a declaration that is not understood was left out")
    except ValueError:
        pass

    api = declarations.read([OPTIONS])
    members = [(m.name, m.type, m.may_be_null) for m in api.structs["tn_thing_options"]]
    check(members == [("size", "uint32_t", False), ("count", "uint32_t", False), ("given", "const char*", False),
                      ("optional", "const char*", True), ("call", "void (*)(void* user, int32_t number)", True)],
          f"members are {members}")
    options = declarations.read([f"{BASE}TENON_API tn_status tn_do(const tn_thing_options* options, tn_error* error);"])
    check(options.functions[0].parameters[0].may_be_null, "\"options may be null\" is not read")


if __name__ == "__main__":
    main()
