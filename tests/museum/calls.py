#!/usr/bin/env python3
"""Counts which functions of the interface's tables the exhibits execute, and which opcodes they record:
  calls.py MUSEUM RELEASED INCLUDE CXX TENON LIBRARIES WORK FLAG...
RELEASED: the headers of released versions. INCLUDE: those of today. TENON: the program. LIBRARIES: the folder of today's
libtenon.so.0. WORK: emptied. FLAG: of the compiler. Every exhibit of a release runs inside recorder.cpp, on today's host,
where it must compute what it does by itself, and some in the conformance kit. A function of that release that no exhibit of
it executes, or an opcode, is a fault, unless UNUSED has it. SPDX-License-Identifier: Apache-2.0"""
import array
import os
import pathlib
import re
import shutil
import subprocess
import sys

import hosts
import programs

STRUCT = re.compile(r"typedef struct (tn_\w+) \{(.*?)\n\} \1;", re.DOTALL)
OPCODE = re.compile(r"\b(TN_OP_\w+) = (\d+)")
# Functions that no host calls: native streams are for plugins of the same library.
UNUSED = {"tn_updater_type.extension", "tn_native_table.stream", "tn_reader_type.position"}
# Tables that the host lends, and structs of the host that point to some.
LENT = {"tn_builder", "tn_planner", "tn_expander", "tn_migration", "tn_update_recorder", "tn_errors", "tn_services",
        "tn_kernel_needs", "tn_device", "tn_parallel", "tn_memory", "tn_log", "tn_options", "tn_stepper"}
HOLDERS = {"tn_kernel_site", "tn_device_open", "tn_reader_open", "tn_execution", "tn_finalizer"}


def text_of(folder):
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.h")))
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def members(text):
    """{table: the names of its functions}"""
    result = {}
    for table, body in STRUCT.findall(text):
        names = [name for name in re.findall(r"\(\*(\w+)\)\(", body) if name != "task"]
        if names:
            result[table] = names
    return result


def declarations(headers, tables, opcodes):
    """(the text of members.h, the names of the counters)."""
    names, lines = [], [f"#include <tenon/{path.name}>" for path in headers]
    lines += ["#include <functional>", "#include <type_traits>", "template <typename T> struct Members {};",
              "template <auto kMember> constexpr int kNumber = -1;"]
    for table, functions in tables.items():
        for name in functions:
            lines.append(f"template <> inline constexpr int kNumber<&{table}::{name}> = {len(names)};")
            names.append(f"{table}.{name}")
        calls = "".join(f"f(std::integral_constant<decltype(&{table}::{name}), &{table}::{name}>());"
                        for name in functions)
        marks = "".join(f"static constexpr bool {mark} = true;" for mark in ("kLent", "kPassed") if table in LENT)
        lines.append(f"template <> struct Members<{table}> {{ {marks} template <typename F> static void each(F f) {{ "
                     f"{calls} }} }};")
    lines += [f"template <> struct Members<{table}> {{ static constexpr bool kPassed = true; }};" for table in HOLDERS]
    last = max(opcodes.values()) + 1
    lines.append(f"constexpr int kFirstOpcode = {len(names)}, kOpcodes = {last}, kCounters = {len(names) + last};")
    return "\n".join(lines) + "\n", names


def wrap(exhibits, recorder, tenon, folder):
    """Makes a plugin that records for each exhibit."""
    folder.mkdir(parents=True)
    for exhibit in sorted(exhibits.rglob("*.so")):
        file = folder / exhibit.name
        shutil.copy(recorder, file)
        shutil.copy(exhibit, f"{file}.exhibit")
        subprocess.run([tenon, "plugins", "seal", file], check=True, stdout=subprocess.DEVNULL)


def run_exhibits(museum, version, folder, tenon, libraries, work):
    """Yields what goes wrong with the recording exhibits of a version."""
    devices = libraries / "tenon/plugins/devices"
    for program, expected in hosts.PROGRAMS.items():
        text, fault = programs.run([museum / "hosts" / program, folder, devices], libraries, work)
        lines = hosts.lines_of(text, expected)
        if fault or set(lines) != set(expected):
            yield f"{program}: {fault or set(lines) ^ set(expected)}"
            continue
        for name, line in lines.items():
            cell, right = hosts.judged(name, line[len(name) + 1:], expected[name], 99, hosts.minor(version))
            if not right:
                yield f"{name}: {cell}"
    for path in [folder / f"museum_{name}.so" for name in ("device", "provider", "wide")]:
        if not path.exists():
            continue
        _, fault = programs.run([tenon, "plugins", "check", "--only", "streams", "--only", "primitives", "--only", "rows",
                                 path], libraries, work)
        if fault:
            yield f"{path.stem} in the kit: {fault}"


def main(museum, released, include, cxx, tenon, libraries, work, *flags):
    museum, released, include, libraries = (
        pathlib.Path(path).resolve() for path in (museum, released, include, libraries))
    work = programs.work_folder(work)
    tables, opcodes = members(text_of(include / "tenon")), dict(OPCODE.findall(text_of(include / "tenon")))
    opcodes = {name: int(number) for name, number in opcodes.items()}
    text, names = declarations(sorted((include / "tenon").glob("*.h")), tables, opcodes)
    (work / "members.h").write_text(text, encoding="utf-8")
    recorder, calls = work / "recorder.so", work / "calls"
    subprocess.run([cxx, "-std=c++20", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique", "-I", work,
                    "-I", include, *flags, museum / "recorder.cpp", "-o", recorder], check=True)
    os.environ["MUSEUM_CALLS"] = str(calls)
    faults = 0
    for version in sorted((path.name for path in released.glob("0.*")), key=hosts.minor):
        calls.write_bytes(bytes(8 * (len(names) + max(opcodes.values()) + 1)))
        wrap(museum / version, recorder, tenon, work / version)
        for fault in run_exhibits(museum, version, work / version, tenon, libraries, work):
            print(f"{version}: {fault}")
            faults += 1
        counts = array.array("q", calls.read_bytes())
        executed = {name for name, count in zip(names, counts, strict=False) if count > 0}
        recorded = {name for name, number in opcodes.items() if counts[len(names) + number] > 0}
        functions = {f"{table}.{name}" for table, each in members(text_of(released / version)).items() for name in each}
        print(f"exhibits of {version} execute {len(functions & executed)} of {len(functions)} functions and record "
              f"{len(recorded)} of {len(opcodes)} opcodes")
        for name in [*sorted(functions - executed - UNUSED), *sorted(opcodes.keys() - recorded)]:
            print(f"  not executed: {name}")
            faults += 1
        for name in sorted(UNUSED & executed):
            print(f"  executed, so UNUSED need not have it: {name}")
            faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
