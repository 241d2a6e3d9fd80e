// SPDX-License-Identifier: Apache-2.0
#include "check/definitions/program_reference.h"
#include "check/definitions/statement.h"

namespace tenon::check {

namespace {

// What is asked of an opcode.
struct Opcode {
  uint16_t op;
  uint8_t kind;        // of its operands, TN_FLOAT or TN_INT
  uint8_t extent = 0;  // of a reduction, a draw
  int64_t columns = kWidth;
};

// A program over [rows, columns] floats: the opcode applied to its inputs x. As ints it gets the whole part of
// 8 (x - 1); where it takes bools, whether the floors of x are not 0. A reduction is subtracted from what it reduces,
// an index or a draw added to x.
class OpcodeProgram {
 public:
  explicit OpcodeProgram(const Opcode& opcode) : of_(opcode) {
    const tn_opcode info = tn_op_info(opcode.op);
    const bool selects = info.op_class == TN_CLASS_SELECTION, logic = info.op_class == TN_CLASS_LOGIC;
    int32_t operands[3] = {-1, -1, -1};
    for (int k = 0; k < info.operands; ++k) operands[k] = operand(k, selects ? k == 0 : logic);
    if (opcode.op == TN_OP_UNIFORM) operands[0] = 0;  // its number
    const auto result_kind = static_cast<uint8_t>(info.result < 0 ? opcode.kind : info.result);
    const uint8_t kind = logic ? uint8_t{TN_LOGICAL} : result_kind;
    int32_t result = add(opcode.op, kind, operands[0], operands[1], operands[2], opcode.extent);
    if (info.op_class == TN_CLASS_REDUCTION) result = add(TN_OP_SUB, kind, operands[0], result);
    if (kind != TN_FLOAT) result = add(TN_OP_CAST, TN_FLOAT, result);
    if (info.op_class == TN_CLASS_SOURCE || info.op_class == TN_CLASS_RANDOM)
      result = add(TN_OP_ADD, TN_FLOAT, input(0), result);
    output_.value = result;
  }
  [[nodiscard]] tn_program get() const {
    return {sizeof(tn_program),
            static_cast<uint32_t>(code_.size()),
            code_.data(),
            static_cast<uint32_t>(inputs_.size()),
            1,
            inputs_.data(),
            &output_};
  }

 private:
  int32_t add(uint16_t op, uint8_t kind, int32_t a, int32_t b = -1, int32_t c = -1, uint8_t extent = 0,
              double number = 0) {
    code_.push_back({op, kind, extent, a, b, c, number});
    return static_cast<int32_t>(code_.size()) - 1;
  }
  int32_t constant(double number) { return add(TN_OP_CONSTANT, TN_FLOAT, -1, -1, -1, 0, number); }
  int32_t input(int32_t number) {
    inputs_.push_back({TN_FULL, TN_FLOAT, 0});
    return add(TN_OP_INPUT, TN_FLOAT, number);
  }
  int32_t operand(int32_t number, bool logical) {
    const int32_t x = input(number);
    if (logical) return add(TN_OP_CAST, TN_LOGICAL, add(TN_OP_FLOOR, TN_FLOAT, x));
    if (of_.kind == TN_FLOAT) return x;
    const int32_t moved = add(TN_OP_SUB, TN_FLOAT, x, constant(1));
    return add(TN_OP_CAST, TN_INT, add(TN_OP_MUL, TN_FLOAT, moved, constant(8)));
  }

