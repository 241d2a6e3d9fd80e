// Products of vectors: dot, cosine, bilinear forms, and all pairs of a factorization machine.
// SPDX-License-Identifier: Apache-2.0
#include "similarity.h"

#include <tenon/plugin.hpp>

namespace {

using tn::Float;

enum { kA = 0, kB = 1 };

// Layers of pairs of vectors: a with one vector b, or with each of several vectors b.
struct OfVectors {
  static void describe_ports(tn::LayerDescription& d) {
    d.input("a", "[samples, ..., D]: a vector for each row");
    d.input("b", "the shape of a: one vector for each row; or [samples, ..., n, D]: n vectors for each row");
    d.output("output", "one number for each vector of b: [samples, ...], or [samples, ..., n]");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec a = planner.input(kA);
    const tn::Spec b = planner.input(kB);
    if (a.rank() < 2) throw planner.bad_input(kA, "must be [samples, ..., D]");
    const int32_t rows = a.rank() - 1;
    planner.elements(kA, rows);
    const bool several = b.rank() == a.rank() + 1;
    const bool fits = several ? b.leading(rows).same_shape(a.leading(rows)) && b.back().same(a.back())  //
                              : b.same_shape(a);
    if (!fits)
      throw planner.bad_input(kB, "must have the shape of \"a\", or one dimension more before the last").expected(a);
    planner.elements(kB, rows);
    planner.output(0, b.leading(b.rank() - 1));
  }

  // a [..., D], b [..., n, D] -> [..., n]: the product of a with each vector b, a batched gemm with a as [..., D, 1].
  static tn::Tensor products(tn::Builder& body, const tn::Tensor& a, const tn::Tensor& b) {
    tn::Spec column = a.spec();
    column.push_back(1);
    return body.gemm(b, a.view(column)).view(b.spec().leading(b.spec().rank() - 1));
  }
};

struct Dot : OfVectors {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "dot",
        "The product of two vectors for each row, sum_k a_k b_k; with several vectors b for each row, that of a with "
        "each of them.");
    describe_ports(d);
  }

  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Tensor a = body.input(kA), b = body.input(kB);
    if (b.spec().rank() > a.spec().rank()) return body.output(0, products(body, a, b));
    tn::Program program;
    const Float x = program.full();
    program.output(sum_per_row(x * program.full()));
    body.output(0, body.pointwise(program, {a, b}, a.spec().rank() - 1).front());
  }
};

struct CosSim : OfVectors {
  static void describe(tn::LayerDescription& d) {
    d.type("cos_sim",
           "The cosine of the angle between two vectors for each row, times scale: scale sum_k a_k b_k / (|a| |b|), "
           "where |.| is the Euclidean length; with several vectors b for each row, that of a and each of them. Where "
           "one of the vectors is no longer than epsilon the output is 0, and so is its derivative (Salton, Wong and "
           "Yang, \"A vector space model for automatic indexing\", 1975).");
    describe_ports(d);
    d.attribute(tn::float_attribute("scale", 1).doc("factor of the cosine"));
    d.attribute(
        tn::float_attribute("epsilon", 1e-8).at_least(1e-18).doc("length up to which a vector has no direction"));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor a = body.input(kA), b = body.input(kB);
    const int32_t rows = a.spec().rank() - 1;
    if (b.spec().rank() == a.spec().rank()) {
      tn::Program program;
      const Float x = program.full(), y = program.full();
      program.output(cosine(attributes, sum_per_row(x * y), sum_per_row(x * x), sum_per_row(y * y)));
      return body.output(0, body.pointwise(program, {a, b}, rows).front());
    }
    tn::Program program;
    const Float product = program.full(), aa = program.per_row();
    program.output(cosine(attributes, product, aa, program.full()));
    body.output(0, body.pointwise(program, {products(body, a, b), squares(body, a), squares(body, b)}, rows).front());
  }

 private:
  // The cosine from the product and the squared lengths. The lengths are bounded below, so that no derivative divides
  // by 0, not even one that select discards.
  static Float cosine(const tn::Attributes& attributes, const Float& product, const Float& aa, const Float& bb) {
    const double epsilon = attributes.number("epsilon");
    const double least = epsilon * epsilon;
    const Float lengths = sqrt(max(aa, least)) * sqrt(max(bb, least));
    return select(aa > least && bb > least, attributes.number("scale") * product / lengths, 0.0);
  }
  // vectors [..., D] -> [...]: the squared lengths.
  static tn::Tensor squares(tn::Builder& body, const tn::Tensor& vectors) {
    tn::Program program;
    const Float x = program.full();
    program.output(sum_per_row(x * x));
    return body.pointwise(program, {vectors}, vectors.spec().rank() - 1).front();
  }
};

