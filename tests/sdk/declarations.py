"""The declarations of C headers, with their comments: what a release promises. SPDX-License-Identifier: Apache-2.0

The headers are those of Tenon, whose form is narrow: a comment stands before its declaration or behind it in the same
line, structs are `typedef struct x { ... } x;`, constants are in `enum { ... };`."""
import dataclasses
import re

TOKEN = re.compile(r"""(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<directive>^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])*)|(?P<newline>\n)
                       |(?P<blank>[ \t\r\f\v]+)
                       |(?P<code>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[A-Za-z_0-9][A-Za-z_0-9.]*|.)""",
                   re.DOTALL | re.VERBOSE | re.MULTILINE)
DIRECTIVES = "if|ifdef|ifndef|else|elif|endif|include|undef|error|pragma"  # all but define
OPEN, CLOSE = set("({["), set(")}]")


@dataclasses.dataclass
class Declaration:
    """name: of a member "tn_x.y", of a file's first comment its name; code: its tokens; comment: its words."""
    name: str
    code: str
    comment: str = ""
    members: list = dataclasses.field(default_factory=list)  # of a struct or enum, in order


def plain(code):
    """Code with its types as C writes them without "struct" and "const" of copies."""
    return re.sub(r"\bstruct (?=tn_)", "", code)


def words(comment):
    """A comment without its marks, line ends and words for tools."""
    comment = re.sub(r"\s*NOLINT\w*(\([^)]*\))?", "", comment)
    text = re.sub(r"^/\*+|\*/$|^//", "", comment.strip())
    return " ".join(re.sub(r"\n\s*\*", "\n", text).split())


def tokens(text):
    for match in TOKEN.finditer(text):
        if match.lastgroup != "blank":
            yield match.lastgroup, match.group()


class Parts:
    """Divides tokens at `ends` outside of brackets into (code tokens, comment): comments before, and behind in the line."""

    def __init__(self, ends):
        self.ends, self.parts, self.code, self.before, self.depth, self.fresh = ends, [], [], [], 0, False

    def take(self, kind, text):
        if kind == "newline":
            self.fresh = False
        elif kind == "comment":
            if self.fresh and self.parts:
                code, comment = self.parts[-1]
                self.parts[-1] = (code, f"{comment} {words(text)}".strip())
            elif not self.code or self.depth == 0:
                self.before.append(words(text))
        elif kind == "code":
            self.depth += (text in OPEN) - (text in CLOSE)
            if self.depth == 0 and text in self.ends:
                self.end()
            else:
                self.code.append(text)
                if not self.parts or self.depth or text not in self.ends:
                    self.fresh = False

    def end(self):
        if self.code:
            self.parts.append((self.code, " ".join(self.before)))
        self.code, self.before, self.fresh = [], [], True

    def finish(self):
        self.end()
        return self.parts


def parts_of(stream, ends):
    parts = Parts(ends)
    for kind, text in stream:
        parts.take(kind, text)
    return parts.finish()


def member_name(code):
    """The declared name: of a function pointer the word behind "(*", else the last word before [ or the end."""
    text = " ".join(code)
    pointer = re.search(r"\( \* (?:const )?(\w+) (?:\[ \w* \] )?\)", text)
    if pointer:
        return pointer[1]
    plain = re.sub(r" \[.*", "", re.sub(r" = .*", "", text))
    return re.findall(r"\w+", plain)[-1]


def body_of(stream):
    """The tokens between the first { and its } of a declaration."""
    depth, inside = 0, []
    for kind, text in stream:
        if kind == "code":
            depth += (text == "{") - (text == "}")
            if text == "{" and depth == 1:
                continue
        if depth > 0:
            inside.append((kind, text))
    return inside


