"""Tests weaving: a small program with all its mutants woven in must behave, for each number, as the program with that
change made by hand, and must mark the mutants that it reaches. SPDX-License-Identifier: Apache-2.0"""
import os
import pathlib
import subprocess
import tempfile

import candidates
import catalogue
import weave

PROGRAM = r"""#include <cstdio>
#include <string>
#include <vector>
// A comment's quote, and 'another'.
constexpr int doubled(int x) {
  if (x > 100) return 0;
  return x * 2 + 1;
}
static_assert(doubled(2) == 5, "evaluated by the compiler");
const int kTable[] = {doubled(3), 7};
enum class Kind { kOne, kTwo };
struct Counter {
  explicit Counter(int from) : at(from + 1) {}
  int next() { return at++; }
  int at;
};
int chosen(Kind kind, int x) {
  switch (kind) {
    case Kind::kOne:
      x -= 3;
      break;
    case Kind::kTwo: {
      x += 4;
      return x;
    }
  }
  return x - 1;
}
template <class T>
T largest(const std::vector<T>& all) {
  T most = all[0];
  for (size_t i = 1; i < all.size(); ++i)
    if (all[i] > most) most = all[i];
    else if (all[i] == most) most = all[i];
  return most;
}
int main(int count, char**) {
  Counter counter(count);
  const auto twice = [&](int x) { counter.next(); return x + x; };
#ifdef __cplusplus
  std::printf("%d %d\n", doubled(count), kTable[1]);
#endif
  std::printf("%d %d\n", chosen(Kind::kOne, 5), chosen(Kind::kTwo, 5));
  std::printf("%d %d %d\n", largest(std::vector<int>{3, 9, 4}), twice(4), counter.next());
  if (count > 5) std::printf("many\n");
  return 0;
}
"""


def _compiled(folder, name, text):
    path = pathlib.Path(folder, name + ".cpp")
    path.write_bytes(text)
    done = subprocess.run(["c++", "-std=c++20", "-w", "-o", str(path.with_suffix("")), str(path)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return str(path.with_suffix("")) if done.returncode == 0 else None


def _said(program, **environment):
    done = subprocess.run([program], env={**os.environ, **environment}, stdout=subprocess.PIPE, timeout=10, check=False)
    return done.returncode, done.stdout


def _mutants(data):
    """All possible changes of the program, and one of an expression outside of functions."""
    found = [catalogue.Mutant(1, "known", "program.cpp", "at(from + 1)", "at(from + 2)", form="expression")]
    found[0].old, found[0].new = "from + 1", "from + 2"
    import draw
    for each in candidates.candidates(data):
        texts = draw.texts(data, each)
        if texts and "++i" not in texts[0]:
            found.append(catalogue.Mutant(len(found) + 1, each.kind, "program.cpp", *texts))
    return found


def run():
    data = PROGRAM.encode()
    source = catalogue.Source(data)
    failures, compared = [], 0
    with tempfile.TemporaryDirectory() as folder:
        edits, by_hand = [], {}
        for mutant in _mutants(data):
            edit = source.edit(mutant)
            changed = _compiled(folder, f"changed{mutant.id}", data[:edit.begin] + edit.text + data[edit.end:])
            if changed:
                by_hand[mutant.id] = changed
                edits.append(edit)
        woven = _compiled(folder, "woven", weave.weave(data, edits))
        assert woven, "the woven program does not compile"
        marks = pathlib.Path(folder, "marks")
        marks.write_bytes(bytes(catalogue.MOST))
        plain = _said(_compiled(folder, "plain", data))
        if _said(woven, TENON_MUTANTS_REACHED=str(marks)) != plain:
            failures.append("without a mutant the output differs")
        reached = marks.read_bytes()
        for edit in edits:
            number = edit.mutant.id
            says = _said(woven, TENON_MUTANT=str(number))
            if says != _said(by_hand[number]):
                failures.append(f"{number} ({edit.mutant.kind}: {edit.mutant.new}) differs from the change by hand")
            if says != plain and not reached[number]:
                failures.append(f"{number} ({edit.mutant.new}) changes the output, but is not marked as reached")
            compared += says != plain
    spaced = catalogue.Source(b"int f() {\n  return g(1,\n           2);  // isn't\n}\n")
    if len(spaced.places("return g(1, 2);")) != 1 or spaced.places("return g(2"):
        failures.append("texts are not found without regard to white space")
    print("\n".join(failures))
    print(f"{len(edits)} mutants, {compared} of them change the output, {len(failures)} failures")
    return 1 if failures or compared < 15 else 0
