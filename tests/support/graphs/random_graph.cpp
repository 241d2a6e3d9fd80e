// SPDX-License-Identifier: Apache-2.0
#include "tests/support/graphs/random_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/graphs/graph_program.h"
#include "tests/support/graphs/random_values.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

// A native kernel for two layers: first = tanh(a b), second = a + b / 2.
std::vector<Numbers> native_forward(const std::vector<Numbers>& inputs) {
  std::vector<Numbers> outputs(2);
  for (size_t i = 0; i < inputs[0].size(); ++i) {
    outputs[0].push_back(std::tanh(inputs[0][i] * inputs[1][i]));
    outputs[1].push_back(inputs[0][i] + inputs[1][i] / 2);
  }
  return outputs;
}
// Its inputs: a, b, the outputs, the gradients of the outputs. Reads a, b and the first output of these.
std::vector<Numbers> native_backward(const std::vector<Numbers>& inputs) {
  std::vector<Numbers> outputs(2);
  for (size_t i = 0; i < inputs[0].size(); ++i) {
    const double y = inputs[2].at(i);
    const double first = inputs[4].empty() ? 0 : inputs[4][i] * (1 - y * y);
    const double second = inputs[5].empty() ? 0 : inputs[5][i];
    outputs[0].push_back(first * inputs[1][i] + second);
    outputs[1].push_back(first * inputs[0][i] + second / 2);
  }
  return outputs;
}

class Maker : private RandomValues {
 public:
  Maker(uint64_t seed, size_t steps) : RandomValues(seed) {
    for (size_t i = 0; i < steps; ++i) step();
    while (values_.empty()) step();  // a step may find no operands
    random_.seed(seed + 77);         // makes the choices below independent of the steps
    choose_results();
  }

  RandomGraph result() { return std::move(result_); }

 private:
  void step() {
    switch (pick(19)) {
      case 0:
      case 1:
        return product();
      case 2:
        return bag();
      case 3:
        return gather();
      case 4:
        return scatter();
      case 5:
      case 6:
        return move();
      case 7:
      case 8:
        return view(any_number());
      case 9:
      case 10:
        return segment();
      case 11:
        return native();
      case 12:
        return along_rows();
      case 13:
        return image();
      case 14:
        return row_product();
      default:
        return pointwise(one_in(6) ? external(other_type(), any_shape()) : any_value());
    }
  }

  tn_dtype other_type() {
    constexpr tn_dtype kTypes[] = {TN_U8, TN_I32, TN_I64, TN_BOOL, TN_F32};
    return kTypes[pick(5)];
  }
  ValueId any_value() {
    return find_or([](ValueId) { return true; }, any_shape());
  }

  // Adds a program over the grid of `first`, or over a grid whose rows are `first`.
  void pointwise(ValueId first) {
    Shape whole = shape(first);
    GraphProgram program(random_, result_.smooth, draws_);
    std::vector<ValueId> inputs{first};
    if (whole.size() == 1 && one_in(6)) {
      whole.push_back(any_dim());
      take(program, first, TN_PER_ROW);
      pointwise_over(program, inputs, whole, 1);
      return;
    }
    take(program, first, TN_FULL);
    std::vector<size_t> leadings;  // symbols are in the rows, or there is one row
    for (size_t lead = 0; lead <= whole.size(); ++lead)
      if (lead == 0 || std::all_of(whole.begin() + static_cast<std::ptrdiff_t>(lead), whole.end(), is_fixed))
        leadings.push_back(lead);
    pointwise_over(program, inputs, whole, leadings[pick(leadings.size())]);
  }

  void take(GraphProgram& program, ValueId value, uint8_t extent) {
    const tn_dtype dtype = spec(value).dtype;
    uint8_t kind = TN_FLOAT;
    if (!is_float(dtype) && one_in(2)) kind = dtype == TN_BOOL && one_in(2) ? TN_LOGICAL : TN_INT;
    program.input(extent, kind);
  }

