// Costs of classification among very many classes, which compute a few scores of each sample instead of all: those of
// the label and of drawn classes, or those of the nodes on the way to a leaf of a tree.
// SPDX-License-Identifier: Apache-2.0
#include <tenon/elementary.h>

#include <cmath>
#include <string>
#include <tenon/plugin.hpp>

namespace {

using tn::Float;
using tn::Int;

enum { kInput = 0, kLabel = 1 };  // inputs
enum { kWeight = 0, kBias = 1 };  // parameters

// log(1 + exp(z)) without overflow and without loss of small values, and its derivative.
Float softplus(const Float& z) { return max(z, 0) + log1p(exp(-abs(z))); }
Float softplus_slope(const Float& z) { return 1 / (1 + exp(-z)); }

// Layers with a table weight [rows, D] and bias [rows]: a score for each row.
struct OfRows {
  static void describe_ports(tn::LayerDescription& d) {
    d.role(TN_ROLE_COST);
    d.input("input", "[samples, ...]: all dimensions after the first are flattened to D");
    d.input("label", "[samples], integers: the number of the right class, from 0", TN_PORT_INTEGER);
    d.output("output", "[samples]: the cost of each");
    d.attribute(tn::bool_attribute("bias", true).doc("whether scores have a bias"));
    d.parameter("weight");
    d.parameter("bias");
  }

  static void plan_rows(tn::Planner& planner, int64_t classes, int64_t rows, double first_bias) {
    const tn::Spec input = planner.input(kInput);
    if (input.rank() == 0) throw planner.bad_input(kInput, "must have a dimension for the samples");
    const int64_t depth = planner.elements(kInput, 1);
    planner.require_per_row(kLabel, input.leading(1));
    planner.index_limit(kLabel, classes);
    planner.parameter("weight", tn::Spec({rows, depth}), tn::glorot_uniform(depth, rows), TN_PARAMETER_SPARSE_GRADIENT);
    if (planner.attributes().flag("bias"))
      planner.parameter("bias", tn::Spec({rows}), tn::constant_initializer(first_bias));
    planner.output(0, tn::Spec({input[0]}));
  }

  // The labels as a grid int [samples, columns] on which ids are computed: column 0 is the label, the others are 0.
  static tn::Tensor grid(tn::Builder& body, int64_t columns) {
    const tn::Tensor label = body.input(kLabel);
    return body.pad(label.view(tn::Spec({label.spec()[0], 1})), 1, 0, columns - 1);
  }

  // ids [samples, n], input [samples, D] -> [samples, n]: weight[id] . input + bias[id], as a batched gemm of the
  // gathered rows [samples, n, D] with the input [samples, D, 1].
  static tn::Tensor scores(const tn::Attributes& attributes, tn::Builder& body, const tn::Tensor& ids) {
    const tn::Tensor weight = body.parameter(kWeight);
    const tn::Tensor input = body.input(kInput).view(tn::Spec({ids.spec()[0], weight.spec()[1], 1}));
    const tn::Tensor products = body.gemm(body.gather(weight, ids), input).view(ids.spec());
    if (!attributes.flag("bias")) return products;
    tn::Program add;
    const Float product = add.full();
    add.output(product + add.full());
    return body.pointwise(add, {products, body.gather(body.parameter(kBias), ids)}).front();
  }
};

struct Nce : OfRows {
  // Draws are multiples of 2^-24.
  static constexpr double kMostClasses = 1 << 24;

  static void describe(tn::LayerDescription& d) {
    d.type("nce",
           "Noise-contrastive estimation of a softmax over many classes: each sample has its label told from k classes "
           "that are drawn from a known distribution q. With s_c = weight_c . x + bias_c - log(k q(c)) the cost is "
           "log(1 + exp(-s_label)) + sum over the drawn of log(1 + exp(s_c)) (Gutmann and Hyvarinen, \"Noise-"
           "contrastive estimation\", 2010; Mnih and Teh, \"A fast and simple algorithm for training neural "
           "probabilistic language models\", 2012, with the normaliser of the model taken as 1). Of uniform noise q(c) "
           "= 1 / num_classes and c = floor(u num_classes); of log_uniform, for classes in the order of their "
           "frequency, q(c) = log((c + 2) / (c + 1)) / log(num_classes + 1) and c = floor((num_classes + 1)^u) - 1, "
           "with u uniform in [0, 1). Noise is drawn anew for each sample and step and may hit the label. A machine "
           "that only answers gives the same sampled cost. Only rows that were used have a gradient. weight is "
           "[num_classes, D]; bias is [num_classes] and starts at -log(num_classes), so that the normaliser starts "
           "at about 1. All scores, whose exp is about the probability, are mixed(x, size = num_classes, projections "
           "= [\"transposed\"], bias = true) under the same parameter_name.");
    describe_ports(d);
    d.attribute(tn::int_attribute("num_classes").required().at_least(2).at_most(kMostClasses).doc("how many classes"));
    d.attribute(
        tn::int_attribute("num_negative", 10).at_least(1).at_most(65536).doc("classes drawn for each sample, k"));
    d.attribute(tn::string_attribute("noise", "uniform")
                    .one_of({"uniform", "log_uniform"})
                    .doc("the distribution of the drawn classes"));
  }

