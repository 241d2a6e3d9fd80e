// Generates the text of kernels. SPDX-License-Identifier: Apache-2.0
#include "source.h"

#include <algorithm>

#include "expression.h"

namespace tenon::cuda {

namespace {

constexpr size_t kMostFoursBytes = 64;  // of one element of each operand of which a thread holds four

// Text in lines, indented by braces.
class Lines {
 public:
  void add(const std::string& line) {
    if (!line.empty() && line[0] == '}') --depth_;
    text_.append(2 * depth_, ' ').append(line).push_back('\n');
    if (!line.empty() && line.back() == '{') ++depth_;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  size_t depth_ = 0;
  std::string text_;
};

// Writes one kernel, for blocks of 256 threads. The work is cut into `blocks` parts, and a launched block computes the
// parts blockIdx.x, blockIdx.x + gridDim.x, ...
class KernelWriter {
 public:
  KernelWriter(const tn_pointwise_site& site, const Indexed& indexed, const Plan& plan, const Kernel& kernel,
               int64_t group, Lines& lines)
      : site_(site),
        indexed_(indexed),
        plan_(plan),
        kernel_(kernel),
        seen_(plan.closure(kernel)),
        expressions_(site, indexed, plan, kernel, group),
        group_(group),
        lines_(lines) {}

  void write(size_t number) {
    lines_.add("extern \"C\" __global__ void __launch_bounds__(256, 2) kernel" + std::to_string(number) +
               "(const __grid_constant__ Arguments a) {");
    lines_.add("if (a.fault->code != 0) return;");
    lines_.add(std::string("const Int64 rows = ") +
               (indexed_.any() ? "used(a.rows)" : "size_of(a.sizes[0], a.symbols)") +
               ", columns = size_of(a.sizes[1], a.symbols);");
    lines_.add("const Int64 strips = pieces(rows, " + text(kStripRows) + ", " + text(kMostStrips) + ");");
    switch (kernel_.grid) {
      case Grid::kRows:
        rows();
        break;
      case Grid::kStrips:
        strips();
        break;
      case Grid::kOne:
        one();
        break;
      default:
        linear();
    }
    lines_.add("}");
  }

 private:
  // What a kernel over elements, rows or columns does with four of them at once.
  struct Linear {
    std::string index;            // the variable of the loop
    const char* count;            // how many there are
    std::vector<int32_t> values;  // those that differ from one to the next
    bool by_row = false;          // a value needs its row and column
    bool by_four = false;         // a thread takes four that follow each other, else every 256th
  };
  [[nodiscard]] Linear linear_values() const;
  // Whether a thread's elements of an operand follow each other in memory.
  [[nodiscard]] static bool follows(const Linear& linear, const std::string& place) {
    return linear.by_four && place == linear.index;
  }
  void begin_four(const Linear& linear);
  void read_fours(const Linear& linear);
  void store_fours(const Linear& linear);
  void linear();
  void rows();
  void sweep(const std::vector<int32_t>& ranks, int32_t sweep, int32_t sweeps);
  void strips();
  void one();

  [[nodiscard]] int32_t output_value(int32_t output) const { return plan_.outputs[static_cast<size_t>(output)]; }
  void define(int32_t value, const std::string& what) {
    lines_.add(std::string("const ") + kind_name(plan_.node(value).kind) + " " + name(value) + " = " + what + ";");
  }
  void define(int32_t value) { define(value, expressions_.of(value)); }
  void define_all(uint8_t extent, const std::vector<bool>& among) {
    for (size_t i = 0; i < among.size(); ++i)
      if (among[i] && plan_.nodes[i].extent == extent) define(static_cast<int32_t>(i));
  }
  void start(int32_t value) {
    const Node& node = plan_.node(value);
    lines_.add(std::string(kind_name(node.kind)) + " " + accumulator(value) + " = " + fold_name(node.operation) +
               "::start<" + kind_name(node.kind) + ">();");
  }
  void join(int32_t value) {
    lines_.add(accumulator(value) + " = " + fold_name(plan_.node(value).operation) + "::join(" + accumulator(value) +
               ", " + name(plan_.node(value).operands[0]) + ");");
  }
  [[nodiscard]] std::string output_place(int32_t output) const {
    return place(plan_.node(output_value(output)).extent, indexed_.any() && indexed_.outputs[output] != 0);
  }
  // at, what: arguments of the function.
  void store(int32_t output, const char* function, const std::string& at, const std::string& what) {
    lines_.add(std::string(function) + "<" + element_name(site_, site_.outputs[output]) + ">(a.outputs[" +
               text(output) + "], " + at + ", " + what + ", a.requests[" + text(output) + "]);");
  }
  void store(int32_t output) { store(output, "store", output_place(output), name(output_value(output))); }
  void keep(int32_t value, int32_t buffer, const std::string& index, const std::string& what) {
    lines_.add(std::string("((") + kind_name(plan_.node(value).kind) + "*)a.buffers[" + text(buffer) + "])[" + index +
               "] = " + what + ";");
  }
  // A part is every `blocks`-th tile; it has one element in each partial buffer [parts]. Without partial results it is
  // one tile.
  void begin_parts() {
    lines_.add(std::string("const Int64 blocks = ") +
               (kernel_.partials.empty() ? "tiles" : "pieces(tiles, 1, " + text(kMostParts) + ")") + ";");
    lines_.add("for (Int64 block = blockIdx.x; block < blocks; block += gridDim.x) {");
    for (const int32_t value : kernel_.partials) start(value);
    lines_.add("for (Int64 tile = block; tile < tiles; tile += blocks) {");
  }
  void end_parts() {
    lines_.add("}");
    for (const int32_t value : kernel_.partials) {
      lines_.add(accumulator(value) + " = across_block<" + fold_name(plan_.node(value).operation) + ">(" +
                 accumulator(value) + ");");
      lines_.add("if (threadIdx.x == 0)");
      keep(value, plan_.node(value).partial, "block", accumulator(value));
    }
    lines_.add("}");
  }

