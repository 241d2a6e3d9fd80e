// SPDX-License-Identifier: Apache-2.0
#include "tests/support/row_layers.h"

#include <cstring>
#include <string>
#include <tenon/kernel.hpp>
#include <tenon/layer.hpp>

namespace tenon_tests {

namespace {

using tn::Float;
using tn::Int;

// Gathers rows of `from` by the number of a row within its sequence, `at` int64 [rows]; rows outside of the sequence
// are zero.
tn::Tensor rows_at(tn::Builder& body, const tn::Tensor& from, const tn::Tensor& at, const tn::Dim& rows) {
  const tn::Dim own = from.spec()[0];
  tn::Program place;
  const Int begin = place.per_row<Int>(), length = place.per_row<Int>(), number = place.per_row<Int>();
  const tn::Logical inside = number >= 0 && number < length;
  place.output(select(inside, begin + number, 0 * number));
  place.output(tn::to_float(inside));
  const std::vector<tn::Tensor> made =
      body.pointwise(place, {body.segment(TN_SEGMENT_BROADCAST, body.segment(TN_SEGMENT_START, own), rows),
                             body.segment(TN_SEGMENT_BROADCAST, body.segment(TN_SEGMENT_LENGTH, own), rows), at});
  tn::Program masked;
  const Float value = masked.full();
  masked.output(value * masked.per_row());
  return body.pointwise(masked, {body.gather(from, made[0]), made[1]}).front();
}

struct Windows {
  static void describe(tn::LayerDescription& d) {
    d.type("test_windows", "Sums of `window` rows, one every `stride` rows.");
    d.input("in", "[rows, n]: sequences");
    d.output("out", "[windows, n]: as many sequences");
    d.attribute(tn::int_attribute("window", 2).at_least(1).doc("rows of a sum"));
    d.attribute(tn::int_attribute("stride", 1).at_least(1).doc("rows from one window to the next"));
    d.attribute(tn::int_attribute("before", 0).at_least(0).doc("zero rows before a sequence"));
    d.attribute(tn::int_attribute("after", 0).at_least(0).doc("zero rows after a sequence"));
  }
  static void plan(tn::Planner& planner) {
    const tn::Spec in = planner.input_of_rank(0, 2, "[rows, n]");
    const tn::Attributes a = planner.attributes();
    planner.output(0, tn::Spec({planner.strided_rows(0, a.integer("window"), a.integer("stride"),
                                                     a.integer("before") + a.integer("after")),
                                in[1]}));
  }
  static void lower(const tn::Attributes& a, tn::Builder& body) {
    const tn::Tensor in = body.input(0);
    const tn::Dim rows = body.rows(0);
    const tn::Tensor position = body.segment(TN_SEGMENT_POSITION, rows);
    std::optional<tn::Tensor> sum;
    for (int64_t k = 0; k < a.integer("window"); ++k) {
      tn::Program number;
      number.output(number.per_row<Int>() * a.integer("stride") + (k - a.integer("before")));
      const tn::Tensor one = rows_at(body, in, body.pointwise(number, {position}).front(), rows);
      tn::Program add;
      add.output(add.full() + add.full());
      sum = sum ? body.pointwise(add, {*sum, one}).front() : one;
    }
    body.output(0, *sum);
  }
};

struct First {
  static void describe(tn::LayerDescription& d) {
    d.type("test_first", "The first `count` rows of each sequence.");
    d.input("in", "[rows, n]: sequences");
    d.output("out", "[rows that are left, n]: as many sequences");
    d.attribute(tn::int_attribute("count", 2).at_least(0).doc("rows of a sequence that are left"));
  }
  static void plan(tn::Planner& planner) {
    const tn::Spec in = planner.input_of_rank(0, 2, "[rows, n]");
    planner.output(0, tn::Spec({planner.first_rows(0, planner.attributes().integer("count")), in[1]}));
  }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Dim rows = body.rows(0);
    body.output(0, rows_at(body, body.input(0), body.segment(TN_SEGMENT_POSITION, rows), rows));
  }
};

struct Positive {
  static void describe(tn::LayerDescription& d) {
    d.type("test_positive", "The rows that begin with a positive number.");
    d.input("in", "[rows, n]: sequences");
    d.output("out", "[rows that are left, n]: as many sequences");
    d.attribute(tn::string_attribute("fault", "").doc("what the kernel writes wrongly"));
  }
  static void plan(tn::Planner& planner) {
    const tn::Spec in = planner.input_of_rank(0, 2, "[rows, n]");
    planner.output(0, tn::Spec({planner.data_rows(0, in[0]), in[1]}));
  }
};

class PositiveKernel {
 public:
  static void describe(tn::KernelDescription& d) {
    d.kernel("test_positive", "cpu", "positive", 10);
    d.compute(TN_F32);
    d.compute(TN_F64);
  }
  static void query(const tn::KernelSite&, tn::KernelNeeds& needs) { needs.read_input(0); }
  PositiveKernel(const tn::KernelSite& site, int32_t direction)
      : backward_(direction == TN_BACKWARD),
        wide_(site->compute == TN_F64),
        rows_(site.input(0)[0]),
        sequences_(site.input(0).outer(static_cast<int32_t>(0))),
        width_(site.input(0)[1].offset),
        fault_(site.attributes().text("fault")) {}
  void run(const tn::Call& call) const {
    if (backward_)
      wide_ ? backward<double>(call) : backward<float>(call);
    else
      wide_ ? forward<double>(call) : forward<float>(call);
  }