  Opcode of_;
  std::vector<tn_instruction> code_;
  std::vector<tn_program_input> inputs_;
  tn_program_output output_ = {0, TN_COMPUTE};
};

tn_ref record(const Opcode& opcode, tn::Builder& body, const tn_builder& raw) {
  const OpcodeProgram program(opcode);
  const tn_program view = program.get();
  std::vector<tn_ref> refs;
  for (uint32_t i = 0; i < view.inputs_count; ++i) refs.push_back(body.input(0, i).ref());
  tn_pointwise call = {};
  call.size = sizeof call;
  call.leading = 1;
  call.program = &view;
  call.inputs = refs.data();
  tn_ref result = -1;
  if (const tn_status status = raw.pointwise(raw.self, &call, &result); status != TN_OK) throw tn::Reported(status);
  return result;
}

void add_opcode(std::vector<Statement>& to, const Opcode& opcode, const std::string& suffix = "") {
  Statement statement;
  statement.name =
      std::string("pointwise ") + tn_op_info(opcode.op).name + (opcode.kind == TN_INT ? " of ints" : "") + suffix;
  statement.draws = opcode.op == TN_OP_UNIFORM;
  statement.couples_samples = opcode.extent == TN_PER_COLUMN || opcode.op == TN_OP_ROW || opcode.op == TN_OP_UNIFORM;
  for (uint32_t i = 0; i < OpcodeProgram(opcode).get().inputs_count; ++i)
    statement.inputs.push_back(floats({opcode.columns}));
  statement.lower = [opcode](tn::Builder& body, const tn_builder& raw) { return record(opcode, body, raw); };
  statement.value = [opcode](const StatementArguments& arguments) {
    const OpcodeProgram program(opcode);
    return reference::evaluate(program.get(), arguments.samples, opcode.columns, arguments.inputs, {kMachineSeed, 0})
        .front();
  };
  to.push_back(std::move(statement));
}

tn::Spec as_product(const tn::Planner& planner) { return tn::Spec({planner.input(0)[0], kHeight}); }

// The products that the epilogues read: x T, whose element is `product`.
tn::Tensor product(tn::Builder& body) { return body.gemm(body.input(0), constant(body, kWidth, kHeight)); }
double product(const StatementArguments& a, int64_t row, int64_t column) {
  return sum_over(kWidth, [&](int64_t k) { return in(a, 0, row, k) * table(k, column); });
}

}  // namespace

void add_pointwise(std::vector<Statement>& to) {
  for (uint16_t op = 0; op < 256; ++op)
    for (const uint8_t kind : {uint8_t{TN_FLOAT}, uint8_t{TN_INT}}) {
      const tn_opcode info = tn_op_info(op);
      const bool takes = (info.accepts & (1U << kind)) != 0 || (info.op_class == TN_CLASS_LOGIC && kind == TN_FLOAT);
      if (info.op_class < TN_CLASS_ARITHMETIC || !takes) continue;
      if (info.op_class == TN_CLASS_REDUCTION) {
        add_opcode(to, {op, kind, TN_PER_ROW}, " of rows");
        add_opcode(to, {op, kind, TN_PER_COLUMN}, " of columns");
      } else {
        add_opcode(to, {op, kind});
      }
    }
  add_opcode(to, {TN_OP_REDUCE_SUM, TN_FLOAT, TN_PER_ROW, 700}, " of long rows");
  add_opcode(to, {TN_OP_ROW, TN_FLOAT});
  add_opcode(to, {TN_OP_COLUMN, TN_FLOAT});
  for (const auto& [extent, suffix] :
       {std::pair{TN_FULL, ""}, std::pair{TN_PER_ROW, " of rows"}, std::pair{TN_PER_COLUMN, " of columns"}})
    add_opcode(to, {TN_OP_UNIFORM, TN_FLOAT, static_cast<uint8_t>(extent)}, suffix);
}

void add_epilogues(std::vector<Statement>& to) {
  to.push_back({"gemm with an epilogue of elements",
                {floats()},
                [](tn::Builder& body, const tn_builder&) {
                  tn::Program p;
                  const tn::Float c = p.full(), added = p.per_column();
                  p.output(tanh(c * 0.25 + added));
                  const tn::Tensor bias =
                      body.constant(tn::Spec({kHeight}), std::vector<double>{table(0, 0), table(0, 1), table(0, 2)});
                  return body.pointwise(p, {product(body), bias}).front().ref();
                },
                [](const StatementArguments& a) {
                  return mapped(a, kHeight,
                                [&](int64_t r, int64_t c) { return std::tanh(0.25 * product(a, r, c) + table(0, c)); });
                },
                as_product,
                false,
                "",
                TN_POINTWISE});
  to.push_back({"gemm with an epilogue of rows",
                {floats()},
                [](tn::Builder& body, const tn_builder&) {
                  tn::Program p;
                  const tn::Float c = p.full();
                  p.output(c - sum_per_row(c));
                  return body.pointwise(p, {product(body)}).front().ref();
                },
                [](const StatementArguments& a) {
                  return mapped(a, kHeight, [&](int64_t r, int64_t c) {
                    return product(a, r, c) - sum_over(kHeight, [&](int64_t k) { return product(a, r, k); });
                  });
                },
                as_product,
                false,
                "",
                TN_POINTWISE});
}

}  // namespace tenon::check
