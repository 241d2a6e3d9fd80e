// SPDX-License-Identifier: Apache-2.0
#include "host/machine/device_machine.h"

#include <algorithm>
#include <limits>

#include "core/checked.h"
#include "core/error.h"
#include "core/floating_point_mode.h"

namespace tenon::host {

namespace {

std::vector<MergedBuffer> merged_buffers_of(const CompiledModel& model, const ParameterSet& set,
                                            const MachineOptions& options) {
  std::vector<MergedBuffer> buffers;
  const std::vector<BufferUse>& uses = model.lowered.buffers;
  for (size_t i = 0; i < uses.size(); ++i) {
    const ParameterEntry& entry = set.find(uses[i].name);
    if (uses[i].next == kNoValue || options.is_immutable(uses[i].name) || entry.count == 0) continue;
    buffers.push_back({i, entry.count, tn_dtype_storage(options.compute, entry.count), entry.merge});
  }
  return buffers;
}

}  // namespace

DeviceMachine::DeviceMachine(Topology topology, std::shared_ptr<ParameterSet> set, Registry& registry,
                             std::shared_ptr<Device> device, const tn_parallel* parallel, const MachineOptions& options)
    : topology_(std::move(topology)),
      set_(std::move(set)),
      registry_(&registry),
      device_(std::move(device)),
      parallel_(parallel),
      options_(options),
      access_(std::make_unique<HostAccess>(device_, set_->allocator())),
      model_(compile(topology_, target(), options_, {})),
      merged_buffers_(merged_buffers_of(model_, *set_, options_)),
      carried_(model_, *access_, options_.max_samples),
      memory_id_(std::make_shared<const MemoryId>()),
      symbols_(model_.bounds.size(), 0),
      errors_(device_->who(), device_->origin().tags) {}

DeviceMachine::~DeviceMachine() { access_->finish(); }

// ---- growth

namespace {

// Returns a bound doubled as often as needed for `rows`.
int64_t doubled(int64_t bound, int64_t rows) {
  while (bound < rows) bound = checked_multiply(bound, int64_t{2}, "rows");
  return bound;
}

}  // namespace

void DeviceMachine::grow(const std::vector<int64_t>& symbols, bool keeps_gradients) {
  RaggedBounds bounds = model_.ragged_bounds;
  bool fits = true;
  for (const RaggedUse& rows : model_.lowered.rows) {
    const auto at = static_cast<size_t>(rows.symbol);
    if (symbols[at] <= model_.bounds[at]) continue;
    if (options_.max_rows > 0)
      fail(TN_INVALID, SubjectName{rows.name}, "data layer \"", rows.name, "\": ", symbols[at],
           " rows in a minibatch; the machine was made for at most ", options_.max_rows);
    fits = false;
    if (rows.name.empty()) continue;  // derived: its bound follows from the others
    bounds[rows.symbol] = doubled(model_.bounds[at], symbols[at]);
  }
  const Graph& graph = model_.calls->graph();
  const StepRows* seen = nullptr;
  for (const StepRows& each : graph.step_rows) {
    const auto at = static_cast<size_t>(each.rows.symbol);
    if (symbols[at] <= model_.bounds[at]) continue;
    fits = false;
    if (!each.whole) continue;
    seen = &each;
    bounds[each.rows.symbol] = doubled(model_.bounds[at], symbols[at]);
  }
  if (fits) return;
  try {
    replace_model(compile(topology_, target(), options_, std::move(bounds)), keeps_gradients);
  } catch (const Error& error) {
    if (seen == nullptr || error.code() == TN_PLUGIN_FAULT) throw;
    fail(error.code(), ComponentName{text("layer \"", graph.layers[static_cast<size_t>(seen->layer)], "\"")},
         "its steps see ", symbols[static_cast<size_t>(seen->rows.symbol)],
         " rows of whole sequences in a minibatch, for which the machine cannot grow: ", error.message());
  }
}

// Replaces the compiled model by a larger one. Changes nothing on failure.
void DeviceMachine::replace_model(CompiledModel larger, bool keeps_gradients) {
  auto memory_id = std::make_shared<const MemoryId>();
  std::vector<int64_t> symbols(larger.bounds.size(), 0);
  if (keeps_gradients) {
    const MachineMemory &from = model_.memory, &to = larger.memory;
    access_->move(to.block.data() + to.sections.gradients, from.block.data() + from.sections.gradients,
                  from.sections.arena - from.sections.gradients);
    for (size_t i = 0; i < model_.sparse_gradients.size(); ++i) {
      const SparseGradient& kept = *model_.sparse_gradients[i];
      SparseGradient& gradient = *larger.sparse_gradients[i];
      if (gradient.capacity() < kept.count()) {
        gradient.resize(kept.count());
        larger.calls->bind_rows(gradient.value(), gradient.values(), &gradient.rows());
      }
      gradient.copy(kept);
    }
  }
  carried_.copy_to(larger);
  access_->wait();  // before the former memory is released
  model_ = std::move(larger);
  access_->drop_views();
  memory_id_ = std::move(memory_id);
  symbols_ = std::move(symbols);
  final_parts_.clear();
  drop_outputs();
}

void DeviceMachine::reserve_rows(size_t number, int64_t added) {
  SparseGradient& gradient = *model_.sparse_gradients[number];
  if (make_room(gradient, added, memory_id_))
    model_.calls->bind_rows(gradient.value(), gradient.values(), &gradient.rows());
}

// ---- forward

namespace {

// Returns an element of a kept value of the compute type.
double number_at(const CompiledModel& model, HostAccess& access, ValueId value, int64_t element) {
  const auto at = static_cast<size_t>(element);
  const void* const memory = model.calls->memory(value);
  if (model.calls->graph().spec(value).dtype == TN_F64)
    return *static_cast<const double*>(access.view(static_cast<const double*>(memory) + at, sizeof(double)));
  return *static_cast<const float*>(access.view(static_cast<const float*>(memory) + at, sizeof(float)));
}

// Throws if a layer got numbers that it does not take. first_sample: as of DeviceMachine::Minibatch.
void check_numbers(const CompiledModel& model, HostAccess& access, int64_t first_sample) {
  const auto is_other = [&](ValueId value, int64_t element) {
    return number_at(model, access, value, element) > -std::numeric_limits<double>::infinity();
  };
  for (const NumberCheck& check : model.lowered.number_checks) {
    if (!is_other(check.any, 0)) continue;
    int64_t row = 0;
    while (!is_other(check.by_row, row)) ++row;
    check.refuse(number_at(model, access, check.by_row, row), row, first_sample);
  }
}

}  // namespace

void DeviceMachine::start_forward(const Minibatch& minibatch, FeedMode mode, std::optional<uint64_t> version) {
  const std::vector<int64_t>& symbols = minibatch.sizes.symbols;
  drop_outputs();
  first_sample_ = minibatch.first_sample;
  begin_step(minibatch);
  const int64_t samples = symbols[TN_SYMBOL_SAMPLES];
  if (samples == 0) return;
  take_feeds(model_, *access_, minibatch.arrays, minibatch.sizes, mode);
  take_places(minibatch.arrays);
  carried_.advance(samples);
  run_once(version);
  start(Phase::kForward);
}

void DeviceMachine::take_tables(const std::vector<TableRows>& rows) {
  rows_ = &rows;
  for (size_t i = 0; i < model_.tables.size(); ++i) {
    DeviceMemory& cache = model_.memory.caches[i];
    const uint64_t bytes = rows[i].values.size() * sizeof(float);
    if (cache.size() < bytes) {
      DeviceMemory larger(device_, std::max(bytes, 2 * cache.size()));
      access_->wait();  // before the former memory is released
      cache = std::move(larger);
      model_.calls->bind(model_.tables[i].stored, cache.data());
    }
    access_->write(cache.data(), rows[i].values.data(), bytes);
  }
}

// Copies the places of the ids of a shard in the caches.
void DeviceMachine::take_places(const std::vector<ArrayView>& arrays) {
  for (size_t i = 0; i < model_.tables.size(); ++i)
    for (const TableRead& read : model_.tables[i].reads) {
      std::vector<int64_t> places = ids_of(model_.lowered.feeds[read.feed], arrays[read.feed]);
      for (int64_t& id : places) id = (*rows_)[i].place(id);
      access_->write(model_.memory.fed.at(read.places).own, places.data(), places.size() * sizeof(int64_t));
    }
}

void DeviceMachine::finish_forward() {
  const int64_t samples = symbols_[TN_SYMBOL_SAMPLES];
  if (samples > 0) {
    finish(Phase::kForward);
    for (const RaggedUse& rows : model_.lowered.rows)  // sizes that calls have written
      if (rows.is_written()) symbols_[static_cast<size_t>(rows.symbol)] = model_.memory.symbols[rows.symbol];
    check_numbers(model_, *access_, first_sample_);
    carried_.set_samples(samples);
  }
  samples_ = samples;
}

void DeviceMachine::abandon_forward() {
  access_->finish();
  if (samples_ >= 0) carried_.set_samples(0);
  drop_outputs();
}

void DeviceMachine::begin_step(const Minibatch& minibatch) {
  const std::vector<int64_t>& symbols = minibatch.sizes.symbols;
  const bool changed = symbols != symbols_;
  symbols_ = symbols;
  bring_residents(model_.memory);
  model_.memory.random->step = (uint64_t{minibatch.shard} << 32U) + (options_.training ? set_->updates() : 0);
  std::copy(symbols.begin(), symbols.end(), model_.memory.symbols);
  for (const auto& by_symbol : model_.inverses.by_symbol()) {
    const int32_t symbol = by_symbol.first;
    const int64_t size = minibatch.whole[static_cast<size_t>(symbol)];  // so that the costs of shards add up
    const double inverse = size > 0 ? 1.0 / static_cast<double>(size) : 0.0;
    std::byte* const to = model_.memory.inverses + static_cast<size_t>(symbol) * sizeof(double);
    if (options_.compute == TN_F64)
      *reinterpret_cast<double*>(to) = inverse;
    else
      *reinterpret_cast<float*>(to) = static_cast<float>(inverse);
  }
  put_control(model_.memory, *access_);
  if (changed) model_.calls->resize(symbols);
}

void DeviceMachine::reset_carried() {
  if (set_->has_values()) carried_.reset();
}

// ---- backward

void DeviceMachine::prepare_backward(bool adds) {
  if (adds && samples_ > 0)
    for (size_t i = 0; i < model_.sparse_gradients.size(); ++i)
      reserve_rows(i, model_.calls->contributions(model_.sparse_gradients[i]->value(), symbols_));
  bring_residents(model_.memory);  // the application may have set some since the forward
}

void DeviceMachine::start_backward(bool adds, const Final& final) {
  if (samples_ == 0) return;
  const uint8_t request = adds ? TN_REQUEST_ADD : TN_REQUEST_WRITE;
  for (const ParameterUse& use : model_.lowered.parameters)
    if (use.gradient != kNoValue) model_.calls->request(use.gradient, request);
  if (final != nullptr && final_parts_.empty()) final_parts_ = model_.calls->final_parts(dense_gradients());
  start(Phase::kBackward, final);
}

void DeviceMachine::finish_backward() {
  if (samples_ > 0) finish(Phase::kBackward);
}

void DeviceMachine::zero_gradients() {
  const std::span<std::byte> dense = dense_gradients();
  access_->zero(dense.data(), dense.size());
  for (const auto& gradient : model_.sparse_gradients) gradient->clear();
}

void DeviceMachine::commit_buffers(const UsedNames& used) {
  if (samples_ <= 0 && !summed_) return;
  bool changed = false;
  for (size_t i = 0; i < model_.lowered.buffers.size(); ++i) {
    const BufferUse& buffer = model_.lowered.buffers[i];
    if (buffer.next == kNoValue || options_.is_immutable(buffer.name) || !used.contains(buffer.name)) continue;
    commit_buffer(i);
    changed = true;
  }
  if (changed) access_->wait();  // other machines may read the buffers now
}

// Makes the next values of a buffer the present ones. number: in Lowered::buffers.
void DeviceMachine::commit_buffer(size_t number) {
  const MachineMemory::Resident& kept = model_.memory.residents[model_.memory.first_buffer + number];
  const void* const next = model_.calls->memory(model_.lowered.buffers[number].next);
  if (options_.compute == TN_F32) {
    access_->move(kept.data(), next, kept.part.bytes);
  } else {
    const uint64_t count = kept.part.bytes / sizeof(float);
    const auto* const wide = static_cast<const double*>(access_->view(next, count * sizeof(double)));
    access_->write_by(kept.data(), kept.part.bytes, [&](std::byte* to) {
      std::transform(wide, wide + count, reinterpret_cast<float*>(to),
                     [](double value) { return static_cast<float>(value); });
    });
  }
  kept.residence.changed(kept.part);
}

// ---- the sum over shards

std::span<std::byte> DeviceMachine::dense_gradients() const {
  const MachineMemory::Sections& sections = model_.memory.sections;
  return {model_.memory.block.data() + sections.gradients, sections.arena - sections.gradients};
}

void DeviceMachine::take_rows(size_t number, const std::vector<int64_t>& ids, const std::byte* values) {
  SparseGradient& to = *model_.sparse_gradients[number];
  to.clear();
  reserve_rows(number, static_cast<int64_t>(ids.size()));
  to.write(ids, values);
}

// ---- calls

tn_execution DeviceMachine::execution() const {
  tn_execution execution = {};
  execution.size = sizeof execution;
  execution.device = device_->instance();
  execution.stream = access_->stream();
  execution.symbols = model_.memory.device_symbols;
  execution.host_symbols = model_.memory.symbols;
  execution.random = model_.memory.device_random;
  execution.parallel = parallel_;
  execution.errors = errors_.get();
  return execution;
}

void DeviceMachine::start(Phase phase, const Final& final) {
  const FloatingPointMode mode;  // also of what a kernel computes outside of parallel regions
  try {
    if (final == nullptr)
      model_.calls->run(phase, execution(), errors_);
    else
      model_.calls->run_backward(execution(), errors_, final_parts_,
                                 [&](const FinalPart& part) { final(part.offset, part.bytes); });
  } catch (const Error& error) {
    end_failed(phase, error);
    throw;
  } catch (...) {
    access_->finish();
    throw;
  }
}

void DeviceMachine::finish(Phase phase) {
  try {
    access_->wait();
  } catch (const Error& error) {
    end_failed(phase, error);
    throw;
  }
}

void DeviceMachine::end_failed(Phase phase, const Error& error) {
  access_->finish();
  const bool late = !access_->is_direct() && error.component() == device_->who();
  if (late && phase == Phase::kForward) name_failure();
}

// Runs a forward again of which work failed later than its run, to throw the failure with its component. A backward
// has overwritten what it read.
void DeviceMachine::name_failure() {
  const FloatingPointMode mode;
  std::copy(symbols_.begin(), symbols_.end(), model_.memory.symbols);
  put_control(model_.memory, *access_);
  model_.calls->resize(symbols_);
  try {
    model_.calls->run_stepwise(Phase::kForward, execution(), errors_);
  } catch (...) {
    access_->finish();
    throw;
  }
}

void DeviceMachine::run_once(std::optional<uint64_t> version) {
  if (!model_.calls->has_once() || (version && model_.version == version)) return;
  model_.version.reset();
  start(Phase::kOnce);
  finish(Phase::kOnce);
  model_.version = version;
}

}  // namespace tenon::host
