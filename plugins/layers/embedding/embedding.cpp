// Rows of a trained table by id. SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <tenon/plugin.hpp>

namespace {

enum class Reduce { kNone, kSum, kMean, kConcat };

Reduce reduce_of(const tn::Attributes& attributes) {
  const std::string name = attributes.text("reduce");
  if (name == "sum") return Reduce::kSum;
  if (name == "mean") return Reduce::kMean;
  return name == "concat" ? Reduce::kConcat : Reduce::kNone;
}

struct Embedding {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "embedding",
        "A vector for each id: output = weight[id], where weight is [vocabulary, size] (Bengio et al., \"A neural "
        "probabilistic language model\", 2003). With reduce the ids of a sample are a bag, of which the output is the "
        "sum, the mean, or all vectors concatenated. A bag is n ids in every sample, or a sequence, or a "
        "sparse vector of width up to vocabulary: its ids count as often as their values say, so that the sum is "
        "sum_i x_i weight[i] and the mean is that divided by sum_i x_i. An empty bag, or one whose values add up to "
        "0, has the mean 0. Only the rows that were looked up have a gradient, which may be row-sparse; a row "
        "that was looked up several times gets the sum. Layers with one parameter_name share one table.");
    d.input("ids",
            "[samples, ...], integers in [0, vocabulary); where reduce is not none [samples, n], or for sum and mean "
            "a sequence [rows] or a sparse [samples, width]",
            TN_PORT_INTEGER | TN_PORT_SPARSE);
    d.output("output",
             "[samples, ..., size]; reduced [samples, size], for concat [samples, n size]; of a sequence of sequences, "
             "reduced, [inner sequences, size]");
    d.attribute(
        tn::int_attribute("vocabulary").required().at_least(1).doc("number of ids, which is rows of the table"));
    d.attribute(tn::int_attribute("size").required().at_least(1).doc("numbers in a vector"));
    d.attribute(tn::string_attribute("reduce", "none")
                    .one_of({"none", "sum", "mean", "concat"})
                    .doc("what is made of the vectors of a sample"));
    d.attribute(tn::string_attribute("initializer", "normal")
                    .one_of({"normal", "uniform"})
                    .doc("how the table starts: normal with deviation `scale`, or uniform in +-scale"));
    d.attribute(tn::float_attribute("scale").at_least(0).doc(
        "of the first values; absent, 1 / sqrt(size), so that a normal vector is about 1 long"));
    d.parameter("weight");
  }

  static void plan(tn::Planner& planner) {
    const tn::Attributes attributes = planner.attributes();
    const int64_t vocabulary = attributes.integer("vocabulary");
    const int64_t size = attributes.integer("size");
    planner.index_limit(0, vocabulary);
    planner.parameter("weight", tn::Spec({vocabulary, size}), initializer(attributes, size),
                      TN_PARAMETER_SPARSE_GRADIENT);
    planner.output(0, output_of(planner, reduce_of(attributes), size));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor ids = body.input(0);
    const tn::Tensor vectors = body.gather(body.parameter(0), as_index(body, ids));
    body.output(0, reduced(body, reduce_of(attributes), ids, vectors));
  }

 private:
  static tn_initializer initializer(const tn::Attributes& attributes, int64_t size) {
    const double scale =
        attributes.has("scale") ? attributes.number("scale") : 1 / std::sqrt(static_cast<double>(size));
    return attributes.text("initializer") == std::string("uniform") ? tn::uniform_initializer(-scale, scale)
                                                                    : tn::normal_initializer(0, scale);
  }

  // Whether the ids of a bag are the rows of a sequence, or the entries of a sparse sample.
  static bool is_bag_of_rows(const tn::Spec& ids) { return ids.is_ragged() && ids.rank() == 1; }

  static tn::Spec output_of(const tn::Planner& planner, Reduce reduce, int64_t size) {
    const tn::Spec ids = planner.input(0);
    if (ids.storage() == TN_CSR) {
      if (reduce != Reduce::kSum && reduce != Reduce::kMean)
        throw planner.bad_input(0, "is sparse, a bag of ids in each sample; reduce must be sum or mean");
      const int64_t vocabulary = planner.attributes().integer("vocabulary");
      if (ids[1].offset > vocabulary)
        throw planner.bad_input(0, "is wider than the vocabulary of " + std::to_string(vocabulary));
      return tn::Spec({ids[0], size});
    }
    if (ids.rank() == 0 || ids.rank() == TN_MAX_RANK)
      throw planner.bad_input(0, "must be [samples, ...] of at most " + std::to_string(TN_MAX_RANK - 1) +
                                     " dimensions: the output has one more");
    if (is_bag_of_rows(ids) && (reduce == Reduce::kSum || reduce == Reduce::kMean))
      return tn::Spec({ids.outer(0), size});
    if (reduce != Reduce::kNone)
      planner.input_of_rank(0, 2, "[samples, n], a bag of ids for each sample, to be reduced");
    const int64_t bag = planner.elements(0, 1);
    tn::Spec output = (reduce == Reduce::kNone ? ids : ids.leading(1)).as(TN_COMPUTE);
    if (reduce == Reduce::kConcat && bag > INT64_MAX / size)
      throw planner.bad_input(0, "makes a vector longer than 2^63 - 1");
    output.push_back(reduce == Reduce::kConcat ? bag * size : size);
    return output;
  }

  // The ids as int32 or int64, the types that gather takes.
  static tn::Tensor as_index(tn::Builder& body, const tn::Tensor& ids) {
    if (ids.spec().dtype() == TN_I32 || ids.spec().dtype() == TN_I64) return ids;
    tn::Program widen;
    widen.output(widen.full<tn::Int>(), TN_I64);
    return body.pointwise(widen, {ids}).front();
  }

  // Sum or mean of bags of different lengths: ids [rows], concatenated bags; vectors [rows, size]; optional weights
  // [rows] of a sparse input -> [bags, size]. The mean divides by the sum of the weights, or by the number of ids; 0 if
  // that is 0.
  static tn::Tensor of_rows(tn::Builder& body, Reduce reduce, const tn::Tensor& ids, const tn::Tensor& vectors) {
    const tn::Dim rows = ids.spec()[0];
    const std::optional<tn::Tensor> weights = body.weights(ids);
    tn::Program weigh;
    const tn::Float row = weigh.full();
    weigh.output(row * weigh.per_row());
    const tn::Tensor sum =
        body.segment(TN_SEGMENT_SUM, weights ? body.pointwise(weigh, {vectors, *weights}).front() : vectors, rows);
    if (reduce == Reduce::kSum) return sum;
    tn::Program share;
    const tn::Float x = share.full();
    const tn::Float whole = weights ? share.per_row() : to_float(share.per_row<tn::Int>());
    share.output(select(whole == 0, 0.0, x / select(whole == 0, 1.0, whole)));
    const tn::Tensor wholes =
        weights ? body.segment(TN_SEGMENT_SUM, *weights, rows) : body.segment(TN_SEGMENT_LENGTH, rows);
    return body.pointwise(share, {sum, wholes}).front();
  }

  // ids [samples, n], vectors [samples, n, size] -> [samples, size], for concat [samples, n * size]; other bags as
  // of_rows.
  static tn::Tensor reduced(tn::Builder& body, Reduce reduce, const tn::Tensor& ids, const tn::Tensor& vectors) {
    if (reduce == Reduce::kNone) return vectors;
    if (is_bag_of_rows(ids.spec())) return of_rows(body, reduce, ids, vectors);
    const tn::Spec spec = vectors.spec();
    const int64_t bag = spec[1].offset, size = spec[2].offset;
    if (reduce == Reduce::kConcat) return vectors.view(tn::Spec({spec[0], bag * size}));
    // The sum over n is a batched product: ones [samples, 1, n] times vectors [samples, n, size]. It reads the vectors
    // once, without a transpose.
    tn::Program program;
    program.output(to_float(program.full<tn::Int>() >= 0));
    const tn::Tensor ones = body.pointwise(program, {ids}).front().view(tn::Spec({spec[0], 1, bag}));
    const double share = reduce == Reduce::kMean ? 1 / static_cast<double>(bag) : 1;
    return body.gemm(ones, vectors, 0, share).view(tn::Spec({spec[0], size}));
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.embedding", "0.1.0", "Rows of a trained table by number", "Apache-2.0");
  plugin.layer<Embedding>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
