#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <tenon/plugin.hpp>
#include <vector>

namespace {
// Y. N. Dauphin, A. Fan, M. Auli, D. Grangier, "Language modeling with gated convolutional networks", 2017.
struct Gated {
  static void describe(tn::LayerDescription& d) {
    d.type("example.gated", "out = (in weight) * sigmoid(in gate), with weight and gate [features, size]");
    d.input("in", "[samples, features]");
    d.output("out", "[samples, size]");
    d.attribute(tn::int_attribute("size").required().at_least(1).doc("outputs for each sample"));
    d.parameter("weight");
    d.parameter("gate");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec in = planner.input_of_rank(0, 2, "[samples, features]");
    const int64_t features = planner.elements(0, 1);
    const int64_t size = planner.attributes().integer("size");
    planner.output(0, tn::Spec({in[0], size}));
    planner.parameter("weight", tn::Spec({features, size}), tn::glorot_uniform(features, size));
    planner.parameter("gate", tn::Spec({features, size}), tn::glorot_uniform(features, size));
  }

  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Tensor value = body.gemm(body.input(0), body.parameter(0));
    const tn::Tensor gate = body.gemm(body.input(0), body.parameter(1));
    tn::Program p;
    const tn::Float x = p.full();
    const tn::Float g = p.full();
    p.output(x / (1 + exp(-g)));
    body.output(0, body.pointwise(p, {value, gate})[0]);
  }
};
struct Softsign {
  static void describe(tn::LayerDescription& d) {
    d.type("example.softsign", "out = in / (1 + |in|), with derivative (1 - |out|)^2");
    d.input("in", "any shape");
    d.output("out", "as in");
  }

  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }

  static void lower(const tn::Attributes&, tn::Builder& body) {
    tn::Program forward;
    const tn::Float x = forward.full();
    forward.output(x / (1 + abs(x)));
    tn::GradientProgram backward(forward);
    const tn::Float slope = 1 - abs(backward.result());
    backward.output(backward.result_gradient() * slope * slope);
    body.output(0, body.pointwise(forward, {body.input(0)}, 1, &backward)[0]);
  }
};
// C. Szegedy, V. Vanhoucke, S. Ioffe, J. Shlens, Z. Wojna, "Rethinking the inception architecture", 2016, section 7.
struct SmoothCrossEntropy {
  static void describe(tn::LayerDescription& d) {
    d.type("example.smooth_cross_entropy",
           "Cross-entropy of softmax(in) with a label that is right with 1 - smoothing, and any class with smoothing");
    d.role(TN_ROLE_COST);
    d.input("in", "[samples, classes]: before a softmax");
    d.input("label", "[samples]: the right class, from 0", TN_PORT_INTEGER);
    d.output("out", "[samples]");
    d.attribute(tn::float_attribute("smoothing", 0.1).at_least(0).at_most(1).doc("share of the label that is spread"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec in = planner.input_of_rank(0, 2, "[samples, classes]");
    planner.require_per_row(1, in.leading(1));
    planner.index_limit(1, planner.elements(0, 1));
    planner.output(0, in.leading(1));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor in = body.input(0);
    const auto classes = static_cast<double>(in.spec().back().offset);
    const double smoothing = attributes.number("smoothing");
    tn::Program p;
    const tn::Float score = p.full();
    const tn::Int label = p.per_row<tn::Int>();
    const tn::Float x = score - stop(max_per_row(score));  // so that exp does not overflow
    const tn::Float right = sum_per_row(select(p.column() == label, x, 0.0));
    const tn::Float any = sum_per_row(x) / classes;
    p.output(log(sum_per_row(exp(x))) - (1 - smoothing) * right - smoothing * any);
    body.output(0, body.pointwise(p, {in, body.input(1)})[0]);
  }
};
struct Attention {
  static void describe(tn::LayerDescription& d) {
    d.type("example.attention", "out = sum_r softmax(score)_r in_r over the rows r of each sequence");
    d.input("in", "[rows, features]: sequences");
    d.input("score", "[rows], or [rows, 1]");
    d.output("out", "[samples, features]");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec in = planner.input_of_rank(0, 2, "[rows, features]");
    if (!in.is_ragged()) throw planner.bad_input(0, "must be sequences");
    planner.require_per_row(1, in.leading(1));
    planner.output(0, tn::Spec({in.outer(0), in[1]}));
  }

  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Tensor in = body.input(0);
    const tn::Dim rows = in.spec()[0];
    const tn::Tensor score = body.input(1).view(tn::Spec({rows}));
    const tn::Tensor most = body.segment(TN_SEGMENT_BROADCAST, body.segment(TN_SEGMENT_MAX, score, rows), rows);
    tn::Program weigh;
    const tn::Float x = weigh.full(), s = weigh.per_row();
    const tn::Float weight = exp(s - stop(weigh.per_row()));
    weigh.output(weight * x);
    weigh.output(weight);
    const std::vector<tn::Tensor> made = body.pointwise(weigh, {in, score, most});
    tn::Program share;
    const tn::Float sum = share.full(), weights = share.per_row();
    share.output(sum / max(weights, 1e-30));  // an empty sequence gives 0
    body.output(0, body.pointwise(share, {body.segment(TN_SEGMENT_SUM, made[0], rows),
                                          body.segment(TN_SEGMENT_SUM, made[1], rows)})[0]);
  }
};
struct SparseProduct {
  static void describe(tn::LayerDescription& d) {
    d.type("example.sparse_product", "out = in weight, with weight [width, size]");
    d.input("in", "sparse [samples, width]", TN_PORT_SPARSE);
    d.output("out", "[samples, size]");
    d.attribute(tn::int_attribute("size").required().at_least(1).doc("outputs for each sample"));
    d.parameter("weight");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec in = planner.input(0);
    if (in.storage() != TN_CSR) throw planner.bad_input(0, "must be sparse");
    const int64_t width = in[1].offset, size = planner.attributes().integer("size");
    planner.parameter("weight", tn::Spec({width, size}), tn::glorot_uniform(width, size), TN_PARAMETER_SPARSE_GRADIENT);
    planner.output(0, tn::Spec({in[0], size}));
  }

  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Tensor ids = body.input(0);
    tn::Program weigh;
    const tn::Float row = weigh.full();
    weigh.output(row * weigh.per_row());
    const tn::Tensor rows = body.pointwise(weigh, {body.gather(body.parameter(0), ids), *body.weights(ids)})[0];
    body.output(0, body.segment(TN_SEGMENT_SUM, rows, ids.spec()[0]));
  }
};
struct Top {
  static void describe(tn::LayerDescription& d) {
    d.type("example.top", "Share of samples whose label is among the k best scores");
    d.role(TN_ROLE_METRIC);
    d.input("in", "[samples, classes]: scores");
    d.input("label", "[samples]: the right class, from 0", TN_PORT_INTEGER);
    d.attribute(tn::int_attribute("k", 1).at_least(1).doc("how many scores count"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec in = planner.input_of_rank(0, 2, "[samples, classes]");
    planner.require_per_row(1, in.leading(1));
    planner.index_limit(1, planner.elements(0, 1));
    planner.state(2);  // hits, samples
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    tn::Program p;
    const tn::Float score = p.full();
    const tn::Int label = p.per_row<tn::Int>();
    const tn::Float own = sum_per_row(select(p.column() == label, score, 0.0));
    const tn::Float better = sum_per_row(to_float(score > own));
    p.output(sum_all(to_float(better < attributes.integer("k"))));
    p.output(sum_all(to_float(label == label)));  // 1 for each sample
    const std::vector<tn::Tensor> sums = body.pointwise(p, {body.input(0), body.input(1)});
    body.state(0, sums[0]);
    body.state(1, sums[1]);
  }

  static void finalize(const tn::Attributes&, const double* state, tn::Results& results) {
    results.add("top", state[1] > 0 ? state[0] / state[1] : 0);
  }
};
// X. Chen et al., "Symbolic discovery of optimization algorithms", 2023, algorithm 2.
struct Lion {
  static void describe(tn::UpdaterDescription& d) {
    d.type("example.lion",
           "p = p - learning_rate * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * p); m = beta2 * m + (1 - "
           "beta2) * g");
    d.attribute(tn::float_attribute("learning_rate", 1e-4).at_least(0).doc("step size"));
    d.attribute(tn::float_attribute("beta1", 0.9).at_least(0).at_most(1).doc("share of m in the direction"));
    d.attribute(tn::float_attribute("beta2", 0.99).at_least(0).at_most(1).doc("share of m that is kept"));
    d.attribute(tn::float_attribute("weight_decay", 0).at_least(0).doc("pull towards 0"));
  }

  static void record(tn::UpdateRecorder& update) {
    const tn::Attributes a = update.attributes();
    const tn::Float p = update.parameter();
    const tn::Float g = update.gradient();
    const tn::State m = update.state("m", 0);
    const tn::Float c = a.number("beta1") * m + (1 - a.number("beta1")) * g;
    const tn::Float decay = a.number("weight_decay") * update.decay_multiplier() * p;
    update.parameter_next(p - update.learning_rate() * update.rate_multiplier() * (sign(c) + decay));
    update.state_next(m, a.number("beta2") * m + (1 - a.number("beta2")) * g);
  }
};
// Lines of numbers with commas between them: features, then the class as a whole number from 0.
class Csv {
 public:
  static void describe(tn::ReaderDescription& d) {
    d.type("example.csv", "Numbers with commas: features, then a class");
    d.attribute(tn::string_attribute("file").required().doc("the file to read"));
  }

  explicit Csv(const tn::ReaderOpen& open) {
    const std::string path = open.path(open.attributes().text("file"));  // relative paths start from the job file
    std::ifstream file(path);
    if (!file) throw tn::Failure(TN_NOT_FOUND, path, "cannot be opened");
    std::string line;
    for (int64_t number = 0; std::getline(file, line); ++number)
      if (open.shard().has(number)) add(line, path + ", line " + std::to_string(number + 1));
    if (label_.empty()) throw tn::Failure(TN_BAD_DATA, path, "no samples");
    slots_ = {{"feature", TN_F32, {width_}}, {"label", TN_I64, {}, classes_}};
  }

  const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  int64_t samples() const { return static_cast<int64_t>(label_.size()); }
  void read(int64_t index, tn::Samples& to) const {
    std::copy_n(feature_.data() + index * width_, width_, to.dense<float>(0));
    *to.dense<int64_t>(1) = label_[static_cast<size_t>(index)];
  }

 private:
  void add(const std::string& line, const std::string& place) {
    std::vector<float> numbers;
    const char* at = line.c_str();
    for (char* end = nullptr;; at = end + 1) {
      numbers.push_back(std::strtof(at, &end));
      if (end == at) throw tn::Failure(TN_BAD_DATA, place, "expected numbers with commas between them");
      if (*end != ',') break;
    }
    const auto label = static_cast<int64_t>(numbers.back());
    if (label < 0 || label > 1000) throw tn::Failure(TN_BAD_DATA, place, "expected a class from 0 to 1000 at the end");
    numbers.pop_back();
    if (label_.empty()) width_ = static_cast<int64_t>(numbers.size());
    if (numbers.empty() || static_cast<int64_t>(numbers.size()) != width_)
      throw tn::Failure(TN_BAD_DATA, place, "expected as many numbers as in the first line, at least two");
    feature_.insert(feature_.end(), numbers.begin(), numbers.end());
    label_.push_back(label);
    classes_ = std::max(classes_, label + 1);
  }

  std::vector<float> feature_;
  std::vector<int64_t> label_;
  int64_t width_ = 0, classes_ = 0;
  std::vector<tn::ReaderSlot> slots_;
};
// Visitors of a shop, one to a line:  bought|searched|sessions|profile  such as  1|4 2|3 1;4 1 5|2:1 7:0.5
// bought is 0 or 1; searched are items; sessions are the items of each visit; profile is sparse, columns ascending.
class Visitors {
 public:
  static void describe(tn::ReaderDescription& d) {
    d.type("example.visitors", "Visitors: bought|searched|sessions|profile");
    d.attribute(tn::strings_attribute("files").required().doc("text files, read one after the other"));
    d.attribute(tn::int_attribute("items").required().at_least(1).doc("how many items there are"));
    d.attribute(tn::int_attribute("width").required().at_least(1).doc("length of a profile"));
    d.attribute(tn::bool_attribute("buyers_only", false).doc("leave those out who did not buy"));
  }

  explicit Visitors(const tn::ReaderOpen& open)
      : items_(open.attributes().integer("items")), width_(open.attributes().integer("width")) {
    const bool all = !open.attributes().flag("buyers_only");
    int64_t sample = 0;
    for (const std::string& name : open.attributes().texts("files")) {
      const std::string path = open.path(name);
      std::ifstream file(path);
      if (!file) throw tn::Failure(TN_NOT_FOUND, path, "cannot be opened");
      std::string text;
      for (int64_t number = 1; std::getline(file, text); ++number)
        if ((all || text[0] == '1') && open.shard().has(sample++))
          lines_.push_back({path + ", line " + std::to_string(number), text});
    }
    slots_ = {{"bought", TN_I64, {}, 2},
              {"searched", TN_I64, {}, items_, TN_RAGGED, 1},
              {"sessions", TN_I64, {}, items_, TN_RAGGED, 2},
              {"profile", TN_F32, {width_}, -1, TN_CSR}};
  }

  const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  int64_t samples() const { return static_cast<int64_t>(lines_.size()); }
  void read(int64_t index, tn::Samples& to) const {
    const Line& line = lines_[static_cast<size_t>(index)];
    std::istringstream text(line.text);
    std::string bought, searched, sessions, profile;
    for (std::string* part : {&bought, &searched, &sessions}) std::getline(text, *part, '|');
    require(text.good() && (bought == "0" || bought == "1"), line, "expected 0 or 1, and four parts");
    std::getline(text, profile);
    *to.dense<int64_t>(0) = bought == "1" ? 1 : 0;

    std::vector<int64_t> items;
    add_items(line, searched, items);
    to.rows(1, items.data(), static_cast<int64_t>(items.size()));

    std::vector<int64_t> lengths;  // of the visits, whose items are concatenated
    items.clear();
    std::istringstream visits(sessions);
    for (std::string visit; std::getline(visits, visit, ';');) lengths.push_back(add_items(line, visit, items));
    to.sequences(2, items.data(), lengths.data(), static_cast<int64_t>(lengths.size()));

    std::vector<int64_t> columns;
    std::vector<float> values;
    std::istringstream entries(profile);
    int64_t column = 0, least = 0;
    char colon = 0;
    for (float value = 0; entries >> column >> colon >> value; least = column + 1) {
      require(column >= least && column < width_, line, "columns must rise and be below the width");
      columns.push_back(column);
      values.push_back(value);
    }
    require(entries.eof(), line, "expected column:value");
    to.entries(3, columns.data(), values.data(), static_cast<int64_t>(columns.size()));
  }

 private:
  struct Line {
    std::string place, text;
  };

  static void require(bool sound, const Line& line, const char* why) {
    if (!sound) throw tn::Failure(TN_BAD_DATA, line.place, why);
  }
  // Returns the number of items.
  int64_t add_items(const Line& line, const std::string& text, std::vector<int64_t>& to) const {
    std::istringstream numbers(text);
    int64_t count = 0;
    for (int64_t item = 0; numbers >> item; ++count) {
      require(item >= 0 && item < items_, line, "there is no such item");
      to.push_back(item);
    }
    require(numbers.eof(), line, "expected numbers of items");
    return count;
  }

  int64_t items_, width_;
  std::vector<Line> lines_;
  std::vector<tn::ReaderSlot> slots_;
};
struct Gain {
  static void describe(tn::LayerDescription& d) {
    d.type("example.gain", "out = in * gain, with gain [features]");
    d.input("in", "[samples, features]");
    d.output("out", "as in");
    d.attribute(tn::float_attribute("first", 1).doc("the first value of gain"));
    d.parameter("gain");
    d.state_version(2);
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec in = planner.input_of_rank(0, 2, "[samples, features]");
    planner.parameter("gain", tn::Spec({planner.elements(0, 1)}),
                      tn::constant_initializer(planner.attributes().number("first")));
    planner.output(0, in);
  }

  static void lower(const tn::Attributes&, tn::Builder& body) {
    tn::Program p;
    p.output(p.full() * p.per_column());
    body.output(0, body.pointwise(p, {body.input(0), body.parameter(0)})[0]);
  }

  static void migrate(tn::Migration& migration) {  // from version 1
    migration.remove("rate");
    migration.set("first", tn::float_value(1));
    tn::StoredTensor gain = migration.tensor("log_gain");
    for (float& value : gain.values) value = std::exp(value);
    gain.shape = {static_cast<int64_t>(gain.values.size())};
    migration.rename_tensor("log_gain", "gain");
    migration.set_tensor("gain", gain);
  }
};
}  // namespace

extern "C" const tn_kernel softsign_kernel, softsign_square_kernel;

namespace {

void describe(tn::Plugin& plugin) {
  plugin.about("org.example.tour", "1.0.0", "One component of every kind", "MIT");
  plugin.layer<Gated>();
  plugin.layer<Softsign>();
  plugin.layer<SmoothCrossEntropy>();
  plugin.layer<Attention>();
  plugin.layer<SparseProduct>();
  plugin.layer<Top>();
  plugin.layer<Gain>();
  plugin.updater<Lion>();
  plugin.reader<Csv>();
  plugin.reader<Visitors>();
  plugin.kernel(&softsign_kernel);
  plugin.kernel(&softsign_square_kernel);
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
