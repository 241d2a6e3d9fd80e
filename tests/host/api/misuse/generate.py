#!/usr/bin/env python3
"""Writes the wrong calls of every function of the public C API, for misuse_test.cpp:
  generate.py HEADERS SDK_HEADERS OUTPUT
HEADERS and SDK_HEADERS: the folders of tenon*.h and of the plugin interface. A function whose valid arguments follow
neither from its declaration nor from table.py gets a case that fails. SPDX-License-Identifier: Apache-2.0"""
import pathlib
import re
import sys

import declarations
import table

NUMBERS = {"uint32_t", "int32_t", "uint64_t", "int64_t", "double", "tn_dtype", "tn_status"}
LIST = re.compile(r"(?P<element>const .+?|\w+)\*$")


class Underivable(Exception):
    """A value that must be in the table."""


class Case:
    """The statements of one function's case."""

    def __init__(self, api, own_structs, function):
        self.api, self.own_structs, self.function = api, own_structs, function
        self.variables, self.results, self.checks = [], [], []

    def value(self, path, variable, struct=None):
        """The C++ expression of a valid value, or None."""
        kind = variable.type
        keys = [f"{self.function.name}.{path}"]
        keys += [f"{struct}.{variable.name}"] if struct else [variable.name]
        return next((table.VALUES[key] for key in [*keys, kind] if key in table.VALUES), None)

    def needed(self, path, variable, struct=None):
        value = self.value(path, variable, struct)
        if value is None:
            raise Underivable(f"no valid value for {path} of type {variable.type}")
        return value

    def skipped(self, path, struct, name, what=""):
        end = f": {what}" if what else ""
        return f"{self.function.name}.{path}{end}" in table.SKIPPED or f"{struct}.{name}{end}" in table.SKIPPED

    def check(self, method, *arguments):
        self.checks.append(f"misuse.{method}({', '.join(arguments)});")

    # ---- one variable: a parameter, or a member at the C++ place `place`

    def variable(self, path, variable, place, counts, struct=None):
        name, kind = variable.name, variable.type
        null = variable.may_be_null and f"{struct}.{name}" not in table.REQUIRED
        skipped = self.skipped(path, struct, name)
        if null and self.value(path, variable, struct) == "nullptr":
            self.declare(kind, place, "nullptr", struct)
        elif kind in NUMBERS:
            value = self.value(path, variable, struct)
            if struct is None:
                self.variables.append(f"{kind} {place} = {value or '1'};")
            elif value:
                self.variables.append(f"{place} = {value};")
        elif self.api.is_handle(kind):
            if struct is None or not null:
                self.declare(kind, place, self.needed(path, variable, struct), struct)
            if not skipped:
                self.check("handle", place, quote(kind[3:]), "true" if null else "false")
        elif name in counts:
            self.list(path, variable, place, counts[name], struct, null, skipped)
        elif kind == "const char*" or "(*)" in kind or kind in self.api.function_types:
            optional = null or skipped
            value = self.value(path, variable, struct) if optional else self.needed(path, variable, struct)
            if value:
                self.declare("auto*" if "(" in kind or kind in self.api.function_types else kind, place, value, struct)
            if not null and not skipped:
                self.check("null", place, quote(path))
        elif struct is None and self.is_opaque(kind):
            self.declare(kind, place, self.needed(path, variable), struct)
            if not null and not skipped:
                self.check("null", place, quote(path))
        elif kind.startswith("const ") and kind.endswith("*") and kind.count("*") == 1:
            self.input(path, variable, place, kind[6:-1], struct, null, skipped)
        elif struct is None and kind.endswith("*"):
            self.output(path, variable, place, kind[:-1])
        elif struct is None:
            raise Underivable(f"{path} is of type {kind}, which generate.py does not know")

    def is_opaque(self, kind):
        """Whether it points to something of which the headers have no definition."""
        return re.fullmatch(r"\w+\*", kind) and kind[:-1] not in {*NUMBERS, *self.api.structs, "char"}

    def declare(self, kind, place, value, struct):
        self.variables.append(f"{place} = {value};" if struct else f"{kind} {place} = {value};")

    def list(self, path, variable, place, count, struct, null, skipped):
        element = LIST.match(variable.type)["element"]
        bare = element.removesuffix(" const") if "*" in element else element.removeprefix("const ")
        room = re.sub(r"\W", "_", place) + "_room"
        value = self.value(path, variable, struct)
        if value is None and self.api.is_handle(bare):
            value = f"{{{table.VALUES[bare]}}}" if bare in table.VALUES else None
        self.variables.append(f"std::vector<{bare}> {room} = {value or '{}'};")
        self.declare(variable.type, place, f"{room}.data()", struct)
        counted = f"{'' if struct else 'uint32_t '}{count} = static_cast<uint32_t>("
        if not any(line.startswith(counted) for line in self.variables):  # two lists may have one count
            self.variables.append(f"{counted}{room}.size());")
        if not element.startswith("const "):
            self.results.append(room)
        if null or skipped or self.skipped(path, struct, variable.name, "list"):
            return
        zero = "true" if self.skipped(path, struct, variable.name, "zero") else "false"
        self.check("list", place, count, quote(path), zero)
        if self.api.is_handle(bare):
            self.check("handles", place, count, quote(path))

    def input(self, path, variable, place, kind, struct, null, skipped):
        """A pointer to one struct that the call reads."""
        value = self.value(path, variable, struct)
        if (null and skipped) or (struct and not self.api.is_sized(kind)):
            return
        if value and value.startswith("&"):
            self.declare(variable.type, place, value, struct)
        else:
            room = re.sub(r"\W", "_", place) + "_room"
            own = self.api.is_sized(kind) and kind in self.own_structs
            if not value and not own:
                raise Underivable(f"no valid value for {path} of type {variable.type}")
            self.variables.append(f"{kind} {room} = {value if value and not own else '{}'};")
            if own:
                self.variables.append(f"{room}.size = sizeof {room};")
            self.declare(variable.type, place, f"&{room}", struct)
            if own and not skipped:
                self.check("sized", place, quote(path))
                self.members(path, kind, room)
        if not null and not skipped:
            self.check("null", place, quote(path))

    def members(self, path, kind, room):
        members = self.api.structs[kind]
        counts = lists_of(members)
        numbers = set(counts.values())
        for member in members[1:]:
            if member.name not in numbers and "reserved" not in member.name:
                where = {name: f"{room}.{count}" for name, count in counts.items()}
                self.variable(f"{path}.{member.name}", member, f"{room}.{member.name}", where, kind)

    def output(self, path, variable, place, kind):
        room = place + "_room"
        value = self.value(path, variable)
        self.variables.append(f"{kind} {room} = {value or '{}'};")
        if self.api.is_sized(kind):
            self.variables.append(f"{room}.size = sizeof {room};")
            self.check("sized", place, quote(path))
        self.variables.append(f"{variable.type} {place} = &{room};")
        self.results.append(room)
        self.check("null", place, quote(path))

    # ---- the whole case

    def statements(self):
        function = self.function
        if function.name in table.OTHERS:
            return table.OTHERS[function.name].split("\n")
        if function.result != "tn_status":
            raise Underivable("it returns no status")
        counts = lists_of(function.parameters)
        for parameter in function.parameters:
            if parameter.type == "tn_host*":
                self.variables.append("tn_host* host = world.host;")
                self.check("null", "host", '"host"')
            elif (parameter.type, parameter.name) == ("void*", "user"):
                self.variables.append("void* user = nullptr;")
            elif parameter.type != "tn_error*" and parameter.name not in counts.values():
                self.variable(parameter.name, parameter, parameter.name, counts)
        arguments = ", ".join(parameter.name for parameter in function.parameters)
        lines = [table.BEFORE[function.name]] if function.name in table.BEFORE else []
        lines += self.variables
        lines.append(f"Misuse misuse(world, other, [&](tn_error* error) {{ return {function.name}({arguments}); }});")
        lines += [f"misuse.result({room});" for room in self.results]
        lines += self.checks
        for place, value, what, text, *status in table.ORDERS.get(function.name, []):
            lines.append(f"misuse.with({', '.join([place, value, quote(what), quote(text), *status])});")
        lines.append("misuse.accepted();")
        if function.name.endswith("_release") or any(parameter.name == "of" for parameter in function.parameters):
            lines.append('misuse.refused("a second time", "");')
        return lines + ([table.AFTER[function.name]] if function.name in table.AFTER else [])


