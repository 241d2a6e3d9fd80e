// A sum of projections. SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <tenon/plugin.hpp>

namespace {

using tn::Float;

// The suffixes of parameters. Their number is fixed, since they are part of the static description. They are those of
// fc, so that the two can share a matrix.
constexpr const char* kWeights[] = {"weight",   "weight_1", "weight_2", "weight_3",
                                    "weight_4", "weight_5", "weight_6", "weight_7"};
constexpr uint32_t kMostInputs = 8;

enum class Kind { kFullMatrix, kTransposed, kTable, kIdentity, kDotMul, kScaling };

std::vector<Kind> kinds_of(const tn::Attributes& attributes) {
  std::vector<Kind> kinds;
  for (const std::string& name : attributes.texts("projections"))
    kinds.push_back(name == "full_matrix"  ? Kind::kFullMatrix
                    : name == "transposed" ? Kind::kTransposed
                    : name == "table"      ? Kind::kTable
                    : name == "identity"   ? Kind::kIdentity
                    : name == "dotmul"     ? Kind::kDotMul
                                           : Kind::kScaling);
  return kinds;
}

struct Mixed {
  static void describe(tn::LayerDescription& d) {
    d.type("mixed",
           "The sum of a projection of each input, and of a bias: output = sum_i p_i(x_i) + bias, where x is an input "
           "flattened to [samples, D] and p is one of: full_matrix, x W with W [D, size]; transposed, x W^T with W "
           "[size, D], which shares the matrix of a layer that goes the other way (tied weights); table, row x of W "
           "[vocabulary, size] for ids x; identity, x itself; dotmul, x times w [size] element by element; scaling, x "
           "times one number w. The weight of the first input is called weight, as that of an fc or embedding, of the "
           "second weight_1 and so on. Matrices start uniform in +-sqrt(6 / (D + size)), tables normal with deviation "
           "1 / sqrt(size), dotmul and scaling at 1, the bias at 0.");
    d.input("inputs", "[samples, ...]; of a table [samples], integers; one for each projection, at most 8",
            TN_PORT_VARIADIC | TN_PORT_ANY);
    d.output("output", "[samples, size]");
    d.attribute(tn::int_attribute("size").required().at_least(1).doc("number of outputs for each sample"));
    d.attribute(tn::strings_attribute("projections")
                    .required()
                    .one_of({"full_matrix", "transposed", "table", "identity", "dotmul", "scaling"})
                    .doc("what is done with each input, in their order"));
    d.attribute(tn::ints_attribute("vocabularies").at_least(1).doc("rows of each table, in the order of the tables"));
    d.attribute(tn::bool_attribute("bias", false).doc("whether a bias is added"));
    for (const char* suffix : kWeights) d.parameter(suffix);
    d.parameter("bias");
  }

