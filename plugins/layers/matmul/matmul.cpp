// Products of values. SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.hpp>

#include "einsum.h"

namespace {

struct MatMul {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "matmul",
        "For every sample (and every further leading dimension) the matrix product output = scale op(a) op(b), where "
        "op transposes if told to.");
    d.input("a", "[samples, ..., M, K]; transposed, [samples, ..., K, M]");
    d.input("b", "[samples, ..., K, N]; transposed, [samples, ..., N, K]");
    d.output("output", "[samples, ..., M, N]");
    d.attribute(tn::bool_attribute("transpose_a", false).doc("whether a is stored transposed"));
    d.attribute(tn::bool_attribute("transpose_b", false).doc("whether b is stored transposed"));
    d.attribute(tn::float_attribute("scale", 1).doc("factor of the product"));
  }

  static uint32_t flags(const tn::Attributes& attributes) {
    return (attributes.flag("transpose_a") ? uint32_t{TN_TRANSPOSE_A} : 0U) |
           (attributes.flag("transpose_b") ? uint32_t{TN_TRANSPOSE_B} : 0U);
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec a = planner.input(0);
    const tn::Spec b = planner.input(1);
    if (a.rank() < 3) throw planner.bad_input(0, "must be [samples, ..., M, K]");
    if (b.rank() != a.rank()) throw planner.bad_input(1, "must have as many dimensions as \"a\"").expected(a);
    const uint32_t how = flags(planner.attributes());
    const bool ta = (how & TN_TRANSPOSE_A) != 0;
    const bool tb = (how & TN_TRANSPOSE_B) != 0;
    const int32_t rank = a.rank();
    tn::Spec fitting = a.leading(rank - 2);
    fitting.push_back(tb ? b[rank - 2] : a[rank - (ta ? 2 : 1)]);
    fitting.push_back(tb ? a[rank - (ta ? 2 : 1)] : b[rank - 1]);
    if (!b.same_shape(fitting)) throw planner.bad_input(1, "does not fit \"a\" for a product").expected(fitting);
    tn::Spec output = a.leading(rank - 2);
    output.push_back(a[rank - (ta ? 1 : 2)]);
    output.push_back(b[rank - (tb ? 2 : 1)]);
    planner.output(0, output);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    body.output(0, body.gemm(body.input(0), body.input(1), flags(attributes), attributes.number("scale")));
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.matmul", "0.1.0", "Products of values", "Apache-2.0");
  plugin.layer<MatMul>();
  tenon::matmul::add_einsum(plugin);
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
