// A pointwise program with its operands, its run on the device "cpu", and the comparison with the fp64 reference.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/program_reference.h"
#include "core/program.h"
#include "tests/devices/cpu_device.h"

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
  bool bounded = false;  // the dimensions have these sizes as their bounds
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

inline tn_status prepare(CpuDevice& device, const PointwiseCase& c, tn_prepared* prepared) {
  const tn_program program = c.program.view();
  std::vector<tn_dtype> inputs, outputs;
  for (size_t i = 0; i < c.program.inputs.size(); ++i) inputs.push_back(input_type(c, i));
  for (size_t k = 0; k < c.program.outputs.size(); ++k) outputs.push_back(c.program.outputs[k].dtype);
  tn_pointwise_site site = {};
  site.size = sizeof site;
  site.compute = c.compute;
  site.program = &program;
  site.extents = c.program.extents.data();
  site.inputs = inputs.data();
  site.outputs = outputs.data();
  site.rows = c.rows_vary ? tn_dim_symbol(TN_SYMBOL_SAMPLES) : tn_dim_constant(c.rows);
  site.columns = c.columns_vary ? tn_dim_symbol(TN_SYMBOL_FIRST_RAGGED) : tn_dim_constant(c.columns);
  if (c.bounded) site.rows.bound = c.rows;
  if (c.bounded) site.columns.bound = c.columns;
  return device.table<tn_pointwise_table>(TN_POINTWISE)
      ->prepare(device.device(), device.services(), device.errors(), &site, prepared);
}

inline PointwiseOutcome run_case(CpuDevice& device, const PointwiseCase& c, int32_t workers, uint64_t seed = 1) {
  PreparedCall call(device);
  PointwiseOutcome outcome;
  if (prepare(device, c, &call.prepared) != TN_OK) {
    ADD_FAILURE() << device.message;
    return outcome;
  }
  std::vector<Guarded> inputs, outputs;
  std::vector<void*> in, out;
  std::vector<uint8_t> requests;
  for (size_t i = 0; i < c.inputs.size(); ++i) inputs.push_back(write_all(input_type(c, i), c.inputs[i]));
  for (Guarded& memory : inputs) in.push_back(memory.data());
  for (size_t k = 0; k < c.program.outputs.size(); ++k) {
    const int64_t count = tenon::check::reference::elements(c.program.output_extent(k), c.rows, c.columns);
    outputs.push_back(write_all(output_type(c, k), std::vector<double>(static_cast<size_t>(count), held(c, k))));
    requests.push_back(request(c, k));
  }
  for (size_t k = 0; k < outputs.size(); ++k)
    out.push_back(alias(c, k) >= 0 ? in[static_cast<size_t>(alias(c, k))] : outputs[k].data());
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
inline void check_case(CpuDevice& device, const PointwiseCase& c, double relative, double absolute = 0) {
  const PointwiseOutcome first = run_case(device, c, 1);
  for (const int32_t workers : {2, 3, 8})
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