 private:
  // in -> out, offsets, count
  template <typename T>
  void forward(const tn::Call& call) const {
    const auto* in = call.in<T>(0);
    const auto& ragged = *static_cast<const tn_ragged*>(call.input(0)->part);
    const int64_t* const from = ragged.offsets[0];
    auto* const offsets = call.out<int64_t>(1);
    const int64_t sequences = call.size(sequences_);
    int64_t kept = 0;
    offsets[0] = 0;
    for (int64_t sequence = 0; sequence < sequences; ++sequence) {
      for (int64_t row = from[sequence]; row < from[sequence + 1]; ++row) {
        if (!(in[row * width_] > 0)) continue;
        std::memcpy(call.out<T>(0) + kept * width_, in + row * width_, static_cast<size_t>(width_) * sizeof(T));
        ++kept;
      }
      offsets[sequence + 1] = kept;
    }
    auto* const count = call.out<int64_t>(2);
    count[0] = kept;
    if (fault_ == "count") count[0] = call.size(rows_) + 1;
    if (fault_ == "begin") offsets[0] = 1;
    if (fault_ == "order") offsets[1] = kept + 1;
    if (fault_ == "end") offsets[sequences] = kept + 1;
  }

  // in, -, dout -> din
  template <typename T>
  void backward(const tn::Call& call) const {
    const auto *in = call.in<T>(0), *given = call.in<T>(2);
    auto* const to = call.out<T>(0);
    if (to == nullptr) return;
    int64_t kept = 0;
    for (int64_t row = 0; row < call.size(rows_); ++row) {
      const bool stays = in[row * width_] > 0;
      for (int64_t i = 0; i < width_; ++i) {
        T& element = to[row * width_ + i];
        element = (call.adds(0) ? element : 0) + (stays && given != nullptr ? given[kept * width_ + i] : 0);
      }
      kept += stays ? 1 : 0;
    }
  }

  bool backward_, wide_;
  tn::Dim rows_, sequences_;
  int64_t width_;
  std::string fault_;
};

}  // namespace

const tn_layer_type* windows_layer() { return tn::layer_type<Windows>(); }
const tn_layer_type* first_layer() { return tn::layer_type<First>(); }
const tn_layer_type* positive_layer() { return tn::layer_type<Positive>(); }
const tn_kernel* positive_kernel() { return tn::kernel<PositiveKernel>(); }

}  // namespace tenon_tests
