// SPDX-License-Identifier: Apache-2.0
#include "host/compile/call_array.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <set>

#include "core/alignment.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/graph/loops.h"
#include "host/compile/memory_plan.h"
#include "host/compile/prepare_call.h"

namespace tenon::host {

namespace {

constexpr uint64_t kMostWorkspace = uint64_t{1} << 46;  // 64 TiB: sums of such sizes do not overflow

// Whether a node has a call: false for views, and for rows that steps find in place.
bool computes(const Graph& graph, const Node& node) {
  return !node.is<View>() && (node.outputs.empty() || node.outputs[0] == kNoValue ||
                              graph.values[at(node.outputs[0])].place != StepPlace::kPrefix);
}

}  // namespace

CallArray::CallArray(Graph graph, std::shared_ptr<Device> device, std::vector<int64_t> bounds,
                     const std::vector<ValueId>& kept, Checks checks)
    : graph_(std::move(graph)),
      device_(std::move(device)),
      bounds_(std::move(bounds)),
      steps_of_(values_of_steps(graph_, kept)),
      schedules_(graph_.orders.size()),
      checks_(checks) {
  if (!device_->host_memory()) checks_.operands = false;  // kernels cannot run on copies in memory of the host
  make_tensors();
  makers_.assign(graph_.values.size(), {~size_t{0}, 0});
  for (const auto& [symbol, rows] : graph_.rows)
    if (rows.count != kNoValue) counted_[rows.count] = symbol;
  for (size_t i = 0; i < schedules_.size(); ++i) {
    const Dim& outer = graph_.rows.at(graph_.orders[i].rows).outer;
    schedules_[i].reserve(bounds_[static_cast<size_t>(graph_.orders[i].rows)], tn_dim_value(&outer, bounds_.data()));
  }
  bool backward = false;
  for (size_t number = 0; number < graph_.nodes.size(); ++number) {
    const Node& node = graph_.nodes[number];
    if (backward && !node.backward) fail(TN_INTERNAL, who(node), ": a forward node follows a backward one");
    backward = node.backward;
    loop_ = enter_loop(node.loop);
    if (node.is<Memory>())
      add_memory(node);
    else if (computes(graph_, node))
      prepare(number);
    if (node.once) once_calls_ = calls_.size();
    if (!backward) forward_calls_ = calls_.size();
  }
}

LoopCalls* CallArray::enter_loop(int32_t loop) {
  LoopCalls* known = loop_;
  while (known != nullptr && known->number() != loop) known = known->around();
  if (known != nullptr || loop < 0) return known;
  known = enter_loop(graph_.loops[static_cast<size_t>(loop)].around);
  return &loops_.emplace_back(graph_, loop, calls_.size(), known, steps_of_, bounds_);
}

void CallArray::add_memory(const Node& memory) {
  const ValueId initial = memory.inputs[0];
  tn_tensor* found = initial == kNoValue ? nullptr : &tensors_[at(initial)];
  if (found != nullptr && loop_->around() != nullptr) found = loop_->around()->tensor(initial, *found);
  loop_->add_memory(memory, found);
}

void CallArray::make_tensors() {
  tensors_.resize(graph_.values.size());
  shapes_.resize(graph_.values.size());
  for (size_t i = 0; i < graph_.values.size(); ++i) {
    const Spec& spec = graph_.values[i].spec;
    shapes_[i].reserve(spec.shape.size());
    for (const Dim& dim : spec.shape) {
      shapes_[i].push_back(bounded(dim, bounds_).bound);
      if (dim.symbol != TN_SYMBOL_NONE && (varying_.empty() || varying_.back() != static_cast<ValueId>(i)))
        varying_.push_back(static_cast<ValueId>(i));
    }
    tn_tensor& tensor = tensors_[i];
    tensor = device_->tensor(spec.dtype, spec.storage);
    tensor.dl.ndim = static_cast<int32_t>(spec.shape.size());
    tensor.dl.shape = shapes_[i].data();
  }
}

// Fills in tn_ragged of every ragged tensor, for kernels that read it. Offsets must be bound before.
void CallArray::make_ragged() {
  for (const auto& [symbol, of] : graph_.rows) {
    Ragged& made = ragged_[symbol];
    made = {};
    for (auto level = graph_.rows.find(symbol); level != graph_.rows.end();
         level = graph_.rows.find(level->second.outer.symbol)) {  // from the innermost level out
      made.offsets.push_back(static_cast<int64_t*>(memory(level->second.offsets)));
      made.capacity.push_back(bounded(level->second.outer, bounds_).bound);
    }
    made.ragged = {sizeof made.ragged, static_cast<uint32_t>(made.offsets.size()), made.capacity.data(),
                   made.offsets.data()};
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Shape& shape = graph_.values[i].spec.shape;
    if (graph_.values[i].spec.storage == TN_ROW_SPARSE || shape.empty()) continue;
    const auto found = is_ragged(shape[0]) ? ragged_.find(shape[0].symbol) : ragged_.end();
    tensors_[i].storage = found == ragged_.end() ? TN_DENSE : TN_RAGGED;
    if (found != ragged_.end()) tensors_[i].part = &found->second.ragged;
  }
}

int64_t CallArray::contributions(ValueId rows, const std::vector<int64_t>& symbols) const {
  const Node& node = graph_.nodes[static_cast<size_t>(graph_.values[at(rows)].producer)];
  int64_t sum = 0;
  for (size_t i = 1; i < node.inputs.size(); i += node.as<Coalesce>()->stride()) {
    const Dim count = elements(graph_.spec(node.inputs[i]).shape);
    sum = checked_add(sum, tn_dim_value(&count, symbols.data()), "rows");
  }
  return sum;
}

void CallArray::bind_rows(ValueId value, void* values, const tn_row_sparse* rows) {
  bind(value, values);
  tensors_[at(value)].part = rows;
  shapes_[at(value)][0] = rows->capacity;
}

std::string CallArray::who(const Node& node, const std::string& first) const {
  std::string names;
  for (const int32_t layer : node.served()) {
    if (layer < 0) continue;
    const std::string name = "\"" + graph_.layers[static_cast<size_t>(layer)] + "\"";
    if (names.empty())
      names = name;
    else
      names = name == "\"" + first + "\"" ? name + ", " + names : names + ", " + name;
  }
  return (names.empty() ? std::string("the machine") : "layer " + names) + " (" + primitive_name(node.operation) +
         (node.backward ? ", backward)" : ")");
}

void CallArray::prepare(size_t number) {
  const Node& node = graph_.nodes[number];
  Call& call = calls_.emplace_back();
  call.node = number;
  LoopCalls* const loop = loop_;
  if (loop != nullptr) loop->count_call();
  const auto tensor_of = [&](ValueId value) -> tn_tensor* {
    if (value == kNoValue) return nullptr;
    return loop == nullptr ? &tensors_[at(value)] : loop->tensor(value, tensors_[at(value)]);
  };
  call.inputs.reserve(node.inputs.size());
  call.outputs.reserve(node.outputs.size());
  call.requests.reserve(node.outputs.size());
  for (const ValueId input : node.inputs) call.inputs.push_back(tensor_of(input));
  for (const ValueId output : node.outputs) {
    if (output != kNoValue) makers_[at(output)] = {calls_.size() - 1, call.outputs.size()};
    if (const auto counted = counted_.find(output); counted != counted_.end()) call.rows.push_back(counted->second);
    call.outputs.push_back(tensor_of(output));
    const bool adds = loop != nullptr && node.is<ScatterAdd>();
    if (adds) loop->add_sum(output);
    call.requests.push_back(output == kNoValue ? TN_REQUEST_NONE : adds ? TN_REQUEST_ADD : TN_REQUEST_WRITE);
  }
  if (node.is<StepTables>() || node.is<StepRowTables>()) {
    call.of_host = true;
    call.kernel = "host";
    return;
  }
  ErrorSink errors(who(node), device_->origin().tags);
  try {
    call.kernel = prepare_call(graph_, node, bounds_, *device_, call.prepared, errors);
  } catch (const Error& error) {
    if (!error.component().empty()) throw;
    throw error.with_component(errors.who());
  }
  if (call.prepared->run == nullptr)
    fail(TN_PLUGIN_FAULT, ComponentName{errors.who()}, call.kernel, " prepared no function");
  if (call.prepared->workspace_bytes > kMostWorkspace)
    fail(TN_INVALID, ComponentName{errors.who()}, call.kernel, " needs a workspace of ", call.prepared->workspace_bytes,
         " bytes for values of this size; at most ", kMostWorkspace);
  if (checks_.portable && (call.prepared->traits & TN_TRAIT_PORTABLE) == 0)
    fail(TN_UNSUPPORTED, ComponentName{errors.who()}, call.kernel, " of plugin \"", call.prepared.by().plugin,
         "\" does not state that its bits are the same on every processor (TN_TRAIT_PORTABLE), which arithmetic "
         "\"portable-0\" asks for");
  if (loop != nullptr && (call.prepared->traits & TN_TRAIT_ANY_ALIGNMENT) == 0) align(call, *loop);
  const uint64_t own = call.prepared->workspace_bytes;
  workspace_bytes_ =
      std::max(workspace_bytes_, call.aligned == nullptr ? own : whole_lines(own) + call.aligned->bytes());
}

// Gives a call of a loop, whose operands may be rows that begin anywhere, memory in which they are aligned.
void CallArray::align(Call& call, const LoopCalls& loop) {
  const std::vector<int64_t> bounds = bounds_within(graph_, loop.order_number(), bounds_);
  const auto value_of = [&](const tn_tensor& tensor) {
    const Node& node = graph_.nodes[call.node];
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (call.inputs[i] == &tensor) return node.inputs[i];
    return node.outputs[static_cast<size_t>(std::find(call.outputs.begin(), call.outputs.end(), &tensor) -
                                            call.outputs.begin())];
  };
  call.aligned = std::make_unique<AlignedOperands>(call.inputs, call.outputs, [&](const tn_tensor& tensor) {
    return bytes_of(graph_.spec(value_of(tensor)), bounds);
  });
  if (call.aligned->are_all_aligned()) call.aligned = nullptr;
}

void CallArray::seal(const SealedMemory& sealed) {
  sealed_ = sealed;
  if (!device_->host_memory()) captures_ = Captures::of(device_);
  make_ragged();
  bind_tables();
  for (LoopCalls& loop : loops_) loop.bind([&](ValueId value) { return memory(value); }, tables_, sealed_);
  for (Call& call : calls_) {
    call.call.size = sizeof call.call;
    call.call.inputs_count = static_cast<uint32_t>(call.inputs.size());
    call.call.outputs_count = static_cast<uint32_t>(call.outputs.size());
    call.call.inputs = call.inputs.data();
    call.call.outputs = call.outputs.data();
    call.call.requests = call.requests.data();
    call.call.workspace = sealed_.workspace;
    const auto* const native = graph_.nodes[call.node].as<NativeCall>();
    call.call.draw = native == nullptr ? 0 : native->draw;
    if (call.aligned != nullptr)
      call.aligned->bind(static_cast<std::byte*>(sealed_.workspace) + whole_lines(call.prepared->workspace_bytes),
                         call.call);
  }
  make_bare();
}

// The tables that the host makes or reads: those of steps, and offsets.
void CallArray::bind_tables() {
  std::set<ValueId> tables;
  for (const auto& [symbol, rows] : graph_.rows) tables.insert(rows.offsets);
  for (const Call& call : calls_) {
    if (!call.of_host) continue;
    tables.insert(graph_.nodes[call.node].inputs.begin(), graph_.nodes[call.node].inputs.end());
    tables.insert(graph_.nodes[call.node].outputs.begin(), graph_.nodes[call.node].outputs.end());
  }
  tables.erase(kNoValue);
  tables_.bind(*sealed_.access);
  for (const ValueId value : tables) tables_.add(value, memory(value), bytes_of(graph_.spec(value), bounds_));
}

const NativeCall* CallArray::checked_operands(const Call& call) const {
  return checks_.operands ? graph_.nodes[call.node].as<NativeCall>() : nullptr;
}

// Whether the host does more for a call than call the plugin.
bool CallArray::watched(const Call& call) const {
  return checks_.finite || checks_.time || checked_operands(call) != nullptr || call.of_host || !call.rows.empty();
}

void CallArray::make_bare() {
  bare_.assign(calls_.size(), {});
  for (size_t i = 0; i < calls_.size(); ++i) {
    const Call& call = calls_[i];
    if (call.prepared.by().tags != nullptr || call.prepared.waits() || call.aligned != nullptr || watched(call))
      continue;
    bare_[i] = {call.prepared->run, call.prepared->binding, &call.call, call.prepared.record()};
  }
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) find_recordable(phase);
}

