// Costs of embeddings, of pairs of scores, and of classes that are hard to tell. The cost of a sample is the sum over
// its rows.
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "values.h"

namespace tenon::costs {

namespace {

// Costs of vectors, one for each row: [samples, ..., D] each.
constexpr const char* kVectorsDoc = "the shape of the first input";
constexpr const char* kPositionWeightDoc =
    "[samples, ...]: the weight of each row, such as a mask of 1 and 0; a row of weight 0 does not count, whatever it "
    "is";

// The squared length below which a distance has no derivative.
constexpr double kLeastSquare = 1e-24;

tn::Spec rows_of(const tn::Spec& vectors) { return vectors.leading(vectors.rank() - 1); }

// Throws unless the first `count` inputs are vectors of one shape, and inputs up to `last` are a number for each.
void plan_vectors(tn::Planner& planner, uint32_t count, uint32_t last) {
  const tn::Spec first = planner.input(0);
  if (first.rank() < 2) throw planner.bad_input(0, "must be [samples, ..., D]");
  planner.elements(0, 1);
  for (uint32_t i = 1; i < count; ++i) planner.require_shape(i, first);
  for (uint32_t i = count; i <= last; ++i)
    if (planner.has_input(i)) planner.require_per_row(i, rows_of(first));
  planner.output(0, tn::Spec({first[0]}));
}

// costs [samples, ...] -> [samples].
tn::Tensor sum_of_rows(tn::Builder& body, const tn::Tensor& costs) {
  const tn::Spec spec = costs.spec();
  if (spec.rank() == 1) return costs;
  tn::Program total;
  total.output(sum_per_row(total.full()));
  return body.pointwise(total, {costs}, 1).front();
}

// ---- vectors

struct Triplet {
  enum { kAnchor = 0, kPositive = 1, kNegative = 2, kWeight = 3 };

  static void describe(tn::LayerDescription& d) {
    d.type("triplet",
           "Cost of vectors of which the anchor should be nearer to the positive one than to the negative one: max(0, "
           "d(anchor, positive) - d(anchor, negative) + margin), with the Euclidean distance d, or for squared = true "
           "its square (Schroff, Kalenichenko and Philbin, \"FaceNet\", 2015). With swap, d(positive, negative) takes "
           "the place of d(anchor, negative) where it is less (Balntas et al., \"Learning local feature descriptors "
           "with triplets and shallow convolutional neural networks\", 2016). The derivative is 0 at the kink, and "
           "that of a distance is 0 between equal vectors.");
    d.role(TN_ROLE_COST);
    d.input("anchor", "[samples, ..., D]");
    d.input("positive", kVectorsDoc);
    d.input("negative", kVectorsDoc);
    d.input("weight", kPositionWeightDoc, TN_PORT_OPTIONAL);
    d.output("output", "[samples]: the cost of each, the sum over its rows");
    d.attribute(tn::float_attribute("margin", 1).at_least(0).doc("how much nearer the positive one must be"));
    d.attribute(tn::bool_attribute("squared", false).doc("compares squares of distances"));
    d.attribute(tn::bool_attribute("swap", false).doc("compares with the nearer of two distances"));
  }
  static void plan(tn::Planner& planner) { plan_vectors(planner, 3, kWeight); }

  static void lower(const Attributes& attributes, tn::Builder& body) {
    const bool squared = attributes.flag("squared");
    const auto distance = [&](const Float& a, const Float& b) {
      const Float e = a - b, square = sum_per_row(e * e);
      return squared ? square : sqrt(max(square, kLeastSquare));
    };
    tn::Program cost;
    const Float anchor = cost.full(), positive = cost.full(), negative = cost.full();
    Float far = distance(anchor, negative);
    if (attributes.flag("swap")) far = min(far, distance(positive, negative));
    const Float excess = distance(anchor, positive) - far + attributes.number("margin");
    cost.output(max(0, excess));
    const std::vector<tn::Tensor> vectors{body.input(kAnchor), body.input(kPositive), body.input(kNegative)};
    const int32_t leading = vectors[0].spec().rank() - 1;
    body.output(0, sum_of_rows(body, costs_of_rows(body, cost, vectors, leading, body.optional_input(kWeight))));
  }
};

struct CosineEmbedding {
  enum { kA = 0, kB = 1, kLabel = 2, kWeight = 3 };

