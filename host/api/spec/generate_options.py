#!/usr/bin/env python3
"""Writes the structs of options and what converts them from the descriptions beside it, *.toml:
  generate_options.py           writes the files that `outputs` names
  generate_options.py --check   compares them, and fails if one differs
docs/contributing.md says how an option is added. SPDX-License-Identifier: Apache-2.0"""
import dataclasses
import pathlib
import re
import sys
import textwrap
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
WIDTH = 120


@dataclasses.dataclass
class Type:
    """A type of members: how C and C++ declare it, and the statement that converts it, of the member {m}."""
    c: str
    cpp: str
    convert: str
    listed: bool = False  # C has a count, too


VALUE, HANDLE = "to.{m} = from.{m};", "to.{m} = from.{m}.handle();"
TYPES = {
    "int64": Type("int64_t ", "int64_t", VALUE),
    "uint64": Type("uint64_t ", "uint64_t", VALUE),
    "uint32": Type("uint32_t ", "uint32_t", VALUE),
    "double": Type("double ", "double", VALUE),
    "dtype": Type("tn_dtype ", "tn_dtype", VALUE),
    "bool": Type("uint32_t ", "bool", "to.{m} = from.{m} ? 1 : 0;"),
    "text": Type("const char* ", "std::string", 'to.{m} = c_text(from.{m}, "{path}.{m}");'),
    "parameters": Type("tn_parameters ", "Parameters", HANDLE),
    "updater": Type("tn_updater ", "Updater", HANDLE),
    "reader": Type("tn_reader ", "Reader", HANDLE),
    "team": Type("tn_team ", "Team", HANDLE),
    "cancel": Type("struct tn_cancel* ", "Cancel", "to.{m} = from.{m}.get();"),
    "handler": Type("tn_event_handler ", "EventHandler", ""),
    "layers": Type("const tn_layer* ", "Layers", "lists.set(to.{m}, to.{m}_count, handles(from.{m}));", True),
    "texts": Type("const char* const* ", "std::vector<std::string>",
                  'lists.set(to.{m}, to.{m}_count, c_texts(from.{m}, "{path}.{m}"));', True),
    "layer": Type("tn_layer ", "Layer", HANDLE),
    "feeds": Type("const struct tn_feed* ", "std::vector<Feed>", "lists.set(to.{m}, to.{m}_count, c_feeds(from.{m}));", True),
    "int64s": Type("const int64_t* ", "std::vector<int64_t>", "lists.set(to.{m}, to.{m}_count, from.{m});", True),
    "sink": Type("int32_t (*{m})(void* user, int64_t sample, int64_t result, int64_t id)",
                 "std::function<bool(int64_t sample, int64_t result, int64_t id)>", ""),
    "poll": Type("int32_t (*{m})(void* user)", "std::function<bool()>", ""),
    "feeding": Type("const tn_feeding* ", "std::vector<std::pair<std::string, std::string>>",
                    'lists.set(to.{m}, to.{m}_count, c_feeding(from.{m}, "{path}.{m}"));', True),
}


NUMBERS = {"int64", "uint64", "uint32", "double", "bool", "dtype"}


@dataclasses.dataclass
class Member:
    """A member of a struct. Only name and type are required."""
    name: str
    type: str
    default: object = None  # in C++; null and 0 stand for it in C if the text says so
    text: str = ""  # the first sentence is for C++, too. C has of "null or empty" the first word, C++ the last
    since: str = ""  # the version of the first release that has it, if that is not the first of its struct
    minimum: int = None  # checked for Python, and for options of the loop
    train_only: bool = False  # tests and inferences ignore it
    loop: bool = False  # a member of LoopOptions
    python: bool = True  # offered to Python
    c_only: bool = False  # C++ and Python give it as an argument of the call
    job_minimum: int = None  # of the key of a job file; None: the job's own code reads it, or nothing does
    misuse: str = ""  # a valid value, for tests/host/api/misuse

    def whole(self):
        first = "Train only. " if self.train_only else ""
        return first + self.text + (f" Since {self.since}." if self.since else "")

    def comment(self):
        return self.whole().replace("ull or empty", "ull")

    def brief(self):
        text = self.whole().replace("\n", " ").replace("Null or empty", "Empty").replace("null or empty", "empty")
        end = text.find(". ", len("Train only. ") if self.train_only else 0)
        return text if end < 0 else text[:end + 1]


