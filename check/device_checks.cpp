// SPDX-License-Identifier: Apache-2.0
#include "check/device_checks.h"

#include <algorithm>
#include <cmath>

#include "check/device_statements.h"
#include "check/layer_bench.h"
#include "check/layer_checks.h"
#include "check/layer_gradients.h"

namespace tenon::check {

namespace {

double largest(const Numbers& values) {
  double result = 1e-3;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

void check_primitives(Context& context) {
  each_case(context, [&](const LayerCase& of) {
    const auto number = of.attributes.at("number").get<size_t>();
    Bench bench = bench_of(context, of);
    StatementArguments arguments;
    arguments.samples = Bench::kSamples;
    for (size_t i = 0; i < of.inputs.size(); ++i) arguments.inputs.push_back(bench.values(i));
    if (bench.has_sequences())
      for (int64_t i = 0; i <= Bench::kSamples; ++i) arguments.offsets.push_back(bench.rows_before(of.inputs[0], i));
    const Numbers expected = stated(number, arguments);
    for (const auto& [compute, tolerance] : {std::pair{TN_F64, 1e-12}, std::pair{TN_F32, 1e-5}}) {
      const Machine machine = bench.machine(compute, false);
      bench.forward(machine, compute, Bench::all());
      const Numbers got = bench.read(machine).at(0);
      const std::string name = statement_name(number) + (compute == TN_F64 ? " in fp64" : " in fp32");
      context.expect(got.size() == expected.size(), name + " gives " + std::to_string(got.size()) +
                                                        " elements; expected " + std::to_string(expected.size()));
      for (size_t i = 0; i < got.size(); ++i)
        context.expect(std::abs(got[i] - expected[i]) <= tolerance * largest(expected),
                       "element " + std::to_string(i) + " of " + name + " is " + shown(got[i]) + "; expected " +
                           shown(expected[i]));
    }
  });
}

}  // namespace

const std::vector<Check>& device_checks() {
  static const std::vector<Check> checks = [] {
    std::vector<Check> result = {
        {"primitives", "each primitive gives what its plain statement in fp64 does", check_primitives}};
    for (const Check& check : layer_checks())
      for (const char* name : {"step", "gradient", "float32", "repeat", "threads", "batch", "empty"})
        if (std::string(check.name) == name) result.push_back(check);
    return result;
  }();
  return checks;
}

}  // namespace tenon::check
