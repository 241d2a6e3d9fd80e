// SPDX-License-Identifier: Apache-2.0
#include "tests/support/graphs/graph_interpreter.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

#include "check/definitions/image_reference.h"
#include "check/definitions/program_reference.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

size_t at(ValueId value) { return static_cast<size_t>(value); }

class Evaluation {
 public:
  Evaluation(const Graph& graph, const Node& node, const std::vector<int64_t>& symbols,
             const std::vector<Numbers>& inputs)
      : graph_(graph), node_(node), symbols_(symbols), inputs_(inputs) {}

  std::vector<Numbers> outputs() {
    std::vector<Numbers> made =
        std::visit([&](const auto& operation) { return outputs_of(operation); }, node_.operation);
    if (!node_.epilogue) return made;
    std::vector<Numbers> operands(inputs_.begin() + 2, inputs_.end());
    operands.insert(operands.begin() + node_.epilogue->product, made[0]);
    for (Numbers& result : program(node_.epilogue->pointwise, operands)) made.push_back(std::move(result));
    return made;
  }

 private:
  std::vector<Numbers> outputs_of(const Pointwise& pointwise) { return program(pointwise, inputs_); }
  std::vector<Numbers> outputs_of(const Gemm& product) { return {gemm(product, inputs_[0], inputs_[1])}; }
  std::vector<Numbers> outputs_of(const GatherGemm& both) {
    return {gemm(both.gemm, rows_or_all(0, 2), rows_or_all(1, 3))};
  }
  std::vector<Numbers> outputs_of(const Gather& /*gather*/) {
    return {node_.inputs.size() == 3 ? summed(rows_of(0, 1)) : rows_of(0, 1)};
  }
  std::vector<Numbers> outputs_of(const ScatterAdd& /*scatter*/) { return {scattered()}; }
  std::vector<Numbers> outputs_of(const Move& move) { return {moved(move)}; }
  std::vector<Numbers> outputs_of(const Segment& over) { return {segment(over)}; }
  std::vector<Numbers> outputs_of(const Argsort& argsort) { return {sorted(argsort.flags)}; }
  std::vector<Numbers> outputs_of(const PrefixSum& sum) { return {summed_up(sum.flags)}; }
  std::vector<Numbers> outputs_of(const Conv& conv) {
    const bool images = conv.op == TN_CONV_IMAGES, weights = conv.op == TN_CONV_WEIGHTS;
    const Shape& of_images = shape(images ? node_.outputs[0] : node_.inputs[0]);
    const Shape& of_weights = shape(weights ? node_.outputs[0] : node_.inputs[1]);
    return {tenon::check::reference::conv(
        conv.op, conv.window, {size(of_images[0]), size(of_images.back()), size(of_weights[0]), conv.groups},
        inputs_[0], inputs_[1])};
  }
  std::vector<Numbers> outputs_of(const Pool& pool) {
    const Shape& given = shape(node_.inputs[0]);
    auto [results, positions] =
        tenon::check::reference::pool(pool.op, pool.window, {size(given[0]), size(given.back()), size(given.back()), 1},
                                      inputs_[0], inputs_.size() > 1 ? inputs_[1] : Numbers());
    if (pool.op != TN_POOL_MAX) return {results};
    return {results, positions};
  }
  std::vector<Numbers> outputs_of(const Resize& resize) {
    const Shape& given = shape(node_.inputs[0]);
    return {tenon::check::reference::resize(resize.how, size(given[0]), size(given.back()), inputs_[0])};
  }
  std::vector<Numbers> outputs_of(const StepTables& tables) { return step_tables(tables); }
  std::vector<Numbers> outputs_of(const StepRowTables& tables) { return step_row_tables(tables); }
  std::vector<Numbers> outputs_of(const Memory& /*memory*/) { throw std::logic_error("a memory outside of a loop"); }
  std::vector<Numbers> outputs_of(const LastStep& /*last*/) { throw std::logic_error("a last step outside of a loop"); }
  std::vector<Numbers> outputs_of(const Coalesce& sums) { return {coalesced(sums)}; }
  std::vector<Numbers> outputs_of(const NativeCall& native) {
    const auto& kernel = *static_cast<const TestKernel*>(native.site.get());
    return (node_.backward ? kernel.backward : kernel.forward)(inputs_);
  }
  std::vector<Numbers> outputs_of(const Pack& /*pack*/) { throw std::logic_error("a packed matrix has no numbers"); }
  std::vector<Numbers> outputs_of(const View& /*view*/) { throw std::logic_error("a view computes nothing"); }

