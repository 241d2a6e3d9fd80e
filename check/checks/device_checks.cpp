// SPDX-License-Identifier: Apache-2.0
#include "check/checks/device_checks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "check/bench/layer_bench.h"
#include "check/bench/table_bench.h"
#include "check/checks/device_memory.h"
#include "check/checks/each_case.h"
#include "check/checks/layer_checks.h"
#include "check/definitions/statements.h"

namespace tenon::check {

namespace {

void check_primitives(Context& context) {
  each_case(context, [&](const LayerCase& layer_case) {
    const auto number = layer_case.attributes.at("number").get<size_t>();
    Bench bench = bench_of(context, layer_case);
    StatementArguments arguments;
    arguments.samples = Bench::kSamples;
    for (size_t i = 0; i < layer_case.inputs.size(); ++i) arguments.inputs.push_back(bench.values(i));
    if (bench.has_sequences())
      for (int64_t i = 0; i <= Bench::kSamples; ++i) arguments.offsets.push_back(bench.rows_before(0, i));
    const Numbers expected = stated(number, arguments);
    for (const auto& [compute, tolerance] : {std::pair{TN_F64, 1e-12}, std::pair{TN_F32, 1e-5}}) {
      const Machine machine = bench.machine(compute, false);
      bench.forward(machine, compute, Bench::all());
      const Numbers got = bench.read(machine).at(0);
      const std::string name = statement_name(number) + (compute == TN_F64 ? " in fp64" : " in fp32");
      context.expect(got.size() == expected.size(), name + " gives " + std::to_string(got.size()) +
                                                        " elements; expected " + std::to_string(expected.size()));
      for (size_t i = 0; i < got.size(); ++i)
        context.expect(std::abs(got[i] - expected[i]) <= tolerance * std::max(largest_of(expected), 1e-3),
                       "element " + std::to_string(i) + " of " + name + " is " + shown(got[i]) + "; expected " +
                           shown(expected[i]));
    }
  });
}

// A table with row-sparse gradients, and the updates of "check.descent" in plain fp64.
class PlainTable {
 public:
  explicit PlainTable(Numbers values) : values_(std::move(values)), m_(values_.size()), v_(TableBench::kHeight) {}
  void add(const std::vector<int32_t>& ids, const std::vector<float>& gradients) {
    for (size_t i = 0; i < ids.size(); ++i) {
      Numbers& row = gradient_.try_emplace(ids[i], TableBench::kWidth).first->second;
      for (size_t c = 0; c < row.size(); ++c) row[c] += static_cast<double>(gradients[i * row.size() + c]);
    }
  }
  [[nodiscard]] Numbers gradient() const {
    Numbers result(values_.size());
    for (const auto& [id, row] : gradient_) std::copy(row.begin(), row.end(), result.begin() + id * TableBench::kWidth);
    return result;
  }
  void update() {
    for (const auto& [id, row] : gradient_) {
      double& v = v_[static_cast<size_t>(id)];
      for (const double g : row) v += g * g;
      for (size_t c = 0; c < row.size(); ++c) {
        const size_t i = static_cast<size_t>(id) * row.size() + c;
        m_[i] = 0.5 * m_[i] + row[c];
        values_[i] -= 0.125 * m_[i] / (1 + v);
      }
    }
    gradient_.clear();
  }
  [[nodiscard]] const Numbers& values() const { return values_; }

