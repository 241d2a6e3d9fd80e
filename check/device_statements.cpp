// SPDX-License-Identifier: Apache-2.0
#include "check/device_statements.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <tenon/plugin.hpp>

#include "check/program_reference.h"

namespace tenon::check {

namespace {

constexpr int64_t kWidth = 4, kHeight = 3;

struct Statement {
  std::string name;
  std::vector<InputSpec> inputs;
  std::function<tn_ref(tn::Builder&, const tn_builder&)> lower;
  std::function<Numbers(const StatementArguments&)> value;
  std::function<tn::Spec(const tn::Planner&)> plan = nullptr;  // null: as input 0
  bool couples_samples = false;
  const char* table = "";  // that offers the primitive
};

InputSpec floats(std::vector<int64_t> shape = {kWidth}) {
  InputSpec input;
  input.shape = std::move(shape);
  input.low = 0.25, input.high = 1.75;
  return input;
}
InputSpec ids() {
  InputSpec input;
  input.below = kHeight;
  return input;
}
InputSpec sequences(std::vector<int64_t> shape = {kWidth}) {
  InputSpec input = floats(std::move(shape));
  input.sequence = "rows";
  return input;
}

// ---- pointwise programs

// A program over [rows, kWidth] floats: the opcode applied to its inputs; where it takes bools, to whether their floors
// are not 0; a reduction to `extent`, subtracted from the input.
struct OpcodeProgram {
  std::vector<tn_instruction> code;
  std::vector<tn_program_input> inputs;
  tn_program_output output = {0, TN_COMPUTE};

  OpcodeProgram(uint16_t op, uint8_t extent) {
    const tn_opcode info = tn_op_info(op);
    int32_t operands[3] = {-1, -1, -1};
    const bool selects = info.op_class == TN_CLASS_SELECTION;
    for (int k = 0; k < info.operands; ++k) {
      inputs.push_back({TN_FULL, TN_FLOAT, 0});
      operands[k] = add(TN_OP_INPUT, TN_FLOAT, k);
      if (!(selects ? k == 0 : info.op_class == TN_CLASS_LOGIC)) continue;
      const int32_t floor = add(TN_OP_FLOOR, TN_FLOAT, operands[k]);
      operands[k] = add(TN_OP_CAST, TN_LOGICAL, floor);
    }
    const uint8_t kind = info.result < 0 ? uint8_t{TN_FLOAT} : static_cast<uint8_t>(info.result);
    const uint8_t made = info.op_class == TN_CLASS_LOGIC ? uint8_t{TN_LOGICAL} : kind;
    int32_t result = add(op, made, operands[0], operands[1], operands[2], extent);
    if (made != TN_FLOAT) result = add(TN_OP_CAST, TN_FLOAT, result);
    if (info.op_class == TN_CLASS_REDUCTION) result = add(TN_OP_SUB, TN_FLOAT, operands[0], result);
    output.value = result;
  }
  [[nodiscard]] tn_program get() const {
    return {sizeof(tn_program),
            static_cast<uint32_t>(code.size()),
            code.data(),
            static_cast<uint32_t>(inputs.size()),
            1,
            inputs.data(),
            &output};
  }