  void pointwise_over(GraphProgram& program, std::vector<ValueId> inputs, const Shape& whole, size_t lead) {
    const auto cut = whole.begin() + static_cast<std::ptrdiff_t>(lead);
    for (size_t i = 0, more = pick(3); i < more; ++i) {
      const auto extent = static_cast<uint8_t>(one_in(2) ? size_t{TN_FULL} : pick(4));
      Shape wanted = whole;
      if (extent == TN_PER_ROW) wanted = {whole.begin(), cut};
      if (extent == TN_PER_COLUMN) wanted = {cut, whole.end()};
      if (extent == TN_SCALAR) wanted = {};
      ValueId value = find([&](ValueId each) { return same(shape(each), wanted); });
      if (same(shape(inputs.back()), wanted) && one_in(4)) value = inputs.back();
      if (value == kNoValue || one_in(8)) value = number_of(wanted);
      if (one_in(6) && is_number(value)) value = with_trailing_one(value);
      if (one_in(10) && extent == TN_FULL) value = inputs[0];
      if (extent != TN_FULL || same(shape(value), whole) || shape(value).size() > whole.size()) {
        take(program, value, extent);
        inputs.push_back(value);
      }
    }
    std::shared_ptr<const Program> author;
    const Program made = program.finish();
    if (one_in(5)) {  // a derivative as an author would write it
      std::vector<int32_t> all(made.inputs.size());
      std::iota(all.begin(), all.end(), 0);
      author = std::make_shared<Program>(derive_gradient(made, std::vector<bool>(made.outputs.size(), true), all));
    }
    const std::vector<ValueId> outputs =
        writer_.pointwise_on(std::make_shared<Program>(made), inputs, whole, static_cast<int32_t>(lead));
    result_.graph.nodes.back().as<Pointwise>()->author_gradient = std::move(author);
    for (const ValueId output : outputs) known(output);
  }

  ValueId with_trailing_one(ValueId value) {
    Shape longer = shape(value);
    longer.push_back(fixed(1));
    return known(writer_.view(value, longer));
  }

  void product() {
    product_of(find_or([&](ValueId value) { return is_number(value) && is_matrix(value); },
                       {tn_dim_symbol(TN_SYMBOL_SAMPLES), any_dim()}));
  }
  void product_of(ValueId a) {
    const auto flags = static_cast<uint32_t>(pick(4));
    const Shape left = shape(a);
    const size_t rank = left.size();
    const bool tb = (flags & TN_TRANSPOSE_B) != 0;
    const Dim inner = left[rank - ((flags & TN_TRANSPOSE_A) != 0 ? 2 : 1)];
    Shape right(left.begin(), left.end() - 2);
    const Dim columns = any_dim();
    right.insert(right.end(), {tb ? columns : inner, tb ? inner : columns});
    const auto fits = [&](ValueId value) {
      Shape other = shape(value);
      if (!is_number(value) || other.size() != rank) return false;
      other[rank - (tb ? 2 : 1)] = columns;
      return same(other, right) && is_fixed(shape(value)[rank - (tb ? 2 : 1)]);
    };
    const ValueId made = known(writer_.gemm(a, find_or(fits, right), flags, one_in(2) ? 0.5 : 1));
    if (one_in(4)) return;
    pointwise(one_in(6) ? known(writer_.view(made, {elements(shape(made))})) : made);
  }
  bool is_matrix(ValueId value) {
    const Shape s = shape(value);
    return s.size() == 2 || (s.size() == 3 && is_fixed(s[1]) && is_fixed(s[2]));
  }

  // A table of constant size.
  ValueId table() {
    const auto fits = [&](ValueId value) {
      const Shape s = shape(value);
      return is_number(value) && !s.empty() && std::all_of(s.begin(), s.end(), is_fixed);
    };
    Shape shape{fixed(2 + pick(3))};
    for (size_t i = 0, more = pick(3); i < more; ++i) shape.push_back(any_dim());
    return find_or(fits, shape);
  }
  size_t height_of(ValueId value) { return static_cast<size_t>(shape(value)[0].offset); }