 private:
  Numbers values_, m_, v_;
  std::map<int32_t, Numbers> gradient_;  // by id
};

// Compares a row-sparse gradient to which contribute products: of the scores of vectors by rows of a table.
void check_products(Context& context, const Host& host, std::mt19937_64& random) {
  constexpr int64_t kHeight = TableBench::kHeight, kWidth = TableBench::kWidth, kCount = TableBench::kMostIds;
  DataOptions of_vectors;
  of_vectors.name = "vectors", of_vectors.shape = {kWidth};
  const Layer scores =
      host.layer("check.scores", {TableBench::ids(host), host.data(of_vectors)}, {{"height", kHeight}}, "table");
  const Machine machine = TableBench::training(host, host.parameters({scores}, 11), scores, context.subject().device);
  PlainTable plain(Numbers(kHeight * kWidth));
  std::vector<int32_t> ids;
  std::vector<float> vectors, weights, products;
  const auto number = [&] { return static_cast<float>(random() % 2048) / 1024 - 1; };
  for (int64_t i = 0; i < kCount; ++i) {
    ids.push_back(static_cast<int32_t>(random() % (kHeight - 1)));
    weights.push_back(number());
    for (int64_t c = 0; c < kWidth; ++c) {
      vectors.push_back(number());
      products.push_back(weights.back() * vectors.back());
    }
  }
  machine.forward({{"ids", {TN_I32, {kCount}, ids.data()}}, {"vectors", {TN_F32, {kCount, kWidth}, vectors.data()}}});
  backward_from(machine, {{scores, {TN_F32, {kCount}, weights.data()}}});
  plain.add(ids, products);
  const Numbers got = numbers_of(machine.gradient("table.values")), expected = plain.gradient();
  for (size_t i = 0; i < expected.size(); ++i)
    context.expect(std::abs(got.at(i) - expected[i]) <= 1e-5, "element " + std::to_string(i) +
                                                                  " of the row-sparse gradient of products is " +
                                                                  shown(got[i]) + "; expected " + shown(expected[i]));
}

void check_rows(Context& context) {
  const Subject& subject = context.subject();
  if (!subject.offers(TN_ROW_SPARSE_TABLE)) throw Skip("it does not list the table " TN_ROW_SPARSE_TABLE);
  (void)context.cases();  // skips if machines do not run on it
  const Host& host = context.host(2, false);
  const TableBench table(host, true, subject.device);
  const Updater updater = host.updater("check.descent", {});
  PlainTable plain(table.values());
  std::mt19937_64 random(subject.seed);
  const auto compare = [&](const Numbers& got, const Numbers& expected, const std::string& what, int step) {
    for (size_t i = 0; i < expected.size(); ++i)
      context.expect(std::abs(got.at(i) - expected[i]) <= 1e-5 * std::max(1.0, std::abs(expected[i])),
                     "element " + std::to_string(i) + " of " + what + " is " + shown(got[i]) + " in step " +
                         std::to_string(step) + "; expected " + shown(expected[i]));
  };
  for (int step = 1; step <= 5; ++step) {
    for (int times = 0; times < 1 + step % 2; ++times) {  // the gradients of two backward passes add up
      std::vector<int32_t> ids;
      std::vector<float> gradients;
      for (int i = 0; i < step + 2; ++i) ids.push_back(static_cast<int32_t>(random() % (TableBench::kHeight - 1)));
      for (size_t i = 0; i < ids.size() * TableBench::kWidth; ++i)
        gradients.push_back(static_cast<float>(random() % 2048) / 1024 - 1);
      table.add(ids, gradients);
      plain.add(ids, gradients);
    }
    compare(table.gradient(), plain.gradient(), "the row-sparse gradient", step);
    table.update(updater);
    plain.update();
    compare(table.values(), plain.values(), "the table after an update by rows", step);
  }
  check_products(context, host, random);
}

// Cases are those that the provider computes.
void check_provided(Context& context) {
  if (context.subject().serves_rows()) throw Skip("the check \"rows\" has the calls of row-sparse gradients");
  context.count(static_cast<int64_t>(context.cases().size()));
}

std::vector<Check> with_layer_checks(const std::vector<Check>& own) {
  std::vector<Check> result = own;
  for (const Check& check : layer_checks())
    for (const char* name : {"step", "process", "guard pages", "newer host", "older host", "gradient", "float32",
                             "repeat", "threads", "batch", "empty", "memory sharing"})
      if (std::string(check.name) == name) result.push_back(check);
  return result;
}

constexpr Check kPrimitives = {"primitives", "each primitive gives what its plain statement in fp64 does",
                               check_primitives};
constexpr Check kRows = {"rows", "row-sparse gradients and their updates are those of a plain statement in fp64",
                         check_rows};

}  // namespace

const std::vector<Check>& device_checks() {
  static const std::vector<Check> checks = with_layer_checks(
      {{"copies", "memory is aligned, and keeps what is copied and filled, byte by byte", check_copies},
       {"streams", "a stream works in order, and after the events that it waits for", check_streams},
       kPrimitives,
       kRows});
  return checks;
}

const std::vector<Check>& provider_checks() {
  static const std::vector<Check> checks =
      with_layer_checks({{"chosen", "it computes a call of at least one case", check_provided}, kPrimitives, kRows});
  return checks;
}

}  // namespace tenon::check