CallArray::Range CallArray::range(Phase phase) const {
  const size_t ends[] = {once_calls_, forward_calls_, calls_.size()};
  const auto of = static_cast<size_t>(phase);
  return {of == 0 ? 0 : ends[of - 1], ends[of]};
}

// Work is recorded where the host does nothing between the calls: not in loops, nor where a call writes sizes.
void CallArray::find_recordable(Phase phase) {
  const auto [first, last] = range(phase);
  Recordable& made = recordable_[static_cast<size_t>(phase)];
  made = {first < last, false};
  for (size_t i = first; i < last; ++i) {
    const uint32_t traits = calls_[i].prepared->traits;
    const bool sizes = (traits & TN_TRAIT_HOST_SIZES) != 0;
    const bool leaves = (traits & (TN_TRAIT_HOST_CALLBACK | TN_TRAIT_BLOCKING)) != 0;
    if (watched(calls_[i]) || leaves || !(sizes || (traits & TN_TRAIT_CAPTURABLE) != 0)) made.calls = false;
    made.host_sizes = made.host_sizes || sizes;
  }
  for (const LoopCalls& loop : loops_)
    if (loop.first() >= first && loop.first() < last) made.calls = false;
}

Captures::Key CallArray::key_of(Phase phase) const {
  const auto [first, last] = range(phase);
  Captures::Key key{bindings_, {static_cast<uint8_t>(phase)}, {}};
  for (size_t i = first; i < last; ++i)
    key.requests.insert(key.requests.end(), calls_[i].requests.begin(), calls_[i].requests.end());
  if (recordable_[static_cast<size_t>(phase)].host_sizes)
    key.sizes.assign(sealed_.symbols, sealed_.symbols + bounds_.size());
  return key;
}

