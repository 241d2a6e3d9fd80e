// Compiles runs of calls. SPDX-License-Identifier: Apache-2.0
#include "pointwise/compile.h"

#ifdef TENON_CPU_ASSEMBLES
#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <new>
#include <numeric>
#include <set>
#include <string>

#include "pointwise/vector_code.h"

namespace tenon::cpu {

namespace {

using Calls = std::vector<Call>;

// Calls of one function. The assembler takes time that grows with the square of a function's length.
constexpr size_t kLongestRun = 256;

// Calls [first, last) of a list, and which of their results are read outside of the run.
struct Run {
  Code* code;
  Calls* calls;
  size_t first, last;
  std::vector<bool> kept;
};

std::array<Calls*, 4> lists_of(Code& code) {
  return {&code.scalar_calls, &code.column_calls, &code.row_calls, &code.tile_calls};
}

bool compiles(const Call& call) { return call.key.operation != kNoOperation && has_code(call.key); }

int operands_of(const Call& call) {
  switch (call.key.operation) {
    case kCopy:
      return 1;
    case kMulAdd:
    case kMulSub:
    case kNegMulAdd:
      return 3;
    default:
      return tn_op_info(call.key.operation).operands;
  }
}

// Returns how often calls and stores name each cursor as an operand.
std::vector<int64_t> reads_of(Code& code) {
  std::vector<int64_t> reads(code.cursors.size(), 0);
  for (const Calls* list : lists_of(code))
    for (const Call& call : *list)
      for (const int32_t operand : {call.a, call.b, call.c}) ++reads[static_cast<size_t>(operand)];
  for (const Store& store : code.stores) ++reads[static_cast<size_t>(store.value)];
  return reads;
}

// Which results of a run are read outside of it, by number of call. reads: of reads_of.
std::vector<bool> results_kept(const Run& run, const std::vector<int64_t>& reads) {
  Calls& calls = *run.calls;
  std::vector<bool> kept(run.last - run.first, true);
  if (calls[run.first].span != Span::kElements) return kept;  // other cursors may read the same memory
  std::map<int32_t, int64_t> within;
  for (size_t i = run.first; i < run.last; ++i)
    for (const int32_t operand : {calls[i].a, calls[i].b, calls[i].c}) ++within[operand];
  for (size_t i = run.first; i < run.last; ++i) {
    const Call& call = calls[i];
    const bool in_place = call.out == call.a;  // an accumulator
    const bool temporary = run.code->cursors[static_cast<size_t>(call.out)].home == Home::kScratch;
    const auto read = within.find(call.out);
    const int64_t inside = read == within.end() ? 0 : read->second;
    kept[i - run.first] = in_place || !temporary || reads[static_cast<size_t>(call.out)] > inside;
  }
  return kept;
}

// The runs of two calls to kLongestRun.
void find_runs(Code& code, std::vector<Run>& runs) {
  const std::vector<int64_t> reads = reads_of(code);
  for (Calls* const list : lists_of(code)) {
    Calls& calls = *list;
    for (size_t first = 0; first < calls.size();) {
      size_t last = first;
      while (last < calls.size() && last - first < kLongestRun && compiles(calls[last]) &&
             calls[last].span == calls[first].span)
        ++last;
      if (last - first >= 2) {
        runs.push_back({&code, &calls, first, last, {}});
        runs.back().kept = results_kept(runs.back(), reads);
      }
      first = std::max(last, first + 1);
    }
  }
}

// Calls visit(cursor) for each cursor whose memory the function of a run reads or writes, with a reference to its
// number.
template <class Visit>
void each_cursor(const Run& run, const Visit& visit) {
  std::set<int32_t> made;
  for (size_t i = run.first; i < run.last; ++i) {
    Call& call = (*run.calls)[i];
    const int32_t operands[3] = {call.a, call.b, call.c};
    for (int k = 0; k < operands_of(call); ++k)
      if (!made.contains(operands[k])) visit(operands[k]);
    if (run.kept[i - run.first]) visit(call.out);
    made.insert(call.out);
  }
}

// Numbers the cursors anew: first those that are used when the runs are functions, whose number it returns.
size_t order_cursors(Code& code, const std::vector<Run>& runs) {
  std::vector<bool> used(code.cursors.size(), false);
  const auto use = [&](int32_t cursor) { used[static_cast<size_t>(cursor)] = true; };
  for (Calls* calls : lists_of(code)) {
    std::vector<bool> in_run(calls->size(), false);
    for (const Run& run : runs)
      if (run.calls == calls)
        std::fill(in_run.begin() + static_cast<std::ptrdiff_t>(run.first),
                  in_run.begin() + static_cast<std::ptrdiff_t>(run.last), true);
    for (size_t i = 0; i < calls->size(); ++i)
      if (const Call& call = (*calls)[i]; !in_run[i])
        for (const int32_t cursor : {call.out, call.a, call.b, call.c}) use(cursor);
  }
  for (const Run& run : runs)
    if (run.code == &code) each_cursor(run, use);
  for (const Store& store : code.stores) use(store.cursor), use(store.value);

  std::vector<int32_t> order(code.cursors.size()), numbers(code.cursors.size());
  std::iota(order.begin(), order.end(), 0);
  const auto unused = std::stable_partition(order.begin(), order.end(),
                                            [&](int32_t cursor) { return used[static_cast<size_t>(cursor)]; });
  std::vector<Cursor> cursors;
  cursors.reserve(order.size());
  for (const int32_t cursor : order) {
    numbers[static_cast<size_t>(cursor)] = static_cast<int32_t>(cursors.size());
    cursors.push_back(code.cursors[static_cast<size_t>(cursor)]);
  }
  const auto renumber = [&](int32_t& cursor) { cursor = numbers[static_cast<size_t>(cursor)]; };
  for (Calls* calls : lists_of(code))
    for (Call& call : *calls)
      for (int32_t* const cursor : {&call.out, &call.a, &call.b, &call.c}) renumber(*cursor);
  for (Store& store : code.stores) renumber(store.cursor), renumber(store.value);
  code.cursors = std::move(cursors);
  return static_cast<size_t>(unused - order.begin());
}

// Writes the function of a run: Kernel with the address of the cursors as `out`, and the elements as `count`.
class FunctionWriter {
 public:
  FunctionWriter(x86::Compiler& compiler, const Run& run)
      : compiler_(compiler), run_(run), key_((*run.calls)[run.first].key) {}

