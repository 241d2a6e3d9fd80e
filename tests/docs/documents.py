"""The documents: README.md and docs/*.md, their fenced blocks, links and named paths; and the checks that need no
compiler. SPDX-License-Identifier: Apache-2.0

A fenced block is checked when the line above it is  <!-- snippet: KIND ARGUMENT... -->
  file PATH [PART]            equals the file, or its lines between "docs: PART" and "docs: end"
  template PATH NAME          equals the file that `tenon plugins new NAME` makes of this one below sdk/templates
  cpp plugin [KIND/NAME [F]]  compiles against the SDK alone; with KIND/NAME it is part of that plugin's source file F
                              (default NAME.cpp), which is built with tenon_add_plugin and loaded. Likewise c plugin
  cpp app [NAME]              compiles against libtenon; with NAME it is part of a program, which is run. Likewise c app
  cmake plugins               the lines that add the document's plugins, in place of generated ones
  toml [FILE]                 a job: tenon plan must accept it; FILE names it for the blocks below
  sh run                      run by bash, line by line, until one fails
  output COMMAND              the output of COMMAND; "..." matches any text
  manifest KIND/NAME          the manifest that the SDK wrote for that plugin
Blocks with the language c, cpp or toml must have one; other blocks may.
"""
import dataclasses
import re

import lengths
import rules

NEED_SNIPPET = {"c", "cpp", "c++", "h", "hpp", "toml"}
KINDS = {"file", "template", "cpp", "c", "cmake", "toml", "sh", "output", "manifest"}
ROOMS = (*rules.ROOMS, "docs")


@dataclasses.dataclass
class Block:
    document: str  # path below the root
    line: int
    language: str
    snippet: list  # words of the marker; empty: none
    text: str

    @property
    def where(self):
        return f"{self.document}:{self.line}"

    @property
    def kind(self):
        return self.snippet[0] if self.snippet else ""


def document_paths(root):
    return [root / "README.md", *sorted(root.glob("examples/README.md")), *sorted((root / "docs").glob("*.md"))]


def read_blocks(root, path):
    """All fenced blocks of a document, and its lines outside of them as (number, text)."""
    document, blocks, prose = str(path.relative_to(root)), [], []
    lines = path.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        fence = re.match(r"^ {0,3}(```+|~~~+)\s*([\w+-]*)", lines[number])
        if not fence:
            prose.append((number + 1, lines[number]))
            number += 1
            continue
        above = lines[number - 1].strip() if number else ""
        marker = re.fullmatch(r"<!-- snippet: (.+) -->", above)
        start, end = number + 1, number + 1
        while end < len(lines) and not re.match(rf"^ {{0,3}}{fence[1][0]}{{{len(fence[1])},}}\s*$", lines[end]):
            end += 1
        text = "\n".join(lines[start:end]) + "\n"
        blocks.append(Block(document, start, fence[2], marker[1].split() if marker else [], text))
        number = end + 1
    return blocks, prose


def marked_part(path, part):
    """The lines between "docs: part" and "docs: end", without the indentation that they share."""
    lines = path.read_text(encoding="utf-8").splitlines()
    begin = [i for i, line in enumerate(lines) if re.search(rf"docs: {re.escape(part)}(\s|$)", line)]
    if len(begin) != 1:
        raise ValueError(f"{path.name} has {len(begin)} lines \"docs: {part}\"; expected one")
    rest = lines[begin[0] + 1:]
    ends = [i for i, line in enumerate(rest) if "docs: end" in line]
    if not ends:
        raise ValueError(f"{path.name}: \"docs: {part}\" has no end")
    chosen = rest[:ends[0]]
    shared = min((len(line) - len(line.lstrip()) for line in chosen if line.strip()), default=0)
    return "\n".join(line[shared:] for line in chosen) + "\n"


def from_template(root, path, name):
    """The text that `tenon plugins new` makes of a template; its own tests compare more."""
    text = (root / "sdk/templates" / path).read_text(encoding="utf-8")
    return text.replace("example.my_plugin", name).replace("my_plugin", name.partition(".")[2])