 private:
  int32_t add(uint16_t op, uint8_t kind, int32_t a, int32_t b = -1, int32_t c = -1, uint8_t extent = 0) {
    code.push_back({op, kind, extent, a, b, c, 0});
    return static_cast<int32_t>(code.size()) - 1;
  }
};

void add_opcode(std::vector<Statement>& to, uint16_t op, uint8_t extent, const char* suffix) {
  Statement made;
  made.name = std::string("pointwise ") + tn_op_info(op).name + suffix;
  made.couples_samples = extent == TN_PER_COLUMN;
  for (int k = 0; k < tn_op_info(op).operands; ++k) made.inputs.push_back(floats());
  made.lower = [op, extent](tn::Builder& body, const tn_builder& raw) {
    const OpcodeProgram program(op, extent);
    const tn_program view = program.get();
    std::vector<tn_ref> refs;
    for (uint32_t i = 0; i < program.inputs.size(); ++i) refs.push_back(body.input(0, i).ref());
    tn_pointwise call = {};
    call.size = sizeof call;
    call.leading = 1;
    call.program = &view;
    call.inputs = refs.data();
    tn_ref result = -1;
    if (const tn_status status = raw.pointwise(raw.self, &call, &result); status != TN_OK) throw tn::Reported(status);
    return result;
  };
  made.value = [op, extent](const StatementArguments& arguments) {
    const OpcodeProgram program(op, extent);
    return reference::evaluate(program.get(), arguments.samples, kWidth, arguments.inputs).front();
  };
  to.push_back(std::move(made));
}

void add_pointwise(std::vector<Statement>& to) {
  for (uint16_t op = 0; op < 256; ++op) {
    const tn_opcode info = tn_op_info(op);
    const bool of_floats = (info.accepts & (1U << TN_FLOAT)) != 0 || info.op_class == TN_CLASS_LOGIC;
    if (info.op_class < TN_CLASS_ARITHMETIC || !of_floats) continue;
    if (info.op_class == TN_CLASS_REDUCTION) {
      add_opcode(to, op, TN_PER_ROW, " of rows");
      add_opcode(to, op, TN_PER_COLUMN, " of columns");
    } else {
      add_opcode(to, op, 0, "");
    }
  }
}

// ---- products, rows, moves

double table(int64_t row, int64_t column) {
  return 0.25 * static_cast<double>(row) - 0.5 * static_cast<double>(column) + 1;
}

tn::Tensor constant(tn::Builder& body, int64_t rows, int64_t columns) {
  std::vector<double> values;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) values.push_back(table(r, c));
  return body.constant(tn::Spec({rows, columns}), values);
}

Numbers mapped(const StatementArguments& arguments, int64_t width, const std::function<double(int64_t, int64_t)>& at) {
  const int64_t rows = arguments.offsets.empty() ? arguments.samples : arguments.offsets.back();
  Numbers result;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < width; ++c) result.push_back(at(r, c));
  return result;
}
double in(const StatementArguments& arguments, size_t input, int64_t row, int64_t column, int64_t width = kWidth) {
  return arguments.inputs[input][static_cast<size_t>(row * width + column)];
}
double sum_over(int64_t count, const std::function<double(int64_t)>& term) {
  double result = 0;
  for (int64_t i = 0; i < count; ++i) result += term(i);
  return result;
}

void add_gemm(std::vector<Statement>& to) {
  const auto wide = [](const tn::Planner& planner) { return tn::Spec({planner.input(0)[0], kHeight}); };
  to.push_back({"gemm",
                {floats()},
                [](tn::Builder& body, const tn_builder&) {
                  return body.gemm(body.input(0), constant(body, kWidth, kHeight), 0, 0.5).ref();
                },
                [](const StatementArguments& a) {
                  return mapped(a, kHeight, [&](int64_t r, int64_t c) {
                    return 0.5 * sum_over(kWidth, [&](int64_t k) { return in(a, 0, r, k) * table(k, c); });
                  });
                },
                wide});
  to.push_back({"gemm with b transposed",
                {floats()},
                [](tn::Builder& body, const tn_builder&) {
                  return body.gemm(body.input(0), constant(body, kHeight, kWidth), TN_TRANSPOSE_B).ref();
                },
                [](const StatementArguments& a) {
                  return mapped(a, kHeight, [&](int64_t r, int64_t c) {
                    return sum_over(kWidth, [&](int64_t k) { return in(a, 0, r, k) * table(c, k); });
                  });
                },
                wide});
  to.push_back({"gemm with a transposed",
                {floats()},  // x (x' x)
                [](tn::Builder& body, const tn_builder&) {
                  return body.gemm(body.input(0), body.gemm(body.input(0), body.input(0), TN_TRANSPOSE_A)).ref();
                },
                [](const StatementArguments& a) {
                  return mapped(a, kWidth, [&](int64_t r, int64_t c) {
                    return sum_over(kWidth, [&](int64_t k) {
                      return in(a, 0, r, k) *
                             sum_over(a.samples, [&](int64_t s) { return in(a, 0, s, k) * in(a, 0, s, c); });
                    });
                  });
                },
                nullptr,
                true});
}

void add_rows(std::vector<Statement>& to) {
  to.push_back({"gather",
                {ids()},
                [](tn::Builder& body, const tn_builder&) {
                  return body.gather(constant(body, kHeight, kWidth), body.input(0)).ref();
                },
                [](const StatementArguments& a) {
                  return mapped(a, kWidth, [&](int64_t r, int64_t c) {
                    return table(static_cast<int64_t>(in(a, 0, r, 0, 1)), c);
                  });
                },
                [](const tn::Planner& planner) {
                  return tn::Spec({planner.input(0)[0], kWidth});
                }});
  to.push_back({"scatter_add",
                {floats(), ids()},  // then a gather: the sum of the rows with the same id
                [](tn::Builder& body, const tn_builder&) {
                  const tn::Tensor same = body.input(0, 1);
                  return body.gather(body.scatter_add(body.input(0), same, tn::Dim(kHeight)), same).ref();
                },
                [](const StatementArguments& a) {
                  return mapped(a, kWidth, [&](int64_t r, int64_t c) {
                    return sum_over(a.samples, [&](int64_t s) {
                      return in(a, 1, s, 0, 1) == in(a, 1, r, 0, 1) ? in(a, 0, s, c) : 0;
                    });
                  });
                },
                nullptr,
                true});
}