  asmjit::Label write() {
    using Signature = asmjit::FuncSignatureT<void, void*, const void*, const void*, const void*, int64_t, int64_t>;
    asmjit::FuncNode* const function = compiler_.addFunc(Signature(asmjit::CallConvId::kHost));
    if (function == nullptr) throw std::bad_alloc();
    function->frame().setAvxEnabled();
    if (key_.isa == Isa::kAvx512) function->frame().setAvx512Enabled();
    function->frame().setAvxCleanup();
    const x86::Gp table = compiler_.newIntPtr(), count = compiler_.newInt64();
    function->setArg(0, table);
    function->setArg(4, count);
    at_ = compiler_.newInt64();
    compiler_.xor_(at_.r32(), at_.r32());
    VectorCode code(compiler_, key_.isa, key_.wide, table);
    code.begin_loops();
    if ((*run_.calls)[run_.first].span != Span::kOne) write_whole(code, count);
    write_rest(code, count);
    compiler_.ret();
    compiler_.endFunc();
    return function->label();
  }

 private:
  // A loop over whole vectors.
  void write_whole(VectorCode& code, const x86::Gp& count) {
    const asmjit::Label loop = compiler_.newLabel(), end = compiler_.newLabel();
    const x86::Gp whole = compiler_.newInt64();
    compiler_.mov(whole, count);
    compiler_.and_(whole, -code.lanes());
    compiler_.jz(end);
    compiler_.bind(loop);
    write_vector(code);
    compiler_.add(at_, code.lanes());
    compiler_.cmp(at_, whole);
    compiler_.jb(loop);
    compiler_.bind(end);
  }

  // The elements from at_ to `count`, fewer than a vector.
  void write_rest(VectorCode& code, const x86::Gp& count) {
    const asmjit::Label end = compiler_.newLabel();
    const x86::Gp rest = compiler_.newInt64();
    compiler_.mov(rest, count);
    compiler_.sub(rest, at_);
    compiler_.jz(end);
    code.limit(rest);
    write_vector(code);
    code.all_lanes();
    compiler_.bind(end);
  }

  void write_vector(VectorCode& code) {
    std::map<int32_t, Lanes> values;  // by cursor
    for (size_t i = run_.first; i < run_.last; ++i) {
      const Call& call = (*run_.calls)[i];
      const int32_t cursors[3] = {call.a, call.b, call.c};
      Lanes broadcasts[3];
      Lanes* operands[3] = {&broadcasts[0], &broadcasts[1], &broadcasts[2]};
      for (int k = 0; k < operands_of(call); ++k) {
        if ((call.key.broadcast >> k & 1U) != 0) {
          broadcasts[k] = code.broadcast(cursors[k]);
          continue;
        }
        const auto [value, missing] = values.try_emplace(cursors[k]);
        if (missing) value->second = code.load(cursors[k], at_);
        operands[k] = &value->second;
      }
      Lanes made = code.compute(call.key, *operands[0], *operands[1], *operands[2]);
      if (run_.kept[i - run_.first]) code.store(call.out, at_, made);
      values[call.out] = made;
    }
  }