  [[nodiscard]] int64_t size(const Dim& dim) const { return tn_dim_value(&dim, symbols_.data()); }
  [[nodiscard]] const Shape& shape(ValueId value) const { return graph_.spec(value).shape; }
  [[nodiscard]] Numbers zeros(ValueId value) const {
    return Numbers(static_cast<size_t>(count_of(shape(value), symbols_)), 0.0);
  }
  // Returns the row of an id; throws if the id is outside of a table of `height` rows.
  static size_t row_of(double id, size_t height) {
    if (!(id >= 0) || id >= static_cast<double>(height)) throw std::out_of_range("id " + std::to_string(id));
    return static_cast<size_t>(id);
  }

  [[nodiscard]] std::vector<Numbers> program(const Pointwise& pointwise, const std::vector<Numbers>& inputs) const {
    return tenon::check::reference::evaluate(pointwise.program->view(), size(pointwise.rows), size(pointwise.columns),
                                             inputs, tn_random{11, 3});
  }

  [[nodiscard]] Numbers gemm(const Gemm& product, const Numbers& of_a, const Numbers& of_b) const {
    const Shape a = matrix_shape(graph_, node_, 0);
    const Shape& c = shape(node_.outputs[0]);
    const bool ta = (product.flags & TN_TRANSPOSE_A) != 0;
    const bool tb = (product.flags & TN_TRANSPOSE_B) != 0;
    const auto m = static_cast<size_t>(size(c[c.size() - 2]));
    const auto n = static_cast<size_t>(size(c[c.size() - 1]));
    const auto k = static_cast<size_t>(size(a[a.size() - (ta ? 2 : 1)]));
    Numbers out = zeros(node_.outputs[0]);
    for (size_t batch = 0; m * n > 0 && batch < out.size() / (m * n); ++batch) {
      const double* x = of_a.data() + batch * m * k;
      const double* y = of_b.data() + batch * k * n;
      for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < n; ++j) {
          double sum = 0;
          for (size_t l = 0; l < k; ++l) sum += x[ta ? l * m + i : i * k + l] * y[tb ? j * k + l : l * n + j];
          out[batch * m * n + i * n + j] = product.alpha * sum;
        }
    }
    return out;
  }

  // The rows of input `from`, a table, by the ids of another input.
  [[nodiscard]] Numbers rows_of(size_t from, size_t ids) const {
    const Shape& table = shape(node_.inputs[from]);
    const auto height = static_cast<size_t>(size(table[0]));
    const auto width = static_cast<size_t>(count_of({table.begin() + 1, table.end()}, symbols_));
    Numbers out;
    for (const double id : inputs_[ids]) {
      const auto row = inputs_[from].begin() + static_cast<std::ptrdiff_t>(row_of(id, height) * width);
      out.insert(out.end(), row, row + static_cast<std::ptrdiff_t>(width));
    }
    return out;
  }

  [[nodiscard]] Numbers rows_or_all(size_t from, size_t ids) const {
    return node_.inputs[ids] == kNoValue ? inputs_[from] : rows_of(from, ids);
  }

  // The sums of the gathered rows over the segments of a bag.
  [[nodiscard]] Numbers summed(const Numbers& rows) const {
    Numbers out = zeros(node_.outputs[0]);
    const Numbers& offsets = checked_offsets(inputs_[2], inputs_[1].size());
    const size_t width = rows.empty() ? 0 : rows.size() / inputs_[1].size();
    for (size_t s = 0; s + 1 < offsets.size(); ++s)
      for (auto r = static_cast<size_t>(offsets[s]); r < static_cast<size_t>(offsets[s + 1]); ++r)
        for (size_t c = 0; c < width; ++c) out[s * width + c] += rows[r * width + c];
    return out;
  }

  static const Numbers& checked_offsets(const Numbers& offsets, size_t rows) {
    const bool right = !offsets.empty() && offsets.front() == 0 && offsets.back() == static_cast<double>(rows) &&
                       std::is_sorted(offsets.begin(), offsets.end());
    if (!right) throw std::out_of_range("invalid offsets");
    return offsets;
  }

  [[nodiscard]] Numbers scattered() const {
    Numbers out = zeros(node_.outputs[0]);
    const Shape& to = shape(node_.outputs[0]);
    const auto height = static_cast<size_t>(size(to[0]));
    const auto width = static_cast<size_t>(count_of({to.begin() + 1, to.end()}, symbols_));
    for (size_t i = 0; i < inputs_[1].size(); ++i)
      for (size_t c = 0; c < width; ++c) out[row_of(inputs_[1][i], height) * width + c] += inputs_[0][i * width + c];
    return out;
  }

  // The dense tensor that the coalesced rows stand for.
  [[nodiscard]] Numbers coalesced(const Coalesce& sums) const {
    Numbers out = zeros(node_.outputs[0]);
    const Shape& to = shape(node_.outputs[0]);
    const auto height = static_cast<size_t>(size(to[0]));
    const auto width = static_cast<size_t>(count_of({to.begin() + 1, to.end()}, symbols_));
    for (size_t part = 0, first = 0; first < inputs_.size(); ++part, first += sums.stride()) {
      const Numbers& ids = inputs_[first + 1];
      const bool products = sums.stride() == 5, weighted = products && node_.inputs[first + 3] != kNoValue;
      const Numbers values = products ? rows_or_all(first, first + 4) : inputs_[first];
      const bool by_segment = node_.inputs[first + 2] != kNoValue;
      if (by_segment) checked_offsets(inputs_[first + 2], ids.size());
      size_t segment = 0;
      for (size_t i = 0; i < ids.size(); ++i) {
        if (by_segment)
          while (static_cast<double>(i) >= inputs_[first + 2][segment + 1]) ++segment;
        else
          segment = i / (ids.size() * width / values.size());  // each row belongs to as many ids
        for (size_t c = 0; c < width; ++c) {
          const double value = values[segment * width + c];
          out[row_of(ids[i], height) * width + c] +=
              weighted ? sums.alphas[part] * (inputs_[first + 3][i] * value) : value;
        }
      }
    }
    return out;
  }

  [[nodiscard]] Numbers moved(const Move& move) const {
    const auto steps = [&](ValueId value) {
      std::vector<size_t> result(shape(value).size(), 1);
      for (size_t i = result.size(); i-- > 1;) result[i - 1] = result[i] * static_cast<size_t>(size(shape(value)[i]));
      return result;
    };
    const std::vector<size_t> to = steps(node_.outputs[0]);
    Numbers out = zeros(node_.outputs[0]);
    for (const MovePart& part : move.parts) {
      const std::vector<size_t> from = steps(node_.inputs[part.input]);
      for (int64_t n = 0; n < count_of(part.box, symbols_); ++n) {
        size_t source = 0, target = 0;
        for (size_t i = part.box.size(), rest = static_cast<size_t>(n); i-- > 0;) {
          const auto length = static_cast<size_t>(size(part.box[i]));
          const auto axis = static_cast<size_t>(part.axes[i]);
          source += (static_cast<size_t>(part.from[i]) + rest % length) * from[i];
          target += (static_cast<size_t>(part.to[axis]) + rest % length) * to[axis];
          rest /= length;
        }
        out.at(target) = inputs_[part.input].at(source);
      }
    }
    return out;
  }

  [[nodiscard]] Numbers segment(const Segment& over) const {
    const auto rows = static_cast<size_t>(size(over.rows));
    const Numbers& offsets = checked_offsets(inputs_[1], rows);
    const Shape& to = shape(node_.outputs[0]);
    const auto width = static_cast<size_t>(count_of({to.begin() + 1, to.end()}, symbols_));
    Numbers out = zeros(node_.outputs[0]);
    for (size_t s = 0; s + 1 < offsets.size(); ++s) {
      const auto first = static_cast<size_t>(offsets[s]), last = static_cast<size_t>(offsets[s + 1]);
      if (over.op == TN_SEGMENT_LENGTH) out[s] = static_cast<double>(last - first);
      if (over.op == TN_SEGMENT_START) out[s] = static_cast<double>(first);
      for (size_t r = first; r < last; ++r)
        for (size_t c = 0; c < width; ++c) segment_element(over, out, {s, first, last, r}, width, c);
    }
    return out;
  }

  // Calls row(first input element, first output element) for each row of the input and the output.
  template <typename Row>
  Numbers by_row(Row row) const {
    Numbers out = zeros(node_.outputs[0]);
    const auto columns = static_cast<size_t>(size(shape(node_.inputs[0]).back()));
    const auto count = static_cast<size_t>(size(shape(node_.outputs[0]).back()));
    if (columns > 0 && count > 0)
      for (size_t r = 0; r < inputs_[0].size() / columns; ++r)
        row(inputs_[0].data() + r * columns, columns, out.data() + r * count, count);
    return out;
  }
  // An element comes after those that are before it in the order, and after equal ones with a smaller position.
  [[nodiscard]] Numbers sorted(uint32_t flags) const {
    return by_row([&](const double* from, size_t columns, double* to, size_t count) {
      for (size_t i = 0; i < columns; ++i) {
        size_t place = 0;
        for (size_t j = 0; j < columns; ++j) {
          const bool before = (flags & TN_SORT_DESCENDING) != 0 ? from[j] > from[i] : from[j] < from[i];
          place += before || (from[j] == from[i] && j < i) ? 1 : 0;
        }
        if (place < count) to[place] = static_cast<double>(i);
      }
    });
  }
  [[nodiscard]] Numbers summed_up(uint32_t flags) const {
    return by_row([&](const double* from, size_t columns, double* to, size_t /*count*/) {
      for (size_t i = 0; i < columns; ++i)
        for (size_t j = 0; j < columns; ++j) {
          const bool counts = i == j ? (flags & TN_SUM_EXCLUSIVE) == 0 : ((flags & TN_SUM_REVERSE) != 0) == (j > i);
          to[i] += counts ? from[j] : 0;
        }
    });
  }

  // By the definition of StepOrder: for each step the sequences that have it, sorted by length; of a nested order first
  // by the outer step that they belong to.
  [[nodiscard]] std::vector<Numbers> step_tables(const StepTables& tables) const {
    const StepOrder& order = graph_.orders[static_cast<size_t>(tables.order)];
    const Numbers& offsets = inputs_[0];
    const size_t sequences = offsets.size() - 1;
    const auto length = [&](size_t s) { return offsets[s + 1] - offsets[s]; };
    std::vector<size_t> sorted(sequences), outer(sequences, 0);
    for (size_t s = 0; s < sequences; ++s) sorted[s] = s;
    for (size_t s = 1; order.nested && s < sequences; ++s)  // the longest sequence outside begins each outer step
      outer[s] = outer[s - 1] + (inputs_[1][s] == inputs_[1][0] ? 1 : 0);
    std::stable_sort(sorted.begin(), sorted.end(), [&](size_t a, size_t b) {
      return outer[a] != outer[b] ? outer[a] < outer[b] : length(a) > length(b);
    });
    const double rows = checked_offsets(offsets, static_cast<size_t>(offsets.back())).back();
    Numbers row_of_step, step_of_row(static_cast<size_t>(rows)), sequence_of_step, before, last(sequences),
        initial(sequences);
    for (size_t i = 0; i < sequences; ++i) last[sorted[i]] = initial[sorted[i]] = rows + static_cast<double>(i);
    for (size_t begin = 0, end = 0; begin < sequences; begin = end) {
      while (end < sequences && outer[sorted[end]] == outer[sorted[begin]]) ++end;
      for (double t = 0; t < length(sorted[begin]); ++t)
        for (size_t i = begin; i < end; ++i) {
          const size_t s = sorted[i];
          if (length(s) <= t) continue;
          const double row = order.reverse ? offsets[s + 1] - 1 - t : offsets[s] + t;
          const auto element = static_cast<double>(row_of_step.size());
          before.push_back(last[s]);
          last[s] = step_of_row[static_cast<size_t>(row)] = element;
          row_of_step.push_back(row);
          sequence_of_step.push_back(static_cast<double>(s));
        }
    }
    return {row_of_step, step_of_row, sequence_of_step, before, last, initial};
  }

  // By the definition of StepRows: the second input has for each step the sequence that it sees.
  [[nodiscard]] std::vector<Numbers> step_row_tables(const StepRowTables& tables) const {
    const bool whole = graph_.step_rows[static_cast<size_t>(tables.number)].whole;
    const Numbers &offsets = inputs_[0], &sequence_of_step = inputs_[1];
    std::vector<size_t> sorted;  // each sequence once, in the order in which steps see them, and those that none sees
    std::vector<bool> known(offsets.size() - 1, false);
    const auto take = [&](size_t s) {
      if (!known[s]) sorted.push_back(s);
      known[s] = true;
    };
    for (const double s : sequence_of_step) take(static_cast<size_t>(s));
    for (size_t s = 0; s < known.size(); ++s) take(s);
    Numbers ends{0}, row_of_place, place_of_row(static_cast<size_t>(offsets.back())), place;
    for (const size_t s : sorted)
      for (double row = offsets[s]; row < offsets[s + 1]; ++row) {
        place_of_row[static_cast<size_t>(row)] = static_cast<double>(row_of_place.size());
        row_of_place.push_back(row);
      }
    double next = 0;
    for (const double s : sequence_of_step) {
      if (static_cast<size_t>(s) == sorted[0]) next = 0;  // the longest one runs at every step
      const auto length = static_cast<size_t>(offsets[static_cast<size_t>(s) + 1] - offsets[static_cast<size_t>(s)]);
      for (size_t i = 0; i < length; ++i) place.push_back(next++);
      ends.push_back(static_cast<double>(place.size()));
    }
    if (whole) return {ends, row_of_place, place_of_row, place};
    return {ends, row_of_place, place_of_row};
  }

  struct Row {
    size_t segment, first, last, row;
  };
  void segment_element(const Segment& over, Numbers& out, const Row& row, size_t width, size_t c) const {
    const Numbers& from = inputs_[0];
    const auto [s, first, last, r] = row;
    switch (over.op) {
      case TN_SEGMENT_SUM:
        out[s * width + c] += from[r * width + c];
        return;
      case TN_SEGMENT_MAX:
        out[s * width + c] = r == first ? from[r * width + c] : std::max(out[s * width + c], from[r * width + c]);
        return;
      case TN_SEGMENT_BROADCAST:
        out[r * width + c] = from[s * width + c];
        return;
      case TN_SEGMENT_SHIFT: {
        const auto shifted = static_cast<int64_t>(r) + over.by;
        if (shifted >= static_cast<int64_t>(first) && shifted < static_cast<int64_t>(last))
          out[r * width + c] = from[static_cast<size_t>(shifted) * width + c];
        return;
      }
      case TN_SEGMENT_POSITION:
        out[r] = static_cast<double>(r - first);
        return;
      case TN_SEGMENT_RANK:
        for (size_t other = first; other < last; ++other)
          out[r] += from[other] > from[r] || (from[other] == from[r] && other < r) ? 1 : 0;
        return;
      default:
        return;
    }
  }

  const Graph& graph_;
  const Node& node_;
  const std::vector<int64_t>& symbols_;
  const std::vector<Numbers>& inputs_;
};

}  // namespace