void CallArray::resize(const std::vector<int64_t>& symbols) {
  for (const ValueId value : varying_) {
    const Shape& shape = graph_.spec(value).shape;
    for (size_t i = 0; i < shape.size(); ++i) shapes_[at(value)][i] = tn_dim_value(&shape[i], symbols.data());
  }
}

void CallArray::request(ValueId value, uint8_t request) {
  const auto& [call, output] = makers_[at(value)];
  if (call < calls_.size()) calls_[call].requests[output] = request;
}

void CallArray::expect_rows(int32_t symbol, const Dim& bound) { expected_rows_[symbol] = bound; }

// Checks the offsets and the number of rows that a call has written, and sets the shapes of all values of these rows.
// Kernels that run later rely on both.
void CallArray::settle(const Call& call, int32_t symbol) {
  int64_t* const symbols = sealed_.symbols;
  const RaggedDim& rows = graph_.rows.at(symbol);
  const int64_t count = symbols[symbol];
  const int64_t most = tn_dim_value(&expected_rows_.at(symbol), symbols);
  const int64_t sequences = tn_dim_value(&rows.outer, symbols);
  tables_.pull(rows.offsets, sequences + 1);
  const int64_t* const offsets = tables_.at(rows.offsets);
  const auto refuse = [&](const auto&... parts) {
    fail(TN_PLUGIN_FAULT, ComponentName{call.prepared.who()}, "its kernel \"", call.kernel, "\" wrote ", parts...);
  };
  if (count < 0 || count > most) refuse(count, " as the number of rows; expected 0 to ", most);
  if (offsets[0] != 0) refuse("offsets that begin with ", offsets[0], "; expected 0");
  for (int64_t i = 0; i < sequences; ++i)
    if (offsets[i + 1] < offsets[i])
      refuse("offsets that fall from ", offsets[i], " to ", offsets[i + 1], " at sequence ", i);
  if (offsets[sequences] != count) refuse("offsets that end at ", offsets[sequences], ", and ", count, " rows");
  set_shapes(symbol, symbols);
  for (const StepOrder& order : graph_.orders) {
    if (order.rows != symbol) continue;
    symbols[order.steps.symbol] = count;
    symbols[order.states.symbol] = count + sequences;
    set_shapes(order.steps.symbol, symbols);
    set_shapes(order.states.symbol, symbols);
  }
  sealed_.put_symbols(bounds_.size());
}

