// A pointwise program with its operands, its run on the device "cpu", and the comparison with the fp64 reference.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/definitions/program_reference.h"
#include "core/program.h"
#include "tests/devices/prepared_call.h"

namespace tenon_tests {

using namespace tenon::core;

// Appends TN_OP_ROW or TN_OP_COLUMN, for which ProgramWriter has no function.
inline int32_t index(ProgramWriter& w, uint16_t op) {
  const tn_instruction instruction = {op, TN_INT, 0, -1, -1, -1, 0};
  tn_program program = {};
  program.size = sizeof program;
  program.instructions_count = 1;
  program.instructions = &instruction;
  return w.inline_program(Program::from(program), {})[0];
}

struct PointwiseCase {
  Program program;
  int64_t rows = 1, columns = 1;
  tn_dtype compute = TN_F32;
  std::vector<std::vector<double>> inputs = {};
  std::vector<tn_dtype> input_types = {};  // empty: the compute type
  std::vector<uint8_t> requests = {};      // empty: WRITE
  std::vector<int32_t> aliases = {};       // per output: the input with the same memory, or -1; empty: none
  bool rows_vary = true;                   // rows are a symbol, not a constant
  bool columns_vary = false;
  bool bounded = false;  // dimensions that vary have bounds, as always on devices whose memory is not the host's
  size_t shift = 0;      // elements by which operands begin after an aligned address
  int64_t slack = 0;     // what the bounds have beyond the sizes
};

struct PointwiseOutcome {
  std::vector<std::vector<double>> numbers;
  std::vector<std::vector<uint8_t>> bytes;
};

inline tn_dtype output_type(const PointwiseCase& c, size_t k) {
  return c.program.outputs[k].dtype == TN_COMPUTE ? c.compute : c.program.outputs[k].dtype;
}
// Returns the value of the elements of an output before the call.
inline double held(const PointwiseCase& c, size_t k) { return output_type(c, k) == TN_BOOL ? 1 : 3; }
inline tn_dtype input_type(const PointwiseCase& c, size_t i) {
  return c.input_types.empty() ? c.compute : c.input_types[i];
}
inline uint8_t request(const PointwiseCase& c, size_t k) {
  return c.requests.empty() ? uint8_t{TN_REQUEST_WRITE} : c.requests[k];
}
inline int32_t alias(const PointwiseCase& c, size_t k) { return c.aliases.empty() ? -1 : c.aliases[k]; }

// The argument of prepare for a case. slack: what the bounds of dimensions that vary have beyond their sizes; -1: they
// have no bounds.
class PointwiseSite {
 public:
  PointwiseSite(const PointwiseCase& c, int64_t slack) : program_(c.program.view()) {
    for (size_t i = 0; i < c.program.inputs.size(); ++i) inputs_.push_back(input_type(c, i));
    for (const auto& output : c.program.outputs) outputs_.push_back(output.dtype);
    site_.size = sizeof site_;
    site_.compute = c.compute;
    site_.program = &program_;
    site_.extents = c.program.extents.data();
    site_.inputs = inputs_.data();
    site_.outputs = outputs_.data();
    site_.rows = c.rows_vary ? tn_dim_symbol(TN_SYMBOL_SAMPLES) : tn_dim_constant(c.rows);
    site_.columns = c.columns_vary ? tn_dim_symbol(TN_SYMBOL_FIRST_RAGGED) : tn_dim_constant(c.columns);
    if (slack >= 0 && c.rows_vary) site_.rows.bound = c.rows + slack;
    if (slack >= 0 && c.columns_vary) site_.columns.bound = c.columns + slack;
  }
  PointwiseSite(const PointwiseSite&) = delete;
  PointwiseSite& operator=(const PointwiseSite&) = delete;
  [[nodiscard]] const tn_pointwise_site& get() const { return site_; }
  [[nodiscard]] tn_pointwise_site& get() { return site_; }