def quote(text):
    return f'"{text}"'


def lists_of(variables):
    """The pointers that have a count: {name: name of the count}."""
    counts = {variable.name for variable in variables if variable.type == "uint32_t"}
    result = {}
    for place, variable in enumerate(variables):
        follows = next((other.name for other in variables[place + 1:] if not other.type.endswith("*")), "")
        if variable.type.endswith("*") and "(" not in variable.type:
            if f"{variable.name}_count" in counts:
                result[variable.name] = f"{variable.name}_count"
            elif follows == "count" and "count" in counts:
                result[variable.name] = "count"
    return result


def main(headers, sdk_headers, output):
    paths = sorted(pathlib.Path(headers).glob("tenon*.h"))
    texts = [path.read_text(encoding="utf-8") for path in paths]
    sdk = [path.read_text(encoding="utf-8") for path in sorted(pathlib.Path(sdk_headers).glob("*.h"))]
    own_structs = set(declarations.read(texts).structs)
    api = declarations.read(texts, sdk)
    lines = ["// Made by generate.py."] + [f"#include <tenon/{path.name}>" for path in paths]
    lines += ['#include "tests/host/api/misuse/misuse.h"', '#include "tests/support/test_layers.h"', "",
              "namespace tenon_tests {", "namespace {"]
    for function in api.functions:
        try:
            statements = Case(api, own_structs, function).statements()
        except Underivable as missing:
            statements = [f'FAIL() << "{missing}: add it to tests/host/api/misuse/table.py";']
        parameters = "const World& world, const World& other"
        if not any("world" in statement for statement in statements):
            parameters = "const World&, const World&"
        lines += ["", f"void check_{function.name}({parameters}) {{", *(f"  {line}" for line in statements), "}"]
    lines += ["", "}  // namespace", "", "const std::vector<MisuseCase>& misuse_cases() {",
              "  static const std::vector<MisuseCase> cases = {"]
    lines += [f'      {{"{function.name}", &check_{function.name}}},' for function in api.functions]
    lines += ["  };", "  return cases;", "}", "", "}  // namespace tenon_tests", ""]
    pathlib.Path(output).write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
