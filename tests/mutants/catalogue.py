"""Loads the mutants from known.json and drawn.json in this folder, and locates their texts in the sources.
A mutant is {id, kind, file, old, new}: `old` occurs exactly once in `file`, compared without regard to white space, and
is replaced by `new`. It may have "equivalent" (why no test can notice it), "gone" (why the code was removed) and "as":
"expression" (the old text is a whole expression outside of every function body, such as an initialiser).
SPDX-License-Identifier: Apache-2.0
"""
import dataclasses
import hashlib
import json
import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
FILES = ("known.json", "drawn.json")
MOST = 8192  # numbers are below this, as TENON_MUTANTS in mutants.h
FIRST_DRAWN = 201  # numbers of drawn mutants, but those of known ones

AREAS = (  # of a path: the first prefix that matches, or else its room
    ("host/cli/", "cli"), ("plugins/devices/cuda/", "cuda"), ("plugins/devices/", "devices"),
    ("plugins/layers/", "layers"), ("plugins/readers/", "readers"), ("plugins/updaters/", "updaters"),
    ("sdk/templates/", "templates"), ("bindings/python/src/", "bindings"), ("bindings/python/tenon/", "python"))

# Operators are one word each: of two words, a change of the first would leave white space between them.
TOKEN = re.compile(r"""[A-Za-z_]\w*|\d[\w'.]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.[0-9a-fA-F]*)'"""
                   r"""|<=>|<<=|>>=|//=|[-+*/%&|^=!<>]=|&&|\|\||<<|\+\+|--|->|//|::|\S""")


def area_of(path):
    return next((area for prefix, area in AREAS if path.startswith(prefix)), path.split("/")[0])


@dataclasses.dataclass
class Mutant:
    id: int
    kind: str
    file: str
    old: str
    new: str
    note: str = ""
    equivalent: str = ""
    gone: str = ""
    form: str = ""  # "expression" or nothing
    drawn: bool = False

    @property
    def area(self):
        return area_of(self.file)

    @property
    def digest(self):
        """A hash of the change without its number, white space and file, so that results survive a move."""
        parts = ["\0".join(words(text)) for text in (self.old, self.new)]
        return hashlib.sha256("\1".join(parts).encode()).hexdigest()[:16]

    def entry(self):
        entry = dataclasses.asdict(self)
        entry["as"] = entry.pop("form")
        del entry["drawn"]
        return {key: value for key, value in entry.items() if value != "" or key == "new"}


@dataclasses.dataclass
class Edit:
    """The smallest change of a source, in bytes: source[begin:end] becomes text. [whole_begin, whole_end) is `old`."""
    mutant: Mutant
    begin: int
    end: int
    text: bytes
    whole_begin: int
    whole_end: int


def load(folder=FOLDER):
    """All mutants, by number."""
    mutants = {}
    for name in FILES:
        path = folder / name
        if not path.exists():
            continue
        for entry in json.loads(path.read_text(encoding="utf-8")):
            mutant = Mutant(form=entry.pop("as", ""), drawn=name == "drawn.json", **entry)
            if not 0 < mutant.id < MOST or mutant.id in mutants:
                raise SystemExit(f"{path}: the number {mutant.id} comes twice or is not from 1 to {MOST - 1}")
            if words(mutant.old) == words(mutant.new):
                raise SystemExit(f"{path}: {mutant.id} changes nothing")
            mutants[mutant.id] = mutant
    return mutants


def save(mutants, path):
    """Writes one mutant per line, so that a diff of the file shows mutants."""
    lines = [json.dumps(mutant.entry(), ensure_ascii=False) for mutant in sorted(mutants, key=lambda each: each.id)]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def words(text):
    return TOKEN.findall(text)


def difference(old, new):
    """(how many words the lists have in common at their begin, at their end)."""
    shorter = min(len(old), len(new))
    same = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    tail = next((at for at in range(shorter - same) if old[-1 - at] != new[-1 - at]), shorter - same)
    return same, tail


