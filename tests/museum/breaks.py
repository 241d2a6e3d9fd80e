#!/usr/bin/env python3
"""Breaks the interface in 45 ways and says which tests notice:
  breaks.py ROOT CC TENON LIBRARIES WORK FLAG...
ROOT: this repository. TENON: the program. LIBRARIES: the folder of today's libtenon.so.0. WORK: emptied.
FLAG: of the compiler.

Each break is a change of the headers of today. A host is not built anew for each: a plugin of today's headers on a host
with a break is, seen from the boundary, a plugin of the broken headers on today's host. So for the breaks of EXHIBITS the
exhibits in kinds/ are compiled with the broken headers, and must no longer compute what they should on today's host; for
those of HEADERS the tests of the declarations (tests/sdk/released.py, and abi*_test.c, as if the digest had been written
anew) must complain. That a sparse tensor shrinks is not noticed: no kernel is
passed one yet. Fails if fewer than 43 are noticed. SPDX-License-Identifier: Apache-2.0"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

import hosts
import programs

NEEDED = 43

# (what breaks, header, the exhibits that use it, what is swapped or replaced: {text: text in its place})
EXHIBITS = [
    ("operands of a call", "services.h", ["kernels", "provider", "device"],
     {"const tn_tensor* const* inputs; /*": "tn_tensor* const* outputs; /*",
      "tn_tensor* const* outputs;      /*": "const tn_tensor* const* inputs; /*"}),
    ("requests", "services.h", ["kernels", "provider", "device"],
     {"TN_REQUEST_WRITE = 1, TN_REQUEST_ADD = 2": "TN_REQUEST_ADD = 1, TN_REQUEST_WRITE = 2"}),
    ("opcodes of arithmetic", "program.h", ["layers"],
     {"TN_OP_SUB = 11": "TN_OP_SUB = 12", "TN_OP_MUL = 12": "TN_OP_MUL = 11"}),
    ("id of the memory", "services.h", ["kernels", "provider", "device", "readers"], {'"tenon.memory/1"': '"tenon.mem/1"'}),
    ("gather and scatter", "builder.h", ["sequences"],
     {"tn_ref (*gather)(void* self, tn_ref table, tn_ref ids);":
      "tn_ref (*scatter_add)(void* self, tn_ref rows, tn_ref ids, const tn_dim* height);",
      "tn_ref (*scatter_add)(void* self, tn_ref rows, tn_ref ids, const tn_dim* height);":
      "tn_ref (*gather)(void* self, tn_ref table, tn_ref ids);"}),
    ("copies and fills of a device", "device.h", ["device"],
     {"tn_status (*copy)(void* device, const tn_errors* errors, const tn_copy* copy);":
      "tn_status (*fill)(void* device, const tn_errors* errors, void* stream, void* memory, uint8_t value, uint64_t bytes);",
      "tn_status (*fill)(void* device, const tn_errors* errors, void* stream, void* memory, uint8_t value, uint64_t bytes);":
      "tn_status (*copy)(void* device, const tn_errors* errors, const tn_copy* copy);"}),
    ("open and close of a shared object", "services.h", ["kernels", "provider"],
     {"  tn_status (*open)(const tn_services* services, const tn_errors* errors, const tn_device* device, void* user,\n"
      "                    void** shared);": "  void (*close)(void* shared);",
      "  void (*close)(void* shared);": "  tn_status (*open)(const tn_services* services, const tn_errors* errors, "
                                        "const tn_device* device, void* user, void** shared);"}),
    ("state of a finalizer", "layer.h", ["layers"],
     {"const double* state; /* [state_count]": "const tn_errors* errors; /* [state_count]",
      "  const tn_errors* errors;\n  tn_metric_result result;": "  const double* state;\n  tn_metric_result result;"}),
    ("functions of a migration", "migrate.h", ["migrated"],
     {"(*set_attribute)(void* self, const char* name, const tn_value* value)":
      "(*set_tensor)(void* self, const char* suffix, const tn_stored_tensor* tensor)",
      "(*set_tensor)(void* self, const char* suffix, const tn_stored_tensor* tensor)":
      "(*set_attribute)(void* self, const char* name, const tn_value* value)"}),
    ("room for sequences", "reader.h", ["readers"],
     {"int64_t* lengths;  ": "int64_t* inner_lengths;  ", "int64_t* inner_lengths; /*": "int64_t* lengths; /*"}),
    ("operations over segments", "builder.h", ["sequences"],
     {"TN_SEGMENT_SUM = 1": "TN_SEGMENT_SUM = 2", "TN_SEGMENT_MAX = 2": "TN_SEGMENT_MAX = 1"}),
    ("rules for rows", "layer.h", ["sequences"],
     {"TN_ROWS_STRIDED = 2": "TN_ROWS_STRIDED = 3", "TN_ROWS_FIRST = 3": "TN_ROWS_FIRST = 2"}),
    ("merges of buffers", "layer.h", ["layers"],
     {"TN_MERGE_SUM = 1": "TN_MERGE_SUM = 2", "TN_MERGE_MAX = 2": "TN_MERGE_MAX = 1"}),
    ("kinds of copies", "device.h", ["device"],
     {"TN_COPY_TO_DEVICE = 0, TN_COPY_TO_HOST = 1": "TN_COPY_TO_HOST = 0, TN_COPY_TO_DEVICE = 1"}),
    ("flags of ports", "layer.h", ["layers", "sequences"],
     {"TN_PORT_OPTIONAL = 1": "TN_PORT_OPTIONAL = 2", "TN_PORT_VARIADIC = 2": "TN_PORT_VARIADIC = 1"}),
    ("opcodes of functions", "program.h", ["layers"],
     {"TN_OP_TANH = 25": "TN_OP_TANH = 26", "TN_OP_ERF = 26": "TN_OP_ERF = 25"}),
    ("id of segments", "device.h", ["device"], {'"tenon.segment/1"\ntypedef': '"tenon.segments/1"\ntypedef'}),
    ("id of migrations", "migrate.h", ["migrated"], {'TN_MIGRATE "tenon.migrate/1"': 'TN_MIGRATE "tenon.migration/1"'}),
    ("a sparse tensor shrunk", "tensor.h", ["kernels", "device"], {"  int64_t capacity;    /* entries that fit */\n": ""}),
    ("seed and step", "services.h", ["kernels", "device"], {"uint64_t seed;\n  /* Low": "uint64_t step;\n  /* Low",
                                                            "  uint64_t step;\n} tn_random": "  uint64_t seed;\n} tn_random"}),
]
HEADERS = [
    ("a member before others", "kernel.h",
     {"  int32_t score;      /* higher": "  int64_t before;\n  int32_t score;      /* higher"}),
    ("two members swapped", "kernel.h", {"  const char* device; /* the device": "  const char* name; /* the device",
                                         "  const char* name;   /* shown": "  const char* device;   /* shown"}),
    ("a member gone", "tensor.h", {"  uint32_t levels; /* TN_RAGGED: 1 =": "  /* TN_RAGGED: 1 ="}),
    ("a member wider", "reader.h", {"  uint32_t shard;  /*": "  uint64_t shard;  /*"}),
    ("a frozen struct longer", "program.h",
     {"  uint16_t reserved;\n} tn_program_input": "  uint16_t reserved, more;\n} tn_program_input"}),
    ("a member at the end of a prefix", "layer.h", {"  void* user; /* of the layer type's table */\n#if": "#if"}),
    ("a status", "base.h", {"TN_NOT_FOUND = 3": "TN_NOT_FOUND = 13"}),
    ("operations over segments", "builder.h",
     {"TN_SEGMENT_SUM = 1": "TN_SEGMENT_SUM = 4", "TN_SEGMENT_SHIFT = 4": "TN_SEGMENT_SHIFT = 1"}),
    ("rules for rows", "layer.h", {"TN_ROWS_STRIDED = 2": "TN_ROWS_STRIDED = 3", "TN_ROWS_FIRST = 3": "TN_ROWS_FIRST = 2"}),
    ("merges of buffers", "layer.h", {"TN_MERGE_SUM = 1": "TN_MERGE_SUM = 2", "TN_MERGE_MAX = 2": "TN_MERGE_MAX = 1"}),
    ("operations of gather", "device.h", {"TN_GATHER_ROWS = 0, TN_SCATTER_ADD = 1": "TN_SCATTER_ADD = 0, TN_GATHER_ROWS = 1"}),
    ("flag of sparse ports", "layer.h", {"TN_PORT_SPARSE = 16": "TN_PORT_SPARSE = 32"}),
    ("scalars of updates", "updater.h", {"TN_SCALAR_ROW_ELEMENTS = 4": "TN_SCALAR_ROW_ELEMENTS = 5"}),
    ("id of products", "device.h", {'TN_GEMM "tenon.gemm/1"': 'TN_GEMM "tenon.product/1"'}),
    ("id of passes", "reader.h", {'TN_PASS "tenon.pass/1"': 'TN_PASS "tenon.passes/1"'}),
    ("id of the log", "services.h", {'TN_LOG "tenon.log/1"': 'TN_LOG "tenon.lines/1"'}),
    ("a signature", "kernel.h", {"(*supports)(const tn_kernel_site* site, int32_t* score)":
                                 "(*supports)(const tn_kernel_site* site, int64_t* score)"}),
    ("a type of equal size", "kernel.h", {"  uint32_t draws; ": "  int32_t draws; "}),
    ("meaning of an alignment", "tensor.h", {"64 in all calls but those of updaters": "16 in all calls but those of updaters"}),
    ("meaning of a score", "kernel.h", {"higher wins among kernels": "lower wins among kernels"}),
    ("meaning of a draw", "program.h", {"takes the high": "takes the low"}),
    ("value of a dimension", "tensor.h",
     {"d->coefficient * symbols[d->symbol] + d->offset": "d->coefficient * (symbols[d->symbol] + d->offset)"}),
    ("bytes of elements", "base.h", {"+ 7u) / 8u;": "+ 8u) / 8u;"}),
    ("presence of a member", "base.h", {"sizeof((p)->member)": "sizeof(*(p))"}),
    ("most dimensions", "tensor.h", {"#define TN_MAX_RANK 8": "#define TN_MAX_RANK 9"}),
]
NOTE = "#include <tenon/plugin.h>\nTN_RESERVE_NOTE(16384);\n"


def broken_headers(root, header, changes, folder):
    """A copy of the headers with texts replaced, all at once."""
    shutil.copytree(root / "sdk/include/tenon", folder / "tenon")
    path = folder / "tenon" / header
    text = path.read_text(encoding="utf-8")
    for before in changes:
        if before not in text:
            sys.exit(f"{header} has no \"{before}\"")
    parts = re.split("(" + "|".join(map(re.escape, sorted(changes, key=len, reverse=True))) + ")", text)
    path.write_text("".join(changes.get(part, part) for part in parts), encoding="utf-8")


def noticed_by_headers(root, cc, flags, folder):
    """Yields what complains about broken headers."""
    done = subprocess.run([sys.executable, "-B", root / "tests/sdk/released.py", folder / "tenon", root / "tests/sdk/released",
                           root / "tests/sdk/released/clarified.txt"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        yield f"released ({done.stderr.splitlines()[0].split(':')[0]})"
    for test in ("abi_test", "abi_devices_test", "abi_tables_test", "abi_values_test"):
        done = subprocess.run([cc, "-std=c11", "-fsyntax-only", "-Wpadded", "-Werror", "-I", folder, *flags,
                               root / f"tests/sdk/{test}.c"], capture_output=True, check=False)
        if done.returncode != 0:
            yield test


def build(root, tools, name, headers, to):
    """Compiles an exhibit with headers; returns whether a host admits it."""
    cc, flags, tenon, _ = tools
    note = to.parent / f"{name}.note.c"
    note.write_text(NOTE, encoding="utf-8")
    subprocess.run([cc, "-std=c99", "-O1", "-w", "-shared", "-fPIC", "-fvisibility=hidden", "-I", headers, *flags,
                    next((root / "tests/museum/kinds").rglob(f"museum_{name}.c")), note, "-o", to, "-lm"], check=True)
    return subprocess.run([tenon, "plugins", "seal", to], capture_output=True, check=False).returncode == 0


def noticed_by_exhibits(root, tools, exhibits, folder):
    """Yields the exhibits, by the names of their lines, that do not compute what they should when some of them are compiled
    with the headers of `folder`; those of the folder "sound" are the others."""
    _, _, tenon, libraries = tools
    plugins = folder / "plugins"
    plugins.mkdir(parents=True)
    for path in sorted((folder.parent / "sound/plugins").glob("*.so")) if exhibits else []:
        shutil.copy(path, plugins)
    names = exhibits or [path.stem.removeprefix("museum_") for path in (root / "tests/museum/kinds").rglob("*.c")]
    for name in names:
        if not build(root, tools, name, folder, plugins / f"museum_{name}.so"):
            yield f"seal of {name}"
            (plugins / f"museum_{name}.so").unlink()
    for program in ("kinds", "steps"):
        text, fault = programs.run([root / "tests/museum/hosts" / program, plugins, libraries / "tenon/plugins/devices"],
                                   libraries, folder)
        lines = hosts.lines_of(text, hosts.PROGRAMS[program])
        for name, values in hosts.PROGRAMS[program].items():
            if name in lines and not hosts.judged(name, lines[name][len(name) + 1:], values, 99, 99)[1]:
                yield name
        if fault:
            yield f"a crash after {len(lines)} lines"
    for name in ("device", "readers", "provider"):
        if name in names and exhibits and (plugins / f"museum_{name}.so").exists():
            _, fault = programs.run([tenon, "plugins", "check", plugins / f"museum_{name}.so", "--only", "primitives", "--only",
                                     "copies", "--only", "rows"], libraries, folder)
            if fault:
                yield f"the kit on {name}"


def main(root, cc, tenon, libraries, work, *flags):
    root, libraries, work = pathlib.Path(root).resolve(), pathlib.Path(libraries).resolve(), programs.work_folder(work)
    tools = cc, flags, tenon, libraries
    broken_headers(root, "base.h", {}, work / "sound")
    sound = [*noticed_by_exhibits(root, tools, [], work / "sound"), *noticed_by_headers(root, cc, flags, work / "sound")]
    if sound:
        sys.exit(f"without a break: {', '.join(sound)}")

    def tried(item):
        number, (what, header, *exhibits, changes) = item
        folder = work / str(number)
        broken_headers(root, header, changes, folder)
        finds = (noticed_by_exhibits(root, tools, exhibits[0], folder) if exhibits
                 else noticed_by_headers(root, cc, flags, folder))
        return "exhibits" if exhibits else "headers", what, list(finds)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = list(pool.map(tried, enumerate([*EXHIBITS, *HEADERS])))
    for place, what, finds in rows:
        shown = "; ".join(finds[:4]) + (f"; {len(finds) - 4} more" if len(finds) > 4 else "")
        print(f"{place:8} {what:36} {shown or 'NOT NOTICED'}")
    noticed = sum(bool(finds) for *_, finds in rows)
    print(f"{noticed} of {len(rows)} breaks are noticed")
    return 0 if noticed >= NEEDED else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
