// Compares random graphs that are optimised and planned as in a machine, and run in reused memory, with the same graphs
// as recorded, run with separate memory for each value. Covers fusion, bags, products of rows, epilogues, outputs in
// place and the memory plan. TENON_GRAPHS=100000 sets the number of graphs, TENON_GRAPH_SEED=17 runs one graph alone.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <string>

#include "core/graph/passes/passes.h"
#include "tests/support/graphs/graph_text.h"
#include "tests/support/graphs/planned_interpreter.h"
#include "tests/support/graphs/random_graph.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

size_t at(ValueId value) { return static_cast<size_t>(value); }

// Counts of the optimisations and gradients under test.
struct Seen {
  size_t joined = 0, bags = 0, products = 0 /* of rows of tables */, summed = 0 /* products, by a coalesce */,
         epilogues = 0, convolutions = 0 /* with an epilogue */, in_place = 0, gradients = 0, rows = 0, slopes = 0;
};

// A graph with its backward nodes.
struct Trained {
  RandomGraph made;
  Graph graph;
  std::map<ValueId, ValueId> gradients;  // of the wanted values on which a cost depends
  std::vector<ValueId> kept;             // including the gradients
  std::map<ValueId, Numbers> weights;    // per cost: the gradient of each element with which backward begins
};

double direction(ValueId value, size_t element) { return std::cos(static_cast<double>(at(value) + element)); }

Trained trained(uint64_t seed, size_t steps) {
  Trained result{random_graph(seed, steps), {}, {}, {}, {}};
  RandomGraph& made = result.made;
  result.graph = made.graph;
  result.kept = made.kept;
  Graph& graph = result.graph;
  std::vector<GradientSeed> seeds;
  ProgramWriter spread;
  spread.output(spread.expand(spread.input(TN_SCALAR), TN_FULL));
  const auto program = std::make_shared<Program>(spread.finish());
  for (const ValueId cost : made.costs) {
    const bool one_number = seeds.empty() && !graph.spec(cost).shape.empty();  // as the gradient of a mean
    const ValueId given = graph.add_external(one_number ? Spec{TN_F64, {}, TN_DENSE, 0, {}} : graph.spec(cost), "seed");
    Numbers& numbers = made.given[given];
    numbers.resize(static_cast<size_t>(count_of(graph.spec(given).shape, made.symbols)));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0.25 + static_cast<double>((seed + i) % 5) / 4;
    const Shape shape = graph.spec(cost).shape;
    result.weights[cost] =
        one_number ? Numbers(static_cast<size_t>(count_of(shape, made.symbols)), numbers[0]) : numbers;
    seeds.push_back(
        {cost, one_number ? GraphWriter(graph, 0, true, TN_F64).pointwise_on(program, {given}, shape, 1)[0] : given});
  }
  if (seeds.empty() || made.wanted.empty()) return result;
  for (const auto& [value, gradient] : differentiate(graph, seeds, made.wanted, TN_F64, made.row_sparse)) {
    if (gradient == kNoValue) continue;
    result.gradients[value] = gradient;
    result.kept.push_back(gradient);
  }
  return result;
}

std::vector<Numbers> reference_of(const Graph& graph, const RandomGraph& made) {
  Interpreter interpreter(graph, made.symbols);
  for (const auto& [value, numbers] : made.given)
    if (at(value) < interpreter.values.size()) interpreter.values[at(value)] = numbers;
  interpreter.run();
  return interpreter.values;
}

std::string difference(const std::vector<Numbers>& expected, const std::vector<ValueId>& values,
                       const std::vector<Numbers>& got) {
  for (size_t k = 0; k < values.size(); ++k) {
    const Numbers& want = expected[at(values[k])];
    if (want.size() != got[k].size())
      return "value " + std::to_string(values[k]) + " has size " + std::to_string(got[k].size()) + " for " +
             std::to_string(want.size());
    for (size_t i = 0; i < want.size(); ++i)
      if (want[i] != got[k][i])
        return "value " + std::to_string(values[k]) + ", element " + std::to_string(i) + ": expected " +
               std::to_string(want[i]) + ", got " + std::to_string(got[k][i]);
  }
  return {};
}

