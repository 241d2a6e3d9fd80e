"""Tables of the results of the mutants. SPDX-License-Identifier: Apache-2.0"""
import catalogue

LEAST, LEAST_OF_AREA = 90, 75  # percent that must be noticed


def _share(noticed, total):
    return f"{100 * noticed / total:.0f} %" if total else ""


def _rows(mutants, results):
    """(area, number, equivalent, noticed, unnoticed, unreached, not run) of each area and of all."""
    rows = []
    for area in [area for _, area in catalogue.AREAS] + ["all"]:
        inside = [each for each in mutants if area in (each.area, "all") and not each.gone]
        judged = [each for each in inside if not each.equivalent]
        outcomes = [(results.of(each) or {"outcome": "not run"})["outcome"] for each in judged]
        if inside:
            rows.append((area, len(inside), len(inside) - len(judged),
                         *(outcomes.count(name) for name in ("noticed", "unnoticed", "unreached", "not run"))))
    return rows


def table(mutants, results):
    """The lines of the table, in Markdown."""
    lines = ["| area | mutants | equivalent | noticed | unnoticed | reached by no test | not run | noticed |",
             "|---|---:|---:|---:|---:|---:|---:|---:|"]
    for area, number, equivalent, noticed, unnoticed, unreached, absent in _rows(mutants, results):
        cells = [area, number, equivalent, noticed, unnoticed, unreached, absent,
                 _share(noticed, noticed + unnoticed + unreached)]
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return lines


def _shown(mutant):
    """The words that change, with a few around them."""
    texts = [list(catalogue.TOKEN.finditer(text)) for text in (mutant.old, mutant.new)]
    old, new = ([match.group() for match in text] for text in texts)
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    tail = 0
    while tail < min(len(old), len(new)) - same and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    parts = []
    for text, matches in zip((mutant.old, mutant.new), texts):
        shown = matches[max(same - 8, 0):len(matches) - max(tail - 8, 0)]
        parts.append(" ".join(text[shown[0].start():shown[-1].end()].split()) if shown else "")
    return "  =>  ".join(parts)


def show(mutants, results, state):
    """Prints all tables and lists; returns whether enough mutants are noticed."""
    mutants = sorted(mutants, key=lambda each: each.id)
    for title, part in (("all", mutants), ("known", [each for each in mutants if each.id < catalogue.FIRST_DRAWN])):
        print(f"\n## {title}\n")
        print("\n".join(table(part, results)))
    kinds = sorted({each.kind for each in mutants})
    print("\nkinds:", ", ".join(f"{kind} {sum(each.kind == kind for each in mutants)}" for kind in kinds))
    for title, chosen in (
            ("equivalent", [(each, each.equivalent) for each in mutants if each.equivalent]),
            ("gone", [(each, each.gone) for each in mutants if each.gone])):
        print(f"\n## {title}: {len(chosen)}\n")
        for mutant, why in chosen:
            print(f"{mutant.id} {mutant.file}: {_shown(mutant)}\n    {why}")
    left = [each for each in mutants if not each.equivalent and not each.gone]
    left = [each for each in left if (results.of(each) or {}).get("outcome") in ("unnoticed", "unreached")]
    print(f"\n## not noticed: {len(left)}\n")
    for mutant in left:
        result = results.of(mutant)
        how = f"{mutant.kind}, {result['outcome']}, {result['tests']} tests"
        print(f"{mutant.id} {mutant.file} ({how}): {_shown(mutant)}")
        if mutant.note:
            print(f"    {mutant.note}")
    old = [each.id for each in mutants if results.of(each) and results.of(each)["state"] != state]
    if old:
        print(f"\n{len(old)} results are of earlier sources or tests")
    enough = True
    for area, _, _, noticed, unnoticed, unreached, absent in _rows(mutants, results):
        total = noticed + unnoticed + unreached
        least = LEAST if area == "all" else LEAST_OF_AREA
        if absent or 100 * noticed < least * total:
            enough = False
            print(f"too few: {area}: {noticed} of {total} noticed, {absent} not run; expected {least} % of all")
    return enough
