// Derivative rules of windows over images: convolutions, pooling, resizing; and the windows that are refused.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/error.h"
#include "tests/core/graph_gradient_check.h"

namespace tenon_tests {
namespace {

// A window over images of 5 x 4, with padding that differs on both sides.
tn_window window() {
  tn_window made = {};
  made.size = sizeof made;
  made.rank = 2;
  const int64_t images[] = {5, 4}, kernel[] = {3, 2}, stride[] = {2, 1}, dilation[] = {1, 2}, before[] = {1, 0};
  for (int i = 0; i < 2; ++i) {
    made.images[i] = images[i];
    made.kernel[i] = kernel[i];
    made.stride[i] = stride[i];
    made.dilation[i] = dilation[i];
    made.before[i] = before[i];
    made.after[i] = 1 - before[i];
  }
  return made;
}

// Each operation of a convolution, whose gradients are the other two; with groups.
TEST(GraphGradient, Convolutions) {
  for (const int64_t groups : {1, 2})
    for (const int32_t op : {TN_CONV_RESULTS, TN_CONV_IMAGES, TN_CONV_WEIGHTS}) {
      SCOPED_TRACE(op);
      Built built;
      const ValueId images = built.graph.add_external(f64({samples(), fixed(5), fixed(4), fixed(4)}), "images");
      const ValueId weights =
          built.graph.add_external(f64({fixed(6), fixed(3), fixed(2), fixed(4 / groups)}), "weights");
      const ValueId results = built.graph.add_external(f64({samples(), fixed(2), fixed(3), fixed(6)}), "results");
      const ValueId a = op == TN_CONV_IMAGES ? results : images, b = op == TN_CONV_WEIGHTS ? results : weights;
      built.inputs = {a, b};
      built.output = GraphWriter(built.graph, 0, false, TN_F64).conv(op, window(), groups, a, b);
      const ValueId made = op == TN_CONV_RESULTS ? results : op == TN_CONV_IMAGES ? images : weights;
      EXPECT_EQ(to_string(built.graph.spec(built.output)), to_string(built.graph.spec(made)));
      check(std::move(built));
    }
}

TEST(GraphGradient, Pooling) {
  for (const int32_t op : {TN_POOL_SUM, TN_POOL_SPREAD, TN_POOL_MAX, TN_POOL_SCATTER, TN_POOL_TAKE}) {
    SCOPED_TRACE(op);
    Built built;
    GraphWriter writer(built.graph, 0, false, TN_F64);
    const ValueId images = built.graph.add_external(f64({samples(), fixed(5), fixed(4), fixed(2)}), "images");
    const ValueId results = built.graph.add_external(f64({samples(), fixed(2), fixed(3), fixed(2)}), "results");
    const bool spreads = op == TN_POOL_SPREAD || op == TN_POOL_SCATTER;
    built.inputs = {images};
    if (spreads) built.inputs.push_back(results);
    ValueId positions = kNoValue;
    if (op == TN_POOL_SCATTER || op == TN_POOL_TAKE)
      positions = writer.pool(TN_POOL_MAX, window(), images, kNoValue)[1];
    const ValueId made = writer.pool(op, window(), spreads ? results : images, positions)[0];
    built.output = made;
    if (spreads) {  // so that it depends on the images, too
      ProgramWriter sum;
      sum.output(sum.apply(TN_OP_ADD, sum.input(TN_FULL), sum.input(TN_FULL)));
      built.output = writer.pointwise(std::make_shared<Program>(sum.finish()), {made, images}, 0)[0];
    }
    check(std::move(built));
  }
}

TEST(GraphGradient, Resizing) {
  for (uint32_t flags = 0; flags < 4; ++flags) {
    SCOPED_TRACE(flags);
    Built built;
    const bool transposed = (flags & TN_RESIZE_TRANSPOSED) != 0;
    const tn_resize how = {sizeof how, 2, {3, 4}, {5, 2}, {0.6, 2}, {-0.2, 0.5}, flags, 0};
    const Shape from{samples(), fixed(3), fixed(4), fixed(2)}, to{samples(), fixed(5), fixed(2), fixed(2)};
    const ValueId x = built.graph.add_external(f64(transposed ? to : from), "x");
    built.inputs = {x};
    built.output = GraphWriter(built.graph, 0, false, TN_F64).resize(how, x);
    EXPECT_EQ(to_string(built.graph.spec(built.output).shape), to_string(transposed ? from : to));
    check(std::move(built));
  }
}

// Returns the message of a failure.
template <typename Work>
std::string refusal(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing is wrong";
}

TEST(GraphWriter, RefusesWindowsThatDoNotFit) {
  Built built;
  GraphWriter writer(built.graph, 0, false, TN_F64);
  const ValueId x = built.graph.add_external(f64({samples(), fixed(5), fixed(4), fixed(4)}), "x");
  const ValueId w = built.graph.add_external(f64({fixed(6), fixed(3), fixed(2), fixed(4)}), "w");
  const auto message = [&](auto change) {
    tn_window changed = window();
    change(changed);
    return refusal([&] { writer.conv(TN_CONV_RESULTS, changed, 1, x, w); });
  };
  EXPECT_EQ(message([](tn_window& it) { it.stride[1] = 0; }), "conv: stride 0 of dimension 1; at least 1");
  EXPECT_EQ(message([](tn_window& it) { it.dilation[1] = 5; }),
            "conv: a window of 6 along dimension 1 over images of 5 with their padding");
  EXPECT_EQ(message([](tn_window& it) { it.rank = 4; }), "conv: a window of 4 dimensions; expected 1 to 3");
  EXPECT_EQ(message([](tn_window& it) { it.before[0] = -1; }), "conv: padding -1 of dimension 0; at least 0");
  EXPECT_THAT(message([](tn_window& it) { it.after[0] = INT64_MAX; }), testing::HasSubstr("is too large"));
  EXPECT_THAT(message([](tn_window& it) { it.images[0] = 6; }),
              testing::HasSubstr("expected floats [samples, 6, 4, channels], got float64 [samples, 5, 4, 4]"));
  EXPECT_THAT(message([](tn_window& it) { it.kernel[0] = 2; }),
              testing::HasSubstr("expected floats [filters, 2, 2, channels]"));
  EXPECT_EQ(refusal([&] { writer.conv(TN_CONV_RESULTS, window(), 4, x, w); }),
            "conv of float64 [samples, 5, 4, 4] and float64 [6, 3, 2, 4] in 4 groups: expected 1 channels of weights");
  EXPECT_THAT(refusal([&] { writer.conv(7, window(), 1, x, w); }), testing::HasSubstr("unknown operation 7"));
  tn_window outside = window();
  outside.before[0] = 8;
  EXPECT_EQ(refusal([&] { writer.pool(TN_POOL_MAX, outside, x, kNoValue); }),
            "pool: a window along dimension 0 lies in the padding alone and has no maximum");
  EXPECT_THAT(refusal([&] { writer.pool(TN_POOL_TAKE, window(), x, x); }),
              testing::HasSubstr("expected positions int32"));
  EXPECT_THAT(refusal([&] {
                writer.resize({sizeof(tn_resize), 1, {5}, {0}, {1}, {0}, 0, 0}, x);
              }),
              testing::HasSubstr("from 5 to 0 along dimension 0"));
}

}  // namespace
}  // namespace tenon_tests
