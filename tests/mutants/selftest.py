"""Tests of this folder, in seconds: a small program with all its mutants woven in must behave, for each number, as the
program with that change made by hand, and every change must compile; so must changes of Python; and what runs the tests
must give them what ctest gives them. SPDX-License-Identifier: Apache-2.0"""
import ast
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import build
import candidates
import candidates_python
import catalogue
import draw
import hunt
import results
import suite
import tree
import weave

# Has every kind of change, in every construct that a change may be in. Each change of it compiles.
PROGRAM = r"""extern "C" int printf(const char*, ...);
#define SAY(a, b) printf("%d %d\n", (a), (b))
// A comment's quote, and 'another'.
constexpr int doubled(int x) {
  if (x > 100) return 0;
  return x * 2 + 1;
}
static_assert(doubled(2) >= 0, "evaluated by the compiler");
const int kTable[] = {doubled(3), 7};
enum Kind { kOne, kTwo };
struct Counter {
  explicit Counter(int from) : at(from + 1) {}
  int next() { return at++; }
  int at;
};
int chosen(int kind, int x) {
  switch (kind) {
    case kOne:
      x -= 3;
      break;
    case kTwo: {
      x += 4;
      return x;
    }
  }
  return x - 1;
}
template <class T>
T min(T a, T b) { return a < b ? a : b; }
template <class T>
T max(T a, T b) { return a >= b ? a : b; }
template <class T>
struct List {
  T at(int i) const { return all[i & 7]; }
  T all[16];
};
template <class T, int N>
T largest(const List<T>& list) {
  T most = list.at(0);
  for (int i = 1; i < N; ++i)
    if (list.at(i) > most) most = list.at(i);
    else if (list.at(i) == most) most = list.at(i);
  if constexpr (N <= 3) most = max<T>(most, 2);
  return most;
}
bool is_between(int from, int x, int to) {
  const bool inside = from <= x && x < to;
  if (!inside || x != 4) return inside;
  return false;
}
int sums(const List<int>& list) {
  int sum = 3;
  for (int i = 0; i < list.at(7); i++) {
    if (list.at(i) % 7 == 6) continue;
    sum += list.at(i) / 2 * (i + 1);
  }
  while (true) {
    --sum;
    if (sum <= 5 || sum >= 9) break;
  }
  return -sum;
}
int main(int count, char**) {
  Counter counter(count);
  const auto twice = [&](int x) { counter.next(); return x + x; };
#ifdef __cplusplus
  SAY(doubled(count), kTable[1]);
#endif
  SAY(chosen(kOne, 5), chosen(kTwo, 5));
  const List<int> all = {{3, 9, 4, 1, 5, 2, 11, 3}}, more = {{2, 6, 1}};
  SAY((largest<int, 6>(all)), (largest<int, 3>(more)));
  SAY(twice(4), counter.next());
  for (int x = 1; x <= 7; ++x) SAY(is_between(2, x, 5), min(x, 5));
  SAY(sums(all), sums(more));
  if (count > 5) printf("many\n");
  return 0;
}
"""

MODULE = '''"""A module's quote, and "another"."""
LIMIT = 3


def chosen(values, at=0, *, wide: int = 1):
    """Chooses."""
    if not values or at < 0:
        return None
    found = max(values[at] + 1, -at)
    for number, value in enumerate(
            values):
        if value == at and number != 2: continue
        if value is None or number in (1, 2):
            break
        found += value // 2 * wide - number / 4 % 3
    try:
        values.insert(at, found)
    except ValueError:
        raise ValueError("at < 0 and more")
    return found if found >= LIMIT or found <= -LIMIT or found > at else True
'''