  static void plan(tn::Planner& planner) {
    const tn::Attributes attributes = planner.attributes();
    const int64_t size = attributes.integer("size");
    const std::vector<Kind> kinds = kinds_of(attributes);
    const uint32_t count = planner.inputs_count();
    if (count > kMostInputs)
      throw tn::Failure(TN_UNSUPPORTED, "inputs",
                        "are " + std::to_string(count) + "; at most " + std::to_string(kMostInputs) + " are offered");
    if (kinds.size() != count)
      throw tn::Failure(TN_INVALID, "projections",
                        "are " + std::to_string(kinds.size()) + " for " + std::to_string(count) + " inputs");
    size_t tables = 0;
    const std::vector<int64_t> vocabularies =
        attributes.has("vocabularies") ? attributes.integers("vocabularies") : std::vector<int64_t>{};
    for (uint32_t i = 0; i < count; ++i) {
      if (planner.input(i).rank() == 0) throw planner.bad_input(i, "must have a dimension for the samples");
      if (!planner.input(i)[0].same(planner.input(0)[0]))
        throw planner.bad_input(i, "has another number of rows than the first").expected(planner.input(0));
      if (kinds[i] != Kind::kTable) {
        plan_numbers(planner, i, kinds[i], size);
      } else if (tables < vocabularies.size()) {
        plan_table(planner, i, vocabularies[tables++], size);
      } else {
        throw tn::Failure(TN_INVALID, "vocabularies", "has no number for input " + std::to_string(i) + ", a table");
      }
    }
    if (tables != vocabularies.size())
      throw tn::Failure(
          TN_INVALID, "vocabularies",
          "has " + std::to_string(vocabularies.size()) + " numbers for " + std::to_string(tables) + " tables");
    if (attributes.flag("bias")) planner.parameter("bias", tn::Spec({size}), tn::constant_initializer(0));
    tn::Spec output = planner.input(0).leading(1).as(TN_COMPUTE);
    output.push_back(size);
    planner.output(0, output);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const std::vector<Kind> kinds = kinds_of(attributes);
    const int64_t size = attributes.integer("size");
    uint32_t parameter = 0;
    std::vector<tn::Tensor> operands;
    tn::Program program;
    std::optional<Float> sum;
    const auto add = [&](const Float& term) { sum = sum ? *sum + term : term; };
    for (uint32_t i = 0; i < kinds.size(); ++i) {
      const bool weighted = kinds[i] != Kind::kIdentity;
      const std::optional<tn::Tensor> weight =
          weighted ? std::optional<tn::Tensor>(body.parameter(parameter++)) : std::nullopt;
      operands.push_back(kinds[i] <= Kind::kTable ? looked_up(body, kinds[i], body.input(0, i), *weight)
                                                  : flat(body.input(0, i), size));
      const Float x = program.full();
      if (kinds[i] == Kind::kDotMul) {
        add(x * program.per_column());
      } else if (kinds[i] == Kind::kScaling) {
        add(x * program.scalar());
      } else {
        add(x);
        continue;
      }
      operands.push_back(*weight);
    }
    if (attributes.flag("bias")) {
      add(program.per_column());
      operands.push_back(body.parameter(parameter));
    }
    program.output(*sum);
    body.output(0, operands.size() == 1 ? operands.front() : body.pointwise(program, operands).front());
  }

 private:
  static void plan_numbers(tn::Planner& planner, uint32_t i, Kind kind, int64_t size) {
    if (planner.input(i).is_integer()) throw planner.bad_input(i, "are integers, which only a table projects");
    const int64_t depth = planner.elements(i, 1);
    if (kind == Kind::kFullMatrix)
      return planner.parameter(kWeights[i], tn::Spec({depth, size}), tn::glorot_uniform(depth, size));
    if (kind == Kind::kTransposed)
      return planner.parameter(kWeights[i], tn::Spec({size, depth}), tn::glorot_uniform(depth, size));
    if (depth != size)
      throw planner.bad_input(i, "must have " + std::to_string(size) + " numbers for each row, as the output has");
    const tn_initializer one = tn::constant_initializer(1);
    if (kind == Kind::kDotMul) planner.parameter(kWeights[i], tn::Spec({size}), one);
    if (kind == Kind::kScaling) planner.parameter(kWeights[i], tn::Spec({1}), one);
  }

  static void plan_table(tn::Planner& planner, uint32_t i, int64_t vocabulary, int64_t size) {
    if (!planner.input(i).is_integer()) throw planner.bad_input(i, "must be integers, the rows of a table");
    planner.require_per_row(i, planner.input(i).leading(1));
    planner.index_limit(i, vocabulary);
    planner.parameter(kWeights[i], tn::Spec({vocabulary, size}),
                      tn::normal_initializer(0, 1 / std::sqrt(static_cast<double>(size))),
                      TN_PARAMETER_SPARSE_GRADIENT);
  }

  // x as [samples, depth].
  static tn::Tensor flat(const tn::Tensor& x, int64_t depth) { return x.view(tn::Spec({x.spec()[0], depth})); }

  // The projection of x by a matrix, [samples, size]. full_matrix: x [samples, D], weight [D, size]. transposed: weight
  // [size, D]. table: ids x int [samples], weight [vocabulary, size].
  static tn::Tensor looked_up(tn::Builder& body, Kind kind, const tn::Tensor& x, const tn::Tensor& weight) {
    if (kind == Kind::kFullMatrix) return body.gemm(flat(x, weight.spec()[0].offset), weight);
    if (kind == Kind::kTransposed) return body.gemm(flat(x, weight.spec()[1].offset), weight, TN_TRANSPOSE_B);
    tn::Program index;
    index.output(index.full<tn::Int>(), TN_I64);
    return body.gather(weight, body.pointwise(index, {x.view(x.spec().leading(1))}).front());
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.mixed", "0.1.0", "A sum of projections", "Apache-2.0");
  plugin.layer<Mixed>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
