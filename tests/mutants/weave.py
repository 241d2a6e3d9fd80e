"""Weaves mutants into a source, so that one build holds them all and a number selects one at run time.

The innermost block around a change is written once for each of its mutants and once unchanged:
  { if (tenon_mutant(7)) { <with the change> } else { <unchanged> } }
so that a change that compiles alone compiles here too: of statements, declarations, conditions, returns. The unchanged
block contains the mutants of blocks within it, and tenon_reached(7) before the statement that mutant 7 changes. A
mutant of form "expression" becomes (tenon_mutant_here(7) ? (new) : (old)). SPDX-License-Identifier: Apache-2.0
"""
import bisect
import re

import syntax
from catalogue import FOLDER


class Problem(Exception):
    """A mutant that cannot be woven: problem.mutant, and why."""

    def __init__(self, mutant, why):
        super().__init__(f"{mutant.id} in {mutant.file}: {why}")
        self.mutant = mutant


class _Block:
    def __init__(self, begin, end):
        self.begin, self.end = begin, end  # between the braces
        self.edits = []


class _Weaver:
    def __init__(self, data, edits):
        self.data = data
        self.blocks, self.marks, self.expressions = {}, {}, []
        root = syntax.parse(data)
        for edit in sorted(edits, key=lambda each: each.mutant.id):
            if edit.mutant.form == "expression":
                self.expressions.append(edit)
            else:
                self._place(root, edit)
        self.sites = [(block.begin, block.end, block) for block in self.blocks.values()]
        self.sites += [(edit.whole_begin, edit.whole_end, edit) for edit in self.expressions]
        self.sites.sort(key=lambda site: (site[0], -site[1]))

    def _place(self, root, edit):
        node = syntax.block_around(root, edit.begin, edit.end)
        if node is None:
            raise Problem(edit.mutant, "no function body is around the change")
        inner = (node.start_byte + 1, node.end_byte - 1)
        self.blocks.setdefault(inner, _Block(*inner)).edits.append(edit)
        statement = syntax.statement_around(root, edit.begin, edit.end)
        within = statement is not None and inner[0] <= statement.start_byte and statement.end_byte <= inner[1]
        self.marks.setdefault(statement.start_byte if within else inner[0], []).append(edit.mutant.id)

    def render(self):
        self.places = sorted(self.marks)
        return self._render(0, len(self.data), 0)

    def _render(self, begin, end, first):
        """The source of [begin, end) with all sites from number `first` on that lie in it."""
        out, at = [], begin
        number = first
        while number < len(self.sites):
            site_begin, site_end, site = self.sites[number]
            if site_begin >= end:
                break
            number += 1
            if site_begin < at:
                continue  # inside a site that is already written
            out.append(self._plain(at, site_begin))
            out.append(self._block(site, number) if isinstance(site, _Block) else self._expression(site))
            at = site_end
        out.append(self._plain(at, end))
        return b"".join(out)

    def _plain(self, begin, end):
        """The source of [begin, end), with its marks."""
        out, at = [], begin
        for place in self.places[bisect.bisect_left(self.places, begin):bisect.bisect_left(self.places, end)]:
            calls = "".join(f"tenon_reached({number}); " for number in self.marks[place])
            out += [self.data[at:place], calls.encode(), b"\n"]  # a line of the preprocessor may follow
            at = place
        return b"".join(out) + self.data[at:end]

    def _block(self, block, number):
        out = []
        for edit in block.edits:
            changed = self.data[block.begin:edit.begin] + edit.text + self.data[edit.end:block.end]
            out.append(b"\n/*mutant %d*/ if (tenon_mutant(%d)) {%s\n/*end*/ } else" %
                       (edit.mutant.id, edit.mutant.id, changed))
        inside = self._render(block.begin, block.end, number)
        return b"".join(out) + b" {" + inside + b"\n}\n"

    def _expression(self, edit):
        whole = self.data[edit.whole_begin:edit.whole_end]
        number = edit.mutant.id
        return (b"\n/*mutant %d*/ (tenon_mutant_here(%d) ? (%s) : (%s))\n/*end*/ " %
                (number, number, edit.mutant.new.encode(), whole))


def weave(data, edits):
    """The source with all edits woven in."""
    header = f'#include "{FOLDER / "mutants.h"}"\n'.encode()
    return header + _Weaver(data, edits).render()


def mutant_at(woven, line, before=False):
    """The number of the mutant whose changed text contains this line of a woven source; with `before`, of the last
    mutant that begins before it. None if there is none."""
    number = None
    for text in woven.decode("utf-8", "replace").split("\n")[:line]:
        if text.startswith("/*end*/") and not before:
            number = None
        found = re.match(r"/\*mutant (\d+)\*/", text)
        if found:
            number = int(found.group(1))
    return number
