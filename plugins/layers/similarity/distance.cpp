// Distances of all pairs of vectors, and the circular convolution; both expand. SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "similarity.h"

namespace tenon::similarity {

namespace {

struct Cdist {
  static void describe(tn::LayerDescription& d) {
    d.type("cdist",
           "The distance of each vector of a to each vector of b: output_pr = |a_p - b_r|, the root of the sum of "
           "squares, or with order 1 the sum of absolute values. Where it is 0, so is its derivative. Differences are "
           "taken before squares, so that small distances of long vectors are right.");
    d.input("a", "[samples, P, D]");
    d.input("b", "[samples, R, D]");
    d.output("output", "[samples, P, R]");
    d.attribute(tn::int_attribute("order", 2).at_least(1).at_most(2).doc("2: Euclidean; 1: absolute values"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec a = planner.input_of_rank(0, 3, "[samples, P, D]"),
                   b = planner.input_of_rank(1, 3, "[samples, R, D]");
    planner.elements(0, 1);
    planner.elements(1, 1);
    if (!b[0].same(a[0]) || !b[2].same(a[2]))
      throw planner.bad_input(1, "must have samples and vectors like those of \"a\"").expected(a);
    planner.output(0, tn::Spec({a[0], a[1], b[1]}));
  }

  static bool expand(tn::Expander& expander) {
    const tn_ref a = expander.layer("unsqueeze", {expander.input(0)}, {{"axis", tn::int_value(2)}});
    const tn_ref b = expander.layer("unsqueeze", {expander.input(1)}, {{"axis", tn::int_value(1)}});
    const int64_t order = expander.attributes().integer("order");
    expander.output(0, expander.layer("norm", {expander.layer("sub", {a, b})},
                                      {{"axis", tn::int_value(-1)}, {"order", tn::int_value(order)}}));
    return true;
  }
};

struct ConvShift {
  static void describe(tn::LayerDescription& d) {
    d.type("conv_shift",
           "The circular convolution of a with a short b, which moves and blurs a: output_i = sum_j "
           "a_(i + j - (M - 1) / 2) b_j, where positions of a are taken modulo N (Graves, Wayne and Danihelka, "
           "\"Neural Turing machines\", 2014, equation 8; conv_shift_layer of Paddle v2).");
    d.input("a", "[samples, N]");
    d.input("b", "[samples, M], M odd");
    d.output("output", "[samples, N]");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec a = planner.input_of_rank(0, 2, "[samples, N]"), b = planner.input_of_rank(1, 2, "[samples, M]");
    if (!b[0].same(a[0])) throw planner.bad_input(1, "must have the samples of \"a\"").expected(a);
    if (planner.elements(1, 1) % 2 == 0) throw planner.bad_input(1, "must have an odd number of elements");
    if (planner.elements(0, 1) > kMostPositions / planner.elements(1, 1))
      throw planner
          .bad_input(1, "makes more than " + std::to_string(kMostPositions) + " products for a sample", TN_UNSUPPORTED)
          .expected(a);
    planner.output(0, a);
  }

  // Row i of a matrix for each sample holds the elements of a that b meets at i.
  static bool expand(tn::Expander& expander) {
    const int64_t n = expander.spec(0)[1].offset, m = expander.spec(1)[1].offset;
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < m; ++j) positions.push_back(((i + j - (m - 1) / 2) % n + n) % n);
    const tn_ref elements =
        expander.layer("index_select", {expander.input(0)}, {{"indices", tn::ints_value(positions)}});
    const std::vector<int64_t> shape{n, m};
    const tn_ref rows = expander.layer("reshape", {elements}, {{"shape", tn::ints_value(shape)}});
    expander.output(0,
                    expander.layer("einsum", {rows, expander.input(1)}, {{"equation", tn::string_value("ij,j->i")}}));
    return true;
  }

 private:
  static constexpr int64_t kMostPositions = int64_t{1} << 24;  // each is a number of 64 bits in the model's memory
};

}  // namespace

void add_distance(tn::Plugin& plugin) {
  plugin.layer<Cdist>();
  plugin.layer<ConvShift>();
}

}  // namespace tenon::similarity