  void gather() {
    const ValueId rows = table();
    Shape index = any_shape();
    if (index.size() > 2) index.resize(2);
    known(writer_.gather(rows, ids_of(index, height_of(rows))));
  }

  // A product of matrices whose rows are those of a parameter. Every second one has sides of 1, for which the gradient
  // of the rows is a product of one term.
  void row_product() {
    const auto side = [&] { return one_in(2) ? fixed(1) : any_dim(); };
    const ValueId rows = external(TN_F64, {fixed(2 + pick(3)), side()});
    const Dim samples = tn_dim_symbol(TN_SYMBOL_SAMPLES);
    const ValueId gathered = writer_.gather(rows, ids_of({samples, side()}, height_of(rows)));
    if (one_in(6)) known(gathered);
    if (one_in(2)) return product_of(gathered);
    const auto flags = static_cast<uint32_t>(pick(4));
    const bool ta = (flags & TN_TRANSPOSE_A) != 0, tb = (flags & TN_TRANSPOSE_B) != 0;
    const Dim inner = shape(gathered)[tb ? 2 : 1], outer = side();
    const ValueId other = one_in(4) && same(shape(gathered), {samples, ta ? inner : outer, ta ? outer : inner})
                              ? gathered
                              : number_of({samples, ta ? inner : outer, ta ? outer : inner});
    known(writer_.gemm(other, gathered, flags, one_in(2) ? 0.5 : 1));
  }

  void bag() {
    const ValueId rows = table();
    const Dim dim = tn_dim_symbol(one_in(2) ? kRows : kInnerRows);
    const Shape index = one_in(6) ? Shape{dim, fixed(2)} : Shape{dim};
    const ValueId gathered = writer_.gather(rows, ids_of(index, height_of(rows)));
    ValueId read = gathered;
    if (one_in(6)) known(gathered);  // others may read or keep it
    if (one_in(8)) read = with_trailing_one(gathered);
    if (one_in(10)) forced_.push_back(gathered);
    if (one_in(8)) pointwise(gathered);
    known(writer_.segment(TN_SEGMENT_SUM, read, dim, 0));
    if (one_in(10)) pointwise(gathered);
  }

  void scatter() {
    const ValueId value = find_or([&](ValueId v) { return is_number(v) && !shape(v).empty(); }, any_shape());
    const size_t height = 1 + pick(4);
    known(writer_.scatter_add(value, ids_of({shape(value)[0]}, height), fixed(height)));
  }

  void move() {
    const ValueId value = find_or([&](ValueId v) { return shape(v).size() >= 2 && shape(v).size() <= 3; },
                                  {any_dim(), any_dim(), any_dim()});
    const Shape s = shape(value);
    const size_t axis = 1 + pick(s.size() - 1);
    if (!is_fixed(s[axis])) return;
    const auto along = static_cast<int32_t>(axis);
    const int64_t size = s[axis].offset;
    switch (pick(4)) {
      case 0: {
        const auto fits = [&](ValueId v) { return spec(v).dtype == spec(value).dtype && same(shape(v), s); };
        const ValueId other = find(fits);
        known(writer_.concat(one_in(3) ? std::vector{value, other, value} : std::vector{other, value}, along));
        return;
      }
      case 1: {
        const auto start = static_cast<int64_t>(pick(static_cast<size_t>(size)));
        known(writer_.slice(value, along, start, 1 + static_cast<int64_t>(pick(static_cast<size_t>(size - start)))));
        return;
      }
      case 2:
        known(writer_.pad(value, along, static_cast<int64_t>(pick(2)), static_cast<int64_t>(pick(3))));
        return;
      default: {
        std::vector<int32_t> axes(s.size());
        std::iota(axes.begin(), axes.end(), 0);
        std::shuffle(axes.begin() + (one_in(4) ? 0 : 1), axes.end(), random_);
        known(writer_.transpose(value, axes));
      }
    }
  }

