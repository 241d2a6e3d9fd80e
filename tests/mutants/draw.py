"""Draws mutants: in proportion to lines of code, over all kinds, such that each compiles. The same seed draws the same
from the same sources. SPDX-License-Identifier: Apache-2.0"""
import random

import build
import candidates
import catalogue
import tree


def texts(data, candidate):
    """(old, new): whole lines around the change, as few as stand once in the source."""
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
        self._lines = [candidates.code_lines(self._data[name]) for name in self._files]
        self._candidates = {}
        self._taken = set()  # digests of all that were drawn or known

    def know(self, mutants):
        self._taken.update(mutant.digest for mutant in mutants)

    def _of_kind(self, name, kind):
        if name not in self._candidates:
            by_kind = {}
            for each in candidates.candidates(self._data[name], name.startswith(("plugins/", "sdk/"))):
                by_kind.setdefault(each.kind, []).append(each)
            self._candidates[name] = by_kind
        return self._candidates[name].get(kind, [])

    def draw(self, number):
        """One more mutant, with that number."""
        while True:
            name = self._random.choices(self._files, self._lines)[0]
            kind = self._random.choices(list(candidates.WEIGHTS), candidates.WEIGHTS.values())[0]
            found = self._of_kind(name, kind)
            if not found:
                continue
            found_texts = texts(self._data[name], self._random.choice(found))
            if found_texts is None:
                continue
            mutant = catalogue.Mutant(number, kind, name, *found_texts)
            if mutant.digest not in self._taken:
                self._taken.add(mutant.digest)
                return mutant


def compiling(mutants, files, jobs, replace):
    """Builds the products with all mutants, and has `replace` give another for each that does not compile. Gives the
    mutants that do. The build that is left holds them."""
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
    """Draws `count` mutants into drawn.json, in the place of those that are there."""
    files = tree.tracked()
    known = {number: mutant for number, mutant in catalogue.load(folder).items() if number < catalogue.FIRST_DRAWN}
    drawer = Drawer(seed, [name for name in files if name.startswith(prefix)])
    drawer.know(known.values())
    mutants = dict(known)
    for number in range(catalogue.FIRST_DRAWN, catalogue.FIRST_DRAWN + count):
        mutants[number] = drawer.draw(number)

    def replace(mutant):
        if mutant.id < catalogue.FIRST_DRAWN:
            raise SystemExit(f"the known mutant {mutant.id} of {mutant.file} does not compile")
        return drawer.draw(mutant.id)

    mutants = compiling(mutants, files, jobs, replace)
    catalogue.save([mutant for mutant in mutants.values() if mutant.id >= catalogue.FIRST_DRAWN], folder / "drawn.json")
    print(f"seed {seed}: {count} drawn from {sum(drawer._lines)} lines of code")
