"""Reads the declarations of the public C API from its headers. SPDX-License-Identifier: Apache-2.0"""
import dataclasses
import re

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
MARK = re.compile(r"\x01(\d+)\x02")  # a comment, by its number
FUNCTION = re.compile(r"TENON_API\s+(?P<result>[\w\s*]+?)\s*\b(?P<name>tn_\w+)\s*\((?P<parameters>[^;{]*)\)\s*;")
STRUCT = re.compile(r"typedef\s+struct\s+\w*\s*\{(?P<body>[^{}]*)\}\s*(?P<name>tn_\w+)\s*;")
FUNCTION_TYPE = re.compile(r"typedef\s+[\w\s]+\(\*(?P<name>tn_\w+)\)\s*\(")
POINTER_TO_FUNCTION = re.compile(r"(?P<result>.*)\(\*\s*(?P<name>\w+)\)\s*\((?P<parameters>.*)\)$", re.DOTALL)


@dataclasses.dataclass
class Variable:
    """A parameter or a member."""
    name: str
    type: str  # without the name: "const tn_layer*", "tn_array", "int64_t[8]", "void (*)(void* user)"
    may_be_null: bool  # the header says so


@dataclasses.dataclass
class Function:
    name: str
    result: str
    parameters: list


@dataclasses.dataclass
class Api:
    functions: list
    structs: dict  # name: members
    function_types: set

    def is_handle(self, type_name):
        return [m.name for m in self.structs.get(type_name, [])] == ["index", "generation"]

    def is_sized(self, type_name):
        return [(m.name, m.type) for m in self.structs.get(type_name, [])[:1]] == [("size", "uint32_t")]


def split(text, separator):
    """Splits at separators outside of parentheses."""
    parts, depth, start = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == separator and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


def variables(text):
    """The names and types of one declaration, such as "uint32_t index, generation"."""
    text = " ".join(text.split())
    if not text or text == "void":
        return []
    pointer = POINTER_TO_FUNCTION.match(text)
    if pointer:
        return [(pointer["name"], f"{pointer['result'].strip()} (*)({pointer['parameters']})")]
    first, *others = split(text, ",")
    matched = re.match(r"(?P<type>.*?[\w*])\s*\b(?P<name>\w+)(?P<array>(\[\w*\])*)$", first)
    if matched is None:
        raise ValueError(f"cannot read the declaration {text!r}")
    kind = matched["type"].removeprefix("struct ").replace("const struct ", "const ").replace(" *", "*").strip()
    result = [(matched["name"], kind + matched["array"])]
    for other in others:
        name, array = re.match(r"\s*(\w+)((\[\w*\])*)$", other).group(1, 2)
        result.append((name, kind + array))
    return result


def read(headers, additional=()):
    """The API of the headers. additional: texts with structs that the API uses and functions that are not its own."""
    comments, api = [], Api([], {}, set())

    def mark(match):
        comments.append(match.group())
        return f"\x01{len(comments) - 1}\x02"

    def members(body):
        # A comment belongs to the member before it if both begin in one line, else to the member after it.
        found, pieces = [], split(body, ";")
        for place, piece in enumerate(pieces[:-1]):
            behind = re.match(r"[^\S\n]*((?:\x01\d+\x02[^\S\n]*)*)", pieces[place + 1]).group(1)
            if place > 0:
                piece = re.sub(r"^[^\S\n]*(\x01\d+\x02[^\S\n]*)+", "", piece)
            text = " ".join(comments[int(number)] for number in MARK.findall(piece + behind))
            null = re.search(r"\bnull\b|\{0, 0\}", text, re.IGNORECASE) is not None
            found += [Variable(name, kind, null) for name, kind in variables(MARK.sub("", piece))]
        return found

    for number, header in enumerate([*headers, *additional]):
        text = COMMENT.sub(mark, header)
        bare = MARK.sub("", text)
        api.structs.update((match["name"], members(match["body"])) for match in STRUCT.finditer(text))
        api.function_types.update(match["name"] for match in FUNCTION_TYPE.finditer(bare))
        if number >= len(headers):
            continue
        found = list(FUNCTION.finditer(text))
        if len(found) != len(re.findall(r"(?<!define )\bTENON_API\b", bare)):
            raise ValueError(f"not every TENON_API was read; read: {[match['name'] for match in found]}")
        for match in found:
            before = re.search(r"\x01(\d+)\x02\s*$", text[:match.start()])
            comment = " ".join(comments[int(before[1])].split()) if before else ""
            parameters = [Variable(name, kind, re.search(rf"\b{name}\b[^.;]*\bnull\b", comment) is not None)
                          for part in split(MARK.sub("", match["parameters"]), ",") for name, kind in variables(part)]
            api.functions.append(Function(match["name"], match["result"], parameters))
    return api