// Sets the sizes of the dimensions of one symbol.
void CallArray::set_shapes(int32_t symbol, const int64_t* symbols) {
  for (const ValueId value : varying_) {
    const Shape& shape = graph_.spec(value).shape;
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i].symbol == symbol) shapes_[at(value)][i] = tn_dim_value(&shape[i], symbols);
  }
}

void CallArray::make_tables(const Node& node) {
  const auto size = [&](ValueId value) { return value == kNoValue ? 0 : shapes_[at(value)][0]; };
  for (const ValueId input : node.inputs) tables_.pull(input, size(input));
  fill_tables(node);
  for (const ValueId output : node.outputs) tables_.push(output, size(output));
}

void CallArray::fill_tables(const Node& node) {
  const auto table = [&](ValueId value) { return tables_.at(value); };
  if (const auto* const of = node.as<StepRowTables>()) {
    const StepRows& rows = graph_.step_rows[static_cast<size_t>(of->number)];
    const StepSchedule& schedule = schedules_[static_cast<size_t>(rows.order)];
    const int64_t* const offsets = table(node.inputs[0]);
    const StepRowMemory tables = {table(rows.offsets), table(rows.row_of_place), table(rows.place_of_row),
                                  rows.whole ? table(rows.place) : nullptr};
    return rows.whole ? schedule.make_whole(offsets, tables)
                      : schedule.make_inner(offsets, table(node.inputs[1]), tables);
  }
  const auto number = static_cast<size_t>(node.as<StepTables>()->order);
  const StepOrder& order = graph_.orders[number];
  const RaggedDim& rows = graph_.rows.at(order.rows);
  const StepTableMemory tables = {table(order.row_of_step), table(order.step_of_row), table(order.sequence_of_step),
                                  table(order.before),      table(order.last),        table(order.initial)};
  const int32_t around = order_around(graph_, static_cast<int32_t>(number));
  if (around < 0)
    schedules_[number].make(table(rows.offsets), tn_dim_value(&rows.outer, sealed_.symbols), order.reverse, tables);
  else
    schedules_[number].make_nested(schedules_[static_cast<size_t>(around)], table(rows.offsets), order.reverse, tables);
}