  void view(ValueId value) {
    const Shape s = shape(value);
    Shape seen;
    switch (pick(4)) {
      case 0:
        seen = {elements(s)};
        break;
      case 1:
        seen = s;
        seen.insert(seen.begin() + static_cast<std::ptrdiff_t>(s.empty() ? 0 : 1 + pick(s.size())), fixed(1));
        break;
      case 2:  // the dimensions after the first one as one
        if (s.empty()) return;
        seen = {s[0], elements(s.data() + 1, s.size() - 1)};
        break;
      default:  // the last dimension split
        if (s.empty() || !is_fixed(s.back()) || s.back().offset % 2 != 0) return;
        seen = s;
        seen.back() = tn_dim_constant(s.back().offset / 2);
        seen.push_back(fixed(2));
    }
    if (seen.size() <= 4) known(writer_.view(value, seen));
  }

  void segment() {
    const Dim rows = tn_dim_symbol(one_in(2) ? kRows : kInnerRows);
    const Dim outer = result_.graph.rows.at(rows.symbol).outer;
    const auto beginning_with = [&](const Dim& first) {
      const auto fits = [&](ValueId v) { return is_number(v) && !shape(v).empty() && same(shape(v)[0], first); };
      Shape fallback{first};
      if (!one_in(3)) fallback.push_back(any_dim());
      return find_or(fits, fallback);
    };
    switch (pick(8)) {
      case 0:
      case 1:
        known(writer_.segment(TN_SEGMENT_SUM, beginning_with(rows), rows, 0));
        return;
      case 2:
        if (result_.smooth) return;
        known(writer_.segment(TN_SEGMENT_MAX, beginning_with(rows), rows, 0));
        return;
      case 3:
      case 4:
        known(writer_.segment(TN_SEGMENT_BROADCAST, beginning_with(outer), rows, 0));
        return;
      case 5:
        known(writer_.segment(TN_SEGMENT_SHIFT, beginning_with(rows), rows, static_cast<int64_t>(pick(3)) - 1));
        return;
      case 6:
        if (result_.smooth) return;
        known(writer_.segment(TN_SEGMENT_RANK, number_of({rows}), rows, 0));
        return;
      default: {
        constexpr int32_t kCounts[] = {TN_SEGMENT_POSITION, TN_SEGMENT_LENGTH, TN_SEGMENT_START};
        known(writer_.segment(kCounts[pick(3)], kNoValue, rows, 0));
      }
    }
  }

  // A window over small images, whose places are at least one.
  tn_window window(int32_t rank) {
    tn_window made = {};
    made.size = sizeof made;
    made.rank = rank;
    for (int32_t i = 0; i < rank; ++i) {
      made.images[i] = 1 + static_cast<int64_t>(pick(4));
      made.stride[i] = 1 + static_cast<int64_t>(pick(2));
      made.dilation[i] = 1 + static_cast<int64_t>(pick(2));
      made.kernel[i] = 1 + static_cast<int64_t>(pick(2));
      if (made.dilation[i] * (made.kernel[i] - 1) + 1 > made.images[i]) made.kernel[i] = 1;
      made.after[i] = made.kernel[i] > 1 ? static_cast<int64_t>(pick(2)) : 0;
    }
    return made;
  }
  static Shape images_of(const Dim& first, const int64_t* sizes, int32_t rank, size_t channels) {
    Shape made{first};
    for (int32_t i = 0; i < rank; ++i) made.push_back(tn_dim_constant(sizes[i]));
    made.push_back(fixed(channels));
    return made;
  }

