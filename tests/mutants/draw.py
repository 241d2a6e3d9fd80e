"""Draws mutants, of each area in proportion to its lines, of each operator that an area has the same number, such that
each compiles. The same seed and sources give the same mutants. SPDX-License-Identifier: Apache-2.0"""
import collections
import random
import sys

import build
import candidates
import candidates_python
import catalogue
import tree

LEAST = 12  # mutants of an area with few lines


def changes(name, data):
    """All candidates of a source."""
    if name.endswith(".py"):
        return candidates_python.candidates(data)
    return candidates.candidates(data, of_plugin=name.startswith(("plugins/", "sdk/")))


def texts(data, candidate):
    """(old, new): the fewest whole lines around the change that occur once in the source; None if there are none."""
    begin = data.rfind(b"\n", 0, candidate.begin) + 1
    end = data.find(b"\n", candidate.end)
    end = len(data) if end < 0 else end
    source = catalogue.Source(data)
    while True:
        old = data[begin:end]
        stripped = begin + len(old) - len(old.lstrip())
        old = data[stripped:end].rstrip()
        if len(source.places(old.decode())) == 1:
            break
        if begin == 0:
            return None
        begin = data.rfind(b"\n", 0, begin - 1) + 1
        following = data.find(b"\n", end + 1)
        end = len(data) if following < 0 else following
    new = data[stripped:candidate.begin] + candidate.text + data[candidate.end:stripped + len(old)]
    return old.decode(), new.decode()


class Drawer:
    """Draws from `files`; with `lines` ({file: numbers of lines}) from changes of these lines alone."""

    def __init__(self, seed, files, lines=None):
        self._random = random.Random(seed)
        self._data = {name: (catalogue.ROOT / name).read_bytes() for name in files if tree.product(name)}
        self._left = collections.defaultdict(lambda: collections.defaultdict(list))  # {area: {kind: changes}}
        self._lines = collections.Counter()  # that can be changed, of each area
        self._taken = set()  # digests of all that were drawn or known
        self.found, self.drawn, self.replaced = collections.Counter(), collections.Counter(), collections.Counter()
        for name, data in self._data.items():
            area, changed = catalogue.area_of(name), set()
            for each in changes(name, data):
                first = data.count(b"\n", 0, each.begin) + 1
                covered = range(first, first + data.count(b"\n", each.begin, each.end) + 1)
                if lines is None or not lines.get(name, set()).isdisjoint(covered):
                    changed.add(first)
                    self.found[each.kind] += 1
                    self._left[area][each.kind].append((name, each))
            self._lines[area] += len(changed)
        for by_kind in self._left.values():
            for left in by_kind.values():
                self._random.shuffle(left)

    def know(self, mutants):
        self._taken.update(mutant.digest for mutant in mutants)

    def _shares(self, count):
        """The number of mutants of each area: in proportion to lines, but not few."""
        areas = sorted(area for area in self._lines if self._lines[area])
        least = min(LEAST, count // max(2 * len(areas), 1))
        shares = {area: max(least, count * self._lines[area] // self._lines.total()) for area in areas}
        if shares:
            shares[max(shares, key=shares.get)] += count - sum(shares.values())
        return shares

    def plan(self, count):
        """(area, kind) of each of at most `count` mutants: within an area each kind equally often."""
        planned = []
        for area, share in self._shares(count).items():
            left = {kind: len(self._left[area][kind]) for kind in candidates.KINDS if self._left[area][kind]}
            while share > 0 and left:
                kinds = self._random.sample(list(left), len(left))[:share]
                planned += [(area, kind) for kind in kinds]
                share -= len(kinds)
                left = {kind: number - (kind in kinds) for kind, number in left.items() if number > (kind in kinds)}
        return planned

    def draw(self, number, area, kind):
        """A mutant with that number; of another kind if none is left, and None if there is no other."""
        while True:
            if not self._left[area][kind]:
                kind = next((other for other in candidates.KINDS if self._left[area][other]), None)
                if kind is None:
                    return None
            name, candidate = self._left[area][kind].pop()
            found = texts(self._data[name], candidate)
            if found is None or catalogue.words(found[0]) == catalogue.words(found[1]):
                continue
            mutant = catalogue.Mutant(number, kind, name, *found)
            if mutant.digest not in self._taken:
                self._taken.add(mutant.digest)
                self.drawn[kind] += 1
                return mutant

    def replace(self, mutant):
        """Another mutant in place of one that does not compile."""
        self.replaced[mutant.kind] += 1
        self.drawn[mutant.kind] -= 1
        return self.draw(mutant.id, mutant.area, mutant.kind)

    def table(self):
        """Lines of text: of each operator how many changes there are, how many were drawn, how many did not compile."""
        total = max(self.drawn.total(), 1)
        return [f"{kind:9} {self.found[kind]:6} candidates, {self.drawn[kind]:4} drawn "
                f"({100 * self.drawn[kind] / total:.0f} %), {self.replaced[kind]:3} did not compile"
                for kind in candidates.KINDS if self.found[kind]]

    def broken(self):
        """Operators whose changes do not compile, as a fault of the weaver would make them."""
        return [kind for kind, number in self.replaced.items()
                if kind not in ("swap", "return") and number >= 5 and number > self.drawn[kind]]


def compiling(mutants, files, jobs, replace, targets=tuple):
    """Builds the products and `targets()` with all mutants, and replaces each that does not compile by `replace` of it,
    or leaves it out where that is None. Returns the mutants of the last build, which all compile."""
    mutants = dict(mutants)
    configured = False
    while True:
        edits, complaints = catalogue.locate(mutants.values())
        bad = {mutant.id for mutant, _ in complaints}  # of Python
        if not bad:
            build.copy(files, edits)
            if not configured:
                build.configure()
                configured = True
            printed = build.compile_all([*build.product_targets(), *targets()], jobs, keep_going=True)
            if not printed:
                return mutants
            bad, others = build.faulty(printed)
            if not bad:
                raise SystemExit(f"{printed[-6000:]}\nno mutant explains: {' '.join(others) or 'this'}")
        print(f"{len(bad)} do not compile and are replaced: {' '.join(map(str, sorted(bad)))}", flush=True)
        for number in bad:
            other = replace(mutants.pop(number))
            if other:
                mutants[number] = other


def draw(seed, count, jobs, folder=catalogue.FOLDER, prefixes=(), add=False):
    """Draws `count` mutants and writes them to drawn.json, in place of the previous ones or, with `add`, after them."""
    print(f"seed {seed}", flush=True)
    files = tree.tracked()
    old = catalogue.load(folder)
    kept = [mutant for mutant in old.values() if add and mutant.drawn]
    taken = {mutant.id for mutant in old.values() if not mutant.drawn or add}
    free = (number for number in range(catalogue.FIRST_DRAWN, catalogue.MOST) if number not in taken)
    drawer = Drawer(seed, [name for name in files if name.startswith(tuple(prefixes) or "")])
    drawer.know(old.values())
    fresh = [drawer.draw(next(free), *planned) for planned in drawer.plan(count)]

    mutants = compiling({mutant.id: mutant for mutant in fresh if mutant}, files, jobs, drawer.replace)
    catalogue.save([*kept, *mutants.values()], folder / "drawn.json")
    print("\n".join([*drawer.table(), f"seed {seed}: {drawer.drawn.total()} drawn"]))
    if drawer.broken():
        sys.exit(f"changes of these operators do not compile: {' '.join(drawer.broken())}")