@dataclasses.dataclass
class Struct:
    """A struct of C and, if `cpp` is set, that of C++. layout: the members of C in their order, which is frozen."""
    c: str
    layout: str
    members: list
    text: str = ""
    cpp: str = ""
    path: str = ""  # in messages

    def __post_init__(self):
        self.members = [Member(**member) for member in self.members]
        named = {member.name: member for member in self.members}
        order = self.layout.split()
        for member in self.members:  # appended since
            if member.name not in order:
                order += [member.name] + ([f"{member.name}_count"] if type_of(member).listed else [])
        self.c_members = [(name, named.get(name)) for name in order]
        expected = {f"{member.name}_count" for member in self.members if type_of(member).listed}
        others = {name for name in order if name not in named and name not in ("size", "user") and "reserved" not in name}
        if others != expected or len({*order}) != len(order) or len(named) != len(self.members):
            sys.exit(f"{self.c}: a name is unknown, missing or there twice: {' '.join(order)}")
        for member in self.members:
            if member.type in NUMBERS and member.default is None:
                sys.exit(f"{self.c}.{member.name}: a number needs a default")


@dataclasses.dataclass
class Spec:
    """A description: a pair of public headers, and the files of FURTHER."""
    name: str
    subject: str
    struct: list
    declarations: list = dataclasses.field(default_factory=list)  # for C
    includes: list = dataclasses.field(default_factory=list)  # for C++; "": an empty line

    def __post_init__(self):
        for described in self.struct:
            struct = Struct(**described)
            STRUCTS[struct.c] = struct
        self.structs = [STRUCTS[described["c"]] for described in self.struct]


STRUCTS = {}  # by the name in C


def type_of(member):
    """The type of a member: one of TYPES, or that of a pointer to another struct or to a list of them ("tn_x[]")."""
    if member.type in TYPES:
        return TYPES[member.type]
    other = STRUCTS.get(member.type.removesuffix("[]"))
    if other is None:
        sys.exit(f"{member.name}: the type {member.type} is neither in TYPES nor an earlier struct")
    if member.type.endswith("[]"):
        return Type(f"const {other.c}* ", f"std::vector<{other.cpp}>", "lists.set_each(to.{m}, to.{m}_count, from.{m});", True)
    return Type(f"const {other.c}* ", f"std::optional<{other.cpp}>", "lists.set(to.{m}, from.{m});")


def read(folder=HERE):
    STRUCTS.clear()
    return {path.stem: Spec(path.stem, **tomllib.loads(path.read_text(encoding="utf-8")))
            for path in sorted(folder.glob("*.toml"))}


# ---- text