def _compiled(folder, name, text):
    path = pathlib.Path(folder, name + ".cpp")
    path.write_bytes(text)
    done = subprocess.run(["c++", "-std=c++20", "-w", "-o", str(path.with_suffix("")), str(path)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return str(path.with_suffix("")) if done.returncode == 0 else None


def _said(program, **environment):
    try:
        done = subprocess.run([program], env={**os.environ, **environment}, capture_output=True, timeout=5, check=False)
    except subprocess.TimeoutExpired:
        return "hangs"
    return done.returncode, done.stdout


def _mutants(name, data, found):
    mutants = []
    for each in found:
        texts = draw.texts(data, each)
        if texts:
            mutants.append(catalogue.Mutant(len(mutants) + 1, each.kind, name, *texts))
    return mutants


def _is_as_by_hand(data, candidate, edit):
    """Whether an edit changes the text as the candidate does, but for white space that separates no operators."""
    begin, end = min(candidate.begin, edit.begin), max(candidate.end, edit.end) + 80
    texts = [data[begin:candidate.begin] + candidate.text + data[candidate.end:end],
             data[begin:edit.begin] + edit.text + data[edit.end:end]]
    sign = rb"[-+*/%&|^=!<>]"
    joined = [re.sub(rb"(?<!" + sign + rb")\s+|\s+(?!" + sign + rb")", b"", text) for text in texts]
    return joined[0] == joined[1]


def program_fails():
    """Failures of the weaver."""
    data = PROGRAM.encode()
    source = catalogue.Source(data)
    mutants = _mutants("program.cpp", data, candidates.candidates(data))
    outside = catalogue.Mutant(len(mutants) + 1, "known", "program.cpp", "from + 1", "from + 2", form="expression")
    mutants.append(outside)
    absent = set(candidates.KINDS) - {mutant.kind for mutant in mutants}
    failures, compared = [f"the program has no change of the kind {kind}" for kind in sorted(absent)], 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        edits = [source.edit(mutant) for mutant in mutants]
        changed = [data[:edit.begin] + edit.text + data[edit.end:] for edit in edits]
        by_hand = list(pool.map(lambda part: _compiled(folder, f"changed{part[0]}", part[1]), enumerate(changed)))
        failures += [f"does not compile: {catalogue.shown(mutant)}"
                     for mutant, hand in zip(mutants, by_hand, strict=True) if not hand]
        woven = _compiled(folder, "woven", weave.weave(data, [edits[at] for at, hand in enumerate(by_hand) if hand]))
        if not woven:
            return [*failures, "the woven program does not compile"]
        marks = pathlib.Path(folder, "marks")
        marks.write_bytes(bytes(catalogue.MOST))
        plain = _said(_compiled(folder, "plain", data))
        if _said(woven, TENON_MUTANTS_REACHED=str(marks)) != plain:
            failures.append("without a mutant the output differs")
        reached = marks.read_bytes()
        says = list(pool.map(lambda mutant: _said(woven, TENON_MUTANT=str(mutant.id)), mutants))
        for mutant, hand, said in zip(mutants, by_hand, says, strict=True):
            if hand and said != _said(hand):
                failures.append(f"differs from the change by hand: {mutant.kind}: {catalogue.shown(mutant)}")
            if said != plain and not reached[mutant.id]:
                failures.append(f"changes the output, but is not marked as reached: {catalogue.shown(mutant)}")
            compared += said != plain
    print(f"{len(mutants)} mutants of C++, {compared} of them change the output")
    return failures + (["too few change the output"] if compared < 90 else [])


def python_fails():
    data = MODULE.encode()
    source = catalogue.Source(data)
    plain = ast.dump(ast.parse(data))
    mutants = _mutants("module.py", data, candidates_python.candidates(data))
    absent = set(candidates.KINDS) - {mutant.kind for mutant in mutants} - {"++"}
    failures = [f"the module has no change of the kind {kind}" for kind in sorted(absent)]
    for mutant in mutants:
        edit = source.edit(mutant)
        try:
            if ast.dump(ast.parse(data[:edit.begin] + edit.text + data[edit.end:])) == plain:
                failures.append(f"changes nothing: {catalogue.shown(mutant)}")
        except SyntaxError:
            failures.append(f"is not Python: {catalogue.shown(mutant)}")
    return failures


def texts_fail():
    """Failures of texts of the sources themselves: each change, found again by its text, is the change by hand."""
    chosen = random.Random(1)
    names = [name for name in tree.tracked() if tree.product(name)]
    failures = []
    for name in chosen.sample(names, 20):
        data = (catalogue.ROOT / name).read_bytes()
        source, found = catalogue.Source(data), draw.changes(name, data)
        for each in chosen.sample(found, min(12, len(found))):
            texts = draw.texts(data, each)
            edit = texts and source.edit(catalogue.Mutant(1, each.kind, name, *texts))
            if edit and not (_is_as_by_hand(data, each, edit) and catalogue.is_python(edit)):
                failures.append(f"{name}: {texts[0]!r} -> {texts[1]!r} is applied differently")
    spaced = catalogue.Source(b"int f() {\n  return g(1,\n           2);  // isn't\n}\n")
    if len(spaced.places("return g(1, 2);")) != 1 or spaced.places("return g(2"):
        failures.append("texts are not found without regard to white space")
    return failures


def draw_fails():
    """Failures of the choice: each operator of an area equally often, the same for a seed, of some lines alone."""
    names = [name for name in tree.tracked() if name.startswith("plugins/updaters/")]
    drawers = [draw.Drawer(7, names) for _ in range(2)]
    plans = [drawer.plan(40) for drawer in drawers]
    drawn = [[drawer.draw(number, *each) for number, each in enumerate(plan, 1)]
             for drawer, plan in zip(drawers, plans, strict=True)]
    counts = collections.Counter(mutant.kind for mutant in drawn[0])
    failures = [] if drawn[0] == drawn[1] and len(drawn[0]) == 40 else ["a seed does not repeat what it drew"]
    if any(counts[kind] not in (1, 2, 3) for kind in drawers[0].found if drawers[0].found[kind] > 3):
        failures.append(f"operators are not drawn equally often: {counts}")
    with tempfile.TemporaryDirectory() as folder:
        def git(*words):
            command = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b", *words]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        path = pathlib.Path(folder, "core", "a.cpp")
        path.parent.mkdir()
        path.write_text("one\ntwo\nthree\nfour\n", encoding="utf-8")
        git("init", "-q")
        git("add", ".")
        git("commit", "-q", "-m", "a")
        path.write_text("one\n2\n2\nthree\nfour\nfive\n", encoding="utf-8")
        changed = tree.changed_lines("HEAD", folder)
        if changed != {"core/a.cpp": {2, 3, 6}}:
            failures.append(f"changed lines are {changed}")
    return failures


def _test(command, environment=None):
    return suite.Test("core/a_test", "core/a_test", "core/a_test", "", command, "/", environment or {}, False)


def suite_fails():
    failures = []
    enters = "import os; os.getuid() or os.setuid(65534); open(os.path.join(os.environ['TMPDIR'], 'x'), 'w')"
    if not suite.execute([sys.executable, "-c", enters], "/", 20, {}).passed:
        failures.append("another user cannot write to the temporary folder of a test")
    reserves = "import mmap; mmap.mmap(-1, 1 << 40, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 0)"  # as the device far does
    if not suite.execute([sys.executable, "-c", reserves], "/", 20, {}).passed:
        failures.append("a test cannot reserve addresses")
    if suite.execute([sys.executable, "-c", f"bytearray({suite.MOST_MEMORY} + 1)"], "/", 20, {}).passed:
        failures.append("a test can take all memory")
    properties = {"ENVIRONMENT": ["A=1;2", "B="],
                  "ENVIRONMENT_MODIFICATION": ["P=path_list_prepend:/x", "P=path_list_prepend:/y"]}
    if suite.environment_of(properties, {"P": "/z"}) != {"A": "1;2", "B": "", "P": "/y:/x:/z"}:
        failures.append("the environment of a test is not that of ctest")
    for path, file in (("plugins/devices/cpu/primitives/gather_gemm.cpp", "devices/gather_gemm_test"),
                       ("host/machine/shards/shard_sum.cpp", "host/machine/shards_test"),
                       ("plugins/devices/cuda/runtime/cache.cpp", "devices/cuda_cache_test"),
                       ("host/plugins/set/library_search.cpp", "host/plugins/set/libraries_test"),
                       ("host/cli/plugins/verb_key.cpp", "host/cli/plugins/set_test"),
                       ("sdk/manifest/manifest.c", "sdk/manifest/refusals"),
                       ("bindings/python/tenon/trainer.py", "bindings/python/test_training"),
                       ("check/watch/guard.cpp", "check/nonconforming_test"),
                       ("bindings/python/tenon/onnx/_shapes.py", "bindings/python/test_onnx"),
                       ("bindings/python/src/kernels.cpp", "bindings/python/test_kernels"),
                       ("sdk/templates/layer/c/my_plugin.c", "sdk/projects")):
        near = suite.nearest(path, build.test_files(), 8)
        if file not in near:
            failures.append(f"{file} is not among the nearest tests of {path}: {near}")
    return failures


def hunt_fails():
    """Failures with a module of Python: its tests see the package with one changed file, and the other files."""
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        build.BUILD = pathlib.Path(folder)
        package = build.BUILD / "python" / "tenon"
        package.mkdir(parents=True)
        for name in ("error.py", "event.py"):
            (package / name).symlink_to(catalogue.ROOT / "bindings/python/tenon" / name)
        line = "self.component = component"
        mutant = catalogue.Mutant(1, "drop", "bindings/python/tenon/error.py", line, "pass")
        edit = catalogue.locate([mutant])[0][mutant.file][0]
        script = f'test -s "$PYTHONPATH/tenon/event.py" && grep -q "{line}" "$PYTHONPATH/tenon/error.py"'
        tests = [_test(["sh", "-c", script], {"PYTHONPATH": str(package.parent)}), _test(["false"])]
        for number, (some, until, outcome) in enumerate(((tests, None, "noticed"), (tests[1:], None, "unreached"),
                                                         (tests, 0, "not run"))):
            known = results.Results(pathlib.Path(folder, f"results{number}"))
            left = hunt.Hunt(some, {1: edit}, known, 60, until).run([mutant], "", 1)
            found = next((each for each, of in left.items() if of), "noticed")
            if found != outcome or (known.of(mutant) or {"outcome": "not run"})["outcome"] != outcome:
                failures.append(f"a mutant of Python is {found}, not {outcome}")
        if list(package.parent.parent.glob("python-*")) or line.encode() not in (package / "error.py").read_bytes():
            failures.append("the package is not left as it was")
    return failures


def areas_fail():
    """Failures where a file of the product has no area, or another than its room's or a part of it."""
    expected = {"host/api/model.cpp": "host", "host/cli/bench/probe.cpp": "cli", "plugins/layers/fc/fc.cpp": "layers"}
    expected |= {f"{room}/source.cpp": room for room in tree.rooms.PRODUCT}
    return [f"{path} is in {catalogue.area_of(path)}, not {area}" for path, area in expected.items()
            if catalogue.area_of(path) != area]


def run():
    failures = [failure for part in (program_fails, python_fails, texts_fail, draw_fails, suite_fails, hunt_fails, areas_fail)
                for failure in part()]
    print("\n".join([*failures, f"{len(failures)} failures"]))
    return 1 if failures else 0
