"""Tables of the results of the mutants. SPDX-License-Identifier: Apache-2.0"""
import catalogue

LEAST, LEAST_OF_AREA = 95, 75  # percent that must be noticed


def _share(noticed, total):
    return f"{100 * noticed / total:.0f} %" if total else ""


def _rows(mutants, results, part, names):
    """(name, number, equivalent, noticed, unnoticed, unreached, not run) of each part (area or operator) and of all."""
    rows = []
    for name in [*names, "all"]:
        inside = [each for each in mutants if name in (getattr(each, part), "all") and not each.gone]
        judged = [each for each in inside if not each.equivalent]
        outcomes = [(results.of(each) or {"outcome": "not run"})["outcome"] for each in judged]
        if inside:
            rows.append((name, len(inside), len(inside) - len(judged),
                         *(outcomes.count(outcome) for outcome in ("noticed", "unnoticed", "unreached", "not run"))))
    return rows


def _areas(mutants, results):
    return _rows(mutants, results, "area", sorted({each.area for each in mutants}))


def table(title, rows):
    """The lines of a table, in Markdown."""
    lines = [f"| {title} | mutants | equivalent | noticed | unnoticed | reached by no test | not run | noticed |",
             "|---|---:|---:|---:|---:|---:|---:|---:|"]
    for name, number, equivalent, noticed, unnoticed, unreached, absent in rows:
        shown = f"`{name}`".replace("|", "\\|") if title == "operator" else name
        cells = [shown, number, equivalent, noticed, unnoticed, unreached, absent,
                 _share(noticed, noticed + unnoticed + unreached)]
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return lines


def show(mutants, results, state):
    """Prints all tables and lists; returns whether enough mutants are noticed."""
    mutants = sorted(mutants, key=lambda each: each.id)
    for title, part in (("all", mutants), ("known", [each for each in mutants if not each.drawn])):
        print(f"\n## {title}\n")
        print("\n".join(table("area", _areas(part, results))))
    kinds = sorted({each.kind for each in mutants})
    print("\n" + "\n".join(table("operator", _rows(mutants, results, "kind", kinds))))
    for title, chosen in (
            ("equivalent", [(each, each.equivalent) for each in mutants if each.equivalent]),
            ("gone", [(each, each.gone) for each in mutants if each.gone])):
        print(f"\n## {title}: {len(chosen)}\n")
        for mutant, why in chosen:
            print(f"{mutant.id} {mutant.file}: {catalogue.shown(mutant)}\n    {why}")
    left = [each for each in mutants if not each.equivalent and not each.gone]
    left = [each for each in left if (results.of(each) or {}).get("outcome") in ("unnoticed", "unreached")]
    print(f"\n## not noticed: {len(left)}\n")
    for mutant in left:
        result = results.of(mutant)
        how = f"{mutant.kind}, {result['outcome']}, {result['tests']} tests"
        print(f"{mutant.id} {mutant.file} ({how}): {catalogue.shown(mutant)}")
        if mutant.note:
            print(f"    {mutant.note}")
    old = [each.id for each in mutants if results.of(each) and results.of(each)["state"] != state]
    if old:
        print(f"\n{len(old)} results are of earlier sources or tests")
    enough = True
    for area, _, _, noticed, unnoticed, unreached, absent in _areas(mutants, results):
        total = noticed + unnoticed + unreached
        least = LEAST if area == "all" else LEAST_OF_AREA
        if absent or 100 * noticed < least * total:
            enough = False
            print(f"too few: {area}: {noticed} of {total} noticed, {absent} not run; expected {least} % of all")
    return enough