// Runs the passes of a machine on a graph.
void optimise(Graph& graph, const std::vector<ValueId>& kept, uint64_t seed, Seen& seen) {
  const auto nodes = [&] { return graph.nodes.size(); };
  const size_t before = nodes();
  fuse(graph, kept);
  const size_t fused = nodes();
  seen.joined += before - fused;
  join_bags(graph, kept);
  seen.bags += fused - nodes();
  uint64_t choice = seed;
  const auto often = [&](const Node& /*node*/) { return ++choice % 4 != 0; };
  join_products(graph, kept, often);
  join_gathers(graph, kept, often);
  const size_t rows = nodes();
  attach_epilogues(graph, often);
  seen.epilogues += rows - nodes();
  for (const Node& node : graph.nodes) {
    seen.products += node.is<GatherGemm>() ? 1 : 0;
    seen.summed += node.is<Coalesce>() && node.as<Coalesce>()->stride() == 5 ? 1 : 0;
    seen.convolutions += node.is<Conv>() && node.epilogue ? 1 : 0;
    if (const Pointwise* pointwise = node.pointwise())
      (void)Program::from(pointwise->program->view());  // throws if kinds or extents do not fit
  }
}

// Marks the values with memory of their own: external values and some of the gradients.
std::vector<bool> placed_in(const Graph& graph, const std::map<ValueId, ValueId>& gradients, uint64_t seed) {
  std::vector<bool> placed(graph.values.size(), false);
  for (size_t i = 0; i < placed.size(); ++i) placed[i] = graph.values[i].producer < 0 && graph.values[i].alias_of < 0;
  for (const auto& [value, gradient] : gradients)
    if ((seed + at(value)) % 2 == 0 && graph.root(gradient) == gradient) placed[at(gradient)] = true;
  return placed;
}

// Returns how the optimised graph differs from the recorded one; empty if the results are equal.
std::string planned_differs(const Trained& trained, const std::vector<Numbers>& expected, uint64_t seed, Graph& graph,
                            Seen& seen) {
  graph = trained.graph;
  optimise(graph, trained.kept, seed, seen);
  const std::vector<bool> placed = placed_in(graph, trained.gradients, seed);
  const MemoryPlan plan = plan_memory(graph, placed, trained.kept, trained.made.bounds);
  if (plan.bytes < plan.live_bound) return "the arena is smaller than the values that are live at one node";
  PlannedInterpreter planned(graph, trained.made.symbols, plan, placed, trained.kept);
  const auto give = [&](bool backward) {  // the first gradients are written after forward
    for (const auto& [value, numbers] : trained.made.given)
      if ((at(value) >= trained.made.graph.values.size()) == backward) planned.write(value, numbers);
  };
  give(false);
  const auto read = [&](const std::vector<ValueId>& values) {
    std::vector<Numbers> numbers;
    for (const ValueId value : values) numbers.push_back(planned.read(value));
    return difference(expected, values, numbers);
  };
  planned.run(false);
  if (const std::string wrong = read(trained.made.kept); !wrong.empty()) return "after forward: " + wrong;
  give(true);
  planned.run(true);
  seen.in_place += planned.in_place();
  if (const std::string wrong = read(trained.kept); !wrong.empty()) return "after backward: " + wrong;
  return {};
}

// Returns the weighted sum of the costs after moving all wanted values by `step` in a fixed direction.
double moved(const Trained& trained, double step) {
  RandomGraph made = trained.made;
  for (const auto& [value, gradient] : trained.gradients) {
    const auto stored = made.stored.find(value);
    Numbers& numbers = made.given.at(stored == made.stored.end() ? value : stored->second);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] += step * direction(value, i);
  }
  const std::vector<Numbers> values = reference_of(made.graph, made);
  double sum = 0;
  for (const auto& [cost, weights] : trained.weights)
    for (size_t i = 0; i < weights.size(); ++i) sum += values[at(cost)][i] * weights[i];
  return sum;
}