void add_moves(std::vector<Statement>& to) {
  to.push_back({"concat and slice",
                {floats(), floats()},  // the last half of a, then the first of b
                [](tn::Builder& body, const tn_builder&) {
                  return body.slice(body.concat({body.input(0), body.input(0, 1)}, 1), 1, kWidth / 2, kWidth).ref();
                },
                [](const StatementArguments& a) {
                  return mapped(a, kWidth, [&](int64_t r, int64_t c) {
                    return c < kWidth / 2 ? in(a, 0, r, c + kWidth / 2) : in(a, 1, r, c - kWidth / 2);
                  });
                }});
  to.push_back({"pad",
                {floats()},
                [](tn::Builder& body, const tn_builder&) {
                  return body.slice(body.pad(body.input(0), 1, 1, 2), 1, 0, kWidth).ref();
                },
                [](const StatementArguments& a) {
                  return mapped(a, kWidth, [&](int64_t r, int64_t c) { return c == 0 ? 0 : in(a, 0, r, c - 1); });
                }});
  to.push_back({"transpose",
                {floats({2, 3})},
                [](tn::Builder& body, const tn_builder&) {
                  return body.transpose(body.input(0), {0, 2, 1}).ref();
                },
                [](const StatementArguments& a) {
                  return mapped(a, 6, [&](int64_t r, int64_t c) { return in(a, 0, r, c % 2 * 3 + c / 2, 6); });
                },
                [](const tn::Planner& planner) {
                  return tn::Spec({planner.input(0)[0], 3, 2});
                }});
}

void add_argsort(std::vector<Statement>& to) {
  for (const uint32_t flags : {0U, static_cast<uint32_t>(TN_SORT_DESCENDING)})
    to.push_back({flags == 0 ? "argsort" : "argsort from the largest",
                  {floats()},
                  [flags](tn::Builder& body, const tn_builder&) { return body.argsort(body.input(0), flags).ref(); },
                  [flags](const StatementArguments& a) {
                    Numbers result;
                    for (int64_t r = 0; r < a.samples; ++r) {
                      std::vector<int64_t> order(kWidth);
                      std::iota(order.begin(), order.end(), 0);
                      std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) {
                        return flags == 0 ? in(a, 0, r, x) < in(a, 0, r, y) : in(a, 0, r, x) > in(a, 0, r, y);
                      });
                      result.insert(result.end(), order.begin(), order.end());
                    }
                    return result;
                  },
                  [](const tn::Planner& planner) { return planner.input(0).as(TN_I64); }});
}

void add_prefix_sum(std::vector<Statement>& to) {
  for (uint32_t flags = 0; flags < 4; ++flags)
    to.push_back({"prefix_sum with flags " + std::to_string(flags),
                  {floats()},
                  [flags](tn::Builder& body, const tn_builder&) { return body.prefix_sum(body.input(0), flags).ref(); },
                  [flags](const StatementArguments& a) {
                    const bool exclusive = (flags & TN_SUM_EXCLUSIVE) != 0, reverse = (flags & TN_SUM_REVERSE) != 0;
                    return mapped(a, kWidth, [&](int64_t r, int64_t c) {
                      return sum_over(kWidth, [&](int64_t k) {
                        const bool before = reverse ? k > c : k < c;
                        return before || (k == c && !exclusive) ? in(a, 0, r, k) : 0;
                      });
                    });
                  }});
}

// ---- segments

// The segment of a row: its first row and the row behind it.
std::pair<int64_t, int64_t> segment_of(const StatementArguments& arguments, int64_t row) {
  for (size_t i = 0; i + 1 < arguments.offsets.size(); ++i)
    if (row < arguments.offsets[i + 1]) return {arguments.offsets[i], arguments.offsets[i + 1]};
  return {0, 0};
}