  static void describe(tn::LayerDescription& d) {
    d.type("cosine_embedding",
           "Cost of pairs of vectors that are alike or not: 1 - c for a label above 0, else max(0, c - margin), where "
           "c is the cosine of the angle between them (see cos_sim; 0 if one is no longer than 1e-8). The derivative "
           "at the kink is 0.");
    d.role(TN_ROLE_COST);
    d.input("a", "[samples, ..., D]");
    d.input("b", kVectorsDoc);
    d.input("label", "[samples, ...]: above 0, such as 1: alike; else, such as -1 or 0: not");
    d.input("weight", kPositionWeightDoc, TN_PORT_OPTIONAL);
    d.output("output", "[samples]: the cost of each, the sum over its rows");
    d.attribute(tn::float_attribute("margin", 0)
                    .at_least(-1)
                    .at_most(1)
                    .doc("cosine up to which vectors that are not alike cost nothing"));
  }
  static void plan(tn::Planner& planner) { plan_vectors(planner, 2, kWeight); }

  static void lower(const Attributes& attributes, tn::Builder& body) {
    constexpr double kLeast = 1e-16;  // squared length, bounded so that no derivative divides by 0
    tn::Program cost;
    const Float a = cost.full(), b = cost.full(), label = cost.per_row();
    const Float aa = sum_per_row(a * a), bb = sum_per_row(b * b);
    const Float lengths = sqrt(max(aa, kLeast)) * sqrt(max(bb, kLeast));
    const Float cosine = select(aa <= kLeast || bb <= kLeast, 0.0, sum_per_row(a * b) / lengths);
    const Float excess = cosine - attributes.number("margin");
    cost.output(select(label > 0, 1 - cosine, max(0, excess)));
    const tn::Tensor first = body.input(kA);
    const int32_t leading = first.spec().rank() - 1;
    const std::vector<tn::Tensor> operands{first, body.input(kB), body.input(kLabel).view(rows_of(first.spec()))};
    body.output(0, sum_of_rows(body, costs_of_rows(body, cost, operands, leading, body.optional_input(kWeight))));
  }
};

// ---- pairs of scores

struct MarginRanking : CostOfValues<3>, tn::DeclaresNumbers<MarginRanking> {
  static void describe(tn::LayerDescription& d) {
    d.type("margin_ranking",
           "Cost of the order of two scores, summed over the values of a sample: max(0, -label (a - b) + margin), with "
           "label 1 where a should be above b and -1 where b should be above a. The derivative at the kink is 0. "
           "Differentiable in all inputs; less_than is the cost of a fixed order.");
    d.role(TN_ROLE_COST);
    d.input("a", "[samples, ...]: scores");
    d.input("b", "the shape of a: scores");
    d.input("label", "the shape of a: 1 or -1");
    describe_rest(d);
    d.attribute(tn::float_attribute("margin", 0).at_least(0).doc("by how much the higher score must be above"));
  }
  static void numbers(tn::NumberDeclarer& declarer) {
    declarer.input(2, tn::Numbers::between(-1, 1).not_zero().unless_weightless(kWeight));
  }
  static void lower(const Attributes& attributes, tn::Builder& body) {
    tn::Program cost;
    const Float a = cost.full(), b = cost.full(), label = cost.full();
    const Float excess = attributes.number("margin") - label * (a - b);
    record(body, cost, max(0, excess));
  }
};

// ---- classes

struct CategoricalFocal {
  enum { kInput = 0, kLabel = 1, kWeight = 2 };