struct FactorizationMachine {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "factorization_machine",
        "The interactions of all pairs of features: output = sum_{i < j} <v_i, v_j> x_i x_j, where v_i, row i of "
        "weight [n, factors], stands for feature i; computed in time n factors as 1/2 sum_f ((sum_i x_i v_if)^2 - "
        "sum_i x_i^2 v_if^2) (Rendle, \"Factorization machines\", 2010, lemma 3.1). The linear part of that model is "
        "an fc: add(fc(x, size = 1), factorization_machine(x, factors = k)). Of a sparse input only the rows of "
        "weight that it names are read, and have a gradient; a duplicate id in a sample counts as two features "
        "with one vector. The weight starts normal with deviation 0.01.");
    d.input("input", "[samples, ...]: the features x; all dimensions after the first are flattened to n",
            TN_PORT_SPARSE);
    d.output("output", "[samples, 1]");
    d.attribute(tn::int_attribute("factors").required().at_least(1).doc("how many numbers stand for a feature"));
    d.parameter("weight");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0);
    if (input.rank() == 0) throw planner.bad_input(0, "must have a dimension for the samples");
    const int64_t factors = planner.attributes().integer("factors");
    planner.parameter("weight", tn::Spec({planner.elements(0, 1), factors}), tn::normal_initializer(0, 0.01),
                      input.storage() == TN_CSR ? TN_PARAMETER_SPARSE_GRADIENT : 0);
    planner.output(0, tn::Spec({input[0], 1}));
  }

  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Tensor weight = body.parameter(0), input = body.input(0);
    const std::optional<tn::Tensor> values = body.weights(input);
    const Parts parts = values ? of_sparse(body, input, *values, weight) : of_dense(body, input, weight);
    tn::Program pairs;
    const Float sum = pairs.full();
    pairs.output(0.5 * (sum_per_row(sum * sum) - pairs.per_row()));
    const tn::Tensor result = body.pointwise(pairs, {parts.sums, parts.own}).front();
    body.output(0, result.view(tn::Spec({result.spec()[0], 1})));
  }

 private:
  // For each sample: sums [samples, factors] = sum_i x_i v_i, and own [samples] = sum_i x_i^2 |v_i|^2, which is
  // subtracted.
  struct Parts {
    tn::Tensor sums, own;
  };

  // input [samples, ...], x [samples, n], weight [n, factors].
  static Parts of_dense(tn::Builder& body, const tn::Tensor& input, const tn::Tensor& weight) {
    const tn::Tensor x = input.view(tn::Spec({input.spec()[0], weight.spec()[0]}));
    // lengths [n] = sum_f v_if^2, so that own is a sum over features alone.
    tn::Program squares;
    const Float v = squares.full();
    squares.output(sum_per_row(v * v));
    tn::Program own;
    const Float feature = own.full();
    own.output(sum_per_row(feature * feature * own.per_column()));
    const tn::Tensor lengths = body.pointwise(squares, {weight}).front();
    return {body.gemm(x, weight), body.pointwise(own, {x, lengths}).front()};
  }

  // ids and values [entries], concatenated samples; weight [n, factors], of which the rows `ids` are gathered.
  static Parts of_sparse(tn::Builder& body, const tn::Tensor& ids, const tn::Tensor& values, const tn::Tensor& weight) {
    const tn::Dim entries = ids.spec()[0];
    tn::Program program;
    const Float v = program.full();
    const Float term = v * program.per_row();
    program.output(term);
    program.output(sum_per_row(term * term));
    const std::vector<tn::Tensor> terms = body.pointwise(program, {body.gather(weight, ids), values});
    return {body.segment(TN_SEGMENT_SUM, terms[0], entries), body.segment(TN_SEGMENT_SUM, terms[1], entries)};
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.similarity", "0.1.0", "Products and distances of vectors", "Apache-2.0");
  plugin.layer<Dot>();
  plugin.layer<CosSim>();
  plugin.layer<FactorizationMachine>();
  tenon::similarity::add_bilinear(plugin);
  tenon::similarity::add_distance(plugin);
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
