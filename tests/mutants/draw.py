"""Draws mutants: in proportion to lines of code, over all kinds, such that each compiles. The same seed and
sources give the same mutants. SPDX-License-Identifier: Apache-2.0"""
import collections
import random

import build
import candidates
import catalogue
import tree

LEAST = 12  # mutants of an area with few lines


def _of_plugin(name):
    return name.startswith(("plugins/", "sdk/"))


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
    def __init__(self, seed, files):
        self._random = random.Random(seed)
        self._data = {name: (catalogue.ROOT / name).read_bytes() for name in files if tree.product(name)}
        self._files = list(self._data)
        self._lines = [candidates.code_lines(self._data[name], _of_plugin(name)) for name in self._files]
        self._candidates = {}
        self._taken = set()  # digests of all that were drawn or known

    @property
    def lines(self):
        """The number of lines of code, by area."""
        counts = collections.Counter()
        for name, lines in zip(self._files, self._lines):
            counts[catalogue.area_of(name)] += lines
        return counts

    def know(self, mutants):
        self._taken.update(mutant.digest for mutant in mutants)

    def _by_kind(self, name):
        if name not in self._candidates:
            by_kind = {}
            for each in candidates.candidates(self._data[name], _of_plugin(name)):
                by_kind.setdefault(each.kind, []).append(each)
            self._candidates[name] = by_kind
        return self._candidates[name]

    def shares(self, count):
        """The area of each of `count` mutants: in proportion to lines, but at least LEAST of each area."""
        lines = self.lines
        shares = {area: max(LEAST, count * lines[area] // lines.total()) for area in lines}
        largest = max(shares, key=shares.get)
        shares[largest] += count - sum(shares.values())
        return [area for area, share in shares.items() for _ in range(share)][:count]

    def draw(self, number, area):
        """Draws a mutant with that number: a file in proportion to its lines, and a kind that is possible in it."""
        weights = [lines * (catalogue.area_of(name) == area) for name, lines in zip(self._files, self._lines)]
        while True:
            name = self._random.choices(self._files, weights)[0]
            by_kind = self._by_kind(name)
            kinds = [kind for kind in candidates.WEIGHTS if kind in by_kind]
            if not kinds:
                continue
            kind = self._random.choices(kinds, [candidates.WEIGHTS[each] for each in kinds])[0]
            found = texts(self._data[name], self._random.choice(by_kind[kind]))
            if found is None:
                continue
            mutant = catalogue.Mutant(number, kind, name, *found)
            if mutant.digest not in self._taken:
                self._taken.add(mutant.digest)
                return mutant


def compiling(mutants, files, jobs, replace):
    """Builds the products with all mutants, and replaces each that does not compile by `replace` of it. Returns the
    mutants of the last build, which all compile."""
    mutants = dict(mutants)
    configured = False
    while True:
        edits, complaints = catalogue.locate(mutants.values())
        if complaints:
            raise SystemExit("\n".join(f"{mutant.id}: {mutant.file}: {why}" for mutant, why in complaints))
        build.copy(files, edits)
        if not configured:
            build.configure()
            configured = True
        printed = build.compile_all(build.product_targets(), jobs, keep_going=True)
        if not printed:
            return mutants
        numbers, others = build.faulty(printed)
        if not numbers:
            raise SystemExit(f"{printed[-6000:]}\nno mutant explains: {' '.join(others) or 'this'}")
        print(f"{len(numbers)} do not compile and are replaced: {' '.join(map(str, sorted(numbers)))}", flush=True)
        for number in numbers:
            mutants[number] = replace(mutants[number])


def draw(seed, count, jobs, folder=catalogue.FOLDER, prefix=""):
    """Draws `count` mutants and writes them to drawn.json in place of the previous ones."""
    print(f"seed {seed}", flush=True)
    files = tree.tracked()
    known = {number: mutant for number, mutant in catalogue.load(folder).items() if number < catalogue.FIRST_DRAWN}
    drawer = Drawer(seed, [name for name in files if name.startswith(prefix)])
    drawer.know(known.values())
    mutants = dict(known)
    for number, area in enumerate(drawer.shares(count), catalogue.FIRST_DRAWN):
        mutants[number] = drawer.draw(number, area)

    def replace(mutant):
        if mutant.id < catalogue.FIRST_DRAWN:
            raise SystemExit(f"the known mutant {mutant.id} of {mutant.file} does not compile")
        return drawer.draw(mutant.id, mutant.area)

    mutants = compiling(mutants, files, jobs, replace)
    catalogue.save([mutant for mutant in mutants.values() if mutant.id >= catalogue.FIRST_DRAWN], folder / "drawn.json")
    print(f"seed {seed}: {count} drawn from {drawer.lines.total()} lines of code in functions: " +
          ", ".join(f"{area} {lines}" for area, lines in drawer.lines.most_common()))