  static void plan(tn::Planner& planner) {
    const int64_t classes = planner.attributes().integer("num_classes");
    plan_rows(planner, classes, classes, -tn_math_log(static_cast<double>(classes)));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor ids = candidates(attributes, body);
    tn::Program cost;
    const Float score = cost.full();
    cost.output(sum_per_row(softplus(wrong(attributes, cost, score, cost.full<Int>()))));
    tn::GradientProgram backward(cost);
    const Int id = backward.input<Int>(1);
    const Float slope = backward.result_gradient() * softplus_slope(wrong(attributes, backward, backward.input(0), id));
    backward.output(select(backward.column() == 0, -slope, slope));
    backward.output(backward.constant(0));
    body.output(0, body.pointwise(cost, {scores(attributes, body, ids), ids}, 1, &backward).front());
  }

 private:
  static bool is_uniform(const tn::Attributes& attributes) {
    return attributes.text("noise") == std::string("uniform");
  }

  // int [samples, 1 + k]: the label, then k drawn classes.
  static tn::Tensor candidates(const tn::Attributes& attributes, tn::Builder& body) {
    const auto classes = static_cast<double>(attributes.integer("num_classes"));
    tn::Program program;
    const Int label = program.full<Int>();
    const Float u = program.uniform(0);
    const Float drawn = is_uniform(attributes) ? u * classes : expm1(u * tn_math_log(classes + 1));
    const Int noise = min(to_int(drawn), attributes.integer("num_classes") - 1);  // a product may round up
    program.output(select(program.column() == 0, label, noise));
    return body.pointwise(program, {grid(body, 1 + attributes.integer("num_negative"))}).front();
  }

  // The argument of softplus in the cost, [samples, 1 + k]: -s of the label in column 0, s of the drawn classes.
  static Float wrong(const tn::Attributes& attributes, tn::Program& program, const Float& score, const Int& id) {
    const auto classes = static_cast<double>(attributes.integer("num_classes"));
    const auto negative = static_cast<double>(attributes.integer("num_negative"));
    const Float s = is_uniform(attributes)
                        ? score - tn_math_log(negative / classes)
                        : score - log(negative / tn_math_log(classes + 1) * log1p(1 / (to_float(id) + 1)));
    return select(program.column() == 0, -s, s);
  }
};

struct HierarchicalSigmoid : OfRows {
  // Up to this number the code of a class is exact in float32.
  static constexpr double kMostClasses = 1 << 23;

  static void describe(tn::LayerDescription& d) {
    d.type("hierarchical_sigmoid",
           "A softmax over many classes as decisions on the way through a binary tree: class c is the leaf of number c "
           "+ num_classes in the complete tree whose root is 1 and whose node n has the children 2n and 2n + 1. At "
           "each node n above the leaf the model goes to 2n + 1 with probability sigmoid(z_n), z_n = weight_{n-1} . x "
           "+ bias_{n-1}, and the cost is -log of the product of the probabilities of the right turns: the sum over "
           "the nodes of log(1 + exp(z_n)) - turn_n z_n with turn_n 0 or 1 (Morin and Bengio, \"Hierarchical "
           "probabilistic neural network language model\", 2005). Probabilities of all classes add up to 1; exp(-cost) "
           "is that of the label. A sample "
           "reads about log2(num_classes) of the rows, and only these have a gradient. weight is [num_classes - 1, D], "
           "bias [num_classes - 1].");
    describe_ports(d);
    d.attribute(tn::int_attribute("num_classes").required().at_least(2).at_most(kMostClasses).doc("how many classes"));
  }

  static void plan(tn::Planner& planner) {
    const int64_t classes = planner.attributes().integer("num_classes");
    plan_rows(planner, classes, classes - 1, 0);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const std::vector<tn::Tensor> path = path_of(body, attributes.integer("num_classes"));
    tn::Program cost;
    const Float z = cost.full(), turn = cost.full();
    cost.output(sum_per_row(abs(turn) * softplus(-(turn * z))));
    tn::GradientProgram backward(cost);
    const Float side = backward.input(1);
    backward.output(-(backward.result_gradient() * side * softplus_slope(-(side * backward.input(0)))));
    backward.output(backward.constant(0));  // turns come from labels
    body.output(0, body.pointwise(cost, {scores(attributes, body, path[0]), path[1]}, 1, &backward).front());
  }

 private:
  // The paths from the leaf to the root: rows of the table for the nodes, int [samples, longest path]; and turns, float
  // [samples, longest path], 1 for the child 2n + 1 and -1 for 2n. Paths differ in length by at most one: after the
  // root the row is that of the root again, and the turn is 0.
  static std::vector<tn::Tensor> path_of(tn::Builder& body, int64_t classes) {
    int length = 0;
    for (int64_t code = 2 * classes - 1; code > 1; code /= 2) ++length;
    tn::Program program;
    const Float code = to_float(max_per_row(program.full<Int>()) + classes);
    const Int column = program.column();
    Float part = program.constant(1);  // 2^-(column + 1)
    for (int i = 0; i < length; ++i) part = select(column == i, std::ldexp(1.0, -(i + 1)), part);
    const Float exact = code * part;
    const Int node = to_int(exact);
    const Int child = to_int(2 * exact);
    program.output(max(node, 1) - 1);
    const Float turn = 2 * to_float(child - 2 * node) - 1;
    program.output(select(node > 0, turn, 0.0));
    return body.pointwise(program, {grid(body, length)});
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.sampled", "0.1.0", "Costs of classification among very many classes", "Apache-2.0");
  plugin.layer<Nce>();
  plugin.layer<HierarchicalSigmoid>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