// Compares the slope along one direction, computed from the gradients, with a difference quotient.
std::string slope_differs(const Trained& trained, const std::vector<Numbers>& expected) {
  double slope = 0, size = 0;
  for (const auto& [value, gradient] : trained.gradients)
    for (size_t i = 0; i < expected[at(gradient)].size(); ++i) {
      const double part = expected[at(gradient)][i] * direction(value, i);
      slope += part;
      size += std::fabs(part);
    }
  constexpr double kStep = 1e-5;
  const double difference = (moved(trained, kStep) - moved(trained, -kStep)) / (2 * kStep);
  if (std::fabs(slope - difference) <= 1e-5 * (1 + size)) return {};
  return "the slope is " + std::to_string(difference) + "; by the gradients " + std::to_string(slope);
}

// Returns the fault of a graph, with the graph as text; empty if it is correct.
std::string fault(uint64_t seed, size_t steps, Seen& seen) {
  Graph graph;
  std::string recorded, wrong;
  try {
    const Trained made = trained(seed, steps);
    recorded = text_of(made.graph);
    seen.gradients += made.gradients.size();
    for (const auto& [value, gradient] : made.gradients)
      seen.rows += made.graph.spec(gradient).storage == TN_ROW_SPARSE;
    const std::vector<Numbers> expected = reference_of(made.graph, made.made);
    for (const ValueId value : made.kept)
      for (const double number : expected[at(value)])
        if (!std::isfinite(number)) return "the generator made a number that is not finite";
    wrong = planned_differs(made, expected, seed, graph, seen);
    if (wrong.empty() && made.made.smooth && !made.gradients.empty()) {
      ++seen.slopes;
      wrong = slope_differs(made, expected);
    }
  } catch (const std::exception& error) {
    wrong = error.what();
  }
  if (wrong.empty()) return {};
  return wrong + "\nTENON_GRAPH_SEED=" + std::to_string(seed) + ", " + std::to_string(steps) + " steps, recorded as\n" +
         recorded + "optimised to\n" + text_of(graph);
}

uint64_t environment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

constexpr size_t kMostSteps = 24;

// The current seed, printed after a crash.
volatile std::sig_atomic_t current = 0;
void tell_seed(int signal) {
  char text[] = "crashed at TENON_GRAPH_SEED=0000000000\n";
  auto rest = static_cast<unsigned>(current);
  for (size_t i = sizeof text - 3; rest > 0; --i, rest /= 10) text[i] = static_cast<char>('0' + rest % 10);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

TEST(GraphFuzz, PlannedAsRecorded) {
  const uint64_t only = environment("TENON_GRAPH_SEED", 0);
  const uint64_t graphs = environment("TENON_GRAPHS", 2500), first = environment("TENON_FIRST_SEED", 1);
  Seen seen;
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE}) std::signal(signal, tell_seed);
  for (uint64_t seed = only > 0 ? only : first; seed < (only > 0 ? only + 1 : first + graphs); ++seed) {
    current = static_cast<std::sig_atomic_t>(seed);
    const size_t steps = 2 + seed % (kMostSteps - 1);
    if (fault(seed, steps, seen).empty()) continue;
    size_t least = 1;  // the smallest number of steps that fails
    while (fault(seed, least, seen).empty()) ++least;
    FAIL() << fault(seed, least, seen);
  }
  if (only > 0) return;
  // Each optimisation under test must occur often enough.
  EXPECT_GT(seen.joined, graphs);
  EXPECT_GT(seen.bags, graphs / 20);
  EXPECT_GT(seen.products, graphs / 50);
  EXPECT_GT(seen.summed, graphs / 200);
  EXPECT_GT(seen.epilogues, graphs / 10);
  EXPECT_GT(seen.convolutions, graphs / 200);
  EXPECT_GT(seen.in_place, graphs / 2);
  EXPECT_GT(seen.gradients, graphs / 2);
  EXPECT_GT(seen.rows, graphs / 50);
  EXPECT_GT(seen.slopes, graphs / 5);
}

}  // namespace
}  // namespace tenon_tests
