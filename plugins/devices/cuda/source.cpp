// Generates the text of kernels. SPDX-License-Identifier: Apache-2.0
#include "source.h"

#include <algorithm>

#include "expression.h"
#include "prelude.h"

namespace tenon::cuda {

namespace {

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
  KernelWriter(const tn_pointwise_site& site, const Plan& plan, const Kernel& kernel, int64_t group, Lines& lines)
      : site_(site),
        plan_(plan),
        kernel_(kernel),
        seen_(plan.closure(kernel)),
        expressions_(site, plan, kernel, group),
        group_(group),
        lines_(lines) {}

  void write(size_t number) {
    lines_.add("extern \"C\" __global__ void __launch_bounds__(256) kernel" + std::to_string(number) +
               "(const Arguments a) {");
    lines_.add("const Int64 rows = size_of(a.rows, a.symbols), columns = size_of(a.columns, a.symbols);");
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
  void linear();
  void rows();
  void sweep(const std::vector<int32_t>& ranks, int32_t sweep, int32_t sweeps);
  void strips();
  void one();

  [[nodiscard]] int32_t output_value(int32_t output) const { return plan_.outputs[static_cast<size_t>(output)]; }
  void define(int32_t value) {
    lines_.add(std::string("const ") + kind_name(plan_.node(value).kind) + " " + name(value) + " = " +
               expressions_.of(value) + ";");
  }
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
  void store(int32_t output) {
    const Node& node = plan_.node(output_value(output));
    lines_.add(std::string("store<") + element_name(site_, site_.outputs[output]) + ">(a.outputs[" + text(output) +
               "], " + position(node.extent) + ", " + name(output_value(output)) + ", a.requests[" + text(output) +
               "]);");
  }
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
  const Plan& plan_;
  const Kernel& kernel_;
  const std::vector<bool> seen_;
  const Expressions expressions_;
  const int64_t group_;
  Lines& lines_;
};

// Grids kElements, kRowVector and kColumnVector: a thread per element, row or column. A thread loads its inputs for
// four of them before it stores anything, since the compiler must assume that a store changes any input. Partial
// buffers are [parts], kept ones [columns].
void KernelWriter::linear() {
  const bool full = kernel_.grid == Grid::kElements;
  const bool by_row = kernel_.grid == Grid::kRowVector;
  const std::string index = full ? "i" : by_row ? "r" : "c";
  const char* const count = full ? "rows * columns" : by_row ? "rows" : "columns";
  const auto inner = [&](size_t i) { return seen_[i] && plan_.nodes[i].extent != TN_SCALAR; };
  const auto loaded = [&](size_t i) { return inner(i) && plan_.nodes[i].operation == kLoad; };
  const auto begin_four = [&] {
    lines_.add("#pragma unroll");
    lines_.add("for (int k = 0; k < 4; ++k) {");
    lines_.add("const Int64 " + index + " = tile * " + text(kTile) + " + k * 256 + threadIdx.x;");
    lines_.add("if (" + index + " >= count) break;");
    bool grid = false;
    for (size_t i = 0; i < seen_.size(); ++i) grid = grid || (full && inner(i) && plan_.nodes[i].extent != TN_FULL);
    if (grid) lines_.add("const Int64 r = divide(i, columns), c = i - r * columns;");
  };
  define_all(TN_SCALAR, seen_);
  lines_.add(std::string("const Int64 count = ") + count + ", tiles = (count + " + text(kTile - 1) + ") / " +
             text(kTile) + ";");
  begin_parts();
  bool any = false;
  for (size_t i = 0; i < seen_.size(); ++i) {
    if (!loaded(i)) continue;
    any = true;
    lines_.add(std::string(kind_name(plan_.nodes[i].kind)) + " x" + std::to_string(i) + "[4];");
  }
  if (any) {
    begin_four();
    for (size_t i = 0; i < seen_.size(); ++i)
      if (loaded(i)) lines_.add("x" + std::to_string(i) + "[k] = " + expressions_.of(static_cast<int32_t>(i)) + ";");
    lines_.add("}");
  }
  begin_four();
  for (size_t i = 0; i < seen_.size(); ++i) {
    const auto value = static_cast<int32_t>(i);
    if (loaded(i))
      lines_.add(std::string("const ") + kind_name(plan_.nodes[i].kind) + " " + name(value) + " = x" + text(value) +
                 "[k];");
    else if (inner(i))
      define(value);
  }
  for (const int32_t value : kernel_.partials) join(value);
  for (const int32_t value : kernel_.keeps) keep(value, plan_.node(value).kept, index, name(value));
  for (const int32_t output : kernel_.outputs) store(output);
  lines_.add("}");
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

std::string list_member(const char* type, const char* member, size_t count) {
  return count == 0 ? "" : std::string("  ") + type + " " + member + "[" + std::to_string(count) + "];\n";
}

}  // namespace

Source generate(const tn_pointwise_site& site, tn_dtype* missing) {
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
  source.text = site.compute == TN_F64 ? "typedef double F;\ntypedef long long I;\ntypedef unsigned long long U;\n"
                                       : "typedef float F;\ntypedef int I;\ntypedef unsigned int U;\n";
  source.text += kElementsText;
  source.text += kReductionsText;
  source.text += "\nstruct Arguments {\n  const Int64* symbols;\n  const Random* random;\n  Extent rows, columns;\n" +
                 list_member("const void*", "inputs", program.inputs_count) +
                 list_member("void*", "outputs", program.outputs_count) +
                 list_member("void*", "buffers", plan.buffers.size()) +
                 list_member("unsigned char", "requests", program.outputs_count) + "};\n\n";
  Lines lines;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    KernelWriter(site, plan, plan.kernels[k], source.group, lines).write(k);
    source.grids.push_back(plan.kernels[k].grid);
  }
  source.text += lines.text();
  return source;
}

}  // namespace tenon::cuda