int64_t count_of(const Shape& shape, const std::vector<int64_t>& symbols) {
  int64_t count = 1;
  for (const Dim& dim : shape) count *= tn_dim_value(&dim, symbols.data());
  return count;
}

double stored_as(tn_dtype dtype, double number) {
  if (dtype == TN_BOOL) return number != 0 ? 1 : 0;
  return with_type(dtype, [&](auto type) { return static_cast<double>(static_cast<decltype(type)>(number)); });
}

std::vector<Numbers> evaluate(const Graph& graph, const Node& node, const std::vector<int64_t>& symbols,
                              const std::vector<Numbers>& inputs) {
  std::vector<Numbers> outputs = Evaluation(graph, node, symbols, inputs).outputs();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (node.outputs.at(i) != kNoValue)
      for (double& number : outputs[i]) number = stored_as(graph.spec(node.outputs[i]).dtype, number);
  return outputs;
}

void Interpreter::run() {
  for (size_t i = 0; i < graph_.nodes.size();) {
    const auto* const memory = graph_.nodes[i].as<Memory>();
    if (memory == nullptr) {
      run_node(graph_.nodes[i++]);
      continue;
    }
    // Each run over all nodes of the loop makes one more step final: an element of a memory is that of the step before.
    // A loop inside has steps of its own.
    size_t end = i;
    for (size_t k = i; k < graph_.nodes.size(); ++k) {
      const auto* const last = graph_.nodes[k].as<LastStep>();
      if (graph_.nodes[k].loop == memory->loop || (last != nullptr && last->loop == memory->loop)) end = k + 1;
    }
    int64_t runs = 1;
    std::set<int32_t> known;
    for (size_t k = i; k < end; ++k) {
      const auto* const each = graph_.nodes[k].as<Memory>();
      if (each == nullptr || !known.insert(each->loop).second) continue;
      const Loop& loop = graph_.loops[static_cast<size_t>(each->loop)];
      runs += tn_dim_value(&graph_.orders[static_cast<size_t>(loop.order)].steps, symbols_.data());
    }
    for (int64_t run = 0; run < runs; ++run)
      for (size_t k = i; k < end; ++k) run_node(graph_.nodes[k]);
    i = end;
  }
}

