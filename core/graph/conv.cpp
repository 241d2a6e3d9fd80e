// Conv: convolutions over images, transposed convolutions, and sums of their weights' gradients.
// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "core/graph/differentiator.h"
#include "core/graph/window.h"

namespace tenon::core {

// The operation makes one of these from the others, which are a and b in this order:
//   images [N, space..., C], weights [F, kernel..., C / groups], results [N, places..., F]
ValueId GraphWriter::conv(int32_t op, const tn_window& window, int64_t groups, ValueId a, ValueId b) {
  if (op < TN_CONV_RESULTS || op > TN_CONV_WEIGHTS) fail(TN_INVALID, "conv: unknown operation ", op);
  check_window("conv", window);
  if (groups < 1) fail(TN_INVALID, "conv: ", groups, " groups; at least 1");
  const Shape images = space_of(window.images, window.rank), places = places_of(window);
  const Spec first = graph_.spec(a), second = graph_.spec(b);
  if (first.dtype != second.dtype)
    fail(TN_INVALID, "conv of ", to_string(first), " and ", to_string(second), ": both need the same float type");
  int64_t channels = 0, filters = 0;
  if (op == TN_CONV_IMAGES) {
    filters = channels_of("conv", first, places);
  } else {
    channels = channels_of("conv", first, images);
  }
  if (op == TN_CONV_WEIGHTS) {
    filters = channels_of("conv", second, places);
    if (!same(first.shape[0], second.shape[0]))
      fail(TN_INVALID, "conv of ", to_string(first), " and ", to_string(second), ": the numbers of samples differ");
  } else {
    const Shape kernel = space_of(window.kernel, window.rank);
    const int64_t inner = channels_of("conv", second, kernel, "filters");
    if (second.shape[0].symbol != TN_SYMBOL_NONE)
      fail(TN_INVALID, "conv: the weights ", to_string(second), " have a varying number of filters");
    const int64_t given = second.shape[0].offset;
    if (op == TN_CONV_IMAGES) {
      channels = inner * groups;
      if (given != filters)
        fail(TN_INVALID, "conv of ", to_string(first), " and ", to_string(second), ": the numbers of filters differ");
    } else {
      filters = given;
      if (inner * groups != channels)
        fail(TN_INVALID, "conv of ", to_string(first), " and ", to_string(second), " in ", groups, " groups: expected ",
             channels % groups == 0 ? channels / groups : 0, " channels of weights");
    }
  }
  if (channels % groups != 0 || filters % groups != 0 || filters < 1)
    fail(TN_INVALID, "conv: ", groups, " groups do not divide ", channels, " channels and ", filters, " filters");
  Spec result{first.dtype, {}, TN_DENSE, 0, {}};
  if (op == TN_CONV_WEIGHTS) {
    result.shape = around(tn_dim_constant(filters), space_of(window.kernel, window.rank), channels / groups);
  } else {
    result.shape =
        op == TN_CONV_IMAGES ? around(first.shape[0], images, channels) : around(first.shape[0], places, filters);
  }
  append(Conv{op, window, groups}, {a, b});
  return output(std::move(result));
}

// A convolution is linear in each operand, and so are its derivatives: each is another of the three operations.
void Conv::derive(Differentiator& gradients, const Node& node) const {
  const ValueId a = node.inputs[0], b = node.inputs[1];
  const ValueId given = gradients.gradient(node.outputs[0]);
  GraphWriter write = gradients.writer(node.layer);
  const auto add = [&](ValueId to, int32_t by, ValueId first, ValueId second) {
    if (gradients.needed(to)) gradients.add(to, write.conv(by, window, groups, first, second), node.layer);
  };
  switch (op) {
    case TN_CONV_RESULTS:  // of images a and weights b
      add(a, TN_CONV_IMAGES, given, b);
      add(b, TN_CONV_WEIGHTS, a, given);
      return;
    case TN_CONV_IMAGES:  // of results a and weights b
      add(a, TN_CONV_RESULTS, given, b);
      add(b, TN_CONV_WEIGHTS, given, a);
      return;
    default:  // of images a and results b
      add(a, TN_CONV_IMAGES, b, given);
      add(b, TN_CONV_RESULTS, a, given);
      return;
  }
}

}  // namespace tenon::core
