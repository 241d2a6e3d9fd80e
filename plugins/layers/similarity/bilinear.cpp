// A learned product of two vectors. SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "similarity.h"

namespace tenon::similarity {

namespace {

struct Bilinear {
  static void describe(tn::LayerDescription& d) {
    d.type("bilinear",
           "A bilinear form of two vectors for each output: output_k = sum_ij a_i W_kij b_j + bias_k, with the "
           "parameter weight W [size, D, E]. weight starts uniform in +-1 / sqrt(D), bias at 0.");
    d.input("a", "[samples, D]");
    d.input("b", "[samples, E]");
    d.output("output", "[samples, size]");
    d.attribute(tn::int_attribute("size").required().at_least(1).doc("number of outputs for each sample"));
    d.attribute(tn::bool_attribute("bias", true).doc("whether a bias is added"));
    d.parameter("weight");
    d.parameter("bias");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec a = planner.input_of_rank(0, 2, "[samples, D]"), b = planner.input_of_rank(1, 2, "[samples, E]");
    if (!b[0].same(a[0])) throw planner.bad_input(1, "must have the samples of \"a\"").expected(a);
    const int64_t size = planner.attributes().integer("size");
    const double limit = 1 / std::sqrt(static_cast<double>(planner.elements(0, 1)));
    if (size > INT64_MAX / planner.elements(0, 1)) throw tn::Failure(TN_INVALID, "size", "makes a weight too large");
    planner.parameter("weight", tn::Spec({size, planner.elements(0, 1), planner.elements(1, 1)}),
                      tn::uniform_initializer(-limit, limit));
    if (planner.attributes().flag("bias")) planner.parameter("bias", tn::Spec({size}), tn::constant_initializer(0));
    planner.output(0, tn::Spec({a[0], size}));
  }

  // b [samples, E] times W, read as [size D, E] and transposed, is [samples, size, D], of which each sample takes the
  // product with a [samples, D, 1].
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor a = body.input(0), weight = body.parameter(0);
    const tn::Dim samples = a.spec()[0];
    const int64_t size = weight.spec()[0].offset, d = weight.spec()[1].offset, e = weight.spec()[2].offset;
    const tn::Tensor forms = body.gemm(body.input(1), weight.view(tn::Spec({size * d, e})), TN_TRANSPOSE_B);
    const tn::Tensor products = body.gemm(forms.view(tn::Spec({samples, size, d})), a.view(tn::Spec({samples, d, 1})));
    const tn::Tensor result = products.view(tn::Spec({samples, size}));
    if (!attributes.flag("bias")) return body.output(0, result);
    tn::Program program;
    const tn::Float x = program.full();
    program.output(x + program.per_column());
    body.output(0, body.pointwise(program, {result, body.parameter(1)}).front());
  }
};

}  // namespace

void add_bilinear(tn::Plugin& plugin) { plugin.layer<Bilinear>(); }

}  // namespace tenon::similarity
