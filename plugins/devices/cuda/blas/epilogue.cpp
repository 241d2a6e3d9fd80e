// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

namespace tenon::cuda {

namespace {

// Looks for patterns in the values of a program.
class Matcher {
 public:
  Matcher(const tn_program& program, int32_t product) : program_(program), product_(product) {}

  // The product plus the other input.
  [[nodiscard]] bool is_sum(int32_t value) const {
    return is(value, TN_OP_ADD) &&
           of_both(value, [&](int32_t a, int32_t b) { return is_input(a, product_) && is_input(b, 1 - product_); });
  }
  // max(sum, 0)
  [[nodiscard]] bool is_relu(int32_t value) const {
    return is(value, TN_OP_MAX) && of_both(value, [&](int32_t a, int32_t b) {
             return is_sum(a) && is(b, TN_OP_CONSTANT) && at(b).number == 0;
           });
  }

 private:
  [[nodiscard]] const tn_instruction& at(int32_t value) const { return program_.instructions[value]; }
  [[nodiscard]] bool is(int32_t value, uint16_t op) const { return at(value).op == op && at(value).kind == TN_FLOAT; }
  [[nodiscard]] bool is_input(int32_t value, int32_t number) const {
    return is(value, TN_OP_INPUT) && at(value).a == number;
  }
  // Whether `matches` takes the operands of a value, in either order.
  template <typename Matches>
  [[nodiscard]] bool of_both(int32_t value, const Matches& matches) const {
    return matches(at(value).a, at(value).b) || matches(at(value).b, at(value).a);
  }

  const tn_program& program_;
  const int32_t product_;
};

// The library adds biases of the type of C, in float32; one for each column, whatever the row.
bool has_known_types(const tn_gemm_epilogue& epilogue) {
  const tn_pointwise_site& site = *epilogue.site;
  const tn_program& program = *site.program;
  if (epilogue.gemm->dtype != TN_F32 || site.compute != TN_F32 || program.inputs_count != 2 ||
      program.outputs_count != 1 || epilogue.product < 0 || epilogue.product > 1)
    return false;
  return site.inputs[0] == TN_F32 && site.inputs[1] == TN_F32 && site.outputs[0] == TN_F32 &&
         program.inputs[epilogue.product].extent == TN_FULL &&
         program.inputs[1 - epilogue.product].extent == TN_PER_COLUMN;
}

bool is_constant(const tn_dim& dim, int64_t least) { return dim.symbol == TN_SYMBOL_NONE && dim.offset >= least; }

}  // namespace

Epilogue epilogue_of(const tn_gemm_epilogue& epilogue) {
  const tn_gemm& gemm = *epilogue.gemm;
  // A product of no terms is not the library's, and the biases of several products would have a stride.
  if (!has_known_types(epilogue) || !is_constant(gemm.batch, 1) || gemm.batch.offset != 1 || !is_constant(gemm.k, 1) ||
      gemm.m.bound < 0 || gemm.n.bound < 0)
    return Epilogue::kNone;
  const tn_program& program = *epilogue.site->program;
  const Matcher matcher(program, epilogue.product);
  const int32_t result = program.outputs[0].value;
  if (matcher.is_sum(result)) return Epilogue::kBias;
  return matcher.is_relu(result) ? Epilogue::kBiasRelu : Epilogue::kNone;
}

}  // namespace tenon::cuda