class Source:
    """A source in which texts are found without regard to white space."""

    def __init__(self, data):
        self.data = data
        text = data.decode("utf-8", "surrogateescape")
        self.starts, self.ends = [], []
        parts = ["\0"]
        self.at_word = {}  # place in the joined words: number of the word that begins there
        length, byte, place = 1, 0, 0
        for number, match in enumerate(TOKEN.finditer(text)):
            byte += len(text[place:match.start()].encode("utf-8", "surrogateescape"))
            word = match.group()
            self.starts.append(byte)
            byte += len(word.encode("utf-8", "surrogateescape"))
            self.ends.append(byte)
            place = match.end()
            self.at_word[length] = number
            parts += [word, "\0"]
            length += len(word) + 1
        self.joined = "".join(parts)

    def places(self, text):
        """The number of the first word of `text`, for each time that it occurs here."""
        wanted = "\0" + "\0".join(words(text)) + "\0"
        found, at = [], self.joined.find(wanted)
        while at >= 0:
            found.append(self.at_word[at + 1])
            at = self.joined.find(wanted, at + 1)
        return found

    def edit(self, mutant):
        """The change as bytes of this source, in which the text must occur once."""
        first = self.places(mutant.old)[0]
        old, new = words(mutant.old), list(TOKEN.finditer(mutant.new))
        same, tail = difference(old, [match.group() for match in new])
        if mutant.file.endswith(".py"):  # where white space counts
            same = tail = 0
        last = first + len(old) - tail  # the first word after the change
        begin = self.starts[first + same] if first + same < len(self.starts) else len(self.data)
        end = self.ends[last - 1] if last > first + same else begin
        text = mutant.new[new[same].start():new[len(new) - tail - 1].end()] if same < len(new) - tail else ""
        if end == begin:
            text += " "
        return Edit(mutant, begin, end, text.encode(), self.starts[first], self.ends[first + len(old) - 1])


def shown(mutant):
    """The words that change, with a few around them."""
    texts = [list(TOKEN.finditer(text)) for text in (mutant.old, mutant.new)]
    old, new = ([match.group() for match in text] for text in texts)
    same, tail = difference(old, new)
    parts = []
    for text, matches in zip((mutant.old, mutant.new), texts, strict=True):
        shown = matches[max(same - 8, 0):len(matches) - max(tail - 8, 0)]
        parts.append(" ".join(text[shown[0].start():shown[-1].end()].split()) if shown else "")
    return "  =>  ".join(parts)


def line_of(edit, root=ROOT):
    """The number of the line in which a change begins."""
    return (root / edit.mutant.file).read_bytes().count(b"\n", 0, edit.begin) + 1


def changed(edit, root=ROOT):
    """The file with the change."""
    data = (root / edit.mutant.file).read_bytes()
    return data[:edit.begin] + edit.text + data[edit.end:]


def is_python(edit, root=ROOT):
    """Whether a changed module can be compiled; true for other languages, which are built."""
    if edit.mutant.file.endswith(".py"):
        try:
            compile(changed(edit, root), edit.mutant.file, "exec")
        except SyntaxError:
            return False
    return True


def digest(mutants):
    """A hash of all mutants with their numbers."""
    whole = "".join(f"{mutant.id}:{mutant.digest};" for mutant in sorted(mutants, key=lambda each: each.id))
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def locate(mutants, root=ROOT):
    """({file: [edit]}, complaints): a text that does not occur exactly once in its file is a complaint."""
    edits, complaints, sources = {}, [], {}
    for mutant in mutants:
        if mutant.gone:
            continue
        if mutant.file not in sources:
            path = root / mutant.file
            sources[mutant.file] = Source(path.read_bytes()) if path.exists() else None
        source = sources[mutant.file]
        count = len(source.places(mutant.old)) if source else 0
        why = "no such file" if source is None else "not found" if count == 0 else f"found {count} times"
        edit = source.edit(mutant) if count == 1 else None
        if edit and is_python(edit, root):
            edits.setdefault(mutant.file, []).append(edit)
        else:
            complaints.append((mutant, "is not Python when it is changed" if edit else why))
    return edits, complaints


def elsewhere(mutant, paths, root=ROOT):
    """Those of `paths` in which the text of a mutant occurs exactly once."""
    first = words(mutant.old)[0].encode()
    found = []
    for path in paths:
        data = (root / path).read_bytes()
        if first in data and len(Source(data).places(mutant.old)) == 1:
            found.append(path)
    return found
