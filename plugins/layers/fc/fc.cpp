// The fully connected layer. SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.hpp>

namespace {

// The suffixes of parameters. Their number is fixed, since they are part of the static description.
constexpr const char* kWeights[] = {"weight",   "weight_1", "weight_2", "weight_3",
                                    "weight_4", "weight_5", "weight_6", "weight_7"};
constexpr uint32_t kMostInputs = 8;

struct FullyConnected {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "fc",
        "Fully connected: output = x weight + bias, where x is the input flattened to [samples, D], weight is "
        "[D, size] and bias is [size]; with axis only the dimensions from it on are flattened, and each place of the "
        "others is a row; of several inputs the sum of x_i weight_i + bias, where the second weight is "
        "called weight_1. Of a sparse input only the rows of weight that it names are read, and have a gradient, "
        "which may be row-sparse. A weight starts uniform in +-sqrt(6 / (D + size)) (Glorot and Bengio, "
        "\"Understanding the "
        "difficulty of training deep feedforward neural networks\", 2010, equation 16), the bias at 0. Other names: "
        "dense, "
        "linear.");
    d.input("inputs", "[samples, ...]; all dimensions from axis on are flattened", TN_PORT_VARIADIC | TN_PORT_SPARSE);
    d.output("output", "[samples, size]; with axis the dimensions before it, then size");
    d.attribute(tn::int_attribute("size").required().at_least(1).doc("number of outputs for each sample"));
    d.attribute(tn::int_attribute("axis").doc("first flattened dimension; -1: only the last one; 1 when absent"));
    d.attribute(tn::bool_attribute("bias", true).doc("whether a bias is added"));
    for (const char* suffix : kWeights) d.parameter(suffix);
    d.parameter("bias");
  }

  static void plan(tn::Planner& planner) {
    const int64_t size = planner.attributes().integer("size");
    if (planner.inputs_count() > kMostInputs)
      throw tn::Failure(TN_UNSUPPORTED, "inputs",
                        "are " + std::to_string(planner.inputs_count()) + "; at most " + std::to_string(kMostInputs) +
                            " are offered");
    tn::Spec output;
    for (uint32_t i = 0; i < planner.inputs_count(); ++i) {
      const tn::Spec input = planner.input(i);
      if (input.rank() == 0) throw planner.bad_input(i, "must have a dimension for the samples");
      if (!input[0].same(planner.input(0)[0]))
        throw planner.bad_input(i, "has another number of rows than the first").expected(planner.input(0));
      const int32_t axis = axis_of(planner, i);
      if (i == 0)
        output = input.leading(axis).as(TN_COMPUTE);
      else if (!input.leading(axis).same_shape(output))
        throw planner.bad_input(i, "differs from the first in the dimensions before axis").expected(planner.input(0));
      planner.elements(i, 1);
      const int64_t depth = planner.elements(i, axis);
      planner.parameter(kWeights[i], tn::Spec({depth, size}), tn::glorot_uniform(depth, size),
                        input.storage() == TN_CSR ? TN_PARAMETER_SPARSE_GRADIENT : 0);
    }
    if (output.rank() == 1) output = tn::Spec({output[0]});
    output.push_back(size);
    planner.output(0, output);
    if (planner.attributes().flag("bias")) planner.parameter("bias", tn::Spec({size}), tn::constant_initializer(0));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor first = body.input(0);
    tn::Spec shape = first.spec().leading(axis_in(attributes, first.spec()));
    shape.push_back(attributes.integer("size"));
    const tn::Tensor result = of_rows(attributes, body);
    body.output(0, shape.rank() == 2 ? result : result.view(shape));
  }

 private:
  static int32_t axis_in(const tn::Attributes& attributes, const tn::Spec& input) {
    return attributes.has("axis") ? input.axis(attributes.integer("axis")) : 1;
  }
  static int32_t axis_of(const tn::Planner& planner, uint32_t i) {
    const tn::Spec input = planner.input(i);
    if (!planner.attributes().has("axis")) return 1;
    const int32_t axis = planner.axis_of(i, planner.attributes().integer("axis"));
    if (input.storage() == TN_CSR && axis != 1) throw planner.bad_input(i, "is sparse and has the axis 1 alone");
    return axis;
  }

  // [rows, size], where rows are the places of the dimensions before axis.
  static tn::Tensor of_rows(const tn::Attributes& attributes, tn::Builder& body) {
    std::vector<tn::Tensor> products;
    for (uint32_t i = 0;; ++i) {
      const std::optional<tn::Tensor> input = body.optional_input(0, i);
      if (!input) break;
      products.push_back(product(body, *input, body.parameter(i)));
    }
    if (products.size() == 1 && !attributes.flag("bias")) return products.front();
    tn::Program add;
    tn::Float sum = add.full();
    for (size_t i = 1; i < products.size(); ++i) sum = sum + add.full();
    if (attributes.flag("bias")) {
      add.output(sum + add.per_column());
      products.push_back(body.parameter(static_cast<uint32_t>(products.size())));
    } else {
      add.output(sum);
    }
    return body.pointwise(add, products).front();
  }

  // input [samples, ...], flattened to [rows, D], weight [D, size] -> [rows, size].
  static tn::Tensor product(tn::Builder& body, const tn::Tensor& input, const tn::Tensor& weight) {
    if (const std::optional<tn::Tensor> values = body.weights(input)) return of_sparse(body, input, *values, weight);
    const tn::Spec shape = input.spec();
    if (shape.rank() == 2) return body.gemm(input, weight);
    int64_t elements = 1;  // of a sample
    for (int32_t i = 1; i < shape.rank(); ++i) elements *= shape[i].offset;
    const int64_t rows = elements / weight.spec()[0].offset;
    return body.gemm(input.view(tn::Spec({shape[0].times(rows), weight.spec()[0]})), weight);
  }

  // ids and values [entries], concatenated samples; weight [D, size] -> [samples, size]: the sum over a sample's
  // entries of value times row id of the weight.
  static tn::Tensor of_sparse(tn::Builder& body, const tn::Tensor& ids, const tn::Tensor& values,
                              const tn::Tensor& weight) {
    tn::Program weigh;
    const tn::Float row = weigh.full();
    weigh.output(row * weigh.per_row());
    const tn::Tensor rows = body.pointwise(weigh, {body.gather(weight, ids), values}).front();
    return body.segment(TN_SEGMENT_SUM, rows, ids.spec()[0]);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.fc", "0.1.0", "The fully connected layer", "Apache-2.0");
  plugin.layer<FullyConnected>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