void CallArray::run(Phase phase, const tn_execution& execution, ErrorSink& errors) {
  const auto [first, last] = range(phase);
  if (checks_.finite && phase == Phase::kForward) check_given();
  if (captures_ == nullptr || stepwise_ || !recordable_[static_cast<size_t>(phase)].calls)
    return run_loops(first, last, nullptr, phase, execution, errors);
  captures_->run(key_of(phase), execution.stream,
                 [&, first = first, last = last] { run_loops(first, last, nullptr, phase, execution, errors); });
}

void CallArray::run_stepwise(Phase phase, const tn_execution& execution, ErrorSink& errors) {
  bare_.assign(calls_.size(), {});
  stepwise_ = true;
  std::exception_ptr failure;
  try {
    run(phase, execution, errors);
  } catch (...) {
    failure = std::current_exception();
  }
  stepwise_ = false;
  make_bare();
  if (failure) std::rethrow_exception(failure);
}

void CallArray::run_loops(size_t first, size_t last, const LoopCalls* around, Phase phase,
                          const tn_execution& execution, ErrorSink& errors) {
  for (LoopCalls& loop : loops_) {
    if (loop.around() != around || loop.first() < first || loop.first() >= last) continue;
    run_calls(first, loop.first(), phase, execution, errors);
    first = loop.first() + loop.calls();
    loop.run(schedules_[static_cast<size_t>(loop.order_number())], sealed_.symbols,
             [&] { run_loops(loop.first(), first, &loop, phase, execution, errors); });
  }
  run_calls(first, last, phase, execution, errors);
}