  void image() {
    const auto rank = static_cast<int32_t>(1 + pick(2));
    const tn_window over = window(rank);
    const Dim samples = tn_dim_symbol(TN_SYMBOL_SAMPLES);
    int64_t places[TN_MAX_SPACE] = {};
    for (int32_t i = 0; i < rank; ++i) places[i] = tn_window_places(&over, i);
    const size_t groups = 1 + pick(2), channels = groups * (1 + pick(2)), filters = groups * (1 + pick(2));
    const auto images = [&] { return number_of(images_of(samples, over.images, rank, channels)); };
    const auto results = [&](size_t last) { return number_of(images_of(samples, places, rank, last)); };
    const auto weights = [&] { return number_of(images_of(fixed(filters), over.kernel, rank, channels / groups)); };
    const auto by = static_cast<int64_t>(groups);
    switch (pick(result_.smooth ? 6 : 7)) {
      case 0:
      case 1:
        known(writer_.conv(TN_CONV_RESULTS, over, by, images(), weights()));
        return;
      case 2:
        known(writer_.conv(TN_CONV_IMAGES, over, by, results(filters), weights()));
        return;
      case 3:
        known(writer_.conv(TN_CONV_WEIGHTS, over, by, images(), results(filters)));
        return;
      case 4:
        if (one_in(2)) {
          known(writer_.pool(TN_POOL_SUM, over, images(), kNoValue)[0]);
        } else {
          known(writer_.pool(TN_POOL_SPREAD, over, results(channels), kNoValue)[0]);
        }
        return;
      case 5: {
        tn_resize how = {};
        how.size = sizeof how;
        how.rank = rank;
        how.flags = static_cast<uint32_t>(pick(2));
        for (int32_t i = 0; i < rank; ++i) {
          how.from[i] = over.images[i];
          how.to[i] = 1 + static_cast<int64_t>(pick(4));
          how.scale[i] = static_cast<double>(how.from[i]) / static_cast<double>(how.to[i]);
          how.offset[i] = static_cast<double>(pick(3)) / 4;
        }
        known(writer_.resize(how, images()));
        return;
      }
      default: {
        const std::vector<ValueId> most = writer_.pool(TN_POOL_MAX, over, images(), kNoValue);
        known(most[0]);
        if (one_in(2)) known(writer_.pool(TN_POOL_SCATTER, over, results(channels), most[1])[0]);
        if (one_in(2)) known(writer_.pool(TN_POOL_TAKE, over, images(), most[1])[0]);
      }
    }
  }

  void along_rows() {
    const ValueId value = find_or([&](ValueId v) { return is_number(v) && !shape(v).empty(); }, {any_dim(), any_dim()});
    if (result_.smooth || one_in(2)) {
      known(writer_.prefix_sum(value, static_cast<uint32_t>(pick(4))));
      return;
    }
    const Dim columns = shape(value).back();
    const bool some = is_fixed(columns) && one_in(2);
    known(writer_.argsort(value, static_cast<uint32_t>(pick(2)),
                          some ? 1 + static_cast<int64_t>(pick(static_cast<size_t>(columns.offset))) : -1));
  }

  void native() {
    const ValueId a = any_number();
    const ValueId b = number_of(shape(a));
    NativeCall call;
    call.site = std::make_shared<TestKernel>(TestKernel{native_forward, native_backward});
    call.operands.inputs = call.operands.outputs = 2;
    call.reads_in = {1, 1};
    call.reads_out = {1, 0};
    call.in_place = call.backward_in_place = {-1, -1};
    for (const ValueId output : writer_.native(call, {a, b}, {spec(a), spec(a)}, {0, 1})) known(output);
  }

  // ---- requested results

  void choose_results() {
    result_.kept = forced_;
    result_.kept.push_back(values_.back());
    for (size_t i = 0, more = pick(4); i < more; ++i) result_.kept.push_back(find([](ValueId) { return true; }));
    if (one_in(4)) return;
    for (size_t i = 0, more = 1 + pick(2); i < more; ++i) {
      const ValueId cost = find([&](ValueId value) { return is_number(value); });
      if (cost != kNoValue && std::find(result_.costs.begin(), result_.costs.end(), cost) == result_.costs.end())
        result_.costs.push_back(cost);
    }
    const bool all = one_in(2);
    for (const ValueId parameter : parameters_) {
      if (!all && one_in(2)) continue;
      result_.wanted.push_back(parameter);
      if (one_in(2)) result_.row_sparse.insert(parameter);
    }
  }

  std::vector<ValueId> forced_;  // values that must be kept
  int32_t draws_ = 0;
};

}  // namespace

RandomGraph random_graph(uint64_t seed, size_t steps) { return Maker(seed, steps).result(); }

}  // namespace tenon_tests