  x86::Compiler& compiler_;
  const Run& run_;
  const KernelKey key_;
  x86::Gp at_;  // first element of the vector
};

// Machine code, and errors of AsmJit: running out of memory, else mistakes of this file.
struct Assembly : asmjit::ErrorHandler {
  asmjit::CodeHolder holder;
  asmjit::Error error = asmjit::kErrorOk;
  void handleError(asmjit::Error met, const char*, asmjit::BaseEmitter*) override {
    if (error == asmjit::kErrorOk) error = met;
  }
};

// Null where there is no executable memory.
std::shared_ptr<const Functions> assemble(const std::vector<Run>& runs) {
  Assembly assembly;
  if (assembly.holder.init(asmjit::Environment::host()) != asmjit::kErrorOk) return nullptr;
  assembly.holder.setErrorHandler(&assembly);
  x86::Compiler compiler;
  if (assembly.holder.attach(&compiler) != asmjit::kErrorOk) {
    compiler._code = nullptr;  // AsmJit leaves it there, and its destructor would not find itself in the holder
    throw std::bad_alloc();
  }
  std::vector<asmjit::Label> labels;
  for (const Run& run : runs) labels.push_back(FunctionWriter(compiler, run).write());
  compiler.finalize();
  assembly.holder.flatten();
  assembly.holder.resolveUnresolvedLinks();
  std::vector<std::byte> code(assembly.holder.codeSize());
  assembly.holder.copyFlattenedData(code.data(), code.size());
  if (assembly.error == asmjit::kErrorOutOfMemory) throw std::bad_alloc();
  if (assembly.error != asmjit::kErrorOk) return nullptr;
  auto made = std::make_shared<Functions>(Functions{ExecutableMemory(code), {}});
  if (made->memory.empty()) return nullptr;
  for (const asmjit::Label& label : labels) made->offsets.push_back(assembly.holder.labelOffsetFromBase(label));
  return made;
}

// All that the functions of the runs depend on.
std::string key_of(const std::vector<Run>& runs) {
  std::string key;
  const auto add = [&](auto... numbers) { append(key, numbers...); };
  for (const Run& run : runs) {
    add(run.last - run.first);
    for (size_t i = run.first; i < run.last; ++i) {
      const Call& call = (*run.calls)[i];
      const KernelKey& k = call.key;
      add(k.isa, k.wide, k.operation, k.kind, k.to, k.broadcast, call.span);
      add(call.out, call.a, call.b, call.c, run.kept[i - run.first] ? '1' : '0');
    }
  }
  return key;
}

// Replaces the calls of each run by a call of its function, with the table of cursors as its operand.
void replace_calls(const std::vector<Run>& runs, const Functions& functions) {
  std::map<Calls*, std::vector<bool>> replaced;  // by list: the calls that go
  for (size_t i = 0; i < runs.size(); ++i) {
    const Run& run = runs[i];
    Code& code = *run.code;
    Cursor table;
    table.offset = code.scratch_bytes;
    code.cursors.push_back(table);
    const auto cursor = static_cast<int32_t>(code.cursors.size()) - 1;
    Call& first = (*run.calls)[run.first];
    const auto kernel = reinterpret_cast<Kernel>(functions.memory.at(functions.offsets[i]));
    first = {kernel, first.span, cursor, cursor, cursor, cursor};
    std::vector<bool>& gone = replaced[run.calls];
    gone.resize(run.calls->size(), false);
    std::fill(gone.begin() + static_cast<std::ptrdiff_t>(run.first) + 1,
              gone.begin() + static_cast<std::ptrdiff_t>(run.last), true);
  }
  for (const auto& [calls, gone] : replaced) {
    size_t kept = 0;
    for (size_t i = 0; i < gone.size(); ++i)
      if (!gone[i]) (*calls)[kept++] = (*calls)[i];
    calls->resize(kept);
  }
}

}  // namespace

std::shared_ptr<const Functions> compile(std::vector<Code>& passes, FunctionCache& cache) {
  std::vector<Run> runs;
  for (Code& code : passes) find_runs(code, runs);
  if (runs.empty()) return nullptr;
  std::vector<size_t> used;  // by pass: cursors
  for (Code& code : passes) used.push_back(order_cursors(code, runs));
  const std::string key = key_of(runs);
  std::shared_ptr<const Functions> functions = cache.find(key);
  if (functions == nullptr) {
    functions = assemble(runs);
    if (functions == nullptr) return nullptr;
    cache.add(key, functions);
  }
  for (size_t i = 0; i < passes.size(); ++i) passes[i].cursors.resize(used[i]);
  replace_calls(runs, *functions);
  return functions;
}

}  // namespace tenon::cpu

#else

namespace tenon::cpu {

std::shared_ptr<const Functions> compile(std::vector<Code>&, FunctionCache&) { return nullptr; }

}  // namespace tenon::cpu

#endif