def enum_members(inside):
    """Constants with their values as expressions: an implicit one is the one before, plus 1."""
    before, members = "-1", []
    for code, comment in parts_of(inside, {","}):
        name, value = code[0], " ".join(code[2:]) or f"( {before} ) + 1"
        if re.fullmatch(r"\( \d+ \) \+ 1", value):
            value = str(int(value.split()[1]) + 1)
        elif value == "( -1 ) + 1":
            value = "0"
        members.append(Declaration(name, value, comment))
        before = value
    return members


def declared(stream, code, comment):
    """One declaration of the top level."""
    text = " ".join(code)
    record = re.match(r"typedef (struct|union) (\w+) \{", text)
    if record:
        name = record[2]
        parts = parts_of(body_of(stream), {";"})
        members = [Declaration(f"{name}.{member_name(part)}", plain(" ".join(part)), said) for part, said in parts]
        return Declaration(name, record[1], comment, members)
    if re.match(r"(typedef )?enum( \w+)? \{", text):
        return Declaration("enum", "enum", comment, enum_members(body_of(stream)))
    pointer = re.match(r"typedef [\w *]+ \( \* (\w+) \) \(", text)
    function = pointer or re.search(r"\b(\w+) \(", text)
    return Declaration(function[1] if function else member_name(code), plain(text), comment)


def macro(directive, before):
    """The macro of a directive, if it defines one. before: comments in front of it."""
    define = re.match(r"\s*#\s*define\s+(\w+)(.*)", directive, re.DOTALL)
    if not define:
        return []
    value = re.sub(r"/\*.*?\*/", " ", define[2].replace("\\\n", " "), flags=re.DOTALL)
    said = " ".join(words(each) for each in re.findall(r"/\*.*?\*/", define[2], re.DOTALL))
    return [Declaration(define[1], " ".join(value.split()), " ".join([*before, said]).strip())]


def of_header(name, text, older=False):
    """The declarations of a header, its first comment under its own name. older: where a member depends on the target's
    version, as for earlier ones."""
    text = re.sub(r"#ifdef __cplusplus\n(extern \"C\" \{|\})\n#endif\n", "", text)
    if older:
        text = re.sub(r"^#if TN_TARGET_MINOR (?:(?!^#).)*?^#else\n", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^#else\n.*?(?=^#endif)", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(rf"^#({DIRECTIVES})\b(?:\\\n|[^\n])*", "", text, flags=re.MULTILINE)
    stream, result, before, code, depth, first = [], [], [], [], 0, True

    def end():
        nonlocal stream, before, code
        made = declared(stream, code, " ".join(before)) if code else None
        if code and not re.fullmatch(r"(struct|union) \w+ ;", " ".join(code)):
            result.append(made)
        stream, before, code = [], [], []
        return made

    last = None  # the declaration whose line has not ended
    for kind, word in tokens(text):
        if kind == "directive":
            result += macro(word, before)
            before = []
            continue
        if kind == "comment" and depth == 0 and not code:
            if first:
                result.append(Declaration(name, "", words(word)))
                first = False
            elif last is not None:
                last.comment = f"{last.comment} {words(word)}".strip()
            elif not re.match(r"/\* -+", word):
                before.append(words(word))
            continue
        if kind == "newline":
            last = None
        if kind == "code":
            depth += (word in OPEN) - (word in CLOSE)
            code.append(word)
        if code:
            stream.append((kind, word))
        inline = kind == "code" and word == "}" and depth == 0 and re.search(r"\) \{", " ".join(code)) is not None
        if kind == "code" and depth == 0 and (word == ";" or inline):
            last = end()
    end()
    return result


def of_folder(folder, older=False):
    """{name: declaration} of all headers of a folder; the enums of all under their constants, of which the first one has
    the comment of its enum, too. older: as in of_header."""
    found = {}
    for path in sorted(folder.glob("*.h")):
        for declaration in of_header(path.name, path.read_text(encoding="utf-8"), older):
            if declaration.name == "enum":
                declaration.members[0].comment = f"{declaration.comment} {declaration.members[0].comment}".strip()
                found.update({member.name: member for member in declaration.members})
            else:
                found[declaration.name] = declaration
    return found
