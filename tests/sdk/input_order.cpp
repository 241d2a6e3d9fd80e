// Prints what each expression records, or that it is refused. SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <stdexcept>
#include <tenon/expression.hpp>

namespace {

using tn::Float;
using tn::Int;
using tn::Program;

template <typename Record>
void show(const char* text, const Record& record) {
  Program p;
  std::printf("%s:", text);
  try {
    record(p);
  } catch (const std::invalid_argument&) {
    std::puts(" refused");
    return;
  }
  const tn_program& program = *p.get();
  for (uint32_t i = 0; i < program.instructions_count; ++i) {
    const tn_instruction& in = program.instructions[i];
    std::printf(" %d(%d %d %d %g)", in.op, in.a, in.b, in.c, in.number);
  }
  std::puts("");
}
#define SHOW(...) show(#__VA_ARGS__, [](Program& p) { __VA_ARGS__; })

Float drawn(Program& p) {
  Float value = p.full();
  return value;
}

void refused() {
  SHOW(p.output(p.full() - p.full()));
  SHOW(p.output(p.full() * p.per_column()));
  SHOW(p.output((p.full() + 1) + p.full()));
  SHOW(p.output(p.full() + p.full() + p.full()));
  SHOW(p.output(tn::exp(p.full()) * p.per_column()));
  SHOW(p.output(-p.full() * -p.full()));
  SHOW(p.output(p.per_row() - sum_per_row(p.full())));
  SHOW(p.output(pow(stop(p.full()), abs(p.full()))));
  SHOW(p.output(max(p.full(), p.full())));
  SHOW(p.output(p.full() < p.full()));
  SHOW(p.output(select(p.full() > 0, p.full(), 0.0)));
  SHOW(p.output(select(p.full() > 0, p.full(), p.full())));
  SHOW(p.output(tn::select(p.full() > 0 && p.full() > 0, 1.0, p.full())));
  SHOW(p.output(floor_div(p.full<Int>(), p.per_row<Int>())));
  SHOW(p.output(tn::to_float(p.full<Int>()) / p.scalar()));
  SHOW(p.output(drawn(p) - drawn(p)));
}

void recorded() {
  SHOW(const Float a = p.full(); const Float b = p.full(); p.output(a - b));
  SHOW(const Float a = p.full(), b = p.full(); p.output(b - a));
  SHOW(const auto [x, scale] = p.inputs(TN_FULL, TN_PER_COLUMN); p.output(x * scale));
  SHOW(const auto [label, limit] = p.inputs<Int>(TN_PER_ROW, TN_SCALAR); p.output(label < limit));
  SHOW(const Float x = p.full(); p.output(x - p.full()));
  SHOW(const Float x = p.full(); p.output(p.full() - x));
  SHOW(Float sum = p.full(); for (int i = 0; i < 3; ++i) sum = sum - p.full(); p.output(sum));
  SHOW(p.output(p.full() > 0 && p.full() < 1));
  SHOW(p.output(p.full() > 0 || p.full() < 1));
  SHOW(p.output(tn::select(p.full() > 0, 1.0, 0.0)));
  SHOW(Float a = p.full(); Float b = p.full(); p.output(std::move(b) - std::move(a)));
  SHOW(const Float all[] = {p.full(), p.full()}; p.output(all[1] - all[0]));
}

}  // namespace

int main() {
  refused();
  std::puts("--");
  recorded();
  return 0;
}
