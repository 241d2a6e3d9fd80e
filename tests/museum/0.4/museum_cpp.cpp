// An exhibit of interface 0.4, in C++: the reader museum.line, the cost museum.distance and the updater
// museum.descent. SPDX-License-Identifier: Apache-2.0
#include <tenon/draft/records.hpp>
#include <tenon/plugin.hpp>

namespace {

// Sample i of n: x = [i / n, 1 - i / n], y = [3 x[0] + 0.5, 0.5 - 2 x[1]]. The columns of x are called "at" and "rest";
// a model may have them in the other order. Every second record of the data is left out.
class Line : public tn::Records<Line> {
 public:
  static void describe(tn::ReaderDescription& d) {
    d.type("museum.line", "Points of two lines");
    d.attribute(tn::int_attribute("samples", 8).at_least(1).doc("number of points"));
  }

  explicit Line(const tn::ReaderOpen& open) : count_(open.attributes().integer("samples")), shard_(open.shard()) {
    const int64_t most = tn::options(open.get()->services, "tenon.museum.cpp").integer("most_samples");
    if (count_ > most) throw tn::Failure(TN_INVALID, "samples", "the deployer allows " + std::to_string(most));
    if (const auto known = open.columns("x"); !known.empty()) columns_.assign(known.begin(), known.end());
    if (columns_ != kColumns && columns_ != kTurned) throw tn::Failure(TN_INVALID, "x", "expected at and rest");
    slots_[0].names = std::make_shared<const tn::Names>(std::vector<std::string>(), columns_);
    if (!open.needed("y")) slots_.pop_back();
  }

  const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  int64_t samples() const { return shard_.samples(count_); }
  static constexpr bool parallel_reads = true;
  void read(int64_t index, tn::Samples& to) const {
    const float at = static_cast<float>(shard_.sample(index)) / static_cast<float>(count_);
    float* const x = to.dense<float>(0);
    const bool turned = columns_ == kTurned;
    x[turned ? 1 : 0] = at;
    x[turned ? 0 : 1] = 1 - at;
    if (slots_.size() == 1) return;
    float* const y = to.dense<float>(1);
    y[0] = 3 * at + 0.5f;
    y[1] = 0.5f - 2 * (1 - at);
  }
  int64_t records() const { return 2 * count_; }
  int64_t record(int64_t index) const { return 2 * shard_.sample(index); }
  std::string_view text(int64_t index, const std::string& column) {
    if (column != "number") throw tn::Failure(TN_NOT_FOUND, column, "unknown column; known: number");
    return text_ = std::to_string(record(index));
  }

 private:
  inline static const std::vector<std::string> kColumns{"at", "rest"}, kTurned{"rest", "at"};

  int64_t count_;
  tn::Shard shard_;
  std::vector<std::string> columns_ = kColumns;
  std::string text_;
  std::vector<tn::ReaderSlot> slots_{{"x", TN_F32, {2}}, {"y", TN_F32, {2}}};
};

struct Distance {
  static void describe(tn::LayerDescription& d) {
    d.type("museum.distance", "output_i = sum_c (a_ic - b_ic)^2");
    d.role(TN_ROLE_COST);
    d.input("a", "[samples, columns]");
    d.input("b", "as a");
    d.input("label", "[samples]: 0, 1, or -1 where there is none; not used", TN_PORT_OPTIONAL | TN_PORT_INTEGER);
    d.output("output", "[samples]: the cost of each");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec a = planner.input_of_rank(0, 2, "[samples, columns]");
    planner.require_shape(1, a);
    if (planner.has_input(2)) {
      planner.index_limit(2, 2);
      planner.index_exempt(2, -1);
    }
    planner.output(0, tn::Spec({a[0]}));
  }

  static void lower(const tn::Attributes&, tn::Builder& body) {
    tn::Program p;
    const tn::Float a = p.full();
    const tn::Float difference = a - p.full();
    p.output(difference * difference);
    const tn::Tensor squares = body.pointwise(p, {body.input(0), body.input(1)}, 1)[0];
    // The squares of each row in sorted order, as row * columns + position, and the last of their sums.
    const tn::Spec shape = squares.spec();
    const int64_t columns = shape[1].offset;
    tn::Program place;
    place.output(place.row() * columns + place.full<tn::Int>());
    const tn::Tensor order = body.pointwise(place, {body.argsort(squares, TN_SORT_DESCENDING)}, 1)[0];
    const tn::Tensor sorted = body.gather(squares.view(tn::Spec({shape[0].times(columns)})), order);
    const tn::Tensor sums = body.slice(body.prefix_sum(sorted), 1, columns - 1, 1);
    body.output(0, sums.view(tn::Spec({shape[0]})));
  }
};

struct Descent {
  static void describe(tn::UpdaterDescription& d) {
    d.type("museum.descent", "p = p - learning_rate * g");
    d.attribute(tn::float_attribute("learning_rate", 0.1).at_least(0).doc("step size"));
  }

  static void record(tn::UpdateRecorder& update) {
    update.parameter_next(update.parameter() - update.learning_rate() * update.gradient());
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.museum.cpp", "0.4.0", "An exhibit of interface 0.4 in C++", "Apache-2.0");
  plugin.layer<Distance>();
  plugin.updater<Descent>();
  plugin.reader<Line>();
  plugin.option(tn::int_attribute("most_samples", 1000000).at_least(1).doc("the largest number of points"));
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
