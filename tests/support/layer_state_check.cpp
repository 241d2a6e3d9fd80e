// SPDX-License-Identifier: Apache-2.0
#include "tests/support/layer_state_check.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "tests/support/layer_rounding.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

namespace fs = std::filesystem;

// A file that the destructor removes.
class TemporaryFile {
 public:
  [[nodiscard]] std::string path() const { return path_.string(); }
  [[nodiscard]] std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  tenon_tests::TemporaryFolder folder_;
  fs::path path_ = folder_.file("model.safetensors");
};

// An updater that commits buffers and leaves parameters unchanged.
Updater committer(const Host& host) { return host.updater("sgd", {{"learning_rate", 0.0}}); }

using Buffers = std::map<std::string, Numbers>;

Buffers stored_buffers(const Bench& bench) {
  Buffers result;
  for (const std::string& suffix : bench.buffers()) result[suffix] = bench.stored(Bench::own(suffix));
  return result;
}

class BufferCheck {
 public:
  BufferCheck(const LayerCase& layer, int64_t samples, tn_dtype compute)
      : case_(layer), samples_(samples), compute_(compute), bench_(layer, 2, samples) {}

  int64_t run() {
    commits_once();
    keeps_frozen();
    return checks_;
  }

 private:
  struct Next {
    Buffers values, scales;
  };
  // The next values by the formula, from the current buffers of the ParameterSet.
  [[nodiscard]] Next expected() const {
    const FormulaArguments arguments = bench_.arguments(samples_);
    Next next;
    for (const std::string& suffix : bench_.buffers()) {
      const Formula& formula = case_.buffers.at(suffix);
      next.values[suffix] = formula(arguments);
      next.scales[suffix] = scales_of(bench_, formula, arguments);
    }
    return next;
  }
  void expect_unchanged(const Buffers& before, const char* after) {
    for (const std::string& suffix : bench_.buffers()) {
      EXPECT_TRUE(identical(bench_.stored(Bench::own(suffix)), before.at(suffix)))
          << case_.type << ": buffer \"" << suffix << "\" changed by " << after;
      ++checks_;
    }
  }
  void expect_committed(const Next& next, const char* after) {
    const double tolerance = std::max(case_.tolerance, 1e-7);  // buffers are stored in fp32
    for (const std::string& suffix : bench_.buffers()) {
      EXPECT_TRUE(agree(bench_.stored(Bench::own(suffix)), next.values.at(suffix), tolerance, next.scales.at(suffix)))
          << case_.type << ": buffer \"" << suffix << "\" after " << after;
      ++checks_;
    }
  }
  // Checks that next values differ from the current ones, so that the checks notice a second commit.
  void expect_change(const Buffers& before, const Buffers& next) {
    for (const std::string& suffix : bench_.buffers()) {
      EXPECT_FALSE(agree(before.at(suffix), next.at(suffix), 1e-4, {0}))
          << case_.type << ": buffer \"" << suffix << "\" has a next value equal to the current one";
      ++checks_;
    }
  }

  void commits_once() {
    const Machine machine = bench_.machine(compute_);
    const Updater updater = committer(bench_.host());
    for (const int forwards : {2, 1}) {  // the second step starts from what the first one committed
      const Buffers before = stored_buffers(bench_);
      const Next next = expected();
      if (forwards == 2) expect_change(before, next.values);
      for (int i = 0; i < forwards; ++i) bench_.forward(machine, compute_, samples_);
      expect_unchanged(before, "forward");
      bench_.backward(machine, compute_);
      expect_unchanged(before, "backward");
      if (forwards == 2) {  // two minibatches before one update
        bench_.forward(machine, compute_, samples_);
        bench_.backward(machine, compute_);
      }
      updater.update(machine);
      expect_committed(next, "an update");
      const Buffers committed = stored_buffers(bench_);
      updater.update(machine);
      expect_unchanged(committed, "a second update");
      bench_.forward(machine, compute_, 0);
      bench_.backward(machine, compute_);
      updater.update(machine);
      expect_unchanged(committed, "an empty minibatch");
    }
    const Buffers before = stored_buffers(bench_);
    bench_.forward(bench_.machine(compute_, false), compute_, samples_);
    expect_unchanged(before, "forward without training");
  }

  void keeps_frozen() {
    const Updater updater = committer(bench_.host());
    for (const std::string& frozen : bench_.buffers()) {
      const Machine machine = bench_.machine(compute_, true, {Bench::own(frozen)});
      const Buffers before = stored_buffers(bench_);
      Next next = expected();
      next.values[frozen] = before.at(frozen);
      bench_.forward(machine, compute_, samples_);
      bench_.backward(machine, compute_);
      updater.update(machine);
      EXPECT_TRUE(identical(bench_.stored(Bench::own(frozen)), before.at(frozen)))
          << case_.type << ": frozen buffer \"" << frozen << "\" changed";
      ++checks_;
      expect_committed(next, "an update with one buffer frozen");
    }
  }

  const LayerCase& case_;
  int64_t samples_;
  tn_dtype compute_;
  Bench bench_;
  int64_t checks_ = 0;
};

}  // namespace

Numbers bits_of_a_step(const Bench& bench, const Machine& machine, const Layers& outputs, int64_t samples) {
  Numbers all;
  const auto add = [&](const Numbers& values) { all.insert(all.end(), values.begin(), values.end()); };
  bench.forward(machine, TN_F32, samples);
  for (const Layer& output : outputs) add(numbers_of(machine.output(output)));
  if (bench.checked().cost) all.push_back(machine.cost());
  bench.backward(machine, TN_F32, outputs);
  for (const std::string& name : bench.trained()) add(bench.gradient(machine, name));
  return all;
}

int64_t check_file(const LayerCase& layer, int64_t samples) {
  const Bench bench(layer, 2, samples);
  const TemporaryFile file;
  bench.parameters().save(bench.outputs(), file.path());
  const std::string saved = file.bytes();
  const Numbers before = bits_of_a_step(bench, bench.machine(TN_F32), bench.outputs(), samples);

  const Host host = bench.another_host();
  const Model model = host.load(file.path());
  EXPECT_EQ(model.outputs.size(), bench.outputs().size()) << layer.type;
  const Machine machine = bench.machine_of(host, model, TN_F32);
  EXPECT_TRUE(identical(bits_of_a_step(bench, machine, model.outputs, samples), before))
      << layer.type << ": a loaded model gives other bits";
  for (const std::string& suffix : bench.buffers())
    EXPECT_TRUE(identical(numbers_of(model.parameters.get(Bench::own(suffix))), bench.stored(Bench::own(suffix))))
        << layer.type << ": buffer \"" << suffix << "\" was not saved";
  model.parameters.save(model.outputs, file.path());
  EXPECT_EQ(file.bytes(), saved) << layer.type << ": a loaded model is saved as another file";
  return 3 + static_cast<int64_t>(bench.buffers().size());
}

int64_t check_buffers(const LayerCase& layer, int64_t samples) {
  int64_t checks = 0;
  const Bench bench(layer, 2, samples);
  for (const std::string& suffix : bench.buffers())
    if (layer.buffers.count(suffix) == 0) {
      ADD_FAILURE() << layer.type << ": the test has no formula for buffer \"" << suffix << "\"";
      return 0;
    }
  if (bench.buffers().empty()) return 0;
  for (const tn_dtype compute : {TN_F64, TN_F32}) {
    BufferCheck check(layer, samples, compute);
    checks += check.run();
  }
  return checks;
}

}  // namespace tenon_tests