  static void describe(tn::LayerDescription& d) {
    d.type("categorical_focal",
           "Cross-entropy of classes that counts certain answers less: -a (1 - p)^gamma log(p), where p is the "
           "probability of the right class, softmax(input)[label], and a its weight (Lin et al., \"Focal loss for "
           "dense object detection\", 2017, over any number of classes). A position whose label is ignore_index does "
           "not count. See focal for answers of yes and no.");
    d.role(TN_ROLE_COST);
    d.input("input", "[samples, ..., classes]: scores before a softmax");
    d.input("label", "[samples, ...]: the number of the right class, from 0", TN_PORT_INTEGER);
    d.input("weight", kPositionWeightDoc, TN_PORT_OPTIONAL);
    d.output("output", "[samples]: the cost of each, the sum over its positions");
    d.attribute(tn::float_attribute("gamma", 2).at_least(0).doc("0: cross-entropy"));
    d.attribute(tn::floats_attribute("class_weights").at_least(0).doc("a weight for each class; without it all are 1"));
    d.attribute(tn::int_attribute("ignore_index").doc("a label that does not count, such as -100"));
  }
  static void plan(tn::Planner& planner) {
    const Attributes attributes = planner.attributes();
    plan_vectors(planner, 1, kWeight);
    const int64_t classes = planner.input(kInput).back().offset;
    planner.index_limit(kLabel, classes);
    if (attributes.has("ignore_index")) planner.index_exempt(kLabel, attributes.integer("ignore_index"));
    if (!attributes.has("class_weights")) return;
    const auto weights = static_cast<int64_t>(attributes.numbers("class_weights").size());
    if (weights != classes)
      throw tn::Failure(
          TN_INVALID, "class_weights",
          "expected " + std::to_string(classes) + " numbers, one for each class, got " + std::to_string(weights))
          .actual(planner.input(kInput));
  }

  static void lower(const Attributes& attributes, tn::Builder& body) {
    const double gamma = attributes.number("gamma");
    const tn::Tensor input = body.input(kInput);
    const tn::Spec shape = input.spec();
    const int32_t leading = shape.rank() - 1;
    const tn::Tensor label = body.input(kLabel).view(rows_of(shape));
    tn::Program cost;
    const Float log_all = log_softmax(cost.full());
    const tn::Int right = cost.per_row<tn::Int>();
    const Float log_p = sum_per_row(select(cost.column() == right, log_all, 0.0));
    cost.output(-(pow(-expm1(log_p), gamma) * log_p));

    // With l = log(p) and q = 1 - p: d/dl = gamma q^gamma p l / q - q^gamma, where l / q is -1 at q = 0, and dl/dx_k =
    // [k = label] - p_k.
    GradientProgram backward(cost);
    const Float logs = log_softmax(backward.input(kInput));
    const tn::Logical is_right = backward.column() == backward.input<tn::Int>(kLabel);
    const Float l = sum_per_row(select(is_right, logs, 0.0));
    const Float q = -expm1(l);
    const Float ratio = select(q > 0, l / select(q > 0, q, 1.0), -1.0);
    const Float slope = pow(q, gamma) * (1 - gamma * exp(l) * ratio);
    backward.output(backward.result_gradient() * slope * (exp(logs) - select(is_right, 1.0, 0.0)));
    backward.output(backward.constant(0));
    const tn::Tensor costs =
        costs_of_rows(body, cost, {input, label}, leading, counted(attributes, body, label, shape), &backward);
    body.output(0, sum_of_rows(body, costs));
  }

 private:
  static Float log_softmax(const Float& x) {
    const Float shifted = x - max_per_row(x);
    return shifted - log(sum_per_row(exp(shifted)));
  }

  // label [samples, ...] -> the weights of the positions, if they are not all 1.
  static std::optional<tn::Tensor> counted(const Attributes& attributes, tn::Builder& body, const tn::Tensor& label,
                                           const tn::Spec& shape) {
    const std::optional<tn::Tensor> weight = body.optional_input(kWeight);
    const bool by_class = attributes.has("class_weights"), ignores = attributes.has("ignore_index");
    if (!by_class && !ignores) return weight;
    std::vector<tn::Tensor> operands{label};
    tn::Program program;
    const tn::Int right = program.per_row<tn::Int>();
    Float value = program.constant(1);
    if (by_class) {
      value = sum_per_row(select(program.column() == right, program.per_column(), 0.0));
      operands.push_back(body.constant(tn::Spec({shape.back()}), attributes.numbers("class_weights")));
    }
    if (weight) {
      value = value * program.per_row();
      operands.push_back(weight->view(label.spec()));
    }
    program.output(ignores ? select(right == attributes.integer("ignore_index"), 0.0, value) : value);
    return body.pointwise(program, operands, label.spec().rank()).front();
  }
};

}  // namespace

void add_embeddings(tn::Plugin& plugin) {
  plugin.layer<Triplet>();
  plugin.layer<CosineEmbedding>();
  plugin.layer<MarginRanking>();
  plugin.layer<CategoricalFocal>();
}

}  // namespace tenon::costs