  const tn_pointwise_site& site_;
  const Indexed& indexed_;
  const Plan& plan_;
  const Kernel& kernel_;
  const std::vector<bool> seen_;
  const Expressions expressions_;
  const int64_t group_;
  Lines& lines_;
};

KernelWriter::Linear KernelWriter::linear_values() const {
  const bool full = kernel_.grid == Grid::kElements;
  Linear linear;
  linear.index = full ? "i" : kernel_.grid == Grid::kRowVector ? "r" : "c";
  linear.count = full ? "rows * columns" : kernel_.grid == Grid::kRowVector ? "rows" : "columns";
  linear.by_row = full && indexed_.any();
  size_t operands = kernel_.outputs.size();
  for (size_t i = 0; i < seen_.size(); ++i) {
    const Node& node = plan_.nodes[i];
    if (!seen_[i] || node.extent == TN_SCALAR) continue;
    linear.values.push_back(static_cast<int32_t>(i));
    linear.by_row = linear.by_row || (full && node.extent != TN_FULL);
    operands += node.operation == kLoad ? 1 : 0;
  }
  linear.by_four = operands * tn_dtype_bytes(site_.compute) <= kMostFoursBytes;
  return linear;
}

void KernelWriter::begin_four(const Linear& linear) {
  lines_.add(linear.by_four ? "#pragma unroll" : "#pragma unroll 1");
  lines_.add("for (int k = 0; k < 4; ++k) {");
  lines_.add("const Int64 " + linear.index + " = first + " + (linear.by_four ? "k;" : "k * 256;"));
  lines_.add("if (" + linear.index + " >= count) break;");
  if (linear.by_row) lines_.add("const Int64 r = divide(i, columns), c = i - r * columns;");
}

void KernelWriter::read_fours(const Linear& linear) {
  for (const int32_t value : linear.values) {
    const Node& node = plan_.node(value);
    if (node.operation != kLoad || !follows(linear, expressions_.input_place(node))) continue;
    lines_.add(std::string(kind_name(node.kind)) + " x" + text(value) + "[4];");
    lines_.add(std::string("read_four<") + kind_name(node.kind) + ", " + element_name(site_, site_.inputs[node.index]) +
               ">(a.inputs[" + text(node.index) + "], first, count, x" + text(value) + ");");
  }
  for (const int32_t output : kernel_.outputs)
    lines_.add(std::string(kind_name(plan_.node(output_value(output)).kind)) + " y" + text(output) + "[4];");
}

void KernelWriter::store_fours(const Linear& linear) {
  bool any = false;
  for (const int32_t output : kernel_.outputs) {
    if (follows(linear, output_place(output)))
      store(output, "store_four", "first, count", "y" + text(output));
    else
      any = true;
  }
  if (!any) return;
  begin_four(linear);
  for (const int32_t output : kernel_.outputs)
    if (!follows(linear, output_place(output)))
      store(output, "store", output_place(output), "y" + text(output) + "[k]");
  lines_.add("}");
}

// Grids kElements, kRowVector and kColumnVector: a thread takes four elements, rows or columns at once that follow each
// other, so that it reads and writes 16 bytes of an operand. It stores nothing before it has read all, since the
// compiler must assume that a store changes any input. With many operands there are no registers for that: it takes one
// after the other, and neighbouring threads take neighbours. Partial buffers are [parts], kept ones [columns].
void KernelWriter::linear() {
  const Linear linear = linear_values();
  define_all(TN_SCALAR, seen_);
  lines_.add(std::string("const Int64 count = ") + linear.count + ", tiles = (count + " + text(kTile - 1) + ") / " +
             text(kTile) + ";");
  begin_parts();
  lines_.add("const Int64 first = tile * " + text(kTile) + " + " + (linear.by_four ? "4 * " : "") + "threadIdx.x;");
  if (linear.by_four) read_fours(linear);
  begin_four(linear);
  for (const int32_t value : linear.values) {
    const Node& node = plan_.node(value);
    if (node.operation == kLoad && follows(linear, expressions_.input_place(node)))
      define(value, "x" + text(value) + "[k]");
    else
      define(value);
  }
  for (const int32_t value : kernel_.partials) join(value);
  for (const int32_t value : kernel_.keeps) keep(value, plan_.node(value).kept, linear.index, name(value));
  for (const int32_t output : kernel_.outputs) {
    if (linear.by_four)
      lines_.add("y" + text(output) + "[k] = " + name(output_value(output)) + ";");
    else
      store(output);
  }
  lines_.add("}");
  if (linear.by_four) store_fours(linear);
  end_parts();
}

// Grid kRows: a warp or a block per row. Each reduction along the row ends a sweep over its columns; a later sweep
// computes the FULL values that it needs again. A thread has the same columns in every sweep, and the last sweep writes
// the outputs. Partial buffers are [parts], kept ones [rows].
void KernelWriter::rows() {
  std::vector<int32_t> ranks(seen_.size(), 0);
  int32_t sweeps = 0;
  for (size_t i = 0; i < seen_.size(); ++i) {
    const Node& node = plan_.nodes[i];
    if (!seen_[i] || plan_.is_leaf(kernel_, static_cast<int32_t>(i))) continue;
    for (int k = 0; k < node.operands_count(); ++k)
      ranks[i] = std::max(ranks[i], ranks[static_cast<size_t>(node.operands[k])]);
    if (node.is_reduction()) ++ranks[i];
    sweeps = std::max(sweeps, ranks[i]);
  }
  define_all(TN_SCALAR, seen_);
  const std::string group = text(group_), groups = text(kThreads / group_);
  lines_.add("const int lane = threadIdx.x % " + group + ";");
  lines_.add("const Int64 tiles = (rows + " + groups + " - 1) / " + groups + ";");
  begin_parts();
  lines_.add("const Int64 r = tile * " + groups + " + threadIdx.x / " + group + ";");
  lines_.add("if (r < rows) {");
  for (int32_t k = 0; k <= sweeps; ++k) {
    for (size_t i = 0; i < seen_.size(); ++i) {
      const auto value = static_cast<int32_t>(i);
      const Node& node = plan_.nodes[i];
      if (!seen_[i] || node.extent != TN_PER_ROW || ranks[i] != k) continue;
      if (!node.is_reduction() || plan_.is_leaf(kernel_, value)) define(value);
    }
    sweep(ranks, k, sweeps);
  }
  lines_.add(group_ == kWarp ? "__syncwarp();" : "__syncthreads();");  // all threads have read the row's PER_ROW inputs
  lines_.add("if (lane == 0) {");
  for (const int32_t value : kernel_.partials)
    if (plan_.node(plan_.node(value).operands[0]).extent == TN_PER_ROW) join(value);
  for (const int32_t value : kernel_.keeps) keep(value, plan_.node(value).kept, "r", name(value));
  for (const int32_t output : kernel_.outputs)
    if (plan_.node(output_value(output)).extent == TN_PER_ROW) store(output);
  lines_.add("}");
  lines_.add("}");
  end_parts();
}

// One sweep over a row's columns: the reductions of its rank, partial results, and in the last sweep the FULL outputs.
void KernelWriter::sweep(const std::vector<int32_t>& ranks, int32_t sweep, int32_t sweeps) {
  std::vector<int32_t> reductions, partials, outputs;
  for (size_t i = 0; i < seen_.size(); ++i) {
    const auto value = static_cast<int32_t>(i);
    if (seen_[i] && plan_.nodes[i].is_reduction() && !plan_.is_leaf(kernel_, value) && ranks[i] == sweep + 1)
      reductions.push_back(value);
  }
  for (const int32_t value : kernel_.partials) {
    const int32_t operand = plan_.node(value).operands[0];
    if (plan_.node(operand).extent == TN_FULL && ranks[static_cast<size_t>(operand)] == sweep)
      partials.push_back(value);
  }
  if (sweep == sweeps)
    for (const int32_t output : kernel_.outputs)
      if (plan_.node(output_value(output)).extent == TN_FULL) outputs.push_back(output);
  if (reductions.empty() && partials.empty() && outputs.empty()) return;

  std::vector<bool> needed(seen_.size(), false);
  const auto need = [&](int32_t value) { needed[static_cast<size_t>(value)] = true; };
  for (const int32_t value : reductions) need(plan_.node(value).operands[0]);
  for (const int32_t value : partials) need(plan_.node(value).operands[0]);
  for (const int32_t output : outputs) need(output_value(output));
  for (size_t i = needed.size(); i-- > 0;) {
    const uint8_t extent = plan_.nodes[i].extent;
    needed[i] = needed[i] && (extent == TN_FULL || extent == TN_PER_COLUMN);
    if (!needed[i] || plan_.is_leaf(kernel_, static_cast<int32_t>(i))) continue;
    for (int k = 0; k < plan_.nodes[i].operands_count(); ++k) need(plan_.nodes[i].operands[k]);
  }
  for (const int32_t value : reductions) start(value);
  lines_.add("for (Int64 c = lane; c < columns; c += " + text(group_) + ") {");
  lines_.add("const Int64 i = r * columns + c;");
  for (size_t i = 0; i < needed.size(); ++i)
    if (needed[i]) define(static_cast<int32_t>(i));
  for (const int32_t value : reductions) join(value);
  for (const int32_t value : partials) join(value);
  for (const int32_t output : outputs) store(output);
  lines_.add("}");
  for (const int32_t value : reductions) {
    const Node& node = plan_.node(value);
    lines_.add(std::string("const ") + kind_name(node.kind) + " " + name(value) + " = " +
               (group_ == kWarp ? "across_warp<" : "across_block<") + fold_name(node.operation) + ">(" +
               accumulator(value) + ");");
  }
}

// Grid kStrips: a block reduces 32 columns of one strip of rows, eight rows at a time, into partial buffers [strips,
// columns].
void KernelWriter::strips() {
  define_all(TN_SCALAR, seen_);
  lines_.add("const Int64 blocks = (columns + 31) / 32 * strips, length = (rows + strips - 1) / strips;");
  lines_.add("for (Int64 block = blockIdx.x; block < blocks; block += gridDim.x) {");
  lines_.add("const Int64 strip = block % strips, c = block / strips * 32 + threadIdx.x % 32;");
  lines_.add("const Int64 end = (strip + 1) * length < rows ? (strip + 1) * length : rows;");
  for (const int32_t value : kernel_.partials) start(value);
  lines_.add("if (c < columns) {");
  define_all(TN_PER_COLUMN, seen_);
  lines_.add("for (Int64 r = strip * length + threadIdx.x / 32; r < end; r += 8) {");
  lines_.add("const Int64 i = r * columns + c;");
  for (size_t i = 0; i < seen_.size(); ++i)
    if (seen_[i] && (plan_.nodes[i].extent == TN_PER_ROW || plan_.nodes[i].extent == TN_FULL))
      define(static_cast<int32_t>(i));
  for (const int32_t value : kernel_.partials) join(value);
  lines_.add("}");
  lines_.add("}");
  for (const int32_t value : kernel_.partials) {
    lines_.add(accumulator(value) + " = across_strip<" + fold_name(plan_.node(value).operation) + ">(" +
               accumulator(value) + ");");
    lines_.add("if (threadIdx.x < 32 && c < columns)");
    keep(value, plan_.node(value).partial, "strip * columns + c", accumulator(value));
  }
  lines_.add("}");
}

// Grid kOne: one block folds partial results [parts]; its first thread computes the SCALAR values and stores them.
void KernelWriter::one() {
  for (const int32_t value : kernel_.keeps) define(value);
  lines_.add("if (threadIdx.x == 0) {");
  for (size_t i = 0; i < seen_.size(); ++i)
    if (seen_[i] && !expressions_.keeps(static_cast<int32_t>(i))) define(static_cast<int32_t>(i));
  for (const int32_t value : kernel_.keeps) keep(value, plan_.node(value).kept, "0", name(value));
  for (const int32_t output : kernel_.outputs) store(output);
  lines_.add("}");
}

}  // namespace

Source generate(const tn_pointwise_site& site, const Indexed& indexed, tn_dtype* missing) {
  const tn_program& program = *site.program;
  Source source;
  for (uint32_t i = 0; i < program.inputs_count + program.outputs_count; ++i) {
    const tn_dtype dtype = i < program.inputs_count ? site.inputs[i] : site.outputs[i - program.inputs_count];
    if (element_name(site, dtype) != nullptr) continue;
    *missing = dtype;
    return source;
  }
  const Plan plan = make_plan(site);
  source.buffers = plan.buffers;
  const tn_dim& columns = site.columns;
  if (columns.symbol == TN_SYMBOL_NONE && columns.offset <= kWarpColumns) source.group = kWarp;
  Lines lines;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    KernelWriter(site, indexed, plan, plan.kernels[k], source.group, lines).write(k);
    source.grids.push_back(plan.kernels[k].grid);
  }
  source.text = lines.text();
  return source;
}

}  // namespace tenon::cuda