 private:
  tn_program program_;
  std::vector<tn_dtype> inputs_, outputs_;
  tn_pointwise_site site_ = {};
};

inline tn_status prepare(DeviceUnderTest& device, const tn_pointwise_site& site, tn_prepared* prepared) {
  return device.table<tn_pointwise_table>(TN_POINTWISE)
      ->prepare(device.device(), device.services(), device.errors(), &site, prepared);
}
// Prepares a call for a site: on the device, if nothing else is given.
using PreparePointwise = tn_status (*)(DeviceUnderTest& device, const tn_pointwise_site& site, tn_prepared* prepared);
inline tn_status prepare(DeviceUnderTest& device, const PointwiseCase& c, tn_prepared* prepared,
                         PreparePointwise prepare_site = &prepare) {
  const bool bounded = c.slack > 0 || c.bounded || !device.host_memory();
  return prepare_site(device, PointwiseSite(c, bounded ? c.slack : -1).get(), prepared);
}

inline PointwiseOutcome run_case(DeviceUnderTest& device, const PointwiseCase& c, int32_t workers, uint64_t seed = 1,
                                 PreparePointwise prepare_site = &prepare) {
  PreparedCall call(device);
  PointwiseOutcome outcome;
  if (prepare(device, c, &call.prepared, prepare_site) != TN_OK) {
    ADD_FAILURE() << device.message;
    return outcome;
  }
  std::vector<Guarded> inputs, outputs;
  std::vector<Guarded*> in, out;
  std::vector<uint8_t> requests;
  for (size_t i = 0; i < c.inputs.size(); ++i) inputs.push_back(write_all(input_type(c, i), c.inputs[i], c.shift));
  for (Guarded& memory : inputs) in.push_back(&memory);
  for (size_t k = 0; k < c.program.outputs.size(); ++k) {
    const int64_t count = tenon::check::reference::elements(c.program.output_extent(k), c.rows, c.columns);
    outputs.push_back(
        write_all(output_type(c, k), std::vector<double>(static_cast<size_t>(count), held(c, k)), c.shift));
    requests.push_back(request(c, k));
  }
  for (size_t k = 0; k < outputs.size(); ++k)
    out.push_back(alias(c, k) >= 0 ? in[static_cast<size_t>(alias(c, k))] : &outputs[k]);
  EXPECT_EQ(call.run(in, out, requests, {0, c.rows, c.columns}, workers, seed), TN_OK) << device.message;
  for (size_t k = 0; k < outputs.size(); ++k) {
    const Guarded& memory = alias(c, k) >= 0 ? inputs[static_cast<size_t>(alias(c, k))] : outputs[k];
    outcome.numbers.push_back(read_all(output_type(c, k), memory));
    outcome.bytes.push_back(memory.bytes());
    EXPECT_TRUE(outputs[k].intact()) << "output " << k << " was written outside its memory";
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_TRUE(inputs[i].intact()) << "input " << i << " was written outside its memory";
    if (std::find(c.aliases.begin(), c.aliases.end(), static_cast<int32_t>(i)) == c.aliases.end()) {
      EXPECT_EQ(inputs[i].bytes(), write_all(input_type(c, i), c.inputs[i]).bytes()) << "input " << i << " changed";
    }
  }
  return outcome;
}

// Returns the expected outputs.
inline std::vector<std::vector<double>> expected(const PointwiseCase& c) {
  const tn_program program = c.program.view();
  std::vector<std::vector<double>> result =
      tenon::check::reference::evaluate(program, c.rows, c.columns, c.inputs, kTestStep);
  for (size_t k = 0; k < result.size(); ++k)
    for (size_t i = 0; i < result[k].size(); ++i) {
      const double before = alias(c, k) >= 0 ? c.inputs[static_cast<size_t>(alias(c, k))][i] : held(c, k);
      if (request(c, k) == TN_REQUEST_ADD) result[k][i] += before;
      if (request(c, k) == TN_REQUEST_NONE) result[k][i] = before;
    }
  return result;
}

// Runs a case with 1, 2, 3 and 8 workers, expects equal bits, and compares with the reference. The tolerance is
// `relative` times the number plus `absolute`.
inline void check_case(DeviceUnderTest& device, const PointwiseCase& c, double relative, double absolute = 0) {
  const PointwiseOutcome first = run_case(device, c, 1);
  for (const int32_t workers : device.workers({2, 3, 8}))
    ASSERT_TRUE(first.bytes == run_case(device, c, workers, static_cast<uint64_t>(workers)).bytes)
        << "other bits with " << workers << " workers";
  const std::vector<std::vector<double>> want = expected(c);
  ASSERT_EQ(first.numbers.size(), want.size());
  for (size_t k = 0; k < want.size(); ++k) {
    ASSERT_EQ(first.numbers[k].size(), want[k].size());
    for (size_t i = 0; i < want[k].size(); ++i) {
      const double got = first.numbers[k][i], wanted = want[k][i];
      if (std::isnan(wanted)) {
        ASSERT_TRUE(std::isnan(got)) << "output " << k << " element " << i << ": " << got << " for NaN";
      } else if (std::isinf(wanted)) {
        ASSERT_EQ(got, wanted) << "output " << k << " element " << i;
      } else {
        ASSERT_NEAR(got, wanted, std::fabs(wanted) * relative + absolute) << "output " << k << " element " << i;
      }
    }
  }
}

}  // namespace tenon_tests