def comment(text, indent, begin, middle, end=""):
    """The lines of a comment. A line that begins with blanks keeps its form."""
    if not text:
        return []
    parts = [""]
    for line in text.split("\n"):
        if line.startswith(" ") or parts[-1].startswith(" "):
            parts.append(line)
        else:
            parts[-1] = f"{parts[-1]} {line}".strip()
    lines = []
    parts[-1] += end.replace(" ", "\N{NO-BREAK SPACE}")  # stays in the line of the last word
    for part in parts:
        if part.startswith(" "):
            lines.append(indent + middle + part)
        else:
            lines += textwrap.wrap(part, WIDTH, initial_indent=indent + (middle if lines else begin),
                                   subsequent_indent=indent + middle, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def c_comment(text, indent):
    return comment(text, indent, "/* ", " * ", " */")


def wrapped(line):
    """A call in as many lines as clang-format makes of it."""
    if len(line) <= WIDTH:
        return [line]
    start = line.index("(") + 1
    arguments, rows = re.split(r", (?![^(]*\))", line[start:]), [line[:start]]
    for number, argument in enumerate(arguments):
        piece = argument + ("," if number + 1 < len(arguments) else "")
        room = rows[-1] + ("" if number == 0 else " ") + piece
        if len(room) <= WIDTH:
            rows[-1] = room
        else:
            rows.append(" " * start + piece)
    return rows


def literal(member):
    if isinstance(member.default, bool):
        return "true" if member.default else "false"
    if member.type == "text":
        return f'"{member.default}"'
    return str(member.default)



# ---- the files


def c_header(spec):
    guard = f"TENON_TENON_{spec.name.upper()}_OPTIONS_H"
    lines = [f"/* Tenon: the structs of the options of {spec.subject}. Include <tenon/tenon.h>. Written by",
             " * host/api/spec/generate_options.py. SPDX-License-Identifier: Apache-2.0 */",
             f"#ifndef {guard}", f"#define {guard}", "",
             "#include <tenon/tenon_base.h>", "", "#ifdef __cplusplus", 'extern "C" {', "#endif"]
    lines += ["", *spec.declarations] if spec.declarations else []
    for struct in spec.structs:
        lines += ["", *c_comment(struct.text, ""), f"typedef struct {struct.c} {{"]
        for name, member in struct.c_members:
            if member is None:
                zero = " /* 0 */" if "reserved" in name else ""
                lines.append(f"  void* {name};" if name == "user" else f"  uint32_t {name};{zero}")
                continue
            declared = type_of(member).c
            lines += c_comment(member.comment(), "  ")
            lines.append(f"  {declared.format(m=name) if '{m}' in declared else declared + name};")
        lines.append(f"}} {struct.c};")
    return [*lines, "", "#ifdef __cplusplus", "}", "#endif", "#endif"]


def cpp_header(spec):
    guard = f"TENON_TENON_{spec.name.upper()}_OPTIONS_HPP"
    lines = [f"// Tenon's C++ API: the options of {spec.subject}. Include <tenon/tenon.hpp>. Written by",
             "// host/api/spec/generate_options.py. SPDX-License-Identifier: Apache-2.0",
             f"#ifndef {guard}", f"#define {guard}", "", *[f"#include <{name}>" if name else "" for name in spec.includes], "",
             "namespace tenon {", "inline namespace v0 {"]
    structs = [struct for struct in spec.structs if struct.cpp]
    for struct in structs:
        lines += ["", f"// As {struct.c} documents it.", f"struct {struct.cpp} {{"]
        for member in struct.members:
            if member.c_only:
                continue
            kind = type_of(member)
            lines += comment(member.brief(), "  ", "// ", "// ")
            initial = f" = {literal(member)}" if member.default not in (None, "") else ""
            if kind.listed or kind.cpp.startswith(("std::optional", "std::function")):
                initial = " = {}"
            lines.append(f"  {kind.cpp} {member.name}{initial};")
        lines.append("};")
    lines += ["", "namespace detail {", "", "// Each fills a struct of C, which borrows from `from` and `lists`."]
    for struct in structs:
        lines += wrapped(f"inline void fill({struct.c}& to, const {struct.cpp}& from, [[maybe_unused]] OptionLists& lists) {{")
        lines += ["  to.size = sizeof to;"] if struct.c_members[0][0] == "size" else []
        for member in (member for _, member in struct.c_members if member is not None):
            if type_of(member).convert and not member.c_only:
                lines += wrapped("  " + conversion(struct, member))
        lines.append("}")
    return [*lines, "", "}  // namespace detail", "}  // namespace v0", "}  // namespace tenon", "#endif"]


def conversion(struct, member):
    convert = type_of(member).convert.format(m=member.name, path=struct.path)
    if member.type == "text" and member.default == "":  # null stands for the default
        return convert.replace("= c_text", f"= from.{member.name}.empty() ? nullptr : c_text")
    return convert


def python_header(spec):
    lines = [f"// Reads the options of {spec.subject} from dicts. Written by host/api/spec/generate_options.py.",
             "// SPDX-License-Identifier: Apache-2.0", "#pragma once", "", '#include "options.h"', "",
             "namespace tenon_python {"]
    for struct in spec.structs:
        if not struct.cpp or struct.c_members[0][0] != "size":
            continue
        lines += ["", f"inline void read(const nb::dict& from, tenon::{struct.cpp}* to) {{"]
        for member in struct.members:
            if member.type in STRUCTS:
                lines.append(f'  if (const auto part = part_of(from, "{member.name}")) '
                             f"read(*part, &to->{member.name}.emplace());")
            elif member.python and not member.c_only and type_of(member).convert:
                lines.append(f'  take(from, "{member.name}", &to->{member.name});')
        lines.append("}")
    return [*lines, "", "}  // namespace tenon_python"]


def python_table(spec):
    """The options of Python that are numbers, texts and truth values."""
    lines = [f'"""The options of {spec.subject}, by struct. Written by host/api/spec/generate_options.py.', "",
             'SPDX-License-Identifier: Apache-2.0', '"""', "", "from tenon._base.check import Option"]
    for struct in spec.structs:
        options = [member for member in struct.members if member.python and not str(member.default).startswith("TN_") and
                   member.type in NUMBERS | {"text"}]
        if not struct.cpp or not options:
            continue
        lines += ["", f"{struct.c.removeprefix('tn_').removesuffix('_options').upper()} = {{"]
        for member in options:
            default = float(member.default) if member.type == "double" else member.default
            default = f'"{default}"' if isinstance(default, str) else default
            least = "" if member.minimum is None else f", {member.minimum}"
            lines.append(f'    "{member.name}": Option("{member.type}", {default}{least}),')
        lines.append("}")
    return lines


def loop_header(spec):
    members = [member for struct in spec.structs for member in struct.members if member.loop]
    lines = ["// The options of a training that its loop reads. Written by host/api/spec/generate_options.py.",
             "// SPDX-License-Identifier: Apache-2.0", "#pragma once", "", "#include <cstdint>", "",
             '#include "core/error.h"', "", "namespace tenon::host {", "", "struct LoopOptions {"]
    for member in members:
        lines += comment(member.brief(), "  ", "// ", "// ")
        lines.append(f"  {TYPES[member.type].cpp} {member.name} = {literal(member)};")
    lines += ["};", "", "template <typename Number>", "Number at_least(Number minimum, Number value, const char* name) {",
              "  if (value < minimum)",
              ('    core::fail(TN_INVALID, core::SubjectName{name}, "options.", name, " is ", value, '
               '"; expected at least ", minimum);'),
              "  return value;", "}", "",
              "// Takes them from tn_train_options. Throws TN_INVALID for one that is out of range.",
              "template <typename Options>",
              "LoopOptions loop_options(const Options& from, [[maybe_unused]] bool training) {", "  LoopOptions to;"]
    for member in members:
        value = f"from.{member.name}"
        if member.minimum is not None:
            value = f'at_least<{TYPES[member.type].cpp}>({member.minimum}, {value}, "{member.name}")'
        lines.append(f"  {'if (training) ' if member.train_only else ''}to.{member.name} = {value};")
    return [*lines, "  return to;", "}", "", "}  // namespace tenon::host"]


def job_header(spec):
    lines = ["// The keys of a job that are options of its training alone. Written by host/api/spec/generate_options.py.",
             "// SPDX-License-Identifier: Apache-2.0", "#pragma once", "", "#include <cstdint>",
             "#include <tenon/tenon.hpp>", "", '#include "host/cli/job/toml_tree.h"', "", "namespace tenon::cli {", "",
             "inline void read_training_keys(Section& job, TrainOptions* to) {"]
    for struct in spec.structs:
        for member in struct.members:
            if member.job_minimum is not None:
                lines += wrapped(f'  to->{member.name} = job.integer("{member.name}", {member.job_minimum}, INT64_MAX)'
                                 f".value_or(to->{member.name});")
    return [*lines, "}", "", "}  // namespace tenon::cli"]


FURTHER = {"training": {
    "host/training/loop_options.h": loop_header,
    "host/cli/job/training_keys.h": job_header,
    "bindings/python/src/training_options.h": python_header,
    "bindings/python/tenon/_run/options.py": python_table,
}, "generate": {
    "bindings/python/src/generate_options.h": python_header,
}, "team": {
    "bindings/python/src/team_options.h": python_header,
    "bindings/python/tenon/_run/team_options.py": python_table,
}}


def outputs(specs):
    """The texts of the files, by path."""
    files = {}
    for spec in specs.values():
        files.update({name: write(spec) for name, write in FURTHER.get(spec.name, {}).items()})
        files[f"host/include/tenon/tenon_{spec.name}_options.h"] = c_header(spec)
        files[f"host/include/tenon/tenon_{spec.name}_options.hpp"] = cpp_header(spec)
    return {name: "\n".join(lines) + "\n" for name, lines in files.items()}


def main(check):
    stale = []
    for name, text in outputs(read()).items():
        path = ROOT / name
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            stale.append(name)
        elif not check:
            path.write_text(text, encoding="utf-8")
    if stale:
        sys.exit(f"not what host/api/spec/generate_options.py writes: {', '.join(stale)}; run it")


if __name__ == "__main__":
    main(sys.argv[1:] == ["--check"])