void add_segments(std::vector<Statement>& to) {
  for (const int32_t op : {TN_SEGMENT_SUM, TN_SEGMENT_MAX})
    to.push_back({op == TN_SEGMENT_SUM ? "segment sum and broadcast" : "segment max and broadcast",
                  {sequences()},
                  [op](tn::Builder& body, const tn_builder&) {
                    const tn::Tensor x = body.input(0);
                    return body.segment(TN_SEGMENT_BROADCAST, body.segment(op, x, x.spec()[0]), x.spec()[0]).ref();
                  },
                  [op](const StatementArguments& a) {
                    return mapped(a, kWidth, [&](int64_t r, int64_t c) {
                      const auto [begin, end] = segment_of(a, r);
                      double result = op == TN_SEGMENT_SUM ? 0 : -std::numeric_limits<double>::infinity();
                      for (int64_t k = begin; k < end; ++k)
                        result = op == TN_SEGMENT_SUM ? result + in(a, 0, k, c) : std::max(result, in(a, 0, k, c));
                      return result;
                    });
                  }});
  for (const int64_t by : {1, -2})
    to.push_back({"segment shift by " + std::to_string(by),
                  {sequences()},
                  [by](tn::Builder& body, const tn_builder&) {
                    const tn::Tensor x = body.input(0);
                    return body.segment(TN_SEGMENT_SHIFT, x, x.spec()[0], by).ref();
                  },
                  [by](const StatementArguments& a) {
                    return mapped(a, kWidth, [&](int64_t r, int64_t c) {
                      const auto [begin, end] = segment_of(a, r);
                      return r + by >= begin && r + by < end ? in(a, 0, r + by, c) : 0;
                    });
                  }});
  to.push_back({"segment position",
                {sequences()},
                [](tn::Builder& body, const tn_builder&) {
                  return body.segment(TN_SEGMENT_POSITION, body.input(0).spec()[0]).ref();
                },
                [](const StatementArguments& a) {
                  return mapped(a, 1,
                                [&](int64_t r, int64_t) { return static_cast<double>(r - segment_of(a, r).first); });
                },
                [](const tn::Planner& planner) { return tn::Spec({planner.input(0)[0]}, TN_I64); }});
}

const std::vector<Statement>& statements() {
  static const std::vector<Statement> all = [] {
    std::vector<Statement> made;
    const auto add = [&made](const char* table, void (*statements_of)(std::vector<Statement>&)) {
      const size_t before = made.size();
      statements_of(made);
      for (size_t i = before; i < made.size(); ++i) made[i].table = table;
    };
    add(TN_POINTWISE, add_pointwise);
    add(TN_GEMM, add_gemm);
    add(TN_GATHER, add_rows);
    add(TN_MOVE, add_moves);
    add(TN_ARGSORT, add_argsort);
    add(TN_PREFIX_SUM, add_prefix_sum);
    add(TN_SEGMENT, add_segments);
    return made;
  }();
  return all;
}

// ---- the layer

struct Primitive {
  static void describe(tn::LayerDescription& d) {
    d.type("check.primitive", "one primitive");
    d.input("inputs", "those of the statement", TN_PORT_VARIADIC | TN_PORT_ANY);
    d.output("output", "the result");
    d.attribute(tn::int_attribute("number").required().at_least(0).doc("of the statement"));
  }
  static const Statement& of(const tn::Attributes& attributes) {
    return statements().at(static_cast<size_t>(attributes.integer("number")));
  }
  static void plan(tn::Planner& planner) {
    const Statement& statement = of(planner.attributes());
    for (uint32_t i = 0; i < planner.inputs_count(); ++i)
      if (!planner.input(i).is_float()) planner.index_limit(i, kHeight);
    planner.output(0, statement.plan ? statement.plan(planner) : planner.input(0));
  }
};

tn_status lower(const tn_attributes* attributes, const tn_builder* builder) {
  const tn_status status = tn::guarded(builder->errors, [&] {
    tn::Builder body(*builder);
    const tn_ref result = Primitive::of(tn::Attributes(attributes)).lower(body, *builder);
    builder->output(builder->self, 0, result);
  });
  return status != TN_OK ? status : builder->status(builder->self);
}

}  // namespace

size_t statements_count() { return statements().size(); }
std::string statement_name(size_t number) { return statements()[number].name; }
std::string statement_table(size_t number) { return statements()[number].table; }
Numbers stated(size_t number, const StatementArguments& arguments) { return statements()[number].value(arguments); }

LayerCase statement_case(size_t number) {
  LayerCase result;
  result.name = statements()[number].name;
  result.attributes = {{"number", number}};
  result.inputs = statements()[number].inputs;
  result.couples_samples = statements()[number].couples_samples;
  return result;
}

const tn_layer_type* primitive_layer() {
  static const tn_layer_type type = [] {
    tn_layer_type made = *tn::layer_type<Primitive>();
    made.lower = lower;
    return made;
  }();
  return &type;
}

}  // namespace tenon::check