def check_block(root, block):
    if not block.snippet:
        if block.language.lower() in NEED_SNIPPET:
            yield f"{block.where}: a block of {block.language} without a line <!-- snippet: ... --> above it"
        return
    if block.kind not in KINDS:
        yield f"{block.where}: unknown kind of snippet \"{block.kind}\""
        return
    language = {"sh": "sh", "toml": "toml", "cpp": "cpp", "c": "c", "cmake": "cmake", "manifest": "json"}
    if block.language != language.get(block.kind, block.language):
        yield f"{block.where}: a snippet \"{block.kind}\" in a block of {block.language}"
    if block.kind in ("cpp", "c") and block.snippet[1:2] not in (["plugin"], ["app"]):
        yield f"{block.where}: \"{block.kind}\" must be followed by plugin or app"
    if block.kind in ("file", "template"):
        try:
            if block.kind == "template":
                text = from_template(root, *block.snippet[1:])
            else:
                path = root / block.snippet[1]
                text = marked_part(path, block.snippet[2]) if len(block.snippet) > 2 else path.read_text(encoding="utf-8")
        except (OSError, ValueError, IndexError) as error:
            yield f"{block.where}: {error}"
            return
        if text.strip("\n") != block.text.strip("\n"):
            yield f"{block.where}: differs from {' '.join(block.snippet[1:])}, which says:\n{text}"


def anchors(path):
    """The anchors that GitHub makes of a document's headings."""
    found = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        heading = re.match(r"#+\s+(.*?)\s*$", line)
        if heading:
            words = re.sub(r"[^\w\- ]", "", heading[1].lower().replace("`", ""))
            found.add(words.replace(" ", "-"))
    return found


def check_links(root, path, prose):
    document = path.relative_to(root)
    for number, line in prose:
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            file = (path.parent / name) if name else path
            if not file.exists():
                yield f"{document}:{number}: the link {target} leads nowhere"
            elif anchor and file.suffix == ".md" and anchor not in anchors(file):
                yield f"{document}:{number}: {name or document} has no heading for #{anchor}"


def braces(text):
    """Expands a{b,c} to ab and ac."""
    found = re.search(r"\{([^{}]*)\}", text)
    if not found:
        return [text]
    return [whole for part in found[1].split(",") for whole in braces(text[:found.start()] + part + text[found.end():])]


def check_paths(root, build, path, prose):
    """Checks paths in `code` that begin with a folder of ROOMS or with build/, or are an SDK or API header."""
    document = path.relative_to(root)
    for number, line in prose:
        for code in re.findall(r"`([^`]+)`", line):
            for word in code.split():
                word = re.sub(r"<[\w ]+>", "*", word.rstrip(".,:;")).rstrip("/")
                if not re.fullmatch(r"[\w./*{},+\-]+", word):
                    continue
                first = word.partition("/")[0]
                if first in ROOMS and "/" in word:
                    places = [root]
                elif first == "build" and "/" in word:
                    places, word = [build], word.partition("/")[2]
                elif re.fullmatch(r"<?tenon/[\w]+\.(h|hpp)>?", word):
                    places = [root / each / "include" for each in ("sdk", "host", "check", "bindings/arrow")]
                else:
                    continue
                for each in braces(word):
                    if not any(True for place in places for _ in place.glob(each)):
                        yield f"{document}:{number}: there is no {first}/... `{each}`"


def check_front(root):
    """Checks the first page: its length, its figures, which docs/performance.md must have, and the list of pages."""
    if not (root / "docs/README.md").exists():
        return
    page = (root / "README.md").read_text(encoding="utf-8")
    if (lines := page.count("\n")) > 100:
        yield f"README.md: {lines} lines; expected at most 100"
    measured = (root / "docs/performance.md").read_text(encoding="utf-8")
    for row in re.findall(r"^\|.*docs/performance\.md.*$", page, re.MULTILINE):
        for figure in re.findall(r"\d+(?:\.\d+)?(?= (?:MB|ms|times))", row):
            if not re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d.]*\d)", measured):
                yield f"README.md: docs/performance.md has no figure {figure}"
    listed = (root / "docs/README.md").read_text(encoding="utf-8")
    for path in document_paths(root):
        if path.parent.name == "docs" and path.name != "README.md" and f"]({path.name})" not in listed:
            yield f"docs/README.md: {path.name} is not listed"


def check(root, build):
    """All complaints about the documents below root, as texts."""
    complaints = [*rules.check_licences(root), *rules.check_elementary(root), *lengths.check(root), *check_front(root)]
    paths = document_paths(root)
    others = [path.read_text(encoding="utf-8") for path in paths if path.name != "glossary.md"]
    for path in paths:
        blocks, prose = read_blocks(root, path)
        for block in blocks:
            complaints += check_block(root, block)
        complaints += check_links(root, path, prose)
        if path.name == "glossary.md":
            complaints += rules.check_glossary(root, path.relative_to(root), prose, others)
        if path.name == "contributing.md":
            complaints += rules.check_lists(root, path.relative_to(root), prose)
        complaints += check_paths(root, build, path, prose)
    return complaints


def all_blocks(root):
    return [block for path in document_paths(root) for block in read_blocks(root, path)[0] if block.snippet]