void CallArray::run_calls(size_t first, size_t last, Phase phase, const tn_execution& execution, ErrorSink& errors) {
  PluginCallMark mark(nullptr);
  size_t i = first;
  try {
    for (; i < last; ++i) {
      const BareCall& bare = bare_[i];
      mark.move_to(bare.run == nullptr ? nullptr : &bare.record);
      if (bare.run == nullptr) {
        run_call(calls_[i], phase, execution, errors);
      } else if (const tn_status status = bare.run(bare.binding, &execution, bare.call); status != TN_OK) {
        errors.check(status, calls_[i].prepared.who());
      }
    }
  } catch (...) {
    if (bare_[i].run == nullptr) throw;
    const Prepared& prepared = calls_[i].prepared;
    fail_foreign(prepared.by(), prepared.who(), prepared.as());
  }
}

void CallArray::run_call(Call& call, Phase phase, const tn_execution& execution, ErrorSink& errors) {
  if (!checks_.time) return run_watched(call, phase, execution, errors);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  run_watched(call, phase, execution, errors);
  sealed_.access->wait();  // a run may only have enqueued the work
  call.measured.seconds += std::chrono::duration<double>(Clock::now() - began).count();
  const Work work = work_of(graph_, graph_.nodes[call.node], sealed_.symbols);
  call.measured.work.operations += work.operations;
  call.measured.work.bytes += work.bytes;
  ++call.measured.runs;
}

void CallArray::run_watched(const Call& call, Phase phase, const tn_execution& execution, ErrorSink& errors) {
  if (call.of_host) return make_tables(graph_.nodes[call.node]);
  const auto* const native = checked_operands(call);
  if (call.aligned != nullptr) call.aligned->begin(*sealed_.access);
  const tn_call& operands = call.aligned == nullptr ? call.call : call.aligned->operands();
  const tn_status status = native == nullptr
                               ? call.prepared.run(execution, operands)
                               : run_checked(call.prepared, *native, phase == Phase::kBackward, execution, operands);
  if (status != TN_OK) errors.check(status, call.prepared.who());
  if (call.aligned != nullptr) call.aligned->end(*sealed_.access);
  if (stepwise_) sealed_.access->wait(call.prepared.who());
  for (const int32_t symbol : call.rows) sealed_.take_symbol(symbol);  // all, before settle puts symbols
  for (const int32_t symbol : call.rows) settle(call, symbol);
  if (checks_.finite) check_finite(call);
}

// Checks the values that no call makes: feeds, parameters, constants.
void CallArray::check_given() const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (graph_.values[i].producer >= 0 || tensors_[i].dl.data == nullptr) continue;
    if (const std::string found = first_not_finite(tensors_[i], *sealed_.access); !found.empty())
      fail(TN_INVALID, SubjectName{graph_.values[i].name}, "\"", graph_.values[i].name,
           "\", which the model reads, is ", found);
  }
}

void CallArray::check_finite(const Call& call) const {
  const Node& node = graph_.nodes[call.node];
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i] == nullptr || call.requests[i] == TN_REQUEST_NONE) continue;
    const std::string found = first_not_finite(*call.outputs[i], *sealed_.access);
    if (found.empty()) continue;
    const std::string& name = graph_.values[at(node.outputs[i])].name;
    fail(TN_INVALID, ComponentName{who(node, name)}, SubjectName{name}, name.empty() ? "a value" : "\"" + name + "\"",
         " is ", found);
  }
}

}  // namespace tenon::host
