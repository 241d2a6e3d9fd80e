// SPDX-License-Identifier: Apache-2.0
#include "check/definitions/statements.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "check/definitions/statement.h"

namespace tenon::check {

namespace {

constexpr int64_t kLong = 300;   // so that a product is split into blocks
constexpr int64_t kSquare = 64;  // sides of a matrix that pays to be packed

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
  to.push_back({"gemm of long rows",
                {floats({kLong})},
                [](tn::Builder& body, const tn_builder&) {
                  return body.gemm(body.input(0), constant(body, kLong, kHeight)).ref();
                },
                [](const StatementArguments& a) {
                  return mapped(a, kHeight, [&](int64_t r, int64_t c) {
                    return sum_over(kLong, [&](int64_t k) { return in(a, 0, r, k, kLong) * table(k, c); });
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

// Rows of `width` numbers, one row for each segment.
Numbers of_segments(const StatementArguments& a, int64_t width,
                    const std::function<double(int64_t begin, int64_t end, int64_t column)>& at) {
  Numbers result;
  for (size_t i = 0; i + 1 < a.offsets.size(); ++i)
    for (int64_t c = 0; c < width; ++c) result.push_back(at(a.offsets[i], a.offsets[i + 1], c));
  return result;
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
  to.push_back(
      {"gather and segment sum",  // by gather_sum
       {ids("rows")},
       [](tn::Builder& body, const tn_builder&) {
         const tn::Tensor row_ids = body.input(0);
         return body.segment(TN_SEGMENT_SUM, body.gather(constant(body, kHeight, kWidth), row_ids), row_ids.spec()[0])
             .ref();
       },
       [](const StatementArguments& a) {
         return of_segments(a, kWidth, [&](int64_t begin, int64_t end, int64_t c) {
           return sum_over(end - begin,
                           [&](int64_t k) { return table(static_cast<int64_t>(in(a, 0, begin + k, 0, 1)), c); });
         });
       },
       [](const tn::Planner& planner) {
         return tn::Spec({planner.input(0).outer(0), kWidth});
       },
       false,
       "",
       TN_SEGMENT});
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

// Products of rows of a table, [1, kWidth] for each sample, with columns of the input, or with rows of another table.
void add_row_products(std::vector<Statement>& to) {
  const auto rows_of = [](tn::Builder& body, const tn::Tensor& ids) {
    return body.gather(constant(body, kHeight, kWidth), ids.view(tn::Spec({ids.spec()[0], 1})));
  };
  const auto plan = [](const tn::Planner& planner) { return tn::Spec({planner.input(0)[0], 1, 1}); };
  to.push_back({"gemm of gathered rows",
                {floats(), ids()},
                [rows_of](tn::Builder& body, const tn_builder&) {
                  const tn::Tensor x = body.input(0), columns = x.view(tn::Spec({x.spec()[0], kWidth, 1}));
                  return body.gemm(rows_of(body, body.input(0, 1)), columns, 0, 0.5).ref();
                },
                [](const StatementArguments& a) {
                  return mapped(a, 1, [&](int64_t r, int64_t) {
                    const auto row = static_cast<int64_t>(in(a, 1, r, 0, 1));
                    return 0.5 * sum_over(kWidth, [&](int64_t k) { return table(row, k) * in(a, 0, r, k); });
                  });
                },
                plan});
  to.push_back({"gemm of gathered rows and gathered rows",
                {ids(), ids()},
                [rows_of](tn::Builder& body, const tn_builder&) {
                  return body.gemm(rows_of(body, body.input(0)), rows_of(body, body.input(0, 1)), TN_TRANSPOSE_B).ref();
                },
                [](const StatementArguments& a) {
                  return mapped(a, 1, [&](int64_t r, int64_t) {
                    const auto x = static_cast<int64_t>(in(a, 0, r, 0, 1)), y = static_cast<int64_t>(in(a, 1, r, 0, 1));
                    return sum_over(kWidth, [&](int64_t k) { return table(x, k) * table(y, k); });
                  });
                },
                plan});
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

// The place of a row in its segment, sorted from the largest.
double rank(const StatementArguments& a, int64_t row) {
  const auto [begin, end] = segment_of(a, row);
  std::vector<int64_t> order(static_cast<size_t>(end - begin));
  std::iota(order.begin(), order.end(), begin);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t x, int64_t y) { return in(a, 0, x, 0, 1) > in(a, 0, y, 0, 1); });
  return static_cast<double>(std::find(order.begin(), order.end(), row) - order.begin());
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
}

// Integers that follow from the segments, or from the order of their rows.
void add_places(std::vector<Statement>& to) {
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
  for (const int32_t op : {TN_SEGMENT_LENGTH, TN_SEGMENT_START})
    to.push_back(
        {op == TN_SEGMENT_LENGTH ? "segment length" : "segment start",
         {sequences()},
         [op](tn::Builder& body, const tn_builder&) { return body.segment(op, body.input(0).spec()[0]).ref(); },
         [op](const StatementArguments& a) {
           return of_segments(a, 1, [op](int64_t begin, int64_t end, int64_t) {
             return static_cast<double>(op == TN_SEGMENT_LENGTH ? end - begin : begin);
           });
         },
         [](const tn::Planner& planner) { return tn::Spec({planner.input(0).outer(0)}, TN_I64); },
         op == TN_SEGMENT_START});
  to.push_back(
      {"segment rank",
       {sequences({})},
       [](tn::Builder& body, const tn_builder&) {
         const tn::Tensor x = body.input(0);
         return body.segment(TN_SEGMENT_RANK, x, x.spec()[0]).ref();
       },
       [](const StatementArguments& a) { return mapped(a, 1, [&](int64_t r, int64_t) { return rank(a, r); }); },
       [](const tn::Planner& planner) { return planner.input(0).as(TN_I64); }});
}

// Recurrences whose B is large enough to be packed: h_t = small (x_t + h_{t-1}) B, and h_t = x_t + small h_{t-1} B',
// where the sum is an epilogue of the product.
void add_packed(std::vector<Statement>& to) {
  constexpr double kSmall = 1e-4;
  for (const bool fused : {false, true})
    to.push_back({fused ? "gemm with packed b transposed and an epilogue" : "gemm with packed b",
                  {sequences({kSquare})},
                  [fused](tn::Builder& body, const tn_builder&) {
                    const tn::Tensor x = body.input(0), b = constant(body, kSquare, kSquare);
                    body.scan_begin(x.spec()[0]);
                    const tn::Tensor row = body.scan_input(x);
                    const tn::Tensor before = body.scan_memory(tn::Spec({kSquare}, TN_COMPUTE));
                    tn::Program program;
                    program.output(program.full() + program.full());
                    const auto sum = [&](const tn::Tensor& other) {
                      return body.pointwise(program, {row, other}).front();
                    };
                    const tn::Tensor next = fused ? sum(body.gemm(before, b, TN_TRANSPOSE_B, kSmall))
                                                  : body.gemm(sum(before), b, 0, kSmall);
                    body.scan_next(before, next);
                    body.scan_end();
                    return body.scan_output(next).ref();
                  },
                  [fused](const StatementArguments& a) {
                    Numbers states(a.inputs[0].size());
                    for (int64_t r = 0; r < a.offsets.back(); ++r) {
                      const bool begins = r == segment_of(a, r).first;
                      const auto before = [&](int64_t k) {
                        return begins ? 0 : states[static_cast<size_t>((r - 1) * kSquare + k)];
                      };
                      for (int64_t c = 0; c < kSquare; ++c)
                        states[static_cast<size_t>(r * kSquare + c)] =
                            fused ? in(a, 0, r, c, kSquare) +
                                        kSmall * sum_over(kSquare, [&](int64_t k) { return before(k) * table(c, k); })
                                  : kSmall * sum_over(kSquare, [&](int64_t k) {
                                      return (in(a, 0, r, k, kSquare) + before(k)) * table(k, c);
                                    });
                    }
                    return states;
                  }});
}

const std::vector<Statement>& statements() {
  static const std::vector<Statement> all = [] {
    std::vector<Statement> list;
    const auto add = [&list](const char* table, void (*statements_of)(std::vector<Statement>&)) {
      const size_t before = list.size();
      statements_of(list);
      for (size_t i = before; i < list.size(); ++i) list[i].table = table;
    };
    add(TN_POINTWISE, add_pointwise);
    add(TN_GEMM, add_gemm);
    add(TN_GEMM_EPILOGUE, add_epilogues);
    add(TN_GATHER, add_rows);
    add(TN_GATHER_GEMM, add_row_products);
    add(TN_MOVE, add_moves);
    add(TN_ARGSORT, add_argsort);
    add(TN_PREFIX_SUM, add_prefix_sum);
    add(TN_SEGMENT, add_segments);
    add(TN_SEGMENT, add_places);
    add(TN_CONV, add_conv);
    add(TN_CONV_EPILOGUE, add_conv_epilogue);
    add(TN_POOL, add_pool);
    add(TN_RESIZE, add_resize);
    add(TN_PACKED_GEMM, add_packed);  // last: it takes gathers and epilogues, too
    return list;
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
bool is_offered(size_t number, const std::function<bool(const std::string& table)>& has) {
  const Statement& statement = statements()[number];
  return has(statement.table) && (statement.also[0] == 0 || has(statement.also));
}
bool draws(size_t number) { return statements()[number].draws; }
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
    tn_layer_type primitive = *tn::layer_type<Primitive>();
    primitive.lower = lower;
    return primitive;
  }();
  return &type;
}

}  // namespace tenon::check