// Returns the states of a memory: what every step leaves, and the initial values.
Numbers Interpreter::states(const Loop& loop, ValueId initial, ValueId left) const {
  const StepOrder& order = graph_.orders[static_cast<size_t>(loop.order)];
  const Numbers &before = values[at(order.before)], &places = values[at(loop.backward ? order.last : order.initial)];
  const Shape& shape = graph_.spec(left).shape;
  const auto width = static_cast<size_t>(count_of({shape.begin() + 1, shape.end()}, symbols_));
  Numbers states((before.size() + places.size()) * width, 0.0);
  const auto copy = [&](const Numbers& from, size_t row, size_t to) {
    for (size_t c = 0; c < width && !from.empty(); ++c) states[to * width + c] = from[row * width + c];
  };
  if (initial != kNoValue)
    for (size_t s = 0; s < places.size(); ++s) copy(values[at(initial)], s, static_cast<size_t>(places[s]));
  for (size_t r = 0; r < before.size(); ++r)
    copy(values[at(left)], r, loop.backward ? static_cast<size_t>(before[r]) : r);
  return states;
}

void Interpreter::run_node(const Node& node) {
  const auto* const memory = node.as<Memory>();
  const auto* const last = node.as<LastStep>();
  if (memory != nullptr || last != nullptr) {
    const Loop& loop = graph_.loops[static_cast<size_t>(memory != nullptr ? memory->loop : last->loop)];
    const StepOrder& order = graph_.orders[static_cast<size_t>(loop.order)];
    const Numbers all = states(loop, node.inputs[memory != nullptr ? 0 : 1], node.inputs[memory != nullptr ? 1 : 0]);
    const Shape& shape = graph_.spec(node.outputs[0]).shape;
    const auto width = static_cast<size_t>(count_of({shape.begin() + 1, shape.end()}, symbols_));
    const auto count = static_cast<size_t>(count_of(shape, symbols_)) / std::max<size_t>(width, 1);
    const Numbers& rows =
        memory == nullptr ? values[at(loop.backward ? order.initial : order.last)] : values[at(order.before)];
    Numbers found;
    for (size_t r = 0; r < count; ++r) {
      const size_t row = memory != nullptr && loop.backward ? r : static_cast<size_t>(rows[r]);
      found.insert(found.end(), all.begin() + static_cast<std::ptrdiff_t>(row * width),
                   all.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
    }
    values[at(node.outputs[0])] = found;
    if (node.outputs.size() > 1) values[at(node.outputs[1])] = all;
    return;
  }
  std::vector<Numbers> inputs;
  for (const ValueId input : node.inputs) {
    inputs.push_back(input == kNoValue ? Numbers() : values[at(input)]);
    // What a loop has not computed yet.
    if (input != kNoValue && inputs.back().empty())
      inputs.back().assign(static_cast<size_t>(count_of(graph_.spec(input).shape, symbols_)), 0.0);
  }
  if (node.is<View>()) {
    values[at(node.outputs[0])] = inputs[0];
    return;
  }
  std::vector<Numbers> outputs = evaluate(graph_, node, symbols_, inputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (node.outputs[i] != kNoValue) values[at(node.outputs[i])] = std::move(outputs[i]);
}

}  // namespace tenon_tests
