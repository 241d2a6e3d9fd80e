// Broadcasting to a given shape. SPDX-License-Identifier: Apache-2.0
#include <string>

#include "broadcast.h"

namespace tenon::arithmetic {

namespace {

struct Expand {
  static void describe(tn::LayerDescription& d) {
    d.type("expand",
           "Repeats the input to a shape by NumPy's rules of broadcasting: the dimensions of a sample are aligned at "
           "the end, and a missing dimension or one of 1 repeats. (Layers of several values do this themselves, mostly "
           "without a copy.)");
    d.input("input", "[samples, ...]");
    d.output("output", "[samples, shape...]");
    d.attribute(
        tn::ints_attribute("shape").required().at_least(-1).doc("of a sample; -1: the length that the input has"));
  }

  static tn::Spec shape_of(const tn::Attributes& attributes, const tn::Spec& input) {
    const std::vector<int64_t> sizes = attributes.integers("shape");
    const int32_t missing = static_cast<int32_t>(sizes.size()) + 1 - input.rank();
    tn::Spec result = input.leading(1);
    for (size_t i = 0; i < sizes.size(); ++i)
      result.push_back(sizes[i] >= 0 ? tn::Dim(sizes[i]) : input[static_cast<int32_t>(i) + 1 - missing]);
    return result;
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0).as(TN_COMPUTE);
    if (input.rank() == 0) throw planner.bad_input(0, "must have a dimension for the samples");
    const std::vector<int64_t> sizes = planner.attributes().integers("shape");
    if (sizes.size() >= TN_MAX_RANK)
      throw tn::Failure(TN_UNSUPPORTED, "shape", "has more than " + std::to_string(TN_MAX_RANK - 1) + " dimensions");
    const int64_t missing = static_cast<int64_t>(sizes.size()) + 1 - input.rank();
    bool fits = missing >= 0;
    for (size_t i = 0; fits && i < sizes.size(); ++i) {
      const int64_t own = static_cast<int64_t>(i) + 1 - missing;  // the dimension of the input; below 1: none
      const bool repeats = own < 1 || input[static_cast<int32_t>(own)].same(1);
      fits = sizes[i] < 0 ? own >= 1 : repeats || input[static_cast<int32_t>(own)].same(sizes[i]);
    }
    tn::Spec wanted = input.leading(1);
    for (const int64_t size : sizes) wanted.push_back(size);
    if (!fits) throw planner.bad_input(0, "cannot be broadcast to \"shape\"").expected(wanted);
    int64_t elements = 1;
    const tn::Spec output = shape_of(planner.attributes(), input);
    for (int32_t i = 1; i < output.rank(); ++i) {
      if (!output[i].is_constant()) throw planner.bad_input(0, "varies along an axis after the samples");
      if (output[i].offset > 0 && elements > INT64_MAX / output[i].offset)
        throw tn::Failure(TN_INVALID, "shape", "has too many elements");
      elements *= output[i].offset;
    }
    planner.output(0, output);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    body.output(0, broadcast_to(body, input, shape_of(attributes, input.spec())));
  }
};

}  // namespace

void add_expand(tn::Plugin& plugin) { plugin.layer<Expand>(); }

}  // namespace tenon::arithmetic
